//! Runs whose lengths follow from values: what comes behind such a length runs on kernels too.

use galatea_graph::{AttributeValue, ValueId};
use galatea_runtime::{OptimiseLevel, Precision, ProfileRow, Run, Session};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

use crate::support::{Maker, assert_kernel, floats, ints};

const CLOSE: Tolerance = Tolerance::Accumulated { terms: 256, accumulator: DataType::Fp32 };

fn axis(axis: i64) -> [(&'static str, AttributeValue); 1] {
    [("axis", AttributeValue::Int(axis))]
}

fn one(maker: &mut Maker, op: &str, inputs: &[Option<ValueId>]) -> Option<ValueId> {
    maker.node(op, &[], inputs, 1)[0]
}

/// Checks that no product of matrices and no convolution ran by reference.
fn assert_products_on_kernels(rows: &[ProfileRow]) {
    let slow = |row: &&ProfileRow| {
        row.kernel == "reference" && matches!(&*row.op, "MatMul" | "Conv" | "Gemm" | "Softmax")
    };
    let slow: Vec<_> = rows.iter().filter(slow).map(|row| row.op.clone()).collect();
    assert!(slow.is_empty(), "by reference: {slow:?}");
}

/// Rows of `x` that are kept by a mask, multiplied by weights.
fn kept_rows(maker: &mut Maker, x: Option<ValueId>, mask: Option<ValueId>) -> Option<ValueId> {
    let kept = maker.node("Compress", &axis(0), &[x, mask], 1)[0];
    let weights = maker.constant(floats(&[6, 5], 3));
    let product = one(maker, "MatMul", &[kept, weights]);
    one(maker, "Relu", &[product])
}

fn bools(values: &[bool]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

#[test]
fn a_product_behind_a_length_from_values_runs_on_its_kernel() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 6], 1));
    let mask = maker.input("mask", bools(&[true, false, true, true]));
    let y = kept_rows(&mut maker, x, mask);
    let (found, rows) = maker.check(&[y], 6);
    assert_eq!(found[0].shape(), [3, 5]);
    assert_products_on_kernels(&rows);
    assert!(rows.iter().any(|row| &*row.op == "MatMul"), "{rows:?}");
}

#[test]
fn all_lengths_that_values_may_have_get_their_own_plan() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 6], 1));
    let mask = maker.input("mask", bools(&[true; 4]));
    let y = kept_rows(&mut maker, x, mask);
    maker.graph.outputs = vec![y.unwrap()];
    let (cpu, reference) = (maker.session("cpu"), maker.session("reference"));
    let values = floats(&[4, 6], 9);
    for bits in (0..16_u8).chain(0..16) {
        let mask: Vec<bool> = (0..4).map(|at| bits >> at & 1 == 1).collect();
        let inputs = [("x", values.clone()), ("mask", bools(&mask))];
        let run = |session: &Session| session.run_tensors(Run::named(&inputs)).unwrap().remove(0);
        let (found, expected) = (run(&cpu), run(&reference));
        assert_eq!(found.shape(), [bits.count_ones() as usize, 5]);
        compare(&found, &expected, CLOSE).unwrap();
    }
    // One for the mask's stage, and one for each number of rows.
    assert_eq!(cpu.report().plans.made, 1 + 5);
}

#[test]
fn targets_of_reshapes_may_be_computed_from_values() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[2, 12], 1));
    let rows = maker.input("rows", ints(&[1], &[4]));
    let all = maker.constant(ints(&[1], &[-1]));
    let target = maker.node("Concat", &axis(0), &[rows, all], 1)[0];
    let shaped = one(&mut maker, "Reshape", &[x, target]);
    let softened = one(&mut maker, "Softmax", &[shaped]);
    let turned = one(&mut maker, "Transpose", &[softened]);
    let y = one(&mut maker, "MatMul", &[softened, turned]);
    let (found, profile) = maker.check(&[y, softened], 12);
    assert_eq!((found[0].shape(), found[1].shape()), (&[4, 4][..], &[4, 6][..]));
    assert_products_on_kernels(&profile);
}

#[test]
fn ranges_and_fillings_of_computed_lengths_are_part_of_the_plan() {
    let mut maker = Maker::new();
    let durations = maker.input("durations", ints(&[4], &[3, 1, 0, 4]));
    let x = maker.input("x", floats(&[5, 4], 2));
    let no_axis = [("keepdims", AttributeValue::Int(0))];
    let total = maker.node("ReduceSum", &no_axis, &[durations], 1)[0];
    let (zero, step) = (maker.constant(ints(&[], &[0])), maker.constant(ints(&[], &[1])));
    let frames = one(&mut maker, "Range", &[zero, total, step]);
    let first = maker.constant(ints(&[1], &[0]));
    let frames = one(&mut maker, "Unsqueeze", &[frames, first]);
    let ends = {
        let along = maker.constant(ints(&[], &[0]));
        one(&mut maker, "CumSum", &[durations, along])
    };
    let last = maker.constant(ints(&[1], &[1]));
    let ends = one(&mut maker, "Unsqueeze", &[ends, last]);
    let before = one(&mut maker, "Less", &[frames, ends]);
    let to = [("to", AttributeValue::Int(1))];
    let path = maker.node("Cast", &to, &[before], 1)[0];
    let y = one(&mut maker, "MatMul", &[x, path]);
    let (found, rows) = maker.check(&[y, total], 4);
    assert_eq!(found[0].shape(), [5, 8]);
    assert_products_on_kernels(&rows);
}

#[test]
fn a_length_that_follows_from_another_is_a_stage_of_its_own() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[6, 6], 1));
    let mask = maker.input("mask", bools(&[true, true, false, true, true, true]));
    let first = kept_rows(&mut maker, x, mask);
    // Of what is left, the elements above zero, as one row.
    let zero = maker.constant(floats(&[1], 0).reshape(&[]).unwrap());
    let zero = one(&mut maker, "Sub", &[zero, zero]);
    let above = one(&mut maker, "Greater", &[first, zero]);
    let places = one(&mut maker, "NonZero", &[above]);
    let turned = one(&mut maker, "Transpose", &[places]);
    let found = one(&mut maker, "GatherND", &[first, turned]);
    let at = maker.constant(ints(&[1], &[0]));
    let row = one(&mut maker, "Unsqueeze", &[found, at]);
    let column = one(&mut maker, "Transpose", &[row]);
    let y = one(&mut maker, "MatMul", &[row, column]);
    let (outputs, rows) = maker.check(&[y, first], 40);
    assert_eq!(outputs[0].shape(), [1, 1]);
    assert_products_on_kernels(&rows);
}

#[test]
fn a_value_that_no_length_needs_makes_no_new_plan() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 6], 1));
    let mask = maker.input("mask", bools(&[true, false, true, true]));
    let scale = maker.input("scale", floats(&[1], 5));
    let y = kept_rows(&mut maker, x, mask);
    let y = one(&mut maker, "Mul", &[y, scale]);
    maker.graph.outputs = vec![y.unwrap()];
    let session = maker.session("cpu");
    for seed in 0..5 {
        let inputs = [
            ("x", floats(&[4, 6], seed)),
            ("mask", bools(&[false, true, true, seed % 2 == 0])),
            ("scale", floats(&[1], seed)),
        ];
        session.run_tensors(Run::named(&inputs)).unwrap();
    }
    assert_eq!(session.report().plans.made, 1 + 2);
}

#[test]
fn ranks_that_only_a_run_tells_get_kernels_then() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[2, 3, 8], 1));
    let target = maker.input("target", ints(&[2], &[6, 8]));
    // How many lengths the target has is not declared.
    let id = target.unwrap();
    maker.graph.value_mut(id).declared.as_mut().unwrap().shape =
        Some(vec![galatea_graph::Dim::symbol("rank")]);
    let shaped = one(&mut maker, "Reshape", &[x, target]);
    let weights = maker.constant(floats(&[8, 4], 3));
    let product = one(&mut maker, "MatMul", &[shaped, weights]);
    let y = one(&mut maker, "Softmax", &[product]);
    let (found, rows) = maker.check(&[y], 8);
    assert_eq!(found[0].shape(), [6, 4]);
    assert_products_on_kernels(&rows);
}

#[test]
fn stages_keep_values_between_products_in_bf16() {
    let mut maker = Maker::new();
    maker.precision = Precision::Bf16;
    maker.level = OptimiseLevel::O3;
    let x = maker.input("x", floats(&[40, 64], 1));
    let mask = maker.input("mask", bools(&[true; 40]));
    let before = maker.constant(floats(&[64, 64], 2));
    let first = one(&mut maker, "MatMul", &[x, before]);
    let kept = maker.node("Compress", &axis(0), &[first, mask], 1)[0];
    let (a, b) = (maker.constant(floats(&[64, 64], 3)), maker.constant(floats(&[64, 48], 4)));
    let second = one(&mut maker, "MatMul", &[kept, a]);
    let third = one(&mut maker, "MatMul", &[second, b]);
    // Three roundings to 8 bits of sums of 64 products.
    let rows = maker.check_within(&[third, first], 3.0);
    assert_products_on_kernels(&rows);
}

#[test]
fn a_bound_on_memory_holds_for_each_stage() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 6], 1));
    let mask = maker.input("mask", bools(&[true; 4]));
    let y = kept_rows(&mut maker, x, mask);
    let wide = maker.constant(floats(&[5, 4000], 2));
    let y = one(&mut maker, "MatMul", &[y, wide]);
    let y = one(&mut maker, "Relu", &[y]);
    let narrow = maker.constant(floats(&[4000, 1], 3));
    let y = one(&mut maker, "MatMul", &[y, narrow]);
    let y = one(&mut maker, "Neg", &[y]);
    let inputs = [("x", floats(&[4, 6], 1)), ("mask", bools(&[true; 4]))];
    maker.graph.outputs = vec![y.unwrap()];
    let options = galatea_runtime::SessionOptions {
        memory_limit_bytes: Some(1000),
        ..galatea_runtime::SessionOptions::default()
    };
    let provider = galatea_providers::by_name("cpu").unwrap();
    let session = Session::new(maker.graph.clone(), &[provider], &options).unwrap();
    let error = session.run_tensors(Run::named(&inputs)).unwrap_err().to_string();
    assert!(error.contains("1000"), "{error}");
    assert_kernel(&maker.check(&[y], 4000).1, "matmul-f32-packed");
}

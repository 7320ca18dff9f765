//! Computations of shapes disappear.

use super::*;

fn batch_and_sequence() -> [Dim; 3] {
    [Dim::symbol("batch"), Dim::symbol("sequence"), Dim::Known(12)]
}

/// `x` split into heads the way exporters write it: each length read from the shape of `x`.
fn heads(b: &mut Builder, x: ValueId) -> ValueId {
    let shape = b.op("Shape", &[x], &[]);
    let mut parts = Vec::new();
    for axis in [0_i64, 1] {
        let axis = b.constant(Tensor::scalar(axis));
        let length = b.op("Gather", &[shape, axis], &[]);
        let zero = b.constant(Tensor::vector(vec![0_i64]));
        parts.push(b.op("Unsqueeze", &[length, zero], &[]));
    }
    parts.push(b.constant(Tensor::vector(vec![-1_i64, 4])));
    let target = b.op("Concat", &parts, &[("axis", AttributeValue::Int(0))]);
    b.op("Reshape", &[x, target], &[])
}

#[test]
fn a_target_read_from_the_input_becomes_a_constant() {
    let mut b = Builder::new();
    let x = b.input("x", &batch_and_sequence());
    let split = heads(&mut b, x);
    let y = b.op("Transpose", &[split], &[("perm", ints(&[0, 2, 1, 3]))]);
    check(b.finish(y), &[noise(&[2, 5, 12], 1)], &["Reshape", "Transpose"]);
}

#[test]
fn an_expansion_that_asks_whether_lengths_are_minus_one_knows_the_answer() {
    let mut b = Builder::new();
    let x = b.input("x", &batch_and_sequence());
    let token = b.constant(noise(&[1, 1, 12], 2));
    let shape = b.op("Shape", &[x], &[]);
    let zero = b.constant(Tensor::scalar(0_i64));
    let batch = b.op("Gather", &[shape, zero], &[]);
    let first = b.constant(Tensor::vector(vec![0_i64]));
    let batch = b.op("Unsqueeze", &[batch, first], &[]);
    let rest = b.constant(Tensor::vector(vec![-1_i64, -1]));
    let wanted = b.op("Concat", &[batch, rest], &[("axis", AttributeValue::Int(0))]);
    let ones = b.constant(Tensor::vector(vec![1_i64; 3]));
    let minus = b.constant(Tensor::vector(vec![-1_i64; 3]));
    let open = b.op("Equal", &[wanted, minus], &[]);
    let target = b.op("Where", &[open, ones, wanted], &[]);
    let token = b.op("Expand", &[token, target], &[]);
    let joined = b.op("Concat", &[token, x], &[("axis", AttributeValue::Int(1))]);
    let y = heads(&mut b, joined);
    let graph = b.finish(y);
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::O3).unwrap();
    let operators = op_types(&rewritten);
    assert!(!operators.contains(&"Equal"), "{operators:?}");
    let shapes = operators.iter().filter(|&&name| name == "Shape").count();
    assert_eq!((shapes, *operators.last().unwrap()), (1, "Reshape"), "{operators:?}");
    check_equal(&graph, &rewritten, &[noise(&[2, 5, 12], 3)]);
}

#[test]
fn flattened_rows_get_their_axes_back_without_reshapes() {
    let mut b = Builder::new();
    let x = b.input("x", &batch_and_sequence());
    let (weights, bias) = (b.constant(noise(&[12, 8], 4)), b.constant(noise(&[8], 5)));
    let flat = b.constant(Tensor::vector(vec![-1_i64, 12]));
    let rows = b.op("Reshape", &[x, flat], &[]);
    let product = b.op("Gemm", &[rows, weights, bias], &[]);
    let shape = b.op("Shape", &[x], &[]);
    let ends = [0_i64, 2].map(|at| b.constant(Tensor::vector(vec![at])));
    let outer = b.op("Slice", &[shape, ends[0], ends[1]], &[]);
    let columns = b.constant(Tensor::vector(vec![8_i64]));
    let target = b.op("Concat", &[outer, columns], &[("axis", AttributeValue::Int(0))]);
    let y = b.op("Reshape", &[product, target], &[]);
    check(b.finish(y), &[noise(&[2, 3, 12], 6)], &["FusedMatMul"]);
}

#[test]
fn equal_nodes_and_equal_constants_are_one() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[3]));
    let (a, same) = (b.constant(noise(&[3], 7)), b.constant(noise(&[3], 7)));
    let (left, right) = (b.op("Sub", &[x, a], &[]), b.op("Sub", &[x, same], &[]));
    let (left, right) = (b.op("Exp", &[left], &[]), b.op("Exp", &[right], &[]));
    let y = b.op("Mul", &[left, right], &[]);
    check(b.finish(y), &[noise(&[3], 8)], &["Sub", "Exp", "Mul"]);
}

#[test]
fn views_in_a_row_are_one_and_views_without_effect_none() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[2, 3, 4]));
    let once = b.op("Transpose", &[x], &[("perm", ints(&[1, 2, 0]))]);
    let twice = b.op("Transpose", &[once], &[("perm", ints(&[2, 0, 1]))]);
    let flat = b.constant(Tensor::vector(vec![6_i64, 4]));
    let other = b.constant(Tensor::vector(vec![3_i64, 8]));
    let flat = b.op("Reshape", &[twice, flat], &[]);
    let y = b.op("Reshape", &[flat, other], &[]);
    check(b.finish(y), &[noise(&[2, 3, 4], 9)], &["Reshape"]);
}

#[test]
fn a_float_plus_zero_stays_and_a_product_with_one_goes() {
    let mut b = Builder::new();
    let x = b.input("x", &known(&[2]));
    let (zero, one) = (b.number(0.0), b.number(1.0));
    let sum = b.op("Add", &[x, zero], &[]);
    let product = b.op("Mul", &[sum, one], &[]);
    let y = b.op("Neg", &[product], &[]);
    check(b.finish(y), &[Tensor::vector(vec![-0.0_f32, 1.0])], &["Add", "Neg"]);
}

#[test]
fn lengths_from_different_tensors_are_asked_for_once() {
    let mut b = Builder::new();
    let rows = Dim::symbol("rows");
    let x = b.input("x", &[rows.clone(), Dim::Known(3)]);
    let z = b.input("z", &[Dim::Known(3), rows]);
    let mut ranges = [(x, 0), (z, 1)].map(|(of, axis)| {
        let shape = b.op("Shape", &[of], &[]);
        let axis = b.constant(Tensor::scalar(axis as i64));
        let length = b.op("Gather", &[shape, axis], &[]);
        let [zero, one] = [0_i64, 1].map(|number| b.constant(Tensor::scalar(number)));
        let range = b.op("Range", &[zero, length, one], &[]);
        b.op("Cast", &[range], &[("to", AttributeValue::Int(1))])
    });
    ranges[0] = b.op("Neg", &[ranges[0]], &[]);
    let sum = b.op("Add", &ranges, &[]);
    let y = b.op("Add", &[sum, z], &[]);
    let inputs = [noise(&[4, 3], 1), noise(&[3, 4], 2)];
    check(b.finish(y), &inputs, &["Shape", "Gather", "Range", "Cast", "Neg", "Add", "Add"]);
}

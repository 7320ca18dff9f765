//! Random small graphs on `cpu` beside `reference`: places of values, views, steps in place.

use crate::support::{Maker, floats, ints};
use galatea_graph::{AttributeValue, ValueId};
use galatea_runtime::Run;
use galatea_tensor::{Tensor, Tolerance, compare};
use proptest::prelude::*;

/// All values have 12 elements, under one of these shapes.
const SHAPES: &[&[i64]] = &[&[2, 6], &[3, 4], &[12], &[6, 2], &[1, 12]];

#[derive(Clone, Debug)]
enum Made {
    /// Kernels that may work in place.
    Unary(&'static str, prop::sample::Index),
    /// A binary kernel; the second operand is brought to the first one's shape.
    Binary(&'static str, prop::sample::Index, prop::sample::Index),
    /// Both operands are one value.
    Square(prop::sample::Index),
    View(prop::sample::Index, usize),
    /// Not on any kernel.
    Reference(prop::sample::Index),
    /// Two outputs, put together in the other order.
    Halves(prop::sample::Index),
}

fn made() -> impl Strategy<Value = Made> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (prop::sample::select(vec!["Relu", "Neg", "Abs"]), index())
            .prop_map(|(op, x)| Made::Unary(op, x)),
        (prop::sample::select(vec!["Add", "Sub", "Max"]), index(), index())
            .prop_map(|(op, a, b)| Made::Binary(op, a, b)),
        index().prop_map(Made::Square),
        (index(), 0..SHAPES.len()).prop_map(|(x, shape)| Made::View(x, shape)),
        index().prop_map(Made::Reference),
        index().prop_map(Made::Halves),
    ]
}

/// A value and which of [`SHAPES`] it has.
type Shaped = (Option<ValueId>, usize);

fn reshaped(maker: &mut Maker, value: Shaped, shape: usize) -> Option<ValueId> {
    let target = maker.constant(ints(&[SHAPES[shape].len()], SHAPES[shape]));
    maker.node("Reshape", &[], &[value.0, target], 1)[0]
}

fn add(maker: &mut Maker, values: &mut Vec<Shaped>, made: &Made) {
    let pick = |index: &prop::sample::Index| values[index.index(values.len())];
    let one =
        |maker: &mut Maker, op: &str, inputs: &[Option<ValueId>]| maker.node(op, &[], inputs, 1)[0];
    let next = match made {
        Made::Unary(op, x) => (one(maker, op, &[pick(x).0]), pick(x).1),
        Made::Reference(x) => (one(maker, "Asinh", &[pick(x).0]), pick(x).1),
        Made::Square(x) => (one(maker, "Mul", &[pick(x).0, pick(x).0]), pick(x).1),
        Made::View(x, shape) => (reshaped(maker, pick(x), *shape), *shape),
        Made::Binary(op, a, b) => {
            let b = reshaped(maker, pick(b), pick(a).1);
            (one(maker, op, &[pick(a).0, b]), pick(a).1)
        }
        Made::Halves(x) => {
            let flat = reshaped(maker, pick(x), 2);
            let lengths = maker.constant(ints(&[2], &[5, 7]));
            let halves = maker.node("Split", &[], &[flat, lengths], 2);
            let axis = [("axis", AttributeValue::Int(0))];
            (maker.node("Concat", &axis, &[halves[1], halves[0]], 1)[0], 2)
        }
    };
    values.push(next);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_graphs_give_what_the_reference_gives(
        all in prop::collection::vec(made(), 1..25),
        outputs in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let mut maker = Maker::new();
        let x = maker.input("x", floats(&[2, 6], 1));
        let y = maker.input("y", floats(&[12], 2));
        let constant = maker.constant(floats(&[3, 4], 3));
        let mut values = vec![(x, 0), (y, 2), (constant, 1)];
        for made in &all {
            add(&mut maker, &mut values, made);
        }
        let outputs: Vec<Option<ValueId>> =
            outputs.iter().map(|index| values[index.index(values.len())].0).collect();
        maker.check(&outputs, 64);
    }
}

#[test]
fn shapes_that_depend_on_data_run_by_reference_and_beyond() {
    let mut maker = Maker::new();
    let x =
        maker.input("x", Tensor::from_slice(&[2, 3], &[0.0_f32, 1.0, 2.0, 0.0, 3.0, 4.0]).unwrap());
    let doubled = maker.node("Add", &[], &[x, x], 1);
    let places = maker.node("NonZero", &[], &doubled, 1);
    let turned = maker.node("Transpose", &[], &places, 1);
    let picked = maker.node("GatherND", &[], &[doubled[0], turned[0]], 1);
    let result = maker.node("Neg", &[], &picked, 1);
    let (found, _) = maker.check(&[result[0], doubled[0]], 1);
    let expected = Tensor::vector(vec![-2.0_f32, -4.0, -6.0, -8.0]);
    compare(&found[0], &expected, Tolerance::Exact).unwrap();
}

#[test]
fn a_result_lies_over_an_input_that_nobody_else_knows() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[2, 3], 1));
    let y = maker.input("y", floats(&[2, 3], 2));
    let sum = maker.node("Add", &[], &[x, y], 1);
    let gated = maker.node("Relu", &[], &[y], 1);
    maker.graph.outputs = vec![sum[0].unwrap(), gated[0].unwrap()];
    let session = maker.session("cpu");
    let at = |tensor: &Tensor| tensor.as_bytes().unwrap().as_ptr();
    let (x, y) = (floats(&[2, 3], 1), floats(&[2, 3], 2));
    let expected = session.run_tensors(Run::named(&[("x", x.clone()), ("y", y.clone())])).unwrap();
    let (x_at, y_at) = (at(&x), at(&y));
    // The caller keeps the first, and the second is read once more after the sum.
    let found = session.run_tensors(Run::owned(vec![x.clone(), y])).unwrap();
    assert!(at(&found[0]) != x_at && at(&found[0]) != y_at && at(&found[1]) == y_at);
    for (found, expected) in found.iter().zip(&expected) {
        compare(found, expected, Tolerance::Exact).unwrap();
    }
    let found = session.run_tensors(Run::owned(vec![x, floats(&[2, 3], 2)])).unwrap();
    assert_eq!(at(&found[0]), x_at);
    compare(&found[0], &expected[0], Tolerance::Exact).unwrap();
    let error = session.run_tensors(Run::owned(vec![floats(&[2, 3], 1)])).unwrap_err();
    assert!(error.to_string().contains("1 inputs, the model takes 2"), "{error}");
    let error =
        session.run_tensors(Run::owned(vec![floats(&[2, 3], 1), ints(&[2], &[1, 2])])).unwrap_err();
    assert!(error.to_string().contains("'y'"), "{error}");
}

#[test]
fn an_output_that_is_given_back_is_written_again() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[4, 3], 1));
    let product = maker.node("Mul", &[], &[x, x], 1);
    let sum = maker.node("Add", &[], &[product[0], x], 1);
    maker.graph.outputs = vec![product[0].unwrap(), sum[0].unwrap()];
    let session = maker.session("cpu");
    let at = |tensor: &Tensor| tensor.as_bytes().unwrap().as_ptr();
    let run = |rows: usize, seed: u32| {
        session.run_tensors(Run::named(&[("x", floats(&[rows, 3], seed))])).unwrap()
    };
    let [first, kept]: [Tensor; 2] = run(4, 1).try_into().unwrap();
    let place = at(&first);
    session.return_buffer(0, first);
    // Fewer rows have room, more than there ever were have not; what others read stays theirs.
    session.return_buffer(1, kept.clone());
    let mut last = kept.clone();
    for (rows, same) in [(2, true), (4, true), (1, true), (5, false)] {
        let seed = u32::try_from(rows).unwrap();
        let found = run(rows, seed);
        let expected = maker
            .session("reference")
            .run_tensors(Run::named(&[("x", floats(&[rows, 3], seed))]))
            .unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            compare(found, expected, Tolerance::Exact).unwrap();
        }
        assert_eq!(at(&found[0]) == place, same, "{rows} rows");
        assert!(at(&found[1]) != at(&kept));
        last = found[0].clone();
        drop(found);
        session.return_buffer(0, std::mem::replace(&mut last, kept.clone()));
    }
    // Nothing happens for an output that there is not.
    session.return_buffer(2, last);
}

#[test]
fn a_shape_beyond_memory_is_an_error() {
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[1], 1));
    let shape = maker.constant(ints(&[3], &[1 << 40, 1 << 40, 1]));
    let y = maker.node("Expand", &[], &[x, shape], 1);
    let z = maker.node("ReduceSum", &[], &y, 1);
    maker.graph.outputs = z.iter().flatten().copied().collect();
    let error =
        maker.session("cpu").run_tensors(Run::named(&[("x", floats(&[1], 1))])).unwrap_err();
    assert!(error.to_string().contains("the limit of a value"), "{error}");
}

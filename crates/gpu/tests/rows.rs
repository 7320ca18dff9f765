//! Softmax, normalisation and reductions of rows of every kind, in both precisions.

use crate::support::node::{Node, floats, wide};
use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::Tensor;

fn with<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

/// Rows that are short, long, whole quads and not, side by side and one behind the other.
const ROWS: &[(&[usize], i64)] = &[
    (&[3, 1], 1),
    (&[5, 7], 1),
    (&[4, 64], 1),
    (&[2, 768], 1),
    (&[3, 1023], 1),
    (&[2, 5000], 1),
    (&[1, 20_000], 1),
    (&[2, 70, 5], 1),
    (&[33, 3], 0),
    (&[9000, 6], 0),
    (&[0, 4], 1),
    (&[2100, 12], 1),
];

#[test]
fn softmax_runs_along_any_axis() {
    for (shape, axis) in ROWS {
        for op in ["Softmax", "LogSoftmax"] {
            let node = Node::new("", op).with(with([("axis", int(*axis))]));
            node.input(floats(shape, 6.0)).near(2e-6, 1e-2);
        }
    }
}

#[test]
fn reductions_agree_along_any_axes() {
    let kinds = ["Sum", "Mean", "Max", "Min", "L1", "L2", "LogSumExp", "SumSquare"];
    for (shape, axis) in ROWS.iter().filter(|(shape, _)| !shape.contains(&0)) {
        for kind in kinds {
            let op: &'static str = match kind {
                "Sum" => "ReduceSum",
                "Mean" => "ReduceMean",
                "Max" => "ReduceMax",
                "Min" => "ReduceMin",
                "L1" => "ReduceL1",
                "L2" => "ReduceL2",
                "LogSumExp" => "ReduceLogSumExp",
                _ => "ReduceSumSquare",
            };
            let axes = Tensor::vector(vec![*axis]);
            // The sum of 20,000 elements of size 1 is off by some units of 1e-3 in halves of it.
            let terms = f64::from(u32::try_from(shape.iter().product::<usize>()).unwrap());
            Node::new("", op)
                .input(floats(shape, 1.0))
                .constant(axes)
                .near(1e-6 * terms, 1e-3 * terms);
        }
    }
    let axes = |all: &[i64]| Tensor::vector(all.to_vec());
    let shape = &[2, 3, 4, 5];
    for all in [&[0, 2][..], &[1, 3], &[0, 1, 2, 3], &[2]] {
        Node::new("", "ReduceSum").input(floats(shape, 1.0)).constant(axes(all)).near(1e-5, 5e-2);
        Node::new("", "ReduceMax").input(wide(shape)).constant(axes(all)).exact();
        Node::new("", "ReduceSum").input(wide(shape)).constant(axes(all)).exact();
    }
}

#[test]
fn positions_of_extremes_are_the_first_or_the_last() {
    for (shape, axis) in ROWS.iter().filter(|(shape, _)| !shape.contains(&0)) {
        for op in ["ArgMax", "ArgMin"] {
            let node = Node::new("", op).with(with([("axis", int(*axis))]));
            node.input(floats(shape, 1.0)).exact();
        }
        let shape: Vec<usize> = shape.to_vec();
        let flat = Tensor::from_vec(&shape, vec![1.0_f32; shape.iter().product()]).unwrap();
        for last in [0, 1] {
            let attributes = with([("axis", int(*axis)), ("select_last_index", int(last))]);
            Node::new("", "ArgMax").with(attributes).input(flat.clone()).exact();
        }
    }
}

#[test]
fn rows_are_normalised() {
    for shape in
        [&[5, 7][..], &[4, 64], &[2, 768], &[1, 17_000], &[3, 1023], &[2100, 12], &[2, 3, 8]]
    {
        let len = *shape.last().unwrap();
        let x = || floats(shape, 3.0);
        let row = |size| floats(&[len], size);
        let node = Node::new("", "LayerNormalization").input(x()).constant(row(1.0));
        node.constant(row(0.5)).outputs(3).near(2e-5, 2e-2);
        let node = Node::new("", "RMSNormalization").opset(23).input(x()).constant(row(1.0));
        node.near(2e-5, 2e-2);
        let node = Node::new("com.microsoft", "SkipLayerNormalization").input(x());
        let node = node.input(floats(shape, 1.0)).constant(row(1.0)).constant(row(0.5));
        node.constant(row(0.25)).outputs(4).near(2e-5, 2e-2);
        let node = Node::new("com.microsoft", "SkipSimplifiedLayerNormalization").input(x());
        node.input(floats(shape, 1.0)).constant(row(1.0)).near(2e-5, 2e-2);
    }
    let x = || floats(&[2, 6, 5, 3], 2.0);
    let node = Node::new("", "InstanceNormalization").input(x()).constant(floats(&[6], 1.0));
    node.constant(floats(&[6], 1.0)).near(2e-5, 2e-2);
    let groups = with([("num_groups", int(3))]);
    let node = Node::new("", "GroupNormalization").with(groups).input(x());
    node.constant(floats(&[6], 1.0)).constant(floats(&[6], 1.0)).near(2e-5, 2e-2);
}

#[test]
fn sums_run_along_an_axis() {
    for (shape, axis) in [(&[5, 7][..], 1_i64), (&[3, 9, 4], 1), (&[1, 1000], 1), (&[0, 3], 1)] {
        for (exclusive, reverse) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let attributes = || with([("exclusive", int(exclusive)), ("reverse", int(reverse))]);
            let axis = || Tensor::scalar(axis);
            let node = Node::new("", "CumSum").with(attributes());
            node.input(floats(shape, 1.0)).constant(axis()).near(1e-4, 5e-1);
            let node = Node::new("", "CumSum").with(attributes());
            node.input(wide(shape)).constant(axis()).exact();
        }
    }
}

#[test]
fn the_largest_of_long_and_short_rows_are_found() {
    for (shape, axis, k) in
        [(&[3, 10][..], 1, 4_i64), (&[2, 9000], 1, 50), (&[5, 3, 2], 0, 5), (&[1, 40_000], 1, 1000)]
    {
        for largest in [0, 1] {
            let attributes = with([("axis", int(axis)), ("largest", int(largest))]);
            let node = Node::new("", "TopK").with(attributes).input(floats(shape, 9.0));
            node.constant(Tensor::vector(vec![k])).outputs(2).exact();
        }
    }
    let equal = Tensor::from_vec(&[1, 7], vec![2_i32, 5, 5, 2, 5, 1, 2]).unwrap();
    let node = Node::new("", "TopK").input(equal).constant(Tensor::vector(vec![6_i64]));
    node.outputs(2).exact();
}

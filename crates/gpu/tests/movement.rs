//! Elements at other places, compared with the reference for elements of every size, in both precisions.

use crate::support::node::{Node, bytes, floats, halves, wide};
use galatea_graph::{AttributeValue, Attributes};
use galatea_tensor::Tensor;

fn with<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn ints(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

/// The node with data of every size of elements.
fn every(make: impl Fn(Tensor) -> Node, shape: &[usize]) {
    make(floats(shape, 2.0)).near(0.0, 2e-3);
    make(halves(shape)).exact();
    make(bytes(shape)).exact();
    make(wide(shape)).exact();
}

#[test]
fn axes_are_transposed_in_any_order() {
    let cases: &[(&[usize], &[i64])] = &[
        (&[5, 7], &[1, 0]),
        (&[40, 33], &[1, 0]),
        (&[2, 3, 8], &[1, 0, 2]),
        (&[2, 9, 3, 10], &[0, 2, 3, 1]),
        (&[2, 9, 3, 10], &[3, 1, 0, 2]),
        (&[1, 64, 12, 8], &[0, 2, 1, 3]),
        (&[0, 3], &[1, 0]),
        (&[1, 1, 1], &[2, 1, 0]),
    ];
    for (shape, order) in cases {
        let perm = with([("perm", ints(order))]);
        every(|data| Node::new("", "Transpose").with(perm.clone()).input(data), shape);
    }
}

#[test]
fn views_have_the_elements_of_their_input() {
    let lengths = |all: &[i64]| Tensor::vector(all.to_vec());
    let of = |op: &'static str| move |data: Tensor| Node::new("", op).input(data);
    every(of("Identity"), &[3, 5]);
    every(of("Flatten"), &[3, 5, 7]);
    every(|data| of("Squeeze")(data).constant(lengths(&[0, 2])), &[1, 5, 1]);
    every(|data| of("Unsqueeze")(data).constant(lengths(&[0, 2])), &[3, 5]);
    every(|data| of("Reshape")(data).constant(lengths(&[5, -1])), &[3, 5]);
    // Without training nothing is dropped, whatever the ratio.
    let dropout = of("Dropout");
    dropout(floats(&[3, 5], 2.0)).near(0.0, 2e-3);
    dropout(halves(&[3, 5])).constant(Tensor::scalar(0.5_f32)).exact();
}

#[test]
fn slices_go_forwards_and_backwards() {
    let vector = |all: &[i64]| Tensor::vector(all.to_vec());
    let cases: &[(&[usize], i64, i64, i64, i64)] = &[
        (&[4, 9], 1, 8, 1, 1),
        (&[4, 9], -1, -100, 1, -2),
        (&[9, 4], 3, 7, 0, 1),
        (&[9, 4], 5, 5, 0, 1),
        (&[3, 16], 4, 12, 1, 1),
    ];
    for &(shape, start, end, axis, step) in cases {
        let make = |data| {
            let node = Node::new("", "Slice").input(data).constant(vector(&[start]));
            node.constant(vector(&[end])).constant(vector(&[axis])).constant(vector(&[step]))
        };
        every(make, shape);
    }
}

#[test]
fn pieces_are_cut_and_joined() {
    for (shape, axis, lengths) in [
        (&[4, 9][..], 1, &[2_i64, 3, 4][..]),
        (&[9, 4], 0, &[4, 4, 1]),
        (&[2, 24, 5], 1, &[8, 12, 4]),
    ] {
        let make = |data| {
            let node = Node::new("", "Split").with(with([("axis", AttributeValue::Int(axis))]));
            node.input(data).constant(Tensor::vector(lengths.to_vec())).outputs(3)
        };
        every(make, shape);
    }
    let axis = |axis: i64| with([("axis", AttributeValue::Int(axis))]);
    for (at, shapes) in [
        (1, [[3, 5], [3, 1], [3, 7]]),
        (0, [[1, 3], [4, 3], [0, 3]]),
        (1, [[2, 4], [2, 8], [2, 4]]),
    ] {
        let join = |make: &dyn Fn(&[usize]) -> Tensor| {
            let node = Node::new("", "Concat").with(axis(at));
            shapes.iter().fold(node, |node, shape| node.input(make(shape)))
        };
        join(&|shape| floats(shape, 2.0)).near(0.0, 2e-3);
        join(&halves).exact();
        join(&bytes).exact();
        join(&wide).exact();
    }
}

#[test]
fn elements_are_repeated() {
    let vector = |all: &[i64]| Tensor::vector(all.to_vec());
    every(|data| Node::new("", "Expand").input(data).constant(vector(&[2, 3, 5])), &[3, 1]);
    every(|data| Node::new("", "Tile").input(data).constant(vector(&[2, 3])), &[3, 5]);
    every(|data| Node::new("", "Tile").input(data).constant(vector(&[1, 2])), &[3, 4]);
}

#[test]
fn elements_are_picked_by_positions_of_the_run() {
    let picks = |shape: &[usize], most: i64| {
        let count = i64::try_from(shape.iter().product::<usize>()).unwrap();
        let all: Vec<i64> = (0..count).map(|at| (at * 7 + 3) % (2 * most) - most).collect();
        Tensor::from_vec(shape, all).unwrap()
    };
    let axis = |axis: i64| with([("axis", AttributeValue::Int(axis))]);
    for (shape, at, wanted) in
        [(&[9, 8][..], 0, &[2, 3][..]), (&[4, 5, 3], 1, &[4]), (&[7], 0, &[]), (&[6, 2], -1, &[0])]
    {
        let len = shape[usize::try_from(at).unwrap_or(shape.len() - 1)];
        let most = i64::try_from(len).unwrap();
        let make =
            |data| Node::new("", "Gather").with(axis(at)).input(data).input(picks(wanted, most));
        every(make, shape);
    }
    let make = |data| {
        Node::new("", "GatherElements").with(axis(1)).input(data).input(picks(&[3, 4, 2], 5))
    };
    every(make, &[3, 5, 2]);
    let make = |data| Node::new("", "GatherND").input(data).input(picks(&[3, 2], 3));
    every(make, &[3, 4, 8]);
    let batch = with([("batch_dims", AttributeValue::Int(1))]);
    let make = |data| {
        Node::new("", "GatherND").with(batch.clone()).input(data).input(picks(&[3, 2, 1], 4))
    };
    every(make, &[3, 4, 3]);
}

#[test]
fn frames_of_every_mode_are_drawn() {
    for mode in ["constant", "reflect", "edge", "wrap"] {
        let mode = with([("mode", AttributeValue::String(mode.into()))]);
        let pads = || Tensor::vector(vec![1_i64, 2, 0, 3, -1, 1]);
        let node = |data| Node::new("", "Pad").with(mode.clone()).input(data).constant(pads());
        every(node, &[3, 5, 4]);
    }
    let node = Node::new("", "Pad").input(floats(&[3, 5], 2.0));
    let node = node.constant(Tensor::vector(vec![2_i64, -1]));
    let node = node.constant(Tensor::scalar(1.5_f32)).constant(Tensor::vector(vec![1_i64]));
    node.near(0.0, 2e-3);
}

#[test]
fn triangles_and_single_ones_are_set() {
    for (upper, diagonal) in [(1, 0), (0, 0), (1, -1), (0, 2)] {
        let upper = with([("upper", AttributeValue::Int(upper))]);
        let diagonal = Tensor::scalar(i64::from(diagonal));
        let node = |data| {
            Node::new("", "Trilu").with(upper.clone()).input(data).constant(diagonal.clone())
        };
        every(node, &[2, 5, 7]);
    }
    let positions = Tensor::from_vec(&[2, 3], vec![0_i64, -1, 9, 3, 2, -7]).unwrap();
    let node = Node::new("", "OneHot").input(positions).constant(Tensor::scalar(5_i64));
    node.constant(Tensor::vector(vec![0.0_f32, 1.0])).exact();
}

#[test]
fn what_lengths_decide_is_made() {
    Node::new("", "EyeLike").input(floats(&[4, 7], 1.0)).exact();
}

#[test]
fn elements_are_written_to_positions_of_the_run() {
    let text = |text: &str| AttributeValue::String(text.into());
    for reduction in ["none", "add", "mul", "max", "min"] {
        let attributes =
            || with([("axis", AttributeValue::Int(1)), ("reduction", text(reduction))]);
        // Without a reduction no element is written twice.
        let positions = match reduction {
            "none" => vec![1_i64, -1, 0, 3, 4, 2],
            _ => vec![1_i64, 1, -4, 3, 4, 4],
        };
        let positions = Tensor::from_vec(&[2, 3], positions).unwrap();
        let node = Node::new("", "ScatterElements").with(attributes());
        let node = node.input(floats(&[3, 5], 2.0)).input(positions);
        node.input(floats(&[2, 3], 3.0)).near(1e-6, 2e-2);
        let positions = Tensor::from_vec(&[3, 1], vec![2_i64, 0, -1]).unwrap();
        let node = Node::new("", "ScatterND").with(with([("reduction", text(reduction))]));
        let node = node.input(floats(&[4, 7], 2.0)).input(positions);
        node.input(floats(&[3, 7], 3.0)).near(1e-6, 2e-2);
    }
    let positions = Tensor::from_vec(&[2, 2], vec![2_i64, 0, 1, 3]).unwrap();
    let node = Node::new("", "ScatterND").input(wide(&[3, 4])).input(positions);
    node.input(wide(&[2])).exact();
}

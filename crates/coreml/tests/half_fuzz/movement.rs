//! Elements that are moved, joined and cut.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::Tensor;

use super::grower::{FloatValue, Grower};
use super::operators::{axis_of, list, word};

pub(super) fn moved(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    match grower.noise.below(7) {
        0 => {
            let mut order: Vec<i64> = (0..x.rank() as i64).collect();
            let by = grower.noise.below(x.rank());
            order.rotate_left(by);
            grower.node("Transpose", &[("perm", list(&order))], &[x.id])
        }
        1 => {
            let shape = grower.ints(&[-1, x.last() as i64]);
            grower.op("Reshape", &[x.id, shape])
        }
        2 => grower.op("Flatten", &[x.id]),
        3 => {
            let axes = grower.ints(&[0]);
            grower.op("Unsqueeze", &[x.id, axes])
        }
        4 if x.shape[0] == 1 && x.rank() > 2 => {
            let axes = grower.ints(&[0]);
            grower.op("Squeeze", &[x.id, axes])
        }
        5 => grower.op("Trilu", &[x.id]),
        _ => {
            let name = grower.one_of(&["DepthToSpace", "SpaceToDepth"]);
            grower.node(name, &[("blocksize", 2_i64.into())], &[x.id])
        }
    }
}

pub(super) fn cut(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axis = axis_of(grower, x);
    let named = [("axis", AttributeValue::Int(axis as i64))];
    let length = x.shape[axis] as i64;
    match grower.noise.below(2) {
        0 => {
            let half = length / 2;
            let parts = grower.ints(&[half, length - half]);
            grower.nodes("Split", &named, &[x.id, parts], 2)?.get(1).copied()
        }
        _ => {
            let from = grower.ints(&[0]);
            let to = grower.ints(&[length]);
            let axes = grower.ints(&[axis as i64]);
            let step = grower.ints(&[2]);
            grower.op("Slice", &[x.id, from, to, axes, step])
        }
    }
}

pub(super) fn joined(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axis = axis_of(grower, x) as i64;
    let reach = grower.power(-3.0, 5.0);
    let y = grower.weights(&x.shape, reach);
    grower.node("Concat", &[("axis", axis.into())], &[x.id, y])
}

pub(super) fn padded(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let mut pads = vec![0; 2 * x.rank()];
    pads[2 * x.rank() - 1] = 2;
    let pads = grower.ints(&pads);
    let mode = grower.one_of(&["constant", "reflect", "edge"]);
    let value = grower.power(-3.0, 4.0);
    let value = grower.number(value);
    let named = [("mode", word(mode))];
    match mode {
        "constant" => grower.node("Pad", &named, &[x.id, pads, value]),
        _ => grower.node("Pad", &named, &[x.id, pads]),
    }
}

pub(super) fn taken(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axis = axis_of(grower, x);
    let named = [("axis", AttributeValue::Int(axis as i64))];
    let length = x.shape[axis];
    let places: Vec<i64> = (0..3).map(|_| grower.noise.below(length) as i64).collect();
    match grower.noise.below(3) {
        0 => {
            let places = grower.ints(&places);
            grower.node("Gather", &named, &[x.id, places])
        }
        1 => {
            let place = grower.noise.below(x.shape[0]) as i64;
            let places = Tensor::from_vec::<i64>(&[1, 1], vec![place]).unwrap();
            let places = grower.constant(places);
            grower.op("GatherND", &[x.id, places])
        }
        _ => {
            let lengths = grower.ints(&vec![x.shape[0] as i64; *x.shape.get(1)?]);
            let named = [("batch_axis", 1_i64.into()), ("time_axis", 0_i64.into())];
            grower.node("ReverseSequence", &named, &[x.id, lengths])
        }
    }
}

pub(super) fn spread(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let mut all = vec![1_i64; x.rank()];
    all[0] = 2;
    match grower.noise.once_in(2) {
        true => {
            let all = grower.ints(&all);
            grower.op("Tile", &[x.id, all])
        }
        false => {
            let mut shape: Vec<i64> = x.shape.iter().map(|&len| len as i64).collect();
            shape.insert(0, 2);
            let shape = grower.ints(&shape);
            grower.op("Expand", &[x.id, shape])
        }
    }
}

pub(super) fn resized(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 4 {
        return None;
    }
    let scales = grower.constant(Tensor::vector(vec![1.0_f32, 1.0, 2.0, 2.0]));
    let mode = grower.one_of(&["nearest", "linear"]);
    let named = [("mode", word(mode))];
    let made = grower.sparse("Resize", &named, vec![Some(x.id), None, Some(scales)], 1)?;
    made.first().copied()
}

pub(super) fn scattered(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let shape: Vec<usize> = x.shape.iter().map(|_| 1).collect();
    let reach = grower.power(-2.0, 5.0);
    let update = grower.weights(&shape, reach);
    let place = Tensor::from_vec::<i64>(&shape, vec![0]).unwrap();
    let place = grower.constant(place);
    match grower.noise.once_in(2) {
        true => grower.op("ScatterElements", &[x.id, place, update]),
        false => {
            let row = grower.weights(&[&[1], &x.shape[1..]].concat(), reach);
            let place = Tensor::from_vec::<i64>(&[1, 1], vec![0]).unwrap();
            let place = grower.constant(place);
            grower.op("ScatterND", &[x.id, place, row])
        }
    }
}

pub(super) fn ordered(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let count = grower.ints(&[x.last() as i64]);
    let made = grower.nodes("TopK", &[], &[x.id, count], 2)?;
    made.first().copied()
}

//! Norms, shares and losses.

use galatea_graph::{AttributeValue, ValueId};

use super::grower::{FloatValue, Grower};
use super::operators::{axis_of, list, word};

pub(super) fn softmax(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let name = grower.one_of(&["Softmax", "LogSoftmax"]);
    let axis = axis_of(grower, x) as i64;
    grower.node(name, &[("axis", axis.into())], &[x.id])
}

/// Exponentials over their sum, of which nothing is taken before.
pub(super) fn bare_softmax(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let power = grower.op("Exp", &[x.id])?;
    let axes = grower.ints(&[-1]);
    let sum = grower.op("ReduceSum", &[power, axes])?;
    grower.op("Div", &[power, sum])
}

pub(super) fn logarithm_of_sum(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let power = grower.op("Exp", &[x.id])?;
    let axes = grower.ints(&[-1]);
    let sum = grower.op("ReduceSum", &[power, axes])?;
    grower.op("Log", &[sum])
}

pub(super) fn share_of_sum(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let size = grower.op("Abs", &[x.id])?;
    let axes = grower.ints(&[-1]);
    let sum = grower.op("ReduceSum", &[size, axes])?;
    let least = grower.power(-9.0, -3.0);
    let least = grower.number(least);
    let sum = grower.op("Add", &[sum, least])?;
    grower.op("Div", &[size, sum])
}

fn inverse_root(grower: &mut Grower, variance: ValueId) -> Option<ValueId> {
    let least = grower.power(-12.0, -3.0);
    let least = grower.number(least);
    let sum = grower.op("Add", &[variance, least])?;
    let root = grower.op("Sqrt", &[sum])?;
    grower.op("Reciprocal", &[root])
}

pub(super) fn norm_by_hand(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axes = grower.ints(&[-1]);
    let mean = grower.op("ReduceMean", &[x.id, axes])?;
    let centred = grower.op("Sub", &[x.id, mean])?;
    let two = grower.number(2.0);
    let square = match grower.noise.once_in(2) {
        true => grower.op("Mul", &[centred, centred])?,
        false => grower.op("Pow", &[centred, two])?,
    };
    let variance = grower.op("ReduceMean", &[square, axes])?;
    let inverse = inverse_root(grower, variance)?;
    grower.op("Mul", &[centred, inverse])
}

pub(super) fn root_mean_square_by_hand(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axes = grower.ints(&[-1]);
    let square = grower.op("Mul", &[x.id, x.id])?;
    let mean = grower.op("ReduceMean", &[square, axes])?;
    let inverse = inverse_root(grower, mean)?;
    grower.op("Mul", &[x.id, inverse])
}

pub(super) fn lp_by_hand(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axes = grower.ints(&[-1]);
    let norm = match grower.noise.below(3) {
        0 => grower.op("ReduceL2", &[x.id, axes])?,
        1 => grower.op("ReduceL1", &[x.id, axes])?,
        _ => {
            let square = grower.op("Mul", &[x.id, x.id])?;
            let sum = grower.op("ReduceSum", &[square, axes])?;
            grower.op("Sqrt", &[sum])?
        }
    };
    let least = grower.power(-12.0, -3.0);
    let least = grower.number(least);
    let norm = grower.op("Max", &[norm, least])?;
    grower.op("Div", &[x.id, norm])
}

fn epsilon(grower: &mut Grower) -> (&'static str, AttributeValue) {
    ("epsilon", AttributeValue::Float(grower.power(-12.0, -3.0)))
}

pub(super) fn layer_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let scale = grower.weights(&[x.last()], 2.0);
    let bias = grower.weights(&[x.last()], 2.0);
    let named = [epsilon(grower)];
    grower.node("LayerNormalization", &named, &[x.id, scale, bias])
}

pub(super) fn group_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let channels = *x.shape.get(1)?;
    if x.rank() < 3 || !channels.is_multiple_of(2) {
        return None;
    }
    let scale = grower.weights(&[channels], 2.0);
    let bias = grower.weights(&[channels], 2.0);
    let named = [epsilon(grower), ("num_groups", 2_i64.into())];
    grower.node("GroupNormalization", &named, &[x.id, scale, bias])
}

pub(super) fn instance_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() < 3 {
        return None;
    }
    let scale = grower.weights(&[x.shape[1]], 2.0);
    let bias = grower.weights(&[x.shape[1]], 2.0);
    let named = [epsilon(grower)];
    grower.node("InstanceNormalization", &named, &[x.id, scale, bias])
}

pub(super) fn batch_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() < 2 {
        return None;
    }
    let channels = [x.shape[1]];
    let reach = grower.power(-2.0, 4.0);
    let scale = grower.weights(&channels, 2.0);
    let bias = grower.weights(&channels, 2.0);
    let mean = grower.weights(&channels, reach);
    let variance = grower.floats(&channels, reach * reach * 0.5, reach * reach);
    let variance = grower.constant(variance);
    grower.op("BatchNormalization", &[x.id, scale, bias, mean, variance])
}

pub(super) fn root_mean_square(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let scale = grower.weights(&[x.last()], 2.0);
    let named = [epsilon(grower)];
    let name = grower.one_of(&["RMSNormalization", "SimplifiedLayerNormalization"]);
    grower.node(name, &named, &[x.id, scale])
}

pub(super) fn lp_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let p = 1 + grower.noise.below(2) as i64;
    grower.node("LpNormalization", &[("p", p.into())], &[x.id])
}

pub(super) fn skip_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 3 {
        return None;
    }
    let other = grower.weights(&x.shape, 10.0);
    let scale = grower.weights(&[x.last()], 2.0);
    let named = [epsilon(grower)];
    let name = grower.one_of(&["ms:SkipLayerNormalization", "ms:SkipSimplifiedLayerNormalization"]);
    grower.node(name, &named, &[x.id, other, scale])
}

pub(super) fn response_norm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let alpha = AttributeValue::Float(grower.power(-5.0, 0.0));
    grower.node("LRN", &[("size", 3_i64.into()), ("alpha", alpha)], &[x.id])
}

pub(super) fn mean_variance(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let axis = x.rank() as i64 - 1;
    grower.node("MeanVarianceNormalization", &[("axes", list(&[axis]))], &[x.id])
}

pub(super) fn loss(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let &[rows, classes] = x.shape.as_slice() else { return None };
    let labels: Vec<i64> = (0..rows).map(|_| grower.noise.below(classes) as i64).collect();
    let labels = grower.ints(&labels);
    let named = [("reduction", word("none"))];
    grower.node("SoftmaxCrossEntropyLoss", &named, &[x.id, labels])
}

//! Products, convolutions, pools and what is made of them.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::Tensor;

use super::grower::{FloatValue, Grower};
use super::operators::{MASKS, list, word};

pub(super) fn mat_mul(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let columns = [4, 16, 33][grower.noise.below(3)];
    let reach = grower.power(-3.0, 2.0);
    let weights = grower.weights(&[x.last(), columns], reach);
    let y = grower.op("MatMul", &[x.id, weights])?;
    if grower.noise.once_in(2) {
        let bias = grower.weights(&[columns], reach);
        return grower.op("Add", &[y, bias]);
    }
    Some(y)
}

/// A value times itself turned, scaled as scores are.
pub(super) fn gram(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() < 2 {
        return None;
    }
    let rank = x.rank() as i64;
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(x.rank() - 1, x.rank() - 2);
    let turned = grower.node("Transpose", &[("perm", list(&order))], &[x.id])?;
    let y = grower.op("MatMul", &[x.id, turned])?;
    let factor = 1.0 / (x.last() as f32).sqrt();
    let factor = grower.number(factor);
    grower.op("Mul", &[y, factor])
}

pub(super) fn gemm(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 2 {
        return None;
    }
    let reach = grower.power(-3.0, 2.0);
    let weights = grower.weights(&[9, x.last()], reach);
    let bias = grower.weights(&[9], reach);
    let alpha = AttributeValue::Float(grower.power(-4.0, 2.0));
    let beta = AttributeValue::Float(grower.power(-2.0, 2.0));
    let named = [("alpha", alpha), ("beta", beta), ("transB", 1_i64.into())];
    grower.node("Gemm", &named, &[x.id, weights, bias])
}

pub(super) fn einsum(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let reach = grower.power(-2.0, 1.0);
    let weights = grower.weights(&[7, x.last()], reach);
    let equation = ["", "i,ji->j", "ai,ji->aj", "abi,ji->abj", "abci,ji->abcj"].get(x.rank())?;
    grower.node("Einsum", &[("equation", word(equation))], &[x.id, weights])
}

pub(super) fn fused_mat_mul(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let alpha = AttributeValue::Float(grower.power(-4.0, 2.0));
    let weights = grower.weights(&[x.last(), 6], 1.0);
    let name = grower.one_of(&["ms:FusedMatMul", "ms:TransposeMatMul"]);
    grower.node(name, &[("alpha", alpha)], &[x.id, weights])
}

pub(super) fn convolution(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let channels = *x.shape.get(1).filter(|_| (3..=4).contains(&x.rank()))?;
    let reach = grower.power(-3.0, 1.5);
    let depthwise = grower.noise.once_in(3);
    let mut shape = if depthwise { vec![channels, 1] } else { vec![6, channels] };
    let window = 1 + grower.noise.below(3);
    shape.extend(vec![window; x.rank() - 2]);
    let weights = grower.weights(&shape, reach);
    let bias = grower.weights(&[shape[0]], reach);
    let group = if depthwise { channels as i64 } else { 1 };
    let named = [("group", group.into()), ("auto_pad", word("SAME_UPPER"))];
    grower.node("Conv", &named, &[x.id, weights, bias])
}

pub(super) fn turned_convolution(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let channels = *x.shape.get(1).filter(|_| x.rank() == 4)?;
    let reach = grower.power(-3.0, 1.0);
    let weights = grower.weights(&[channels, 3, 2, 2], reach);
    grower.node("ConvTranspose", &[("strides", list(&[2, 2]))], &[x.id, weights])
}

pub(super) fn pool(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 4 {
        return None;
    }
    let name = grower.one_of(&["MaxPool", "AveragePool", "LpPool"]);
    grower.jumps |= name == "AveragePool";
    grower.node(name, &[("kernel_shape", list(&[2, 2]))], &[x.id])
}

pub(super) fn global_pool(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 4 {
        return None;
    }
    grower.jumps = true;
    let name = grower.one_of(&["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"]);
    grower.op(name, &[x.id])
}

pub(super) fn recurrent(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 3 {
        return None;
    }
    let name = grower.one_of(&["LSTM", "GRU", "RNN"]);
    let gates = match name {
        "LSTM" => 4,
        "GRU" => 3,
        _ => 1,
    };
    let hidden = 4;
    let reach = grower.power(-2.0, 1.0);
    let input = grower.weights(&[1, gates * hidden, x.last()], reach);
    let state = grower.weights(&[1, gates * hidden, hidden], reach);
    let named = [("hidden_size", (hidden as i64).into())];
    let made = grower.node(name, &named, &[x.id, input, state])?;
    let axes = grower.ints(&[1]);
    grower.op("Squeeze", &[made, axes])
}

/// Attention by hand, with keys hidden.
pub(super) fn attention(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 3 {
        return None;
    }
    let width = x.last();
    let mut turns = Vec::new();
    for _ in 0..3 {
        let reach = grower.power(-2.0, 0.5);
        let weights = grower.weights(&[width, width], reach);
        turns.push(grower.op("MatMul", &[x.id, weights])?);
    }
    let keys = grower.node("Transpose", &[("perm", list(&[0, 2, 1]))], &[turns[1]])?;
    let scores = grower.op("MatMul", &[turns[0], keys])?;
    let divisor = grower.number((width as f32).sqrt());
    let scores = grower.op("Div", &[scores, divisor])?;
    let count = x.shape[1];
    let hidden = MASKS[grower.noise.below(MASKS.len())];
    let all = (0..count).map(|at| if at > count / 2 { hidden } else { 0.0 }).collect();
    let mask = grower.constant(Tensor::from_vec::<f32>(&[count], all).unwrap());
    let scores = grower.op("Add", &[scores, mask])?;
    let scores = grower.op("Softmax", &[scores])?;
    grower.op("MatMul", &[scores, turns[2]])
}

pub(super) fn attention_node(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    if x.rank() != 3 || !x.last().is_multiple_of(2) {
        return None;
    }
    let heads = ("num_heads", AttributeValue::Int(2));
    match grower.noise.once_in(2) {
        true => grower.node("ms:MultiHeadAttention", &[heads], &[x.id, x.id, x.id]),
        false => {
            let named =
                [("q_num_heads", AttributeValue::Int(2)), ("kv_num_heads", AttributeValue::Int(2))];
            grower.node("Attention", &named, &[x.id, x.id, x.id])
        }
    }
}

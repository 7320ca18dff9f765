//! The operators of random graphs, by family.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, Tensor, f16};

use super::codes::{
    codes_and_back, dynamic, dynamic_contrib, dynamic_convolution, quantized_linear,
};
use super::grower::{FloatValue, Grower};
use super::movement::{cut, joined, moved, ordered, padded, resized, scattered, spread, taken};
use super::norms::{
    bare_softmax, batch_norm, group_norm, instance_norm, layer_norm, logarithm_of_sum, loss,
    lp_by_hand, lp_norm, mean_variance, norm_by_hand, response_norm, root_mean_square,
    root_mean_square_by_hand, share_of_sum, skip_norm, softmax,
};
use super::products::{
    attention, attention_node, convolution, einsum, fused_mat_mul, gemm, global_pool, gram,
    mat_mul, pool, recurrent, turned_convolution,
};

/// Adds operators to a value; nothing where they do not take it.
pub(super) type GrowStep = fn(&mut Grower, &FloatValue) -> Option<ValueId>;

/// Each family is as likely as the others.
pub(super) const FAMILIES: &[&[GrowStep]] = &[
    &[unary, unary, guarded],
    &[activation, activation, contrib_activation],
    &[binary, binary, variadic, power],
    &[scaled, divided, shifted, clipped],
    &[masked, masked_sum, chosen],
    &[reduced, reduced, highest, running],
    &[softmax, bare_softmax, logarithm_of_sum, share_of_sum],
    &[norm_by_hand, root_mean_square_by_hand, lp_by_hand],
    &[layer_norm, group_norm, instance_norm, batch_norm, root_mean_square, lp_norm, skip_norm],
    &[response_norm, mean_variance, loss],
    &[mat_mul, mat_mul, gram, gemm, einsum, fused_mat_mul],
    &[convolution, convolution, turned_convolution, pool, global_pool],
    &[moved, moved, cut, joined, padded, taken, spread],
    &[resized, scattered, ordered],
    &[dynamic, dynamic_convolution, dynamic_contrib, codes_and_back, quantized_linear],
    &[recurrent, attention, attention_node],
    &[through_type, known_lengths],
];

pub(super) fn list(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

pub(super) fn word(text: &str) -> AttributeValue {
    AttributeValue::String(text.into())
}

fn unary(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    const NAMES: &[&str] = &[
        "Abs",
        "Neg",
        "Exp",
        "Erf",
        "Sin",
        "Cos",
        "Atan",
        "Sinh",
        "Cosh",
        "Tan",
        "Asinh",
        "Identity",
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Sqrt",
        "Log",
        "Reciprocal",
        "Asin",
        "Dropout",
    ];
    let name = grower.one_of(NAMES);
    grower.jumps |= ["Floor", "Ceil", "Round", "Sign", "Tan", "Sin", "Cos"].contains(&name);
    // Nearly no numbers at the limits of where there are any.
    grower.jumps |= ["Sqrt", "Log", "Reciprocal", "Asin"].contains(&name);
    grower.op(name, &[x.id])
}

/// Functions of numbers in their domains.
fn guarded(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let name = grower.one_of(&["Log", "Sqrt", "Reciprocal", "Asin", "Acos", "Atanh", "Acosh"]);
    let inside = match name {
        "Asin" | "Acos" | "Atanh" => {
            let bounded = grower.op("Tanh", &[x.id])?;
            let share = grower.number(0.9);
            grower.op("Mul", &[bounded, share])?
        }
        _ => {
            let size = grower.op("Abs", &[x.id])?;
            let least = if name == "Acosh" { 1.0 } else { grower.power(-9.0, 0.0) };
            let least = grower.number(least);
            grower.op("Add", &[size, least])?
        }
    };
    grower.op(name, &[inside])
}

fn activation(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    const NAMES: &[&str] = &[
        "Relu",
        "LeakyRelu",
        "Elu",
        "Celu",
        "Selu",
        "Sigmoid",
        "HardSigmoid",
        "HardSwish",
        "Tanh",
        "Softplus",
        "Softsign",
        "ThresholdedRelu",
        "Gelu",
        "Mish",
        "Swish",
        "PRelu",
    ];
    let name = grower.one_of(NAMES);
    let alpha = ("alpha", AttributeValue::Float(grower.power(-2.0, 1.0)));
    match name {
        "PRelu" => {
            let slope = grower.weights(&[x.last()], 2.0);
            grower.op("PRelu", &[x.id, slope])
        }
        "LeakyRelu" | "Elu" | "Celu" | "HardSigmoid" => grower.node(name, &[alpha], &[x.id]),
        "ThresholdedRelu" => {
            grower.jumps = true;
            grower.node(name, &[alpha], &[x.id])
        }
        "Gelu" => {
            let mode = grower.one_of(&["none", "tanh"]);
            grower.node(name, &[("approximate", word(mode))], &[x.id])
        }
        _ => grower.op(name, &[x.id]),
    }
}

fn contrib_activation(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    match grower.noise.below(4) {
        0 => {
            let bias = grower.weights(&[x.last()], 3.0);
            grower.op("ms:BiasGelu", &[x.id, bias])
        }
        1 => grower.op("ms:FastGelu", &[x.id]),
        2 => grower.op("ms:QuickGelu", &[x.id]),
        _ => grower.op("ms:Gelu", &[x.id]),
    }
}

fn binary(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let name = grower.one_of(&["Add", "Sub", "Mul", "Div", "Max", "Min"]);
    // What is divided by may be near zero.
    grower.jumps |= name == "Div";
    let y = grower.beside(x);
    grower.op(name, &[x.id, y])
}

fn variadic(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let name = grower.one_of(&["Sum", "Mean", "Max", "Min"]);
    let y = grower.beside(x);
    let z = grower.beside(x);
    grower.op(name, &[x.id, y, z])
}

fn power(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let exponent = [2.0, 3.0, 0.5, -1.0, -0.5, 1.5, 4.0, -2.0][grower.noise.below(8)];
    let size = grower.op("Abs", &[x.id])?;
    let least = grower.power(-9.0, 0.0);
    let least = grower.number(least);
    let base = grower.op("Add", &[size, least])?;
    let exponent = grower.number(exponent);
    grower.op("Pow", &[base, exponent])
}

fn scaled(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let factor = grower.power(-9.0, 7.0);
    let factor = grower.number(factor);
    grower.op("Mul", &[x.id, factor])
}

fn divided(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let divisor = grower.power(-9.0, 7.0);
    let divisor = grower.number(divisor);
    grower.op("Div", &[x.id, divisor])
}

fn shifted(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let add = grower.power(-6.0, 5.5);
    let add = grower.number(add);
    let name = grower.one_of(&["Add", "Sub"]);
    grower.op(name, &[x.id, add])
}

fn clipped(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let high = grower.power(-2.0, 6.0);
    let low = grower.number(-high);
    let high = grower.number(high);
    grower.op("Clip", &[x.id, low, high])
}

pub(super) const MASKS: &[f32] = &[-1e4, -65_504.0, -1e9, f32::MIN, -1e5, f32::NEG_INFINITY];

fn condition(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let limit = grower.power(-3.0, 3.0);
    let limit = grower.number(limit);
    let name = grower.one_of(&["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]);
    let first = grower.op(name, &[x.id, limit])?;
    match grower.noise.below(4) {
        0 => {
            let name = grower.one_of(&["IsNaN", "IsInf"]);
            let other = grower.op(name, &[x.id])?;
            let name = grower.one_of(&["And", "Or", "Xor"]);
            grower.op(name, &[first, other])
        }
        1 => grower.op("Not", &[first]),
        _ => Some(first),
    }
}

/// Elements below a limit hidden from a softmax.
fn masked(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let shown = condition(grower, x)?;
    let mask = MASKS[grower.noise.below(MASKS.len())];
    let mask = grower.number(mask);
    let hidden = grower.op("Where", &[shown, x.id, mask])?;
    grower.op("Softmax", &[hidden])
}

/// A mask that is added, of constants and of truth values times a large number.
fn masked_sum(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let number = MASKS[grower.noise.below(MASKS.len() - 1)];
    let mask = match grower.noise.once_in(2) {
        true => {
            let count = x.last();
            let all = (0..count).map(|at| if at % 3 == 2 { number } else { 0.0 }).collect();
            grower.constant(Tensor::from_vec::<f32>(&[count], all).unwrap())
        }
        false => {
            let shown = condition(grower, x)?;
            let shown = grower.node("Cast", &[("to", 1_i64.into())], &[shown])?;
            let one = grower.number(1.0);
            let hidden = grower.op("Sub", &[one, shown])?;
            let number = grower.number(number);
            grower.op("Mul", &[hidden, number])?
        }
    };
    let sum = grower.op("Add", &[x.id, mask])?;
    let name = grower.one_of(&["Softmax", "Softmax", "LogSoftmax"]);
    let scores = grower.op(name, &[sum])?;
    if name == "LogSoftmax" { grower.op("Exp", &[scores]) } else { Some(scores) }
}

fn chosen(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let shown = condition(grower, x)?;
    let y = grower.beside(x);
    grower.op("Where", &[shown, x.id, y])
}

pub(super) fn axis_of(grower: &mut Grower, x: &FloatValue) -> usize {
    grower.noise.below(x.rank())
}

fn reduced(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    const NAMES: &[&str] = &[
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSum",
        "ReduceLogSumExp",
    ];
    let name = grower.one_of(NAMES);
    let from = if name == "ReduceLogSum" {
        let size = grower.op("Abs", &[x.id])?;
        let one = grower.number(1.0);
        grower.op("Add", &[size, one])?
    } else {
        x.id
    };
    // Sums of what has two signs may be nearly nothing.
    grower.jumps |= ["ReduceSum", "ReduceMean", "ReduceProd"].contains(&name);
    let axis = axis_of(grower, x) as i64;
    let axes = grower.ints(&[axis]);
    let sum = grower.op(name, &[from, axes])?;
    match grower.noise.below(3) {
        0 => grower.op("Sub", &[x.id, sum]),
        _ => Some(sum),
    }
}

/// The elements that an extreme, or the highest ones, are.
fn highest(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let axis = axis_of(grower, x);
    let named = [("axis", AttributeValue::Int(axis as i64))];
    match grower.noise.below(3) {
        0 => {
            let count = 1 + grower.noise.below(x.shape[axis]);
            let count = grower.ints(&[count as i64]);
            grower.nodes("TopK", &named, &[x.id, count], 2)?.first().copied()
        }
        at => {
            let name = if at == 1 { "ArgMax" } else { "ArgMin" };
            let found = grower.node(name, &named, &[x.id])?;
            grower.node("GatherElements", &named, &[x.id, found])
        }
    }
}

fn running(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let axis = axis_of(grower, x) as i64;
    let axis = grower.constant(Tensor::scalar(axis));
    let named = [("exclusive", i64::from(grower.noise.once_in(2)).into())];
    grower.node("CumSum", &named, &[x.id, axis])
}

/// Casts to other types and back, which a program has as well.
fn through_type(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let type_number = [7_i64, 9, 6][grower.noise.below(3)];
    let other = grower.node("Cast", &[("to", type_number.into())], &[x.id])?;
    grower.node("Cast", &[("to", 1_i64.into())], &[other])
}

/// Positions and constants of other types, which become floats.
fn known_lengths(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    match grower.noise.below(3) {
        0 => {
            let factor = grower.power(-6.0, 4.0);
            let tensor = Tensor::vector(vec![f16::from_f32(factor)]);
            let half = grower.constant(tensor);
            let wide = grower.node("Cast", &[("to", 1_i64.into())], &[half])?;
            grower.op("Mul", &[x.id, wide])
        }
        1 => {
            let shape = grower.op("Shape", &[x.id])?;
            let lengths = grower.node("Cast", &[("to", 1_i64.into())], &[shape])?;
            let axes = grower.ints(&[0]);
            let product = grower.op("ReduceProd", &[lengths, axes])?;
            grower.op("Div", &[x.id, product])
        }
        _ => {
            let zeros = Tensor::zeros(DataType::Fp32, &[1]).ok()?;
            let zeros = grower.constant(zeros);
            let sum = grower.op("Add", &[x.id, zeros])?;
            grower.op("Max", &[sum, x.id])
        }
    }
}

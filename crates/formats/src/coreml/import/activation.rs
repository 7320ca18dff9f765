//! Activations.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("relu", |low, op| plain(low, op, "Relu")),
    LoweringRow::new("relu6", relu6),
    LoweringRow::new("leaky_relu", |low, op| with_alpha(low, op, "LeakyRelu", 0.01)),
    LoweringRow::new("prelu", prelu),
    LoweringRow::new("elu", |low, op| with_alpha(low, op, "Elu", 1.0)),
    LoweringRow::new("gelu", gelu),
    LoweringRow::new("sigmoid", |low, op| plain(low, op, "Sigmoid")),
    LoweringRow::new("sigmoid_hard", sigmoid_hard),
    LoweringRow::new("silu", silu),
    LoweringRow::new("softmax", softmax),
    LoweringRow::new("softplus", |low, op| plain(low, op, "Softplus")),
    LoweringRow::new("softplus_parametric", softplus_parametric),
    LoweringRow::new("softsign", |low, op| plain(low, op, "Softsign")),
    LoweringRow::new("scaled_tanh", scaled_tanh),
    LoweringRow::new("clamped_relu", clamped_relu),
    LoweringRow::new("thresholded_relu", thresholded_relu),
    LoweringRow::new("linear_activation", linear_activation),
];

fn plain(low: &mut ProgramLowering, op: &LoweredOperation<'_>, operator: &str) -> Result<()> {
    let x = low.required(op, "x")?;
    let result = low.plain(operator, &[x])?;
    low.give(op, &[result])
}

/// A number as an attribute of a node, which holds FP32.
#[allow(clippy::cast_possible_truncation, reason = "parameters are FP32 or FP16 in programs")]
#[allow(clippy::as_conversions, reason = "no other conversion rounds")]
pub(super) fn single(value: f64) -> f32 {
    value as f32
}

fn with_alpha(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    operator: &str,
    default: f64,
) -> Result<()> {
    let x = low.required(op, "x")?;
    let alpha = single(low.float(op, "alpha")?.unwrap_or(default));
    let result = low.node(operator, &attributes([("alpha", alpha.into())]), &[x])?;
    low.give(op, &[result])
}

fn relu6(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let zero = low.number(0.0, dtype)?;
    let six = low.number(6.0, dtype)?;
    let result = low.plain("Clip", &[x, zero, six])?;
    low.give(op, &[result])
}

/// A parameter with one number for each channel, the second axis of `x`, so that it broadcasts.
fn by_channel(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    x: ValueId,
) -> Result<ValueId> {
    let found = low.required(op, name)?;
    let dtype = low.dtype(x)?;
    let rank = low.rank(x)?;
    let found = low.cast(found, dtype)?;
    if rank < 2 || low.rank(found)? != 1 {
        let text = format!("input '{name}' has a number for each channel, x has {rank} axes");
        return Err(CoreMlError::invalid(text));
    }
    let mut shape = vec![1; rank - 1];
    if let Some(first) = shape.first_mut() {
        *first = -1;
    }
    low.reshape(found, &shape)
}

fn prelu(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let slope = by_channel(low, op, "alpha", x)?;
    let result = low.plain("PRelu", &[x, slope])?;
    low.give(op, &[result])
}

fn gelu(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let modes = ["EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"];
    let result = match low.choice(op, "mode", &modes)? {
        0 => low.plain("Gelu", &[x])?,
        1 => low.node("Gelu", &attributes([("approximate", text("tanh"))]), &[x])?,
        _ => {
            let dtype = low.dtype(x)?;
            let slope = low.number(1.702, dtype)?;
            let scaled = low.plain("Mul", &[x, slope])?;
            let gate = low.plain("Sigmoid", &[scaled])?;
            low.plain("Mul", &[x, gate])?
        }
    };
    low.give(op, &[result])
}

fn sigmoid_hard(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let alpha = single(low.float(op, "alpha")?.unwrap_or(0.2));
    let beta = single(low.float(op, "beta")?.unwrap_or(0.5));
    let named = attributes([("alpha", alpha.into()), ("beta", beta.into())]);
    let result = low.node("HardSigmoid", &named, &[x])?;
    low.give(op, &[result])
}

fn silu(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let gate = low.plain("Sigmoid", &[x])?;
    let result = low.plain("Mul", &[x, gate])?;
    low.give(op, &[result])
}

fn softmax(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let axis = low.int(op, "axis")?.unwrap_or(-1);
    let (x, scalar) = low.with_axis(x)?;
    low.axis(axis, low.rank(x)?)?;
    let result = low.node("Softmax", &attributes([("axis", axis.into())]), &[x])?;
    let result = if scalar { low.reshape(result, &[])? } else { result };
    low.give(op, &[result])
}

/// `alpha · log(1 + exp(beta · x))` with numbers for each channel.
fn softplus_parametric(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let alpha = by_channel(low, op, "alpha", x)?;
    let beta = by_channel(low, op, "beta", x)?;
    let scaled = low.plain("Mul", &[x, beta])?;
    let soft = low.plain("Softplus", &[scaled])?;
    let result = low.plain("Mul", &[soft, alpha])?;
    low.give(op, &[result])
}

/// The numbers `alpha` and `beta` as constants of the type of `x`.
fn alpha_beta(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    dtype: DataType,
) -> Result<[ValueId; 2]> {
    let alpha = low.float(op, "alpha")?.unwrap_or(1.0);
    let beta = low.float(op, "beta")?.unwrap_or(1.0);
    Ok([low.number(alpha, dtype)?, low.number(beta, dtype)?])
}

fn scaled_tanh(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let [alpha, beta] = alpha_beta(low, op, dtype)?;
    let scaled = low.plain("Mul", &[x, beta])?;
    let tanh = low.plain("Tanh", &[scaled])?;
    let result = low.plain("Mul", &[tanh, alpha])?;
    low.give(op, &[result])
}

/// `min(beta, x)` where `x` is not negative, else `min(beta, alpha · x)`.
fn clamped_relu(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = single(low.float(op, "alpha")?.unwrap_or(1.0));
    let beta = low.float(op, "beta")?.unwrap_or(1.0);
    let beta = low.number(beta, dtype)?;
    let sloped = low.node("LeakyRelu", &attributes([("alpha", alpha.into())]), &[x])?;
    let result = low.plain("Min", &[sloped, beta])?;
    low.give(op, &[result])
}

/// `x` where it is not below alpha, else 0.
fn thresholded_relu(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(1.0);
    let alpha = low.number(alpha, dtype)?;
    let zero = low.number(0.0, dtype)?;
    let stays = low.plain("GreaterOrEqual", &[x, alpha])?;
    let result = low.node("Where", &Attributes::new(), &[stays, x, zero])?;
    low.give(op, &[result])
}

fn linear_activation(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let alpha = low.float(op, "alpha")?.unwrap_or(1.0);
    let beta = low.float(op, "beta")?.unwrap_or(0.0);
    let alpha = low.number(alpha, dtype)?;
    let beta = low.number(beta, dtype)?;
    let scaled = low.plain("Mul", &[x, alpha])?;
    let result = low.plain("Add", &[scaled, beta])?;
    low.give(op, &[result])
}

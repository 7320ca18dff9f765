//! Normalisation.

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::activation::single;
use super::convolution::filled;
use super::lowering::{ProgramLowering, Result, attributes, bounded};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("batch_norm", batch_norm),
    LoweringRow::new("instance_norm", instance_norm),
    LoweringRow::new("layer_norm", layer_norm),
    LoweringRow::new("l2_norm", l2_norm),
    LoweringRow::new("local_response_norm", local_response_norm),
];

/// A parameter in the type of `x`, or a constant for each channel.
fn channels(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    x: ValueId,
    default: f64,
) -> Result<ValueId> {
    let dtype = low.dtype(x)?;
    match low.optional(op, name)? {
        Some(id) => low.cast(id, dtype),
        None => filled(low, x, default, dtype),
    }
}

fn batch_norm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let mean = low.required(op, "mean")?;
    let variance = low.required(op, "variance")?;
    let mean = low.cast(mean, dtype)?;
    let variance = low.cast(variance, dtype)?;
    let gamma = channels(low, op, "gamma", x, 1.0)?;
    let beta = channels(low, op, "beta", x, 0.0)?;
    let epsilon = single(low.float(op, "epsilon")?.unwrap_or(1e-5));
    let named = attributes([("epsilon", epsilon.into())]);
    let result = low.node("BatchNormalization", &named, &[x, gamma, beta, mean, variance])?;
    low.give(op, &[result])
}

fn instance_norm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let gamma = channels(low, op, "gamma", x, 1.0)?;
    let beta = channels(low, op, "beta", x, 0.0)?;
    let epsilon = single(low.float(op, "epsilon")?.unwrap_or(1e-5));
    let named = attributes([("epsilon", epsilon.into())]);
    let result = low.node("InstanceNormalization", &named, &[x, gamma, beta])?;
    low.give(op, &[result])
}

/// Over any axes: those that are not the last ones are brought there.
fn layer_norm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let rank = low.rank(x)?;
    let axes = match low.ints(op, "axes")? {
        Some(axes) => axes.iter().map(|&axis| low.axis(axis, rank)).collect::<Result<_>>()?,
        None => (0..rank).collect::<Vec<usize>>(),
    };
    if axes.is_empty() || !axes.is_sorted_by(|a, b| a < b) {
        return Err(CoreMlError::invalid(format!(
            "input 'axes' is {axes:?}, expected rising axes"
        )));
    }
    let epsilon = single(low.float(op, "epsilon")?.unwrap_or(1e-5));
    let first = rank - axes.len();
    let order: Vec<usize> =
        (0..rank).filter(|axis| !axes.contains(axis)).chain(axes.iter().copied()).collect();
    let moved = !order.is_sorted();
    let turned = if moved { low.transpose(x, &order)? } else { x };
    let gamma = match low.optional(op, "gamma")? {
        Some(gamma) => low.cast(gamma, dtype)?,
        None => ones(low, turned, first, dtype)?,
    };
    let beta = low.optional(op, "beta")?.map(|beta| low.cast(beta, dtype)).transpose()?;
    let axis = i64::try_from(first).unwrap_or(i64::MAX);
    let named = attributes([("axis", axis.into()), ("epsilon", epsilon.into())]);
    let inputs = [Some(turned), Some(gamma), beta];
    let mut result = low.node_with("LayerNormalization", &named, &inputs)?;
    if moved {
        let mut back = vec![0; rank];
        for (to, &from) in order.iter().enumerate() {
            if let Some(slot) = back.get_mut(from) {
                *slot = to;
            }
        }
        result = low.transpose(result, &back)?;
    }
    low.give(op, &[result])
}

/// Ones in the shape of the axes from `first` on; a single one where their lengths are not known before
/// a run.
fn ones(low: &mut ProgramLowering, x: ValueId, first: usize, dtype: DataType) -> Result<ValueId> {
    let dims = low.dims(x)?;
    let shape: Option<Vec<usize>> =
        dims.iter().skip(first).map(galatea_graph::Dim::known).collect();
    let shape = shape.unwrap_or_else(|| vec![1]);
    let all = Tensor::from_vec(&shape, vec![1.0_f64; bounded(&shape)?])?;
    let all = galatea_graph::converted(&all, dtype)?;
    Ok(low.constant(all))
}

/// Divides by the length of the vector that the last three axes make. Squares are summed in FP32, as
/// those of FP16 soon exceed what it holds.
fn l2_norm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let epsilon = low.float(op, "epsilon")?.unwrap_or(1e-6);
    let wide = low.cast(x, DataType::Fp32)?;
    let axes = low.integers(&[-3, -2, -1]);
    let sum = low.plain("ReduceSumSquare", &[wide, axes])?;
    let epsilon = low.number(epsilon, DataType::Fp32)?;
    let sum = low.plain("Add", &[sum, epsilon])?;
    let length = low.plain("Sqrt", &[sum])?;
    let result = low.plain("Div", &[wide, length])?;
    let result = low.cast(result, dtype)?;
    low.give(op, &[result])
}

fn local_response_norm(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let size = low.int(op, "size")?;
    let size = size.ok_or_else(|| CoreMlError::invalid("input 'size' is missing"))?;
    let mut number =
        |name, default| -> Result<f32> { Ok(single(low.float(op, name)?.unwrap_or(default))) };
    let alpha = number("alpha", 1e-4)?;
    let beta = number("beta", 0.75)?;
    let k = number("k", 1.0)?;
    let named = attributes([
        ("size", size.into()),
        ("alpha", alpha.into()),
        ("beta", beta.into()),
        ("bias", k.into()),
    ]);
    let result = low.node("LRN", &named, &[x])?;
    low.give(op, &[result])
}

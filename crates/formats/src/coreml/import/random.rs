//! Random values. A seed that is not negative makes every run give the same ones.

use galatea_graph::{Attributes, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::LoweringRow;
use super::activation::single;
use super::create::filled;
use super::lowering::{ProgramLowering, Result, attributes};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] = &[
    LoweringRow::new("random_uniform", |low, op| {
        let names = [("low", "low", 0.0), ("high", "high", 1.0)];
        distributed(low, op, "RandomUniformLike", names)
    }),
    LoweringRow::new("random_normal", |low, op| {
        let names = [("mean", "mean", 0.0), ("stddev", "scale", 1.0)];
        distributed(low, op, "RandomNormalLike", names)
    }),
    LoweringRow::new("random_bernoulli", bernoulli),
    LoweringRow::new("random_categorical", categorical),
];

/// Adds the seed, where there is one.
fn seeded(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    named: &mut Attributes,
) -> Result<()> {
    if let Some(seed) = low.float(op, "seed")?.filter(|seed| *seed >= 0.0) {
        named.insert("seed".to_owned(), single(seed).into());
    }
    Ok(())
}

/// The number and the type of a parameter.
fn parameter(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    default: f64,
) -> Result<(f64, Option<DataType>)> {
    let dtype = low.tensor(op, name)?.map(|(_, value)| value.dtype());
    Ok((low.float(op, name)?.unwrap_or(default), dtype))
}

/// A tensor of the wanted shape, all of one value.
fn shaped(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    value: f64,
    dtype: DataType,
) -> Result<ValueId> {
    let shape = low.required(op, "shape")?;
    let shape = low.cast(shape, DataType::Int64)?;
    let value = galatea_graph::converted(&Tensor::scalar(value), dtype)?;
    filled(low, shape, &value)
}

/// Values of a distribution with two parameters, of whose type they are: for each its name here,
/// that of ONNX and its default.
fn distributed(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    operator: &str,
    names: [(&'static str, &'static str, f64); 2],
) -> Result<()> {
    let mut named = Attributes::new();
    let mut dtype = None;
    for (name, attribute, default) in names {
        let (number, found) = parameter(low, op, name, default)?;
        if dtype.zip(found).is_some_and(|(one, other)| one != other) {
            let text = format!("input '{name}' is of another type than input '{}'", names[0].0);
            return Err(CoreMlError::invalid(text));
        }
        dtype = dtype.or(found);
        named.insert(attribute.to_owned(), single(number).into());
    }
    seeded(low, op, &mut named)?;
    let like = shaped(low, op, 0.0, dtype.unwrap_or(DataType::Fp32))?;
    let result = low.node(operator, &named, &[like])?;
    low.give(op, &[result])
}

/// 1 with a probability, else 0.
fn bernoulli(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let (probability, dtype) = parameter(low, op, "prob", 0.5)?;
    let mut named = Attributes::new();
    seeded(low, op, &mut named)?;
    let probabilities = shaped(low, op, probability, dtype.unwrap_or(DataType::Fp32))?;
    let result = low.node("Bernoulli", &named, &[probabilities])?;
    low.give(op, &[result])
}

/// Classes by the probabilities that the last axis gives, or their logarithms.
fn categorical(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = low.required(op, "x")?;
    let dtype = low.dtype(x)?;
    let count = low.int(op, "size")?.unwrap_or(1);
    let mut logits = low.cast(x, DataType::Fp32)?;
    if low.choice(op, "mode", &["logits", "probs"])? == 1 {
        logits = low.plain("Log", &[logits])?;
    }
    let rank = low.rank(x)?;
    let shape = low.shape_of(x)?;
    let front = low.slice(shape, &[0], &[0], &[-1])?;
    let classes = low.slice(shape, &[0], &[-1], &[i64::MAX])?;
    if rank == 0 {
        return Err(CoreMlError::invalid("x has no axes, expected one of classes"));
    }
    let rest = low.integers(&[-1]);
    let joined = attributes([("axis", 0_i64.into())]);
    let rows = low.node("Concat", &joined, &[rest, classes])?;
    let rows = low.plain("Reshape", &[logits, rows])?;
    let mut named = attributes([("sample_size", count.into())]);
    seeded(low, op, &mut named)?;
    let drawn = low.node("Multinomial", &named, &[rows])?;
    let count = low.integers(&[count]);
    let wanted = low.node("Concat", &joined, &[front, count])?;
    let drawn = low.plain("Reshape", &[drawn, wanted])?;
    let result = low.cast(drawn, dtype)?;
    low.give(op, &[result])
}

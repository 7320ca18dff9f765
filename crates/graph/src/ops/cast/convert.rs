//! The conversion that `Cast` and `CastLike` share.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a cast narrows; the rules are those of ONNX Runtime, given at `Cast`"
)]

use galatea_tensor::{
    ByteString, DataType, ExponentRounding, NarrowingRule, OverflowRule, SmallType, Tensor, f16,
};
use half::slice::HalfFloatSliceExt;

use super::text::{format_float, parse_float, parse_integer};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::ParseContext;
use crate::ops::bounds::carried;
use crate::ops::values::{self, TensorValues};

/// Reads `saturate` and `round_mode`, which say how floats become small ones.
pub(super) fn narrowing(context: &mut ParseContext<'_>) -> Result<NarrowingRule, OpError> {
    let saturate = context.attributes.int_or("saturate", 1)? != 0;
    let overflow = if saturate { OverflowRule::Saturate } else { OverflowRule::Special };
    let modes = [ExponentRounding::Up, ExponentRounding::Down, ExponentRounding::Nearest];
    let mode = context.attributes.choice("round_mode", &["up", "down", "nearest"], 0)?;
    Ok(NarrowingRule { overflow, exponent_rounding: modes[mode] })
}

/// The fact of a conversion's result.
pub(super) fn infer(x: &Fact, to: DataType) -> Fact {
    let fact = Fact::shaped(to, x.shape.clone());
    fact.with_elements(carried(x))
}

/// Truncates within 32 bits, or 64 for the 64-bit types; narrower types wrap on writing.
fn truncate(value: f64, to: DataType) -> i128 {
    match to {
        DataType::Uint64 => {
            if value < 0.0 {
                i128::from(value as i64)
            } else {
                i128::from(value as u64)
            }
        }
        DataType::Int64 | DataType::Uint32 => i128::from(value as i64),
        _ => i128::from(value as i32),
    }
}

/// The elements in another type.
pub(super) fn convert(
    x: &Tensor,
    to: DataType,
    narrowing: NarrowingRule,
) -> Result<Tensor, OpError> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    if let Some(found) = halves(x, to)? {
        return Ok(found);
    }
    let values = match x.dtype() {
        DataType::Small(small) if small.integer_range().is_some() => {
            TensorValues::Integers(values::small(x)?.into_iter().map(|v| v as i128).collect())
        }
        DataType::Small(_) => TensorValues::Floats(values::small(x)?),
        _ => TensorValues::read(x)?,
    };
    let converted = match to {
        DataType::Small(small) => {
            let codes = to_codes(values, small, narrowing)?;
            return Ok(Tensor::from_bytes(to, x.shape(), &codes)?);
        }
        DataType::Bool => TensorValues::Bools(to_bools(values)?),
        DataType::Bytes => TensorValues::Strings(to_strings(values)),
        to if to.is_float() => TensorValues::Floats(to_floats(values, to)?),
        to => TensorValues::Integers(to_integers(values, to)?),
    };
    converted.write(to, x.shape())
}

/// FP32 as FP16 and back, many at a time: what constants and borders of programs are.
fn halves(x: &Tensor, to: DataType) -> Result<Option<Tensor>, OpError> {
    match (x.dtype(), to) {
        (DataType::Fp32, DataType::Fp16) => {
            let mut all = vec![f16::ZERO; x.elements()];
            all.convert_from_f32_slice(&x.to_vec::<f32>()?);
            Ok(Some(Tensor::from_vec(x.shape(), all)?))
        }
        (DataType::Fp16, DataType::Fp32) => {
            let mut all = vec![0.0; x.elements()];
            x.to_vec::<f16>()?.convert_to_f32_slice(&mut all);
            Ok(Some(Tensor::from_vec(x.shape(), all)?))
        }
        _ => Ok(None),
    }
}

fn to_bools(values: TensorValues) -> Result<Vec<bool>, OpError> {
    Ok(match values {
        TensorValues::Bools(all) => all,
        TensorValues::Integers(all) => all.into_iter().map(|v| v != 0).collect(),
        TensorValues::Floats(all) => all.into_iter().map(|v| v != 0.0).collect(),
        TensorValues::Strings(all) => all
            .iter()
            .map(|text| Ok(parse_float(text, DataType::Fp64)? != 0.0))
            .collect::<Result<_, OpError>>()?,
    })
}

fn to_floats(values: TensorValues, to: DataType) -> Result<Vec<f64>, OpError> {
    Ok(match values {
        TensorValues::Bools(all) => all.into_iter().map(|v| f64::from(u8::from(v))).collect(),
        // Of 64-bit integers, f32 takes the nearest directly; through f64 it could be off by one.
        TensorValues::Integers(all) if to == DataType::Fp32 => {
            all.into_iter().map(|v| f64::from(v as f32)).collect()
        }
        TensorValues::Integers(all) => all.into_iter().map(|v| v as f64).collect(),
        TensorValues::Floats(all) => all,
        TensorValues::Strings(all) => {
            all.iter().map(|text| parse_float(text, to)).collect::<Result<_, _>>()?
        }
    })
}

fn to_integers(values: TensorValues, to: DataType) -> Result<Vec<i128>, OpError> {
    Ok(match values {
        TensorValues::Bools(all) => all.into_iter().map(i128::from).collect(),
        TensorValues::Integers(all) => all,
        TensorValues::Floats(all) => all.into_iter().map(|v| truncate(v, to)).collect(),
        TensorValues::Strings(all) => {
            all.iter().map(|text| parse_integer(text, to)).collect::<Result<_, _>>()?
        }
    })
}

/// The codes of a small type.
fn to_codes(
    values: TensorValues,
    to: SmallType,
    narrowing: NarrowingRule,
) -> Result<Vec<u8>, OpError> {
    Ok(match values {
        TensorValues::Bools(all) => {
            all.into_iter().map(|v| to.encode_integer(i128::from(v), narrowing)).collect()
        }
        TensorValues::Integers(all) => {
            all.into_iter().map(|v| to.encode_integer(v, narrowing)).collect()
        }
        TensorValues::Floats(all) => all.into_iter().map(|v| to.encode(v, narrowing)).collect(),
        TensorValues::Strings(all) if to.integer_range().is_some() => all
            .iter()
            .map(|text| Ok(to.encode_integer(parse_integer(text, DataType::Int64)?, narrowing)))
            .collect::<Result<_, OpError>>()?,
        TensorValues::Strings(all) => all
            .iter()
            .map(|text| Ok(to.encode(parse_float(text, DataType::Fp32)?, narrowing)))
            .collect::<Result<_, OpError>>()?,
    })
}

fn to_strings(values: TensorValues) -> Vec<ByteString> {
    match values {
        TensorValues::Bools(all) => all.iter().map(|&v| u8::from(v).to_string().into()).collect(),
        TensorValues::Integers(all) => all.iter().map(|v| v.to_string().into()).collect(),
        TensorValues::Floats(all) => all.iter().map(|&v| format_float(v).into()).collect(),
        TensorValues::Strings(all) => all,
    }
}

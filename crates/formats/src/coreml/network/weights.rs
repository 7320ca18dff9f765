//! The constants of layers, in every form that a file has them.

use galatea_tensor::{Tensor, checked_elements, f16};

use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::{
    LinearQuantization, NetworkQuantizationProto, NetworkWeightsProto, QuantizationKind,
};

/// The constants of a field as a tensor of this shape. Linear codes have one scale, or one for each
/// position on `axis`.
///
/// # Errors
/// Fails when the field is missing, has another number of constants, several forms at once, or
/// codes without what they stand for.
pub(super) fn tensor_along(
    weights: Option<&NetworkWeightsProto>,
    what: &str,
    shape: &[usize],
    axis: usize,
) -> Result<Tensor, CoreMlError> {
    let values = values(weights, shape, axis).map_err(|error| error.at(format!("'{what}'")))?;
    Tensor::from_vec(shape, values).map_err(|error| CoreMlError::from(error).at(what))
}

/// Reads a tensor like [`tensor_along`], with the scales on the first axis.
///
/// # Errors
/// Fails like [`tensor_along`].
pub(super) fn tensor(
    weights: Option<&NetworkWeightsProto>,
    what: &str,
    shape: &[usize],
) -> Result<Tensor, CoreMlError> {
    tensor_along(weights, what, shape, 0)
}

/// Returns the number of constants that a field has, where its form says so by itself.
pub(super) fn count(weights: Option<&NetworkWeightsProto>) -> Option<usize> {
    let weights = weights?;
    let lengths =
        [weights.float_value.len(), weights.float16_value.len() / 2, weights.int8_raw_value.len()];
    lengths.into_iter().find(|&length| length > 0)
}

fn values(
    weights: Option<&NetworkWeightsProto>,
    shape: &[usize],
    axis: usize,
) -> Result<Vec<f32>, CoreMlError> {
    let Some(weights) = weights else { return Err(CoreMlError::invalid("it is missing")) };
    let expected = checked_elements(shape)?;
    let stated = [
        !weights.float_value.is_empty(),
        !weights.float16_value.is_empty(),
        !weights.raw_value.is_empty(),
        !weights.int8_raw_value.is_empty(),
    ];
    if stated.iter().filter(|&&one| one).count() > 1 {
        return Err(CoreMlError::invalid("its constants are given in several forms at once"));
    }
    let count = |found: usize| match found == expected {
        true => Ok(()),
        false => {
            let text = format!("it has {found} constants, expected {expected} for {shape:?}");
            Err(CoreMlError::invalid(text))
        }
    };
    if !weights.float16_value.is_empty() {
        let (pairs, rest) = weights.float16_value.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(CoreMlError::invalid("its 16-bit constants end in the middle of one"));
        }
        count(pairs.len())?;
        return Ok(pairs.iter().map(|&pair| f16::from_le_bytes(pair).to_f32()).collect());
    }
    if !weights.int8_raw_value.is_empty() {
        count(weights.int8_raw_value.len())?;
        let codes = weights.int8_raw_value.iter().map(|&byte| f32::from(byte.cast_signed()));
        let quantization = quantization(weights)?;
        let Some(QuantizationKind::Linear(linear)) = &quantization.kind else {
            return Err(CoreMlError::invalid("its signed codes have no scale"));
        };
        return dequantized(codes, linear, shape, axis);
    }
    if !weights.raw_value.is_empty() {
        let quantization = quantization(weights)?;
        let codes = codes(&weights.raw_value, quantization.number_of_bits, expected, shape)?;
        return match &quantization.kind {
            Some(QuantizationKind::Linear(linear)) => {
                dequantized(codes.map(f32::from), linear, shape, axis)
            }
            Some(QuantizationKind::LookupTable(table)) => {
                let of = |code: u8| table.float_value.get(usize::from(code)).copied();
                codes.map(of).collect::<Option<_>>().ok_or_else(|| {
                    let found = table.float_value.len();
                    CoreMlError::invalid(format!("its table of {found} values lacks some codes"))
                })
            }
            None => Err(CoreMlError::invalid("its codes have neither scale nor table")),
        };
    }
    count(weights.float_value.len())?;
    Ok(weights.float_value.clone())
}

fn quantization(weights: &NetworkWeightsProto) -> Result<&NetworkQuantizationProto, CoreMlError> {
    weights
        .quantization
        .as_ref()
        .ok_or_else(|| CoreMlError::invalid("its codes have no quantization parameters"))
}

/// Codes of 1 to 8 bits: one stream, whose first bit is the highest of the first byte.
fn codes<'w>(
    bytes: &'w [u8],
    bits: u64,
    expected: usize,
    shape: &[usize],
) -> Result<impl Iterator<Item = u8> + 'w, CoreMlError> {
    let width = match bits {
        1..=8 => usize::try_from(bits).unwrap_or(8),
        _ => return Err(CoreMlError::invalid(format!("its codes have {bits} bits, not 1 to 8"))),
    };
    let needed = expected.checked_mul(width).map(|bits| bits.div_ceil(8));
    if needed != Some(bytes.len()) {
        let text = format!(
            "its codes take {} bytes, expected {} of {bits} bits for {shape:?}",
            bytes.len(),
            expected
        );
        return Err(CoreMlError::invalid(text));
    }
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    Ok((0..expected).map(move |index| {
        let first = index * width;
        let window = (byte(first / 8) << 8) | byte(first / 8 + 1);
        let code = (window << (first % 8)) >> (16 - width);
        code.to_be_bytes()[1]
    }))
}

/// `scale · code + bias`, where both are one number or one for each position on an axis.
fn dequantized(
    codes: impl Iterator<Item = f32>,
    linear: &LinearQuantization,
    shape: &[usize],
    axis: usize,
) -> Result<Vec<f32>, CoreMlError> {
    let channels = shape.get(axis).copied().unwrap_or(1);
    let inner: usize = shape.iter().skip(axis + 1).product();
    let check = |name: &str, found: usize, optional: bool| match found {
        0 if optional => Ok(()),
        found if found == 1 || found == channels => Ok(()),
        _ => {
            let text = format!("{found} values of '{name}', expected 1 or {channels}");
            Err(CoreMlError::invalid(text))
        }
    };
    check("scale", linear.scale.len(), false)?;
    check("bias", linear.bias.len(), true)?;
    let of = |all: &[f32], channel: usize, default: f32| match all {
        [] => default,
        [one] => *one,
        all => all.get(channel).copied().unwrap_or(default),
    };
    let value = |(index, code): (usize, f32)| {
        let channel = index / inner.max(1) % channels.max(1);
        of(&linear.scale, channel, 1.0) * code + of(&linear.bias, channel, 0.0)
    };
    Ok(codes.enumerate().map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::proto::network::LookupTable;
    use super::*;

    fn quantized(bits: u64, raw: &'static [u8], kind: QuantizationKind) -> NetworkWeightsProto {
        let quantization =
            Some(NetworkQuantizationProto { number_of_bits: bits, kind: Some(kind) });
        NetworkWeightsProto {
            raw_value: raw.into(),
            quantization,
            ..NetworkWeightsProto::default()
        }
    }

    #[test]
    fn codes_are_one_stream_from_the_highest_bit_on() {
        // 0b101, 0b001, 0b110 and padding.
        let table = LookupTable { float_value: (0_u8..8).map(f32::from).collect() };
        let weights = quantized(3, &[0b1010_0111, 0], QuantizationKind::LookupTable(table));
        let found = tensor(Some(&weights), "weights", &[3]).unwrap();
        assert_eq!(found.to_vec::<f32>().unwrap(), [5.0, 1.0, 6.0]);
    }

    #[test]
    fn scales_belong_to_their_axis() {
        let linear = LinearQuantization { scale: vec![1.0, 10.0], bias: vec![0.5] };
        let weights = quantized(8, &[1, 2, 3, 4], QuantizationKind::Linear(linear));
        let first = tensor(Some(&weights), "weights", &[2, 2]).unwrap();
        assert_eq!(first.to_vec::<f32>().unwrap(), [1.5, 2.5, 30.5, 40.5]);
        let second = tensor_along(Some(&weights), "weights", &[2, 2], 1).unwrap();
        assert_eq!(second.to_vec::<f32>().unwrap(), [1.5, 20.5, 3.5, 40.5]);
    }

    #[test]
    fn every_number_of_bits_must_fit_the_shape() {
        for bits in 0..10 {
            let linear = LinearQuantization { scale: vec![1.0], bias: Vec::new() };
            let weights = quantized(bits, &[0xFF; 3], QuantizationKind::Linear(linear));
            let found = tensor(Some(&weights), "weights", &[3]);
            // Three codes of 6 to 8 bits take three bytes.
            assert_eq!(found.is_ok(), (6..=8).contains(&bits), "{bits} bits");
        }
    }
}

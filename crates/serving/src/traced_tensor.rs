//! Tensors as the text of a trace.

use std::fmt::Write;

use galatea_tensor::{ByteString, DataType, Tensor, decode_byte_strings};

use crate::request::{InputData, InputTensor, OutputTensor};
use crate::trace::TracedTensor;

pub(crate) fn input(input: &InputTensor) -> TracedTensor {
    let data = match &input.data {
        InputData::Raw(raw) if input.datatype == DataType::Bytes => {
            strings(&decode_byte_strings(raw).unwrap_or_default())
        }
        InputData::Raw(raw) => elements(input.datatype, raw),
        InputData::Tensor(tensor) => values(tensor),
    };
    let shape = joined(input.shape.iter());
    TracedTensor { name: input.name.clone(), data, shape, datatype: input.datatype.wire_name() }
}

pub(crate) fn output(output: &OutputTensor) -> TracedTensor {
    let tensor = &output.tensor;
    TracedTensor {
        name: output.name.clone(),
        data: values(tensor),
        shape: joined(tensor.shape().iter()),
        datatype: tensor.dtype().wire_name(),
    }
}

fn values(tensor: &Tensor) -> String {
    if tensor.dtype() == DataType::Bytes {
        return strings(&tensor.to_vec::<ByteString>().unwrap_or_default());
    }
    // A tensor that cannot be laid out has no text; the trace is the last to complain.
    let whole = tensor.contiguous().ok();
    let bytes = whole.as_ref().and_then(|tensor| tensor.as_bytes().ok());
    elements(tensor.dtype(), bytes.unwrap_or_default())
}

fn strings(strings: &[ByteString]) -> String {
    joined(strings.iter().map(|text| format!("\"{}\"", String::from_utf8_lossy(text.as_bytes()))))
}

fn joined<T: std::fmt::Display>(items: impl Iterator<Item = T>) -> String {
    let mut text = String::new();
    for (index, item) in items.enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        write!(text, "{comma}{item}").ok();
    }
    text
}

/// Elements of this many bytes, little-endian, through `read`.
fn each<const N: usize, T: std::fmt::Display>(bytes: &[u8], read: fn([u8; N]) -> T) -> String {
    joined(bytes.chunks_exact(N).filter_map(|chunk| Some(read(chunk.try_into().ok()?))))
}

fn elements(datatype: DataType, bytes: &[u8]) -> String {
    match datatype {
        DataType::Bool => each(bytes, |[byte]: [u8; 1]| u8::from(byte != 0)),
        DataType::Uint8 => each(bytes, u8::from_le_bytes),
        DataType::Uint16 => each(bytes, u16::from_le_bytes),
        DataType::Uint32 => each(bytes, u32::from_le_bytes),
        DataType::Uint64 => each(bytes, u64::from_le_bytes),
        DataType::Int8 => each(bytes, i8::from_le_bytes),
        DataType::Int16 => each(bytes, i16::from_le_bytes),
        DataType::Int32 => each(bytes, i32::from_le_bytes),
        DataType::Int64 => each(bytes, i64::from_le_bytes),
        DataType::Fp16 => each(bytes, half),
        DataType::Bf16 => each(bytes, |[low, high]: [u8; 2]| f32::from_le_bytes([0, 0, low, high])),
        DataType::Fp32 => each(bytes, f32::from_le_bytes),
        DataType::Fp64 => each(bytes, f64::from_le_bytes),
        _ => String::new(),
    }
}

/// An IEEE 754 half-precision number.
fn half(bytes: [u8; 2]) -> f32 {
    let bits = u16::from_le_bytes(bytes);
    let fraction = f32::from(bits & 0x3ff);
    let exponent = i32::from(bits >> 10 & 0x1f);
    let size = match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction > 0.0 => f32::NAN,
        31 => f32::INFINITY,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_joined_by_commas() {
        assert_eq!(elements(DataType::Int32, &[1, 0, 0, 0, 255, 255, 255, 255]), "1,-1");
        assert_eq!(elements(DataType::Bool, &[0, 1, 7]), "0,1,1");
        assert_eq!(
            elements(DataType::Fp16, &[0x00, 0x3c, 0x01, 0x80, 0x00, 0xfc]),
            "1,-0.000000059604645,-inf"
        );
        assert_eq!(elements(DataType::Bf16, &[0xc0, 0x3f]), "1.5");
        let tensor = Tensor::from_vec(&[1, 2], vec![ByteString::from("a"), ByteString::from("b")]);
        let output = output(&OutputTensor { name: "O".to_owned(), tensor: tensor.unwrap() });
        assert_eq!((output.data.as_str(), output.shape.as_str()), ("\"a\",\"b\"", "1,2"));
        assert_eq!(output.datatype, "BYTES");
    }
}

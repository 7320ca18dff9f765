//! `Cast`: elements in a type that an attribute names.

use galatea_tensor::{DataType, Tensor};

use super::convert::{convert, infer};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Inputs, Operator, ParseContext};

/// The same elements in another type.
///
/// Floats round to nearest, ties to even; floats become integers by truncation, clamped to the
/// range of 32 bits (64 for 64-bit types) and then wrapped, as ONNX Runtime does; integers wrap;
/// everything that is not zero is true. Numbers become text with eight significant digits, and
/// text is read as a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The new type.
    pub to: DataType,
}

impl Cast {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // Both matter only for 8-bit floats, which are no type here.
        context.attributes.ignore("saturate");
        context.attributes.ignore("round_mode");
        let to = context.data_type("to")?;
        let to = to.ok_or_else(|| OpError::new("attribute 'to' is missing"))?;
        Ok(Box::new(Self { to }))
    }

    /// Before version 6 the type had a name.
    pub(super) fn parse_name(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let name = context.attributes.string("to")?;
        let name = name.ok_or_else(|| OpError::new("attribute 'to' is missing"))?;
        let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let &(_, to) =
            found.ok_or_else(|| OpError::new(format!("there is no data type '{name}'")))?;
        Ok(Box::new(Self { to }))
    }
}

/// The names in ONNX's `TensorProto.DataType`.
const NAMES: &[(&str, DataType)] = &[
    ("FLOAT", DataType::Fp32),
    ("UINT8", DataType::Uint8),
    ("INT8", DataType::Int8),
    ("UINT16", DataType::Uint16),
    ("INT16", DataType::Int16),
    ("INT32", DataType::Int32),
    ("INT64", DataType::Int64),
    ("BOOL", DataType::Bool),
    ("FLOAT16", DataType::Fp16),
    ("DOUBLE", DataType::Fp64),
    ("UINT32", DataType::Uint32),
    ("UINT64", DataType::Uint64),
];

impl Operator for Cast {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![infer(inputs.required(0)?, self.to)])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![convert(inputs.required(0)?, self.to)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::{ByteString, Element, bf16, f16};

    use super::*;
    use crate::fact::Dim;

    fn cast<A: Element, B: Element>(from: &[A]) -> Vec<B> {
        let x = Tensor::vector(from.to_vec());
        let cast = Cast { to: B::DTYPE };
        cast.reference(Inputs::new(&[Some(&x)])).unwrap()[0].to_vec().unwrap()
    }

    #[test]
    fn floats_truncate_and_integers_wrap() {
        assert_eq!(
            cast::<f32, i32>(&[1.9, -1.9, 3e9, -3e9, f32::NAN]),
            [1, -1, i32::MAX, i32::MIN, 0]
        );
        assert_eq!(cast::<f32, u8>(&[200.0, 300.7, -1.0]), [200, 44, 255]);
        assert_eq!(cast::<f64, i64>(&[1e300]), [i64::MAX]);
        assert_eq!(cast::<i64, u8>(&[257, -1]), [1, 255]);
        assert_eq!(cast::<i64, f32>(&[16_777_217]), [16_777_216.0]);
        assert_eq!(cast::<u64, i64>(&[u64::MAX]), [-1]);
    }

    #[test]
    fn halves_round_to_even_and_truth_is_not_zero() {
        assert_eq!(cast::<f32, f16>(&[2049.0, 70000.0]), [f16::from_f32(2048.0), f16::INFINITY]);
        assert_eq!(cast::<f32, bf16>(&[257.0]), [bf16::from_f32(256.0)]);
        assert_eq!(cast::<f32, bool>(&[0.0, -0.0, 0.5, f32::NAN]), [false, false, true, true]);
        assert_eq!(cast::<bool, f16>(&[true, false]), [f16::ONE, f16::ZERO]);
    }

    #[test]
    fn text_and_numbers() {
        let text = |all: &[&str]| all.iter().map(|&one| one.into()).collect::<Vec<ByteString>>();
        let floats =
            [0.1, 1.0, 1e-5, 1e20, 123_456_789.0, 100_000.0, f32::NAN, f32::NEG_INFINITY, -0.0];
        let shown =
            ["0.1", "1", "9.9999997e-06", "1e+20", "1.2345679e+08", "100000", "NaN", "-INF"];
        assert_eq!(cast::<f32, ByteString>(&floats)[..8], text(&shown));
        assert_eq!(cast::<i8, ByteString>(&[-5]), text(&["-5"]));
        assert_eq!(cast::<bool, ByteString>(&[true, false]), text(&["1", "0"]));
        let read = cast::<ByteString, f32>(&text(&["1e3", " 5 ", "+INF", "-0.25"]));
        assert_eq!(read, [1000.0, 5.0, f32::INFINITY, -0.25]);
        assert_eq!(cast::<ByteString, i64>(&text(&["-9223372036854775808"])), [i64::MIN]);
        let x = Tensor::vector(text(&["7", "seven"]));
        let error = Cast { to: DataType::Int32 }.reference(Inputs::new(&[Some(&x)])).unwrap_err();
        assert!(error.to_string().contains("seven"), "{error}");
    }

    #[test]
    fn lengths_survive_casts_between_integers() {
        let batch = Dim::symbol("batch");
        let x = Fact::fixed(DataType::Int64, &[1]).with_elements(Some(vec![batch.clone()]));
        let to = |to| Cast { to }.infer(Inputs::new(&[Some(&x)])).unwrap().remove(0).elements;
        assert_eq!(to(DataType::Int32), Some(vec![batch]));
        assert_eq!(to(DataType::Fp32), None);
    }
}

//! `Cast`: elements in a type that an attribute names.

use galatea_tensor::{DataType, NarrowingRule, Tensor};

use super::convert::{convert, infer, narrowing};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// The same elements in another type.
///
/// Floats round to nearest, ties to even; floats become integers by truncation, clamped to the
/// range of 32 bits (64 for 64-bit types) and then wrapped, as ONNX Runtime does; integers wrap;
/// everything that is not zero is true. Numbers become text with eight significant digits, and
/// text is read as a decimal number. Small types take what [`galatea_tensor::SmallType::encode`]
/// gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The new type.
    pub to: DataType,
    /// How floats become small ones.
    pub narrowing: NarrowingRule,
}

impl Cast {
    /// The cast that saturates, as an attribute that is not there has it.
    #[must_use]
    pub fn plain(to: DataType) -> Self {
        Self { to, narrowing: NarrowingRule::default() }
    }

    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let narrowing = narrowing(context)?;
        let to = context.data_type("to")?;
        let to = to.ok_or_else(|| OpError::new("attribute 'to' is missing"))?;
        Ok(Box::new(Self { to, narrowing }))
    }

    /// Before version 6 the type had a name.
    pub(super) fn parse_name(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let name = context.attributes.string("to")?;
        let name = name.ok_or_else(|| OpError::new("attribute 'to' is missing"))?;
        let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let &(_, to) =
            found.ok_or_else(|| OpError::new(format!("there is no data type '{name}'")))?;
        Ok(Box::new(Self::plain(to)))
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
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![infer(inputs.required(0)?, self.to)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![convert(inputs.required(0)?, self.to, self.narrowing)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::{
        ByteString, Element, ExponentRounding, OverflowRule, SmallType, bf16, f16,
    };

    use super::*;
    use crate::fact::Dim;

    fn cast<A: Element, B: Element>(from: &[A]) -> Vec<B> {
        let x = Tensor::vector(from.to_vec());
        let cast = Cast::plain(B::DTYPE);
        cast.reference(OperatorInputs::new(&[Some(&x)])).unwrap()[0].to_vec().unwrap()
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

    /// A cast from one type to another and the codes of the result.
    fn codes(from: &Tensor, to: SmallType, narrowing: NarrowingRule) -> Vec<u8> {
        let cast = Cast { to: DataType::Small(to), narrowing };
        let found = cast.reference(OperatorInputs::new(&[Some(from)])).unwrap().remove(0);
        found.as_bytes().unwrap().to_vec()
    }

    #[test]
    fn small_types_are_cast_from_and_to_every_other() {
        let plain = NarrowingRule::default();
        let x = Tensor::vector(vec![1.0_f32, 1000.0, -0.3, f32::NAN]);
        assert_eq!(codes(&x, SmallType::Float8E4M3Fn, plain), [0x38, 0x7e, 0xaa, 0x7f]);
        let strict = NarrowingRule { overflow: OverflowRule::Special, ..plain };
        assert_eq!(codes(&x, SmallType::Float8E4M3Fn, strict)[1], 0x7f);
        let down = NarrowingRule { exponent_rounding: ExponentRounding::Down, ..plain };
        assert_eq!(codes(&Tensor::vector(vec![1.9_f32]), SmallType::Float8E8M0, down), [127]);
        assert_eq!(codes(&Tensor::vector(vec![9_i64, -1]), SmallType::Int4, plain), [9, 15]);
        assert_eq!(codes(&Tensor::vector(vec![true, false]), SmallType::Uint2, plain), [1, 0]);
        let text = Tensor::vector(vec![ByteString::from("3"), ByteString::from("-2")]);
        assert_eq!(codes(&text, SmallType::Int4, plain), [3, 14]);
        assert_eq!(codes(&text, SmallType::Float4E2M1, plain), [5, 12]);
        let int4 = Tensor::from_bytes(DataType::Small(SmallType::Int4), &[3], &[7, 8, 15]).unwrap();
        let to =
            |to| Cast::plain(to).reference(OperatorInputs::new(&[Some(&int4)])).unwrap().remove(0);
        assert_eq!(to(DataType::Int8), Tensor::vector(vec![7_i8, -8, -1]));
        assert_eq!(to(DataType::Fp32), Tensor::vector(vec![7_f32, -8.0, -1.0]));
        assert_eq!(to(DataType::Bool), Tensor::vector(vec![true; 3]));
        let shown = to(DataType::Bytes).to_vec::<ByteString>().unwrap();
        assert_eq!(shown, ["7", "-8", "-1"].map(ByteString::from));
        assert_eq!(codes(&int4, SmallType::Int2, plain), [3, 0, 3]);
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
        let error =
            Cast::plain(DataType::Int32).reference(OperatorInputs::new(&[Some(&x)])).unwrap_err();
        assert!(error.to_string().contains("seven"), "{error}");
    }

    #[test]
    fn lengths_survive_casts_between_integers() {
        let batch = Dim::symbol("batch");
        let x = Fact::fixed(DataType::Int64, &[1]).with_elements(Some(vec![batch.clone()]));
        let to = |to| {
            Cast::plain(to).infer(OperatorInputs::new(&[Some(&x)])).unwrap().remove(0).elements
        };
        assert_eq!(to(DataType::Int32), Some(vec![batch]));
        assert_eq!(to(DataType::Fp32), None);
    }
}

//! `MurmurHash3`: a hash of 32 bits of each element.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::expect_type;

/// `MurmurHash3` of domain `com.microsoft`: `MurmurHash3_x86_32` of the bytes of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MurmurHash3 {
    /// True if hashes are `UINT32` rather than `INT32`.
    pub positive: bool,
    /// Start of every hash.
    pub seed: u32,
}

fn takes(dtype: DataType) -> bool {
    use DataType::{Bytes, Fp32, Fp64, Int32, Int64, Uint32, Uint64};
    matches!(dtype, Bytes | Fp32 | Fp64 | Int32 | Int64 | Uint32 | Uint64)
}

/// The hash of some bytes.
///
/// Source: Austin Appleby, `MurmurHash3_x86_32` (public domain).
fn hash(bytes: &[u8], seed: u32) -> u32 {
    let mixed = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let word =
        |part: &[u8]| part.iter().rev().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
    let parts = bytes.chunks_exact(4);
    let rest = word(parts.remainder());
    let mut h = parts.fold(seed, |h, part| {
        (h ^ mixed(word(part))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    h ^= mixed(rest);
    #[allow(clippy::cast_possible_truncation, reason = "the hash takes the length in 32 bits")]
    let length = bytes.len() as u32;
    h ^= length;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl MurmurHash3 {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let positive = context.attributes.flag("positive", true)?;
        let seed = context.attributes.int_or("seed", 0)?;
        let seed = u32::try_from(seed)
            .map_err(|_| OpError::new(format!("attribute 'seed' is {seed}, not of 32 bits")))?;
        Ok(Box::new(Self { positive, seed }))
    }

    fn dtype(&self) -> DataType {
        if self.positive { DataType::Uint32 } else { DataType::Int32 }
    }
}

impl Operator for MurmurHash3 {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the input", x.dtype, takes, "a string or a number of 32 or 64 bits")?;
        Ok(vec![Fact::shaped(self.dtype(), x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = bounds::owned(inputs.required(0)?)?;
        expect_type("the input", x.dtype(), takes, "a string or a number of 32 or 64 bits")?;
        bounds::bounded(DataType::Uint32, x.shape())?;
        let hashes: Vec<u32> = match x.dtype().size_bytes() {
            None => {
                let texts = x.to_vec::<ByteString>()?;
                texts.iter().map(|text| hash(text.as_bytes(), self.seed)).collect()
            }
            Some(size) => {
                let parts = x.as_bytes()?.chunks_exact(size);
                parts.map(|part| hash(part, self.seed)).collect()
            }
        };
        if self.positive {
            return Ok(vec![Tensor::from_vec(x.shape(), hashes)?]);
        }
        let hashes: Vec<i32> = hashes.into_iter().map(u32::cast_signed).collect();
        Ok(vec![Tensor::from_vec(x.shape(), hashes)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, parse};

    // Expected values are those of ONNX Runtime.
    #[test]
    fn every_type_is_hashed_by_its_bytes() {
        let found = |x: &Tensor, seed: i64| {
            let list = attributes([("seed", int(seed))]);
            one("com.microsoft:MurmurHash3", 1, &list, &[x]).to_vec::<u32>().unwrap()
        };
        assert_eq!(found(&Tensor::vector(vec![3_i32, 4]), 0), [847_579_505, 1_889_779_975]);
        assert_eq!(found(&Tensor::vector(vec![3_u32]), 0), [847_579_505]);
        assert_eq!(found(&Tensor::vector(vec![-3_i64]), 0), [2_497_518_509]);
        assert_eq!(found(&Tensor::vector(vec![1.5_f64]), 7), [1_353_323_163]);
        assert_eq!(found(&Tensor::vector(vec![1.5_f32]), 7), [1_325_237_653]);
        let texts = Tensor::vector(["a", "hello", ""].map(ByteString::from).to_vec());
        let list = attributes([("positive", int(0))]);
        let found = one("com.microsoft:MurmurHash3", 1, &list, &[&texts]);
        assert_eq!(found, Tensor::vector(vec![1_009_084_850_i32, 613_153_351, 0]));
        let list = attributes([("seed", int(-1))]);
        assert!(parse("com.microsoft:MurmurHash3", 1, &list, 1, 1).is_err());
    }
}

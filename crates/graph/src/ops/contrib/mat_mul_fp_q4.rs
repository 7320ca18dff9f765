//! `MatMulFpQ4`: a product with weights of four bits in blocks that carry their scale.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_type, floats, from_floats};

/// Weights of a block.
const BLOCK: usize = 32;
/// Bytes of a scale.
const SCALE_BYTES: usize = 4;
/// Number that stands for zero where blocks have none of their own.
const MIDDLE: u8 = 8;

/// `A · B` of domain `com.microsoft`.
///
/// Inputs: `A` `[…, K]`, the blocks of `B` column by column, and the shape `[K, N]` of `B`. A block is its scale in
/// FP32, with `has_zero_points` the number that stands for zero, and 16 bytes: byte `i` holds weight `i` in its low
/// half and weight `i + 16` in its high half. The last block of a column is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulFpQ4 {
    /// True if each block has a number that stands for zero.
    pub has_zero_points: bool,
}

impl MatMulFpQ4 {
    /// Reads the kind of blocks: ONNX Runtime takes all but kind 0 for blocks with a zero point.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let kind = context.attributes.int_or("blk_quant_type", 1)?;
        Ok(Box::new(Self { has_zero_points: kind != 0 }))
    }

    /// Bytes before the weights of a block.
    fn head_bytes(self) -> usize {
        SCALE_BYTES + usize::from(self.has_zero_points)
    }

    /// All weights, `[N, K]`.
    fn weights(self, bytes: &[u8], k: usize, n: usize) -> Result<Vec<f64>, OpError> {
        let blocks = k.div_ceil(BLOCK);
        let block_bytes = self.head_bytes() + BLOCK / 2;
        let held = blocks.saturating_mul(n).saturating_mul(block_bytes);
        if bytes.len() != held {
            let text = format!("{} bytes of weights for {k} x {n}, expected {held}", bytes.len());
            return Err(OpError::new(text));
        }
        let mut all = Vec::with_capacity(bounded(DataType::Fp64, &[n, k])?);
        for (at, block) in bytes.chunks_exact(block_bytes).enumerate() {
            let (head, codes) = block.split_at(self.head_bytes());
            let scale = head.first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
            let zero = head.get(SCALE_BYTES).copied().unwrap_or(MIDDLE);
            let low = codes.iter().map(|byte| byte & 15);
            let high = codes.iter().map(|byte| byte >> 4);
            let length = BLOCK.min(k - at % blocks * BLOCK);
            let weight = |code: u8| (f64::from(code) - f64::from(zero)) * f64::from(scale);
            all.extend(low.chain(high).take(length).map(weight));
        }
        Ok(all)
    }
}

/// The lengths `[K, N]` that an input holds.
fn lengths(numbers: &[i64]) -> Result<[usize; 2], OpError> {
    match *numbers {
        [k, n] => Ok([bounds::length(k, "K")?, bounds::length(n, "N")?]),
        _ => Err(OpError::new(format!("a shape of B of {} lengths, expected 2", numbers.len()))),
    }
}

impl Operator for MatMulFpQ4 {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        expect_type("A", a.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        let bytes = inputs.required(1)?.dtype;
        expect_type("B", bytes, |dtype| dtype == DataType::Uint8, "UINT8")?;
        let Some(dims) = &a.shape else { return Ok(vec![Fact::unranked(a.dtype)]) };
        let Some((last, outer)) = dims.split_last() else {
            return Err(OpError::new("A has no axes"));
        };
        let columns = match inputs.required(2)?.integers() {
            None => Dim::Unknown,
            Some(numbers) => {
                let [k, n] = lengths(&numbers)?;
                if last.known().is_some_and(|found| found != k) {
                    return Err(OpError::new(format!("A is {a}, expected rows of {k}")));
                }
                Dim::Known(n)
            }
        };
        Ok(vec![Fact::new(a.dtype, [outer, &[columns]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let [k, n] = lengths(&inputs.required(2)?.to_i64_vec()?)?;
        let outer = match a.shape().split_last() {
            Some((&len, outer)) if len == k => outer,
            _ => return Err(OpError::new(format!("A has shape {:?}, rows of {k}", a.shape()))),
        };
        let weights = self.weights(&inputs.required(1)?.to_vec::<u8>()?, k, n)?;
        let shape = [outer, &[n]].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let all = floats(a)?;
        for row in 0..outer.iter().product() {
            let row = &all[row * k..(row + 1) * k];
            result.extend((0..n).map(|column| {
                let weights = &weights[column * k..(column + 1) * k];
                row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>()
            }));
        }
        Ok(vec![from_floats(a.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    const NAME: &str = "com.microsoft:MatMulFpQ4";

    /// Two columns of 40 weights, in two blocks each.
    fn blob(zero_points: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (block, scale) in [1.0_f32, 2.0, 3.0, 4.0].into_iter().enumerate() {
            let block = u8::try_from(block).unwrap();
            bytes.extend(scale.to_le_bytes());
            bytes.extend(zero_points.then_some(3 + block));
            bytes.extend((0..16).map(|i: u8| i.wrapping_mul(7).wrapping_add(block * 3)));
        }
        bytes
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn a_byte_holds_weights_that_are_sixteen_apart() {
        let mut eye = [0.0_f32; 1600];
        (0..40).for_each(|at| eye[at * 41] = 1.0);
        let a = tensor(&[40, 40], &eye);
        let shape = tensor(&[2], &[40_i64, 2]);
        for (kind, first) in [(0, [-8.0_f32, -6.0, -1.0, 15.0]), (1, [-3.0, 3.0, 4.0, 24.0])] {
            let bytes = blob(kind == 1);
            let b = tensor(&[bytes.len()], &bytes);
            let list = attributes([("blk_quant_type", int(kind))]);
            let found = one(NAME, 1, &list, &[&a, &b, &shape]);
            assert_eq!(found.shape(), [40, 2]);
            let values = found.to_vec::<f32>().unwrap();
            assert_eq!(values[..4], first, "kind {kind}");
            // Weight 17 of the first column is in the high half of byte 1, which is 0.
            assert_eq!(values[34], if kind == 0 { -8.0 } else { -3.0 });
        }
        let (bytes, list) = (blob(false), attributes([("blk_quant_type", int(1))]));
        let b = tensor(&[bytes.len()], &bytes);
        let refused = run(NAME, 1, &list, &[Some(&a), Some(&b), Some(&shape)], 1).unwrap_err();
        assert!(refused.contains("80 bytes of weights for 40 x 2, expected 84"), "{refused}");
    }
}

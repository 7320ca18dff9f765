//! `MatMulNBits`: a product with weights of few bits, each block of which has a scale.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// `A · Wᵀ + bias` of domain `com.microsoft`, with `W = (q − zero point) · scale`.
///
/// Inputs: `A` `[…, K]`, packed weights `[N, blocks, bytes]`, scales (one a block), optionally zero
/// points (packed like the weights, or of the type of `A`), the block of each of the `K` positions,
/// and a bias `[N]`. Numbers of fewer than eight bits lie in a byte from its low bits up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulNBits {
    /// Length of a row of `A`.
    pub k: usize,
    /// Length of a row of the result.
    pub n: usize,
    /// Bits of a weight: 2, 4 or 8.
    pub bits: u32,
    /// Weights that share a scale.
    pub block_size: usize,
}

/// The number at a position of packed bytes.
pub(super) fn unpacked(bytes: &[u8], bits: u32, at: usize) -> Option<u8> {
    let per_byte = 8 / bits as usize;
    let shift = (at % per_byte) * bits as usize;
    let mask = u8::MAX >> (8 - bits);
    Some((bytes.get(at / per_byte)? >> shift) & mask)
}

/// Returns the number of bits that a weight has.
pub(super) fn read_bits(context: &mut ParseContext<'_>) -> Result<u32, OpError> {
    match context.attributes.int_or("bits", 4)? {
        2 => Ok(2),
        4 => Ok(4),
        8 => Ok(8),
        other => Err(OpError::new(format!("weights of {other} bits, expected 2, 4 or 8"))),
    }
}

impl MatMulNBits {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // How exact the product must be at least; it is exact here.
        context.attributes.ignore("accuracy_level");
        if context.attributes.int_or("weight_prepacked", 0)? != 0 {
            return Err(OpError::new("weights packed for another device (weight_prepacked)"));
        }
        let mut length = |name: &'static str| {
            let found = context.attributes.int(name)?;
            let missing = || OpError::new(format!("attribute '{name}' is missing"));
            bounds::length(found.ok_or_else(missing)?, name)
        };
        let k = length("K")?;
        let n = length("N")?;
        let block_size = length("block_size")?;
        if !block_size.is_power_of_two() || block_size < 8 {
            return Err(OpError::new(format!("blocks of {block_size} weights")));
        }
        Ok(Box::new(Self { k, n, bits: read_bits(context)?, block_size }))
    }

    fn blocks(&self) -> usize {
        self.k.div_ceil(self.block_size)
    }

    /// The zero point of every block.
    fn zero_points(&self, input: Option<&Tensor>) -> Result<Vec<f64>, OpError> {
        let count = self.n * self.blocks();
        let Some(tensor) = input else {
            return Ok(vec![f64::from(1_u32 << (self.bits - 1)); count]);
        };
        let wrong = || OpError::new(format!("zero points of shape {:?}", tensor.shape()));
        if tensor.dtype().is_float() {
            return Some(floats(tensor)?).filter(|all| all.len() == count).ok_or_else(wrong);
        }
        let bytes = tensor.to_vec::<u8>()?;
        let row = (self.blocks() * self.bits as usize).div_ceil(8);
        if bytes.len() != self.n * row {
            return Err(wrong());
        }
        let point = |at: usize| {
            let n = at / self.blocks();
            let block = at % self.blocks();
            unpacked(&bytes[n * row..(n + 1) * row], self.bits, block).map(f64::from)
        };
        collected_some(&mut (0..count).map(point)).ok_or_else(wrong)
    }

    /// All weights, `[N, K]`.
    fn weights(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<f64>, OpError> {
        let bytes = inputs.required(1)?.to_vec::<u8>()?;
        let scales = floats(inputs.required(2)?)?;
        let blob = self.block_size * self.bits as usize / 8;
        let blocks = self.blocks();
        if bytes.len() != self.n * blocks * blob || scales.len() != self.n * blocks {
            return Err(OpError::new(format!(
                "{} bytes of weights and {} scales for {} rows of {} in blocks of {}",
                bytes.len(),
                scales.len(),
                self.n,
                self.k,
                self.block_size
            )));
        }
        let zeros = self.zero_points(inputs.optional(3))?;
        let groups = inputs.optional(4).map(Tensor::to_i64_vec).transpose()?;
        let group = |at: usize| match &groups {
            None => Some(at / self.block_size),
            Some(all) => usize::try_from(*all.get(at)?).ok().filter(|group| *group < blocks),
        };
        let mut all = Vec::with_capacity(bounded(DataType::Fp64, &[self.n, self.k])?);
        for n in 0..self.n {
            let row = &bytes[n * blocks * blob..(n + 1) * blocks * blob];
            for at in 0..self.k {
                let number = unpacked(row, self.bits, at).zip(group(at));
                let (number, group) = number
                    .ok_or_else(|| OpError::new(format!("position {at} belongs to no block")))?;
                let block = n * blocks + group;
                all.push((f64::from(number) - zeros[block]) * scales[block]);
            }
        }
        Ok(all)
    }
}

impl Operator for MatMulNBits {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        expect_float(a.dtype)?;
        let weights = inputs.required(1)?.dtype;
        expect_type("the weights", weights, |dtype| dtype == DataType::Uint8, "UINT8")?;
        let Some(dims) = &a.shape else { return Ok(vec![Fact::unranked(a.dtype)]) };
        match dims.split_last() {
            Some((last, outer)) if last.known().is_none_or(|k| k == self.k) => {
                Ok(vec![Fact::new(a.dtype, [outer, &[Dim::Known(self.n)]].concat())])
            }
            _ => Err(OpError::new(format!("A is {a}, expected rows of {}", self.k))),
        }
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let outer = match a.shape().split_last() {
            Some((&k, outer)) if k == self.k => outer,
            _ => return Err(OpError::new(format!("A has shape {:?}", a.shape()))),
        };
        let weights = self.weights(inputs)?;
        let bias = inputs.optional(5).map(floats).transpose()?;
        if let Some(bias) = &bias
            && bias.len() != self.n
        {
            return Err(OpError::new(format!("a bias of {}, expected {}", bias.len(), self.n)));
        }
        let shape = [outer, &[self.n]].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let all = floats(a)?;
        for row in 0..outer.iter().product() {
            let row = &all[row * self.k..(row + 1) * self.k];
            result.extend((0..self.n).map(|n| {
                let weights = &weights[n * self.k..(n + 1) * self.k];
                let sum: f64 = row.iter().zip(weights).map(|(x, w)| x * w).sum();
                sum + bias.as_ref().map_or(0.0, |bias| bias[n])
            }));
        }
        Ok(vec![from_floats(a.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn weights_are_unpacked_from_the_low_bits_up() {
        let a = tensor(&[1, 3], &[1.0_f32, 10.0, 100.0]);
        // 9, 7 and 8 of which 8 is taken away.
        let mut bytes = [0_u8; 8];
        (bytes[0], bytes[1]) = (0x79, 0x08);
        let b = tensor(&[1, 1, 8], &bytes);
        let scales = tensor(&[1], &[0.5_f32]);
        let list = attributes([("K", int(3)), ("N", int(1)), ("block_size", int(16))]);
        let found = one("com.microsoft:MatMulNBits", 1, &list, &[&a, &b, &scales]);
        assert_eq!(found, tensor(&[1, 1], &[-4.5_f32]));
        let zero = tensor(&[1, 1], &[0xf7_u8]);
        let found = one("com.microsoft:MatMulNBits", 1, &list, &[&a, &b, &scales, &zero]);
        assert_eq!(found, tensor(&[1, 1], &[51.0_f32]));
        let short = tensor(&[1, 1, 4], &[0_u8; 4]);
        let inputs = [Some(&a), Some(&short), Some(&scales)];
        assert!(run("com.microsoft:MatMulNBits", 1, &list, &inputs, 1).is_err());
    }
}

//! `GatherBlockQuantized`: rows of a table of few bits, as floats.

use galatea_tensor::{DataType, Tensor};

use super::mat_mul_n_bits::{read_bits, unpacked};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// `(table[indices] − zero point) · scale`, of domain `com.microsoft`; an index outside the table
/// gives zeros.
///
/// Inputs: the table in bytes, packed along its last axis, the indices, the scales (each for a
/// block along one axis), optionally the zero points, packed like the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherBlockQuantized {
    /// Bits of a number: 2, 4 or 8.
    pub bits: u32,
    /// Numbers that share a scale.
    pub block_size: usize,
    /// The axis along which they lie; negative ones count from the end.
    pub quantize_axis: i64,
}

/// Packed numbers with the shape that they have unpacked.
struct PackedNumbers {
    bytes: Vec<u8>,
    bits: u32,
    shape: Vec<usize>,
}

impl PackedNumbers {
    fn read(tensor: &Tensor, bits: u32) -> Result<Self, OpError> {
        let mut shape = tensor.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = last.saturating_mul(8 / bits as usize);
        }
        Ok(Self { bytes: tensor.to_vec::<u8>()?, bits, shape })
    }

    fn at(&self, index: usize) -> f64 {
        // The last axis is packed in whole bytes, so rows begin at bytes.
        unpacked(&self.bytes, self.bits, index).map_or(0.0, f64::from)
    }
}

impl GatherBlockQuantized {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let block_size = context.attributes.int_or("block_size", 128)?;
        let block_size = bounds::length(block_size, "attribute 'block_size'")?;
        let gather_axis = context.attributes.int_or("gather_axis", 0)?;
        if gather_axis != 0 || block_size == 0 {
            return Err(OpError::new(format!(
                "gather_axis {gather_axis} and blocks of {block_size}, expected axis 0 of a table \
                 of bytes"
            )));
        }
        let quantize_axis = context.attributes.int_or("quantize_axis", 1)?;
        Ok(Box::new(Self { bits: read_bits(context)?, block_size, quantize_axis }))
    }
}

impl Operator for GatherBlockQuantized {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let scales = inputs.required(2)?;
        expect_type("the table", data.dtype, |dtype| dtype == DataType::Uint8, "UINT8")?;
        expect_float(scales.dtype)?;
        let (Some(dims), Some(picks)) = (&data.shape, &indices.shape) else {
            return Ok(vec![Fact::unranked(scales.dtype)]);
        };
        bounds::axis(self.quantize_axis, dims.len())?;
        let mut rest = dims[1..].to_vec();
        if let Some(last) = rest.last_mut() {
            *last = bounds::product([&*last, &Dim::Known(8 / self.bits as usize)]);
        }
        Ok(vec![Fact::new(scales.dtype, [&picks[..], &rest].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let scales = inputs.required(2)?;
        let table = PackedNumbers::read(inputs.required(0)?, self.bits)?;
        let axis = bounds::axis(self.quantize_axis, table.shape.len())?;
        let mut blocks = table.shape.clone();
        blocks[axis] = blocks[axis].div_ceil(self.block_size);
        if scales.shape() != blocks {
            return Err(OpError::new(format!(
                "scales of shape {:?}, expected {blocks:?}",
                scales.shape()
            )));
        }
        let zeros = inputs.optional(3).map(|t| PackedNumbers::read(t, self.bits)).transpose()?;
        let wider = |zeros: &PackedNumbers| zeros.shape.iter().zip(&blocks).all(|(a, b)| a >= b);
        if zeros.as_ref().is_some_and(|z| z.shape.len() != blocks.len() || !wider(z)) {
            return Err(OpError::new(format!("zero points that do not fit scales {blocks:?}")));
        }
        let middle = f64::from(1_u32 << (self.bits - 1));
        let rows = table.shape[0];
        let rest = &table.shape[1..];
        let indices = inputs.required(1)?;
        let shape = [indices.shape(), rest].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let scale_values = floats(scales)?;
        let offset = |index: &[usize], shape: &[usize]| -> usize {
            index.iter().zip(bounds::steps(shape)).map(|(at, step)| at * step).sum()
        };
        for pick in indices.to_i64_vec()? {
            let row = bounds::axis(pick, rows).ok();
            for inside in bounds::indices(rest) {
                let Some(row) = row else {
                    result.push(0.0);
                    continue;
                };
                let mut index = [&[row], &inside[..]].concat();
                let number = table.at(offset(&index, &table.shape));
                index[axis] /= self.block_size;
                let zero = zeros.as_ref().map_or(middle, |z| z.at(offset(&index, &z.shape)));
                result.push((number - zero) * scale_values[offset(&index, &blocks)]);
            }
        }
        Ok(vec![from_floats(scales.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};
    use galatea_tensor::Tensor;

    #[test]
    fn rows_are_unpacked_and_scaled_by_block() {
        let table = tensor(&[2, 2], &[0x21_u8, 0x43, 0x98, 0xba]);
        let scales = tensor(&[2, 2], &[1.0_f32, 1.0, 1.0, 10.0]);
        let picks = Tensor::vector(vec![1_i64, 7]);
        let list = attributes([("block_size", int(2))]);
        let found = one("com.microsoft:GatherBlockQuantized", 1, &list, &[&table, &picks, &scales]);
        let expected = [0.0_f32, 1.0, 20.0, 30.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(found, tensor(&[2, 4], &expected));
        let zeros = tensor(&[2, 1], &[0_u8, 0x98]);
        let inputs = [Some(&table), Some(&picks), Some(&scales), Some(&zeros)];
        let found = run("com.microsoft:GatherBlockQuantized", 1, &list, &inputs, 1).unwrap();
        let expected = [0.0_f32, 1.0, 10.0, 20.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(found[0], tensor(&[2, 4], &expected));
    }
}

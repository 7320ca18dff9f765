//! `GatherBlockQuantized`: rows of a table of few bits, as floats.

use galatea_tensor::{DataType, Tensor};

use super::mat_mul_n_bits::{read_bits, unpacked};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats, small};

/// `(table[indices] − zero point) · scale`, of domain `com.microsoft`; an index outside the table
/// gives zeros.
///
/// Inputs: the table in bytes, packed along its last axis, or of a small type, the indices, the scales (each for
/// a block along one axis), optionally the zero points, packed like the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherBlockQuantized {
    /// Bits of a number in a table of bytes: 2, 4 or 8.
    pub bits: u32,
    /// Numbers that share a scale.
    pub block_size: usize,
    /// The axis along which they lie; negative ones count from the end.
    pub quantize_axis: i64,
    /// The axis that the indices pick from; 0 for a table of bytes.
    pub gather_axis: i64,
}

/// Numbers of a table with the shape that they have unpacked.
enum TableNumbers {
    Packed { bytes: Vec<u8>, bits: u32, shape: Vec<usize> },
    Small { values: Vec<f64>, shape: Vec<usize> },
}

impl TableNumbers {
    fn read(tensor: &Tensor, bits: u32) -> Result<Self, OpError> {
        let mut shape = tensor.shape().to_vec();
        if matches!(tensor.dtype(), DataType::Small(_)) {
            return Ok(Self::Small { values: small(tensor)?, shape });
        }
        if let Some(last) = shape.last_mut() {
            *last = last.saturating_mul(8 / bits as usize);
        }
        Ok(Self::Packed { bytes: tensor.to_vec::<u8>()?, bits, shape })
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::Packed { shape, .. } | Self::Small { shape, .. } => shape,
        }
    }

    fn at(&self, index: &[usize]) -> f64 {
        let index = offset(index, self.shape());
        match self {
            // The last axis is packed in whole bytes, so rows begin at bytes.
            Self::Packed { bytes, bits, .. } => {
                unpacked(bytes, *bits, index).map_or(0.0, f64::from)
            }
            Self::Small { values, .. } => values.get(index).copied().unwrap_or(0.0),
        }
    }

    /// The zero point where none is given.
    fn middle(&self) -> f64 {
        match self {
            Self::Packed { bits, .. } => f64::from(1_u32 << (bits - 1)),
            Self::Small { .. } => 0.0,
        }
    }
}

/// The place of an element.
fn offset(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(bounds::steps(shape)).map(|(at, step)| at * step).sum()
}

impl GatherBlockQuantized {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let block_size = context.attributes.int_or("block_size", 128)?;
        let block_size = bounds::length(block_size, "attribute 'block_size'")?;
        if block_size == 0 {
            return Err(OpError::new("attribute 'block_size' is 0"));
        }
        let gather_axis = context.attributes.int_or("gather_axis", 0)?;
        let quantize_axis = context.attributes.int_or("quantize_axis", 1)?;
        let bits = read_bits(context)?;
        Ok(Box::new(Self { bits, block_size, quantize_axis, gather_axis }))
    }

    /// Numbers in an element of the table.
    fn packing(&self, dtype: DataType) -> Result<usize, OpError> {
        match dtype {
            DataType::Uint8 if self.gather_axis != 0 => Err(OpError::new(format!(
                "gather_axis {} of a table of bytes, expected 0",
                self.gather_axis
            ))),
            DataType::Uint8 => Ok(8 / self.bits as usize),
            DataType::Small(_) => Ok(1),
            other => {
                let text = "expected UINT8, INT4, UINT4, FLOAT4E2M1 or a type FLOAT8";
                Err(OpError::new(format!("the table has type {other}, {text}")))
            }
        }
    }
}

impl Operator for GatherBlockQuantized {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let indices = inputs.required(1)?;
        let scales = inputs.required(2)?;
        let packing = self.packing(data.dtype)?;
        expect_float(scales.dtype)?;
        let (Some(dims), Some(picks)) = (&data.shape, &indices.shape) else {
            return Ok(vec![Fact::unranked(scales.dtype)]);
        };
        bounds::axis(self.quantize_axis, dims.len())?;
        let axis = bounds::axis(self.gather_axis, dims.len())?;
        let mut dims = dims.clone();
        if let Some(last) = dims.last_mut() {
            *last = bounds::product([&*last, &Dim::Known(packing)]);
        }
        Ok(vec![Fact::new(scales.dtype, [&dims[..axis], picks, &dims[axis + 1..]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let scales = inputs.required(2)?;
        self.packing(data.dtype())?;
        let table = TableNumbers::read(data, self.bits)?;
        let axis = bounds::axis(self.quantize_axis, table.shape().len())?;
        let gather = bounds::axis(self.gather_axis, table.shape().len())?;
        let mut blocks = table.shape().to_vec();
        blocks[axis] = blocks[axis].div_ceil(self.block_size);
        if scales.shape() != blocks {
            return Err(OpError::new(format!(
                "scales of shape {:?}, expected {blocks:?}",
                scales.shape()
            )));
        }
        let zeros = inputs.optional(3).map(|t| TableNumbers::read(t, self.bits)).transpose()?;
        let wider = |zeros: &TableNumbers| zeros.shape().iter().zip(&blocks).all(|(a, b)| a >= b);
        if zeros.as_ref().is_some_and(|z| z.shape().len() != blocks.len() || !wider(z)) {
            return Err(OpError::new(format!("zero points that do not fit scales {blocks:?}")));
        }
        let rows = table.shape()[gather];
        let (before, after) = (&table.shape()[..gather], &table.shape()[gather + 1..]);
        let indices = inputs.required(1)?;
        let shape = [before, indices.shape(), after].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let scale_values = floats(scales)?;
        let picks = indices.to_i64_vec()?;
        for outside in bounds::indices(before) {
            for &pick in &picks {
                let row = bounds::axis(pick, rows).ok();
                for inside in bounds::indices(after) {
                    let Some(row) = row else {
                        result.push(0.0);
                        continue;
                    };
                    let mut index = [&outside[..], &[row], &inside].concat();
                    let number = table.at(&index);
                    index[axis] /= self.block_size;
                    let zero = zeros.as_ref().map_or(table.middle(), |z| z.at(&index));
                    result.push((number - zero) * scale_values[offset(&index, &blocks)]);
                }
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

//! `MatMulBnb4`: a product with weights of four bits as bitsandbytes writes them.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// Values of the 16 numbers of the type FP4.
const FP4: [f32; 16] = [
    0.0,
    0.005_208_333_5,
    0.666_666_7,
    1.0,
    0.333_333_34,
    0.5,
    0.166_666_67,
    0.25,
    -0.0,
    -0.005_208_333_5,
    -0.666_666_7,
    -1.0,
    -0.333_333_34,
    -0.5,
    -0.166_666_67,
    -0.25,
];

/// Values of the 16 numbers of the type NF4 (Dettmers et al. 2023, arXiv 2305.14314).
const NF4: [f32; 16] = [
    -1.0,
    -0.696_192_8,
    -0.525_073_05,
    -0.394_917_5,
    -0.284_441_38,
    -0.184_773_43,
    -0.091_050_036,
    0.0,
    0.079_580_3,
    0.160_930_2,
    0.246_112_3,
    0.337_915_24,
    0.440_709_83,
    0.562_617,
    0.722_956_84,
    1.0,
];

/// `A · Wᵀ`, or `A · W`, of domain `com.microsoft`.
///
/// Inputs: `A` `[…, K]` (`[…, N]` for `A · W`), the numbers of `W` `[N, K]` row by row, two in a byte with the first
/// in the high half, and the greatest magnitude of each block of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulBnb4 {
    /// Columns of `W`.
    pub k: usize,
    /// Rows of `W`.
    pub n: usize,
    /// Weights that share a magnitude.
    pub block_size: usize,
    /// True if weights are NF4, false if FP4.
    pub normal: bool,
    /// True if `W` is transposed.
    pub transposed: bool,
}

impl MatMulBnb4 {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        context.attributes.ignore("training_mode");
        let mut number = |name: &'static str| {
            let found = context.attributes.int(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        let k = bounds::length(number("K")?, "K")?;
        let n = bounds::length(number("N")?, "N")?;
        let block_size = bounds::length(number("block_size")?, "block_size")?;
        if !block_size.is_power_of_two() || block_size < 16 {
            return Err(OpError::new(format!("blocks of {block_size} weights")));
        }
        let normal = match number("quant_type")? {
            0 => false,
            1 => true,
            other => return Err(OpError::new(format!("attribute 'quant_type' is {other}"))),
        };
        let transposed = context.attributes.flag("transB", true)?;
        Ok(Box::new(Self { k, n, block_size, normal, transposed }))
    }

    /// Lengths of a row of `A` and of the result.
    fn lengths(&self) -> (usize, usize) {
        if self.transposed { (self.k, self.n) } else { (self.n, self.k) }
    }

    /// All weights, `[N, K]`.
    fn weights(&self, bytes: &[u8], magnitudes: &[f64]) -> Result<Vec<f64>, OpError> {
        let count = bounded(DataType::Fp64, &[self.n, self.k])?;
        let (held, blocks) = (count.div_ceil(2), count.div_ceil(self.block_size));
        if bytes.len() != held || magnitudes.len() != blocks {
            return Err(OpError::new(format!(
                "{} bytes of weights and {} magnitudes, expected {held} and {blocks}",
                bytes.len(),
                magnitudes.len()
            )));
        }
        let values = if self.normal { &NF4 } else { &FP4 };
        let weight = |at: usize| {
            let byte = bytes[at / 2];
            let code = if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
            f64::from(values[usize::from(code)]) * magnitudes[at / self.block_size]
        };
        Ok((0..count).map(weight).collect())
    }
}

impl Operator for MatMulBnb4 {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        expect_float(a.dtype)?;
        let weights = inputs.required(1)?.dtype;
        expect_type("the weights", weights, |dtype| dtype == DataType::Uint8, "UINT8")?;
        let Some(dims) = &a.shape else { return Ok(vec![Fact::unranked(a.dtype)]) };
        let (inner, columns) = self.lengths();
        match dims.split_last() {
            Some((last, outer)) if last.known().is_none_or(|len| len == inner) => {
                Ok(vec![Fact::new(a.dtype, [outer, &[Dim::Known(columns)]].concat())])
            }
            _ => Err(OpError::new(format!("A is {a}, expected rows of {inner}"))),
        }
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let (inner, columns) = self.lengths();
        let outer = match a.shape().split_last() {
            Some((&len, outer)) if len == inner => outer,
            _ => return Err(OpError::new(format!("A has shape {:?}", a.shape()))),
        };
        let bytes = inputs.required(1)?.to_vec::<u8>()?;
        let weights = self.weights(&bytes, &floats(inputs.required(2)?)?)?;
        let shape = [outer, &[columns]].concat();
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let all = floats(a)?;
        for row in 0..outer.iter().product() {
            let row = &all[row * inner..(row + 1) * inner];
            result.extend((0..columns).map(|column| {
                let weight = |at: usize| match self.transposed {
                    true => weights[column * self.k + at],
                    false => weights[at * self.k + column],
                };
                row.iter().enumerate().map(|(at, x)| x * weight(at)).sum::<f64>()
            }));
        }
        Ok(vec![from_floats(a.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    // Expected values are those of ONNX Runtime.
    #[test]
    fn the_first_of_two_numbers_is_in_the_high_half_of_a_byte() {
        let mut eye = [0.0_f32; 256];
        (0..16).for_each(|at| eye[at * 17] = 1.0);
        let a = tensor(&[16, 16], &eye);
        let bytes: Vec<u8> = (0..16).map(|i: u8| (i << 4) | ((i + 1) % 16)).collect();
        let weights = tensor(&[16], &bytes);
        let magnitudes = tensor(&[2], &[1.0_f32, 2.0]);
        let name = "com.microsoft:MatMulBnb4";
        let list = |kind: i64, transposed: i64| {
            attributes([
                ("K", int(16)),
                ("N", int(2)),
                ("block_size", int(16)),
                ("quant_type", int(kind)),
                ("transB", int(transposed)),
            ])
        };
        let column = |kind: i64, at: usize| -> Vec<f32> {
            let found = one(name, 1, &list(kind, 1), &[&a, &weights, &magnitudes]);
            found.to_vec::<f32>().unwrap().into_iter().skip(at).step_by(2).take(5).collect()
        };
        assert_eq!(column(0, 0), [0.0, 0.005_208_333_5, 0.005_208_333_5, 0.666_666_7, 0.666_666_7]);
        assert_eq!(column(1, 1), [0.159_160_6, 0.321_860_4, 0.321_860_4, 0.492_224_6, 0.492_224_6]);
        let rows = tensor(&[1, 2], &[1.0_f32, 10.0]);
        let found = one(name, 1, &list(0, 0), &[&rows, &weights, &magnitudes]);
        let start = found.to_vec::<f32>().unwrap();
        assert_eq!((found.shape(), start[0]), (&[1, 16][..], 0.0));
        assert!((start[3] - (0.666_666_7 - 13.333_334)).abs() < 1e-5, "{start:?}");
        let short = [Some(&rows), Some(&magnitudes), Some(&magnitudes)];
        assert!(run(name, 1, &list(0, 0), &short, 1).is_err());
        assert!(run(name, 1, &list(2, 0), &short, 1).is_err());
    }
}

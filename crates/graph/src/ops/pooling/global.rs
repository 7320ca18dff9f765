//! `GlobalAveragePool`, `GlobalMaxPool` and `GlobalLpPool`: one element for every plane.

use galatea_tensor::{DataType, Tensor};

use super::average_pool::norm;
use super::window::{channels_first, check_rank, laid_out};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// ONNX `GlobalAveragePool`; `GlobalAveragePoolNhwc` of domain `ai.galatea` has the channels last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalAveragePool {
    /// True if the channels are the last axis of input and output.
    pub channels_last: bool,
}

/// ONNX `GlobalMaxPool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalMaxPool;

/// ONNX `GlobalLpPool`: the p-norm of every plane.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalLpPool {
    /// The order of the norm.
    pub p: f64,
}

fn pooled(data: &Fact, channels_last: bool) -> Result<Vec<Fact>, OpError> {
    values::expect_float(data.dtype)?;
    let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
    check_rank(dims.len())?;
    let channels = if channels_last { dims.len() - 1 } else { 1 };
    let kept = |axis: usize| axis == 0 || axis == channels;
    let one = |(axis, dim): (usize, &Dim)| if kept(axis) { dim.clone() } else { Dim::Known(1) };
    Ok(vec![Fact::new(data.dtype, dims.iter().enumerate().map(one).collect())])
}

fn reduce(
    data: &Tensor,
    channels_last: bool,
    reduce: impl Fn(&[f64]) -> f64,
) -> Result<Vec<Tensor>, OpError> {
    check_rank(data.rank())?;
    let data = channels_first(data, channels_last)?;
    let (planes, spatial) = data.shape().split_at(2);
    let pixels: usize = spatial.iter().product();
    if pixels == 0 {
        return Err(OpError::new(format!("planes of shape {spatial:?} have no elements")));
    }
    let shape = [planes, &vec![1; spatial.len()]].concat();
    bounds::bounded(DataType::Fp64, data.shape())?;
    let result: Vec<f64> = values::floats(&data)?.chunks(pixels).map(reduce).collect();
    let result = values::from_floats(data.dtype(), &shape, result)?;
    Ok(vec![laid_out(&result, channels_last)?])
}

impl GlobalAveragePool {
    /// Opsets of ONNX; there are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { channels_last: false }))
    }

    /// Parses `GlobalAveragePoolNhwc`; there are no attributes.
    pub(super) fn parse_channels_last(
        _: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { channels_last: true }))
    }
}

impl Operator for GlobalAveragePool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        pooled(inputs.required(0)?, self.channels_last)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let mean = |plane: &[f64]| plane.iter().sum::<f64>() / plane.len() as f64;
        reduce(inputs.required(0)?, self.channels_last, mean)
    }
}

impl GlobalMaxPool {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for GlobalMaxPool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        pooled(inputs.required(0)?, false)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        // A NaN wins, wherever it is.
        let greater = |a: f64, x: f64| if x > a || x.is_nan() { x } else { a };
        let largest = |plane: &[f64]| plane.iter().copied().fold(f64::NEG_INFINITY, greater);
        reduce(inputs.required(0)?, false, largest)
    }
}

impl GlobalLpPool {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { p: super::order(context)? }))
    }
}

impl Operator for GlobalLpPool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        pooled(inputs.required(0)?, false)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        reduce(inputs.required(0)?, false, |plane| norm(plane.iter().copied(), self.p))
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, one, run, tensor};

    #[test]
    fn every_plane_becomes_one_element() {
        let data = counting(&[1, 2, 2, 2]);
        let of = |name: &str, opset| one(name, opset, &attributes([]), &[&data]);
        assert_eq!(of("GlobalAveragePool", 1), tensor(&[1, 2, 1, 1], &[1.5_f32, 5.5]));
        assert_eq!(of("GlobalMaxPool", 1), tensor(&[1, 2, 1, 1], &[3_f32, 7.0]));
        let last = of("ai.galatea:GlobalAveragePoolNhwc", 1);
        assert_eq!(last, tensor(&[1, 1, 1, 2], &[3_f32, 4.0]));
        let norm = one("GlobalLpPool", 2, &attributes([]), &[&tensor(&[1, 1, 2], &[3_f32, 4.0])]);
        assert_eq!(norm, tensor(&[1, 1, 1], &[5_f32]));
    }

    #[test]
    fn a_nan_anywhere_in_the_plane_wins() {
        for at in 0..3 {
            let mut all = [1_f32, f32::INFINITY, 2.0];
            all[at] = f32::NAN;
            let found = one("GlobalMaxPool", 1, &attributes([]), &[&tensor(&[1, 1, 3], &all)]);
            assert!(found.to_vec::<f32>().unwrap()[0].is_nan(), "{at}");
        }
    }

    #[test]
    fn a_matrix_has_no_planes() {
        let data = counting(&[2, 2]);
        assert!(run("GlobalAveragePool", 1, &attributes([]), &[Some(&data)], 1).is_err());
    }
}

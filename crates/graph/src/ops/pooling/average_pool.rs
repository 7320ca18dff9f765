//! `AveragePool` and `LpPool`: the mean and the p-norm of what the window sees.

use galatea_tensor::{DataType, Tensor};

use super::window::{PoolWindow, WindowPosition};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// ONNX `AveragePool`; `AveragePoolNhwc` of domain `ai.galatea` has the channels last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AveragePool {
    /// The window.
    pub window: PoolWindow,
    /// True if zeros of the padding count as elements.
    pub count_include_pad: bool,
}

/// ONNX `LpPool`: the p-norm; padding adds nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct LpPool {
    /// The window.
    pub window: PoolWindow,
    /// The order of the norm.
    pub p: f64,
}

/// Applies `reduce` to what the window sees of every plane.
fn pool(
    window: &PoolWindow,
    data: &Tensor,
    reduce: impl Fn(&[f64], &WindowPosition) -> f64,
) -> Result<Tensor, OpError> {
    let data = window.image(data)?;
    let (planes, spatial) = data.shape().split_at(2);
    let (output, places) = window.places(spatial)?;
    let shape = [planes, &output].concat();
    let mut result = Vec::with_capacity(bounds::bounded(DataType::Fp64, &shape)?);
    let pixels: usize = spatial.iter().product();
    let all = values::floats(&data)?;
    for plane in 0..planes.iter().product() {
        let image = &all[plane * pixels..(plane + 1) * pixels];
        result.extend(places.iter().map(|place| reduce(image, place)));
    }
    window.laid_out(&values::from_floats(data.dtype(), &shape, result)?)
}

impl AveragePool {
    /// Reads the attributes of `AveragePool`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, false)
    }

    /// Reads the attributes of `AveragePoolNhwc`.
    pub(super) fn parse_channels_last(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Self::read(context, true)
    }

    /// Reads the attributes.
    pub(crate) fn read(
        context: &mut ParseContext<'_>,
        channels_last: bool,
    ) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, channels_last)?;
        let count_include_pad = context.attributes.flag("count_include_pad", false)?;
        Ok(Box::new(Self { window, count_include_pad }))
    }
}

impl Operator for AveragePool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        values::expect_float(data.dtype)?;
        Ok(vec![self.window.infer(data)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let mean = |image: &[f64], place: &WindowPosition| {
            let count = if self.count_include_pad { place.with_pads } else { place.seen.len() };
            let sum: f64 = place.seen.iter().map(|&at| image[at]).sum();
            // A window that sees only padding has the mean of zeros.
            if count == 0 { 0.0 } else { sum / count as f64 }
        };
        Ok(vec![pool(&self.window, inputs.required(0)?, mean)?])
    }
}

impl LpPool {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, false)?;
        Ok(Box::new(Self { window, p: super::order(context)? }))
    }
}

/// The p-norm of elements.
pub(super) fn norm(elements: impl Iterator<Item = f64>, p: f64) -> f64 {
    elements.map(|value| value.abs().powf(p)).sum::<f64>().powf(1.0 / p)
}

impl Operator for LpPool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        values::expect_float(data.dtype)?;
        Ok(vec![self.window.infer(data)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let norm = |image: &[f64], place: &WindowPosition| {
            norm(place.seen.iter().map(|&at| image[at]), self.p)
        };
        Ok(vec![pool(&self.window, inputs.required(0)?, norm)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, ints, one, tensor};

    #[test]
    fn padding_counts_where_asked() {
        let data = tensor(&[1, 1, 2], &[2_f32, 4.0]);
        let of = |include| {
            let list = [
                ("kernel_shape", ints(&[2])),
                ("pads", ints(&[1, 1])),
                ("count_include_pad", int(include)),
            ];
            one("AveragePool", 11, &attributes(list), &[&data]).to_vec::<f32>().unwrap()
        };
        assert_eq!(of(0), [2.0, 3.0, 4.0]);
        assert_eq!(of(1), [1.0, 3.0, 2.0]);
    }

    #[test]
    fn a_ceiled_window_counts_no_element_beyond_the_pads() {
        let data = tensor(&[1, 1, 3], &[1_f32, 2.0, 6.0]);
        let list = [
            ("kernel_shape", ints(&[2])),
            ("strides", ints(&[2])),
            ("ceil_mode", int(1)),
            ("count_include_pad", int(1)),
        ];
        let result = one("AveragePool", 19, &attributes(list), &[&data]);
        assert_eq!(result, tensor(&[1, 1, 2], &[1.5_f32, 6.0]));
    }

    #[test]
    fn channels_last_and_norms() {
        let list = attributes([("kernel_shape", ints(&[2, 2]))]);
        let last = one("ai.galatea:AveragePoolNhwc", 1, &list, &[&counting(&[1, 2, 2, 2])]);
        assert_eq!(last, tensor(&[1, 1, 1, 2], &[3_f32, 4.0]));
        let list = attributes([("kernel_shape", ints(&[2]))]);
        let result = one("LpPool", 11, &list, &[&tensor(&[1, 1, 2], &[3_f32, -4.0])]);
        assert_eq!(result, tensor(&[1, 1, 1], &[5_f32]));
    }
}

//! `MaxpoolWithMask`: the largest of the elements under a window that come before a hidden one.

use galatea_tensor::{DataType, Tensor};

use super::window::PoolWindow;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_type, floats, from_floats};

/// `MaxpoolWithMask` of domain `com.microsoft`, as ONNX Runtime computes it.
///
/// Inputs: an image `[N, C, spatial…]` and a mask of `INT32` with the same spatial lengths. A row of a window
/// ends before an element that the mask hides with 0, the first of the plane excepted. A window
/// without elements gives the lowest number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxPoolWithMask {
    /// The window.
    pub window: PoolWindow,
}

impl MaxPoolWithMask {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let window = PoolWindow::read(context, false)?;
        context.attributes.ignore("storage_order");
        Ok(Box::new(Self { window }))
    }
}

impl Operator for MaxPoolWithMask {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the image", x.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        let mask = inputs.required(1)?.dtype;
        expect_type("the mask", mask, |dtype| dtype == DataType::Int32, "INT32")?;
        Ok(vec![self.window.infer(x)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = self.window.image(inputs.required(0)?)?;
        let mask = inputs.required(1)?;
        let (planes, spatial) = x.shape().split_at(2);
        let fits = mask.rank() == x.rank() && mask.shape()[2..] == *spatial;
        if !fits || mask.elements() == 0 {
            let text = format!("a mask of shape {:?} for {:?}", mask.shape(), x.shape());
            return Err(OpError::new(text));
        }
        let (output, places) = self.window.places(spatial)?;
        let shape = [planes, &output].concat();
        let mut result = Vec::with_capacity(bounds::bounded(DataType::Fp64, &shape)?);
        let pixels: usize = spatial.iter().product();
        let width = spatial.last().copied().unwrap_or(1).max(1);
        let masks = mask.shape()[0] * mask.shape()[1];
        let mask = mask.to_i64_vec()?;
        let all = floats(&x)?;
        for plane in 0..planes.iter().product() {
            // ONNX Runtime starts a plane's mask here.
            let start = plane * pixels % masks;
            let image = &all[plane * pixels..(plane + 1) * pixels];
            for place in &places {
                let rows = place.seen.chunk_by(|a, b| a / width == b / width);
                let seen = rows
                    .flat_map(|row| row.iter().take_while(|&&at| at == 0 || mask[start + at] != 0));
                result.push(seen.map(|&at| image[at]).fold(f64::from(f32::MIN), f64::max));
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, counting, ints, one, run, tensor};

    const NAME: &str = "com.microsoft:MaxpoolWithMask";

    // Expected values are those of ONNX Runtime.
    #[test]
    fn a_row_ends_before_what_is_hidden() {
        let list = attributes([("kernel_shape", ints(&[2, 2])), ("strides", ints(&[1, 1]))]);
        let mask: Vec<i32> = (0..16).map(|at| i32::from(at % 3 != 0)).collect();
        let mask = tensor(&[1, 1, 4, 4], &mask);
        let found = one(NAME, 1, &list, &[&counting(&[1, 1, 4, 4]), &mask]);
        let expected = [5.0_f32, 5.0, 2.0, 8.0, 5.0, 11.0, 8.0, 14.0, 14.0];
        assert_eq!(found, tensor(&[1, 1, 3, 3], &expected));
        let strided = attributes([("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))]);
        let found = one(NAME, 1, &strided, &[&counting(&[1, 2, 4, 4]), &mask]);
        let expected = [5.0_f32, 2.0, 8.0, 14.0, 21.0, 18.0, 24.0, 30.0];
        assert_eq!(found, tensor(&[1, 2, 2, 2], &expected));
    }

    #[test]
    fn a_window_without_elements_gives_the_lowest_number() {
        let list = attributes([("kernel_shape", ints(&[2]))]);
        let mask = tensor(&[1, 1, 4], &[1, 1, 0, 1]);
        let found = one(NAME, 1, &list, &[&counting(&[1, 1, 4]), &mask]);
        assert_eq!(found, tensor(&[1, 1, 3], &[1.0, 1.0, f32::MIN]));
        let short: Tensor = tensor(&[1, 1, 3], &[1, 1, 1]);
        let inputs = [Some(&counting(&[1, 1, 4])), Some(&short)];
        assert!(run(NAME, 1, &list, &inputs, 1).is_err());
    }
}

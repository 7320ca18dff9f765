//! `CropAndResize`: regions of images in one size.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// `CropAndResize` of domain `com.microsoft`.
///
/// Inputs: images `[N, C, H, W]`, regions `[R, 4]` (`y1, x1, y2, x2` as parts of an image), the image of
/// each region `[R]`, and height and width of the result. Output: `[R, C, height, width]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CropAndResize {
    /// True if the nearest element is taken rather than a mean of four.
    pub nearest: bool,
    /// Value outside an image.
    pub extrapolation_value: f32,
}

/// Position in an axis.
struct AxisPosition {
    /// The element before, and the nearest one.
    before: usize,
    nearest: usize,
    behind: usize,
    /// Weight of the element behind.
    weight: f64,
}

/// Positions of the elements of a crop along an axis; `None` outside the image.
///
/// Single precision as in ONNX Runtime: the nearest of two elements hangs on the last bit of a position between them.
fn positions(start: f32, end: f32, input: usize, output: usize) -> Vec<Option<AxisPosition>> {
    let last = input.saturating_sub(1) as f32;
    let step = (end - start) * last / output.saturating_sub(1) as f32;
    let place = |at: usize| match output {
        1 => 0.5 * (start + end) * last,
        _ => start * last + at as f32 * step,
    };
    let index = |value: f32| num_traits::cast::<f32, usize>(value).unwrap_or(0);
    let position = |place: f32| AxisPosition {
        before: index(place.floor()),
        nearest: index(place.round()),
        behind: index(place.ceil()),
        weight: f64::from(place - place.floor()),
    };
    let within = |place: &f32| (0.0..=last).contains(place);
    (0..output).map(|at| Some(place(at)).filter(within).map(position)).collect()
}

#[allow(clippy::cast_possible_truncation, reason = "edges are FP32 or less in the model")]
fn singles(edges: Vec<f64>) -> Vec<f32> {
    edges.into_iter().map(|edge| edge as f32).collect()
}

impl CropAndResize {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let nearest = context.attributes.choice("mode", &["bilinear", "nearest"], 0)? == 1;
        let extrapolation_value = context.attributes.float_or("extrapolation_value", 0.0)?;
        Ok(Box::new(Self { nearest, extrapolation_value }))
    }

    fn element(&self, plane: &[f64], width: usize, y: &AxisPosition, x: &AxisPosition) -> f64 {
        if self.nearest {
            return plane[y.nearest * width + x.nearest];
        }
        let row = |at: usize| {
            let (left, right) = (plane[at * width + x.before], plane[at * width + x.behind]);
            left + (right - left) * x.weight
        };
        let top = row(y.before);
        top + (row(y.behind) - top) * y.weight
    }
}

impl Operator for CropAndResize {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        let dim = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let size = inputs.required(3)?.lengths().unwrap_or_default();
        let size = |at: usize| size.get(at).cloned().unwrap_or(Dim::Unknown);
        let shape = vec![dim(inputs.required(1)?, 0), dim(x, 1), size(0), size(1)];
        Ok(vec![Fact::new(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let regions = inputs.required(1)?;
        let (&[images, channels, height, width], &[count, 4]) = (x.shape(), regions.shape()) else {
            let text = format!("images {:?} and regions {:?}", x.shape(), regions.shape());
            return Err(OpError::new(format!("{text}, expected [N, C, H, W] and [R, 4]")));
        };
        let of = inputs.required(2)?.to_i64_vec()?;
        let size = bounds::lengths(&inputs.required(3)?.to_i64_vec()?, "a length of crops")?;
        let &[out_height, out_width] = size.as_slice() else {
            return Err(OpError::new(format!("{} lengths of crops, expected 2", size.len())));
        };
        if of.len() != count || out_height == 0 || out_width == 0 {
            let text = format!("{} numbers of images for {count} regions of {size:?}", of.len());
            return Err(OpError::new(text));
        }
        let shape = [count, channels, out_height, out_width];
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let regions = singles(floats(regions)?);
        let all = floats(x)?;
        for (region, &image) in regions.chunks_exact(4).zip(&of) {
            let image = usize::try_from(image).ok().filter(|&image| image < images);
            let image = image
                .ok_or_else(|| OpError::new(format!("a region is of none of {images} images")))?;
            let rows = positions(region[0], region[2], height, out_height);
            let columns = positions(region[1], region[3], width, out_width);
            for channel in 0..channels {
                let start = (image * channels + channel) * height * width;
                let plane = &all[start..start + height * width];
                for y in &rows {
                    result.extend(columns.iter().map(|x| match (y, x) {
                        (Some(y), Some(x)) if !plane.is_empty() => self.element(plane, width, y, x),
                        _ => f64::from(self.extrapolation_value),
                    }));
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, counting, one, run, tensor, text};

    // Expected values are those of ONNX Runtime.
    #[test]
    fn corners_fall_on_one_another_and_outside_is_a_value() {
        let x = counting(&[1, 2, 3, 4]);
        let regions = tensor(&[1, 4], &[0.6_f32, 0.1, 0.1, 0.9]);
        let size = tensor(&[2], &[2_i32, 3]);
        let image = tensor(&[1], &[0_i32]);
        let name = "com.microsoft:CropAndResize";
        let found = one(name, 1, &attributes([]), &[&x, &regions, &image, &size]);
        let found = found.to_vec::<f32>().unwrap();
        let expected = [5.1, 6.3, 7.5, 1.1, 2.3, 3.5, 17.1, 18.3, 19.5, 13.1, 14.3, 15.5];
        assert!(found.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-5));
        let beyond = tensor(&[1, 4], &[-0.5_f32, 0.2, 0.6, 1.2]);
        let list = attributes([
            ("mode", text("nearest")),
            ("extrapolation_value", AttributeValue::Float(-7.0)),
        ]);
        let found = one(name, 1, &list, &[&x, &beyond, &image, &size]);
        let expected = [-7.0_f32, -7.0, -7.0, 5.0, 6.0, -7.0, -7.0, -7.0, -7.0, 17.0, 18.0, -7.0];
        assert_eq!(found, tensor(&[1, 2, 2, 3], &expected));
        let outside = tensor(&[1], &[1_i32]);
        let inputs = [Some(&x), Some(&regions), Some(&outside), Some(&size)];
        assert!(run(name, 1, &attributes([]), &inputs, 1).is_err());
    }
}

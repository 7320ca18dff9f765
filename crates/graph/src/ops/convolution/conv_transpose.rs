//! `ConvTranspose`: the gradient of a convolution with respect to its input.

use galatea_tensor::{DataType, Tensor};

use super::conv::{bias, list};
use super::window::{ConvGeometry, WindowPadding};
use crate::collect::collected_some;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// ONNX `ConvTranspose`: inputs `X` `[N, C, spatial…]`, `W` `[C, M / group, kernel…]` and
/// optionally `B` `[M]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvTranspose {
    /// Lengths of the window; those of the weights if absent.
    pub kernel_shape: Option<Vec<usize>>,
    /// Steps of the window; empty means ones.
    pub strides: Vec<usize>,
    /// Distances of neighbours inside the window; empty means ones.
    pub dilations: Vec<usize>,
    /// Lengths cut from the full result.
    pub pads: WindowPadding,
    /// Lengths added behind each axis; empty means nothing.
    pub output_padding: Vec<usize>,
    /// The wanted spatial lengths; the pads follow from them.
    pub output_shape: Option<Vec<usize>>,
    /// Into how many independent groups the channels fall.
    pub group: usize,
}

impl ConvTranspose {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context)?))
    }

    pub(super) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let kernel_shape = context.attributes.ints("kernel_shape")?;
        let output_shape = context.attributes.ints("output_shape")?;
        let lengths =
            |all: Option<Vec<i64>>, name| all.map(|all| bounds::lengths(&all, name)).transpose();
        let group = bounds::length(context.attributes.int_or("group", 1)?, "attribute 'group'")?;
        Ok(Self {
            kernel_shape: lengths(kernel_shape, "kernel_shape")?,
            strides: list(context, "strides")?,
            dilations: list(context, "dilations")?,
            pads: WindowPadding::parse(context)?,
            output_padding: list(context, "output_padding")?,
            output_shape: lengths(output_shape, "output_shape")?.filter(|all| !all.is_empty()),
            group: group.max(1),
        })
    }

    fn check_lists(&self, rank: usize, kernel: &[usize]) -> Result<(), OpError> {
        let fits = |list: &[usize]| list.is_empty() || list.len() == rank;
        let fit = fits(&self.strides)
            && fits(&self.dilations)
            && fits(&self.output_padding)
            && self.output_shape.as_ref().is_none_or(|shape| shape.len() == rank)
            && self.kernel_shape.as_ref().is_none_or(|shape| shape == kernel)
            && kernel.len() == rank
            && !matches!(&self.pads, WindowPadding::Explicit(pads) if !pads.is_empty() && pads.len() != 2 * rank);
        if !fit || kernel.contains(&0) || self.strides.contains(&0) || self.dilations.contains(&0) {
            return Err(OpError::new(format!("{self:?} does not fit a kernel of {kernel:?}")));
        }
        Ok(())
    }

    /// Pads and output length of one axis.
    fn resolve(&self, at: usize, len: usize, kernel: &[usize]) -> Option<(usize, usize, usize)> {
        let of = |list: &[usize], default| list.get(at).copied().unwrap_or(default);
        let stride = of(&self.strides, 1);
        let extent =
            kernel[at].checked_sub(1)?.checked_mul(of(&self.dilations, 1))?.checked_add(1)?;
        let full = len
            .saturating_sub(1)
            .checked_mul(stride)?
            .checked_add(of(&self.output_padding, 0))?
            .checked_add(extent)?;
        let same = matches!(self.pads, WindowPadding::SameUpper | WindowPadding::SameLower);
        let wanted = match &self.output_shape {
            Some(shape) => Some(shape[at]),
            None if same => Some(len.checked_mul(stride)?),
            None => None,
        };
        if let Some(wanted) = wanted {
            let total = full.saturating_sub(wanted);
            let less = total / 2;
            let more = total - total / 2;
            let upper = self.pads == WindowPadding::SameUpper;
            let (begin, end) = if upper { (less, more) } else { (more, less) };
            return Some((begin, end, wanted));
        }
        let (begin, end) = match &self.pads {
            WindowPadding::Explicit(pads) if !pads.is_empty() => {
                (pads[at], pads[at + kernel.len()])
            }
            _ => (0, 0),
        };
        Some((begin, end, full.checked_sub(begin)?.checked_sub(end)?))
    }

    /// Effective pads and output lengths.
    ///
    /// Shapes: both lists hold the spatial lengths only.
    ///
    /// # Errors
    /// Fails when the pads leave nothing, or a list has the wrong length.
    pub fn geometry(
        &self,
        input_spatial: &[usize],
        kernel_spatial: &[usize],
    ) -> Result<ConvGeometry, OpError> {
        self.check_lists(input_spatial.len(), kernel_spatial)?;
        let mut geometry =
            ConvGeometry { pads_begin: Vec::new(), pads_end: Vec::new(), output: Vec::new() };
        for (at, &len) in input_spatial.iter().enumerate() {
            let (begin, end, output) = self.resolve(at, len, kernel_spatial).ok_or_else(|| {
                OpError::new(format!("{self:?} leaves nothing of an axis of length {len}"))
            })?;
            geometry.pads_begin.push(begin);
            geometry.pads_end.push(end);
            geometry.output.push(output);
        }
        Ok(geometry)
    }

    /// Adds every input element, times the window, to the output.
    fn spread(
        &self,
        x: &[f64],
        x_shape: &[usize],
        w: &[f64],
        w_shape: &[usize],
        geometry: &ConvGeometry,
        result: &mut [f64],
    ) {
        let input = &x_shape[2..];
        let kernel = &w_shape[2..];
        let output = &geometry.output;
        let (pixels, cells): (usize, usize) = (input.iter().product(), kernel.iter().product());
        let plane: usize = output.iter().product();
        let steps = bounds::steps(output);
        let in_group = x_shape[1] / self.group;
        let out_group = w_shape[1];
        let of = |list: &[usize], at: usize| list.get(at).copied().unwrap_or(1);
        for (pixel, from) in bounds::indices(input).enumerate() {
            for (cell, inside) in bounds::indices(kernel).enumerate() {
                let mut target = Some(0);
                for at in 0..input.len() {
                    let padded =
                        from[at] * of(&self.strides, at) + inside[at] * of(&self.dilations, at);
                    let place = padded.checked_sub(geometry.pads_begin[at]);
                    let place = place.filter(|&place| place < output[at]);
                    target = target.zip(place).map(|(sum, place)| sum + place * steps[at]);
                }
                let Some(target) = target else { continue };
                for n in 0..x_shape[0] {
                    for ic in 0..x_shape[1] {
                        let value = x[(n * x_shape[1] + ic) * pixels + pixel];
                        let first = n * out_group * self.group + (ic / in_group) * out_group;
                        for oc in 0..out_group {
                            result[(first + oc) * plane + target] +=
                                value * w[(ic * out_group + oc) * cells + cell];
                        }
                    }
                }
            }
        }
    }
}

impl Operator for ConvTranspose {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        values::expect_float(x.dtype)?;
        let (Some(image), Some(weights)) = (&x.shape, &w.shape) else {
            return Ok(vec![Fact::unranked(x.dtype)]);
        };
        if image.len() < 3 || image.len() != weights.len() {
            return Err(OpError::new(format!(
                "an image of rank {} with weights of rank {}",
                image.len(),
                weights.len()
            )));
        }
        let channels = bounds::product([&weights[1], &Dim::Known(self.group)]);
        let mut shape = vec![image[0].clone(), channels];
        let kernel: Option<Vec<usize>> = collected_some(&mut weights[2..].iter().map(Dim::known));
        let spatial: Option<Vec<usize>> = collected_some(&mut image[2..].iter().map(Dim::known));
        match (kernel, spatial, &self.output_shape) {
            (Some(kernel), Some(spatial), _) => {
                let output = self.geometry(&spatial, &kernel)?.output;
                shape.extend(output.into_iter().map(Dim::Known));
            }
            (_, _, Some(wanted)) if wanted.len() + 2 == image.len() => {
                shape.extend(wanted.iter().map(|&len| Dim::Known(len)));
            }
            _ => shape.resize(image.len(), Dim::Unknown),
        }
        Ok(vec![Fact::new(x.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let image = x.shape();
        let weights = w.shape();
        let fits = image.len() >= 3
            && image.len() == weights.len()
            && image[1] == weights[0]
            && image[1].is_multiple_of(self.group)
            && image[1] > 0;
        if !fits {
            return Err(OpError::new(format!(
                "weights of shape {weights:?} do not fit an image of shape {image:?} in {} groups",
                self.group
            )));
        }
        let geometry = self.geometry(&image[2..], &weights[2..])?;
        let channels = weights[1].saturating_mul(self.group);
        let shape = [&[image[0], channels], &geometry.output[..]].concat();
        let mut result = vec![0.0; bounds::bounded(DataType::Fp64, &shape)?];
        let x_values = values::floats(x)?;
        let w_values = values::floats(w)?;
        self.spread(&x_values, image, &w_values, weights, &geometry, &mut result);
        if let Some(bias) = bias(inputs.optional(2), channels)? {
            let plane = geometry.output.iter().product::<usize>().max(1);
            for (at, value) in result.iter_mut().enumerate() {
                *value += bias[(at / plane) % channels];
            }
        }
        Ok(vec![values::from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor, text};

    #[test]
    fn windows_overlap_and_add() {
        let x = counting(&[1, 1, 2, 2]);
        let w = tensor(&[1, 1, 2, 2], &[1_f32; 4]);
        let expected = [0_f32, 1.0, 1.0, 2.0, 6.0, 4.0, 2.0, 5.0, 3.0];
        let result = one("ConvTranspose", 11, &attributes([]), &[&x, &w]);
        assert_eq!(result, tensor(&[1, 1, 3, 3], &expected));
        let bias = tensor(&[1], &[10_f32]);
        let cut = attributes([("pads", ints(&[1, 1, 1, 1]))]);
        let result = one("ConvTranspose", 11, &cut, &[&x, &w, &bias]);
        assert_eq!(result, tensor(&[1, 1, 1, 1], &[16_f32]));
    }

    #[test]
    fn strides_groups_and_wanted_shapes() {
        let x = counting(&[1, 2, 2]);
        let w = tensor(&[2, 1, 2], &[1_f32, 2.0, 3.0, 4.0]);
        let list = [("strides", ints(&[2])), ("group", int(2)), ("output_padding", ints(&[1]))];
        let result = one("ConvTranspose", 11, &attributes(list), &[&x, &w]);
        let expected = [0_f32, 0.0, 1.0, 2.0, 0.0, 6.0, 8.0, 9.0, 12.0, 0.0];
        assert_eq!(result, tensor(&[1, 2, 5], &expected));
        let same = attributes([("auto_pad", text("SAME_UPPER")), ("strides", ints(&[2]))]);
        let w = tensor(&[2, 1, 3], &[1_f32; 6]);
        assert_eq!(one("ConvTranspose", 11, &same, &[&x, &w]).shape(), [1, 1, 4]);
        let wanted = attributes([("output_shape", ints(&[6])), ("strides", ints(&[2]))]);
        assert_eq!(one("ConvTranspose", 11, &wanted, &[&x, &w]).shape(), [1, 1, 6]);
    }

    #[test]
    fn pads_that_leave_nothing_are_an_error() {
        let x = counting(&[1, 1, 2]);
        let w = counting(&[1, 1, 2]);
        let list = attributes([("pads", ints(&[4, 4]))]);
        assert!(run("ConvTranspose", 11, &list, &[Some(&x), Some(&w)], 1).is_err());
    }
}

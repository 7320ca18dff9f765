//! `DeformConv`: a convolution whose window is bent for each output position.

use galatea_tensor::{DataType, Tensor};

use super::conv::{Conv, bias};
use super::window::ConvGeometry;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `DeformConv`.
///
/// Inputs: `X`, weights, offsets `[N, groups · cells · axes, output…]` that move each cell of the
/// window, optionally a bias and a mask `[N, groups · cells, output…]` of factors.
///
/// Source: Dai et al. 2017, "Deformable Convolutional Networks", arXiv 1703.06211.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeformConv {
    /// The geometry before it is bent.
    pub conv: Conv,
    /// Into how many groups with offsets of their own the channels fall.
    pub offset_group: usize,
}

/// Elements around a place and their weights.
type DeformTaps = Vec<(usize, f64)>;

/// Offsets and factors that deform the window, for a batch.
struct WindowBend {
    offsets: Vec<f64>,
    mask: Option<Vec<f64>>,
    groups: usize,
    cells: usize,
    places: usize,
}

/// A cell of the window at a place of the result.
#[derive(Clone, Copy)]
struct BentCell {
    image: usize,
    /// The group of channels that have offsets of their own.
    group: usize,
    cell: usize,
    place: usize,
}

impl WindowBend {
    /// By how far a cell moves along an axis of `axes`.
    fn offset(&self, at: BentCell, axis: usize, axes: usize) -> f64 {
        let row = ((at.image * self.groups + at.group) * self.cells + at.cell) * axes + axis;
        self.offsets[row * self.places + at.place]
    }

    fn factor(&self, at: BentCell) -> f64 {
        let row = (at.image * self.groups + at.group) * self.cells + at.cell;
        self.mask.as_ref().map_or(1.0, |mask| mask[row * self.places + at.place])
    }
}

impl DeformConv {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let offset_group = context.attributes.int_or("offset_group", 1)?;
        let offset_group = bounds::length(offset_group, "attribute 'offset_group'")?;
        if offset_group == 0 {
            return Err(OpError::new("attribute 'offset_group' is 0"));
        }
        let conv = Conv::read(context, false)?;
        Ok(Box::new(Self { conv, offset_group }))
    }

    fn bend(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
        batch: usize,
        kernel: &[usize],
        geometry: &ConvGeometry,
    ) -> Result<WindowBend, OpError> {
        let cells: usize = kernel.iter().product();
        let read = |tensor: &Tensor, rows: usize, what: &str| {
            let shape = [&[batch, rows], &geometry.output[..]].concat();
            if tensor.shape() == shape {
                return floats(tensor);
            }
            Err(OpError::new(format!("{what} have shape {:?}, expected {shape:?}", tensor.shape())))
        };
        let rows = self.offset_group.saturating_mul(cells);
        let offsets = read(inputs.required(2)?, rows.saturating_mul(kernel.len()), "the offsets")?;
        let mask = inputs.optional(4).map(|mask| read(mask, rows, "the factors")).transpose()?;
        let places = geometry.output.iter().product();
        Ok(WindowBend { offsets, mask, groups: self.offset_group, cells, places })
    }

    /// Where a cell of the window is along each axis.
    #[allow(clippy::cast_precision_loss, reason = "an axis has fewer than 2^31 elements")]
    fn place(&self, output: &[usize], cell: &[usize], geometry: &ConvGeometry) -> Vec<f64> {
        let of = |list: &[usize], axis: usize| list.get(axis).copied().unwrap_or(1);
        (0..cell.len())
            .map(|axis| {
                let start = output[axis] * of(&self.conv.strides, axis);
                let inside = cell[axis] * of(&self.conv.dilations, axis);
                (start + inside) as f64 - geometry.pads_begin[axis] as f64
            })
            .collect()
    }
}

/// The elements around a place, interpolated along straight lines; outside the image is zero.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "only places inside the image become indices"
)]
fn taps(place: &[f64], image: &[usize]) -> DeformTaps {
    let steps = bounds::steps(image);
    let mut all: DeformTaps = vec![(0, 1.0)];
    for (axis, &at) in place.iter().enumerate() {
        let first = at.floor();
        let rest = at - at.floor();
        let ends = [(first, 1.0 - rest), (first + 1.0, rest)];
        let inside = |end: &(f64, f64)| (0.0..image[axis] as f64).contains(&end.0);
        let ends: Vec<(f64, f64)> = ends.into_iter().filter(inside).collect();
        all = all
            .iter()
            .flat_map(|&(offset, weight)| {
                ends.iter().map(move |&(at, share)| (offset, at as usize, weight * share))
            })
            .map(|(offset, at, weight)| (offset + at * steps[axis], weight))
            .collect();
    }
    all
}

impl Operator for DeformConv {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        expect_float(x.dtype)?;
        Ok(vec![self.conv.output_fact(x, w, x.dtype)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        self.conv.check(x.shape(), w.shape())?;
        let image = &x.shape()[2..];
        let kernel = &w.shape()[2..];
        let batch = x.shape()[0];
        let channels = x.shape()[1];
        let out_channels = w.shape()[0];
        let geometry = self.conv.geometry(image, kernel)?;
        if !channels.is_multiple_of(self.offset_group) {
            return Err(OpError::new(format!(
                "{channels} channels in {} groups of offsets",
                self.offset_group
            )));
        }
        let bend = self.bend(inputs, batch, kernel, &geometry)?;
        let bias = bias(inputs.optional(3), out_channels)?;
        let values = floats(x)?;
        let weights = floats(w)?;
        let shape = [&[batch, out_channels], &geometry.output[..]].concat();
        let mut result = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let pixels = image.iter().product::<usize>();
        let cells = bend.cells;
        let in_group = w.shape()[1];
        let per_offset = channels / self.offset_group;
        let out_group = out_channels / self.conv.group;
        for (place, output) in bounds::indices(&geometry.output).enumerate() {
            for n in 0..batch {
                // What the bent window sees, by channel and cell.
                let mut seen = vec![0.0; channels * cells];
                for (cell, inside) in bounds::indices(kernel).enumerate() {
                    for group in 0..self.offset_group {
                        let at = BentCell { image: n, group, cell, place };
                        let mut moved = self.place(&output, &inside, &geometry);
                        for (axis, along) in moved.iter_mut().enumerate() {
                            *along += bend.offset(at, axis, kernel.len());
                        }
                        let taps = taps(&moved, image);
                        for channel in group * per_offset..(group + 1) * per_offset {
                            let plane = &values[(n * channels + channel) * pixels..];
                            let sum: f64 = taps.iter().map(|&(at, w)| plane[at] * w).sum();
                            seen[channel * cells + cell] = sum * bend.factor(at);
                        }
                    }
                }
                for oc in 0..out_channels {
                    let first = oc / out_group * in_group * cells;
                    let row = &weights[oc * in_group * cells..][..in_group * cells];
                    let sum: f64 = seen[first..].iter().zip(row).map(|(x, w)| x * w).sum();
                    result[(n * out_channels + oc) * bend.places + place] =
                        sum + bias.as_ref().map_or(0.0, |bias| bias[oc]);
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor};

    #[test]
    fn without_offsets_it_is_a_convolution() {
        let x = counting(&[2, 4, 5, 4]);
        let w = counting(&[2, 2, 3, 2]);
        let list = [
            ("group", int(2)),
            ("pads", ints(&[1, 0, 1, 1])),
            ("strides", ints(&[2, 1])),
            ("dilations", ints(&[1, 2])),
        ];
        let plain = one("Conv", 11, &attributes(list.clone()), &[&x, &w]);
        let places = plain.shape()[2] * plain.shape()[3];
        let zeros = vec![0.0_f32; 2 * 12 * places];
        let offsets = tensor(&[2, 12, plain.shape()[2], plain.shape()[3]], &zeros);
        assert_eq!(one("DeformConv", 19, &attributes(list), &[&x, &w, &offsets]), plain);
    }

    #[test]
    fn offsets_move_cells_and_factors_weigh_them() {
        let x = counting(&[1, 1, 1, 3]);
        let w = tensor(&[1, 1, 1, 1], &[1.0_f32]);
        let offsets = tensor(&[1, 2, 1, 3], &[0.0_f32, 0.0, 0.0, 0.5, 1.0, 1.0]);
        let mask = tensor(&[1, 1, 1, 3], &[2.0_f32, 10.0, 1.0]);
        let inputs = [Some(&x), Some(&w), Some(&offsets), None, Some(&mask)];
        let found = run("DeformConv", 19, &attributes([]), &inputs, 1).unwrap();
        assert_eq!(found[0], tensor(&[1, 1, 1, 3], &[1.0_f32, 20.0, 0.0]));
        let wrong = [Some(&x), Some(&w), Some(&mask)];
        assert!(run("DeformConv", 19, &attributes([]), &wrong, 1).is_err());
    }
}

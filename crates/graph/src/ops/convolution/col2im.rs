//! `Col2Im`: what a sliding window saw, added up to an image.

use galatea_tensor::Tensor;

use super::conv::list;
use super::window::{SlidingWindow, WindowPadding};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{TensorValues, expect_number};

/// ONNX `Col2Im`.
///
/// Inputs: columns `[N, C · cells, positions]`, the image's spatial lengths, the window's lengths.
/// Output: `[N, C, image…]`; elements that several windows saw are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Col2Im {
    /// Steps of the window; empty means ones.
    pub strides: Vec<usize>,
    /// Distances of neighbours inside the window; empty means ones.
    pub dilations: Vec<usize>,
    /// How far the window left the image.
    pub pads: WindowPadding,
}

impl Col2Im {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self {
            strides: list(context, "strides")?,
            dilations: list(context, "dilations")?,
            pads: WindowPadding::Explicit(list(context, "pads")?),
        }))
    }
}

/// For every window position, which elements of the image its cells are.
struct ImageCells {
    taps: Vec<Vec<(usize, usize)>>,
    pixels: usize,
    cells: usize,
    planes: usize,
}

impl ImageCells {
    fn fold<T: Copy + Default>(&self, columns: &[T], add: impl Fn(T, T) -> T) -> Vec<T> {
        let mut image = vec![T::default(); self.planes * self.pixels];
        for plane in 0..self.planes {
            for (position, taps) in self.taps.iter().enumerate() {
                for &(pixel, cell) in taps {
                    let slot = &mut image[plane * self.pixels + pixel];
                    let row = plane * self.cells + cell;
                    *slot = add(*slot, columns[row * self.taps.len() + position]);
                }
            }
        }
        image
    }
}

impl Operator for Col2Im {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let columns = inputs.required(0)?;
        expect_number(columns.dtype)?;
        let image = inputs.required(1)?;
        let image = image
            .lengths()
            .or_else(|| bounds::vector_len(image).map(|rank| vec![Dim::Unknown; rank]));
        let Some(image) = image else { return Ok(vec![Fact::unranked(columns.dtype)]) };
        let dim = |axis: usize| {
            let found = columns.shape.as_ref().and_then(|dims| dims.get(axis));
            found.cloned().unwrap_or(Dim::Unknown)
        };
        let block = inputs.required(2)?.lengths();
        let channels = block.map_or(Dim::Unknown, |block| bounds::quotient([&dim(1)], &block));
        Ok(vec![Fact::new(columns.dtype, [&[dim(0), channels], &image[..]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let columns = inputs.required(0)?;
        let image = bounds::lengths(&inputs.required(1)?.to_i64_vec()?, "the image")?;
        let block = bounds::lengths(&inputs.required(2)?.to_i64_vec()?, "the window")?;
        let window = SlidingWindow {
            kernel: &block,
            strides: &self.strides,
            dilations: &self.dilations,
            pads: &self.pads,
            ceil: false,
        };
        let geometry = window.geometry(&image)?;
        let cells = galatea_tensor::checked_elements(&block)?;
        let positions = galatea_tensor::checked_elements(&geometry.output)?;
        let (batch, channels) = match *columns.shape() {
            [batch, rows, found] if found == positions && rows.is_multiple_of(cells) => {
                (batch, rows / cells)
            }
            _ => {
                return Err(OpError::new(format!(
                    "columns of shape {:?}, expected [N, C · {cells}, {positions}] for windows \
                     {block:?} of an image {image:?}",
                    columns.shape()
                )));
            }
        };
        let shape = [&[batch, channels], &image[..]].concat();
        bounded(columns.dtype(), &shape)?;
        let taps = |position: Vec<usize>| window.taps(&image, &geometry, &position);
        let places = ImageCells {
            taps: bounds::indices(&geometry.output).map(taps).collect(),
            pixels: image.iter().product(),
            cells,
            planes: batch * channels,
        };
        let values = match TensorValues::read(columns)? {
            TensorValues::Floats(all) => TensorValues::Floats(places.fold(&all, |a, b| a + b)),
            TensorValues::Integers(all) => {
                TensorValues::Integers(places.fold(&all, i128::wrapping_add))
            }
            _ => return Err(OpError::new(format!("columns of type {}", columns.dtype()))),
        };
        Ok(vec![values.write(columns.dtype(), &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, ints, one, run, tensor};

    #[test]
    fn what_windows_share_is_summed_and_pads_are_dropped() {
        let columns = tensor(&[1, 2, 3], &[1_i32, 2, 3, 10, 20, 30]);
        let image = Tensor::vector(vec![4_i64]);
        let block = Tensor::vector(vec![2_i64]);
        let found = one("Col2Im", 18, &attributes([]), &[&columns, &image, &block]);
        assert_eq!(found, tensor(&[1, 1, 4], &[1_i32, 12, 23, 30]));
        let padded = attributes([("pads", ints(&[1, 1])), ("strides", ints(&[2]))]);
        let found = one("Col2Im", 18, &padded, &[&columns, &image, &block]);
        assert_eq!(found, tensor(&[1, 1, 4], &[10_i32, 2, 20, 3]));
        let wrong = Tensor::vector(vec![9_i64]);
        let inputs = [Some(&columns), Some(&wrong), Some(&block)];
        assert!(run("Col2Im", 18, &attributes([]), &inputs, 1).is_err());
    }
}

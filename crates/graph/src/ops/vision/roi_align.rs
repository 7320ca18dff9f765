//! `RoiAlign` and `MaxRoiPool`: regions of an image brought to one size.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// No cell of a region is sampled at more positions along an axis: a region from outside may be as
/// large as a float goes.
const MAX_SAMPLES: f64 = 16384.0;

/// ONNX `RoiAlign`: the mean or the largest of values interpolated inside each cell of a region.
///
/// Inputs: `X` `[N, C, H, W]`, regions `[R, 4]` as `x1, y1, x2, y2`, and the image of each region.
/// Output: `[R, C, output_height, output_width]`.
///
/// Source: He et al. 2017, "Mask R-CNN", arXiv 1703.06870.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoiAlign {
    /// Rows and columns of cells.
    pub output: [usize; 2],
    /// Samples along each axis of a cell; 0 means as many as the cell has elements.
    pub sampling_ratio: usize,
    /// Factor from the coordinates of the regions to those of the image.
    pub spatial_scale: f32,
    /// True if elements have their centres at half positions.
    pub half_pixel: bool,
    /// True if the largest value counts instead of the mean.
    pub max: bool,
}

/// A cell is sampled at no more positions.
const MAX_CELL_SAMPLES: usize = 1 << 22;

/// Places where the cells of a region are sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionCells {
    /// For each row of cells, the places along the height of the image.
    rows: Vec<Vec<f64>>,
    /// For each column of cells, the places along its width.
    columns: Vec<Vec<f64>>,
}

impl RegionCells {
    /// Returns the number of elements that a cell reads, with repetitions: the same for all cells.
    #[must_use]
    pub fn taps(&self) -> usize {
        let first = |all: &[Vec<f64>]| all.first().map_or(0, Vec::len);
        first(&self.rows) * first(&self.columns) * 4
    }

    /// The elements that a cell, given by row and column, reads of an image of this height and width, with their
    /// shares of its mean.
    #[allow(clippy::cast_precision_loss, reason = "the number of samples is bounded")]
    pub fn cell(
        &self,
        cell: [usize; 2],
        image: [usize; 2],
    ) -> impl Iterator<Item = (usize, f64)> + '_ {
        let share = 4.0 / self.taps().max(1) as f64;
        let (ys, xs) = (&self.rows[cell[0]], &self.columns[cell[1]]);
        let [height, width] = image;
        let places = ys.iter().flat_map(move |&y| xs.iter().map(move |&x| (y, x)));
        places.flat_map(move |(y, x)| {
            corners(y, x, height, width).map(|(at, weight)| (at, weight * share))
        })
    }
}

/// Position and weight of the four elements around a place.
type CornerWeights = [(usize, f64); 4];

impl RoiAlign {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut length = |name: &'static str, default: i64| {
            bounds::length(context.attributes.int_or(name, default)?, name)
        };
        let output = [length("output_height", 1)?, length("output_width", 1)?];
        let sampling_ratio = length("sampling_ratio", 0)?;
        let modes = ["half_pixel", "output_half_pixel"];
        let half_pixel = context.opset >= 16
            && context.attributes.choice("coordinate_transformation_mode", &modes, 0)? == 0;
        Ok(Box::new(Self {
            output,
            sampling_ratio,
            spatial_scale: context.attributes.float_or("spatial_scale", 1.0)?,
            half_pixel,
            max: context.attributes.choice("mode", &["avg", "max"], 0)? == 1,
        }))
    }

    /// Where the cells of one region are sampled along an axis.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of samples is bounded"
    )]
    fn places(&self, start: f64, end: f64, cells: usize) -> Result<Vec<Vec<f64>>, OpError> {
        let shift = if self.half_pixel { 0.5 } else { 0.0 };
        let scale = f64::from(self.spatial_scale);
        let start = start * scale - shift;
        let end = end * scale - shift;
        let extent = if self.half_pixel { end - start } else { (end - start).max(1.0) };
        let cell = extent / cells as f64;
        let samples = match self.sampling_ratio {
            0 => cell.ceil().max(0.0),
            ratio => ratio as f64,
        };
        if !extent.is_finite() || samples > MAX_SAMPLES {
            return Err(OpError::new(format!(
                "a region from {start} to {end} in {cells} cells needs more than {MAX_SAMPLES} \
                 samples a cell"
            )));
        }
        let place = |at: usize, index: usize| {
            start + at as f64 * cell + (index as f64 + 0.5) * cell / samples
        };
        Ok((0..cells)
            .map(|at| (0..samples as usize).map(|index| place(at, index)).collect())
            .collect())
    }

    /// Returns where the cells of a region, `x1, y1, x2, y2`, are sampled.
    ///
    /// # Errors
    /// Fails when a cell needs too many samples.
    pub fn cells(&self, region: [f64; 4]) -> Result<RegionCells, OpError> {
        let rows = self.places(region[1], region[3], self.output[0])?;
        let columns = self.places(region[0], region[2], self.output[1])?;
        let first = |all: &[Vec<f64>]| all.first().map_or(0, Vec::len);
        let samples = first(&rows).saturating_mul(first(&columns));
        if samples > MAX_CELL_SAMPLES {
            return Err(OpError::new(format!(
                "a cell of the region {region:?} needs {samples} samples, at most \
                 {MAX_CELL_SAMPLES} are possible"
            )));
        }
        Ok(RegionCells { rows, columns })
    }

    /// The value of one cell.
    #[allow(clippy::cast_precision_loss, reason = "the number of samples is bounded")]
    fn pool(&self, plane: &[f64], samples: &[CornerWeights]) -> f64 {
        let terms = |corners: &CornerWeights| corners.map(|(at, weight)| weight * plane[at]);
        if self.max {
            let largest = |corners| terms(corners).into_iter().fold(f64::NEG_INFINITY, f64::max);
            return samples.iter().map(largest).reduce(f64::max).unwrap_or(0.0);
        }
        let sum: f64 = samples.iter().map(|corners| terms(corners).iter().sum::<f64>()).sum();
        sum / samples.len().max(1) as f64
    }
}

/// The two elements around a place along an axis with their weights; `None` beyond the image.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the place is inside the image"
)]
fn neighbours(place: f64, len: usize) -> Option<[(usize, f64); 2]> {
    if !(-1.0..=len as f64).contains(&place) || len == 0 {
        return None;
    }
    let place = place.max(0.0);
    let low = place as usize;
    if low + 1 >= len {
        return Some([(len - 1, 1.0), (len - 1, 0.0)]);
    }
    let rest = place - low as f64;
    Some([(low, 1.0 - rest), (low + 1, rest)])
}

/// The four elements around a place with their weights; all zero beyond the image.
fn corners(y: f64, x: f64, height: usize, width: usize) -> CornerWeights {
    let (Some(rows), Some(columns)) = (neighbours(y, height), neighbours(x, width)) else {
        return [(0, 0.0); 4];
    };
    let corner = |row: usize, column: usize| {
        (rows[row].0 * width + columns[column].0, rows[row].1 * columns[column].1)
    };
    [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)]
}

fn check(x: &[usize], rois: &[usize], columns: usize) -> Result<(), OpError> {
    if x.len() == 4 && rois.len() == 2 && rois[1] == columns {
        return Ok(());
    }
    Err(OpError::new(format!(
        "regions of shape {rois:?} of an image of shape {x:?}, expected [R, {columns}] and 4 axes"
    )))
}

fn image_of(found: i64, images: usize) -> Result<usize, OpError> {
    usize::try_from(found)
        .ok()
        .filter(|image| *image < images)
        .ok_or_else(|| OpError::new(format!("a region of image {found} in a batch of {images}")))
}

/// `[R, C, height, width]`.
fn output_fact(
    inputs: OperatorInputs<'_, Fact>,
    output: [usize; 2],
    columns: usize,
) -> Result<Fact, OpError> {
    let x = inputs.required(0)?;
    let rois = inputs.required(1)?;
    expect_float(x.dtype)?;
    if let (Some(x), Some(rois)) = (x.known_shape(), rois.known_shape()) {
        check(&x, &rois, columns)?;
    }
    let dim = |fact: &Fact, axis: usize| {
        let found = fact.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
        found.unwrap_or(Dim::Unknown)
    };
    let [height, width] = output.map(Dim::Known);
    Ok(Fact::new(x.dtype, vec![dim(rois, 0), dim(x, 1), height, width]))
}

impl Operator for RoiAlign {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![output_fact(inputs, self.output, 4)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let rois = inputs.required(1)?;
        check(x.shape(), rois.shape(), 4)?;
        let images = inputs.required(2)?.to_i64_vec()?;
        let count = rois.shape()[0];
        let channels = x.shape()[1];
        if images.len() != count {
            return Err(OpError::new(format!("{} images for {count} regions", images.len())));
        }
        let plane = [x.shape()[2], x.shape()[3]];
        let area = plane[0] * plane[1];
        let shape = [count, channels, self.output[0], self.output[1]];
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        if area == 0 {
            return Ok(vec![Tensor::zeros(x.dtype(), &shape)?]);
        }
        let all = floats(x)?;
        for (roi, &image) in floats(rois)?.chunks(4).zip(&images) {
            let image = image_of(image, x.shape()[0])?;
            let RegionCells { rows, columns } = self.cells([roi[0], roi[1], roi[2], roi[3]])?;
            for channel in 0..channels {
                let plane_values = &all[(image * channels + channel) * area..][..area];
                for ys in &rows {
                    for xs in &columns {
                        let corners = |y: f64, x: f64| corners(y, x, plane[0], plane[1]);
                        let place = |y: &f64| xs.iter().map(|x| corners(*y, *x)).collect();
                        let samples: Vec<CornerWeights> =
                            ys.iter().flat_map(|y| -> Vec<CornerWeights> { place(y) }).collect();
                        result.push(self.pool(plane_values, &samples));
                    }
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

/// ONNX `MaxRoiPool`: the largest element of each cell of a region, whose edges are rounded to
/// whole elements. Regions are `[R, 5]`: image, `x1, y1, x2, y2`.
///
/// Source: Girshick 2015, "Fast R-CNN", arXiv 1504.08083.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxRoiPool {
    /// Rows and columns of cells.
    pub pooled: [usize; 2],
    /// Factor from the coordinates of the regions to those of the image.
    pub spatial_scale: f32,
}

impl MaxRoiPool {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let pooled = context.attributes.ints("pooled_shape")?.unwrap_or_default();
        let &[height, width] = &pooled[..] else {
            return Err(OpError::new(format!("pooled_shape {pooled:?}, expected two lengths")));
        };
        let pooled = [height, width].map(|n| bounds::length(n, "pooled_shape"));
        let [height, width] = pooled;
        let spatial_scale = context.attributes.float_or("spatial_scale", 1.0)?;
        Ok(Box::new(Self { pooled: [height?, width?], spatial_scale }))
    }

    /// First and last element (exclusive) of each cell along an axis.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "cells are cut to the image"
    )]
    fn cells(&self, start: f64, end: f64, cells: usize, len: usize) -> Vec<(usize, usize)> {
        let scale = f64::from(self.spatial_scale);
        let start = (start * scale).round();
        let end = (end * scale).round();
        let cell = (end - start + 1.0).max(1.0) / cells as f64;
        let inside = |edge: f64| (start + edge).clamp(0.0, len as f64) as usize;
        (0..cells)
            .map(|at| (inside((at as f64 * cell).floor()), inside(((at + 1) as f64 * cell).ceil())))
            .collect()
    }
}

impl Operator for MaxRoiPool {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![output_fact(inputs, self.pooled, 5)?])
    }

    #[allow(clippy::cast_possible_truncation, reason = "a whole number in a float tensor")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let rois = inputs.required(1)?;
        check(x.shape(), rois.shape(), 5)?;
        let &[images, channels, height, width] = x.shape() else {
            return Err(OpError::new("expected 4 axes"));
        };
        let shape = [rois.shape()[0], channels, self.pooled[0], self.pooled[1]];
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let all = floats(x)?;
        for roi in floats(rois)?.chunks(5) {
            let image = image_of(roi[0] as i64, images)?;
            let rows = self.cells(roi[2], roi[4], self.pooled[0], height);
            let columns = self.cells(roi[1], roi[3], self.pooled[1], width);
            for channel in 0..channels {
                let start = (image * channels + channel) * height * width;
                for &(top, bottom) in &rows {
                    for &(left, right) in &columns {
                        let row = |y: usize| (left..right).map(move |x| start + y * width + x);
                        let cell = (top..bottom).flat_map(row).map(|at| all[at]);
                        result.push(cell.reduce(f64::max).unwrap_or(0.0));
                    }
                }
            }
        }
        Ok(vec![from_floats(x.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, ints, one, run, tensor, text};

    #[test]
    fn cells_are_sampled_at_their_middle() {
        let x = counting(&[1, 1, 4, 4]);
        let rois = tensor(&[1, 4], &[0.0_f32, 0.0, 4.0, 4.0]);
        let images = Tensor::vector(vec![0_i64]);
        let list =
            [("output_height", int(2)), ("output_width", int(2)), ("sampling_ratio", int(1))];
        let found = one("RoiAlign", 16, &attributes(list.clone()), &[&x, &rois, &images]);
        assert_eq!(found, tensor(&[1, 1, 2, 2], &[2.5_f32, 4.5, 10.5, 12.5]));
        let old = one("RoiAlign", 10, &attributes(list), &[&x, &rois, &images]);
        assert_eq!(old, tensor(&[1, 1, 2, 2], &[5.0_f32, 7.0, 13.0, 15.0]));
        let max = attributes([("mode", text("max")), ("sampling_ratio", int(1))]);
        let largest = one("RoiAlign", 16, &max, &[&x, &rois, &images]);
        assert_eq!(largest.item::<f32>().unwrap(), 2.5);
    }

    #[test]
    fn a_region_without_end_or_of_no_image_is_an_error() {
        let x = counting(&[1, 1, 2, 2]);
        let images = Tensor::vector(vec![0_i64]);
        let huge = tensor(&[1, 4], &[0.0_f32, 0.0, 1e30, 1.0]);
        let list = attributes([]);
        assert!(run("RoiAlign", 16, &list, &[Some(&x), Some(&huge), Some(&images)], 1).is_err());
        let rois = tensor(&[1, 4], &[0.0_f32; 4]);
        let beyond = Tensor::vector(vec![1_i64]);
        assert!(run("RoiAlign", 16, &list, &[Some(&x), Some(&rois), Some(&beyond)], 1).is_err());
    }

    #[test]
    fn the_largest_element_of_each_whole_cell() {
        let x = counting(&[1, 1, 4, 4]);
        let rois = tensor(&[1, 5], &[0.0_f32, 0.0, 0.0, 2.0, 3.0]);
        let list = attributes([("pooled_shape", ints(&[2, 1]))]);
        let found = one("MaxRoiPool", 1, &list, &[&x, &rois]);
        assert_eq!(found, tensor(&[1, 1, 2, 1], &[6.0_f32, 14.0]));
    }
}

//! `GridSample`: an image read at the positions that a grid names.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::picks;
use crate::ops::values::{TensorValues, expect_float, floats, integer_range};

/// How values between elements are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMode {
    /// Along straight lines between neighbours.
    Linear,
    /// The nearest element; of two equally near ones the even one.
    Nearest,
    /// By cubic convolution of four neighbours along each axis (factor −0.75).
    Cubic,
}

/// Values outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePadding {
    /// Zeros.
    Zeros,
    /// The nearest element.
    Border,
    /// The image, mirrored at its edges.
    Reflection,
}

/// ONNX `GridSample` over any number of spatial axes.
///
/// Inputs: `X` `[N, C, D1 … Dr]` and a grid `[N, O1 … Or, r]` of positions, last axis of the image
/// first, where −1 and 1 are the edges of the image. Output: `[N, C, O1 … Or]`.
///
/// Source of the cubic weights: Keys 1981, "Cubic convolution interpolation for digital image
/// processing".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridSample {
    /// How to interpolate.
    pub mode: SampleMode,
    /// Values outside the image.
    pub padding: SamplePadding,
    /// True if −1 and 1 are the centres of the outermost elements instead of their outer edges.
    pub align_corners: bool,
}

/// Elements and their weights; `None` is outside and counts as zero.
type GridTaps = Vec<(Option<usize>, f64)>;

/// Elements along one axis that a position reads, with their weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisTaps {
    places: [Option<usize>; 4],
    weights: [f64; 4],
    count: usize,
}

impl AxisTaps {
    /// Elements and weights; `None` is outside and counts as zero.
    pub fn iter(&self) -> impl Iterator<Item = (Option<usize>, f64)> + '_ {
        self.places.iter().copied().zip(self.weights).take(self.count)
    }
}

impl GridSample {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let names = if context.opset < 20 {
            ["bilinear", "nearest", "bicubic"]
        } else {
            ["linear", "nearest", "cubic"]
        };
        let mode = context.attributes.choice("mode", &names, 0)?;
        let paddings = ["zeros", "border", "reflection"];
        let padding = context.attributes.choice("padding_mode", &paddings, 0)?;
        Ok(Box::new(Self {
            mode: [SampleMode::Linear, SampleMode::Nearest, SampleMode::Cubic][mode],
            padding: [SamplePadding::Zeros, SamplePadding::Border, SamplePadding::Reflection]
                [padding],
            align_corners: context.attributes.flag("align_corners", false)?,
        }))
    }

    /// Where the image begins and ends along an axis, in elements.
    #[allow(clippy::cast_precision_loss, reason = "an axis has fewer than 2^31 elements")]
    fn edges(&self, len: usize) -> (f64, f64) {
        if self.align_corners { (0.0, len as f64 - 1.0) } else { (-0.5, len as f64 - 0.5) }
    }

    /// A position in elements from one where −1 and 1 are the edges.
    #[allow(clippy::cast_precision_loss, reason = "an axis has fewer than 2^31 elements")]
    fn position(&self, relative: f64, len: usize) -> f64 {
        let (low, high) = self.edges(len);
        let exact = (relative + 1.0) / 2.0 * (high - low) + low;
        let exact = if self.mode == SampleMode::Nearest { exact.round_ties_even() } else { exact };
        match self.padding {
            // The four elements that cubic weights belong to are found before they are moved
            // inside, as PyTorch and ONNX Runtime do it.
            SamplePadding::Border if self.mode != SampleMode::Cubic => {
                exact.clamp(0.0, len as f64 - 1.0)
            }
            SamplePadding::Reflection => reflect(exact, low, high),
            SamplePadding::Border | SamplePadding::Zeros => exact,
        }
    }

    /// The element at a whole position that may be outside.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are bounded before they become indices"
    )]
    fn element(&self, at: f64, len: usize) -> Option<usize> {
        let last = len as f64 - 1.0;
        let inside = match self.padding {
            SamplePadding::Zeros if !(0.0..=last).contains(&at) => return None,
            SamplePadding::Zeros | SamplePadding::Border => at,
            SamplePadding::Reflection => {
                let (low, high) = self.edges(len);
                reflect(at, low, high).trunc()
            }
        };
        Some(inside.clamp(0.0, last) as usize)
    }

    /// Returns what a position reads of an axis, where -1 and 1 are its edges.
    #[must_use]
    pub fn taps(&self, relative: f64, len: usize) -> AxisTaps {
        let at = self.position(relative, len);
        let element = |at: f64| self.element(at, len);
        if self.mode == SampleMode::Nearest {
            let places = [element(at), None, None, None];
            return AxisTaps { places, weights: [1.0, 0.0, 0.0, 0.0], count: 1 };
        }
        let first = at.floor();
        let rest = at - first;
        if self.mode == SampleMode::Linear {
            let places = [element(first), element(first + 1.0), None, None];
            return AxisTaps { places, weights: [1.0 - rest, rest, 0.0, 0.0], count: 2 };
        }
        let weights = [far(1.0 + rest), near(rest), near(1.0 - rest), far(2.0 - rest)];
        let places = [-1.0, 0.0, 1.0, 2.0].map(|step| element(first + step));
        AxisTaps { places, weights, count: 4 }
    }

    fn output(image: &[Dim], grid: &[Dim]) -> Result<Vec<Dim>, OpError> {
        let rank = image.len();
        let fits = rank >= 3
            && rank == grid.len()
            && grid[rank - 1].known().is_none_or(|parts| parts == rank - 2)
            && image[0].known().is_none_or(|n| grid[0].known().is_none_or(|m| m == n));
        if !fits {
            let show = |dims: &[Dim]| dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(",");
            return Err(OpError::new(format!(
                "a grid [{}] does not fit an image [{}]",
                show(grid),
                show(image)
            )));
        }
        Ok([&image[..2], &grid[1..rank - 1]].concat())
    }

    /// Elements and their weights for each position of the output, by batch and place.
    fn samples(&self, image: &[usize], grid: &[f64]) -> Vec<Vec<(Option<usize>, f64)>> {
        let spatial = &image[2..];
        let steps = bounds::steps(spatial);
        let combine = |relative: &[f64]| {
            let mut all = vec![(Some(0), 1.0)];
            for (axis, relative) in relative.iter().rev().enumerate() {
                let taps = self.taps(*relative, spatial[axis]);
                let step = steps[axis];
                all = all
                    .iter()
                    .flat_map(|&(offset, weight): &(Option<usize>, f64)| {
                        taps.iter().map(move |(at, share)| {
                            let place = offset.zip(at).map(|(offset, at)| offset + at * step);
                            (place, weight * share)
                        })
                    })
                    .collect();
            }
            all
        };
        grid.chunks(spatial.len()).map(combine).collect()
    }
}

/// Mirrored at both ends until it is inside.
fn reflect(at: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if (low..=high).contains(&at) {
        return at;
    }
    if range <= 0.0 || !at.is_finite() {
        return low;
    }
    let (beyond, from_low) = if at < low { (low - at, true) } else { (at - high, false) };
    let turns = (beyond / range).floor();
    let rest = beyond % range;
    // Each turn changes the end at which the rest is counted.
    if (turns % 2.0 == 0.0) == from_low { low + rest } else { high - rest }
}

const CUBIC: f64 = -0.75;

/// The cubic weight of an element at most one away.
fn near(x: f64) -> f64 {
    ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0
}

/// The cubic weight of an element between one and two away.
fn far(x: f64) -> f64 {
    ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC
}

impl Operator for GridSample {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let grid = inputs.required(1)?;
        expect_float(grid.dtype)?;
        let (Some(image), Some(places)) = (&x.shape, &grid.shape) else {
            return Ok(vec![Fact::unranked(x.dtype)]);
        };
        Ok(vec![Fact::new(x.dtype, Self::output(image, places)?)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let grid = inputs.required(1)?;
        let dims = |shape: &[usize]| shape.iter().map(|&len| Dim::Known(len)).collect::<Vec<_>>();
        let shape = Self::output(&dims(x.shape()), &dims(grid.shape()))?;
        let shape: Vec<usize> = shape.iter().filter_map(Dim::known).collect();
        let count = bounded(DataType::Fp64, &shape)?;
        if count > 0 && x.elements() == 0 {
            return Err(OpError::new(format!("an image of shape {:?} has no elements", x.shape())));
        }
        let samples = self.samples(x.shape(), &floats(grid)?);
        let channels = x.shape()[1];
        let plane = x.shape()[2..].iter().product::<usize>();
        let places: usize = shape[2..].iter().product();
        let sources = (0..count).map(|at| {
            let channel = at / places;
            let place = at % places;
            (channel * plane, &samples[channel / channels * places + place])
        });
        if self.mode == SampleMode::Nearest {
            // Elements are only moved, so they may have any type.
            let mut offsets = sources.map(|(start, taps)| taps[0].0.map(|at| start + at));
            return Ok(vec![picks::picked(x, &shape, &mut offsets)?]);
        }
        let sum = |read: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let of = |(start, taps): (usize, &GridTaps)| {
                taps.iter().map(|(at, w)| at.map_or(0.0, |at| w * read(start + at))).sum()
            };
            sources.map(of).collect()
        };
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "ONNX interpolates integers as floats and truncates the result"
        )]
        let values = match TensorValues::read(x)? {
            TensorValues::Floats(all) => TensorValues::Floats(sum(&|at| all[at])),
            TensorValues::Integers(all) => {
                let mixed = sum(&|at| all[at] as f64);
                // Cubic weights overshoot at edges, which must not wrap around.
                let (least, most) = integer_range(x.dtype()).unwrap_or((i128::MIN, i128::MAX));
                let whole = |value: f64| (value as i128).clamp(least, most);
                TensorValues::Integers(mixed.into_iter().map(whole).collect())
            }
            _ => {
                return Err(OpError::new(format!(
                    "elements of type {} cannot be interpolated",
                    x.dtype()
                )));
            }
        };
        Ok(vec![values.write(x.dtype(), &shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, int, one, run, tensor, text};

    fn sample(list: &[(&str, crate::AttributeValue)], x: f32, y: f32) -> f32 {
        let list = list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let grid = tensor(&[1, 1, 1, 2], &[x, y]);
        one("GridSample", 20, &list, &[&counting(&[1, 1, 2, 2]), &grid]).item().unwrap()
    }

    #[test]
    fn corners_are_edges_or_centres() {
        assert_eq!(sample(&[("align_corners", int(1))], 1.0, -1.0), 1.0);
        assert_eq!(sample(&[("align_corners", int(1))], 0.0, 0.0), 1.5);
        assert_eq!(sample(&[], 0.5, -0.5), 1.0);
        // A quarter of the last element; the rest is outside.
        assert_eq!(sample(&[], 1.0, 1.0), 0.75);
    }

    #[test]
    fn outside_is_zero_or_the_border_or_a_mirror() {
        let nearest = ("mode", text("nearest"));
        let pad = |name| [nearest.clone(), ("padding_mode", text(name))];
        assert_eq!(sample(&pad("zeros"), 3.0, 0.4), 0.0);
        assert_eq!(sample(&pad("border"), 3.0, 0.4), 3.0);
        assert_eq!(sample(&pad("reflection"), 2.4, 0.4), 2.0);
        assert_eq!(reflect(-4.2, 0.0, 3.0), 3.0 - (4.2 - 3.0));
        assert_eq!(reflect(f64::INFINITY, 0.0, 3.0), 0.0);
    }

    #[test]
    fn integers_saturate_where_a_cubic_overshoots() {
        let row = [0_u8, 0, 255, 255];
        let x = tensor(&[1, 1, 4, 4], &[row; 4].concat());
        let grid = tensor(&[1, 1, 2, 2], &[-0.6_f32, 0.0, 0.6, 0.0]);
        let list = attributes([("mode", text("cubic")), ("padding_mode", text("border"))]);
        assert_eq!(one("GridSample", 20, &list, &[&x, &grid]), tensor(&[1, 1, 1, 2], &[0_u8, 255]));
    }

    #[test]
    fn cubic_weights_sum_to_one_and_volumes_have_three_axes() {
        for x in [0.0, 0.3, 0.5, 0.9] {
            let sum = far(1.0 + x) + near(x) + near(1.0 - x) + far(2.0 - x);
            assert!((sum - 1.0).abs() < 1e-12);
        }
        let grid = tensor(&[1, 1, 1, 1, 3], &[0.0_f32; 3]);
        let list = attributes([]);
        let volume = one("GridSample", 20, &list, &[&counting(&[1, 1, 2, 2, 2]), &grid]);
        assert_eq!(volume.item::<f32>().unwrap(), 3.5);
        let wrong = [Some(&counting(&[1, 1, 2, 2])), Some(&grid)];
        assert!(run("GridSample", 20, &list, &wrong, 1).is_err());
    }
}

//! Where an output position lies in the input, and which input elements make it up.

use crate::error::OpError;
use crate::operator::ParseContext;

/// Mapping of an output position to the input, by ONNX's name of the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinateMode {
    /// Centres of elements: `(x + 1/2) / scale - 1/2`.
    HalfPixel,
    /// Same as `HalfPixel`, around the middle of an output whose length was rounded.
    HalfPixelSymmetric,
    /// Same as `HalfPixel`, but a single output element reads the first.
    PytorchHalfPixel,
    /// The first and last elements fall on one another.
    AlignCorners,
    /// `x / scale`.
    Asymmetric,
    /// `(x + 1/2) / scale`.
    TfHalfPixelForNn,
    /// A region of interest is spread over the output.
    TfCropAndResize,
}

/// Which neighbour `nearest` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearestMode {
    /// The nearer one; halves go down.
    RoundPreferFloor,
    /// The nearer one; halves go up.
    RoundPreferCeil,
    /// The one before.
    Floor,
    /// The one behind.
    Ceil,
    /// The one before, but the one behind when the output is smaller (opset 10).
    Simple,
}

/// How elements between positions come about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResizeInterpolation {
    /// The nearest element.
    Nearest(NearestMode),
    /// A straight line between two.
    Linear,
    /// A cubic through four, with this coefficient (Keys 1981, doi 10.1109/TASSP.1981.1163711).
    Cubic(f64),
}

impl CoordinateMode {
    /// Reads the attribute.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let names = [
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_half_pixel_for_nn",
            "tf_crop_and_resize",
        ];
        let all = [
            Self::HalfPixel,
            Self::HalfPixelSymmetric,
            Self::PytorchHalfPixel,
            Self::AlignCorners,
            Self::Asymmetric,
            Self::TfHalfPixelForNn,
            Self::TfCropAndResize,
        ];
        Ok(all[context.attributes.choice("coordinate_transformation_mode", &names, 0)?])
    }
}

/// One axis to resize.
#[derive(Clone, Copy, Debug)]
pub(super) struct AxisPlan {
    /// Length of the input.
    pub(super) input: usize,
    /// Length of the output.
    pub(super) output: usize,
    /// Output per input.
    pub(super) scale: f64,
    /// First and last position of the region of interest, as parts of the input.
    pub(super) roi: (f64, f64),
}

/// The input elements of an output position with their weights; `None` outside the input.
pub type WeightedSample = Option<Vec<(usize, f64)>>;

/// Parameters that all axes share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedSampling {
    pub(super) coordinates: CoordinateMode,
    pub(super) interpolation: ResizeInterpolation,
    pub(super) exclude_outside: bool,
    pub(super) antialias: bool,
}

impl SharedSampling {
    /// The place of an output position in the input.
    fn place(&self, axis: &AxisPlan, position: usize) -> f64 {
        let x = position as f64;
        let scale = axis.scale;
        let input = axis.input as f64;
        let output = axis.output as f64;
        // The output's length before it was rounded down, as ONNX's own cases have it; where nothing
        // was rounded, the length itself, so that the last place does not leave the input.
        let exact = Some(scale * input).filter(|len| (len - output).abs() > 1e-6).unwrap_or(output);
        let half_pixel = (x + 0.5) / scale - 0.5;
        match self.coordinates {
            CoordinateMode::HalfPixel => half_pixel,
            CoordinateMode::HalfPixelSymmetric => {
                let adjustment = output / exact;
                input / 2.0 * (1.0 - adjustment) + half_pixel
            }
            CoordinateMode::PytorchHalfPixel if axis.output > 1 => half_pixel,
            CoordinateMode::AlignCorners if axis.output > 1 => x * (input - 1.0) / (exact - 1.0),
            CoordinateMode::PytorchHalfPixel | CoordinateMode::AlignCorners => 0.0,
            CoordinateMode::Asymmetric => x / scale,
            CoordinateMode::TfHalfPixelForNn => (x + 0.5) / scale,
            CoordinateMode::TfCropAndResize => {
                let (start, end) = axis.roi;
                if axis.output > 1 {
                    start * (input - 1.0) + x * (end - start) * (input - 1.0) / (exact - 1.0)
                } else {
                    0.5 * (start + end) * (input - 1.0)
                }
            }
        }
    }

    /// Returns the elements and weights that make up every output position of an axis.
    pub(super) fn samples(&self, axis: &AxisPlan) -> Vec<WeightedSample> {
        (0..axis.output).map(|position| self.sample(axis, position)).collect()
    }

    fn sample(&self, axis: &AxisPlan, position: usize) -> WeightedSample {
        let place = self.place(axis, position);
        let last = axis.input as f64 - 1.0;
        if self.coordinates == CoordinateMode::TfCropAndResize && !(0.0..=last).contains(&place) {
            return None;
        }
        let clamp = |at: f64| num_traits::cast::<f64, usize>(at.clamp(0.0, last)).unwrap_or(0);
        if let ResizeInterpolation::Nearest(mode) = self.interpolation {
            let nearest = match mode {
                NearestMode::RoundPreferFloor => (place - 0.5).ceil(),
                NearestMode::RoundPreferCeil => (place + 0.5).floor(),
                NearestMode::Ceil => place.ceil(),
                NearestMode::Simple if axis.scale < 1.0 => place.ceil(),
                NearestMode::Floor | NearestMode::Simple => place.floor(),
            };
            return Some(vec![(clamp(nearest), 1.0)]);
        }
        // With antialiasing the window of a reduction grows until it covers what it replaces.
        let shrink = if self.antialias { axis.scale.min(1.0) } else { 1.0 };
        let reach = if self.interpolation == ResizeInterpolation::Linear { 1.0 } else { 2.0 };
        let radius = (reach / shrink).ceil();
        let mut weights = Vec::new();
        let mut at = place.floor() - radius;
        let end = place.floor() + radius + 1.0;
        while at <= end {
            let weight = self.weight((at - place).abs() * shrink);
            let counts = !self.exclude_outside || (0.0..=last).contains(&at);
            if counts && weight != 0.0 {
                weights.push((clamp(at), weight));
            }
            at += 1.0;
        }
        if self.exclude_outside || self.antialias {
            let sum: f64 = weights.iter().map(|one| one.1).sum();
            weights.iter_mut().for_each(|one| one.1 /= sum);
        }
        Some(weights)
    }

    /// The weight of an element at a distance.
    fn weight(&self, distance: f64) -> f64 {
        let ResizeInterpolation::Cubic(a) = self.interpolation else {
            return (1.0 - distance).max(0.0);
        };
        let d = distance;
        if d <= 1.0 {
            ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
        } else if d < 2.0 {
            ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
        } else {
            0.0
        }
    }
}

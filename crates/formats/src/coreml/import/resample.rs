//! Images that are read at given points.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::LoweringRow;
use super::lowering::{ProgramLowering, Result, attributes, text};
use super::operation::LoweredOperation;
use crate::coreml::error::CoreMlError;

pub(super) const ROWS: &[LoweringRow] =
    &[LoweringRow::new("affine", affine), LoweringRow::new("resample", resample)];

/// How an image is read.
#[derive(Clone, Copy, Debug)]
struct ImageSampling {
    /// The nearest element rather than lines between four.
    nearest: bool,
    padding: ImagePadding,
    /// Value around the image with [`ImagePadding::Constant`].
    value: f64,
    /// True if -1 and 1 are the centres of the outermost elements, false for their outer edges.
    aligned: bool,
}

/// Values around an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImagePadding {
    Constant,
    Border,
    /// The image mirrored at the centres of its outermost elements.
    Reflection,
    /// The image mirrored at its edges.
    Symmetric,
}

/// One of several words, in letters of any case.
fn word(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
    known: &[&str],
) -> Result<usize> {
    let Some(found) = low.word(op, name)? else {
        return Err(CoreMlError::invalid(format!("input '{name}' is missing")));
    };
    let lower = found.to_ascii_lowercase();
    known.iter().position(|word| *word == lower).ok_or_else(|| {
        let text = format!("input '{name}' is '{found}', expected one of {}", known.join(", "));
        CoreMlError::invalid(text)
    })
}

impl ImageSampling {
    fn read(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<Self> {
        let nearest = word(low, op, "sampling_mode", &["bilinear", "nearest"])? == 1;
        let names = ["constant", "border", "reflection", "symmetric"];
        let all = [
            ImagePadding::Constant,
            ImagePadding::Border,
            ImagePadding::Reflection,
            ImagePadding::Symmetric,
        ];
        let padding = word(low, op, "padding_mode", &names)?;
        let padding = all.get(padding).copied().unwrap_or(ImagePadding::Constant);
        let value = low.float(op, "padding_value")?.unwrap_or(0.0);
        let aligned = low.flag(op, "align_corners", false)?;
        Ok(Self { nearest, padding, value, aligned })
    }

    /// The image at the points of a grid from -1 to 1.
    fn sample(self, low: &mut ProgramLowering, x: ValueId, grid: ValueId) -> Result<ValueId> {
        let padding = match self.padding {
            ImagePadding::Constant => "zeros",
            ImagePadding::Border => "border",
            ImagePadding::Reflection | ImagePadding::Symmetric => "reflection",
        };
        let named = attributes([
            ("mode", text(if self.nearest { "nearest" } else { "linear" })),
            ("padding_mode", text(padding)),
            ("align_corners", self.aligned.into()),
        ]);
        if self.padding != ImagePadding::Constant || self.value == 0.0 {
            return low.node("GridSample", &named, &[x, grid]);
        }
        // Zeros around the difference are the value around the image.
        let dtype = low.dtype(x)?;
        let value = low.number(self.value, dtype)?;
        let difference = low.plain("Sub", &[x, value])?;
        let found = low.node("GridSample", &named, &[difference, grid])?;
        low.plain("Add", &[found, value])
    }
}

/// Width and height of an image `[n, channels, height, width]`: a vector of FP32.
fn extent(low: &mut ProgramLowering, x: ValueId) -> Result<ValueId> {
    let shape = low.shape_of(x)?;
    let order = low.integers(&[3, 2]);
    let found = low.node("Gather", &attributes([("axis", 0_i64.into())]), &[shape, order])?;
    low.cast(found, DataType::Fp32)
}

/// Points in elements, x first, as points of a grid from -1 to 1.
fn grid_of(
    low: &mut ProgramLowering,
    x: ValueId,
    points: ValueId,
    aligned: bool,
) -> Result<ValueId> {
    let extent = extent(low, x)?;
    let one = low.scalar(1.0_f32);
    let two = low.scalar(2.0_f32);
    let twice = low.plain("Mul", &[points, two])?;
    let (numerator, span) = match aligned {
        true => {
            let last = low.plain("Sub", &[extent, one])?;
            (twice, low.plain("Max", &[last, one])?)
        }
        false => (low.plain("Add", &[twice, one])?, extent),
    };
    let share = low.plain("Div", &[numerator, span])?;
    low.plain("Sub", &[share, one])
}

/// The image at points in elements, x first, along straight lines; beside it the outermost elements.
pub(super) fn bilinear(low: &mut ProgramLowering, x: ValueId, points: ValueId) -> Result<ValueId> {
    let grid = grid_of(low, x, points, false)?;
    let sampling =
        ImageSampling { nearest: false, padding: ImagePadding::Border, value: 0.0, aligned: false };
    sampling.sample(low, x, grid)
}

/// The number of axes must be four.
fn image(
    low: &mut ProgramLowering,
    op: &LoweredOperation<'_>,
    name: &'static str,
) -> Result<ValueId> {
    let found = low.required(op, name)?;
    match low.rank(found)? {
        4 => Ok(found),
        rank => Err(CoreMlError::invalid(format!("input '{name}' has {rank} axes, expected 4"))),
    }
}

fn resample(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = image(low, op, "x")?;
    let points = image(low, op, "coordinates")?;
    let points = low.cast(points, DataType::Fp32)?;
    let sampling = ImageSampling::read(low, op)?;
    let modes = ["unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"];
    let mode = word(low, op, "coordinates_mode", &modes)?;
    // ONNX mirrors an image where -1 and 1 are.
    let aligned = match sampling.padding {
        ImagePadding::Reflection => true,
        ImagePadding::Symmetric => false,
        ImagePadding::Constant | ImagePadding::Border => sampling.aligned,
    };
    let grid = match mode == 1 && aligned == sampling.aligned {
        true => points,
        false => {
            let points = in_elements(low, x, points, mode, sampling.aligned)?;
            grid_of(low, x, points, aligned)?
        }
    };
    let result = ImageSampling { aligned, ..sampling }.sample(low, x, grid)?;
    low.give(op, &[result])
}

/// Coordinates of a mode as points in elements.
fn in_elements(
    low: &mut ProgramLowering,
    x: ValueId,
    points: ValueId,
    mode: usize,
    aligned: bool,
) -> Result<ValueId> {
    let half = low.scalar(0.5_f32);
    let one = low.scalar(1.0_f32);
    let share = match mode {
        0 => return Ok(points),
        1 => {
            let shifted = low.plain("Add", &[points, one])?;
            low.plain("Mul", &[shifted, half])?
        }
        _ => points,
    };
    let extent = extent(low, x)?;
    match aligned {
        true => {
            let last = low.plain("Sub", &[extent, one])?;
            low.plain("Mul", &[share, last])
        }
        false => {
            let found = low.plain("Mul", &[share, extent])?;
            low.plain("Sub", &[found, half])
        }
    }
}

/// The image at points that a matrix makes of those of the result, all from -1 to 1.
fn affine(low: &mut ProgramLowering, op: &LoweredOperation<'_>) -> Result<()> {
    let x = image(low, op, "x")?;
    let matrix = low.required(op, "transform_matrix")?;
    let height = low.int(op, "output_height")?;
    let width = low.int(op, "output_width")?;
    let Some((height, width)) = height.zip(width).filter(|&(height, width)| height.min(width) > 0)
    else {
        let text = format!("a result of {height:?} by {width:?} elements");
        return Err(CoreMlError::invalid(text));
    };
    let sampling = ImageSampling::read(low, op)?;
    word(low, op, "coordinates_mode", &["normalized_minus_one_to_one"])?;
    let shape = low.shape_of(x)?;
    let joined = attributes([("axis", 0_i64.into())]);
    let batch = low.slice(shape, &[0], &[0], &[1])?;
    let six = low.integers(&[6]);
    let wanted = low.node("Concat", &joined, &[batch, six])?;
    // One matrix is for all images.
    let matrix = low.cast(matrix, DataType::Fp32)?;
    let matrices = low.plain("Expand", &[matrix, wanted])?;
    let matrices = low.reshape(matrices, &[-1, 2, 3])?;
    let front = low.slice(shape, &[0], &[0], &[2])?;
    let size = low.integers(&[height, width]);
    let size = low.node("Concat", &joined, &[front, size])?;
    let named = attributes([("align_corners", sampling.aligned.into())]);
    let grid = low.node("AffineGrid", &named, &[matrices, size])?;
    let result = sampling.sample(low, x, grid)?;
    low.give(op, &[result])
}

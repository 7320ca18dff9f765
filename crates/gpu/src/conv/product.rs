//! Convolutions as plain products: of weights and pixels where both lie, or of weights and windows.

use galatea_tensor::DataType;

use super::geometry::ConvLengths;
use super::run_shape::ConvRunShape;
use crate::kernel::{DispatchStep, ShaderBinding};
use crate::matmul::{ImageWindows, MatMulOperand, MatMulProblem, MatMulSpec, place};
use galatea_runtime::NodeShapes;

/// Inputs that are added.
const BIAS: usize = 2;
const RESIDUAL: usize = 3;

/// Sides of the matrix multiplication.
pub(super) struct ConvOperands {
    /// Types of weights and image.
    pub(super) weights: DataType,
    pub(super) image: DataType,
    /// Terms of a sum.
    pub(super) k: usize,
    /// Layout of windows; without them, pixels are laid out as in the image.
    pub(super) windows: Option<ImageWindows>,
}

/// Returns whether a result's pixel is a product of weights and the image's pixel at the same place.
pub(super) fn takes(case: &ConvRunShape<'_>) -> bool {
    let ConvLengths { window, input, output, pads, .. } = &case.lengths;
    case.convolution.is_plain() && *window == [1; 3] && input == output && *pads == [0; 3]
}

/// Returns whether pixels are rows of the result, and channels its columns, where there are no windows.
fn by_pixels(lengths: &ConvLengths) -> bool {
    lengths.channels_last || lengths.pixels() == 1
}

/// The product of weights and what an image shows.
///
/// # Errors
/// Fails when what is added is missing.
pub(super) fn problem(
    case: &ConvRunShape<'_>,
    shapes: &NodeShapes,
    sides: &ConvOperands,
) -> Result<MatMulProblem, String> {
    let &ConvLengths { images, m, .. } = &case.lengths;
    let (pixels, &ConvOperands { k, windows, .. }) = (case.lengths.pixels(), sides);
    let by_pixels = windows.map_or_else(|| by_pixels(&case.lengths), |own| !own.columns);
    // Windows of all images are rows or columns of one product.
    let stacked = !by_pixels && windows.is_none();
    let given = |input: usize| shapes.has(input).then_some(input);
    let spec = MatMulSpec {
        bias: given(BIAS),
        bias_rows: !by_pixels,
        more: given(RESIDUAL),
        activation: case.convolution.activation,
        halves: case.halves,
        ..MatMulSpec::PLAIN
    };
    let operand = |dtype, outer, inner, step| {
        let batch = if stacked { vec![step] } else { Vec::new() };
        MatMulOperand { dtype, start: 0, outer, inner, batch }
    };
    // A single row has no step.
    let weights = operand(sides.weights, if m == 1 { 0 } else { k }, 1, 0);
    let image = match windows {
        Some(own) => operand(sides.image, own.steps[0], 1, 0),
        None if by_pixels => operand(sides.image, k, 1, 0),
        None => operand(sides.image, 1, pixels, k * pixels),
    };
    let columns = if stacked { pixels } else { images * pixels };
    let (a, b, rows, columns) = match by_pixels {
        true => (image, weights, columns, m),
        false => (weights, image, m, columns),
    };
    let outer = if by_pixels { m } else { pixels };
    let typed = |input: usize| given(input).map(|input| shapes.dtype(input)).transpose();
    let mut problem = MatMulProblem {
        spec,
        m: rows,
        n: columns,
        k,
        batch: if stacked { vec![images] } else { Vec::new() },
        a,
        b,
        bias: typed(BIAS)?.map(|dtype| (dtype, 1)),
        more: typed(RESIDUAL)?.map(|dtype| operand(dtype, outer, 1, m * pixels)),
        out: shapes.output_dtype(0)?,
        under: None,
        windows,
    };
    problem.join();
    Ok(problem)
}

/// Adds the product of weights and pixels.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    case: &ConvRunShape<'_>,
    shapes: &NodeShapes,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let sides = ConvOperands {
        weights: shapes.dtype(1)?,
        image: shapes.dtype(0)?,
        k: case.lengths.channels,
        windows: None,
    };
    let problem = problem(case, shapes, &sides)?;
    let inputs = if by_pixels(&case.lengths) { [0, 1] } else { [1, 0] };
    place(
        &problem,
        &inputs.map(ShaderBinding::Input),
        &ShaderBinding::Output(0),
        case.capabilities,
        case.by,
        step,
    )
}

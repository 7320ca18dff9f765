//! Convolutions of single pixels: products of weights and images where both lie.

use super::algorithm::Case;
use super::geometry::Lengths;
use crate::kernel::{Binding, Shapes, Step};
use crate::matmul::{Operand, Problem, Spec, place};

/// Inputs that are added.
const BIAS: usize = 2;
const RESIDUAL: usize = 3;

/// Whether a result's pixel is a product of weights and the image's pixel at the same place.
pub(super) fn takes(case: &Case<'_>) -> bool {
    let Lengths { window, input, output, pads, .. } = &case.lengths;
    case.convolution.is_plain() && *window == [1; 3] && input == output && *pads == [0; 3]
}

/// Whether pixels are rows of the result, and channels its columns.
fn by_pixels(lengths: &Lengths) -> bool {
    lengths.channels_last || lengths.pixels() == 1
}

/// The product of weights and an image.
///
/// # Errors
/// When an operand is missing.
pub(super) fn problem(case: &Case<'_>, shapes: &Shapes) -> Result<Problem, String> {
    let &Lengths { images, channels, m, .. } = &case.lengths;
    let pixels = case.lengths.pixels();
    let by_pixels = by_pixels(&case.lengths);
    let given = |input: usize| shapes.has(input).then_some(input);
    let spec = Spec {
        bias: given(BIAS),
        bias_rows: !by_pixels,
        more: given(RESIDUAL),
        activation: case.convolution.activation,
        halves: case.halves,
        ..Spec::PLAIN
    };
    let stack = |step: usize| if by_pixels { Vec::new() } else { vec![step] };
    let operand = |input: usize, outer, inner, step| {
        let dtype = shapes.dtype(input)?;
        Ok::<_, String>(Operand { dtype, outer, inner, batch: stack(step) })
    };
    // Rows of a single element have no step, and no columns either.
    let step = |len: usize, step: usize| if len == 1 { 0 } else { step };
    let weights = operand(1, step(m, channels), 1, 0)?;
    let (a, b, rows, columns) = match by_pixels {
        true => (operand(0, channels, 1, 0)?, weights, images * pixels, m),
        false => (weights, operand(0, 1, pixels, channels * pixels)?, m, pixels),
    };
    let more = given(RESIDUAL).map(|input| operand(input, columns, 1, m * pixels)).transpose()?;
    let bias = given(BIAS).map(|input| Ok::<_, String>((shapes.dtype(input)?, 1))).transpose()?;
    let mut problem = Problem {
        spec,
        m: rows,
        n: columns,
        k: channels,
        batch: stack(images),
        a,
        b,
        bias,
        more,
        out: shapes.output_dtype(0)?,
        under: None,
    };
    problem.join();
    Ok(problem)
}

/// Adds the product.
///
/// # Errors
/// When lengths are beyond the device.
pub(super) fn run(case: &Case<'_>, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
    let problem = problem(case, shapes)?;
    let inputs = [0, 1].map(Binding::Input);
    let weights_first = !by_pixels(&case.lengths);
    let inputs = if weights_first { [inputs[1].clone(), inputs[0].clone()] } else { inputs };
    place(&problem, (&inputs, &Binding::Output(0)), case.capabilities, step)
}

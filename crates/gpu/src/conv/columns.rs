//! Convolutions that go the other way, as plain products of weights and pixels: what a pixel gives to every place of
//! the window is summed where it arrives.

use galatea_tensor::DataType;
use minijinja::context;

use super::extras::{ConvExtras, more};
use super::geometry::ConvLengths;
use super::run_shape::ConvRunShape;
use crate::device::KernelShader;
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::matmul::{MatMulOperand, MatMulProblem, MatMulSpec, place};
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Rows of the product, its columns, and all elements of the stack.
pub(super) fn sizes(lengths: &ConvLengths) -> [usize; 3] {
    let rows = lengths.m * lengths.window.iter().product::<usize>();
    let seen = lengths.input.iter().product();
    [rows, seen, lengths.images * lengths.groups * rows * seen]
}

/// Returns whether the products are worth writing to memory, and find room there.
pub(super) fn takes(case: &ConvRunShape<'_>) -> bool {
    let [.., all] = sizes(&case.lengths);
    let back = case.convolution.is_transposed() && !case.lengths.channels_last;
    back && all > 0 && case.has_room(all, DataType::Fp32)
}

/// The product of weights `[channels, m · places]`, turned, and pixels.
fn problem(case: &ConvRunShape<'_>, shapes: &NodeShapes) -> Result<MatMulProblem, String> {
    let ConvLengths { images, groups, channels, .. } = case.lengths;
    let [rows, seen, _] = sizes(&case.lengths);
    let operand = |input: usize, inner, batch: [usize; 2]| {
        let dtype = shapes.dtype(input)?;
        Ok::<_, String>(MatMulOperand { dtype, start: 0, outer: 1, inner, batch: batch.to_vec() })
    };
    let mut problem = MatMulProblem {
        spec: MatMulSpec { halves: case.halves, ..MatMulSpec::PLAIN },
        m: rows,
        n: seen,
        k: channels,
        batch: vec![images, groups],
        a: operand(1, rows, [0, channels * rows])?,
        b: operand(0, seen, [groups * channels * seen, channels * seen])?,
        bias: None,
        more: None,
        out: DataType::Fp32,
        under: None,
        windows: None,
    };
    problem.join();
    Ok(problem)
}

/// Adds the dispatches.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    case: &ConvRunShape<'_>,
    shapes: &NodeShapes,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let lengths = &case.lengths;
    let [_, seen, all] = sizes(lengths);
    let products = ShaderBinding::Scratch(step.scratch(all as u64 * 4));
    let inputs = [1, 0].map(ShaderBinding::Input);
    let problem = problem(case, shapes)?;
    place(&problem, &inputs, &products, case.capabilities, case.by, step)?;
    let ConvExtras { bindings, bias, residual } = more(shapes)?;
    let activation = case.convolution.activation;
    let [kz, ky, kx] = lengths.window;
    let added = u32::from(bias.is_some());
    let source = render(
        include_str!("columns.wgsl"),
        context! {
            y => wgsl_float(shapes.output_dtype(0)?)?,
            at => context!(bias => 2, residual => 2 + added, params => 2 + bindings.len()),
            activation => activation.name,
            bias, residual, kz, ky, kx,
        },
    )?;
    let channels = lengths.groups * lengths.m;
    let total = lengths.images * channels * lengths.pixels();
    let own = [total, channels, lengths.pixels(), seen];
    let mut params: Vec<u32> = own.into_iter().map(param).collect::<Result<_, _>>()?;
    params.extend(lengths.params()?);
    params.extend([activation.p.to_bits(), activation.q.to_bits()]);
    let bindings = [products, ShaderBinding::Output(0)].into_iter().chain(bindings).collect();
    let shader = KernelShader::new("conv-columns", source).proved();
    step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
    Ok(())
}

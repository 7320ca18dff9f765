//! Convolutions of narrow groups, a window a thread.

use galatea_tensor::DataType;
use minijinja::context;

use super::extras::{ConvExtras, more};
use super::geometry::ConvLengths;
use super::node::ConvNode;
use crate::device::KernelShader;
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::template::render;
use galatea_runtime::NodeShapes;

/// The widest window whose pixels a thread keeps.
const WIDEST: usize = 7;

/// Adds the sums of windows.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    convolution: &ConvNode,
    lengths: &ConvLengths,
    shapes: &NodeShapes,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let [kz, ky, kx] = lengths.window;
    let ConvExtras { bindings, bias, residual } = more(shapes)?;
    let activation = convolution.activation;
    let x = shapes.dtype(0)?;
    let w = shapes.dtype(1)?;
    let y = shapes.output_dtype(0)?;
    let name = |dtype: DataType| wgsl_float(dtype);
    let added = u32::from(bias.is_some());
    let at = context!(bias => 3, residual => 3 + added, params => 3 + bindings.len());
    // Windows of neighbours share most of what they see.
    let close = lengths.strides[2] == 1 && lengths.dilations[2] == 1 && kx <= WIDEST;
    let source = render(
        include_str!("direct.wgsl"),
        context! {
            close,
            x => name(x)?, w => name(w)?, y => name(y)?, bias, residual, at, kz, ky, kx,
            activation => activation.name,
        },
    )?;
    let all = lengths.groups * lengths.m;
    let [depth, height, width] = lengths.output;
    let across = width.div_ceil(4);
    let fours = depth * height * across;
    let total = lengths.images * all * fours;
    param(lengths.images * all * lengths.pixels())?;
    let own = [total, fours, across, all, lengths.m, lengths.channels];
    let mut params: Vec<u32> = own.into_iter().map(param).collect::<Result<_, _>>()?;
    params.extend(lengths.params()?);
    params.push(u32::from(lengths.channels_last));
    params.extend([activation.p.to_bits(), activation.q.to_bits()]);
    let own = vec![ShaderBinding::Input(0), ShaderBinding::Input(1), ShaderBinding::Output(0)];
    let bindings = own.into_iter().chain(bindings).collect();
    let shader = KernelShader::new("conv-f32-direct", source).proved();
    step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
    Ok(())
}

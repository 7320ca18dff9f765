//! Convolutions of narrow groups, a window a thread.

use galatea_tensor::DataType;
use minijinja::context;

use super::build::Convolution;
use super::geometry::Lengths;
use crate::device::Shader;
use crate::kernel::{Binding, Shapes, Step, fold, param, wgsl_float};
use crate::template::render;

/// The widest window whose pixels a thread keeps.
const WIDEST: usize = 7;

/// The bindings of bias and residual behind image, weights and result, and their types.
pub(super) struct More {
    pub(super) bindings: Vec<Binding>,
    pub(super) bias: Option<&'static str>,
    pub(super) residual: Option<&'static str>,
}

/// Operands that are added, where a node has them.
pub(super) fn more(shapes: &Shapes) -> Result<More, String> {
    let mut bindings = Vec::new();
    let mut added = |input: usize| -> Result<Option<&'static str>, String> {
        if !shapes.has(input) {
            return Ok(None);
        }
        bindings.push(Binding::Input(input));
        wgsl_float(shapes.dtype(input)?).map(Some)
    };
    let (bias, residual) = (added(2)?, added(3)?);
    Ok(More { bindings, bias, residual })
}

/// Adds the sums of windows.
///
/// # Errors
/// When lengths are beyond the device.
pub(super) fn run(
    convolution: &Convolution,
    lengths: &Lengths,
    shapes: &Shapes,
    step: &mut Step,
) -> Result<(), String> {
    let [kz, ky, kx] = lengths.window;
    let More { bindings, bias, residual } = more(shapes)?;
    let activation = convolution.activation;
    let (x, w, y) = (shapes.dtype(0)?, shapes.dtype(1)?, shapes.output_dtype(0)?);
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
    let own = vec![Binding::Input(0), Binding::Input(1), Binding::Output(0)];
    let bindings = own.into_iter().chain(bindings).collect();
    let shader = Shader::new("conv-f32-direct", source).proved();
    step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
    Ok(())
}

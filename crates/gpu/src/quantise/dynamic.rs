//! `DynamicQuantizeLinear`: the range of all elements, the scale and zero point that it needs, and the bytes.

use galatea_graph::ops::quantize::DynamicQuantizeLinear;
use galatea_tensor::DataType;
use minijinja::context;

use crate::device::KernelShader;
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "dynamic-quantise",
    domain: "",
    ops: &["DynamicQuantizeLinear"],
    supports: |view: &GpuNodeView<'_>| {
        view.operator::<DynamicQuantizeLinear>()?;
        view.rank(0)?;
        match view.input(0).map(|fact| fact.dtype) {
            Some(dtype) if view.is_float(dtype) => Ok(()),
            other => Err(format!("an input of {other:?}")),
        }
    },
    build: |_| Ok(Box::new(DynamicQuantizeKernel)),
};

/// Threads of a workgroup.
const THREADS: usize = 256;
/// Quads that a thread looks at where there are many, and the most workgroups that look.
const SHARE: usize = 8;

/// Destinations of bytes, scale and zero point.
pub(crate) struct DynamicOutputs {
    pub(crate) bytes: ShaderBinding,
    pub(crate) scale: (ShaderBinding, DataType),
    pub(crate) zero: ShaderBinding,
}

/// Adds the dispatches for so many floats.
///
/// # Errors
/// Fails when a shader cannot count them.
pub(crate) fn dispatch(
    source: ShaderBinding,
    dtype: DataType,
    elements: usize,
    to: DynamicOutputs,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let quads = elements.div_ceil(4);
    let count = param(elements)?;
    let groups = quads.div_ceil(THREADS * SHARE).clamp(1, THREADS);
    let parts = step.scratch((groups * 8) as u64);
    // The scale as it is computed, whatever type it goes out in.
    let own = step.scratch(16);
    let shader = |stage: &str| {
        let x = wgsl_float(dtype)?;
        let scale = wgsl_float(to.scale.1)?;
        let source = render(include_str!("dynamic.wgsl"), context!(stage, x, scale))?;
        Ok::<_, String>(KernelShader::new(ROW.name, source).proved())
    };
    let params = vec![count, param(quads)?, param(groups)?];
    let bindings = vec![source.clone(), ShaderBinding::Scratch(parts)];
    step.dispatch(shader("range")?, bindings, params.clone(), fold(groups)?);
    let bindings =
        vec![ShaderBinding::Scratch(parts), ShaderBinding::Scratch(own), to.scale.0, to.zero];
    step.dispatch(shader("scale")?, bindings, params.clone(), [1, 1, 1]);
    let bindings = vec![source, ShaderBinding::Scratch(own), to.bytes];
    let groups = fold(quads.div_ceil(THREADS))?;
    if quads > 0 {
        step.dispatch(shader("bytes")?, bindings, params, groups);
    }
    Ok(())
}

struct DynamicQuantizeKernel;

impl GpuKernel for DynamicQuantizeKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let elements = shapes.input(0)?.iter().product();
        let mut place = |output: usize| match shapes.wants(output) {
            true => ShaderBinding::Output(output),
            false => {
                ShaderBinding::Scratch(step.scratch(if output == 0 { elements } else { 16 } as u64))
            }
        };
        let dtype = shapes.output_dtype(1).unwrap_or(DataType::Fp32);
        let to = DynamicOutputs { bytes: place(0), scale: (place(1), dtype), zero: place(2) };
        dispatch(ShaderBinding::Input(0), shapes.dtype(0)?, elements, to, step)
    }
}

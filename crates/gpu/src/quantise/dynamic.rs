//! `DynamicQuantizeLinear`: the range of all elements, the scale and zero point that it needs, and the bytes.

use galatea_graph::ops::quantize::DynamicQuantizeLinear;
use galatea_tensor::DataType;
use minijinja::context;

use crate::device::Shader;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step, fold, param, wgsl_float};
use crate::template::render;

pub(super) const ROW: KernelRow = KernelRow {
    name: "dynamic-quantise",
    domain: "",
    ops: &["DynamicQuantizeLinear"],
    supports: |view: &NodeView<'_>| {
        view.operator::<DynamicQuantizeLinear>()?;
        view.rank(0)?;
        match view.input(0).map(|fact| fact.dtype) {
            Some(dtype) if view.is_float(dtype) => Ok(()),
            other => Err(format!("an input of {other:?}")),
        }
    },
    build: |_| Ok(Box::new(Dynamic)),
};

/// Threads of a workgroup.
const THREADS: usize = 256;
/// Quads that a thread looks at where there are many, and the most workgroups that look.
const SHARE: usize = 8;

/// Where bytes, scale and zero point go.
pub(crate) struct Quantised {
    pub(crate) bytes: Binding,
    pub(crate) scale: (Binding, DataType),
    pub(crate) zero: Binding,
}

/// Adds the dispatches for so many floats.
///
/// # Errors
/// When a shader cannot count them.
pub(crate) fn dispatch(
    (source, dtype): (Binding, DataType),
    elements: usize,
    to: Quantised,
    step: &mut Step,
) -> Result<(), String> {
    let (quads, count) = (elements.div_ceil(4), param(elements)?);
    let groups = quads.div_ceil(THREADS * SHARE).clamp(1, THREADS);
    let parts = step.scratch((groups * 8) as u64);
    // The scale as it is computed, whatever type it goes out in.
    let own = step.scratch(16);
    let shader = |stage: &str| {
        let (x, scale) = (wgsl_float(dtype)?, wgsl_float(to.scale.1)?);
        let source = render(include_str!("dynamic.wgsl"), context!(stage, x, scale))?;
        Ok::<_, String>(Shader::new(ROW.name, source).proved())
    };
    let params = vec![count, param(quads)?, param(groups)?];
    let bindings = vec![source.clone(), Binding::Scratch(parts)];
    step.dispatch(shader("range")?, bindings, params.clone(), fold(groups)?);
    let bindings = vec![Binding::Scratch(parts), Binding::Scratch(own), to.scale.0, to.zero];
    step.dispatch(shader("scale")?, bindings, params.clone(), [1, 1, 1]);
    let bindings = vec![source, Binding::Scratch(own), to.bytes];
    let groups = fold(quads.div_ceil(THREADS))?;
    if quads > 0 {
        step.dispatch(shader("bytes")?, bindings, params, groups);
    }
    Ok(())
}

struct Dynamic;

impl Kernel for Dynamic {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let elements = shapes.input(0)?.iter().product();
        let mut place = |output: usize| match shapes.wants(output) {
            true => Binding::Output(output),
            false => Binding::Scratch(step.scratch(if output == 0 { elements } else { 16 } as u64)),
        };
        let dtype = shapes.output_dtype(1).unwrap_or(DataType::Fp32);
        let to = Quantised { bytes: place(0), scale: (place(1), dtype), zero: place(2) };
        dispatch((Binding::Input(0), shapes.dtype(0)?), elements, to, step)
    }
}

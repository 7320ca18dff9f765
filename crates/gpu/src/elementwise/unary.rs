//! Functions of one element.

use minijinja::context;

use crate::device::Shader;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step, fold, param, wgsl_float};
use crate::template::render;

/// Operators and their functions of `v`.
const FUNCTIONS: &[(&str, &str)] = &[("Relu", "max(v, vec4<f32>(0.0))")];

pub(super) const ROW: KernelRow = KernelRow {
    name: "unary-f32",
    domain: "",
    ops: &["Relu"],
    supports: |view| view.floats(&[0]),
    build,
};

struct Unary {
    function: &'static str,
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    let row = FUNCTIONS.iter().find(|(name, _)| *name == view.node.op_type);
    let (_, function) = row.ok_or("no such function")?;
    Ok(Box::new(Unary { function }))
}

impl Kernel for Unary {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let (x, y) = (wgsl_float(shapes.dtype(0)?)?, wgsl_float(shapes.output_dtype(0)?)?);
        let quads = shapes.output(0)?.iter().product::<usize>().div_ceil(4);
        let source = render(include_str!("unary.wgsl"), context!(x, y, function => self.function))?;
        let shader = Shader::new(ROW.name, source);
        step.in_place(0, 0);
        let bindings = vec![Binding::Input(0), Binding::Output(0)];
        step.dispatch(shader, bindings, vec![param(quads)?], fold(quads.div_ceil(256))?);
        Ok(())
    }
}

//! Positions of the largest and smallest elements.

use std::sync::Arc;

use galatea_graph::ops::reduce::{ArgReduce, ArgReduceKind};

use super::fold::{FoldEnds, ReducedSourceAxes, ReductionFold, fold};
use crate::device::GpuDevice;
use crate::element::ShaderKind;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "arg", domain: "", ops: &["ArgMax", "ArgMin"], supports, build };

/// An element becomes a number whose order is that of the elements: a NaN above all numbers, then
/// those that are looked for first.
pub(super) fn order(of: ShaderKind, largest: bool) -> Result<&'static str, String> {
    Ok(match (of, largest) {
        (ShaderKind::Float, true) => "ordered(x)",
        (ShaderKind::Float, false) => "ordered(-x)",
        (ShaderKind::Signed, true) => "bitcast<u32>(x) ^ 0x80000000u",
        (ShaderKind::Signed, false) => "~(bitcast<u32>(x) ^ 0x80000000u)",
        (ShaderKind::Unsigned, true) => "x",
        (ShaderKind::Unsigned, false) => "~x",
        (other, _) => return Err(format!("shaders do not order {other:?}")),
    })
}

/// The number of a float.
pub(super) const ORDERED: &str = "fn ordered(v: f32) -> u32 {\n\
    let bits = bitcast<u32>(select(v, 0.0, v == 0.0));\n\
    if (bits & 0x7fffffffu) > 0x7f800000u { return 0xffffffffu; }\n\
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);\n}\n";

fn parts(view: &GpuNodeView<'_>) -> Result<ReductionFold, String> {
    let op = view.operator::<ArgReduce>()?;
    let fact = view.input(0).ok_or("the input is missing")?;
    let order = order(ShaderKind::of(view, fact.dtype)?, op.kind == ArgReduceKind::Max)?;
    // Of equal elements the first or the last; no element has the position that the start has.
    let later = if op.select_last_index { "b.y > a.y" } else { "b.y < a.y" };
    Ok(ReductionFold {
        carried: "vec2<u32>",
        start: "vec2<u32>(0u, 0xffffffffu)".into(),
        map: format!("vec2<u32>({order}, j)"),
        join: format!(
            "if b.y == 0xffffffffu {{ return a; }}\nif a.y == 0xffffffffu {{ return b; }}\n\
             return select(a, b, b.x > a.x || (b.x == a.x && {later}));\n"
        ),
        finish: "vec2<u32>(a.y, count * 0u)".into(),
        words: Some(("a", "w")),
        functions: ORDERED,
    })
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    crate::axis::position(view.operator::<ArgReduce>()?.axis, view.rank(0)?)?;
    parts(view).map(|_| ())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let axis = view.operator::<ArgReduce>()?.axis;
    Ok(Box::new(ArgKernel { axis, fold: parts(view)?, device: Arc::clone(view.device) }))
}

struct ArgKernel {
    axis: i64,
    fold: ReductionFold,
    device: Arc<GpuDevice>,
}

impl GpuKernel for ArgKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let axis = crate::axis::position(self.axis, shape.len())?;
        if shape[axis] == 0 && !shapes.output(0)?.contains(&0) {
            return Err(format!("axis {axis} of shape {shape:?} is empty"));
        }
        let axes = ReducedSourceAxes::new(shape, |other| other == axis);
        let ends = FoldEnds {
            from: (ShaderBinding::Input(0), shapes.dtype(0)?),
            to: (ShaderBinding::Output(0), shapes.output_dtype(0)?),
        };
        fold(&self.fold, &axes, &ends, self.device.capabilities(), step)
    }
}

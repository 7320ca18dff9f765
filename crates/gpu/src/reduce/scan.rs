//! Sums and products of all elements so far along an axis.

use galatea_graph::ops::math::{Cumulative, CumulativeKind};

use crate::axis::position;
use crate::element::{DispatchParams, ShaderKind, THREADS, declare, entry, load, shader};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param,
};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "scan", domain: "", ops: &["CumSum", "CumProd"], supports, build };

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    view.operator::<Cumulative>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    let kind = ShaderKind::of(view, dtype)?;
    if dtype.size_bytes() == Some(1) || kind == ShaderKind::Truth {
        return Err(format!("running sums of {dtype}"));
    }
    match view.is_known(1) {
        true => Ok(()),
        false => Err("the axis is known only in a run".into()),
    }
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    let kind = ShaderKind::of(view, dtype)?;
    Ok(Box::new(ScanKernel { op: *view.operator::<Cumulative>()?, kind }))
}

struct ScanKernel {
    op: Cumulative,
    kind: ShaderKind,
}

/// Threads that walk along a lane together, a piece each.
const TEAM: usize = 64;

impl GpuKernel for ScanKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let elements: usize = shape.iter().product();
        param(elements)?;
        if elements == 0 {
            return Ok(());
        }
        let axis = shapes.integers(1).and_then(|all| all.first().copied());
        let axis = position(axis.ok_or("the axis is not known")?, shape.len())?;
        let len = shape[axis];
        let inner = shape[axis + 1..].iter().product::<usize>();
        let lanes = elements / len;
        // Few long lanes are cut into pieces, whose totals come first.
        let team = if len >= 4 * TEAM && lanes < 4096 { TEAM } else { 1 };
        let from = shapes.dtype(0)?;
        let to = shapes.output_dtype(0)?;
        let mut words = DispatchParams::default();
        let lane_count = words.length(lanes)?;
        let count = words.length(len)?;
        let inner = words.length(inner)?;
        let piece = words.length(len.div_ceil(team))?;
        let kind = self.kind.scalar();
        let (start, join) = match self.op.kind {
            CumulativeKind::Sum => (format!("{kind}(0)"), "+"),
            CumulativeKind::Product => (format!("{kind}(1)"), "*"),
        };
        let place = match self.op.reverse {
            true => format!("base + ({count} - 1u - j) * {inner}"),
            false => format!("base + j * {inner}"),
        };
        let value = match to {
            galatea_tensor::DataType::Fp16 => "f16(result)",
            _ => "result",
        };
        let store = match self.kind {
            ShaderKind::Wide => "y[place] = result;".to_owned(),
            _ => format!("y[place / 4u][place % 4u] = {value};"),
        };
        let result = if self.op.exclusive { "total" } else { "next" };
        let x = load("x", from, "place");
        let walk = format!(
            "for (var j = first; j < last; j++) {{\nlet place = {place};\nlet next = total {join} {x};\n\
             let result = {result};\n{store}\ntotal = next;\n}}\n"
        );
        let declared =
            format!("{}{}{}", declare(0, "x", from)?, declare(1, "y", to)?, words.declare(2));
        let base = |lane: &str| {
            format!("let base = ({lane} / {inner}) * {inner} * {count} + {lane} % {inner};\n")
        };
        let (text, groups) = if team == 1 {
            let head = entry(&lane_count);
            let body = base("at");
            let text = format!(
                "{declared}{head}{body}let first = 0u;\nlet last = {count};\nvar total = {start};\n{walk}}}\n"
            );
            (text, fold(lanes.div_ceil(THREADS))?)
        } else {
            let text = format!(
                "{declared}var<workgroup> part: array<{kind}, {TEAM}>;\n\
                 @compute @workgroup_size({TEAM})\n\
                 fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) t: u32) {{\n\
                 let own = group.x + group.y * groups.x;\nlet at = min(own, {lane_count} - 1u);\n{}\
                 let first = min(t * {piece}, {count});\nlet last = min(first + {piece}, {count});\n\
                 var sum = {start};\n\
                 for (var j = first; j < last; j++) {{\nlet place = {place};\nsum = sum {join} {x};\n}}\n\
                 part[t] = sum;\nworkgroupBarrier();\nif own >= {lane_count} {{ return; }}\n\
                 var total = {start};\nfor (var i = 0u; i < t; i++) {{ total = total {join} part[i]; }}\n{walk}}}\n",
                base("at")
            );
            (text, fold(lanes)?)
        };
        let bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
        step.dispatch(shader("scan", &text).proved(), bindings, words.into_params(), groups);
        Ok(())
    }
}

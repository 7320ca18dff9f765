//! The largest or smallest elements along an axis.
//!
//! A workgroup sorts a chunk of a lane and keeps its first `k`; what is kept of several chunks is a shorter lane,
//! until one chunk is left. Elements become numbers whose order is theirs, with their positions, so that of
//! equal elements the first come first.

use galatea_graph::ops::reduce::TopK;

use super::arg::{ORDERED, order};
use crate::axis::position;
use crate::cell::{CellPair, ElementCell};
use crate::element::{DispatchParams, ShaderKind, THREADS, declare, entry, load, shader};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param,
};
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow =
    GpuKernelRow { name: "top-k", domain: "", ops: &["TopK"], supports, build };

/// Elements of a chunk: pairs of words that fit what a workgroup shares everywhere.
const CHUNK: usize = 2048;

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op = view.operator::<TopK>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    order(ShaderKind::of(view, dtype)?, op.largest)?;
    if dtype.size_bytes() == Some(1) {
        return Err(format!("the order of {dtype}"));
    }
    let axis = position(op.axis, view.rank(0)?)?;
    let fact = view.output(0).or_else(|| view.output(1)).ok_or("no output is wanted")?;
    let k = fact.shape.as_ref().and_then(|dims| dims.get(axis)).and_then(galatea_graph::Dim::known);
    match k {
        Some(k) if k <= CHUNK / 2 && view.is_known(1) => Ok(()),
        Some(k) => Err(format!("{k} elements, the kernel keeps {}", CHUNK / 2)),
        None => Err("how many is known only in a run".into()),
    }
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let op = *view.operator::<TopK>()?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    Ok(Box::new(TopKKernel {
        axis: op.axis,
        order: order(ShaderKind::of(view, dtype)?, op.largest)?,
    }))
}

struct TopKKernel {
    axis: i64,
    order: &'static str,
}

/// A stage: lanes of `len` pairs or elements, `k` of each of `chunks` chunks.
struct TopKStage {
    lanes: usize,
    len: usize,
    inner: usize,
    chunks: usize,
    k: usize,
    first: bool,
}

/// Lengths of the result: `k` elements of each of `lanes` lanes of `len` elements.
struct TopKSizes {
    lanes: usize,
    len: usize,
    /// Elements between neighbours of a lane.
    inner: usize,
    k: usize,
}

impl GpuKernel for TopKKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let output = if shapes.wants(0) { 0 } else { 1 };
        let axis = position(self.axis, shape.len())?;
        let k = shapes.output(output)?[axis];
        let elements = shape.iter().product::<usize>();
        let inner = shape[axis + 1..].iter().product();
        param(elements)?;
        if elements == 0 || k == 0 {
            return Ok(());
        }
        let lanes = elements / shape[axis];
        let mut len = shape[axis];
        let mut source = ShaderBinding::Input(0);
        let mut first = true;
        loop {
            let chunks = len.div_ceil(CHUNK);
            let scratch = step.scratch((lanes * chunks * k * 8) as u64);
            let stage = TopKStage { lanes, len, inner, chunks, k, first };
            let bindings = vec![source, ShaderBinding::Scratch(scratch)];
            self.sort(&stage, bindings, shapes, step)?;
            (len, source, first) = (chunks * k, ShaderBinding::Scratch(scratch), false);
            if chunks == 1 {
                break;
            }
        }
        Self::write(shapes, source, &TopKSizes { lanes, len: shape[axis], inner, k }, step)
    }
}

impl TopKKernel {
    fn sort(
        &self,
        stage: &TopKStage,
        bindings: Vec<ShaderBinding>,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let dtype = shapes.dtype(0)?;
        let mut words = DispatchParams::default();
        let count = words.length(stage.len)?;
        let inner = words.length(stage.inner)?;
        let chunks = words.length(stage.chunks)?;
        let k = words.length(stage.k)?;
        let groups = words.length(stage.lanes * stage.chunks)?;
        let source = match stage.first {
            true => declare(0, "x", dtype)?,
            false => {
                "@group(0) @binding(0) var<storage, read_write> x: array<vec2<u32>>;\n".to_owned()
            }
        };
        let element = match stage.first {
            true => format!(
                "let place = (lane_number / {inner}) * {inner} * {count} + j * {inner} + lane_number % {inner};\n\
                 let x = {};\npair = vec2<u32>({}, j);\n",
                load("source", dtype, "place"),
                self.order
            ),
            false => format!("pair = x[lane_number * {count} + j];\n"),
        };
        let source = if stage.first { source.replace("> x:", "> source:") } else { source };
        let functions = if self.order.contains("ordered") && stage.first { ORDERED } else { "" };
        let text = format!(
            "{source}@group(0) @binding(1) var<storage, read_write> y: array<vec2<u32>>;\n{}{functions}\
             var<workgroup> pairs: array<vec2<u32>, {CHUNK}>;\n\
             fn before(a: vec2<u32>, b: vec2<u32>) -> bool {{ return a.x > b.x || (a.x == b.x && a.y < b.y); }}\n\
             @compute @workgroup_size({THREADS})\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) all: vec3<u32>, @builtin(local_invocation_index) t: u32) {{\n\
             let own = group.x + group.y * all.x;\nlet number = min(own, {groups} - 1u);\n\
             let lane_number = number / {chunks};\nlet first = (number % {chunks}) * {CHUNK}u;\n\
             for (var i = t; i < {CHUNK}u; i += {THREADS}u) {{\nlet j = first + i;\n\
             var pair = vec2<u32>(0u, 0xffffffffu);\nif j < {count} {{\n{element}}}\npairs[i] = pair;\n}}\n\
             for (var size = 2u; size <= {CHUNK}u; size = size * 2u) {{\n\
             for (var apart = size / 2u; apart > 0u; apart = apart / 2u) {{\nworkgroupBarrier();\n\
             for (var i = t; i < {CHUNK}u / 2u; i += {THREADS}u) {{\n\
             let a = 2u * i - (i & (apart - 1u));\nlet b = a + apart;\n\
             let falling = (a & size) == 0u;\n\
             if before(pairs[b], pairs[a]) == falling {{ let kept = pairs[a]; pairs[a] = pairs[b]; pairs[b] = kept; }}\n\
             }} }} }}\nworkgroupBarrier();\nif own >= {groups} {{ return; }}\n\
             for (var i = t; i < {k}; i += {THREADS}u) {{ y[own * {k} + i] = pairs[i]; }}\n}}\n",
            words.declare(2),
        );
        let groups = fold(stage.lanes * stage.chunks)?;
        step.dispatch(shader("top-k-sort", &text).proved(), bindings, words.into_params(), groups);
        Ok(())
    }

    /// Elements and positions from the pairs of each lane.
    fn write(
        shapes: &NodeShapes,
        pairs: ShaderBinding,
        sizes: &TopKSizes,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        for output in (0..2).filter(|&output| shapes.wants(output)) {
            let mut words = DispatchParams::default();
            let count = words.length(sizes.lanes * sizes.k)?;
            let k = words.length(sizes.k)?;
            let inner = words.length(sizes.inner)?;
            let len = words.length(sizes.len)?;
            let to = shapes.output_dtype(output)?;
            let cells = CellPair::of(shapes.dtype(0)?, to);
            let mut bindings = vec![pairs.clone()];
            let mut text =
                "@group(0) @binding(0) var<storage, read_write> pairs: array<vec2<u32>>;\n"
                    .to_owned();
            let lane =
                format!("let lane_number = (at / ({inner} * {k})) * {inner} + at % {inner};\n");
            let pair = format!(
                "{lane}let position = pairs[lane_number * {k} + (at / {inner}) % {k}].y;\n"
            );
            let body = if output == 1 {
                text.push_str(
                    "@group(0) @binding(1) var<storage, read_write> y: array<vec2<u32>>;\n",
                );
                format!("y[at] = vec2<u32>(position, 0u * {len});\n")
            } else {
                let half = |cell| if cell == ElementCell::Short { ElementCell::Half } else { cell };
                let cells = cells?;
                let from = half(cells.from);
                let to = half(cells.to);
                bindings.push(ShaderBinding::Input(0));
                text.push_str(&from.declare(1, "x"));
                text.push_str(&to.declare(2, "y"));
                let place = format!(
                    "(lane_number / {inner}) * {inner} * {len} + position * {inner} + lane_number % {inner}"
                );
                to.store("y", "at", &from.load("x", &place))
            };
            bindings.push(ShaderBinding::Output(output));
            let text =
                format!("{text}{}{}{pair}{body}}}\n", words.declare(bindings.len()), entry(&count));
            let groups = fold((sizes.lanes * sizes.k).div_ceil(THREADS))?;
            let shader = shader("top-k", &text).proved();
            step.dispatch(shader, bindings, words.into_params(), groups);
        }
        Ok(())
    }
}

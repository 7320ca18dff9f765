//! Softmax along any axis.

use std::sync::Arc;

use galatea_graph::ops::activation::{LogSoftmax, Softmax};
use galatea_tensor::DataType;

use crate::axis::position;
use crate::choices::KernelFamily;
use crate::device::GpuDevice;
use crate::element::{DispatchParams, declare, load, load_quad, shader, store_quad};
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, param};
use crate::rows::{RowTeam, TEXT as ROWS_TEXT, TeamQuestion};
use galatea_runtime::NodeShapes;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[GpuKernelRow {
    name: "softmax",
    domain: "",
    ops: &["LogSoftmax", "Softmax"],
    supports,
    build,
}];

/// These kernels, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new("softmax", &[include_str!("mod.rs"), ROWS_TEXT]);

/// The most quads of a row that a thread keeps.
const KEPT: usize = 16;

fn parts(view: &GpuNodeView<'_>) -> Result<(i64, bool, bool), String> {
    if let Some(op) = view.node.operator::<Softmax>() {
        return Ok((op.axis, op.flatten, false));
    }
    let op = view.operator::<LogSoftmax>()?;
    Ok((op.axis, op.flatten, true))
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    parts(view)?;
    view.rank(0)?;
    view.floats_throughout(&[0])
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let (axis, flatten, logarithm) = parts(view)?;
    Ok(Box::new(SoftmaxRows { axis, flatten, logarithm, device: Arc::clone(view.device) }))
}

struct SoftmaxRows {
    axis: i64,
    flatten: bool,
    logarithm: bool,
    device: Arc<GpuDevice>,
}

/// Lengths before the axis, of the axis and behind it.
#[derive(Clone, Copy)]
struct SoftmaxLengths {
    outer: usize,
    len: usize,
    inner: usize,
}

impl SoftmaxLengths {
    fn rows(self) -> usize {
        self.outer * self.inner
    }
}

impl SoftmaxRows {
    fn lengths(&self, shape: &[usize]) -> Result<SoftmaxLengths, String> {
        let rank = shape.len();
        let split = match self.flatten {
            true if usize::try_from(self.axis) == Ok(rank) => rank,
            _ => position(self.axis, rank)?,
        };
        let behind = if self.flatten { rank } else { split + 1 };
        let product = |lengths: &[usize]| lengths.iter().product::<usize>();
        Ok(SoftmaxLengths {
            outer: product(&shape[..split]),
            len: product(&shape[split..behind]),
            inner: product(&shape[behind..]),
        })
    }
}

impl GpuKernel for SoftmaxRows {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let lengths = self.lengths(shapes.input(0)?)?;
        let SoftmaxLengths { len, inner, .. } = lengths;
        let rows = lengths.rows();
        param(rows.saturating_mul(len))?;
        if rows * len == 0 {
            return Ok(());
        }
        let types = (shapes.dtype(0)?, shapes.output_dtype(0)?);
        if types.0 == types.1 {
            // A row is read before it is written, by the same threads.
            step.in_place(0, 0);
        }
        let capabilities = self.device.capabilities();
        let quads = len / 4;
        let can_keep =
            |team: RowTeam| inner == 1 && len.is_multiple_of(4) && quads <= team.threads * KEPT;
        let usual = match inner {
            1 if can_keep(RowTeam::of(quads, rows, capabilities)) => {
                RowTeam::of(quads, rows, capabilities)
            }
            1 => RowTeam::of(len, rows, capabilities),
            _ => RowTeam::side_by_side(len, rows),
        };
        let variant = format!("{}→{}", types.0, types.1);
        let question = TeamQuestion { family: &FAMILY, variant, rows, len };
        let team = usual.tuned(question, capabilities, step);
        if can_keep(team) {
            return self.kept(team, rows, quads, types, step);
        }
        self.walked(team, lengths, types, step)
    }
}

impl SoftmaxRows {
    fn finish(
        text: String,
        words: DispatchParams,
        declared: String,
        team: RowTeam,
        rows: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
        let text = format!("{declared}{}{text}", words.declare(2));
        let shader = shader("softmax", &text).proved();
        step.dispatch(shader, bindings, words.into_params(), team.groups(rows)?);
        Ok(())
    }

    /// Threads keep their share of the row.
    fn kept(
        &self,
        team: RowTeam,
        rows: usize,
        quads: usize,
        types: (DataType, DataType),
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let share = quads.div_ceil(team.threads).next_power_of_two();
        let mut words = DispatchParams::default();
        let row_count = words.length(rows)?;
        let quad_count = words.length(quads)?;
        let mut text = format!("{JOINS}{}{}", team.shared("f32"), team.entry(&row_count));
        let each = |body: &dyn Fn(usize) -> String| (0..share).map(body).collect::<String>();
        text.push_str(&each(&|k| {
            let quad = load_quad("x", types.0, &format!("(row * {quad_count} + q{k})"));
            format!(
                "let q{k} = t + {}u;\nvar v{k} = vec4<f32>(bitcast<f32>(0xff800000u));\n\
                 if q{k} < {quad_count} {{ v{k} = {quad}; }}\n",
                k * team.threads
            )
        }));
        text.push_str("var all = v0;\n");
        text.push_str(&(1..share).map(|k| format!("all = max(all, v{k});\n")).collect::<String>());
        text.push_str("var m = max(max(all.x, all.y), max(all.z, all.w));\n");
        text.push_str(&team.meet("m", "larger", Some("subgroupMax")));
        text.push_str("var s = 0.0;\n");
        text.push_str(&each(&|k| {
            let kept = if self.logarithm { "" } else { "v{k} = e;" }.replace("{k}", &k.to_string());
            format!(
                "{{ let e = exp4(v{k} - m);\nif q{k} < {quad_count} {{ s += dot(e, vec4<f32>(1.0)); }}\n{kept} }}\n"
            )
        }));
        text.push_str(&team.meet("s", "sum", Some("subgroupAdd")));
        text.push_str(match self.logarithm {
            true => "let shift = log4(vec4<f32>(s)).x;\n",
            false => "let by = 1.0 / s;\n",
        });
        let result = if self.logarithm { "(v - m) - shift" } else { "v * by" };
        text.push_str(&each(&|k| {
            let at = format!("(row * {quad_count} + q{k})");
            let store = store_quad("y", types.1, &at, "result", "0u");
            format!(
                "if inside && q{k} < {quad_count} {{ let v = v{k};\nlet result = {result};\n{store} }}\n"
            )
        }));
        text.push_str("}\n");
        let declared = declare(0, "x", types.0)? + &declare(1, "y", types.1)?;
        Self::finish(text, words, declared, team, rows, step)
    }

    /// Threads walk along the row three times.
    fn walked(
        &self,
        team: RowTeam,
        lengths: SoftmaxLengths,
        types: (DataType, DataType),
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let rows = lengths.rows();
        let mut words = DispatchParams::default();
        let row_count = words.length(rows)?;
        let count = words.length(lengths.len)?;
        let inner = words.length(lengths.inner)?;
        let mut text = format!("{JOINS}{}{}", team.shared("f32"), team.entry(&row_count));
        let x = load("x", types.0, "place");
        let walk = |body: &str| {
            format!(
                "for (var j = t; j < {count}; j += {}u) {{\nlet place = base + j * {inner};\n{body}\n}}\n",
                team.threads
            )
        };
        text.push_str(&format!(
            "let base = (row / {inner}) * {count} * {inner} + row % {inner};\n"
        ));
        text.push_str("var m = bitcast<f32>(0xff800000u);\n");
        text.push_str(&walk(&format!("m = max(m, {x});")));
        text.push_str(&team.meet("m", "larger", Some("subgroupMax")));
        text.push_str("var s = 0.0;\n");
        text.push_str(&walk(&format!("s += exp4(vec4<f32>({x} - m)).x;")));
        text.push_str(&team.meet("s", "sum", Some("subgroupAdd")));
        text.push_str(match self.logarithm {
            true => "let shift = log4(vec4<f32>(s)).x;\n",
            false => "let by = 1.0 / s;\n",
        });
        let result = match self.logarithm {
            true => format!("({x} - m) - shift"),
            false => format!("exp4(vec4<f32>({x} - m)).x * by"),
        };
        let result = if types.1 == DataType::Fp16 { format!("f16({result})") } else { result };
        let store = format!("y[place / 4u][place % 4u] = {result};");
        text.push_str(&format!("if inside {{\n{}}}\n}}\n", walk(&store)));
        let declared = declare(0, "x", types.0)? + &declare(1, "y", types.1)?;
        Self::finish(text, words, declared, team, rows, step)
    }
}

const JOINS: &str = "fn larger(a: f32, b: f32) -> f32 { return max(a, b); }\n\
                     fn sum(a: f32, b: f32) -> f32 { return a + b; }\n";

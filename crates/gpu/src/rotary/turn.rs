//! `FusedRotary` and `RotaryEmbedding`.

use galatea_graph::ops::contrib::ContribRotaryEmbedding;
use galatea_graph::ops::fused::{FusedRotary, RotaryPair};
use galatea_graph::ops::transformer::RotaryEmbedding;
use galatea_tensor::DataType;
use minijinja::context;

use crate::device::KernelShader;
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Halves turned by tables that broadcast, read in any order of axes.
pub(super) const ROTARY: GpuKernelRow = GpuKernelRow {
    name: "rotary",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["Rotary"],
    supports: |view| {
        view.operator::<FusedRotary>()?;
        let ranks = (view.rank(0)?, view.rank(1)?.max(view.rank(2)?));
        if ranks.0 != 4 || ranks.1 > 4 {
            return Err(format!("vectors of rank {} and tables of rank {}", ranks.0, ranks.1));
        }
        view.floats_throughout(&[0, 1, 2])
    },
    build: |view| Ok(Box::new(view.operator::<FusedRotary>()?.clone())),
};

/// ONNX's.
pub(super) const EMBEDDING: GpuKernelRow = GpuKernelRow {
    name: "rotary_embedding",
    domain: "",
    ops: &["RotaryEmbedding"],
    supports: |view| {
        let op: &RotaryEmbedding = view.operator()?;
        packed(view, op.num_heads.is_some())?;
        let positions = view.has(3);
        integers(view, 3)?;
        let tables = (view.rank(1)?, view.rank(2)?);
        let wanted = if positions { 2 } else { 3 };
        if tables != (wanted, wanted) {
            return Err(format!("tables of ranks {tables:?}"));
        }
        view.floats_throughout(&[0, 1, 2])
    },
    build: |view| Ok(Box::new(view.operator::<RotaryEmbedding>()?.clone())),
};

/// Queries and keys at once.
pub(super) const PAIR: GpuKernelRow = GpuKernelRow {
    name: "rotary_pair",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["RotaryPair"],
    supports: |view| {
        let op: &RotaryPair = view.operator()?;
        packed(view, op.first.num_heads.is_some() && op.second.num_heads.is_some())?;
        integers(view, 3)?;
        if !view.has(3) || (view.rank(0)?, view.rank(4)?) != (3, 3) {
            return Err("a pair without positions or heads side by side".into());
        }
        view.floats_throughout(&[0, 1, 2, 4])
    },
    build: |view| Ok(Box::new(view.operator::<RotaryPair>()?.clone())),
};

/// Kernel row for the operator of `com.microsoft`.
pub(super) const CONTRIB: GpuKernelRow = GpuKernelRow {
    name: "rotary_embedding-contrib",
    domain: "com.microsoft",
    ops: &["RotaryEmbedding"],
    supports: |view| {
        view.operator::<ContribRotaryEmbedding>()?;
        packed(view, true)?;
        integers(view, 1)?;
        if !view.has(1) || view.rank(1)? > 2 || (view.rank(2)?, view.rank(3)?) != (2, 2) {
            return Err("positions or tables of another rank".into());
        }
        view.floats_throughout(&[0, 2, 3])
    },
    build: |view| Ok(Box::new(view.operator::<ContribRotaryEmbedding>()?.clone())),
};

fn packed(view: &GpuNodeView<'_>, heads: bool) -> Result<(), String> {
    match view.rank(0)? {
        4 => Ok(()),
        3 if heads => Ok(()),
        rank => Err(format!("vectors of rank {rank}")),
    }
}

fn integers(view: &GpuNodeView<'_>, input: usize) -> Result<(), String> {
    match view.input(input) {
        Some(fact) if fact.dtype != DataType::Int64 => {
            Err(format!("positions are {}, expected INT64", fact.dtype))
        }
        _ => Ok(()),
    }
}

/// A table of cosines or sines.
#[derive(Clone, Copy, Default)]
struct RotaryTable {
    steps: [usize; 4],
    /// From the number for the first of a pair to that for the second.
    apart: usize,
}

/// Rotation that a dispatch computes.
struct RotaryDispatch {
    /// Batch, heads, sequence and elements of a vector.
    shape: [usize; 4],
    x_steps: [usize; 4],
    y_steps: [usize; 4],
    /// The inputs with cosines and sines.
    tables: [(usize, RotaryTable); 2],
    pairs: usize,
    interleaved: bool,
    /// The input of positions, whether it is the first one only, and the rows of the tables.
    positions: Option<(usize, bool, usize)>,
    /// Second input that is rotated by the same angles: its index, its heads and its steps. Its output is the
    /// second one.
    other: Option<(usize, usize, [usize; 4])>,
}

impl RotaryDispatch {
    fn dispatch(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let [batch, heads, sequence, width] = self.shape;
        let units = width.checked_sub(self.pairs).ok_or("more pairs than elements")?;
        let (other, other_heads, other_steps) = self.other.unwrap_or_default();
        let count = batch * (heads + other_heads) * sequence * units;
        let [(cos_input, cos), (sin_input, sin)] = self.tables;
        let positions = self.positions.map_or("", |(_, one, _)| if one { "first" } else { "each" });
        let source = render(
            include_str!("turn.wgsl"),
            context!(
                x => wgsl_float(shapes.dtype(0)?)?,
                cos => wgsl_float(shapes.dtype(cos_input)?)?,
                sin => wgsl_float(shapes.dtype(sin_input)?)?,
                y => wgsl_float(shapes.output_dtype(0)?)?,
                positions,
                other => if other_heads > 0 {
                    vec![wgsl_float(shapes.dtype(other)?)?, wgsl_float(shapes.output_dtype(1)?)?]
                } else {
                    Vec::new()
                },
            ),
        )?;
        let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Input(cos_input)];
        bindings.extend([ShaderBinding::Input(sin_input), ShaderBinding::Output(0)]);
        let mut rows = 0;
        if let Some((input, _, all)) = self.positions {
            bindings.push(ShaderBinding::Input(input));
            rows = all;
        }
        if other_heads > 0 {
            bindings.extend([ShaderBinding::Input(other), ShaderBinding::Output(1)]);
            if shapes.dtype(other)? == shapes.output_dtype(1)? {
                step.in_place(other, 1);
            }
        }
        // Each thread reads what it writes over.
        if self.x_steps == self.y_steps && shapes.dtype(0)? == shapes.output_dtype(0)? {
            step.in_place(0, 0);
        }
        let (apart, along) = if self.interleaved { (1, 2) } else { (self.pairs, 1) };
        let lengths = [batch, heads + other_heads, sequence, units];
        let steps = [lengths, self.x_steps, self.y_steps, cos.steps, sin.steps, other_steps];
        let rest = [self.pairs, apart, along, cos.apart, sin.apart, rows, count, heads];
        let params = steps.into_iter().flatten().chain(rest).map(param);
        let params = params.collect::<Result<_, _>>()?;
        let shader = KernelShader::new("rotary", source);
        step.dispatch(shader, bindings, params, fold(count.div_ceil(64))?);
        Ok(())
    }
}

/// Returns the distances between neighbours along each axis.
fn steps(shape: [usize; 4]) -> [usize; 4] {
    let [_, h, s, d] = shape;
    [h * s * d, s * d, d, 1]
}

impl GpuKernel for FusedRotary {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let stored: [usize; 4] =
            shapes.input(0)?.try_into().map_err(|_| "X has not four axes".to_owned())?;
        let shape = self.perm.map(|axis| stored[axis]);
        let all = steps(stored);
        let half = shape[3] / 2;
        let table = |input: usize| -> Result<(usize, RotaryTable), String> {
            let own = shapes.input(input)?;
            let mut full = [1; 4];
            full[4 - own.len()..].copy_from_slice(own);
            let mut far = steps(full);
            let fits = (0..3).all(|axis| full[axis] == 1 || full[axis] == shape[axis]);
            if !fits || ![1, half, shape[3]].contains(&full[3]) {
                return Err(format!("a table of shape {own:?} for vectors of {shape:?}"));
            }
            for axis in 0..4 {
                if full[axis] == 1 {
                    far[axis] = 0;
                }
            }
            let apart = if full[3] == half { 0 } else { half * far[3] };
            Ok((input, RotaryTable { steps: far, apart }))
        };
        let turn = RotaryDispatch {
            shape,
            x_steps: self.perm.map(|axis| all[axis]),
            y_steps: steps(shape),
            tables: [table(1)?, table(2)?],
            pairs: half,
            interleaved: false,
            positions: None,
            other: None,
        };
        turn.dispatch(shapes, step)
    }
}

/// Batch, heads, sequence and elements of `[B, H, S, D]` or `[B, S, H · D]`, and the steps of these axes.
fn heads(shape: &[usize], heads: Option<usize>) -> Result<([usize; 4], [usize; 4]), String> {
    match (shape, heads) {
        (&[b, h, s, d], _) => Ok(([b, h, s, d], steps([b, h, s, d]))),
        (&[b, s, hidden], Some(h)) if h > 0 && hidden % h == 0 => {
            let d = hidden / h;
            Ok(([b, h, s, d], [s * hidden, d, hidden, 1]))
        }
        _ => Err(format!("vectors of shape {shape:?}")),
    }
}

/// A table by positions.
fn by_position(
    shapes: &NodeShapes,
    input: usize,
    pairs: usize,
) -> Result<(usize, RotaryTable), String> {
    match *shapes.input(input)? {
        [_, own] if own == pairs => Ok((input, RotaryTable { steps: [0, 0, pairs, 1], apart: 0 })),
        ref other => Err(format!("a table of shape {other:?} for {pairs} pairs")),
    }
}

impl GpuKernel for RotaryEmbedding {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let (shape, x_steps) = heads(shapes.input(0)?, self.num_heads)?;
        let pairs = self.pairs(shape[3]).map_err(|error| error.to_string())?;
        let [batch, _, sequence, _] = shape;
        let positions = match shapes.has(3) {
            false => None,
            true if shapes.input(3)? == [batch, sequence] => {
                Some((3, false, shapes.input(1)?.first().copied().unwrap_or(0)))
            }
            true => return Err("positions of another shape".into()),
        };
        let table = |input: usize| match (positions, shapes.input(input)?) {
            (Some(_), _) => by_position(shapes, input, pairs),
            (None, &[own, s, p]) if (own == batch || own == 1) && [s, p] == [sequence, pairs] => {
                let far = if own == 1 { 0 } else { s * p };
                Ok((input, RotaryTable { steps: [far, 0, p, 1], apart: 0 }))
            }
            (None, other) => Err(format!("a table of shape {other:?} for {shape:?}")),
        };
        let tables = [table(1)?, table(2)?];
        let y_steps = x_steps;
        let interleaved = self.interleaved;
        let other = None;
        RotaryDispatch { shape, x_steps, y_steps, tables, pairs, interleaved, positions, other }
            .dispatch(shapes, step)
    }
}

impl GpuKernel for RotaryPair {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let (shape, x_steps) = heads(shapes.input(0)?, self.first.num_heads)?;
        let ([batch, count, sequence, width], steps) =
            heads(shapes.input(4)?, self.second.num_heads)?;
        let pairs = self.first.pairs(shape[3]).map_err(|error| error.to_string())?;
        if [batch, sequence, width] != [shape[0], shape[2], shape[3]] {
            return Err(format!("{:?} beside {:?}", shapes.input(4)?, shapes.input(0)?));
        }
        if *shapes.input(3)? != [batch, sequence] {
            return Err("positions of another shape".into());
        }
        RotaryDispatch {
            shape,
            x_steps,
            y_steps: x_steps,
            tables: [by_position(shapes, 1, pairs)?, by_position(shapes, 2, pairs)?],
            pairs,
            interleaved: self.first.interleaved,
            positions: Some((3, false, shapes.input(1)?.first().copied().unwrap_or(0))),
            other: Some((4, count, steps)),
        }
        .dispatch(shapes, step)
    }
}

impl GpuKernel for ContribRotaryEmbedding {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let &[rows, pairs] = shapes.input(2)? else { return Err("tables have two axes".into()) };
        let by_table = || shapes.input(0).ok()?.last()?.checked_div(2 * pairs);
        let (shape, x_steps) = heads(shapes.input(0)?, self.rotary.num_heads.or_else(by_table))?;
        let own = self.rotary.pairs(shape[3]).map_err(|error| error.to_string())?;
        if own != pairs {
            return Err(format!("{own} pairs with tables of {pairs}"));
        }
        let found = shapes.input(1)?;
        let first = *found == [1];
        if !first && *found != [shape[0], shape[2]] {
            return Err(format!("positions of shape {found:?}"));
        }
        let tables = [by_position(shapes, 2, pairs)?, by_position(shapes, 3, pairs)?];
        let positions = Some((1, first, rows));
        let interleaved = self.rotary.interleaved;
        let y_steps = x_steps;
        let other = None;
        RotaryDispatch { shape, x_steps, y_steps, tables, pairs, interleaved, positions, other }
            .dispatch(shapes, step)
    }
}

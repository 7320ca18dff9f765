//! All elements along some axes become one: the kernel behind reductions and positions of extremes.

use galatea_tensor::DataType;

use crate::choices::KernelFamily;
use crate::device::GpuCapabilities;
use crate::element::{DispatchParams, declare, load, shader, store_quad};
use crate::elementwise::broadcast::contiguous;
use crate::kernel::{DispatchStep, ShaderBinding, param};
use crate::rows::{GROUP, RowTeam, TEXT as ROWS_TEXT, TeamQuestion, place};

/// Fold over elements, as WGSL.
#[derive(Clone, Debug)]
pub(crate) struct ReductionFold {
    /// The type of what is carried along.
    pub(crate) carried: &'static str,
    /// Its value for no elements.
    pub(crate) start: String,
    /// Contribution of one element `x` at position `j` of its row.
    pub(crate) map: String,
    /// The body of `join(a, b)`.
    pub(crate) join: String,
    /// The result, of what is carried as `a` and `count` elements.
    pub(crate) finish: String,
    /// Conversion of what is carried to and from two words: from `a` to words, and from words `w` back. `None`
    /// if it does not fit.
    pub(crate) words: Option<(&'static str, &'static str)>,
    /// Functions that the above call.
    pub(crate) functions: &'static str,
}

/// Axes of a source, those that are reduced and those that stay.
#[derive(Clone, Debug)]
pub(crate) struct ReducedSourceAxes {
    kept: Vec<(usize, usize)>,
    reduced: Vec<(usize, usize)>,
}

impl ReducedSourceAxes {
    /// Creates the axes of a source of this shape.
    pub(crate) fn new(shape: &[usize], is_reduced: impl Fn(usize) -> bool) -> Self {
        let steps = contiguous(shape);
        let mut axes = Self { kept: Vec::new(), reduced: Vec::new() };
        let mut last = None;
        for (axis, (&len, &step)) in shape.iter().zip(&steps).enumerate() {
            if len == 1 {
                continue;
            }
            let reduced = is_reduced(axis);
            let list = if reduced { &mut axes.reduced } else { &mut axes.kept };
            match list.last_mut() {
                Some((own, by)) if last == Some(reduced) => (*own, *by) = (*own * len, step),
                _ => list.push((len, step)),
            }
            last = Some(reduced);
        }
        axes
    }

    fn rows(&self) -> usize {
        self.kept.iter().map(|(len, _)| len).product()
    }

    fn count(&self) -> usize {
        self.reduced.iter().map(|(len, _)| len).product()
    }

    /// Returns whether neighbouring results come from neighbouring elements.
    fn side_by_side(&self) -> bool {
        self.kept.last().is_some_and(|&(_, step)| step == 1) && self.count() > 1
    }
}

/// Bindings of the source and of the result.
#[derive(Clone, Debug)]
pub(crate) struct FoldEnds {
    /// The source.
    pub(crate) from: (ShaderBinding, DataType),
    /// The result.
    pub(crate) to: (ShaderBinding, DataType),
}

/// These kernels, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new("reduce", &[include_str!("fold.rs"), ROWS_TEXT]);

/// Rows longer than this are cut where there are few.
const LONG: usize = 8192;

/// Writes what `fold` makes of the elements of each row.
///
/// # Errors
/// Fails when a shader cannot count them.
pub(crate) fn fold(
    fold: &ReductionFold,
    axes: &ReducedSourceAxes,
    ends: &FoldEnds,
    capabilities: &GpuCapabilities,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let rows = axes.rows();
    let count = axes.count();
    param(rows.saturating_mul(count))?;
    if rows == 0 {
        return Ok(());
    }
    let team = match axes.side_by_side() {
        true => RowTeam::side_by_side(count, rows),
        false => RowTeam::of(count, rows, capabilities),
    };
    let byte = ends.to.1.size_bytes() == Some(1);
    let team = if byte {
        team
    } else {
        let variant = format!("{}→{} {}", ends.from.1, ends.to.1, fold.carried);
        team.tuned(TeamQuestion { family: &FAMILY, variant, rows, len: count }, capabilities, step)
    };
    let cut = count >= LONG && rows * team.threads < 64 * GROUP && !byte;
    let Some((pack, unpack)) = fold.words.filter(|_| cut) else {
        let team = if byte { RowTeam { threads: 1, ..team } } else { team };
        let kernel = FoldShader { fold, axes, team, pieces: 1, pack: None, unpack: None };
        return kernel.add(ends, count, step);
    };
    let pieces = (count / (LONG / 4)).min(GROUP);
    let scratch = ShaderBinding::Scratch(step.scratch((rows * pieces * 8) as u64));
    let first = FoldEnds { from: ends.from.clone(), to: (scratch.clone(), DataType::Int64) };
    let kernel = FoldShader { fold, axes, team, pieces, pack: Some(pack), unpack: None };
    kernel.add(&first, count, step)?;
    let second = FoldEnds { from: (scratch, DataType::Int64), to: ends.to.clone() };
    // Neighbouring rows stay neighbours.
    let (axes, team) = match team.side_by_side {
        true => (
            ReducedSourceAxes { kept: vec![(rows, 1)], reduced: vec![(pieces, rows)] },
            RowTeam::side_by_side(pieces, rows),
        ),
        false => (
            ReducedSourceAxes { kept: vec![(rows, pieces)], reduced: vec![(pieces, 1)] },
            RowTeam::of(pieces, rows, capabilities),
        ),
    };
    let kernel =
        FoldShader { fold, axes: &axes, team, pieces: 1, pack: None, unpack: Some(unpack) };
    kernel.add(&second, count, step)
}

struct FoldShader<'a> {
    fold: &'a ReductionFold,
    axes: &'a ReducedSourceAxes,
    team: RowTeam,
    /// Number of results of each row, each of a piece of it.
    pieces: usize,
    /// Results are words.
    pack: Option<&'static str>,
    /// Elements are words.
    unpack: Option<&'static str>,
}

impl FoldShader<'_> {
    fn add(&self, ends: &FoldEnds, all: usize, step: &mut DispatchStep) -> Result<(), String> {
        let Self { fold, axes, team, pieces, .. } = *self;
        let mut words = DispatchParams::default();
        let rows = axes.rows() * pieces;
        let row_count = words.length(rows)?;
        let count = words.length(axes.count())?;
        let piece = words.length(axes.count().div_ceil(pieces))?;
        let pieces = words.length(pieces)?;
        let all = words.length(all)?;
        let mut text = match self.unpack {
            Some(_) => pairs(0, "source"),
            None => declare(0, "source", ends.from.1)?,
        };
        text.push_str(&match (self.pack, ends.to.1) {
            (Some(_), _) | (None, DataType::Int64) if fold.carried != "i64" => pairs(1, "y"),
            _ => declare(1, "y", ends.to.1)?,
        });
        let places =
            place("base", &axes.kept, &mut words)? + &place("along", &axes.reduced, &mut words)?;
        let (own, which) = match team.side_by_side {
            true => (
                format!("row % ({row_count} / {pieces})"),
                format!("row / ({row_count} / {pieces})"),
            ),
            false => (format!("row / {pieces}"), format!("row % {pieces}")),
        };
        let carried = fold.carried;
        let element = match self.unpack {
            Some(unpack) => format!("let w = source[b + along(j)];\nlet e = {unpack};\n"),
            None => {
                let x = load("source", ends.from.1, "place");
                format!("let place = b + along(j);\nlet x = {x};\nlet e = {};\n", fold.map)
            }
        };
        let functions = format!(
            "{}{}{places}fn join(a: {carried}, b: {carried}) -> {carried} {{\n{}}}\n\
             fn folded(row: u32, t: u32) -> {carried} {{\n\
             let b = base({own});\nlet first = ({which}) * {piece};\n\
             let end = min(first + {piece}, {count});\nvar a = {};\n\
             for (var j = first + t; j < end; j += {}u) {{\n{element}a = join(a, e);\n}}\nreturn a;\n}}\n",
            fold.functions,
            team.shared(carried),
            fold.join,
            fold.start,
            team.threads,
        );
        let body = self.body(ends.to.1, &row_count, &all);
        text = format!("{text}{}{functions}{body}", words.declare(2));
        let bindings = vec![ends.from.0.clone(), ends.to.0.clone()];
        let units = if self.is_byte(ends.to.1) { rows.div_ceil(4) } else { rows };
        let groups = team.groups(units)?;
        step.dispatch(shader("reduce", &text), bindings, words.into_params(), groups);
        Ok(())
    }

    fn is_byte(&self, dtype: DataType) -> bool {
        self.pack.is_none() && dtype.size_bytes() == Some(1)
    }

    fn body(&self, dtype: DataType, rows: &str, all: &str) -> String {
        let Self { fold, team, .. } = *self;
        let finish = |a: &str| {
            let text = self.pack.unwrap_or(&fold.finish);
            format!("{{ let a = {a}; let count = {all}; result = {text}; }}\n")
        };
        if self.is_byte(dtype) {
            // A thread writes a whole word: four results.
            let kind = match dtype {
                DataType::Int8 => "i32",
                _ => "u32",
            };
            let stored = if dtype == DataType::Bool { DataType::Uint8 } else { dtype };
            let lanes = (0..4).map(|lane| {
                let a = format!("folded(min(own * 4u + {lane}u, {rows} - 1u), 0u)");
                format!("{{ var result = {kind}(); {} v[{lane}] = result; }}\n", finish(&a))
            });
            let lanes: String = lanes.collect();
            let store = store_quad("y", stored, "own", "v", rows);
            let entry = team.entry(&format!("(({rows} + 3u) / 4u)"));
            return format!("{entry}var v = vec4<{kind}>();\n{lanes}if inside {{ {store} }}\n}}\n");
        }
        let kind = match (self.pack, dtype) {
            (Some(_), _) => "vec2<u32>",
            (None, DataType::Int64) if fold.carried != "i64" => "vec2<u32>",
            (None, DataType::Fp32 | DataType::Fp16) => "f32",
            (None, DataType::Int32) => "i32",
            (None, DataType::Uint32) => "u32",
            (None, _) => "i64",
        };
        let store = match (kind, dtype) {
            ("vec2<u32>" | "i64", _) => "y[row] = result;".to_owned(),
            (_, DataType::Fp16) => "y[row / 4u][row % 4u] = f16(result);".to_owned(),
            _ => "y[row / 4u][row % 4u] = result;".to_owned(),
        };
        format!(
            "{}var a = folded(row, t);\n{}var result = {kind}();\n{}if inside && t == 0u {{ {store} }}\n}}\n",
            team.entry(rows),
            team.meet("a", "join", None),
            finish("a"),
        )
    }
}

fn pairs(binding: usize, name: &str) -> String {
    format!("@group(0) @binding({binding}) var<storage, read_write> {name}: array<vec2<u32>>;\n")
}

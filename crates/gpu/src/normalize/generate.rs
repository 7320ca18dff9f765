//! Rows brought to mean 0 and spread 1: the text of the kernels.

use galatea_tensor::DataType;

use crate::choices::KernelFamily;
use crate::device::GpuCapabilities;
use crate::element::{DispatchParams, declare, load, load_quad, shader, store_quad};
use crate::kernel::{DispatchStep, ShaderBinding, param};
use crate::rows::{RowTeam, TEXT as ROWS_TEXT, TeamQuestion, place};

/// The most quads of a row that a thread keeps.
const KEPT: usize = 16;

/// Index of a parameter's element that applies at position `j` of a row.
#[derive(Clone, Debug)]
pub(super) enum ParameterIndex {
    /// Element at the same position.
    Position,
    /// By steps along the axes of a row.
    Axes(Vec<(usize, usize)>),
    /// One for each row, again and again after so many rows.
    Row(usize),
    /// One for each channel: so many groups, each of as many channels of so many elements.
    Channel { groups: usize, channels: usize, inner: usize },
}

/// A value that is read beside the rows.
#[derive(Clone, Debug)]
pub(super) struct SideOperand {
    pub(super) input: usize,
    pub(super) dtype: DataType,
    pub(super) at: ParameterIndex,
}

/// Computation on rows of adjacent elements.
#[derive(Clone, Debug)]
pub(super) struct RowProgram {
    pub(super) rows: usize,
    pub(super) len: usize,
    /// Input 0.
    pub(super) dtype: DataType,
    /// Added to the rows: its places are numbers of elements of all rows together.
    pub(super) skip: Option<SideOperand>,
    /// Added to each row.
    pub(super) bias: Option<SideOperand>,
    pub(super) scale: SideOperand,
    /// Added at the end.
    pub(super) shift: Option<SideOperand>,
    /// True if the mean is subtracted.
    pub(super) centred: bool,
    pub(super) epsilon: f32,
    /// The type of output 0.
    pub(super) output: DataType,
    /// The outputs that the mean, the inverse deviation and the sum go to.
    pub(super) mean: Option<(usize, DataType)>,
    pub(super) inverse: Option<(usize, DataType)>,
    pub(super) sum: Option<(usize, DataType)>,
}

/// These kernels, as records of measurements name them.
const FAMILY: KernelFamily =
    KernelFamily::new("normalize", &[include_str!("generate.rs"), ROWS_TEXT]);

impl RowProgram {
    fn variant(&self) -> String {
        let skip = if self.skip.is_some() { " skip" } else { "" };
        let centred = if self.centred { " centred" } else { "" };
        format!("{}→{}{skip}{centred}", self.dtype, self.output)
    }
}

/// A kernel as it is written.
struct KernelText<'a> {
    rows: &'a RowProgram,
    team: RowTeam,
    words: DispatchParams,
    declared: String,
    bindings: Vec<ShaderBinding>,
}

/// Adds the dispatch.
///
/// # Errors
/// Fails when a shader cannot count the elements.
pub(super) fn dispatch(
    rows: &RowProgram,
    capabilities: &GpuCapabilities,
    step: &mut DispatchStep,
) -> Result<(), String> {
    param(rows.rows.saturating_mul(rows.len))?;
    if rows.rows * rows.len == 0 {
        return Ok(());
    }
    let quads = rows.len / 4;
    let team = RowTeam::of(quads, rows.rows, capabilities);
    let can_keep = |team: RowTeam| rows.len.is_multiple_of(4) && quads <= team.threads * KEPT;
    let usual = if can_keep(team) { team } else { RowTeam::of(rows.len, rows.rows, capabilities) };
    let variant = rows.variant();
    let question = TeamQuestion { family: &FAMILY, variant, rows: rows.rows, len: rows.len };
    let team = usual.tuned(question, capabilities, step);
    let kept = can_keep(team);
    let words = DispatchParams::default();
    let declared = String::new();
    let mut text = KernelText { rows, team, words, declared, bindings: Vec::new() };
    let body = text.body(kept)?;
    let KernelText { words, declared, bindings, .. } = text;
    let all = format!("{declared}{}{body}", words.declare(bindings.len()));
    let shader = shader("normalize", &all).proved();
    step.dispatch(shader, bindings, words.into_params(), team.groups(rows.rows)?);
    Ok(())
}

impl KernelText<'_> {
    fn bind(&mut self, name: &str, dtype: DataType, binding: ShaderBinding) -> Result<(), String> {
        self.declared.push_str(&declare(self.bindings.len(), name, dtype)?);
        self.bindings.push(binding);
        Ok(())
    }

    /// Declares a value and the function that finds its element; gives expressions of a quad and of an
    /// element.
    fn beside(&mut self, name: &str, beside: Option<&SideOperand>) -> Result<[String; 2], String> {
        let Some(SideOperand { input, dtype, at }) = beside else { return Ok(Default::default()) };
        self.bind(name, *dtype, ShaderBinding::Input(*input))?;
        let words = &mut self.words;
        let function = match at {
            ParameterIndex::Position => {
                return Ok([load_quad(name, *dtype, "q"), load(name, *dtype, "j")]);
            }
            ParameterIndex::Axes(axes) => {
                let inner = place(&format!("{name}_place"), axes, words)?;
                format!(
                    "{inner}fn {name}_at(row: u32, j: u32) -> u32 {{ return {name}_place(j); }}\n"
                )
            }
            ParameterIndex::Row(every) => {
                let every = words.length(*every)?;
                format!("fn {name}_at(row: u32, j: u32) -> u32 {{ return row % {every}; }}\n")
            }
            ParameterIndex::Channel { groups, channels, inner } => {
                let groups = words.length(*groups)?;
                let channels = words.length(*channels)?;
                let inner = words.length(*inner)?;
                format!(
                    "fn {name}_at(row: u32, j: u32) -> u32 {{ return (row % {groups}) * {channels} + j / {inner}; }}\n"
                )
            }
        };
        // A function reads parameters, which are declared behind it: order does not matter.
        self.declared.push_str(&function);
        let lane = |j: &str| load(name, *dtype, &format!("{name}_at(row, {j})"));
        let lanes: Vec<String> = (0..4).map(|k| lane(&format!("4u * q + {k}u"))).collect();
        Ok([format!("vec4<f32>({})", lanes.join(", ")), lane("j")])
    }

    /// The skip is found by the number of the element in all rows.
    fn skip(&mut self) -> Result<[String; 2], String> {
        let Some(skip) = self.rows.skip.clone() else { return Ok(Default::default()) };
        let [quad, one] = self.beside("skip", Some(&skip))?;
        Ok(match skip.at {
            ParameterIndex::Position => [
                load_quad("skip", skip.dtype, "(base + q)"),
                load("skip", skip.dtype, "(base + j)"),
            ],
            _ => [
                quad.replace("(row, 4u * q", "(row, 4u * (base + q)"),
                one.replace("(row, j)", "(row, base + j)"),
            ],
        })
    }

    fn body(&mut self, kept: bool) -> Result<String, String> {
        let rows = self.rows;
        let row_count = self.words.length(rows.rows)?;
        let count = self.words.length(rows.len)?;
        let unit = if kept { self.words.length(rows.len / 4)? } else { count.clone() };
        let epsilon = self.words.float(rows.epsilon);
        self.bind("source", rows.dtype, ShaderBinding::Input(0))?;
        let skip = self.skip()?;
        let bias = self.beside("bias", rows.bias.as_ref())?;
        let scale = self.beside("scale", Some(&rows.scale))?;
        let shift = self.beside("shift", rows.shift.as_ref())?;
        self.bind("y", rows.output, ShaderBinding::Output(0))?;
        for (name, output) in [("means", rows.mean), ("inverses", rows.inverse), ("sums", rows.sum)]
        {
            if let Some((index, dtype)) = output {
                self.bind(name, dtype, ShaderBinding::Output(index))?;
            }
        }
        let one = usize::from(!kept);
        let plus = |term: &str| if term.is_empty() { String::new() } else { format!(" + {term}") };
        let x = match kept {
            true => load_quad("source", rows.dtype, "(base + q)"),
            false => load("source", rows.dtype, "(base + j)"),
        };
        let x = format!("{x}{}{}", plus(&skip[one]), plus(&bias[one]));
        let y = format!("(x - mean) * inverse * {}{}", scale[one], plus(&shift[one]));
        let walk =
            RowWalk { kept, threads: self.team.threads, unit: &unit, share: self.share(), x: &x };
        let value = if kept { "vec4<f32>" } else { "f32" };
        let total = if kept { "dot(V, vec4<f32>(1.0))" } else { "V" };
        let add = |term: &str| format!("s += {};", total.replace('V', term));
        let mut text = format!("{SUM}{}{}", self.team.shared("f32"), self.team.entry(&row_count));
        text.push_str(&format!("let base = row * {unit};\nvar s = 0.0;\n{}", walk.first()));
        let meet = self.team.meet("s", "sum", Some("subgroupAdd"));
        text.push_str("var mean = 0.0;\n");
        if rows.centred {
            text.push_str(&walk.each(&add("x")));
            text.push_str(&format!("{meet}mean = s / f32({count});\ns = 0.0;\n"));
        }
        text.push_str(&walk.each(&format!("let d = x - {value}(mean); {}", add("d * d"))));
        text.push_str(&format!("{meet}let inverse = 1.0 / sqrt(s / f32({count}) + {epsilon});\n"));
        text.push_str(&self.statistics());
        text.push_str(&format!("if inside {{\n{}}}\n}}\n", walk.each(&self.store(kept, &y))));
        Ok(text)
    }

    fn share(&self) -> usize {
        (self.rows.len / 4).div_ceil(self.team.threads).next_power_of_two()
    }

    fn statistics(&self) -> String {
        let mut text = String::new();
        let all = [("means", "mean", self.rows.mean), ("inverses", "inverse", self.rows.inverse)];
        for (name, value, output) in all {
            if let Some((_, dtype)) = output {
                let value = converted(dtype, value);
                text.push_str(&format!(
                    "if inside && t == 0u {{ {name}[row / 4u][row % 4u] = {value}; }}\n"
                ));
            }
        }
        text
    }

    fn store(&self, kept: bool, y: &str) -> String {
        let write = |name: &str, dtype: DataType, value: &str| match kept {
            true => store_quad(name, dtype, "(base + q)", value, "0u"),
            false => {
                let value = converted(dtype, value);
                format!("{name}[(base + j) / 4u][(base + j) % 4u] = {value};\n")
            }
        };
        let sum = self.rows.sum.map(|(_, dtype)| write("sums", dtype, "x")).unwrap_or_default();
        format!("let y_value = {y};\n{sum}{}", write("y", self.rows.output, "y_value"))
    }
}

fn converted(dtype: DataType, value: &str) -> String {
    if dtype == DataType::Fp16 { format!("f16({value})") } else { value.to_owned() }
}

const SUM: &str = "fn sum(a: f32, b: f32) -> f32 { return a + b; }\n";

/// Traversal of a thread's share of a row, for a first and for further passes.
struct RowWalk<'a> {
    kept: bool,
    threads: usize,
    unit: &'a str,
    share: usize,
    x: &'a str,
}

impl RowWalk<'_> {
    /// Reads what is kept.
    fn first(&self) -> String {
        let Self { threads, unit, x, .. } = self;
        let read = |k: usize| {
            format!(
                "var v{k} = vec4<f32>();\n{{ let q = t + {}u;\nif q < {unit} {{ v{k} = {x}; }} }}\n",
                k * threads
            )
        };
        if self.kept { (0..self.share).map(read).collect() } else { String::new() }
    }

    /// Does something with each `x` of the share.
    fn each(&self, body: &str) -> String {
        let Self { threads, unit, x, .. } = self;
        let with = |k: usize| {
            format!(
                "{{ let q = t + {}u;\nif q < {unit} {{ let x = v{k};\n{body}\n}} }}\n",
                k * threads
            )
        };
        if self.kept {
            return (0..self.share).map(with).collect();
        }
        format!("for (var j = t; j < {unit}; j += {threads}u) {{\nlet x = {x};\n{body}\n}}\n")
    }
}

//! Threads that work on a row together: how many, which ones, and how they bring their shares together.

use galatea_runtime::tune::ConfigSpace;

use crate::choices::{KernelFamily, KernelQuestion, near, ways};
use crate::device::GpuCapabilities;
use crate::element::DispatchParams;
use crate::kernel::{DispatchStep, fold};

/// This file, for versions of kernels that it writes parts of.
pub(crate) const TEXT: &str = include_str!("rows.rs");

/// Threads of a workgroup.
pub(crate) const GROUP: usize = 256;

/// Division of rows among a workgroup's threads. `t` is a thread's number within its row, `row` the row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowTeam {
    /// Threads of a row: a power of 2.
    pub(crate) threads: usize,
    /// True if neighbours in a workgroup work on neighbouring rows, because these lie side by side.
    pub(crate) side_by_side: bool,
    /// True if threads of a row exchange values by subgroup operations.
    pub(crate) subgroups: bool,
}

/// Kernel and lengths for which a team is chosen.
pub(crate) struct TeamQuestion<'a> {
    /// The kernel's family.
    pub(crate) family: &'a KernelFamily,
    /// The kernel's variant.
    pub(crate) variant: String,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Elements of a row.
    pub(crate) len: usize,
}

/// Threads of a row, to choose from; the first is for any shape.
pub(crate) const CONFIGS: &[usize] = &[256, 64, 32, 8, 1];

impl RowTeam {
    /// For rows of so many units.
    pub(crate) fn of(units: usize, rows: usize, capabilities: &GpuCapabilities) -> Self {
        // Few rows leave a device idle unless many threads work on each.
        let most = if rows >= 2048 { 64 } else { GROUP };
        let fits = |threads: &&usize| **threads <= most && **threads <= units.max(1);
        let threads = CONFIGS.iter().find(fits).copied().unwrap_or(1);
        let threads = if threads < 32 && units > 8 { 32 } else { threads };
        Self::with(threads, capabilities)
    }

    /// For rows that lie side by side.
    pub(crate) fn side_by_side(len: usize, rows: usize) -> Self {
        let threads = match (len, rows) {
            (64.., ..4096) => 32,
            (16.., ..65_536) => 8,
            _ => 1,
        };
        Self { threads, side_by_side: true, subgroups: false }
    }

    /// Creates a team of so many threads for each row.
    pub(crate) fn with(threads: usize, capabilities: &GpuCapabilities) -> Self {
        let subgroups = threads == GROUP && capabilities.subgroup.is_some();
        Self { threads, side_by_side: false, subgroups }
    }

    /// The team that was measured the fastest for such rows, or this one.
    pub(crate) fn tuned(
        self,
        question: TeamQuestion<'_>,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Self {
        let TeamQuestion { family, variant, rows, len } = question;
        let found = step.choose(family, || {
            let beside = if self.side_by_side { " side by side" } else { "" };
            KernelQuestion {
                variant: format!("{variant}{beside}"),
                lengths: vec![("rows", rows), ("len", len)],
                space: ConfigSpace::new(vec![ways(
                    "threads",
                    CONFIGS.iter().map(usize::to_string),
                )]),
                tolerance: near::HALVES,
            }
        });
        match found.checked_sub(1).and_then(|at| CONFIGS.get(at)) {
            Some(&threads) if self.side_by_side => Self { threads, ..self },
            Some(&threads) => Self::with(threads, capabilities),
            None => self,
        }
    }

    /// Rows of a workgroup.
    pub(crate) fn rows(self) -> usize {
        GROUP / self.threads
    }

    /// Workgroups for so many rows.
    ///
    /// # Errors
    /// Fails when there are more than a device starts.
    pub(crate) fn groups(self, rows: usize) -> Result<[u32; 3], String> {
        fold(rows.div_ceil(self.rows()))
    }

    /// The head of a kernel, which names `t`, `row` and `inside`: rows behind the last one are worked
    /// on like the last one, and not written.
    pub(crate) fn entry(self, rows: &str) -> String {
        let threads = self.threads;
        let each = self.rows();
        let (t, slot) = match self.side_by_side {
            true => (format!("lane / {each}u"), format!("lane % {each}u")),
            false => (format!("lane % {threads}u"), format!("lane / {threads}u")),
        };
        let subgroups = match self.subgroups {
            true => {
                ", @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32, \
                 @builtin(subgroup_invocation_id) subgroup_lane: u32"
            }
            false => "",
        };
        format!(
            "@compute @workgroup_size({GROUP})\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32{subgroups}) {{\n\
             let t = {t};\n\
             let own = (group.x + group.y * groups.x) * {each}u + {slot};\n\
             let inside = own < {rows};\n\
             let row = min(own, {rows} - 1u);\n"
        )
    }

    /// The declaration of what the threads of a workgroup share.
    pub(crate) fn shared(self, value: &str) -> String {
        match self.threads {
            1 => String::new(),
            _ => format!("var<workgroup> part: array<{value}, {GROUP}>;\n"),
        }
    }

    /// Statements that make the variable `name` of all threads of a row what `join(a, b)` makes of it;
    /// `subgroup` is the operation that does so within a subgroup, if there is one.
    pub(crate) fn meet(self, name: &str, join: &str, subgroup: Option<&str>) -> String {
        if self.threads == 1 {
            return String::new();
        }
        if let (true, Some(operation)) = (self.subgroups, subgroup) {
            return format!(
                "{name} = {operation}({name});\n\
                 if subgroup_lane == 0u {{ part[subgroup] = {name}; }}\n\
                 workgroupBarrier();\n\
                 {name} = part[0];\n\
                 for (var i = 1u; i < subgroups; i++) {{ {name} = {join}({name}, part[i]); }}\n\
                 workgroupBarrier();\n"
            );
        }
        let apart = if self.side_by_side { self.rows() } else { 1 };
        let half = self.threads / 2;
        format!(
            "part[lane] = {name};\n\
             workgroupBarrier();\n\
             for (var s = {half}u; s > 0u; s = s / 2u) {{\n\
             if t < s {{ part[lane] = {join}(part[lane], part[lane + s * {apart}u]); }}\n\
             workgroupBarrier();\n}}\n\
             {name} = part[lane - t * {apart}u];\n\
             workgroupBarrier();\n"
        )
    }
}

/// A function from a number to a place, along axes of these lengths and steps.
///
/// # Errors
/// Fails when a length is beyond 32 bits.
pub(crate) fn place(
    name: &str,
    axes: &[(usize, usize)],
    words: &mut DispatchParams,
) -> Result<String, String> {
    let mut text = format!("fn {name}(number: u32) -> u32 {{\nvar r = number;\nvar at = 0u;\n");
    for (index, &(len, step)) in axes.iter().enumerate().rev() {
        let step = words.length(step)?;
        if index == 0 {
            text.push_str(&format!("at = at + r * {step};\n"));
        } else {
            let len = words.length(len)?;
            text.push_str(&format!("at = at + (r % {len}) * {step};\nr = r / {len};\n"));
        }
    }
    text.push_str("return at;\n}\n");
    Ok(text)
}

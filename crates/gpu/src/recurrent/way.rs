//! The ways to compute the steps of a recurrent layer, and which one is taken.

use std::cmp::Reverse;

use galatea_runtime::NodeShapes;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;

use super::input;
use super::lengths::RecurrentLengths;
use crate::choices::{KernelFamily, KernelQuestion, label, near, ways};
use crate::device::GpuCapabilities;
use crate::kernel::DispatchStep;

/// Threads of a workgroup and what they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTeam {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Threads that multiply the state with the weights of one unit.
    pub lanes: usize,
    /// Sequences that they do so for.
    pub rows: usize,
}

/// A way to compute the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentWay {
    /// Many steps in one dispatch: a workgroup computes a whole layer for some sequences.
    Resident(StepTeam),
    /// A dispatch for each step, or two where the gates come first.
    Steps(StepTeam),
    /// The same behind a matrix multiplication (GEMM) for the product with the state's weights.
    Products,
}

/// These kernels, as records of measurements name them.
const FAMILY: KernelFamily =
    KernelFamily::new("recurrent", &[include_str!("step.wgsl"), include_str!("step.rs")]);

const fn team(threads: usize, lanes: usize, rows: usize) -> StepTeam {
    StepTeam { threads, lanes, rows }
}

/// Teams that a tuner may choose for steps.
const STEPS: &[StepTeam] = &[
    team(128, 32, 1),
    team(128, 32, 4),
    team(128, 8, 1),
    team(128, 8, 2),
    team(128, 8, 4),
    team(128, 8, 8),
];

/// The same where a workgroup computes a whole layer.
const RESIDENT: &[StepTeam] =
    &[team(256, 8, 1), team(256, 8, 4), team(512, 8, 1), team(512, 8, 2), team(1024, 8, 1)];

/// Weights of so many elements at most are multiplied by one workgroup.
const RESIDENT_WEIGHTS: usize = 48 << 10;

/// From so many sequences on a matrix multiplication is worth its dispatch.
const PRODUCT_ROWS: usize = 128;

/// Workgroups that keep a device busy.
const BUSY: usize = 128;

impl RecurrentWay {
    /// Name in records.
    fn name(&self) -> String {
        match self {
            Self::Resident(team) => format!("resident {}", label(team)),
            Self::Steps(team) => format!("steps {}", label(team)),
            Self::Products => "products".to_owned(),
        }
    }
}

impl RecurrentLengths {
    /// Returns whether a team's threads and memory are there.
    fn fits(&self, team: &StepTeam, resident: bool, capabilities: &GpuCapabilities) -> bool {
        // Vectors of three elements lie as far apart as those of four.
        let sums = 4 * self.gates.next_power_of_two() * team.threads * team.rows;
        let states =
            if resident { 4 * self.kept * team.rows * self.hidden.next_multiple_of(4) } else { 0 };
        team.threads <= capabilities.workgroup_threads as usize
            && sums + states <= capabilities.workgroup_bytes as usize
    }

    /// The ways that a tuner may choose.
    pub(super) fn ways(&self, capabilities: &GpuCapabilities) -> Vec<RecurrentWay> {
        let steps = STEPS.iter().filter(|team| self.fits(team, false, capabilities));
        let resident = RESIDENT.iter().filter(|team| self.fits(team, true, capabilities));
        let steps = steps.map(|team| RecurrentWay::Steps(*team));
        let resident = resident.map(|team| RecurrentWay::Resident(*team));
        steps.chain(resident).chain([RecurrentWay::Products]).collect()
    }

    /// The way that lengths and device suggest.
    pub(super) fn usual_way(&self, capabilities: &GpuCapabilities) -> RecurrentWay {
        let rows = self.batch.next_power_of_two();
        let fitting = |all: &'static [StepTeam], resident: bool| {
            all.iter().filter(move |team| self.fits(team, resident, capabilities))
        };
        if self.gates * self.hidden * self.hidden <= RESIDENT_WEIGHTS {
            // Many sequences are many workgroups, and few are to have all threads.
            let most = if self.batch * self.passes > BUSY { 4 } else { 1 };
            let found = fitting(RESIDENT, true).filter(|team| team.rows <= most.min(rows));
            // No more threads than units have use for: all of them meet at every step.
            let units = |team: &StepTeam| (team.threads / team.lanes).min(self.hidden);
            let best = found.max_by_key(|team| (team.rows, units(team), Reverse(team.threads)));
            if let Some(team) = best {
                return RecurrentWay::Resident(*team);
            }
        }
        if self.batch >= PRODUCT_ROWS {
            return RecurrentWay::Products;
        }
        let found = fitting(STEPS, false).filter(|team| team.rows <= rows);
        let groups = |team: &StepTeam| {
            let units = team.threads / team.lanes;
            self.passes * self.hidden.div_ceil(units) * self.batch.div_ceil(team.rows)
        };
        let best = found.max_by_key(|team| (groups(team) >= BUSY, team.rows, team.lanes));
        best.map_or(RecurrentWay::Products, |team| RecurrentWay::Steps(*team))
    }

    /// The one that was measured the fastest, where there is a record.
    ///
    /// # Errors
    /// Fails when a type is not there.
    pub(super) fn tuned_way(
        &self,
        shapes: &NodeShapes,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<RecurrentWay, String> {
        let all = self.ways(capabilities);
        let types = [shapes.dtype(input::X)?, shapes.dtype(input::R)?];
        let found = step.choose(&FAMILY, || KernelQuestion {
            variant: format!("{}·{} {} gates {} kept", types[0], types[1], self.gates, self.kept),
            lengths: vec![
                ("steps", self.steps),
                ("batch", self.batch * self.passes),
                ("hidden", self.hidden),
            ],
            space: ConfigSpace::new(vec![ways("way", all.iter().map(RecurrentWay::name))]),
            tolerance: if types.contains(&DataType::Fp16) { near::HALVES } else { near::SUMS },
        });
        let other = found.checked_sub(1).and_then(|at| all.get(at).copied());
        Ok(other.unwrap_or_else(|| self.usual_way(capabilities)))
    }
}

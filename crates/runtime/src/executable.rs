//! Interface of compiled partitions.

use std::fmt;
use std::time::Duration;

use galatea_graph::Datum;
use galatea_tensor::{DataType, Tensor};

use crate::error::RuntimeError;
use crate::profile::ProfileRow;
use crate::tune::TuningProblem;

/// A compiled partition. Several threads may submit at the same time.
pub trait Executable: Send + Sync {
    /// Starts a run.
    fn submit(&self, run: PartitionRun<'_>) -> RunFence;

    /// Returns what the partition holds and has planned now.
    fn report(&self) -> PartitionReport {
        PartitionReport::default()
    }

    /// Returns what the partition offers beside runs.
    fn traits(&self) -> ExecutableTraits<'_> {
        ExecutableTraits::default()
    }
}

/// One run of a partition.
#[derive(Clone, Debug, Default)]
pub struct PartitionRun<'r> {
    /// Inputs in the order of the partition's graph.
    pub inputs: Vec<Datum>,
    /// Entry for each output: whether it is wanted. None stands for all. Values that no wanted output depends on
    /// need not be computed, and unwanted outputs need not be copied back. A provider that cannot leave any
    /// out returns all of them.
    pub wanted: Option<&'r [bool]>,
    /// Asks for the time of each step, from providers that can tell.
    pub profile: bool,
}

impl From<Vec<Datum>> for PartitionRun<'_> {
    fn from(inputs: Vec<Datum>) -> Self {
        Self { inputs, wanted: None, profile: false }
    }
}

/// Result of a run of a partition.
#[derive(Clone, Debug, Default)]
pub struct PartitionResult {
    /// The wanted outputs in the order of the partition's graph, or all of them.
    pub outputs: Vec<Datum>,
    /// Times of the steps of a profiled run, where the provider can tell.
    pub rows: Vec<ProfileRow>,
}

impl From<Vec<Datum>> for PartitionResult {
    fn from(outputs: Vec<Datum>) -> Self {
        Self { outputs, rows: Vec::new() }
    }
}

impl PartitionResult {
    /// Leaves the wanted outputs only, where the provider returned all of them.
    #[must_use]
    pub fn only(mut self, wanted: Option<&[bool]>) -> Self {
        // A mask that leaves something out has fewer wanted outputs than entries.
        if let Some(wanted) = wanted.filter(|wanted| wanted.len() == self.outputs.len()) {
            let mut wanted = wanted.iter();
            self.outputs.retain(|_| wanted.next().is_none_or(|wanted| *wanted));
        }
        self
    }
}

/// Abilities of a partition beside runs.
#[derive(Clone, Copy, Default)]
pub struct ExecutableTraits<'e> {
    /// True if a profiled run is one run that costs little more than a plain one. It may then replace plain
    /// runs while someone watches.
    pub times_steps: bool,
    /// Memory that runs share with their caller.
    pub buffers: Option<&'e dyn BufferExchange>,
    /// Kernels that can be tuned.
    pub tuning: Option<&'e dyn TunableKernels>,
}

impl fmt::Debug for ExecutableTraits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutableTraits")
            .field("times_steps", &self.times_steps)
            .field("buffers", &self.buffers.is_some())
            .field("tuning", &self.tuning.is_some())
            .finish()
    }
}

/// Exchange of memory between a partition and whoever reads and writes its values.
pub trait BufferExchange {
    /// Takes an output back that nobody reads any more, so that a later run may write that output into
    /// its memory. `output` is its place among those of the partition's graph.
    fn return_buffer(&self, _output: usize, _tensor: Tensor) {}

    /// Returns a tensor of zeros in memory where runs find and keep this input without a copy, such as a
    /// device's; `None` where that is the host's memory. `input` is its place among those of the
    /// partition's graph.
    ///
    /// # Errors
    /// Fails when there is no memory for it.
    fn allocate_input(
        &self,
        _input: usize,
        _dtype: DataType,
        _shape: &[usize],
    ) -> Result<Option<Tensor>, RuntimeError> {
        Ok(None)
    }
}

/// Partition with several possible kernels for its nodes.
pub trait TunableKernels {
    /// Returns the problems with several possible kernels for inputs of these shapes, to be measured. Between two
    /// nodes `pause` is called, which may hold up.
    ///
    /// # Errors
    /// Fails when the shapes are refused.
    fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError>;

    /// Returns whether new records may be put to use by compiling the partition again while it serves. Otherwise
    /// they hold from the next load on.
    fn recompiles(&self) -> bool {
        true
    }
}

/// State of a partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionReport {
    /// Memory held now.
    pub memory: MemoryReport,
    /// Statistics of run plans; all zero if the provider makes none.
    pub plans: PlanReport,
    /// Device that an underlying framework means to use for each operator; empty if it does not report this.
    pub placed: Vec<PlacedOperator>,
}

/// Memory that a session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryReport {
    /// Bytes of weights in memory of this process alone, packed copies included.
    pub initializer_bytes: usize,
    /// Bytes of weights, packed ones too, in mapped files: they take memory only as far as they are
    /// used, once for all processes.
    pub mapped_bytes: usize,
    /// Bytes of the arenas for intermediate values that exist now.
    pub arena_bytes: usize,
}

impl MemoryReport {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            initializer_bytes: self.initializer_bytes + other.initializer_bytes,
            mapped_bytes: self.mapped_bytes + other.mapped_bytes,
            arena_bytes: self.arena_bytes + other.arena_bytes,
        }
    }
}

/// Statistics of run plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Number of sets of input shapes with a plan at present.
    pub plans: usize,
    /// Number of plans that were made since the start, including those that were evicted.
    pub made: usize,
    /// Time that making them took.
    pub time: Duration,
    /// Bytes of the arena in the plan that was used last.
    pub arena_bytes: usize,
    /// The most bytes that live at once in that plan: no arena can be smaller.
    pub live_bytes: usize,
    /// Multiplications and additions of matrix products and convolutions in all runs so far.
    pub operations: u64,
}

impl PlanReport {
    /// Returns the sum of both: arenas are held at the same time.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            plans: self.plans + other.plans,
            made: self.made + other.made,
            time: self.time + other.time,
            arena_bytes: self.arena_bytes + other.arena_bytes,
            live_bytes: self.live_bytes + other.live_bytes,
            operations: self.operations.saturating_add(other.operations),
        }
    }
}

/// An operator of a partition that a system's framework has placed on one of its devices.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedOperator {
    /// The operator, as the framework names it.
    pub operator: String,
    /// Names of its outputs.
    pub outputs: Vec<String>,
    /// The device that is to run it.
    pub planned: String,
    /// The devices that could run it.
    pub supported: Vec<String>,
    /// Its share of the partition's cost, from 0 to 1, where that is known.
    pub weight: Option<f64>,
}

/// The end of a run, to be waited for.
pub struct RunFence(Box<dyn FnOnce() -> Result<PartitionResult, RuntimeError> + Send>);

impl RunFence {
    /// Returns the fence of a run that is over.
    #[must_use]
    pub fn ready<R: Into<PartitionResult>>(result: Result<R, RuntimeError>) -> Self {
        let result = result.map(Into::into);
        Self(Box::new(move || result))
    }

    /// Returns the fence of a run that could not begin.
    #[must_use]
    pub fn failed(error: RuntimeError) -> Self {
        Self(Box::new(move || Err(error)))
    }

    /// Returns the fence of a run that goes on; `wait` blocks until its end.
    #[must_use]
    pub fn pending<R: Into<PartitionResult>>(
        wait: impl FnOnce() -> Result<R, RuntimeError> + Send + 'static,
    ) -> Self {
        Self(Box::new(move || wait().map(Into::into)))
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// Fails when the run failed.
    pub fn wait(self) -> Result<PartitionResult, RuntimeError> {
        (self.0)()
    }

    /// Waits for the outputs alone.
    ///
    /// # Errors
    /// Returns the same errors as [`RunFence::wait`].
    pub fn outputs(self) -> Result<Vec<Datum>, RuntimeError> {
        Ok(self.wait()?.outputs)
    }
}

impl fmt::Debug for RunFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunFence")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwanted_outputs_are_left_out_where_all_were_returned() {
        let value = |n: i64| Datum::Tensor(Tensor::scalar(n));
        let outputs = || vec![value(1), value(2), value(3)];
        let kept = |outputs: Vec<Datum>, wanted: Option<&[bool]>| {
            PartitionResult::from(outputs).only(wanted).outputs.len()
        };
        assert_eq!(kept(outputs(), None), 3);
        assert_eq!(kept(outputs(), Some(&[false, true, false])), 1);
        assert_eq!(kept(vec![value(2)], Some(&[false, true, false])), 1);
        assert_eq!(kept(outputs(), Some(&[true, true, true])), 3);
    }
}

//! Compiled partitions of one placement of a graph.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use galatea_graph::ValueId;
use galatea_tensor::Tensor;

use super::padded::PaddedAxes;
use crate::error::RuntimeError;
use crate::executable::Executable;
use crate::power::BusyTime;
use crate::watch::WatchSource;

/// The compiled partitions of one placement.
pub(super) struct CompiledPartitions {
    pub(super) parts: Vec<CompiledPart>,
    /// Values that cross partitions, each with a slot; the model's inputs come first.
    pub(super) slots: usize,
    /// The last partition that takes each of them; none for what the model gives.
    pub(super) last_use: Vec<usize>,
    /// Outputs of the model: a slot, or a constant.
    pub(super) outputs: Vec<SlotOutput>,
    /// The axes that are padded, where a part's provider wants few lengths.
    pub(super) padded: Option<Arc<PaddedAxes>>,
    /// Observer that is told of its runs.
    pub(super) watch: WatchSource,
}

/// Place of one of the model's outputs.
pub(super) enum SlotOutput {
    Slot(usize),
    Constant(Tensor),
}

/// A compiled partition.
pub(super) struct CompiledPart {
    /// Place of its provider among the session's.
    pub(super) provider: usize,
    /// The provider's name.
    pub(super) name: &'static str,
    pub(super) nodes: Range<usize>,
    pub(super) executable: Box<dyn Executable>,
    /// Slots of its inputs.
    pub(super) inputs: Vec<usize>,
    /// Slots of its outputs.
    pub(super) outputs: Vec<usize>,
    /// True once a run has succeeded.
    pub(super) proven: AtomicBool,
    /// True if it runs at the same time as the one before it.
    pub(super) beside: bool,
    /// Counter of the time of its runs.
    pub(super) spent: BusyTime,
    /// Moving average of the time of its runs, of whatever shapes.
    pub(super) typical: MovingAverage,
}

/// A failed partition of a run.
pub(super) struct PartFailure {
    pub(super) part: usize,
    pub(super) error: RuntimeError,
}

impl CompiledPartitions {
    /// Returns the form of a session that has none yet.
    pub(super) fn none() -> Self {
        Self {
            parts: Vec::new(),
            slots: 0,
            last_use: Vec::new(),
            outputs: Vec::new(),
            padded: None,
            watch: WatchSource::default(),
        }
    }

    /// Returns the slot of one of the model's outputs, unless it is a constant.
    pub(super) fn output_slot(&self, output: usize) -> Option<usize> {
        match self.outputs.get(output)? {
            SlotOutput::Slot(slot) => Some(*slot),
            SlotOutput::Constant(_) => None,
        }
    }
}

/// Returns the last part that takes the value of each slot, where the model does not give it.
pub(super) fn last_use(parts: &[CompiledPart], outputs: &[SlotOutput], slots: usize) -> Vec<usize> {
    let mut last_use = vec![usize::MAX; slots];
    for (index, part) in parts.iter().enumerate() {
        for &slot in &part.inputs {
            last_use[slot] = index;
        }
    }
    for output in outputs {
        if let SlotOutput::Slot(slot) = output {
            last_use[*slot] = usize::MAX;
        }
    }
    last_use
}

/// Slots of the values that cross partitions.
pub(super) struct ValueSlots(HashMap<ValueId, usize>);

impl ValueSlots {
    pub(super) fn new(inputs: &[ValueId]) -> Self {
        Self(inputs.iter().enumerate().map(|(slot, &id)| (id, slot)).collect())
    }

    pub(super) fn of(&mut self, id: ValueId) -> usize {
        let next = self.0.len();
        *self.0.entry(id).or_insert(next)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Reciprocal of the weight of a new run in the average of a part's time.
const AVERAGED_RUNS: u64 = 8;

/// Average time of the last runs of a part.
#[derive(Debug, Default)]
pub(super) struct MovingAverage(AtomicU64);

impl MovingAverage {
    pub(super) fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / AVERAGED_RUNS);
        let known = self.0.load(Ordering::Relaxed);
        let next = match known {
            0 => took,
            known => known - known / AVERAGED_RUNS + took / AVERAGED_RUNS,
        };
        // Of two runs that end at the same time one may be forgotten.
        self.0.store(next, Ordering::Relaxed);
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

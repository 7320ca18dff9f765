//! Values that the wanted outputs of a run need.

use galatea_graph::Datum;

use super::compiled::{CompiledPart, CompiledPartitions, SlotOutput};
use super::run::OutputMask;
use crate::error::RuntimeError;
use crate::executable::{PartitionResult, PartitionRun};
use crate::intervals::IntervalKind;
use crate::watch::WatchSource;

/// For each slot, whether a wanted output needs its value; none where all outputs are wanted.
pub(super) struct RequiredValues(Option<Vec<bool>>);

/// Outputs that are wanted of a part, and whether its steps are timed.
pub(super) struct PartRequest {
    wanted: Option<Vec<bool>>,
    profile: bool,
}

impl RequiredValues {
    pub(super) fn of(&self, part: &CompiledPart, profile: bool) -> PartRequest {
        let slots = self.0.as_ref();
        let wanted = slots.map(|needed| part.outputs.iter().map(|&slot| needed[slot]).collect());
        PartRequest { wanted, profile }
    }
}

impl PartRequest {
    /// Returns whether the part need not run.
    pub(super) fn is_none(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&true))
    }

    /// Runs a part to the end, and tells whoever watches.
    pub(super) fn run(
        &self,
        part: &CompiledPart,
        inputs: Vec<Datum>,
        watch: &WatchSource,
    ) -> Result<PartitionResult, RuntimeError> {
        let wanted = self.wanted.as_deref().filter(|wanted| wanted.contains(&false));
        let what = || format!("{} on {}", watch.model, part.name);
        let recorded = watch.is_recording().then(what);
        let _recorded = recorded.and_then(|what| watch.interval_of(IntervalKind::Partition, &what));
        let submit = |profile: bool| {
            let ran = part.executable.submit(PartitionRun { inputs, wanted, profile }).wait();
            ran.map(|result| result.only(wanted))
        };
        if self.profile {
            return submit(true);
        }
        let Some(watched) = watch.begin(part.name) else { return submit(false) };
        let mut result = submit(part.executable.traits().times_steps)?;
        watched.end(std::mem::take(&mut result.rows));
        Ok(result)
    }

    /// Returns the slots of the part's wanted outputs.
    pub(super) fn slots<'p>(&'p self, part: &'p CompiledPart) -> impl Iterator<Item = usize> + 'p {
        OutputMask::from_entries(self.wanted.as_deref()).of(&part.outputs).copied()
    }
}

impl CompiledPartitions {
    /// Returns the slots that the wanted outputs need.
    pub(super) fn required(&self, wanted: OutputMask<'_>) -> RequiredValues {
        if let OutputMask::All = wanted {
            return RequiredValues(None);
        }
        let mut needed = vec![false; self.slots];
        for output in wanted.of(&self.outputs) {
            if let SlotOutput::Slot(slot) = output {
                needed[*slot] = true;
            }
        }
        for part in self.parts.iter().rev() {
            if part.outputs.iter().any(|&slot| needed[slot]) {
                part.inputs.iter().for_each(|&slot| needed[slot] = true);
            }
        }
        RequiredValues(Some(needed))
    }
}

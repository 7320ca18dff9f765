//! Runs of which only some outputs are asked for.

use galatea_graph::Datum;
use galatea_tensor::Tensor;

use super::{CompiledPart, CompiledPartitions, Session, SlotOutput};
use crate::binding::bind;
use crate::error::RuntimeError;
use crate::provider::{ProfileRow, RunFence};
use crate::watch::WatchSource;

/// Outputs that are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutputMask<'w> {
    All,
    /// A place for each.
    Some(&'w [bool]),
}

impl OutputMask<'_> {
    /// Selects the wanted ones of things that stand for the outputs.
    pub(super) fn of<T>(self, all: &[T]) -> impl Iterator<Item = &T> {
        all.iter().enumerate().filter_map(move |(at, one)| match self {
            Self::Some(wanted) => wanted.get(at).is_some_and(|wanted| *wanted).then_some(one),
            Self::All => Some(one),
        })
    }
}

/// For each slot, whether something that is wanted needs its value; all of them where nothing is said.
pub(super) struct RequiredValues(Option<Vec<bool>>);

/// Outputs that are wanted of a part.
pub(super) struct PartRequest(Option<Vec<bool>>);

impl RequiredValues {
    pub(super) fn of(&self, part: &CompiledPart) -> PartRequest {
        let slots = self.0.as_ref();
        PartRequest(slots.map(|needed| part.outputs.iter().map(|&slot| needed[slot]).collect()))
    }
}

impl PartRequest {
    /// Returns whether the part need not run.
    pub(super) fn is_none(&self) -> bool {
        self.0.as_ref().is_some_and(|wanted| !wanted.contains(&true))
    }

    pub(super) fn submit(&self, part: &CompiledPart, inputs: Vec<Datum>) -> RunFence {
        match self.only() {
            Some(wanted) => part.executable.submit_wanted(inputs, wanted),
            None => part.executable.submit(inputs),
        }
    }

    /// Runs to the end, and tells whoever watches.
    pub(super) fn run(
        &self,
        part: &CompiledPart,
        inputs: Vec<Datum>,
        watch: &WatchSource,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let Some(watched) = watch.begin(part.name) else { return self.submit(part, inputs).wait() };
        let (outputs, rows) = match part.executable.times_steps() {
            true => self.profile(part, inputs)?,
            false => (self.submit(part, inputs).wait()?, Vec::new()),
        };
        watched.end(rows);
        Ok(outputs)
    }

    pub(super) fn profile(
        &self,
        part: &CompiledPart,
        inputs: Vec<Datum>,
    ) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        match self.only() {
            Some(wanted) => part.executable.profile_wanted(inputs, wanted),
            None => part.executable.profile(inputs),
        }
    }

    /// The outputs, where these are not all.
    fn only(&self) -> Option<&[bool]> {
        self.0.as_deref().filter(|wanted| wanted.contains(&false))
    }

    /// The slots of what the part gives.
    pub(super) fn slots<'p>(&'p self, part: &'p CompiledPart) -> impl Iterator<Item = usize> + 'p {
        let wanted = self.0.as_deref().map_or(OutputMask::All, OutputMask::Some);
        wanted.of(&part.outputs).copied()
    }
}

impl CompiledPartitions {
    /// The slots that the wanted outputs need.
    pub(super) fn needed(&self, wanted: OutputMask<'_>) -> RequiredValues {
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

impl Session {
    /// Works like [`Session::run_owned`], and returns only the outputs that are wanted, in their order:
    /// `wanted` has an entry for each of [`Session::outputs`]. Values that they do not depend on are not
    /// computed, and unwanted outputs are not copied back from a device.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run`], and fails if `wanted` has another length.
    pub fn run_wanted(
        &self,
        inputs: Vec<Tensor>,
        wanted: &[bool],
    ) -> Result<Vec<Tensor>, RuntimeError> {
        self.check_wanted(wanted)?;
        let outputs = self.owned(inputs, OutputMask::Some(wanted))?;
        self.tensors(outputs, OutputMask::Some(wanted))
    }

    /// Works like [`Session::profile`], for a run that returns only the outputs that are wanted.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run_wanted`].
    pub fn profile_wanted(
        &self,
        inputs: &[(&str, Tensor)],
        wanted: &[bool],
    ) -> Result<(Vec<Tensor>, Vec<ProfileRow>), RuntimeError> {
        self.check_wanted(wanted)?;
        let inputs = bind(&self.inputs, inputs)?;
        let mut rows = Some(Vec::new());
        let outputs = self.run_or_demote(&inputs, OutputMask::Some(wanted), &mut rows)?;
        Ok((self.tensors(outputs, OutputMask::Some(wanted))?, rows.unwrap_or_default()))
    }

    fn check_wanted(&self, wanted: &[bool]) -> Result<(), RuntimeError> {
        let found = wanted.len();
        let expected = self.outputs.len();
        if found == expected {
            return Ok(());
        }
        let text =
            format!("{found} outputs are said to be wanted or not, the model has {expected}");
        Err(RuntimeError::Input(text))
    }

    /// Returns whether an output is computed on a device and copied back from there. `output` is its index in
    /// [`Session::outputs`].
    #[must_use]
    pub fn reads_back(&self, output: usize) -> bool {
        let compiled = self.current();
        let Some(SlotOutput::Slot(slot)) = compiled.outputs.get(output) else { return false };
        let part = compiled.parts.iter().find(|part| part.outputs.contains(slot));
        part.is_some_and(|part| self.providers[part.provider].reads_back())
    }
}

//! Runs of which only some outputs are asked for.

use galatea_graph::Datum;
use galatea_tensor::Tensor;

use super::{Compiled, Output, Part, Session};
use crate::binding::bind;
use crate::error::RuntimeError;
use crate::provider::{Fence, ProfileRow};
use crate::watch::WatchSource;

/// Which outputs are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'w> {
    All,
    /// A place for each.
    Some(&'w [bool]),
}

impl Wanted<'_> {
    /// Of things that stand for the outputs, those that are wanted.
    pub(super) fn of<T>(self, all: &[T]) -> impl Iterator<Item = &T> {
        all.iter().enumerate().filter_map(move |(at, one)| match self {
            Self::Some(wanted) => wanted.get(at).is_some_and(|wanted| *wanted).then_some(one),
            Self::All => Some(one),
        })
    }
}

/// For each slot, whether something that is wanted needs its value; all of them where nothing is said.
pub(super) struct Needed(Option<Vec<bool>>);

/// What is asked of a part.
pub(super) struct Asked(Option<Vec<bool>>);

impl Needed {
    pub(super) fn of(&self, part: &Part) -> Asked {
        let slots = self.0.as_ref();
        Asked(slots.map(|needed| part.outputs.iter().map(|&slot| needed[slot]).collect()))
    }
}

impl Asked {
    /// Whether the part need not run.
    pub(super) fn is_none(&self) -> bool {
        self.0.as_ref().is_some_and(|wanted| !wanted.contains(&true))
    }

    pub(super) fn submit(&self, part: &Part, inputs: Vec<Datum>) -> Fence {
        match self.only() {
            Some(wanted) => part.executable.submit_wanted(inputs, wanted),
            None => part.executable.submit(inputs),
        }
    }

    /// Runs to the end, and tells whoever watches.
    pub(super) fn run(
        &self,
        part: &Part,
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
        part: &Part,
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
    pub(super) fn slots<'p>(&'p self, part: &'p Part) -> impl Iterator<Item = usize> + 'p {
        let wanted = self.0.as_deref().map_or(Wanted::All, Wanted::Some);
        wanted.of(&part.outputs).copied()
    }
}

impl Compiled {
    /// The slots that the wanted outputs need.
    pub(super) fn needed(&self, wanted: Wanted<'_>) -> Needed {
        if let Wanted::All = wanted {
            return Needed(None);
        }
        let mut needed = vec![false; self.slots];
        for output in wanted.of(&self.outputs) {
            if let Output::Slot(slot) = output {
                needed[*slot] = true;
            }
        }
        for part in self.parts.iter().rev() {
            if part.outputs.iter().any(|&slot| needed[slot]) {
                part.inputs.iter().for_each(|&slot| needed[slot] = true);
            }
        }
        Needed(Some(needed))
    }
}

impl Session {
    /// As [`Session::run_owned`], and gives only the outputs that are wanted, in their order: `wanted` has a place
    /// for each of [`Session::outputs`]. What nobody needs for them is not computed, and what is not wanted is not
    /// brought back from a device.
    ///
    /// # Errors
    /// As [`Session::run`], and where `wanted` has another length.
    pub fn run_wanted(
        &self,
        inputs: Vec<Tensor>,
        wanted: &[bool],
    ) -> Result<Vec<Tensor>, RuntimeError> {
        self.check_wanted(wanted)?;
        let outputs = self.owned(inputs, Wanted::Some(wanted))?;
        self.tensors(outputs, Wanted::Some(wanted))
    }

    /// As [`Session::profile`], of a run that gives only the outputs that are wanted.
    ///
    /// # Errors
    /// As [`Session::run_wanted`].
    pub fn profile_wanted(
        &self,
        inputs: &[(&str, Tensor)],
        wanted: &[bool],
    ) -> Result<(Vec<Tensor>, Vec<ProfileRow>), RuntimeError> {
        self.check_wanted(wanted)?;
        let inputs = bind(&self.inputs, inputs)?;
        let mut rows = Some(Vec::new());
        let outputs = self.run_or_demote(&inputs, Wanted::Some(wanted), &mut rows)?;
        Ok((self.tensors(outputs, Wanted::Some(wanted))?, rows.unwrap_or_default()))
    }

    fn check_wanted(&self, wanted: &[bool]) -> Result<(), RuntimeError> {
        let (found, expected) = (wanted.len(), self.outputs.len());
        if found == expected {
            return Ok(());
        }
        let text =
            format!("{found} outputs are said to be wanted or not, the model has {expected}");
        Err(RuntimeError::Input(text))
    }

    /// Whether an output lies on a device when it is computed, and is brought back from there. `output` is its
    /// place in [`Session::outputs`].
    #[must_use]
    pub fn reads_back(&self, output: usize) -> bool {
        let compiled = self.current();
        let Some(Output::Slot(slot)) = compiled.outputs.get(output) else { return false };
        let part = compiled.parts.iter().find(|part| part.outputs.contains(slot));
        part.is_some_and(|part| self.providers[part.provider].reads_back())
    }
}

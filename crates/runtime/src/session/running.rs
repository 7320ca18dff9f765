//! Runs the parts of a graph one after the other.

use std::sync::atomic::Ordering;
use std::time::Instant;

use galatea_graph::Datum;

use super::output_mask::PartRequest;
use super::padded::LongerRun;
use super::{CompiledPartitions, DeviceHandover, OutputMask, PartFailure, SlotOutput};
use crate::error::RuntimeError;
use crate::provider::{Executable, ProfileRow};

/// Shown each part of a session with what it is given.
pub(super) type PartObserver<'v> =
    &'v mut dyn FnMut(&dyn Executable, &[Datum]) -> Result<(), RuntimeError>;

/// A part, what is asked of it, and what it is given.
type PartInputs = (usize, PartRequest, Vec<Datum>);

impl CompiledPartitions {
    /// Computes the outputs that are wanted, in their order.
    pub(super) fn run(
        &self,
        inputs: Vec<Datum>,
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, PartFailure> {
        self.run_watched(inputs, wanted, rows, &|_| None)
    }

    /// Works like [`CompiledPartitions::run`], and hands each part to its device.
    pub(super) fn run_watched(
        &self,
        inputs: Vec<Datum>,
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
        occupy: &DeviceHandover<'_>,
    ) -> Result<Vec<Datum>, PartFailure> {
        let failed = |error| PartFailure { part: 0, error };
        let longer = self.longer.as_deref();
        let run = longer.map(|longer| longer.run(&inputs)).transpose().map_err(failed)?.flatten();
        match longer.zip(run) {
            None => self.run_exactly(inputs, wanted, rows, occupy),
            Some((longer, LongerRun { inputs, length })) => {
                let outputs = self.run_exactly(inputs, wanted, rows, occupy)?;
                longer.cut(length, wanted, outputs).map_err(failed)
            }
        }
    }

    /// Works like [`CompiledPartitions::run_watched`], for inputs that need no padding.
    fn run_exactly(
        &self,
        inputs: Vec<Datum>,
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
        occupy: &DeviceHandover<'_>,
    ) -> Result<Vec<Datum>, PartFailure> {
        let needed = self.needed(wanted);
        let mut slots: Vec<Option<Datum>> = inputs.into_iter().map(Some).collect();
        slots.resize(self.slots, None);
        let mut index = 0;
        while index < self.parts.len() {
            let both = rows.is_none() && self.parts.get(index + 1).is_some_and(|next| next.beside);
            let count = if both { 2 } else { 1 };
            let mut given = Vec::with_capacity(count);
            for at in index..index + count {
                let asked = needed.of(&self.parts[at]);
                if !asked.is_none() {
                    given.push((at, asked, self.given(&mut slots, at)?));
                }
            }
            for (at, asked, outputs) in self.together(given, rows, occupy)? {
                let part = &self.parts[at];
                part.proven.store(true, Ordering::Relaxed);
                for (slot, datum) in asked.slots(part).zip(outputs) {
                    slots[slot] = Some(datum);
                }
            }
            index += count;
        }
        let last = self.parts.len().saturating_sub(1);
        let take = |output: &SlotOutput| match output {
            SlotOutput::Constant(tensor) => Ok(Datum::Tensor(tensor.clone())),
            SlotOutput::Slot(slot) => slots[*slot].clone().ok_or_else(|| PartFailure {
                part: last,
                error: RuntimeError::Input("an output was not computed".into()),
            }),
        };
        wanted.of(&self.outputs).map(take).collect()
    }

    /// Returns the inputs of a part; values with no later use are moved out.
    fn given(&self, slots: &mut [Option<Datum>], at: usize) -> Result<Vec<Datum>, PartFailure> {
        let take = |&slot: &usize| match self.last_use[slot] == at {
            true => slots[slot].take(),
            false => slots[slot].clone(),
        };
        let given: Option<Vec<Datum>> = self.parts[at].inputs.iter().map(take).collect();
        let missing = || RuntimeError::Input("a value was not computed".into());
        given.ok_or_else(|| PartFailure { part: at, error: missing() })
    }

    /// Runs one part, or two at the same time, and gives their outputs.
    fn together(
        &self,
        mut given: Vec<PartInputs>,
        rows: &mut Option<Vec<ProfileRow>>,
        occupy: &DeviceHandover<'_>,
    ) -> Result<Vec<(usize, PartRequest, Vec<Datum>)>, PartFailure> {
        let run = |(at, asked, inputs): PartInputs, rows: &mut Option<Vec<ProfileRow>>| {
            let part = &self.parts[at];
            // Each part waits for its own turn alone, on the thread that runs it: nobody waits with a turn in hand.
            let _occupied = occupy(at);
            let begin = Instant::now();
            let outputs = match rows {
                None => asked.run(part, inputs, &self.watch),
                Some(rows) => asked.profile(part, inputs).map(|(outputs, more)| {
                    rows.extend(more);
                    outputs
                }),
            };
            part.spent.since(begin);
            part.usual.note(begin.elapsed());
            let outputs = outputs.map_err(|error| PartFailure { part: at, error })?;
            Ok((at, asked, outputs))
        };
        let second = if given.len() == 2 { given.pop() } else { None };
        let first = given.pop();
        let Some(second) = second else {
            return first.map(|first| run(first, rows)).into_iter().collect();
        };
        let at = second.0;
        let lost = || PartFailure {
            part: at,
            error: RuntimeError::Input("the thread of a part of a product ended".into()),
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(second, &mut None));
            let first = first.map(|first| run(first, &mut None));
            let other = other.join().unwrap_or_else(|_| Err(lost()));
            first.into_iter().chain([other]).collect()
        })
    }

    /// Runs all parts and shows each, with its inputs, before it runs.
    pub(super) fn walk(
        &self,
        inputs: &[Datum],
        visit: PartObserver<'_>,
    ) -> Result<(), RuntimeError> {
        let mut slots: Vec<Option<Datum>> = vec![None; self.slots];
        for (slot, datum) in slots.iter_mut().zip(inputs) {
            *slot = Some(datum.clone());
        }
        for part in &self.parts {
            let given: Option<Vec<Datum>> =
                part.inputs.iter().map(|&slot| slots[slot].clone()).collect();
            let missing = || RuntimeError::Input("a value was not computed".into());
            let given = given.ok_or_else(missing)?;
            visit(&*part.executable, &given)?;
            let outputs = part.executable.submit(given).wait()?;
            for (&slot, datum) in part.outputs.iter().zip(outputs) {
                slots[slot] = Some(datum);
            }
        }
        Ok(())
    }
}

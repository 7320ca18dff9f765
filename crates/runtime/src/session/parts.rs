//! Runs the parts of a graph one after the other.

use std::sync::atomic::Ordering;
use std::time::Instant;

use galatea_graph::Datum;
use galatea_tensor::{InterruptSource, InterruptibleScope};

use super::compiled::{CompiledPart, CompiledPartitions, PartFailure, SlotOutput};
use super::padded::PaddedRun;
use super::required::PartRequest;
use super::run::{OutputMask, PartsResult};
use crate::device_selector::OccupiedDevice;
use crate::error::RuntimeError;
use crate::executable::{Executable, PartitionResult};

/// Acquires the device of a part, by the part's place, for as long as the returned guard lives.
pub(super) type AcquireDevice<'o> = dyn Fn(usize) -> Option<OccupiedDevice> + Sync + 'o;

/// Observer of each part of a session with its inputs.
pub(super) type PartObserver<'v> =
    &'v mut dyn FnMut(&dyn Executable, &[Datum]) -> Result<(), RuntimeError>;

/// One run of compiled partitions.
#[derive(Clone, Debug, Default)]
pub(super) struct PartsRun<'r> {
    pub(super) inputs: Vec<Datum>,
    pub(super) outputs: OutputMask<'r>,
    pub(super) profile: bool,
}

/// A part to run, what is wanted of it, and its inputs.
struct PreparedPart {
    at: usize,
    request: PartRequest,
    inputs: Vec<Datum>,
}

/// A part that was run.
struct FinishedPart {
    at: usize,
    request: PartRequest,
    result: PartitionResult,
}

impl CompiledPartitions {
    /// Computes the outputs that are wanted, in their order. Inputs are padded where a provider wants few lengths.
    pub(super) fn run(
        &self,
        run: PartsRun<'_>,
        acquire: &AcquireDevice<'_>,
    ) -> Result<PartsResult, PartFailure> {
        let failed = |error| PartFailure { part: 0, error };
        let Some(axes) = self.padded.as_deref() else { return self.run_exactly(run, acquire) };
        let Some(padded) = axes.run(&run.inputs).map_err(failed)? else {
            return self.run_exactly(run, acquire);
        };
        let PaddedRun { inputs, length } = padded;
        let wanted = run.outputs;
        let PartsResult { outputs, rows } =
            self.run_exactly(PartsRun { inputs, ..run }, acquire)?;
        let outputs = axes.cut(length, wanted, outputs).map_err(failed)?;
        Ok(PartsResult { outputs, rows })
    }

    /// Works like [`CompiledPartitions::run`], for inputs that need no padding.
    fn run_exactly(
        &self,
        run: PartsRun<'_>,
        acquire: &AcquireDevice<'_>,
    ) -> Result<PartsResult, PartFailure> {
        let required = self.required(run.outputs);
        let mut rows = Vec::new();
        let mut slots: Vec<Option<Datum>> = run.inputs.into_iter().map(Some).collect();
        slots.resize(self.slots, None);
        let mut index = 0;
        while index < self.parts.len() {
            let both = !run.profile && self.parts.get(index + 1).is_some_and(|next| next.beside);
            let count = if both { 2 } else { 1 };
            let mut prepared = Vec::with_capacity(count);
            for at in index..index + count {
                let request = required.of(&self.parts[at], run.profile);
                if !request.is_none() {
                    let inputs = self.take_inputs(&mut slots, at)?;
                    prepared.push(PreparedPart { at, request, inputs });
                }
            }
            for FinishedPart { at, request, result } in self.run_together(prepared, acquire)? {
                let part = &self.parts[at];
                part.proven.store(true, Ordering::Relaxed);
                rows.extend(result.rows);
                for (slot, datum) in request.slots(part).zip(result.outputs) {
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
        let outputs = run.outputs.of(&self.outputs).map(take).collect::<Result<_, _>>()?;
        Ok(PartsResult { outputs, rows })
    }

    /// Returns the inputs of a part; values with no later use are moved out.
    fn take_inputs(
        &self,
        slots: &mut [Option<Datum>],
        at: usize,
    ) -> Result<Vec<Datum>, PartFailure> {
        let take = |&slot: &usize| match self.last_use[slot] == at {
            true => slots[slot].take(),
            false => slots[slot].clone(),
        };
        let inputs: Option<Vec<Datum>> = self.parts[at].inputs.iter().map(take).collect();
        let missing = || RuntimeError::Input("a value was not computed".into());
        inputs.ok_or_else(|| PartFailure { part: at, error: missing() })
    }

    /// Runs one part, or two at the same time.
    fn run_together(
        &self,
        mut prepared: Vec<PreparedPart>,
        acquire: &AcquireDevice<'_>,
    ) -> Result<Vec<FinishedPart>, PartFailure> {
        let second = if prepared.len() == 2 { prepared.pop() } else { None };
        let first = prepared.pop();
        let Some(second) = second else {
            return first.map(|first| self.run_part(first, acquire)).into_iter().collect();
        };
        let at = second.at;
        let lost = || PartFailure {
            part: at,
            error: RuntimeError::Input("the thread of a part of a matrix product ended".into()),
        };
        let interrupt = InterruptSource::current();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _interruptible = InterruptibleScope::new(interrupt);
                self.run_part(second, acquire)
            });
            let first = first.map(|first| self.run_part(first, acquire));
            let other = other.join().unwrap_or_else(|_| Err(lost()));
            first.into_iter().chain([other]).collect()
        })
    }

    fn run_part(
        &self,
        prepared: PreparedPart,
        acquire: &AcquireDevice<'_>,
    ) -> Result<FinishedPart, PartFailure> {
        let PreparedPart { at, request, inputs } = prepared;
        let part: &CompiledPart = &self.parts[at];
        // Each part waits for its own device alone, on the thread that runs it: nobody waits while holding another.
        let _occupied = acquire(at);
        let begin = Instant::now();
        let result = request.run(part, inputs, &self.watch);
        part.spent.since(begin);
        part.typical.note(begin.elapsed());
        let result = result.map_err(|error| PartFailure { part: at, error })?;
        Ok(FinishedPart { at, request, result })
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
            let outputs = part.executable.submit(given.into()).outputs()?;
            for (&slot, datum) in part.outputs.iter().zip(outputs) {
                slots[slot] = Some(datum);
            }
        }
        Ok(())
    }
}

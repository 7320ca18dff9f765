//! Tuning of the kernels of a checkpoint: runs as its requests make them, on a session that serves.

use std::fmt;
use std::sync::{Arc, Weak};

use galatea_runtime::tune::TuningGate;
use galatea_runtime::{KernelTuningLimits, KernelTuningReport, Session, SessionGate};
use galatea_tensor::Tensor;

use super::model::StepBatch;
use crate::error::{LlmError, LlmErrorKind, Result};

/// Positions before a step that writes.
const CONTEXT: usize = 1024;
/// Most rows of a step that reads.
const PROMPT_ROWS: usize = 512;
/// Most sequences of a step that writes several answers.
const SEQUENCES: usize = 8;

/// A step of a decoder: so many new rows of each sequence behind so many positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepKind {
    /// Sequences.
    pub sequences: usize,
    /// Positions that each has before.
    pub before: usize,
    /// New rows of each.
    pub rows: usize,
}

impl StepKind {
    /// The steps that most requests lead to: one answer, a prompt, and several answers at once.
    #[must_use]
    pub fn usual(positions: usize, max_sequences: usize, max_rows: usize) -> Vec<Self> {
        let before = CONTEXT.min(positions.saturating_sub(1));
        let rows = PROMPT_ROWS.min(positions).min(max_rows).max(1);
        let several = SEQUENCES.min(max_sequences).max(1);
        let mut all = vec![
            Self { sequences: 1, before, rows: 1 },
            Self { sequences: 1, before: 0, rows },
            Self { sequences: several, before, rows: 1 },
        ];
        all.dedup();
        all
    }

    /// Blocks of so many positions that all sequences take.
    #[must_use]
    pub fn blocks(self, block_size: usize) -> usize {
        self.sequences * (self.before + self.rows).div_ceil(block_size.max(1))
    }

    /// A batch of such rows; each sequence has `most_blocks` blocks.
    #[must_use]
    pub fn batch(self, vocabulary: usize, most_blocks: usize) -> StepBatch {
        let Self { sequences, before, rows } = self;
        let int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        let all = sequences * rows;
        StepBatch {
            tokens: (0..all).map(|row| int((row * 31 + 7) % vocabulary.max(1))).collect(),
            positions: (0..all).map(|row| int(before + row % rows.max(1))).collect(),
            starts: (0..=sequences).map(|at| int(at * rows)).collect(),
            lengths: vec![int(before + rows); sequences],
            blocks: (0..sequences * most_blocks).map(int).collect(),
            most_blocks,
            wanted: (1..=sequences).map(|at| int(at * rows) - 1).collect(),
            ..StepBatch::default()
        }
    }
}

/// Makes the inputs of a run, in the order of the session's.
pub(crate) type StepInputs = Box<dyn Fn(&Session) -> Result<Vec<Tensor>> + Send + Sync>;

/// Measures the kernels of a checkpoint for the runs that its requests lead to. It keeps no checkpoint in memory.
pub struct StepTuner {
    session: Weak<Session>,
    runs: Vec<StepInputs>,
}

impl fmt::Debug for StepTuner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepTuner").field("runs", &self.runs.len()).finish_non_exhaustive()
    }
}

impl StepTuner {
    pub(crate) fn new(session: &Arc<Session>, runs: Vec<StepInputs>) -> Self {
        Self { session: Arc::downgrade(session), runs }
    }

    /// Number of kinds of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Measures the choices without a record in runs of a kind, each measurement when the gate is open. The checkpoint
    /// computes by what is fastest from then on, where that is ready soon.
    ///
    /// # Errors
    /// Fails when there is no memory for such a run, or it fails.
    pub fn tune(
        &self,
        run: usize,
        gate: &dyn TuningGate,
        limits: KernelTuningLimits,
    ) -> Result<KernelTuningReport> {
        let gone = KernelTuningReport { closed: true, ..KernelTuningReport::default() };
        let (Some(session), Some(make)) = (self.session.upgrade(), self.runs.get(run)) else {
            return Ok(gone);
        };
        let inputs = make(&session)?;
        let names = session.inputs().iter().map(|info| info.name.as_str());
        let named: Vec<(&str, Tensor)> = names.zip(inputs).collect();
        let gate = SessionGate::new(gate, &session);
        session
            .tune_kernels_on(&named, &gate, limits)
            .map_err(|error| LlmError::new(LlmErrorKind::Model, "kernels", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_rows_for_every_sequence() {
        let found = StepKind { sequences: 2, before: 10, rows: 1 }.batch(100, 3);
        assert_eq!((found.tokens.len(), &found.positions[..]), (2, &[10, 10][..]));
        assert_eq!((&found.starts[..], &found.lengths[..]), (&[0, 1, 2][..], &[11, 11][..]));
        assert_eq!((&found.blocks[..], &found.wanted[..]), (&[0, 1, 2, 3, 4, 5][..], &[0, 1][..]));
    }

    #[test]
    fn usual_steps_keep_to_what_a_model_and_its_engine_take() {
        let kind = |sequences, before, rows| StepKind { sequences, before, rows };
        let large = [kind(1, 1024, 1), kind(1, 0, 512), kind(8, 1024, 1)];
        assert_eq!(StepKind::usual(4096, 64, 2048), large);
        assert_eq!(StepKind::usual(4096, 64, 64)[1], kind(1, 0, 64));
        let small = [kind(1, 15, 1), kind(1, 0, 16), kind(1, 15, 1)];
        assert_eq!(StepKind::usual(16, 1, 512), small);
        assert_eq!(StepKind::usual(1, 1, 1), [kind(1, 0, 1)]);
        assert_eq!(kind(2, 10, 1).blocks(4), 6);
    }
}

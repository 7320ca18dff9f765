//! Lengths of a recurrent layer in a run.

use galatea_runtime::NodeShapes;

use super::input;
use super::node::RecurrentSpec;
use crate::kernel::param;

/// Lengths of a run, which have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecurrentLengths {
    pub(super) steps: usize,
    pub(super) batch: usize,
    /// Elements of a step's input.
    pub(super) input: usize,
    pub(super) hidden: usize,
    pub(super) passes: usize,
    pub(super) gates: usize,
    /// Vectors of the hidden state's length that a sequence keeps.
    pub(super) kept: usize,
    /// Bytes of products of inputs at a time.
    room: usize,
}

impl RecurrentLengths {
    /// Returns the lengths of a run.
    ///
    /// # Errors
    /// Fails when shapes do not fit each other, or are beyond the device.
    pub(super) fn of(
        layer: &RecurrentSpec,
        shapes: &NodeShapes,
        room: usize,
    ) -> Result<Self, String> {
        let &[first, second, input] = shapes.input(input::X)? else {
            return Err("X has no three axes".into());
        };
        let &[_, _, hidden] = shapes.input(input::R)? else {
            return Err("R has no three axes".into());
        };
        let first_is_batch = layer.attributes.batch_first;
        let (steps, batch) = if first_is_batch { (second, first) } else { (first, second) };
        let gates = layer.cell.gates();
        let lengths = Self {
            steps,
            batch,
            input,
            hidden,
            passes: layer.passes(),
            gates,
            kept: layer.cell.kept(),
            room,
        };
        lengths.check(layer, shapes)?;
        Ok(lengths)
    }

    fn check(&self, layer: &RecurrentSpec, shapes: &NodeShapes) -> Result<(), String> {
        let &Self { steps, batch, input, hidden, passes, gates, .. } = self;
        let rows = gates * hidden;
        if layer.attributes.hidden_size.is_some_and(|size| size != hidden) {
            return Err(format!("R has {hidden} columns, and hidden_size is another"));
        }
        let state = match layer.attributes.batch_first {
            true => vec![batch, passes, hidden],
            false => vec![passes, batch, hidden],
        };
        let expected = [
            (input::W, vec![passes, rows, input]),
            (input::R, vec![passes, rows, hidden]),
            (input::BIAS, vec![passes, 2 * rows]),
            (input::LENGTHS, vec![batch]),
            (input::HIDDEN, state.clone()),
            (input::CELL, state),
            (input::PEEPHOLES, vec![passes, 3 * hidden]),
        ];
        for (index, expected) in expected {
            if shapes.has(index) && shapes.input(index)? != expected {
                let found = shapes.input(index)?;
                return Err(format!("input {index} has shape {found:?}, expected {expected:?}"));
            }
        }
        let product = |lengths: &[usize]| {
            lengths.iter().try_fold(1_usize, |all, &length| all.checked_mul(length))
        };
        let counts = [
            product(&[steps, batch, input]),
            product(&[steps, batch, passes, hidden]),
            product(&[self.kept, batch, passes, hidden]),
            product(&[batch, passes, rows]),
            product(&[passes, rows, input.max(hidden)]),
        ];
        for count in counts {
            param(count.ok_or("a recurrent layer is beyond 32 bits")?)?;
        }
        Ok(())
    }

    /// Elements of one of the vectors that are kept, of all sequences and directions.
    pub(super) fn state(&self) -> usize {
        self.passes * self.batch * self.hidden
    }

    /// Steps whose products of inputs are in memory at a time.
    pub(super) fn at_a_time(&self) -> usize {
        let step = 4 * self.passes * self.batch * self.gates * self.hidden;
        (self.room / step.max(1)).clamp(1, self.steps.max(1))
    }
}

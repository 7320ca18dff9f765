//! Rows of prompts that fit into a step, by how long steps took.

use std::time::Duration;

/// Time of a step with rows of prompts at most: answers that go on wait for it, and systems end GPU work that takes
/// long.
const MAX_STEP: Duration = Duration::from_secs(2);

/// Rows that a step has room for, however long they take.
const MIN_ROWS: usize = 32;

/// The most rows of prompts in a step. Rows at later positions take longer, so the number follows the context.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptRowLimit {
    rows: usize,
}

impl Default for PromptRowLimit {
    fn default() -> Self {
        Self { rows: usize::MAX }
    }
}

impl PromptRowLimit {
    /// Returns the rows of prompts that the next step may have.
    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// Takes note of the time of a step with so many rows of prompts.
    pub(super) fn note(&mut self, rows: usize, time: Duration) {
        if rows == 0 {
            return;
        }
        if time > MAX_STEP {
            let share = MAX_STEP.as_secs_f64() / time.as_secs_f64();
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of a number of rows"
            )]
            let fitting = (rows as f64 * share) as usize;
            self.rows = fitting.max(MIN_ROWS);
        } else if rows >= self.rows && time < MAX_STEP / 2 {
            self.rows = self.rows.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_make_room_for_fewer_rows_and_fast_ones_for_more() {
        let mut limit = PromptRowLimit::default();
        let seconds = Duration::from_secs;
        limit.note(512, seconds(1));
        assert_eq!(limit.rows(), usize::MAX);
        limit.note(512, seconds(4));
        assert_eq!(limit.rows(), 256);
        // Rows later in the context take longer.
        limit.note(256, seconds(8));
        assert_eq!(limit.rows(), 64);
        limit.note(64, seconds(100));
        assert_eq!(limit.rows(), MIN_ROWS);
        // Neither steps without prompts nor smaller ones say that more fit.
        limit.note(0, Duration::ZERO);
        limit.note(MIN_ROWS - 1, Duration::ZERO);
        assert_eq!(limit.rows(), MIN_ROWS);
        limit.note(MIN_ROWS, seconds(1) / 2);
        assert_eq!(limit.rows(), 2 * MIN_ROWS);
        limit.note(2 * MIN_ROWS, seconds(3) / 2);
        assert_eq!(limit.rows(), 2 * MIN_ROWS);
    }

    #[test]
    fn a_prompt_on_a_slow_model_is_read_in_steps_that_stay_below_the_time() {
        let mut limit = PromptRowLimit::default();
        let mut position = 0;
        let mut late = 0;
        while position < 16_384 {
            let rows = limit.rows().min(512).min(16_384 - position);
            // 8 ms a row, and as much again for each 4,096 positions before it.
            let each = 0.008 * (1.0 + position as f64 / 4096.0);
            let time = Duration::from_secs_f64(each * rows as f64);
            late += usize::from(time > MAX_STEP + MAX_STEP / 4);
            limit.note(rows, time);
            position += rows;
        }
        assert_eq!(late, 1, "only the first step is not known to take longer");
    }
}

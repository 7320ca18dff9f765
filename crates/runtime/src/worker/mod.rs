//! Worker processes: their start, their output, their end, and when the next one may start.
//!
//! A [`ProcessGroup`] is a worker with all that it has started. [`relay_lines`] reads what it writes. A
//! [`RestartHistory`] says, by a [`RestartPolicy`], whether the next worker may start. What a worker and
//! its server say to each other belongs to the crates that have workers.

mod output;
mod process;
mod restart;

pub use output::relay_lines;
pub use process::{ProcessGroup, end_stray};
pub use restart::{RestartDecision, RestartHistory, RestartPolicy, RestartRest};

#[cfg(test)]
mod tests;

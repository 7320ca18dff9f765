//! Worker processes: their start, their output, their end, and when the next one starts.
//!
//! A [`ProcessGroup`] is a worker with all that it has started. [`relay_lines`] reads what it writes. A
//! [`RestartHistory`] says, by a [`RestartPolicy`], whether the next worker may start. A [`WorkerSupervisor`]
//! has a worker ready at all times, an [`OnDemandSupervisor`] starts one when it is asked. What a worker and
//! its server say to each other is a [`WorkerKind`] of the crate that has the worker.

mod demand;
mod output;
mod process;
mod restart;
mod supervisor;

pub use demand::{OnDemandSupervisor, SharedWorkerKind, WorkerGeneration};
pub use output::relay_lines;
pub use process::{ProcessGroup, end_stray};
pub use restart::{RestartDecision, RestartHistory, RestartPolicy, RestartRest};
pub use supervisor::{
    RestartCounter, SupervisedProcess, SupervisorSignal, WaitingWorkerKind, WorkerKind,
    WorkerSupervisor,
};

#[cfg(test)]
mod supervisor_tests;
#[cfg(test)]
mod tests;

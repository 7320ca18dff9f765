//! Ensembles: data flows of models, served as one.
//!
//! [`EnsemblePlan`] is a checked configuration. For every request, [`ServedEnsemble`] keeps a [`flow::Flow`], which decides
//! what runs when, hands the steps to a [`StepServer`] and takes their answers on the threads that bring them. Tensors
//! go from step to step without a copy. A [`gate::Gate`] bounds how often each step runs at a time, if the
//! configuration says so: what exceeds it waits here, and never holds a thread up.

pub mod flow;
pub mod gate;
pub mod graph;
mod plan;
mod run;
mod value;

pub use plan::{EnsemblePlan, OutputProducer};
pub use run::{ServedEnsemble, StepServer};

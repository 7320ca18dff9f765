//! Tuning of kernels: `problems` finds the questions for the shapes of a run, and returns each with a bench on which
//! candidates can be compared.

mod bench;
mod part;

pub(crate) use part::TunablePartition;

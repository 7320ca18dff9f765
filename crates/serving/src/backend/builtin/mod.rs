//! Backends without model files, as Triton ships them for tests and demonstrations. A version folder may be empty;
//! inputs and outputs are those of the configuration. A file `parameters.json` in it has parameters of this version alone.

mod accumulator;
mod activities;
mod delay;
mod identity;
mod iterative_sequence;
mod repeat;
mod square;

use std::sync::Arc;

use super::ModelBackend;

/// All of them.
#[must_use]
pub fn all() -> Vec<Arc<dyn ModelBackend>> {
    vec![
        Arc::new(identity::IdentityBackend),
        Arc::new(repeat::RepeatBackend),
        Arc::new(square::SquareBackend),
        Arc::new(accumulator::SequenceBackend),
        Arc::new(accumulator::DynaSequenceBackend),
        Arc::new(iterative_sequence::IterativeSequenceBackend),
    ]
}

#[cfg(test)]
mod tests;

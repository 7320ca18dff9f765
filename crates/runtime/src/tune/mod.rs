//! Tuning: finds the fastest of several candidates that compute the same on this machine.
//!
//! [`TuningDatabase::choose`] answers from what was measured before and measures nothing; who gets no
//! answer takes the default. [`TuningSearch`] measures by command, or while a [`TuningGate`] says that nothing else
//! runs, never in a request. A [`SearchStrategy`] says what to measure next, a [`TuningTarget`] runs it.

mod adaptive;
mod compare;
mod config_space;
mod database;
mod gated;
mod genetic;
mod grid;
mod measure;
mod significance;
mod strategy;
mod strategy_kind;
#[cfg(test)]
mod tests;
mod tuning_cache;

pub use compare::{CandidatePair, PairedTimes, ResultAgreement, SpeedVerdict};
pub use config_space::{ConfigAxis, ConfigSpace};
pub(crate) use database::hash_of_names;
pub use database::{TuningDatabase, TuningKey, TuningRecord, bucket};
pub(crate) use gated::{GatedOutcome, search_gated, wait_open};
pub use gated::{TuningGate, TuningGateState};
pub use measure::{
    RefusedCandidate, SearchEnd, SearchLimits, TuningOutcome, TuningSearch, TuningTarget,
};
pub use significance::{ProportionTest, SampleMoments, TrialCount, WelchTest};
pub use strategy::{MeasuredCandidate, SearchStrategy};
pub use strategy_kind::StrategyKind;
pub use tuning_cache::{ChoiceSource, MachineTuning, TuningCache, TuningProblem};

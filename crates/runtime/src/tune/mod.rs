//! Which of several ways to compute the same is the fastest here.
//!
//! [`Database::choose`] answers from what was measured before and measures nothing; who gets no
//! answer takes the default. [`Search`] measures: while a model is being loaded or by command, never
//! in a request. A [`Strategy`] says what to measure next, a [`Device`] runs it.

mod adaptive;
mod chooser;
mod compare;
mod database;
mod genetic;
mod grid;
mod measure;
mod space;
mod strategy;
#[cfg(test)]
mod tests;

pub use chooser::{ChoiceSource, Chooser, Problem, Tuning};
pub use compare::{Agreement, Comparison, Pair, Verdict};
pub(crate) use database::hash_of_names;
pub use database::{Database, Key, Record, bucket};
pub use measure::{Device, Ended, Limits, Outcome, Refused, Search};
pub use space::{Axis, Space};
pub use strategy::{Strategy, StrategyKind, Trial};

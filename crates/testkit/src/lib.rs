//! Cases, expectations, models and the conformance runner for tests.
//!
//! A dev-dependency only. Its functions panic where a test would fail.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod exercise;
pub mod expectations;
pub mod exported;
pub mod fuzz_corpus;
pub mod graph_maker;
pub mod mil;
pub mod model;
pub mod model_mutation;
mod mutation;
pub mod noise;
pub mod page;
mod schemas;
pub mod tolerance;

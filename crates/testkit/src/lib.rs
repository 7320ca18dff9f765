//! Cases, expectations, models and the conformance runner for tests.
//!
//! A dev-dependency only. Its functions panic where a test would fail.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod expectations;
pub mod model;
mod mutation;
mod schemas;
pub mod tolerance;

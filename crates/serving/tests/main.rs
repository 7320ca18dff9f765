//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod ab_tests;
mod backend_names;
mod config_effects;
mod control;
mod core;
mod core_ml;
mod instance_updates;
mod interrupts;
mod latency_targets;
mod llm_arguments;
mod messages;
mod metal_config;
mod namespaces;
mod onnx;
mod plain;
mod python;
mod python_api;
mod python_backend;
mod python_bls;
mod python_environments;
mod python_first_hours;
mod python_metrics;
mod python_restarts;
mod pytorch_backend;
mod sequences;
mod tensorflow_backend;
mod unload;
mod updates;

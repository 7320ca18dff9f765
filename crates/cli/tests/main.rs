//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod architectures;
mod chunks;
mod convert_check;
mod convert_options;
mod core_ml_worker;
mod metal_config;
mod model_cache;
mod program;
mod selftest;

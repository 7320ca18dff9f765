//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod bad_tokenizers;
mod checkpoints;
mod chunked;
mod embed;
mod generation;
mod gguf_checkpoints;
mod golden;
mod grammar;
mod hostile_templates;
mod losing;
mod reference;
mod sampling;
mod templates;
mod tokens;
mod tools;
mod weights;

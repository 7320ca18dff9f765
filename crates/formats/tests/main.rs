//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod compiled_folders;
mod compiled_text;
mod core_ml_damage;
mod coreml_packages;
mod fuzz_targets;
mod gguf;
mod map_fields;
mod mil_operators;
mod mil_refusals;
mod mlx;
mod neural_network;
mod npy;
mod onnx;
mod safetensors;
mod subgraphs;
mod written;

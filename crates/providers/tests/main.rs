//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cloned_ref_to_slice_refs,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod blas;
mod block_mat_mul;
mod bnns;
mod control_flow;
mod conv_chains;
mod exports;
mod fused_activations;
mod gated;
mod gemm;
mod halves;
mod kernels;
mod mil_operators;
mod models;
mod moves;
mod paged_attention;
mod quantize;
mod quantized;
mod recorded;
mod reduced;
mod schedules;
mod single;
mod sparse;
mod stages;
mod support;
mod tune;
mod undeclared;

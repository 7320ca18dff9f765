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

mod agreement;
mod ane_layout;
mod attention;
mod claims;
mod control;
mod decompositions;
mod exports;
mod half_fuzz;
mod layers;
mod movement;
mod numbers;
mod package;
mod padded;
mod precision;
mod provider;
mod ranges;
mod states;
mod weights;

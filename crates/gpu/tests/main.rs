//! Tests of the crate from outside, in one program, because each program is linked anew after every change.
//!
//! `cargo test -p CRATE --test integration NAME::` runs the tests of the file `NAME.rs`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod attention;
mod blocks;
mod choices;
mod conv;
mod elementwise;
mod failures;
mod flash;
mod fuse;
mod graphs;
mod images;
mod matmul;
#[path = "support/matrices.rs"]
mod matrices;
mod memory;
mod movement;
mod parts;
mod placed;
mod profile;
mod quantised;
mod recurrent;
mod rows;
mod sparse;
mod streaming;
mod submissions;
mod support;
mod tune;

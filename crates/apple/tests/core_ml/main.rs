//! The bindings to Core ML against doubles of its classes. A program of its own, since the objects that it holds are
//! counted.
#![cfg(apple_doubles)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests end them"
)]

mod descriptions;
mod failures;
mod loading;
mod plans;
mod player;
mod predictions;
mod states;
mod submissions;

//! Core ML that the interpreter plays, on the doubles of its classes: tests run models by it on Linux.
//!
//! It exists under `--cfg apple_doubles` alone, as the doubles do; without it this crate is empty. They know nothing of
//! Galatea's own crates, of which this one makes a [`PlayedCoreMl`](galatea_doubles::objc::core_ml::PlayedCoreMl).
#![forbid(unsafe_code)]

#[cfg(apple_doubles)]
mod devices;
#[cfg(apple_doubles)]
mod features;
#[cfg(apple_doubles)]
mod program;
#[cfg(apple_doubles)]
mod values;

#[cfg(apple_doubles)]
pub use program::{InterpretedCoreMl, PlayedProgram};

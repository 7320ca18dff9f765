//! Doubles of macOS's libraries: the code for macOS runs on Linux against them, in tests.
//!
//! They exist under `--cfg apple_doubles` alone, which `cargo xtask doubles` passes; without it this crate is empty.
//! The doubles have the symbols of what they stand for. A program uses them by naming this crate.
//!
//! - `objc`: an Objective-C runtime and the classes that Galatea uses.
//! - `c`: functions of C.
//!
//! They show that the code for macOS keeps to the declarations, and what it does with what it is given. They do not
//! show what a Mac does.

#[cfg(apple_doubles)]
pub mod c;
#[cfg(apple_doubles)]
#[allow(clippy::panic, reason = "a double that is misused ends the test")]
pub mod objc;

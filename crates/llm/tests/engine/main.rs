//! The engine over a model that is a function of tokens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests fail by panicking"
)]

mod answers;
mod fake;
mod gate;
mod kinds;
mod life;
#[path = "../reference/mod.rs"]
mod reference;
mod soak;
mod speculation;
mod writer;

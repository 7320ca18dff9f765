//! Tests of models on the GPU provider, which run on a Vulkan device.

#![cfg(any(target_os = "macos", feature = "gpu"))]
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking and says on the terminal what it skips"
)]

mod gpu_claims;
mod gpu_decoders;
mod gpu_devices;
mod gpu_failures;
mod gpu_language;
mod gpu_lost_steps;
mod gpu_memory;
mod gpu_models;
mod gpu_profile;
mod gpu_sampling;
mod gpu_submissions;
mod gpu_tune;
mod program;

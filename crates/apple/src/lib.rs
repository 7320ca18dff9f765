//! Thin safe bindings to macOS; each has a body off macOS that says [`Unavailable`].
//!
//! - [`ChipIdentity::detect`]: what chip this is and what it can do, by sysctl.
//! - [`accelerate::sgemm`]: Accelerate's single-precision matrix product.
//! - [`bnns::Bnns`]: the same with factors of 16 bits.
//! - [`coreml::LoadedModel`]: models on whatever units Core ML chooses, the Neural Engine among them.
//! - [`qos::Qos`]: which cores a thread is for.
//! - [`sensors::Counters`] and [`battery::battery`]: what the machine draws, and from what.
//! - [`signpost::SignpostLog`]: intervals for Instruments.
//! - [`machine_load::CoreTicks`] and [`machine_load::UsedPages`]: how busy it is.
//!
//! The decisions around a foreign call (key names, parsing, argument order, length checks) are
//! plain code that runs and is tested everywhere; only the call itself is bound to macOS.

// Tests link the doubles.
#[cfg(all(test, apple_doubles))]
use galatea_doubles as _;

pub mod accelerate;
pub mod battery;
mod blas_operand;
pub mod bnns;
mod cblas;
mod chip;
pub mod coreml;
// The same declarations on Linux, where doubles are the functions.
#[cfg(apple_doubles)]
#[path = "../../doubles/src/c/darwin.rs"]
mod darwin;
#[cfg(any(target_os = "macos", apple_doubles, test))]
mod exception;
pub mod machine_load;
pub mod qos;
pub mod sensors;
pub mod signpost;
mod sysctl;
mod unavailable;

#[cfg(target_os = "macos")]
use ::libc as darwin;

pub use chip::{ChipIdentity, CoreCluster, CpuFeature, FEATURES, FeatureKey, OperatingSystem};
pub use sysctl::{LiveSysctl, RecordedSysctl, SysctlSource};
pub use unavailable::Unavailable;

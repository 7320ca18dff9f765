//! Doubles of macOS's C functions, for a Mac that a test or the environment chooses.
//!
//! [`PlayedMac`] says which: its chip from `data/chips`, its memory and macOS, its battery, and what it lacks or
//! refuses. A double aborts the process with a line that names the function where a caller breaks the function's rules.

#![allow(
    non_snake_case,
    non_upper_case_globals,
    clippy::too_many_arguments,
    reason = "names and arguments of other people's functions"
)]

mod accelerate;
mod bnns;
mod case;
mod chip_file;
mod core_foundation;
pub mod darwin;
mod hid;
mod host;
mod io_registry;
mod io_report;
#[cfg(test)]
mod misuse;
mod played;
mod power_sources;
mod qos;
mod signpost;
mod smc;
mod symbols;
mod sysctl;

pub use case::EXAMPLES;
pub use core_foundation::live_objects;
pub use played::{EnergyCounters, MacVersion, PlayedBattery, PlayedMac, VARIABLE};
pub use signpost::{PlayedInterval, RECORD_VARIABLE, SignpostRecording};

/// Ends the process: a caller has broken the rules of `function`.
pub(crate) fn refuse(function: &str, why: &str) -> ! {
    use std::io::Write as _;
    let mut stderr = std::io::stderr();
    writeln!(stderr, "double of {function}: {why}").ok();
    stderr.flush().ok();
    std::process::abort()
}

//! The Mac that the doubles play.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::chip_file::ChipFile;
use super::refuse;

/// Environment variable with the Mac of the process; see [`PlayedMac::parse`].
pub const VARIABLE: &str = "GALATEA_DOUBLE_MAC";

/// Mac of a process that is told none.
const USUAL: &str = "m1-16gb";

/// Version of macOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacVersion {
    /// Number before the dot.
    pub major: u32,
    /// Number behind the dot.
    pub minor: u32,
}

/// Battery inside the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayedBattery {
    /// Charge in percent.
    pub percent: i64,
    /// True without a plug.
    pub discharging: bool,
}

/// Kind of readings that the counters of energy give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyCounters {
    /// The watts of a machine at work.
    Working,
    /// Zero for the CPU, the Neural Engine and memory, as programs without an entitlement read on macOS 27.
    Zeroed,
    /// Nothing: a virtual machine.
    Absent,
    /// A name that is longer than the sensor crate takes, so that it panics.
    Overlong,
}

/// A Mac.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedMac {
    /// Facts of the chip.
    pub(super) chip: ChipFile,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// Version of macOS.
    pub version: MacVersion,
    /// The battery; none in a machine for a desk.
    pub battery: Option<PlayedBattery>,
    /// Number of the thermal state, as `NSProcessInfo` has it.
    pub heat: isize,
    /// True if the user asked the system to save power.
    pub low_power: bool,
    /// The counters of energy.
    pub counters: EnergyCounters,
    /// Values of sysctl and functions that are not there.
    pub missing: BTreeSet<String>,
    /// Functions that fail.
    pub refused: BTreeSet<String>,
    /// Values of sysctl that have another size, in bytes.
    pub sizes: BTreeMap<String, usize>,
}

thread_local! {
    /// The Mac of the thread, where it has one of its own.
    static HERE: RefCell<Option<Arc<PlayedMac>>> = const { RefCell::new(None) };
}

impl PlayedMac {
    /// Makes a Mac of a chip with so much memory: for a desk, on macOS 15.0, at work.
    pub(super) fn of(chip: ChipFile, memory_gib: u64) -> Self {
        Self {
            chip,
            memory_gib,
            version: MacVersion { major: 15, minor: 0 },
            battery: None,
            heat: 0,
            low_power: false,
            counters: EnergyCounters::Working,
            missing: BTreeSet::new(),
            refused: BTreeSet::new(),
            sizes: BTreeMap::new(),
        }
    }

    /// Runs `work` on this Mac. Threads that it starts are on the Mac of the process.
    pub fn play<R>(self, work: impl FnOnce() -> R) -> R {
        /// Gives the thread back the Mac that it had.
        struct PreviousMac(Option<Arc<PlayedMac>>);
        impl Drop for PreviousMac {
            fn drop(&mut self) {
                let before = self.0.take();
                HERE.with_borrow_mut(|here| *here = before);
            }
        }
        let mac = Arc::new(self);
        let _before = PreviousMac(HERE.with_borrow_mut(|here| here.replace(mac)));
        work()
    }

    /// Returns the Mac of the calling thread.
    #[must_use]
    pub fn here() -> Arc<Self> {
        static PROCESS: OnceLock<Arc<PlayedMac>> = OnceLock::new();
        let of_process = || {
            let text = std::env::var(VARIABLE).unwrap_or_else(|_| USUAL.to_owned());
            match Self::parse(&text) {
                Ok(mac) => Arc::new(mac),
                Err(problem) => refuse(VARIABLE, &problem),
            }
        };
        let own = HERE.with_borrow(Clone::clone);
        own.unwrap_or_else(|| Arc::clone(PROCESS.get_or_init(of_process)))
    }

    /// Returns whether the Mac lacks a function or a value.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.missing.contains(name)
    }

    /// Returns whether a function of the Mac fails.
    pub(super) fn refuses(&self, function: &str) -> bool {
        self.refused.contains(function)
    }

    /// Number of cores of all kinds.
    pub(super) fn cores(&self) -> u32 {
        self.chip.kinds.iter().map(|kind| kind.cores).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_mac_of_its_process_again_afterwards() {
        let usual = PlayedMac::here();
        let other = PlayedMac::parse("m2-ultra-192gb").unwrap();
        other.clone().play(|| {
            assert_eq!(*PlayedMac::here(), other);
            let elsewhere = std::thread::spawn(PlayedMac::here).join().unwrap();
            assert_eq!(elsewhere, usual);
        });
        assert_eq!(PlayedMac::here(), usual);
    }
}

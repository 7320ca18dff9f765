//! Sensors of a Mac: its power draw, its thermal state and its low power mode.
//!
//! Watts come from counters that macOS has no public interface for (IOReport, SMC). A virtual machine has none
//! of them, and a later system may drop them. Missing readings are therefore absent, and no code may depend on
//! them.
//!
//! Source: Apple, `NSProcessInfo`; the crate `macmon`.

use std::time::Duration;

use crate::Unavailable;

/// Watts and degrees of a Mac; what its counters do not say is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SensorSample {
    /// Watts of all cores of the processor.
    pub cpu_watts: Option<f64>,
    /// Watts of the GPU, its memory included.
    pub gpu_watts: Option<f64>,
    /// Watts of the Neural Engine.
    pub engine_watts: Option<f64>,
    /// Watts of memory.
    pub memory_watts: Option<f64>,
    /// Watts of the whole machine.
    pub system_watts: Option<f64>,
    /// Degrees Celsius of the processor, averaged over its sensors.
    pub cpu_celsius: Option<f64>,
    /// Degrees Celsius of the GPU, averaged over its sensors.
    pub gpu_celsius: Option<f64>,
}

/// Thermal state that a Mac reports. Source: Apple, `NSProcessInfo.ThermalState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeatLevel {
    /// Normal temperature.
    Nominal,
    /// Slightly too warm.
    Fair,
    /// Performance suffers.
    Serious,
    /// It has to cool down.
    Critical,
}

impl HeatLevel {
    /// The state with this number; a number that there is not yet counts as the hottest.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    fn of(number: isize) -> Self {
        match number {
            ..=0 => Self::Nominal,
            1 => Self::Fair,
            2 => Self::Serious,
            3.. => Self::Critical,
        }
    }
}

/// The counters of this machine. They stay with the thread that opened them.
#[derive(Debug)]
pub struct Counters(system::Counters);

impl Counters {
    /// Opens them.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, and where the system does not show them.
    pub fn open() -> Result<Self, Unavailable> {
        system::Counters::open().map(Self)
    }

    /// Counts for so long, and gives averages.
    ///
    /// # Errors
    /// [`Unavailable`] when the counters cannot be read any more.
    pub fn sample(&mut self, over: Duration) -> Result<SensorSample, Unavailable> {
        self.0.sample(over)
    }
}

/// Reads counters, with a panic as an error: their reader takes some of what it finds for granted.
#[cfg(any(target_os = "macos", apple_doubles, test))]
fn contained<R>(read: impl FnOnce() -> Result<R, Unavailable>) -> Result<R, Unavailable> {
    let panicked = |_| Err(Unavailable::new("sensors", "their reader has panicked".to_owned()));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(panicked)
}

/// Returns the thermal state that the machine reports.
///
/// # Errors
/// Returns [`Unavailable`] off macOS.
pub fn heat() -> Result<HeatLevel, Unavailable> {
    system::heat()
}

/// Returns whether the user asked the system to save power.
///
/// # Errors
/// Returns [`Unavailable`] off macOS.
pub fn low_power_mode() -> Result<bool, Unavailable> {
    system::low_power_mode()
}

#[cfg(not(any(target_os = "macos", apple_doubles)))]
mod system {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::{HeatLevel, SensorSample};
    use crate::Unavailable;

    #[derive(Debug)]
    pub(super) struct Counters(Infallible);

    impl Counters {
        pub(super) fn open() -> Result<Self, Unavailable> {
            Err(Unavailable::off_macos("sensors"))
        }

        pub(super) fn sample(&mut self, _over: Duration) -> Result<SensorSample, Unavailable> {
            match self.0 {}
        }
    }

    pub(super) fn heat() -> Result<HeatLevel, Unavailable> {
        Err(Unavailable::off_macos("thermal state"))
    }

    pub(super) fn low_power_mode() -> Result<bool, Unavailable> {
        Err(Unavailable::off_macos("low power mode"))
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use std::fmt;
    use std::time::Duration;

    use macmon::Sampler;
    use objc2::rc::autoreleasepool;
    use objc2_foundation::NSProcessInfo;

    use super::{HeatLevel, SensorSample, contained};
    use crate::Unavailable;

    pub(super) struct Counters(Sampler);

    impl fmt::Debug for Counters {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Counters")
        }
    }

    fn unavailable(error: &dyn fmt::Display) -> Unavailable {
        Unavailable::new("sensors", error.to_string())
    }

    /// A number of watts: the counters say 0 of what they do not have.
    fn drawn(watts: f32) -> Option<f64> {
        (watts.is_finite() && watts > 0.0).then(|| f64::from(watts))
    }

    impl Counters {
        pub(super) fn open() -> Result<Self, Unavailable> {
            contained(|| Sampler::new().map(Self).map_err(|error| unavailable(&error)))
        }

        pub(super) fn sample(&mut self, over: Duration) -> Result<SensorSample, Unavailable> {
            let ms = u32::try_from(over.as_millis()).unwrap_or(u32::MAX);
            let read = || self.0.get_metrics(ms).map_err(|error| unavailable(&error));
            let found = autoreleasepool(|_| contained(read))?;
            let cpu = drawn(found.cpu_power);
            // A processor that counts this draws more than nothing: then an idle GPU's 0 is a reading.
            let counted = |watts: f32| match cpu {
                Some(_) if watts.is_finite() => Some(f64::from(watts)),
                _ => drawn(watts),
            };
            Ok(SensorSample {
                cpu_watts: cpu,
                gpu_watts: counted(found.gpu_power + found.gpu_ram_power),
                engine_watts: counted(found.ane_power),
                memory_watts: drawn(found.ram_power),
                system_watts: drawn(found.sys_power),
                cpu_celsius: found.temp.cpu_temp_avg.map(f64::from),
                gpu_celsius: found.temp.gpu_temp_avg.map(f64::from),
            })
        }
    }

    pub(super) fn heat() -> Result<HeatLevel, Unavailable> {
        Ok(autoreleasepool(|_| HeatLevel::of(NSProcessInfo::processInfo().thermalState().0)))
    }

    pub(super) fn low_power_mode() -> Result<bool, Unavailable> {
        Ok(autoreleasepool(|_| NSProcessInfo::processInfo().isLowPowerModeEnabled()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_apples_numbers() {
        let all = [-1, 0, 1, 2, 3, 4].map(HeatLevel::of);
        use HeatLevel::{Critical, Fair, Nominal, Serious};
        assert_eq!(all, [Nominal, Nominal, Fair, Serious, Critical, Critical]);
    }

    #[test]
    fn a_reader_that_panics_gives_an_error() {
        let found = contained(|| -> Result<(), Unavailable> { panic!("no such channel") });
        assert!(found.unwrap_err().to_string().contains("panicked"));
        assert_eq!(contained(|| Ok(3)), Ok(3));
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_doors_say_unavailable() {
        assert_eq!(Counters::open().unwrap_err().door, "sensors");
        assert_eq!(heat().unwrap_err().door, "thermal state");
        assert_eq!(low_power_mode().unwrap_err().door, "low power mode");
    }
}

//! The battery of a Mac.
//!
//! Source: Apple, `IOPowerSources.h` and `IOPSKeys.h` of IOKit.

use crate::Unavailable;

/// Battery of a machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineBattery {
    /// Charge, 0 to 1.
    pub charge: f64,
    /// True if the machine runs from the battery.
    pub discharging: bool,
}

/// The battery inside the machine; none where there is none.
///
/// # Errors
/// [`Unavailable`] off macOS, and where the system tells of no sources of power.
pub fn battery() -> Result<Option<MachineBattery>, Unavailable> {
    system::sources().map(|sources| sources.iter().find_map(PowerSource::battery))
}

/// A source of power, as the system describes it; what it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq)]
struct PowerSource {
    /// `InternalBattery` or `UPS`.
    kind: Option<String>,
    /// `AC Power`, `MachineBattery Power` or `Off Line`.
    state: Option<String>,
    /// Present charge, in the unit of `most`.
    now: Option<i64>,
    /// Charge when full.
    most: Option<i64>,
}

impl PowerSource {
    /// Returns the battery that the source describes, if it is inside the machine.
    fn battery(&self) -> Option<MachineBattery> {
        if self.kind.as_deref() != Some("InternalBattery") {
            return None;
        }
        let now = self.now?;
        let most = self.most.filter(|most| *most > 0)?;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let charge = (now as f64 / most as f64).clamp(0.0, 1.0);
        Some(MachineBattery { charge, discharging: self.state.as_deref() == Some("Battery Power") })
    }
}

#[cfg(not(any(target_os = "macos", apple_doubles)))]
mod system {
    use super::PowerSource;
    use crate::Unavailable;

    pub(super) fn sources() -> Result<Vec<PowerSource>, Unavailable> {
        Err(Unavailable::off_macos("battery"))
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use objc2_core_foundation::{CFArray, CFDictionary, CFNumber, CFRetained, CFString, CFType};
    use objc2_io_kit::{
        IOPSCopyPowerSourcesInfo, IOPSCopyPowerSourcesList, IOPSGetPowerSourceDescription,
    };

    use super::PowerSource;
    use crate::Unavailable;

    /// Returns the value of a description under a key.
    fn value(of: &CFDictionary<CFString, CFType>, key: &'static str) -> Option<CFRetained<CFType>> {
        of.get(&CFString::from_static_str(key))
    }

    fn text(of: &CFDictionary<CFString, CFType>, key: &'static str) -> Option<String> {
        value(of, key)?.downcast_ref::<CFString>().map(ToString::to_string)
    }

    fn number(of: &CFDictionary<CFString, CFType>, key: &'static str) -> Option<i64> {
        value(of, key)?.downcast_ref::<CFNumber>()?.as_i64()
    }

    pub(super) fn sources() -> Result<Vec<PowerSource>, Unavailable> {
        let missing = || Unavailable::new("battery", "no sources of power".to_owned());
        let info = IOPSCopyPowerSourcesInfo().ok_or_else(missing)?;
        // SAFETY: `info` is what IOPSCopyPowerSourcesInfo gave.
        let list = unsafe { IOPSCopyPowerSourcesList(Some(&info)) }.ok_or_else(missing)?;
        // SAFETY: IOPowerSources.h says that the list holds CFTypeRefs.
        let list = unsafe { CFRetained::cast_unchecked::<CFArray<CFType>>(list) };
        let described = list.iter().filter_map(|source| {
            // SAFETY: both come from the calls above.
            let of = unsafe { IOPSGetPowerSourceDescription(Some(&info), Some(&source)) }?;
            // SAFETY: IOPSKeys.h says that keys are CFStrings; values are looked at before they are used.
            let of = unsafe { CFRetained::cast_unchecked::<CFDictionary<CFString, CFType>>(of) };
            Some(PowerSource {
                kind: text(&of, "Type"),
                state: text(&of, "Power Source State"),
                now: number(&of, "Current Capacity"),
                most: number(&of, "Max Capacity"),
            })
        });
        Ok(described.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(kind: &str, state: &str, now: i64, most: i64) -> PowerSource {
        PowerSource {
            kind: Some(kind.to_owned()),
            state: Some(state.to_owned()),
            now: Some(now),
            most: Some(most),
        }
    }

    #[test]
    fn a_battery_says_how_full_it_is_and_whether_it_is_used() {
        let used = source("InternalBattery", "Battery Power", 15, 100).battery();
        assert_eq!(used, Some(MachineBattery { charge: 0.15, discharging: true }));
        let plugged = source("InternalBattery", "AC Power", 4000, 4000).battery();
        assert_eq!(plugged, Some(MachineBattery { charge: 1.0, discharging: false }));
    }

    #[test]
    fn what_is_no_battery_of_the_machine_or_says_too_little_is_left_out() {
        assert_eq!(source("UPS", "Battery Power", 15, 100).battery(), None);
        assert_eq!(source("InternalBattery", "Battery Power", 15, 0).battery(), None);
        assert_eq!(PowerSource::default().battery(), None);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_door_says_unavailable() {
        assert_eq!(battery().unwrap_err().door, "battery");
    }
}

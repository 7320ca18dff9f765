//! Power settings that a user chooses.

use std::fmt;
use std::str::FromStr;

/// Preference between speed and low power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerPolicy {
    /// The fastest unit, urgent threads.
    HighPerformance,
    /// Neither; as far as the battery lasts.
    #[default]
    Balanced,
    /// The unit that needs the least energy, threads on efficiency cores.
    LowPower,
}

/// The policies and their names in configurations.
const POLICIES: [(PowerPolicy, &str); 3] = [
    (PowerPolicy::HighPerformance, "high_performance"),
    (PowerPolicy::Balanced, "balanced"),
    (PowerPolicy::LowPower, "low_power"),
];

impl fmt::Display for PowerPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POLICIES.iter().find(|(policy, _)| policy == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for PowerPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = POLICIES.iter().find(|(_, name)| *name == text);
        found.map(|(policy, _)| *policy).ok_or_else(|| {
            let names = POLICIES.map(|(_, name)| name).join(", ");
            format!("'{text}' found, expected one of {names}")
        })
    }
}

/// Power settings of a server or of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSettings {
    /// Preference between speed and low power.
    pub policy: PowerPolicy,
    /// Watts that the chip is to draw at most, on average over seconds.
    pub target_watts: Option<f64>,
    /// True if work is slowed down before the machine throttles it.
    pub thermal_protection: bool,
    /// True if threads are made less urgent before they are made to rest; macOS runs less urgent threads at
    /// lower clocks.
    pub adaptive_frequency: bool,
    /// True if work that no client waits for goes to efficiency cores.
    pub efficiency_core_offload: bool,
}

impl Default for PowerSettings {
    /// Balanced, without a target, protected from heat.
    fn default() -> Self {
        Self {
            policy: PowerPolicy::Balanced,
            target_watts: None,
            thermal_protection: true,
            adaptive_frequency: true,
            efficiency_core_offload: true,
        }
    }
}

impl PowerSettings {
    /// The most watts that are taken for a target: more than any Mac draws.
    const MAX_WATTS: f64 = 1000.0;

    /// Takes a setting by the name that configurations have for it: `power_policy`, `power_target_watts`,
    /// `enable_thermal_protection`, `adaptive_frequency` or `efficiency_core_offload`.
    ///
    /// # Errors
    /// Names the setting, what was found and what was expected.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let wrong = |problem: String| format!("{name}: {problem}");
        match name {
            "power_policy" => self.policy = text.parse().map_err(wrong)?,
            "power_target_watts" => self.target_watts = Some(watts(text).map_err(wrong)?),
            "enable_thermal_protection" => {
                self.thermal_protection = switch(text).map_err(wrong)?;
            }
            "adaptive_frequency" => self.adaptive_frequency = switch(text).map_err(wrong)?,
            "efficiency_core_offload" => {
                self.efficiency_core_offload = switch(text).map_err(wrong)?;
            }
            _ => {
                return Err(format!(
                    "'{name}' found, expected one of power_policy, power_target_watts, \
                     enable_thermal_protection, adaptive_frequency, efficiency_core_offload"
                ));
            }
        }
        Ok(())
    }
}

fn watts(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    let most = PowerSettings::MAX_WATTS;
    number
        .filter(|watts| *watts > 0.0 && *watts <= most)
        .ok_or_else(|| format!("'{text}' found, expected watts above 0 and up to {most}"))
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(format!("'{text}' found, expected true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_by_name_and_what_is_wrong_is_named() {
        let mut settings = PowerSettings::default();
        settings.set("power_policy", "low_power").unwrap();
        settings.set("power_target_watts", "12.5").unwrap();
        settings.set("enable_thermal_protection", "false").unwrap();
        assert_eq!(settings.policy, PowerPolicy::LowPower);
        assert_eq!(settings.target_watts, Some(12.5));
        assert!(!settings.thermal_protection);
        for (name, text) in [
            ("power_policy", "fast"),
            ("power_target_watts", "-3"),
            ("power_target_watts", "NaN"),
            ("adaptive_frequency", "maybe"),
            ("watts", "3"),
        ] {
            let error = settings.set(name, text).unwrap_err();
            assert!(error.contains(name) && error.contains("expected"), "{error}");
        }
    }

    #[test]
    fn policies_are_written_as_they_are_read() {
        for (policy, name) in POLICIES {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.to_string(), name);
        }
    }
}

//! Sensors of a Linux host, as the kernel shows them in files.
//!
//! Source: Linux, `Documentation/power/powercap/powercap.rst`, `driver-api/thermal/sysfs-api.rst`,
//! `ABI/testing/sysfs-class-power` and `ABI/testing/sysfs-platform_profile`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::reading::{Battery, PowerDraw, SensorReading, SensorSource, ThermalState};

/// A counter of energy that begins anew at its end.
#[derive(Debug)]
struct EnergyCounter {
    file: PathBuf,
    range: u64,
    part: MeteredPart,
    last: Option<(u64, Instant)>,
}

/// Part of the machine that a counter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeteredPart {
    Package,
    Cores,
    Graphics,
    Memory,
    Platform,
}

impl MeteredPart {
    /// Returns the part that a zone of RAPL measures. A package beside the first one adds to the same number.
    fn named(name: &str) -> Option<Self> {
        match name {
            "core" => Some(Self::Cores),
            "uncore" => Some(Self::Graphics),
            "dram" => Some(Self::Memory),
            "psys" => Some(Self::Platform),
            _ => name.starts_with("package-").then_some(Self::Package),
        }
    }
}

impl EnergyCounter {
    /// Watts since the last reading.
    fn watts(&mut self) -> Option<f64> {
        let now = Instant::now();
        let count: u64 = number(&self.file)?;
        let last = self.last.replace((count, now));
        let (before, then) = last?;
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        joules(before, count, self.range).filter(|_| seconds > 0.0).map(|sum| sum / seconds)
    }
}

/// Joules between two counts of microjoules, of which the counter starts anew after `range`.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53 between two readings")]
fn joules(before: u64, after: u64, range: u64) -> Option<f64> {
    let grown = match after.checked_sub(before) {
        Some(grown) => grown,
        None => range.checked_sub(before)?.checked_add(after)?,
    };
    Some(grown as f64 / 1e6)
}

/// A zone whose temperature the kernel acts on.
#[derive(Debug)]
struct ThermalZone {
    file: PathBuf,
    /// The temperature where the kernel slows it down, or ends the system, in degrees Celsius.
    limit: f64,
}

/// The sensors that a Linux host has; none elsewhere.
#[derive(Debug)]
pub struct SystemSensors {
    counters: Vec<EnergyCounter>,
    zones: Vec<ThermalZone>,
    batteries: Vec<PathBuf>,
    profile: PathBuf,
}

impl SystemSensors {
    /// The sensors of this host.
    #[must_use]
    pub fn new() -> Self {
        Self::under(Path::new("/sys"))
    }

    /// The sensors that a folder like `/sys` shows.
    #[must_use]
    pub fn under(root: &Path) -> Self {
        Self {
            counters: folders(&root.join("class/powercap"))
                .iter()
                .filter_map(|at| counter(at))
                .collect(),
            zones: folders(&root.join("class/thermal")).iter().filter_map(|at| zone(at)).collect(),
            batteries: folders(&root.join("class/power_supply"))
                .into_iter()
                .filter(|at| text(&at.join("type")).as_deref() == Some("Battery"))
                .collect(),
            profile: root.join("firmware/acpi/platform_profile"),
        }
    }

    /// Returns whether there are no sensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
            && self.zones.is_empty()
            && self.batteries.is_empty()
            && !self.profile.exists()
    }

    fn draw(&mut self) -> PowerDraw {
        let mut draw = PowerDraw::default();
        for counter in &mut self.counters {
            let Some(watts) = counter.watts() else { continue };
            let sum = match counter.part {
                MeteredPart::Package => &mut draw.package,
                MeteredPart::Cores => &mut draw.cpu,
                MeteredPart::Graphics => &mut draw.gpu,
                MeteredPart::Memory => &mut draw.memory,
                MeteredPart::Platform => &mut draw.system,
            };
            *sum = Some(sum.unwrap_or(0.0) + watts);
        }
        draw
    }

    /// All batteries as one: the mean charge.
    fn battery(&self) -> Option<Battery> {
        let charge = |at: &PathBuf| number::<f64>(&at.join("capacity"));
        let charges: Vec<f64> = self.batteries.iter().filter_map(charge).collect();
        let count = u32::try_from(charges.len()).ok().filter(|count| *count > 0)?;
        let status = |at: &PathBuf| text(&at.join("status")).as_deref() == Some("Discharging");
        Some(Battery {
            charge: charges.iter().sum::<f64>() / f64::from(count) / 100.0,
            discharging: self.batteries.iter().any(status),
        })
    }
}

impl Default for SystemSensors {
    fn default() -> Self {
        Self::new()
    }
}

impl SensorSource for SystemSensors {
    /// Watts are those since the reading before; the first one has none.
    fn read(&mut self) -> SensorReading {
        let now = |zone: &ThermalZone| Some((number::<f64>(&zone.file)? / 1000.0, zone.limit));
        let zones: Vec<(f64, f64)> = self.zones.iter().filter_map(now).collect();
        let states = zones.iter().map(|&(at, limit)| ThermalState::of_temperature(at, limit));
        SensorReading {
            draw: self.draw(),
            thermal: states.max(),
            celsius: zones.iter().map(|zone| zone.0).reduce(f64::max),
            low_power: text(&self.profile).map(|profile| profile == "low-power"),
            battery: self.battery(),
        }
    }
}

/// A file's text without what surrounds it; absent where it cannot be read.
fn text(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

fn number<T: std::str::FromStr>(file: &Path) -> Option<T> {
    text(file)?.parse().ok()
}

/// Returns the entries of a folder, in the order of names.
fn folders(at: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(at) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.sort();
    all
}

/// The counter of a zone of RAPL. The same counters show a second time as memory-mapped ones, which are
/// left out.
fn counter(at: &Path) -> Option<EnergyCounter> {
    let folder = at.file_name()?.to_str()?;
    if !folder.starts_with("intel-rapl:") {
        return None;
    }
    let part = MeteredPart::named(&text(&at.join("name"))?)?;
    let file = at.join("energy_uj");
    number::<u64>(&file)?;
    let range = number(&at.join("max_energy_range_uj")).unwrap_or(u64::MAX);
    Some(EnergyCounter { file, range, part, last: None })
}

/// A zone with a temperature that the kernel slows the machine down at; the lowest of these counts.
fn zone(at: &Path) -> Option<ThermalZone> {
    let file = at.join("temp");
    number::<f64>(&file)?;
    let trip = |number_of: usize| {
        let kind = text(&at.join(format!("trip_point_{number_of}_type")))?;
        let limit: f64 = number(&at.join(format!("trip_point_{number_of}_temp")))?;
        Some((kind, limit / 1000.0))
    };
    let trips = (0..16).map_while(trip);
    let limits = trips.filter(|(kind, limit)| {
        matches!(kind.as_str(), "passive" | "hot" | "critical") && *limit > 0.0
    });
    let limit = limits.map(|(_, limit)| limit).reduce(f64::min)?;
    Some(ThermalZone { file, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn host() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (zone, name) in [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core")] {
            write(root, &format!("class/powercap/{zone}/name"), name);
            write(root, &format!("class/powercap/{zone}/energy_uj"), "1000\n");
            write(root, &format!("class/powercap/{zone}/max_energy_range_uj"), "262143328850\n");
        }
        write(root, "class/powercap/intel-rapl-mmio:0/name", "package-0");
        write(root, "class/powercap/intel-rapl-mmio:0/energy_uj", "1000");
        write(root, "class/thermal/thermal_zone0/temp", "91000");
        write(root, "class/thermal/thermal_zone0/trip_point_0_type", "critical");
        write(root, "class/thermal/thermal_zone0/trip_point_0_temp", "105000");
        write(root, "class/thermal/thermal_zone0/trip_point_1_type", "passive");
        write(root, "class/thermal/thermal_zone0/trip_point_1_temp", "95000");
        write(root, "class/thermal/thermal_zone1/temp", "what");
        write(root, "class/power_supply/BAT0/type", "Battery");
        write(root, "class/power_supply/BAT0/capacity", "15");
        write(root, "class/power_supply/BAT0/status", "Discharging");
        write(root, "class/power_supply/AC/type", "Mains");
        write(root, "firmware/acpi/platform_profile", "low-power\n");
        folder
    }

    #[test]
    fn a_host_says_what_its_files_say() {
        let folder = host();
        let mut sensors = SystemSensors::under(folder.path());
        assert!(!sensors.is_empty());
        let first = sensors.read();
        assert_eq!(first.draw, PowerDraw::default(), "watts need two readings");
        assert_eq!(first.celsius, Some(91.0));
        assert_eq!(first.thermal, Some(ThermalState::Fair));
        assert_eq!(first.battery, Some(Battery { charge: 0.15, discharging: true }));
        assert_eq!(first.low_power, Some(true));
        write(folder.path(), "class/powercap/intel-rapl:0/energy_uj", "9001000");
        let second = sensors.read();
        assert!(second.draw.package.unwrap() > 0.0);
        assert!(second.draw.cpu.unwrap().abs() < f64::EPSILON);
        assert_eq!(second.draw.chip(), second.draw.package);
    }

    #[test]
    fn a_host_without_files_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut sensors = SystemSensors::under(folder.path());
        assert!(sensors.is_empty());
        assert_eq!(sensors.read(), SensorReading::default());
    }

    #[test]
    fn a_counter_that_begins_anew_counts_on() {
        assert_eq!(joules(1_000_000, 3_000_000, 10_000_000), Some(2.0));
        assert_eq!(joules(9_000_000, 1_000_000, 10_000_000), Some(2.0));
        assert_eq!(joules(9, 1, 5), None, "a counter beyond its range");
    }
}

//! Power that devices draw while they work.

use std::time::Duration;

use galatea_coreml as coreml;
use galatea_providers::cpu;
use galatea_runtime::device_selector::ComputeDevices;
use galatea_runtime::power::PowerDraw;

/// A unit that was busy for less of an interval says little of what it draws.
const BUSY: f64 = 0.3;
/// Weight of the latest interval in the average watts of a device.
const NEWS: f64 = 0.2;

/// Learns what units draw while they work, from how busy they were and what each drew.
#[derive(Debug, Default)]
pub(crate) struct DeviceWattmeter {
    busy: Vec<(String, Duration)>,
}

impl DeviceWattmeter {
    /// Takes note of what parts of the chip drew on the average of an interval that ends now.
    pub(crate) fn note(&mut self, units: &ComputeDevices, elapsed: Duration, draw: &PowerDraw) {
        for unit in units.all() {
            let busy = unit.report().busy;
            let before = self.busy.iter_mut().find(|(name, _)| name == unit.name());
            let before = match before {
                Some((_, before)) => std::mem::replace(before, busy),
                None => {
                    self.busy.push((unit.name().to_owned(), busy));
                    continue;
                }
            };
            let share = busy.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
            let watts = match unit.name() {
                cpu::NAME => draw.cpu,
                "gpu" => draw.gpu,
                coreml::NAME => draw.engine,
                _ => None,
            };
            let Some(watts) = watts.filter(|_| share >= BUSY) else { continue };
            let now = watts / share.min(1.0);
            let known = unit.watts().unwrap_or(now);
            unit.set_watts(known + (now - known) * NEWS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_are_those_of_a_unit_that_works_all_the_time() {
        let units = ComputeDevices::new();
        let gpu = units.named("gpu");
        let mut meter = DeviceWattmeter::default();
        let interval = Duration::from_millis(20);
        let draw = PowerDraw { gpu: Some(6.0), ..PowerDraw::default() };
        meter.note(&units, interval, &draw);
        meter.note(&units, interval, &draw);
        assert_eq!(gpu.watts(), None, "it did nothing");
        let under_way = gpu.begin(Duration::from_secs(1));
        std::thread::sleep(interval);
        drop(under_way);
        // Of twice the time it was busy for about half.
        meter.note(&units, interval * 2, &draw);
        let watts = gpu.watts().unwrap_or_default();
        assert!((6.0..=12.1).contains(&watts), "{watts}");
    }
}

//! Figures of the machine from the operating system; those that it does not report are absent.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A number about the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostGauge {
    /// Name of the metric.
    pub name: &'static str,
    /// Sentence about it.
    pub help: &'static str,
    /// Value now.
    pub value: f64,
}

/// Busy and total time of all processors so far, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessorTicks {
    busy: u64,
    total: u64,
}

/// The machine, looked at no more often than every interval, so that several readers see the same numbers.
#[derive(Debug)]
pub struct HostMonitor {
    interval: Duration,
    last: Mutex<Option<HostReading>>,
}

/// One look at the machine.
#[derive(Debug)]
struct HostReading {
    at: Instant,
    ticks: Option<ProcessorTicks>,
    gauges: Vec<HostGauge>,
}

impl HostMonitor {
    /// A machine that was not looked at yet.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, last: Mutex::new(None) }
    }

    /// The gauges that this system has: processor use since the look before, memory in all and in use.
    #[must_use]
    pub fn gauges(&self) -> Vec<HostGauge> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = last.as_ref().filter(|last| last.at.elapsed() < self.interval) {
            return reading.gauges.clone();
        }
        let now = read("/proc/stat").as_deref().and_then(ticks);
        let before = last.as_ref().and_then(|last| last.ticks);
        let gauges = gauges(before, now);
        *last = Some(HostReading { at: Instant::now(), ticks: now, gauges: gauges.clone() });
        gauges
    }
}

fn gauges(last: Option<ProcessorTicks>, now: Option<ProcessorTicks>) -> Vec<HostGauge> {
    let mut gauges = Vec::new();
    if let Some(now) = now {
        gauges.push(HostGauge {
            name: "nv_cpu_utilization",
            help: "CPU utilization rate [0.0 - 1.0]",
            value: utilization(last, now),
        });
    }
    if let Some((total, used)) = read("/proc/meminfo").as_deref().and_then(memory_bytes) {
        gauges.push(HostGauge {
            name: "nv_cpu_memory_total_bytes",
            help: "CPU total memory (RAM), in bytes",
            value: total,
        });
        gauges.push(HostGauge {
            name: "nv_cpu_memory_used_bytes",
            help: "CPU used memory (RAM), in bytes",
            value: used,
        });
    }
    gauges
}

/// The machine's memory, where Linux says it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole kilobytes, far below 2^53 bytes"
)]
fn total_memory_bytes() -> Option<u64> {
    read("/proc/meminfo").as_deref().and_then(memory_bytes).map(|(total, _)| total as u64)
}

/// The machine's memory, where it is known.
pub fn machine_memory_bytes() -> Option<u64> {
    let chip = galatea_apple::ChipIdentity::detect().map(|chip| chip.memory_bytes);
    chip.ok().or_else(total_memory_bytes)
}

/// A file of Linux' process file system; other systems have none.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The sum line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks(stat: &str) -> Option<ProcessorTicks> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> =
        line.split_whitespace().skip(1).take(8).map_while(|field| field.parse().ok()).collect();
    let idle = fields.get(3)? + fields.get(4)?;
    let total: u64 = fields.iter().sum();
    Some(ProcessorTicks { busy: total.saturating_sub(idle), total })
}

fn utilization(last: Option<ProcessorTicks>, now: ProcessorTicks) -> f64 {
    let last = last.unwrap_or(ProcessorTicks { busy: 0, total: 0 });
    let total = now.total.saturating_sub(last.total);
    if total == 0 {
        return 0.0;
    }
    now.busy.saturating_sub(last.busy) as f64 / total as f64
}

/// Total and used memory; what the kernel could free at once is not used.
fn memory_bytes(meminfo: &str) -> Option<(f64, f64)> {
    let kib = |key: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let total = kib("MemTotal:")? * 1024.0;
    Some((total, total - kib("MemAvailable:")? * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilization_is_the_busy_share_since_the_last_look() {
        let first = ticks("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(first, ProcessorTicks { busy: 20, total: 100 });
        let second = ProcessorTicks { busy: 70, total: 200 };
        assert!((utilization(Some(first), second) - 0.5).abs() < 1e-9);
        assert!((utilization(None, first) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n";
        assert_eq!(memory_bytes(text), Some((1_024_000.0, 614_400.0)));
    }
}

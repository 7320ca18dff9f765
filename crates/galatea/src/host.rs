//! Figures of the machine from the operating system; those that it does not report are absent.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use galatea_apple::ChipIdentity;
use galatea_apple::machine_load::{CoreTicks, UsedPages};

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
    /// Counters of a Mac, from which `ticks` are summed up: they begin again.
    cores: Option<CoreTicks>,
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
        let before = last.as_ref().and_then(|last| last.ticks);
        let cores = CoreTicks::now().ok();
        let of_mac = cores.map(|now| summed(before, last.as_ref().and_then(|l| l.cores), now));
        let now = of_mac.or_else(|| read("/proc/stat").as_deref().and_then(ticks));
        let gauges = gauges(before, now, memory());
        *last = Some(HostReading { at: Instant::now(), ticks: now, cores, gauges: gauges.clone() });
        gauges
    }
}

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MachineMemory {
    total: f64,
    used: f64,
}

/// Returns the machine's memory as a Mac or Linux reports it.
fn memory() -> Option<MachineMemory> {
    let of_mac = ChipIdentity::detect().ok().zip(UsedPages::now().ok());
    let of_mac = of_mac.map(|(chip, pages)| MachineMemory {
        total: chip.memory_bytes as f64,
        used: pages.bytes(chip.page_bytes) as f64,
    });
    of_mac.or_else(|| read("/proc/meminfo").as_deref().and_then(memory_bytes))
}

/// Adds what a Mac's counters have counted since the reading before.
fn summed(
    sum: Option<ProcessorTicks>,
    before: Option<CoreTicks>,
    now: CoreTicks,
) -> ProcessorTicks {
    let sum = sum.unwrap_or(ProcessorTicks { busy: 0, total: 0 });
    let more = now.since(before.unwrap_or_default());
    ProcessorTicks { busy: sum.busy + more.busy(), total: sum.total + more.total() }
}

fn gauges(
    last: Option<ProcessorTicks>,
    now: Option<ProcessorTicks>,
    memory: Option<MachineMemory>,
) -> Vec<HostGauge> {
    let mut gauges = Vec::new();
    if let Some(now) = now {
        gauges.push(HostGauge {
            name: "nv_cpu_utilization",
            help: "CPU utilization rate [0.0 - 1.0]",
            value: utilization(last, now),
        });
    }
    if let Some(MachineMemory { total, used }) = memory {
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
    read("/proc/meminfo").as_deref().and_then(memory_bytes).map(|memory| memory.total as u64)
}

/// The machine's memory, where it is known.
pub fn machine_memory_bytes() -> Option<u64> {
    let chip = ChipIdentity::detect().map(|chip| chip.memory_bytes);
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
fn memory_bytes(meminfo: &str) -> Option<MachineMemory> {
    let kib = |key: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let total = kib("MemTotal:")? * 1024.0;
    Some(MachineMemory { total, used: total - kib("MemAvailable:")? * 1024.0 })
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
        let memory = MachineMemory { total: 1_024_000.0, used: 614_400.0 };
        assert_eq!(memory_bytes(text), Some(memory));
    }

    #[test]
    fn the_use_of_a_macs_cores_is_known_where_their_counters_begin_again() {
        let first = CoreTicks { user: u32::MAX - 29, system: 0, idle: 1000, nice: 0 };
        let second = CoreTicks { user: 10, system: 10, idle: 1050, nice: 0 };
        let before = summed(None, None, first);
        let now = summed(Some(before), Some(first), second);
        assert!((utilization(Some(before), now) - 0.5).abs() < 1e-9);
        let names = |gauges: Vec<HostGauge>| gauges.iter().map(|g| g.name).collect::<Vec<_>>();
        let memory = MachineMemory { total: 2.0, used: 1.0 };
        assert_eq!(
            names(gauges(Some(before), Some(now), Some(memory))),
            ["nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"]
        );
    }
}

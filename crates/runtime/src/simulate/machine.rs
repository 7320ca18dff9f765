//! A simulated machine: its units, its heat and what its governor allows.

use std::time::Duration;

use super::device::{DevicePosition, SimulatedDevice};
use super::fleet::MachineKind;
use super::residence::{MachineState, ModelResidence};
use super::table::ModelTimes;
use super::units::{UNITS, nanos, unit_of};
use crate::cost::ComputeUnit;
use crate::power::{
    MachineModel, PowerAllowance, PowerGovernor, PowerLimit, PowerSettings, ThermalModel,
    ThreadClass, UnitChoice,
};

/// Nanoseconds between two looks at sensors.
pub(super) const LOOK: u64 = 1_000_000_000;
/// The share of memory that models and texts may have; a GPU recommends two thirds to three quarters.
const MEMORY_SHARE: f64 = 0.7;
/// Kelvin above its rest at which a machine without work counts as cool.
const COOL: f64 = 0.5;
/// Nanoseconds after which a machine without work has cooled down.
pub(super) const COOLED: u64 = 3600 * LOOK;
/// The least pace that is simulated, so that everything ends.
const MIN_PACE: f64 = 0.01;

/// A machine.
#[derive(Debug)]
pub(super) struct SimulatedMachine {
    pub(super) kind: usize,
    pub(super) units: [SimulatedDevice; UNITS],
    pub(super) allowance: PowerAllowance,
    /// The share of its clocks that it has.
    pub(super) clocks: f64,
    /// Bytes of the keys and values of texts.
    pub(super) kept: f64,
    /// Bytes that models and texts may have together.
    pub(super) budget: f64,
    /// Its models, where loading is simulated.
    pub(super) residence: Option<ModelResidence>,
    /// Until when its link is busy, with requests and with answers.
    pub(super) link: [u64; 2],
    heat: ThermalModel,
    model: MachineModel,
    governor: PowerGovernor,
    looked: u64,
    pub(super) joules: f64,
    pub(super) hottest: f64,
    /// Seconds with lowered clocks, and seconds at less than full pace.
    pub(super) throttled: f64,
    pub(super) limited: f64,
    /// Latencies of its requests, in nanoseconds.
    pub(super) latency: Vec<u64>,
    pub(super) tokens: u64,
}

impl SimulatedMachine {
    pub(super) fn new(kind: usize, of: &MachineKind, power: PowerSettings, loads: bool) -> Self {
        let model = of.thermal();
        let governor = PowerGovernor::new(power);
        let units = match governor.settings().policy {
            crate::power::PowerPolicy::HighPerformance => UnitChoice::Fastest,
            crate::power::PowerPolicy::Balanced => UnitChoice::Balanced,
            crate::power::PowerPolicy::LowPower => UnitChoice::Frugal,
        };
        let threads = ThreadClass::Usual;
        let allowance =
            PowerAllowance { pace: 1.0, admits: true, units, threads, limit: PowerLimit::None };
        Self {
            kind,
            units: Default::default(),
            allowance,
            clocks: 1.0,
            kept: 0.0,
            budget: of.memory_bytes * MEMORY_SHARE,
            residence: loads.then(ModelResidence::default),
            link: [0; 2],
            heat: ThermalModel::new(model),
            model,
            governor,
            looked: 0,
            joules: 0.0,
            hottest: model.ambient,
            throttled: 0.0,
            limited: 0.0,
            latency: Vec::new(),
            tokens: 0,
        }
    }

    pub(super) fn seat(&self, unit: usize) -> DevicePosition {
        DevicePosition { kind: self.kind, unit }
    }

    /// Work in a nanosecond, as a share of what the units do at full pace and clocks.
    pub(super) fn speed(&self) -> f64 {
        self.pace() * self.clocks
    }

    /// The pace that pieces which begin now keep to.
    pub(super) fn pace(&self) -> f64 {
        self.allowance.pace.clamp(MIN_PACE, 1.0)
    }

    /// Bytes that models may have beside the texts that are there.
    pub(super) fn room(&self) -> f64 {
        self.budget - self.kept
    }

    /// Returns whether there is room for the first text that waits at a device.
    pub(super) fn has_room(&self, unit: usize, times: &ModelTimes<'_>) -> bool {
        let text = self.units[unit].prompts.front();
        // One that has begun has what it needs.
        let Some(text) = text.filter(|text| text.context == 0) else { return true };
        let weights = match &self.residence {
            Some(residence) => residence.bytes(),
            None => times.weights(text.model as usize),
        };
        weights + text.bytes <= self.room()
    }

    /// Nanoseconds until a model could begin on a unit that is free: it may have to be brought.
    pub(super) fn wait(&self, model: usize, unit: usize, times: &ModelTimes<'_>, now: u64) -> u64 {
        let Some(residence) = &self.residence else { return 0 };
        let busy = self.units.iter().map(|unit| unit.free_at.saturating_sub(now)).max();
        let engine = unit_of(unit) == ComputeUnit::NeuralEngine;
        let state = MachineState { now, busy: busy.unwrap_or(0), budget: self.budget };
        residence.wait(self.kind, model, engine, times, state)
    }

    /// Carries bytes over its link, and gives when they are there: requests one way, answers the other.
    pub(super) fn carry(
        &mut self,
        way: usize,
        bytes: f64,
        times: &ModelTimes<'_>,
        now: u64,
    ) -> u64 {
        let Some(network) = times.fleet.network else { return now };
        let free = self.link[way].max(now).saturating_add(nanos(bytes / network.bytes));
        self.link[way] = free;
        free.saturating_add(nanos(network.seconds))
    }

    /// Returns the factor by which a device takes longer for steps while other devices write texts too: they
    /// share memory.
    pub(super) fn contention(&self, unit: usize, times: &ModelTimes<'_>) -> f64 {
        let mut writing = [false; UNITS];
        for (writes, own) in writing.iter_mut().zip(&self.units) {
            *writes = !own.texts.is_empty();
        }
        times.contention(self.kind, unit, writing)
    }

    /// Looks at the sensors: what the units did since the last look warms the machine, and the governor
    /// allows a pace. Whether the speed has changed by more than a fiftieth.
    pub(super) fn look(&mut self, now: u64, times: &ModelTimes<'_>) -> bool {
        let nanos = now.saturating_sub(self.looked);
        self.looked = now;
        if nanos == 0 {
            return false;
        }
        let elapsed = Duration::from_nanos(nanos);
        let seconds = nanos as f64 / 1e9;
        let mut watts = 0.0;
        let mut most = 0.0_f64;
        for (at, unit) in self.units.iter_mut().enumerate() {
            unit.count(now);
            let share = (unit.busy / seconds).min(1.0);
            unit.busy = 0.0;
            watts += share * times.watts(self.kind, at);
            most = most.max(share);
        }
        let full = (self.model.full_watts - self.model.idle_watts).max(1e-9);
        let before = self.speed();
        let rest = self.model.ambient + self.model.idle_watts * self.model.kelvin_per_watt;
        let cool = self.heat.celsius() < rest + COOL && !self.heat.throttled();
        if watts <= 0.0 && cool && self.allowance.limit != PowerLimit::Heat {
            // Nothing happens to it: its warmth is that of its rest, near enough.
            self.joules += self.model.idle_watts * seconds;
            return false;
        }
        let share = (watts / full).min(1.0);
        // Beyond that time nothing changes any more.
        let elapsed = elapsed.min(Duration::from_nanos(COOLED));
        let rest = nanos.saturating_sub(COOLED);
        let seconds = elapsed.as_secs_f64();
        self.joules += self.model.idle_watts * (rest as f64 / 1e9);
        let (reading, work) = self.heat.step(elapsed, share);
        self.joules += reading.draw.package.unwrap_or(0.0) * seconds;
        self.hottest = self.hottest.max(self.heat.celsius());
        if share > 0.0 {
            self.clocks = (work / (share * seconds)).clamp(MIN_PACE, 1.0);
        } else if !self.heat.throttled() {
            self.clocks = 1.0;
        }
        self.allowance = self.governor.step(elapsed, &reading, most);
        self.throttled += if self.heat.throttled() { seconds } else { 0.0 };
        self.limited += if self.allowance.pace < 1.0 { seconds } else { 0.0 };
        (self.speed() / before - 1.0).abs() > 0.02
    }
}

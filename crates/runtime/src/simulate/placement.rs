//! Choice of the machine and the device for each request.

use galatea_tensor::OrderedSet;

use super::fleet::{RequestKind, SimulatedModel, SimulatedRequest};
use super::machine::SimulatedMachine;
use super::table::{ModelPlace, ModelTimes};
use super::units::UNITS;
use crate::power::UnitChoice;

/// Number of machines of a kind that are examined in each order.
const LOOKED_AT: usize = 2;
/// Balanced: another unit is taken where it needs less than this share of the energy, and no longer than so
/// many times as long.
const BALANCED: (f64, f64) = (0.5, 1.5);
/// Frugal: the most times as long as the first one to be done.
const FRUGAL: f64 = 4.0;
/// Seconds that differ by less are the same to frugality: waiting for nothing saves nothing.
const SAME: f64 = 2e-3;

/// A unit of a machine that could take a request.
#[derive(Clone, Copy, Debug)]
struct DeviceOffer {
    machine: usize,
    unit: usize,
    /// Seconds until it is predicted to be done, and joules that it takes.
    seconds: f64,
    joules: f64,
}

/// Machine and device of a request, and the seconds of work that it brings for batches and prompts.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedRequest {
    pub(super) machine: usize,
    pub(super) unit: usize,
    pub(super) seconds: f64,
}

/// Load of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceLoad {
    /// Number of texts that it has.
    texts: u64,
    /// Time at which it is predicted to be free.
    free_at: u64,
}

/// Units of machines of a kind, least loaded first, in both orders.
#[derive(Clone, Debug, Default)]
struct DevicesByLoad {
    by_texts: OrderedSet<(u64, u64, u32)>,
    by_time: OrderedSet<(u64, u64, u32)>,
}

impl DevicesByLoad {
    fn insert(&mut self, load: DeviceLoad, number: u32) {
        self.by_texts.insert((load.texts, load.free_at, number));
        self.by_time.insert((load.free_at, load.texts, number));
    }

    fn remove(&mut self, load: DeviceLoad, number: u32) {
        self.by_texts.remove(&(load.texts, load.free_at, number));
        self.by_time.remove(&(load.free_at, load.texts, number));
    }

    /// The machines that are looked at.
    fn first(&self) -> impl Iterator<Item = usize> {
        let first = self.by_texts.iter().take(LOOKED_AT);
        first.chain(self.by_time.iter().take(LOOKED_AT)).map(|&(_, _, at)| at as usize)
    }
}

/// The machines of each kind with each unit.
#[derive(Debug)]
pub(super) struct FleetPlacement {
    /// By kind and unit.
    all: Vec<DevicesByLoad>,
    /// By kind, unit and model: those that have the model, or bring it, where loading is simulated.
    holders: Vec<DevicesByLoad>,
    models: usize,
    /// The models that each machine has.
    held: Vec<Vec<u32>>,
    /// Key under which each device is sorted now; `None` while its machine takes nothing.
    standing: Vec<Option<DeviceLoad>>,
}

impl FleetPlacement {
    pub(super) fn new(machines: &[SimulatedMachine], kinds: usize, models: usize) -> Self {
        let loads = machines.iter().any(|machine| machine.residence.is_some());
        let mut all = Self {
            all: vec![DevicesByLoad::default(); kinds * UNITS],
            holders: vec![DevicesByLoad::default(); if loads { kinds * UNITS * models } else { 0 }],
            models,
            held: vec![Vec::new(); machines.len()],
            standing: vec![None; machines.len() * UNITS],
        };
        for (at, machine) in machines.iter().enumerate() {
            (0..UNITS).for_each(|unit| all.update(at, machine, unit));
        }
        all
    }

    /// Sorts a unit in anew.
    pub(super) fn update(&mut self, at: usize, machine: &SimulatedMachine, unit: usize) {
        let own = &machine.units[unit];
        let load = DeviceLoad { texts: own.all_texts() as u64, free_at: own.free_at };
        let new = machine.allowance.admits.then_some(load);
        let old = std::mem::replace(&mut self.standing[at * UNITS + unit], new);
        if old == new {
            return;
        }
        let class = machine.kind * UNITS + unit;
        let sorted = self.held[at].iter().map(|model| class * self.models + *model as usize);
        for sorted in sorted {
            change(&mut self.holders[sorted], old, new, number(at));
        }
        change(&mut self.all[class], old, new, number(at));
    }

    /// Takes note of a model that a machine has from now on, or has not any more.
    pub(super) fn note(&mut self, at: usize, machine: &SimulatedMachine, model: u32, has: bool) {
        self.held[at].retain(|known| *known != model);
        if has {
            self.held[at].push(model);
        }
        for unit in 0..UNITS {
            let class = machine.kind * UNITS + unit;
            let standing = self.standing[at * UNITS + unit];
            let (old, new) = if has { (None, standing) } else { (standing, None) };
            let sorted = &mut self.holders[class * self.models + model as usize];
            change(sorted, old, new, number(at));
        }
    }

    /// Chooses the machine and the device for a request; returns `None` while no machine takes it.
    pub(super) fn place(
        &self,
        now: u64,
        request: &SimulatedRequest,
        models: &[SimulatedModel],
        machines: &[SimulatedMachine],
        times: &ModelTimes<'_>,
    ) -> Option<PlacedRequest> {
        let model = request.model as usize;
        let need = need(request, times);
        let mut offers: Vec<DeviceOffer> = Vec::new();
        for (class, all) in self.all.iter().enumerate() {
            let kind = class / UNITS;
            let unit = class % UNITS;
            if !times.runs(kind, model, unit) {
                continue;
            }
            let work = RequestDemand {
                request,
                model: &models[model],
                first: first(request, kind, unit, times),
            };
            let holders = self.holders.get(class * self.models + model);
            let begin = offers.len();
            for at in holders.into_iter().flat_map(DevicesByLoad::first).chain(all.first()) {
                let seen = offers[begin..].iter().any(|offer| offer.machine == at);
                let fits = need <= machines[at].budget;
                if !seen && fits && !is_written_elsewhere(request, &machines[at], unit, times) {
                    offers.push(offer(now, work, at, &machines[at], unit, times));
                }
            }
        }
        let best = offers.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        let chosen = match machines[best.machine].allowance.units {
            UnitChoice::Fastest => best,
            UnitChoice::Balanced => {
                let joules = best.joules * BALANCED.0;
                let longer = best.seconds * BALANCED.1 + SAME;
                least(&offers, |offer| offer.joules < joules && offer.seconds <= longer)
                    .unwrap_or(best)
            }
            UnitChoice::Frugal => {
                least(&offers, |offer| offer.seconds <= best.seconds * FRUGAL + SAME)
                    .unwrap_or(best)
            }
        };
        let seconds = first(request, machines[chosen.machine].kind, chosen.unit, times);
        Some(PlacedRequest { machine: chosen.machine, unit: chosen.unit, seconds })
    }
}

fn number(machine: usize) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "machines are bounded")]
    let number = machine as u32;
    number
}

fn change(
    sorted: &mut DevicesByLoad,
    old: Option<DeviceLoad>,
    new: Option<DeviceLoad>,
    number: u32,
) {
    if let Some(old) = old {
        sorted.remove(old, number);
    }
    if let Some(new) = new {
        sorted.insert(new, number);
    }
}

/// Seconds of a request's batch, or of its prompt.
fn first(request: &SimulatedRequest, kind: usize, unit: usize, times: &ModelTimes<'_>) -> f64 {
    let model = request.model as usize;
    match request.kind {
        RequestKind::Infer { batch } => times.graph(kind, model, unit, batch),
        RequestKind::Generate { prompt, .. } => {
            times.prefill(ModelPlace { kind, model, unit }, f64::from(prompt), 0.0)
        }
    }
}

/// Returns whether another device of the machine writes texts and can take this one along. Devices share
/// memory, which makes one that reads weights for all texts faster than two. Frugality may choose otherwise.
fn is_written_elsewhere(
    request: &SimulatedRequest,
    machine: &SimulatedMachine,
    unit: usize,
    times: &ModelTimes<'_>,
) -> bool {
    let frugal = machine.allowance.units == UnitChoice::Frugal;
    if frugal || matches!(request.kind, RequestKind::Infer { .. }) {
        return false;
    }
    (0..UNITS).any(|other| {
        let writes = other != unit && machine.units[other].all_texts() > 0;
        writes && times.runs(machine.kind, request.model as usize, other)
    })
}

/// Bytes of the weights, and of the keys and values of the text.
fn need(request: &SimulatedRequest, times: &ModelTimes<'_>) -> f64 {
    let text = match request.kind {
        RequestKind::Infer { .. } => 0.0,
        RequestKind::Generate { prompt, output } => {
            times.text_bytes(request.model as usize, prompt.saturating_add(output))
        }
    };
    times.weights(request.model as usize) + text
}

fn least(offers: &[DeviceOffer], fits: impl Fn(&DeviceOffer) -> bool) -> Option<&DeviceOffer> {
    let by = |a: &&DeviceOffer, b: &&DeviceOffer| {
        a.joules.total_cmp(&b.joules).then(a.seconds.total_cmp(&b.seconds))
    };
    offers.iter().filter(|offer| fits(offer)).min_by(by)
}

/// Request, and the seconds of its batch or prompt on a device.
#[derive(Clone, Copy)]
struct RequestDemand<'a> {
    request: &'a SimulatedRequest,
    model: &'a SimulatedModel,
    first: f64,
}

fn offer(
    now: u64,
    asked: RequestDemand<'_>,
    at: usize,
    machine: &SimulatedMachine,
    unit: usize,
    times: &ModelTimes<'_>,
) -> DeviceOffer {
    let model = asked.request.model as usize;
    let own = &machine.units[unit];
    let place = ModelPlace { kind: machine.kind, model, unit };
    let free = own.free_at.saturating_sub(now);
    let wait = free.max(machine.wait(model, unit, times, now)) as f64 / 1e9;
    let (work, joule_seconds) = match asked.request.kind {
        RequestKind::Infer { .. } => {
            // A unit that writes texts takes turns with them.
            let turns = own.texts.first().map_or(0.0, |text| {
                let texts = own.texts.len() as f64;
                let model = text.model as usize;
                let place = ModelPlace { kind: machine.kind, model, unit };
                times.step(place, texts, texts * f64::from(text.context))
            });
            (asked.first + turns, asked.first)
        }
        RequestKind::Generate { prompt, output } => {
            let before = own.all_texts() as f64;
            let tokens = f64::from(output);
            let most = f64::from(asked.model.max_batch.max(1));
            let texts = (before + 1.0).min(most);
            let each = times.step(place, texts, texts * (f64::from(prompt) + tokens / 2.0));
            let each = each * machine.contention(unit, times);
            // Texts beyond the most at once wait for others to end.
            let rounds = 1.0 + (before + 1.0 - texts) / most;
            (asked.first + tokens * each * rounds, asked.first + tokens * each / texts)
        }
    };
    let seconds = wait + work / machine.speed().max(1e-3);
    DeviceOffer {
        machine: at,
        unit,
        seconds,
        joules: joule_seconds * times.watts(machine.kind, unit),
    }
}

//! Where requests go.

use std::collections::BTreeSet;

use super::fleet::{ModelWork, Request, RequestKind, SimulatedModel};
use super::machine::{Machine, UNITS};
use super::table::Times;
use crate::power::UnitChoice;

/// How many machines of a kind are looked at in each order.
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
struct Offer {
    machine: usize,
    unit: usize,
    /// Seconds until it is predicted to be done, and joules that it takes.
    seconds: f64,
    joules: f64,
}

/// Where a request goes, and the seconds of work that it brings for batches and prompts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) machine: usize,
    pub(super) unit: usize,
    pub(super) seconds: f64,
}

/// What a unit is sorted by: the texts that it has, and when it is predicted to be free.
type Load = (u64, u64);

/// The machines of each kind with each unit, least loaded first, in both orders.
#[derive(Debug)]
pub(super) struct Placement {
    by_texts: Vec<BTreeSet<(u64, u64, u32)>>,
    by_time: Vec<BTreeSet<(u64, u64, u32)>>,
    /// What each unit stands under now; none while its machine takes nothing.
    standing: Vec<Option<Load>>,
}

impl Placement {
    pub(super) fn new(machines: &[Machine], kinds: usize) -> Self {
        let mut all = Self {
            by_texts: vec![BTreeSet::new(); kinds * UNITS],
            by_time: vec![BTreeSet::new(); kinds * UNITS],
            standing: vec![None; machines.len() * UNITS],
        };
        for (at, machine) in machines.iter().enumerate() {
            (0..UNITS).for_each(|unit| all.update(at, machine, unit));
        }
        all
    }

    /// Sorts a unit in anew.
    pub(super) fn update(&mut self, at: usize, machine: &Machine, unit: usize) {
        let own = &machine.units[unit];
        let new = machine.allowance.admits.then_some((own.all_texts() as u64, own.free_at));
        let old = std::mem::replace(&mut self.standing[at * UNITS + unit], new);
        if old == new {
            return;
        }
        let class = machine.kind * UNITS + unit;
        #[allow(clippy::cast_possible_truncation, reason = "machines are bounded")]
        let number = at as u32;
        if let Some((texts, time)) = old {
            self.by_texts[class].remove(&(texts, time, number));
            self.by_time[class].remove(&(time, texts, number));
        }
        if let Some((texts, time)) = new {
            self.by_texts[class].insert((texts, time, number));
            self.by_time[class].insert((time, texts, number));
        }
    }

    /// Where a request goes; nowhere while no machine takes it.
    pub(super) fn place(
        &self,
        now: u64,
        request: &Request,
        models: &[SimulatedModel],
        machines: &[Machine],
        times: &Times<'_>,
    ) -> Option<Placed> {
        let model = request.model as usize;
        let need = need(request, &models[model], times);
        let mut offers: Vec<Offer> = Vec::new();
        for (class, (texts, free)) in self.by_texts.iter().zip(&self.by_time).enumerate() {
            let (kind, unit) = (class / UNITS, class % UNITS);
            if !times.runs(kind, model, unit) {
                continue;
            }
            let first = texts.iter().take(LOOKED_AT).map(|&(_, _, at)| at as usize);
            let soon = free.iter().take(LOOKED_AT).map(|&(_, _, at)| at as usize);
            for at in first.chain(soon) {
                let seen = offers.iter().any(|offer| (offer.machine, offer.unit) == (at, unit));
                let fits = need <= machines[at].budget;
                if !seen && fits && !is_written_elsewhere(request, &machines[at], unit, times) {
                    offers.push(offer(now, request, models, (at, &machines[at]), unit, times));
                }
            }
        }
        let best = offers.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        let chosen = match machines[best.machine].allowance.units {
            UnitChoice::Fastest => best,
            UnitChoice::Balanced => {
                let (joules, longer) = (best.joules * BALANCED.0, best.seconds * BALANCED.1 + SAME);
                least(&offers, |offer| offer.joules < joules && offer.seconds <= longer)
                    .unwrap_or(best)
            }
            UnitChoice::Frugal => {
                least(&offers, |offer| offer.seconds <= best.seconds * FRUGAL + SAME)
                    .unwrap_or(best)
            }
        };
        let kind = machines[chosen.machine].kind;
        let seconds = match request.kind {
            RequestKind::Infer { batch } => times.graph(kind, model, chosen.unit, batch),
            RequestKind::Generate { prompt, .. } => {
                times.prefill((kind, model, chosen.unit), f64::from(prompt), 0.0)
            }
        };
        Some(Placed { machine: chosen.machine, unit: chosen.unit, seconds })
    }
}

/// Whether another unit of the machine writes texts and can take this one along: units share memory, so
/// that one which reads weights for all texts is faster than two. Frugality may choose otherwise.
fn is_written_elsewhere(
    request: &Request,
    machine: &Machine,
    unit: usize,
    times: &Times<'_>,
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
fn need(request: &Request, model: &SimulatedModel, times: &Times<'_>) -> f64 {
    let text = match request.kind {
        RequestKind::Infer { .. } => 0.0,
        RequestKind::Generate { prompt, output } => {
            times.text_bytes(request.model as usize, prompt.saturating_add(output))
        }
    };
    model.weight_bytes() + text
}

fn least(offers: &[Offer], fits: impl Fn(&Offer) -> bool) -> Option<&Offer> {
    let by = |a: &&Offer, b: &&Offer| {
        a.joules.total_cmp(&b.joules).then(a.seconds.total_cmp(&b.seconds))
    };
    offers.iter().filter(|offer| fits(offer)).min_by(by)
}

fn offer(
    now: u64,
    request: &Request,
    models: &[SimulatedModel],
    (at, machine): (usize, &Machine),
    unit: usize,
    times: &Times<'_>,
) -> Offer {
    let (model, own) = (request.model as usize, &machine.units[unit]);
    let place = (machine.kind, model, unit);
    let wait = own.free_at.saturating_sub(now) as f64 / 1e9;
    let (work, joule_seconds) = match request.kind {
        RequestKind::Infer { batch } => {
            let seconds = times.graph(machine.kind, model, unit, batch);
            // A unit that writes texts takes turns with them.
            let turns = own.texts.first().map_or(0.0, |text| {
                let texts = own.texts.len() as f64;
                let place = (machine.kind, text.model as usize, unit);
                times.step(place, texts, texts * f64::from(text.context))
            });
            (seconds + turns, seconds)
        }
        RequestKind::Generate { prompt, output } => {
            let ModelWork::Decoder(_) = models[model].work else {
                return Offer { machine: at, unit, seconds: f64::INFINITY, joules: f64::INFINITY };
            };
            let (before, tokens) = (own.all_texts() as f64, f64::from(output));
            let most = f64::from(models[model].max_batch.max(1));
            let texts = (before + 1.0).min(most);
            let each = times.step(place, texts, texts * (f64::from(prompt) + tokens / 2.0));
            let each = each * machine.contention(unit, times);
            // Texts beyond the most at once wait for others to end.
            let rounds = 1.0 + (before + 1.0 - texts) / most;
            let first = times.prefill(place, f64::from(prompt), 0.0);
            (first + tokens * each * rounds, first + tokens * each / texts)
        }
    };
    let seconds = wait + work / machine.speed().max(1e-3);
    Offer { machine: at, unit, seconds, joules: joule_seconds * times.watts(machine.kind, unit) }
}

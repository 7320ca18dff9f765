//! The course of a simulation: requests that arrive, pieces of work that end, and looks at sensors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::device::{SimulatedWork, TimedWork};
use super::event::{SimulatedEvent, SimulatedEventKind};
use super::fleet::{self, Fleet, RequestKind, SimulatedModel, SimulatedRequest, SimulationFault};
use super::machine::{COOLED, LOOK, SimulatedMachine};
use super::placement::FleetPlacement;
use super::report::{
    MachineReport, SimulatedDeviceReport, SimulatedModelReport, SimulationReport, TimeQuantiles,
};
use super::table::ModelTimes;
use super::units::{UNITS, nanos, unit_of};
use crate::cost::ComputeUnit;

/// The most looks of machines at their sensors: minutes of real time.
const MAX_LOOKS: u64 = 1_000_000_000;

/// Times at which requests were answered.
#[derive(Debug, Default)]
struct AnswerTimes {
    latency: Vec<u64>,
    first: Vec<u64>,
    tokens: u64,
    refused: u64,
    units: [u64; UNITS],
}

/// A simulation under way.
pub(super) struct SimulationRun<'a> {
    pub(super) models: &'a [SimulatedModel],
    pub(super) requests: &'a [SimulatedRequest],
    pub(super) times: ModelTimes<'a>,
    pub(super) machines: Vec<SimulatedMachine>,
    pub(super) placement: FleetPlacement,
    pub(super) events: BinaryHeap<Reverse<SimulatedEvent>>,
    answers: Vec<AnswerTimes>,
    pub(super) now: u64,
    /// Time at which the last answer reaches its client.
    last: u64,
    pieces: u64,
    /// Events so far, which gives those at the same time an order.
    pub(super) number: u64,
    open: u64,
}

/// Replays requests, which may stand in any order, on a fleet. The same input gives the same report.
///
/// # Errors
/// A fleet without machines, or with too many; a request for a model that is not there or of another sort;
/// requests that the fleet needs too long for to be simulated.
pub fn simulate(
    fleet: &Fleet,
    models: &[SimulatedModel],
    requests: &[SimulatedRequest],
) -> Result<SimulationReport, SimulationFault> {
    fleet::check(fleet, models, requests)?;
    let mut requests = requests.to_vec();
    requests.sort_by_key(|request| request.at);
    let kinds = fleet.kinds.iter().enumerate();
    let loads = fleet.loading.is_some();
    let machines = kinds.flat_map(|(at, kind)| {
        (0..kind.count).map(move |_| SimulatedMachine::new(at, kind, fleet.power, loads))
    });
    let machines: Vec<SimulatedMachine> = machines.collect();
    let mut run = SimulationRun {
        models,
        requests: &requests,
        times: ModelTimes::new(fleet, models),
        placement: FleetPlacement::new(&machines, fleet.kinds.len(), models.len()),
        machines,
        events: BinaryHeap::new(),
        answers: models.iter().map(|_| AnswerTimes::default()).collect(),
        now: 0,
        last: 0,
        pieces: 0,
        number: 0,
        open: 0,
    };
    run.go()?;
    Ok(run.report(fleet))
}

impl SimulationRun<'_> {
    fn go(&mut self) -> Result<(), SimulationFault> {
        let mut next = 0;
        let mut look = LOOK;
        let mut looks = 0;
        let each = self.machines.len() as u64;
        while looks <= MAX_LOOKS {
            let arrival = self.requests.get(next).map(|request| request.at);
            let end = self.events.peek().map(|Reverse(event)| event.at);
            let Some(soonest) = arrival.into_iter().chain(end).min() else {
                if self.open == 0 {
                    let now = self.now.max(self.last);
                    self.now = now;
                    self.machines.iter_mut().for_each(|one| _ = one.look(now, &self.times));
                    return Ok(());
                }
                // Whoever waits, waits for a governor.
                self.look(look);
                (look, looks) = (look + LOOK, looks + each);
                continue;
            };
            if look <= soonest {
                self.look(look);
                // Nothing happens to machines that have cooled down, until there is work again.
                let rests = self.open == 0 && soonest - look > 2 * COOLED;
                look = if rests { (soonest - COOLED).max(look) } else { look } + LOOK;
                looks += each;
                continue;
            }
            self.now = soonest;
            if end.is_some_and(|end| arrival.is_none_or(|arrival| end <= arrival)) {
                self.event();
            } else {
                self.arrive(next);
                next += 1;
            }
        }
        Err(SimulationFault(format!(
            "too much to simulate: {} requests are open and {} to come after {:.0} s",
            self.open,
            self.requests.len() - next,
            self.now as f64 / 1e9
        )))
    }

    /// Every machine looks at its sensors.
    fn look(&mut self, now: u64) {
        self.now = now;
        for at in 0..self.machines.len() {
            let machine = &mut self.machines[at];
            let admitted = machine.allowance.admits;
            let changed = machine.look(now, &self.times);
            if machine.allowance.admits != admitted {
                (0..UNITS).for_each(|unit| self.placement.update(at, &self.machines[at], unit));
            }
            for unit in 0..UNITS {
                if changed && self.machines[at].units[unit].cut(now) {
                    self.announce(at, unit);
                }
                self.start(at, unit);
            }
        }
    }

    fn arrive(&mut self, number: usize) {
        let request = self.requests[number];
        let model = request.model as usize;
        let place =
            self.placement.place(self.now, &request, self.models, &self.machines, &self.times);
        let Some(placed) = place else {
            self.answers[model].refused += 1;
            return;
        };
        self.open += 1;
        self.answers[model].units[placed.unit] += 1;
        #[allow(clippy::cast_possible_truncation, reason = "requests are bounded")]
        self.send(number as u32, placed);
    }

    /// Lets a unit without work begin what is next.
    pub(super) fn start(&mut self, at: usize, unit: usize) {
        let machine = &self.machines[at];
        if !machine.units[unit].waits() || machine.allowance.pace <= 0.0 {
            return;
        }
        let fits = machine.has_room(unit, &self.times) || self.make_room(at, unit);
        let machine = &mut self.machines[at];
        let seat = machine.seat(unit);
        let speed = machine.speed();
        let pace = machine.pace();
        let shared = machine.contention(unit, &self.times);
        let own = &mut machine.units[unit];
        own.count(self.now);
        let found = own.choose(&self.times, self.models, self.requests, seat, fits);
        let Some((work, mut seconds)) = found else { return };
        if let SimulatedWork::Steps { .. } = work {
            seconds *= shared;
        }
        if let (SimulatedWork::Prompt(_), Some(text)) = (&work, own.prompts.front())
            && text.context == 0
        {
            machine.kept += text.bytes;
        }
        let end = self.now.saturating_add(nanos(seconds / speed).max(1));
        own.running = Some(TimedWork { work, start: self.now, end, pace });
        own.stamp = own.stamp.wrapping_add(1);
        self.pieces += 1;
        self.announce(at, unit);
    }

    /// Puts the end of a unit's piece among the events.
    pub(super) fn announce(&mut self, at: usize, unit: usize) {
        let own = &self.machines[at].units[unit];
        if let Some(piece) = &own.running {
            let end = piece.end;
            let stamp = own.stamp;
            self.push(end, at, SimulatedEventKind::End { unit, stamp });
        }
    }

    /// The next event happens.
    fn event(&mut self) {
        let Some(Reverse(event)) = self.events.pop() else { return };
        let at = event.machine;
        match event.what {
            SimulatedEventKind::End { unit, stamp } => self.end(at, unit, stamp),
            SimulatedEventKind::Delivered { unit, request } => self.receive(at, unit, request),
            SimulatedEventKind::Ready { model } => self.release(at, model),
        }
    }

    /// Ends a piece, unless it was cut or is not there any more.
    fn end(&mut self, at: usize, unit: usize, stamp: u32) {
        let own = &mut self.machines[at].units[unit];
        if own.stamp != stamp {
            return;
        }
        own.count(self.now);
        match own.running.take().map(|piece| piece.work) {
            Some(SimulatedWork::Batch(all)) => {
                for request in all {
                    self.answer(at, request, 0);
                }
            }
            Some(SimulatedWork::Prompt(tokens)) => self.prompt_done(at, unit, tokens),
            Some(SimulatedWork::Steps { model, steps }) => self.steps_done(at, unit, model, steps),
            None => {}
        }
        self.start(at, unit);
        let own = &mut self.machines[at].units[unit];
        if own.is_idle() {
            own.free_at = self.now;
        }
        self.placement.update(at, &self.machines[at], unit);
    }

    fn prompt_done(&mut self, at: usize, unit: usize, tokens: u32) {
        let own = &mut self.machines[at].units[unit];
        let Some(text) = own.prompts.front_mut() else { return };
        text.prompt = text.prompt.saturating_sub(tokens);
        text.context = text.context.saturating_add(tokens);
        if text.prompt > 0 {
            return;
        }
        let Some(mut text) = own.prompts.pop_front() else { return };
        // The last token of the prompt gives the first of the answer.
        text.left = text.left.saturating_sub(1);
        let request = self.requests[text.request as usize];
        let answers = &mut self.answers[text.model as usize];
        let written = u64::from(text.left == 0);
        let way = self.times.fleet.network.map_or(0, |network| nanos(network.seconds));
        answers.first.push((self.now + way).saturating_sub(request.at));
        if written == 1 {
            self.machines[at].kept -= text.bytes;
            self.answer(at, text.request, 1);
        } else {
            let texts = &mut self.machines[at].units[unit].texts;
            texts.push(text);
            if texts.len() == 1 {
                self.share_anew(at, unit);
            }
        }
    }

    /// Cuts the steps of a machine's other units, which have more or less of its memory from now on.
    fn share_anew(&mut self, at: usize, unit: usize) {
        for other in (0..UNITS).filter(|&other| other != unit) {
            if self.machines[at].units[other].cut(self.now) {
                self.announce(at, other);
            }
        }
    }

    fn steps_done(&mut self, at: usize, unit: usize, model: u32, steps: u32) {
        let mut ended = Vec::new();
        self.machines[at].units[unit].texts.retain_mut(|text| {
            if text.model == model {
                text.left = text.left.saturating_sub(steps);
                text.context = text.context.saturating_add(steps);
                if text.left == 0 {
                    ended.push(*text);
                }
            }
            text.left > 0
        });
        for text in ended {
            self.machines[at].kept -= text.bytes;
            let tokens = match self.requests[text.request as usize].kind {
                RequestKind::Generate { output, .. } => u64::from(output),
                RequestKind::Infer { .. } => 0,
            };
            self.answer(at, text.request, tokens);
        }
        if self.machines[at].units[unit].texts.is_empty() {
            self.share_anew(at, unit);
        }
    }

    fn answer(&mut self, at: usize, request: u32, tokens: u64) {
        let request = self.requests[request as usize];
        let [_, bytes] = self.times.wire(request.model as usize, request.kind);
        let there = self.machines[at].carry(1, bytes, &self.times, self.now);
        self.last = self.last.max(there);
        let took = there.saturating_sub(request.at);
        let answers = &mut self.answers[request.model as usize];
        answers.latency.push(took);
        answers.tokens += tokens;
        self.machines[at].latency.push(took);
        self.machines[at].tokens += tokens;
        self.open -= 1;
        self.close(at, request.model);
    }

    fn report(self, fleet: &Fleet) -> SimulationReport {
        let seconds = self.now as f64 / 1e9;
        let share = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let machine = |(number, machine): (usize, &SimulatedMachine)| {
            let kind = &fleet.kinds[machine.kind];
            let unit = |sort: ComputeUnit| {
                let own = machine.units.iter().enumerate().filter(|(unit, _)| {
                    unit_of(*unit) == sort && self.times.unit(machine.kind, *unit).is_some()
                });
                let busy: Vec<f64> = own.map(|(_, own)| share(own.busy_total)).collect();
                let count = busy.len();
                let utilisation = busy.iter().sum::<f64>() / count as f64;
                (count > 0).then_some(SimulatedDeviceReport { unit: sort, count, utilisation })
            };
            MachineReport {
                kind: kind.name.clone(),
                number,
                requests: machine.latency.len() as u64,
                tokens: machine.tokens,
                latency: TimeQuantiles::of(machine.latency.clone()),
                units: ComputeUnit::ALL.into_iter().filter_map(unit).collect(),
                watts: share(machine.joules),
                joules: machine.joules,
                hottest: machine.hottest,
                throttled_seconds: machine.throttled,
                limited_seconds: machine.limited,
                loads: machine.residence.as_ref().map(|own| [own.loads, own.evictions]),
            }
        };
        let machines = self.machines.iter().enumerate().map(machine).collect();
        let all = self.answers.iter().flat_map(|answers| answers.latency.iter().copied());
        let latency = TimeQuantiles::of(all.collect());
        let placed = |sort: ComputeUnit, units: &[u64; UNITS]| {
            let own = units.iter().enumerate().filter(|(unit, _)| unit_of(*unit) == sort);
            own.map(|(_, count)| *count).sum()
        };
        let model = |(model, answers): (&SimulatedModel, AnswerTimes)| SimulatedModelReport {
            name: model.name.clone(),
            requests: answers.latency.len() as u64,
            refused: answers.refused,
            tokens: answers.tokens,
            latency: TimeQuantiles::of(answers.latency),
            first_token: TimeQuantiles::of(answers.first),
            placements: ComputeUnit::ALL.map(|sort| (sort, placed(sort, &answers.units))).to_vec(),
        };
        let models = self.models.iter().zip(self.answers).map(model).collect();
        SimulationReport { seconds, machines, models, latency, pieces: self.pieces }
    }
}

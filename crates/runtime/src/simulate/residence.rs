//! Models in the memory of a simulated machine, and their loading.

use std::collections::VecDeque;

use super::table::ModelTimes;

/// A model that requests of a machine ask for, or that it still has from before.
#[derive(Clone, Copy, Debug)]
struct ResidentModel {
    model: u32,
    bytes: f64,
    /// Time at which it is in memory; `None` while it waits for room.
    ready_at: Option<u64>,
    /// Requests that are not answered.
    open: u32,
    /// Time of the last request for it.
    used: u64,
}

/// A request whose model is not there yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParkedRequest {
    pub(super) model: u32,
    pub(super) unit: usize,
    pub(super) request: u32,
}

/// Loading of a model that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelLoadStart {
    pub(super) model: u32,
    pub(super) ready_at: u64,
    /// Time at which its compiled form is ready, if it is compiled.
    pub(super) compiled_at: Option<u64>,
}

/// State of a machine at some time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineState {
    pub(super) now: u64,
    /// Time until its devices are free: their models then make room.
    pub(super) busy: u64,
    /// Bytes that models may take.
    pub(super) budget: f64,
}

/// The models of a machine. Its disk reads one after the other, and its compiler compiles one after the other;
/// what was compiled stays on the disk.
#[derive(Debug, Default)]
pub(super) struct ModelResidence {
    entries: Vec<ResidentModel>,
    /// Models that wait for room, the first first.
    wanted: VecDeque<u32>,
    compiled: Vec<(u32, u64)>,
    parked: Vec<ParkedRequest>,
    disk_free: u64,
    compiler_free: u64,
    pub(super) loads: u64,
    pub(super) evictions: u64,
}

impl ModelResidence {
    fn entry(&self, model: u32) -> Option<&ResidentModel> {
        self.entries.iter().find(|entry| entry.model == model)
    }

    fn compiled_at(&self, model: u32) -> Option<u64> {
        self.compiled.iter().find(|(known, _)| *known == model).map(|(_, at)| *at)
    }

    /// Bytes of the models that are in memory or on their way.
    pub(super) fn bytes(&self) -> f64 {
        let held = self.entries.iter().filter(|entry| entry.ready_at.is_some());
        held.map(|entry| entry.bytes).sum()
    }

    /// Takes note of a request. Whether its model has to be brought.
    pub(super) fn open(&mut self, model: u32, bytes: f64, now: u64) -> bool {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.model == model) {
            (entry.open, entry.used) = (entry.open + 1, now);
            return false;
        }
        self.entries.push(ResidentModel { model, bytes, ready_at: None, open: 1, used: now });
        self.wanted.push_back(model);
        true
    }

    /// Takes note of an answer. Whether models wait for room, which there may be now.
    pub(super) fn close(&mut self, model: u32, now: u64) -> bool {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.model == model) {
            (entry.open, entry.used) = (entry.open.saturating_sub(1), now);
        }
        !self.wanted.is_empty()
    }

    /// Returns whether a model can run now, on a Neural Engine or elsewhere.
    pub(super) fn is_ready(&self, model: u32, engine: bool, now: u64) -> bool {
        let there = |at: Option<u64>| at.is_some_and(|at| at <= now);
        there(self.entry(model).and_then(|entry| entry.ready_at))
            && (!engine || there(self.compiled_at(model)))
    }

    /// Keeps a request until its model is there.
    pub(super) fn park(&mut self, parked: ParkedRequest) {
        self.parked.push(parked);
    }

    /// Takes out the requests for a model that can run now.
    pub(super) fn release(
        &mut self,
        model: u32,
        engine: impl Fn(usize) -> bool,
        now: u64,
    ) -> Vec<ParkedRequest> {
        let ready = [false, true].map(|engine| self.is_ready(model, engine, now));
        let goes =
            |one: &mut ParkedRequest| one.model == model && ready[usize::from(engine(one.unit))];
        self.parked.extract_if(.., goes).collect()
    }

    /// Returns the nanoseconds until a request for a model could begin on a device that is free, as far as can be told
    /// now.
    pub(super) fn wait(
        &self,
        kind: usize,
        model: usize,
        engine: bool,
        times: &ModelTimes<'_>,
        state: MachineState,
    ) -> u64 {
        let MachineState { now, busy, budget } = state;
        #[allow(clippy::cast_possible_truncation, reason = "models are bounded as requests are")]
        let number = model as u32;
        let entry = self.entry(number);
        let ready_at = entry.and_then(|entry| entry.ready_at).unwrap_or_else(|| {
            let pinned =
                self.entries.iter().filter(|entry| entry.open > 0 && entry.model != number);
            let pinned = pinned.map(|entry| entry.bytes).sum::<f64>();
            let fits = pinned + times.weights(model) <= budget;
            let from = self.disk_free.max(now) + if fits { 0 } else { busy };
            from.saturating_add(times.load(kind, model))
        });
        let at = match (engine, self.compiled_at(number)) {
            (false, _) => ready_at,
            (true, Some(at)) => at.max(ready_at),
            (true, None) => {
                let from = self.compiler_free.max(ready_at);
                from.saturating_add(times.compile(kind, model).unwrap_or(0))
            }
        };
        at.saturating_sub(now)
    }

    /// Brings the models that wait, as far as there is room: `room` are bytes for all of them. Those that
    /// nobody asks for go first, the one that was not asked for the longest time before the others. What began,
    /// and which models went.
    pub(super) fn bring(
        &mut self,
        kind: usize,
        times: &ModelTimes<'_>,
        room: f64,
        now: u64,
    ) -> (Vec<ModelLoadStart>, Vec<u32>) {
        let mut begun = Vec::new();
        let mut gone = Vec::new();
        while let Some(&model) = self.wanted.front() {
            let bytes = times.weights(model as usize);
            gone.extend(self.evict(room - bytes));
            if self.bytes() > room - bytes {
                break;
            }
            self.wanted.pop_front();
            let ready_at = self.disk_free.max(now).saturating_add(times.load(kind, model as usize));
            self.disk_free = ready_at;
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.model == model) {
                entry.ready_at = Some(ready_at);
            }
            self.loads += 1;
            let compiled_at = match (self.compiled_at(model), times.compile(kind, model as usize)) {
                (None, Some(takes)) => {
                    let at = self.compiler_free.max(ready_at).saturating_add(takes);
                    self.compiler_free = at;
                    self.compiled.push((model, at));
                    Some(at)
                }
                _ => None,
            };
            begun.push(ModelLoadStart { model, ready_at, compiled_at });
        }
        (begun, gone)
    }

    /// Lets models go that nobody asks for until the others have no more than `room` bytes. Those that went.
    pub(super) fn evict(&mut self, room: f64) -> Vec<u32> {
        let mut gone = Vec::new();
        let mut bytes = self.bytes();
        while bytes > room {
            let idle = self.entries.iter().enumerate();
            let idle = idle.filter(|(_, entry)| entry.open == 0 && entry.ready_at.is_some());
            let Some((at, _)) = idle.min_by_key(|(_, entry)| (entry.used, entry.model)) else {
                break;
            };
            let entry = self.entries.swap_remove(at);
            bytes -= entry.bytes;
            self.evictions += 1;
            gone.push(entry.model);
        }
        gone
    }
}

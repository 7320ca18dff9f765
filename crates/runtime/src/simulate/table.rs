//! Predicted times, looked up.

use super::fleet::{Fleet, MachineKind, ModelWork, RequestKind, SimulatedModel};
use super::units::{UNITS, nanos, unit_of};
use crate::cost::{ComputeUnit, DecoderWork, UnitCost};

/// Rows up to which times of graphs are looked up.
const ROWS: usize = 64;

/// A model on a device of a kind of machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelPlace {
    pub(super) kind: usize,
    pub(super) model: usize,
    pub(super) unit: usize,
}

/// Times of all models on all units of a kind of machine. Units are counted as [`unit_of`] does.
#[derive(Debug)]
pub(super) struct ModelTimes<'a> {
    pub(super) fleet: &'a Fleet,
    models: &'a [SimulatedModel],
    /// Bytes of the weights of each model.
    weights: Vec<f64>,
    /// Cost of each device, by kind and device.
    units: Vec<Option<&'a UnitCost>>,
    /// Seconds by kind, model, unit and rows; none where a model does not run on a unit.
    graphs: Vec<Option<Vec<f64>>>,
}

impl<'a> ModelTimes<'a> {
    pub(super) fn new(fleet: &'a Fleet, models: &'a [SimulatedModel]) -> Self {
        let mut graphs = Vec::new();
        let mut units = Vec::new();
        for kind in &fleet.kinds {
            let own = (0..UNITS).map(|unit| Self::unit_of_kind(kind, unit));
            let own: Vec<Option<&UnitCost>> = own.collect();
            for model in models {
                for unit in &own {
                    let unit = unit.filter(|unit| model.units.contains(&unit.unit));
                    graphs.push(unit.map(|unit| {
                        match &model.work {
                            ModelWork::Graph(work) => (0..=ROWS)
                                .map(|rows| kind.cost.graph_seconds(unit, work, rows as f64))
                                .collect(),
                            ModelWork::Decoder(_) => Vec::new(),
                        }
                    }));
                }
            }
            units.extend(own);
        }
        let weights = models.iter().map(SimulatedModel::weight_bytes).collect();
        Self { fleet, models, weights, units, graphs }
    }

    fn unit_of_kind(kind: &MachineKind, unit: usize) -> Option<&UnitCost> {
        let there = unit < ComputeUnit::ALL.len() || kind.engines > 1;
        kind.cost.unit(unit_of(unit)).filter(|_| there)
    }

    /// Returns the cost of a device of a kind of machine; `None` if there is no such device.
    pub(super) fn unit(&self, kind: usize, unit: usize) -> Option<&'a UnitCost> {
        self.units[kind * UNITS + unit]
    }

    /// Bytes of a model's weights.
    pub(super) fn weights(&self, model: usize) -> f64 {
        self.weights[model]
    }

    /// Nanoseconds that a machine needs to bring a model into its memory once its disk is free.
    pub(super) fn load(&self, kind: usize, model: usize) -> u64 {
        let start = self.fleet.loading.map_or(0.0, |loading| loading.start_seconds);
        nanos(start + self.weights[model] / self.fleet.kinds[kind].disk_bytes)
    }

    /// Nanoseconds that a machine needs to compile a model for its Neural Engine, where it can run there.
    pub(super) fn compile(&self, kind: usize, model: usize) -> Option<u64> {
        let engine = ComputeUnit::ALL.iter().position(|unit| *unit == ComputeUnit::NeuralEngine)?;
        let each = self.fleet.loading?.compile_seconds_per_byte;
        self.runs(kind, model, engine).then(|| nanos(each * self.weights[model]))
    }

    /// Bytes of a request and of what its answer keeps a machine's link busy with at once: a text is sent token
    /// by token.
    pub(super) fn wire(&self, model: usize, kind: RequestKind) -> [f64; 2] {
        let [request, answer] = self.models[model].wire_bytes;
        match kind {
            RequestKind::Infer { batch } => [request, answer].map(|each| each * f64::from(batch)),
            RequestKind::Generate { prompt, .. } => [request * f64::from(prompt), answer],
        }
    }

    fn place(&self, kind: usize, model: usize, unit: usize) -> usize {
        (kind * self.models.len() + model) * UNITS + unit
    }

    /// Returns whether a model runs on a device.
    pub(super) fn runs(&self, kind: usize, model: usize, unit: usize) -> bool {
        self.graphs[self.place(kind, model, unit)].is_some()
    }

    /// Seconds of a graph for a batch.
    pub(super) fn graph(&self, kind: usize, model: usize, unit: usize, rows: u32) -> f64 {
        let known = self.graphs[self.place(kind, model, unit)].as_ref();
        if let Some(&seconds) = known.and_then(|times| times.get(rows as usize)) {
            return seconds;
        }
        let cost = &self.fleet.kinds[kind].cost;
        match (&self.models[model].work, self.unit(kind, unit)) {
            (ModelWork::Graph(work), Some(unit)) => cost.graph_seconds(unit, work, f64::from(rows)),
            _ => 0.0,
        }
    }

    fn decoder(&self, model: usize) -> Option<&'a DecoderWork> {
        match &self.models[model].work {
            ModelWork::Decoder(work) => Some(work),
            ModelWork::Graph(_) => None,
        }
    }

    /// Seconds of a decoder for a piece of a prompt.
    pub(super) fn prefill(&self, place: ModelPlace, tokens: f64, past: f64) -> f64 {
        let cost = &self.fleet.kinds[place.kind].cost;
        let of = self.decoder(place.model).zip(self.unit(place.kind, place.unit));
        of.map_or(0.0, |(work, unit)| cost.prefill_seconds(unit, work, tokens, past))
    }

    /// Seconds of a decoder for the next token of so many texts with so many tokens together.
    pub(super) fn step(&self, place: ModelPlace, texts: f64, tokens: f64) -> f64 {
        let cost = &self.fleet.kinds[place.kind].cost;
        let of = self.decoder(place.model).zip(self.unit(place.kind, place.unit));
        of.map_or(0.0, |(work, unit)| cost.step_seconds(unit, work, texts, tokens))
    }

    /// Bytes of the keys and values of a text.
    pub(super) fn text_bytes(&self, model: usize, tokens: u32) -> f64 {
        self.decoder(model).map_or(0.0, |work| work.kv_bytes_per_token * f64::from(tokens))
    }

    /// Returns the factor by which a device takes longer for bytes while others use the same memory.
    pub(super) fn contention(&self, kind: usize, unit: usize, others: [bool; UNITS]) -> f64 {
        let cost = &self.fleet.kinds[kind].cost;
        let bytes = |unit: usize| {
            let own = self.unit(kind, unit).map_or(0.0, |unit| unit.bytes);
            // One that is faster than the memory of all has its own.
            if own > cost.bandwidth { 0.0 } else { own }
        };
        let own = bytes(unit);
        if own <= 0.0 {
            return 1.0;
        }
        let besides = (0..others.len()).filter(|&other| other != unit && others[other]);
        ((own + besides.map(bytes).sum::<f64>()) / cost.bandwidth).max(1.0)
    }

    /// Watts that a unit adds at full work.
    pub(super) fn watts(&self, kind: usize, unit: usize) -> f64 {
        self.unit(kind, unit).map_or(0.0, |unit| unit.watts)
    }
}

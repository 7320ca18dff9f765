//! Predicted times, looked up.

use super::fleet::{Fleet, ModelWork, SimulatedModel};
use crate::cost::{ComputeUnit, DecoderWork};

/// Rows up to which times of graphs are looked up.
const ROWS: usize = 64;

/// Times of all models on all units of a kind of machine. Units are counted as [`ComputeUnit::ALL`] does.
#[derive(Debug)]
pub(super) struct Times<'a> {
    fleet: &'a Fleet,
    models: &'a [SimulatedModel],
    /// Seconds by kind, model, unit and rows; none where a model does not run on a unit.
    graphs: Vec<Option<Vec<f64>>>,
}

impl<'a> Times<'a> {
    pub(super) fn new(fleet: &'a Fleet, models: &'a [SimulatedModel]) -> Self {
        let mut graphs = Vec::new();
        for kind in &fleet.kinds {
            for model in models {
                for unit in ComputeUnit::ALL {
                    let unit = kind.cost.unit(unit).filter(|_| model.units.contains(&unit));
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
        }
        Self { fleet, models, graphs }
    }

    fn place(&self, kind: usize, model: usize, unit: usize) -> usize {
        (kind * self.models.len() + model) * ComputeUnit::ALL.len() + unit
    }

    /// Whether a model runs on a unit.
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
        match (&self.models[model].work, cost.unit(ComputeUnit::ALL[unit])) {
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
    pub(super) fn prefill(
        &self,
        (kind, model, unit): (usize, usize, usize),
        tokens: f64,
        past: f64,
    ) -> f64 {
        let cost = &self.fleet.kinds[kind].cost;
        let of = self.decoder(model).zip(cost.unit(ComputeUnit::ALL[unit]));
        of.map_or(0.0, |(work, unit)| cost.prefill_seconds(unit, work, tokens, past))
    }

    /// Seconds of a decoder for the next token of so many texts with so many tokens together.
    pub(super) fn step(
        &self,
        (kind, model, unit): (usize, usize, usize),
        texts: f64,
        tokens: f64,
    ) -> f64 {
        let cost = &self.fleet.kinds[kind].cost;
        let of = self.decoder(model).zip(cost.unit(ComputeUnit::ALL[unit]));
        of.map_or(0.0, |(work, unit)| cost.step_seconds(unit, work, texts, tokens))
    }

    /// Bytes of the keys and values of a text.
    pub(super) fn text_bytes(&self, model: usize, tokens: u32) -> f64 {
        self.decoder(model).map_or(0.0, |work| work.kv_bytes_per_token * f64::from(tokens))
    }

    /// How many times as long a unit takes for bytes while others draw on the same memory.
    pub(super) fn contention(&self, kind: usize, unit: usize, others: [bool; 3]) -> f64 {
        let cost = &self.fleet.kinds[kind].cost;
        let bytes = |unit: usize| {
            let own = cost.unit(ComputeUnit::ALL[unit]).map_or(0.0, |unit| unit.bytes);
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
        self.fleet.kinds[kind].cost.unit(ComputeUnit::ALL[unit]).map_or(0.0, |unit| unit.watts)
    }
}

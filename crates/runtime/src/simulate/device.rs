//! A unit of a simulated machine: what waits for it, and what it does.

use std::collections::VecDeque;

use super::fleet::{RequestKind, SimulatedModel, SimulatedRequest};
use super::table::{ModelPlace, ModelTimes};

/// Tokens of a prompt that are computed in one piece, so that other texts go on in between.
const PIECE: u32 = 512;

/// A text that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratingText {
    pub(super) request: u32,
    pub(super) model: u32,
    /// Tokens that have keys and values.
    pub(super) context: u32,
    /// Tokens of the prompt that have none yet.
    pub(super) prompt: u32,
    /// Tokens still to write.
    pub(super) left: u32,
    /// Bytes that are kept for it.
    pub(super) bytes: f64,
}

/// Work in progress on a device.
#[derive(Clone, Debug)]
pub(super) enum SimulatedWork {
    /// A batch of requests.
    Batch(Vec<u32>),
    /// Number of tokens of the first text's prompt to process.
    Prompt(u32),
    /// Steps of all texts of a model.
    Steps { model: u32, steps: u32 },
}

/// Work in time.
#[derive(Clone, Debug)]
pub(super) struct TimedWork {
    pub(super) work: SimulatedWork,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The share of this time in which the unit works.
    pub(super) pace: f64,
}

/// Position of a device: its machine's kind and its own number.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicePosition {
    pub(super) kind: usize,
    pub(super) unit: usize,
}

impl DevicePosition {
    /// Returns the place of a model on the device.
    fn of_model(self, model: usize) -> ModelPlace {
        ModelPlace { kind: self.kind, model, unit: self.unit }
    }
}

/// A unit.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedDevice {
    /// Requests for graphs.
    pub(super) batches: VecDeque<u32>,
    /// Texts whose prompts wait, the first perhaps computed in part.
    pub(super) prompts: VecDeque<GeneratingText>,
    /// Texts that are being written.
    pub(super) texts: Vec<GeneratingText>,
    /// Requests that are on their way or whose models are, and how many of them ask for texts.
    pub(super) coming: usize,
    pub(super) coming_texts: usize,
    pub(super) running: Option<TimedWork>,
    /// Changes with every piece, so that events of others are known.
    pub(super) stamp: u32,
    /// Predicted time at which batches and prompts are done.
    pub(super) free_at: u64,
    /// Work in seconds, since the last look and in all.
    pub(super) busy: f64,
    pub(super) busy_total: f64,
    /// Up to when it was counted.
    counted: u64,
    /// Kind of work whose turn it is: batches, prompts, texts.
    turn: usize,
    /// Model whose texts go on next.
    next_model: u32,
}

impl SimulatedDevice {
    /// Texts that it has, in whatever state.
    pub(super) fn all_texts(&self) -> usize {
        self.prompts.len() + self.texts.len() + self.coming_texts
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none()
            && self.coming == 0
            && self.batches.is_empty()
            && self.prompts.is_empty()
            && self.texts.is_empty()
    }

    /// Returns whether the device is idle although there is work.
    pub(super) fn waits(&self) -> bool {
        let work = !(self.batches.is_empty() && self.prompts.is_empty() && self.texts.is_empty());
        self.running.is_none() && work
    }

    /// Counts work up to a time.
    pub(super) fn count(&mut self, now: u64) {
        if let Some(piece) = &self.running {
            let from = self.counted.max(piece.start);
            let seconds = now.min(piece.end).saturating_sub(from) as f64 / 1e9 * piece.pace;
            self.busy += seconds;
            self.busy_total += seconds;
        }
        self.counted = now;
    }

    /// Lets the steps that run end with the one that runs now, so that who came gets its turn. Whether the
    /// end has changed.
    pub(super) fn cut(&mut self, now: u64) -> bool {
        let Some(piece) = &mut self.running else { return false };
        let SimulatedWork::Steps { steps, .. } = &mut piece.work else { return false };
        let each = (piece.end - piece.start) / u64::from((*steps).max(1));
        if each == 0 || now <= piece.start {
            return false;
        }
        let done = now.saturating_sub(piece.start).div_ceil(each).max(1);
        let done = u32::try_from(done).unwrap_or(u32::MAX);
        if done >= *steps {
            return false;
        }
        *steps = done;
        piece.end = piece.start + each * u64::from(done);
        self.stamp = self.stamp.wrapping_add(1);
        true
    }

    /// Chooses what to do next, and how many seconds it takes at full pace.
    pub(super) fn choose(
        &mut self,
        times: &ModelTimes<'_>,
        models: &[SimulatedModel],
        requests: &[SimulatedRequest],
        seat: DevicePosition,
        fits: bool,
    ) -> Option<(SimulatedWork, f64)> {
        for _ in 0..3 {
            self.turn = (self.turn + 1) % 3;
            let found = match self.turn {
                0 => self.batch(times, models, requests, seat),
                1 => self.prompt(times, models, seat, fits),
                _ => self.steps(times, seat),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn batch(
        &mut self,
        times: &ModelTimes<'_>,
        models: &[SimulatedModel],
        requests: &[SimulatedRequest],
        seat: DevicePosition,
    ) -> Option<(SimulatedWork, f64)> {
        let rows_of = |request: u32| match requests[request as usize].kind {
            RequestKind::Infer { batch } => batch,
            RequestKind::Generate { .. } => 0,
        };
        let first = self.batches.pop_front()?;
        let model = requests[first as usize].model;
        let mut all = vec![first];
        let mut rows = rows_of(first);
        let most = models[model as usize].max_batch;
        while let Some(&next) = self.batches.front() {
            let more = rows.saturating_add(rows_of(next));
            if requests[next as usize].model != model || more > most {
                break;
            }
            rows = more;
            all.push(next);
            self.batches.pop_front();
        }
        let seconds = times.graph(seat.kind, model as usize, seat.unit, rows);
        Some((SimulatedWork::Batch(all), seconds))
    }

    /// A piece of the first prompt. One that has not begun waits while there are as many texts as may be,
    /// and while its keys and values do not fit.
    fn prompt(
        &mut self,
        times: &ModelTimes<'_>,
        models: &[SimulatedModel],
        seat: DevicePosition,
        fits: bool,
    ) -> Option<(SimulatedWork, f64)> {
        let text = self.prompts.front()?;
        let most = models[text.model as usize].max_batch.max(1) as usize;
        let begun = text.context > 0;
        if !begun && !self.texts.is_empty() && (!fits || self.texts.len() >= most) {
            return None;
        }
        let tokens = text.prompt.min(PIECE);
        let place = seat.of_model(text.model as usize);
        let seconds = times.prefill(place, f64::from(tokens), f64::from(text.context));
        Some((SimulatedWork::Prompt(tokens), seconds))
    }

    /// Steps of all texts of a model: one where something else waits, else as many as all texts take.
    fn steps(
        &mut self,
        times: &ModelTimes<'_>,
        seat: DevicePosition,
    ) -> Option<(SimulatedWork, f64)> {
        let from = self.next_model;
        let later = |text: &&GeneratingText| (text.model < from, text.model);
        let model = self.texts.iter().min_by_key(later)?.model;
        self.next_model = model.wrapping_add(1);
        let own = || self.texts.iter().filter(|text| text.model == model);
        let mut count = 0.0;
        let mut tokens = 0.0;
        let mut least = u32::MAX;
        for text in own() {
            count += 1.0;
            tokens += f64::from(text.context);
            least = least.min(text.left);
        }
        let alone = self.batches.is_empty()
            && self.prompts.is_empty()
            && self.texts.iter().all(|text| text.model == model);
        let steps = if alone { least.max(1) } else { 1 };
        // Keys and values grow by a token a step: on average there is half of that.
        let tokens = tokens + count * f64::from(steps) / 2.0;
        let each = times.step(seat.of_model(model as usize), count, tokens);
        Some((SimulatedWork::Steps { model, steps }, each * f64::from(steps)))
    }
}

//! Sums over runs and requests while a profile is made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_llm::observe::RequestRecord;
use galatea_providers::cpu;
use galatea_runtime::{ArithmeticUnit, ArithmeticWork, PartRun};
use galatea_serving::trace::{
    COMPUTE_START, QUEUE_START, REQUEST_END, REQUEST_START, TraceEntry, TraceEvent,
};
use galatea_tensor::OrderedMap;

use super::occupied::CoveredTime;
use super::spread::TimeSpread;

/// The provider whose devices tell of their own runs.
pub(super) const GPU: &str = "gpu";

/// A unit, or a device of one that has its own clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ProfilePlace {
    /// A provider, by the host's clock.
    Provider(&'static str),
    /// A GPU, by its own clock.
    #[cfg_attr(
        not(any(target_os = "macos", feature = "gpu")),
        allow(dead_code, reason = "only a program with GPUs makes one")
    )]
    Device(usize),
}

/// Activity of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitTally {
    pub(super) runs: u64,
    pub(super) busy: CoveredTime,
    pub(super) work: ArithmeticWork,
}

/// An operator and what ran it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProfiledOperator {
    pub(super) op: String,
    pub(super) kernel: String,
    pub(super) place: ProfilePlace,
    /// Kind of instructions that computed it.
    pub(super) unit: ArithmeticUnit,
    /// True if its times are shares of longer ones, as a framework's plan has them.
    pub(super) estimated: bool,
}

/// All starts of an operator.
#[derive(Clone, Debug, Default)]
pub(super) struct OperatorTally {
    pub(super) times: TimeSpread,
    pub(super) work: ArithmeticWork,
}

/// Activity of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelTally {
    /// Partitions that were run.
    pub(super) runs: u64,
    pub(super) operators: HashMap<ProfiledOperator, OperatorTally>,
    /// Requests from their begin to their end.
    pub(super) requests: TimeSpread,
    /// Their time in the queue.
    pub(super) queue: TimeSpread,
    /// Tokens of prompts and of answers.
    pub(super) tokens: [u64; 2],
}

/// Starts of kernels by their names, and their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Kernels of GPUs, timed by their own clocks.
    pub gpu: Vec<(String, (u64, Duration))>,
    /// Kernels of the CPU.
    pub processor: Vec<(String, (u64, Duration))>,
    /// Operators of Core ML. Their times are estimates: shares of measured predictions by the weights of plans.
    pub estimated: Vec<(String, (u64, Duration))>,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(super) struct ProfileSums {
    pub(super) units: OrderedMap<ProfilePlace, UnitTally>,
    pub(super) models: OrderedMap<Arc<str>, ModelTally>,
}

impl ProfileSums {
    fn unit(&mut self, place: ProfilePlace, begin: Instant, time: Duration, work: ArithmeticWork) {
        let unit = self.units.entry(place).or_default();
        unit.runs += 1;
        unit.work = unit.work.plus(work);
        unit.busy.add(begin, time);
    }

    fn model(&mut self, name: &Arc<str>) -> &mut ModelTally {
        self.models.entry(Arc::clone(name)).or_default()
    }

    /// A partition that a session ran.
    pub(super) fn part(&mut self, run: &PartRun) {
        let work = run
            .rows
            .iter()
            .map(|row| row.work)
            .fold(ArithmeticWork::default(), ArithmeticWork::plus);
        let place = ProfilePlace::Provider(run.provider);
        self.unit(place.clone(), run.begin, run.time, work);
        let model = self.model(&run.model);
        model.runs += 1;
        for row in &run.rows {
            let operator = ProfiledOperator {
                op: row.op.clone(),
                kernel: row.kernel.clone(),
                place: ProfilePlace::Provider(row.provider),
                unit: row.unit,
                estimated: row.estimated,
            };
            model.operator(operator, row.time, row.work);
        }
    }

    /// A run of a GPU.
    #[cfg(any(target_os = "macos", feature = "gpu"))]
    pub(super) fn device(&mut self, run: &galatea_gpu::RunRecord) {
        let work = run
            .kernels
            .iter()
            .map(|kernel| kernel.work)
            .fold(ArithmeticWork::default(), ArithmeticWork::plus);
        let place = ProfilePlace::Device(run.device);
        self.unit(place.clone(), run.begin, run.time, work);
        let model = self.model(&run.model.as_str().into());
        for (label, kernel) in run.labels.iter().zip(&run.kernels) {
            let operator = ProfiledOperator {
                op: label.op.clone(),
                kernel: label.kernel.to_string(),
                place: place.clone(),
                unit: label.unit,
                estimated: false,
            };
            model.operator(operator, kernel.time, kernel.work);
        }
    }

    /// A request that was traced, with what it caused.
    pub(super) fn request(&mut self, entries: &[TraceEntry], wanted: impl Fn(&str) -> bool) {
        let mut stamps: HashMap<(u64, &str), u64> = HashMap::new();
        for entry in entries {
            if let TraceEvent::Stamp { name, ns } = &entry.event {
                stamps.entry((entry.trace, name)).or_insert(*ns);
            }
        }
        for entry in entries {
            let TraceEvent::Began { model, .. } = &entry.event else { continue };
            if !wanted(model) {
                continue;
            }
            let span = |from: &str, to: &str| {
                let at = |name: &str| stamps.get(&(entry.trace, name)).copied();
                Some(Duration::from_nanos(at(to)?.saturating_sub(at(from)?)))
            };
            let tally = self.model(&model.as_str().into());
            span(REQUEST_START, REQUEST_END).into_iter().for_each(|time| tally.requests.add(time));
            span(QUEUE_START, COMPUTE_START).into_iter().for_each(|time| tally.queue.add(time));
        }
    }

    /// A request that an engine has done with.
    pub(super) fn generation(&mut self, model: &Arc<str>, request: &RequestRecord) {
        let since = |end: Instant| end.saturating_duration_since(request.submitted);
        let tally = self.model(model);
        tally.requests.add(since(request.end));
        request.admitted.into_iter().for_each(|from| tally.queue.add(since(from)));
        let found = [request.prompt_tokens, request.completion_tokens];
        for (sum, found) in tally.tokens.iter_mut().zip(found) {
            *sum = sum.saturating_add(found as u64);
        }
    }

    /// Returns how often each kernel was started, and its time.
    pub(super) fn kernels(&self) -> KernelCounts {
        let of = |wanted: fn(&ProfiledOperator) -> bool| {
            let mut all: OrderedMap<String, (u64, Duration)> = OrderedMap::new();
            for (operator, tally) in self.models.values().flat_map(|model| &model.operators) {
                if wanted(operator) {
                    let sums = all.entry(operator.kernel.clone()).or_default();
                    sums.0 += tally.times.count();
                    sums.1 += tally.times.sum();
                }
            }
            all.into_iter().collect()
        };
        KernelCounts {
            gpu: of(|operator| matches!(operator.place, ProfilePlace::Device(_))),
            processor: of(|operator| operator.place == ProfilePlace::Provider(cpu::NAME)),
            estimated: of(|operator| operator.estimated),
        }
    }
}

impl ModelTally {
    fn operator(&mut self, operator: ProfiledOperator, time: Duration, work: ArithmeticWork) {
        let tally = self.operators.entry(operator).or_default();
        tally.times.add(time);
        tally.work = tally.work.plus(work);
    }
}

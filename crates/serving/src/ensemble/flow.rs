//! One request on its way through an ensemble, as a state machine: which steps run when, with what, and what the
//! client gets. It knows no model, thread, lock or clock.
//!
//! The steps of a request run in *iterations*. The request itself is the first one; every answer of a decoupled step
//! starts another, in which the steps behind it run once each. An iteration knows the tensors that were written in it,
//! and ends when nothing runs in it any more.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_tensor::{OrderedMap, OrderedSet};

use super::graph::{FlowGraph, IterationLabel};

/// An execution of one step in one iteration.
pub type RunId = u64;

/// Wishes of the machine, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEffect<T, E> {
    /// Run a step; its answers come back by [`EnsembleFlow::answer`] and [`EnsembleFlow::fail`].
    Start {
        /// Name of this execution.
        run: RunId,
        /// Step.
        step: usize,
        /// Values by position among the step's inputs; those that are missing are left out.
        inputs: Vec<(usize, T)>,
    },
    /// Give the client a response with these tensors, in the order of the request.
    Respond(Vec<(usize, T)>),
    /// Nothing more comes.
    End(Result<(), FlowFailure<E>>),
}

/// Why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowFailure<E> {
    /// A step failed.
    Step(E),
    /// No step can run any more, and no output was made.
    Deadlock,
}

#[derive(Debug)]
enum FlowSlot<T> {
    Value(T),
    /// An input that the client leaves out, or an output that its step did not give: steps run without it, and say so
    /// themselves if they cannot.
    Missing,
}

#[derive(Debug)]
struct FlowIteration<T> {
    label: IterationLabel,
    tensors: OrderedMap<usize, FlowSlot<T>>,
    started: OrderedSet<usize>,
    running: usize,
    /// Its place among the responses, as long as it owes one.
    owes: Option<u64>,
}

#[derive(Debug)]
struct FlowRun {
    step: usize,
    iteration: u64,
    answers: u64,
}

/// One request. `T` is a value on its way, `E` an error of a step.
#[derive(Debug)]
pub struct EnsembleFlow<T, E> {
    graph: Arc<FlowGraph>,
    wanted: Vec<usize>,
    needed: Vec<bool>,
    iterations: HashMap<u64, FlowIteration<T>>,
    next_iteration: u64,
    runs: OrderedMap<RunId, FlowRun>,
    next_run: RunId,
    /// Responses that wait for earlier ones; `None` where an iteration makes none.
    held: OrderedMap<u64, Option<Vec<(usize, T)>>>,
    next_owed: u64,
    next_given: u64,
    given: u64,
    failure: Option<E>,
    ended: bool,
}

impl<T: Clone, E> EnsembleFlow<T, E> {
    /// A request for some of the ensemble's outputs, or for all of them if `wanted` is empty.
    #[must_use]
    pub fn new(graph: &Arc<FlowGraph>, wanted: &[usize]) -> Self {
        let all = if wanted.is_empty() { &graph.outputs } else { wanted };
        let mut wanted: Vec<usize> = Vec::with_capacity(all.len());
        for &tensor in all.iter().filter(|tensor| graph.outputs.contains(tensor)) {
            if !wanted.contains(&tensor) {
                wanted.push(tensor);
            }
        }
        Self {
            needed: graph.needed(&wanted),
            graph: Arc::clone(graph),
            wanted,
            iterations: HashMap::new(),
            next_iteration: 0,
            runs: OrderedMap::new(),
            next_run: 0,
            held: OrderedMap::new(),
            next_owed: 0,
            next_given: 0,
            given: 0,
            failure: None,
            ended: false,
        }
    }

    /// Tensors that the client wants.
    #[must_use]
    pub fn wanted(&self) -> &[usize] {
        &self.wanted
    }

    /// Begins with the inputs of the request; those that it leaves out are missing.
    pub fn start(&mut self, inputs: Vec<(usize, T)>) -> Vec<FlowEffect<T, E>> {
        let missing = self.graph.inputs.iter().map(|&tensor| (tensor, FlowSlot::Missing));
        let mut tensors: OrderedMap<usize, FlowSlot<T>> = missing.collect();
        tensors.extend(inputs.into_iter().map(|(tensor, value)| (tensor, FlowSlot::Value(value))));
        let mut effects = Vec::new();
        self.iterate(0, tensors, &mut effects);
        self.end_if_idle(&mut effects);
        effects
    }

    /// Whether a step that was to be started still should be; if not, it counts as over.
    pub fn may_start(&mut self, run: RunId) -> Result<(), Vec<FlowEffect<T, E>>> {
        if self.failure.is_none() { Ok(()) } else { Err(self.answer(run, None, true)) }
    }

    /// A step has answered: with values of its outputs, or with nothing but that it is over.
    pub fn answer(
        &mut self,
        run: RunId,
        outputs: Option<Vec<(usize, T)>>,
        is_final: bool,
    ) -> Vec<FlowEffect<T, E>> {
        let mut effects = Vec::new();
        if let Some(outputs) = outputs {
            self.take(run, outputs, &mut effects);
        }
        if is_final {
            self.finish(run, &mut effects);
        }
        effects
    }

    /// A step has answered with an error, which is that of the request if it is the first. No further step starts.
    pub fn fail(&mut self, run: RunId, error: E, is_final: bool) -> Vec<FlowEffect<T, E>> {
        if self.failure.is_none() && self.runs.contains_key(&run) {
            self.failure = Some(error);
            self.held.clear();
            // What was written is of no more use.
            self.iterations.values_mut().for_each(|iteration| iteration.tensors.clear());
        }
        self.answer(run, None, is_final)
    }

    fn take(&mut self, id: RunId, outputs: Vec<(usize, T)>, effects: &mut Vec<FlowEffect<T, E>>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.answers += 1;
        let first = run.answers == 1;
        let step = run.step;
        let iteration = run.iteration;
        if self.failure.is_some() {
            return;
        }
        let Some(decoupled) = self.graph.steps.get(step).map(|step| step.decoupled) else { return };
        let mut outputs: HashMap<usize, T> = outputs.into_iter().collect();
        let written: OrderedMap<usize, FlowSlot<T>> = self
            .outputs_of(step)
            .map(|tensor| {
                (tensor, outputs.remove(&tensor).map_or(FlowSlot::Missing, FlowSlot::Value))
            })
            .collect();
        if decoupled {
            self.iterate(step + 1, written, effects);
        } else if first {
            self.write(iteration, written, effects);
        }
    }

    fn finish(&mut self, id: RunId, effects: &mut Vec<FlowEffect<T, E>>) {
        let Some(run) = self.runs.remove(&id) else { return };
        if let Some(iteration) = self.iterations.get_mut(&run.iteration) {
            iteration.running -= 1;
        }
        self.retire(run.iteration, effects);
        self.end_if_idle(effects);
    }

    fn outputs_of(&self, step: usize) -> impl Iterator<Item = usize> + use<T, E> {
        let graph = Arc::clone(&self.graph);
        let count = graph.steps.get(step).map_or(0, |step| step.outputs.len());
        (0..count).filter_map(move |at| graph.steps.get(step)?.outputs.get(at).copied())
    }

    fn iterate(
        &mut self,
        label: IterationLabel,
        tensors: OrderedMap<usize, FlowSlot<T>>,
        effects: &mut Vec<FlowEffect<T, E>>,
    ) {
        let id = self.next_iteration;
        self.next_iteration += 1;
        let owes = (label == self.graph.output_label).then_some(self.next_owed);
        self.next_owed += u64::from(owes.is_some());
        let iteration = FlowIteration {
            label,
            tensors: OrderedMap::new(),
            started: OrderedSet::new(),
            running: 0,
            owes,
        };
        self.iterations.insert(id, iteration);
        self.write(id, tensors, effects);
        self.retire(id, effects);
    }

    /// Puts tensors into an iteration and starts what can run then.
    fn write(
        &mut self,
        id: u64,
        tensors: OrderedMap<usize, FlowSlot<T>>,
        effects: &mut Vec<FlowEffect<T, E>>,
    ) {
        let Some(iteration) = self.iterations.get_mut(&id) else { return };
        iteration.tensors.extend(tensors);
        let graph = &self.graph;
        for (number, step) in graph.steps.iter().enumerate() {
            let here = graph.step_labels.get(number) == Some(&iteration.label)
                && self.needed.get(number) == Some(&true)
                && step.inputs.iter().all(|input| iteration.tensors.contains_key(input));
            if !here || !iteration.started.insert(number) {
                continue;
            }
            let value = |(at, tensor): (usize, &usize)| match iteration.tensors.get(tensor) {
                Some(FlowSlot::Value(value)) => Some((at, value.clone())),
                _ => None,
            };
            let inputs = step.inputs.iter().enumerate().filter_map(value).collect();
            let run = self.next_run;
            self.next_run += 1;
            self.runs.insert(run, FlowRun { step: number, iteration: id, answers: 0 });
            iteration.running += 1;
            effects.push(FlowEffect::Start { run, step: number, inputs });
        }
        let complete = self.wanted.iter().all(|tensor| iteration.tensors.contains_key(tensor));
        if let Some(place) = iteration.owes.filter(|_| complete) {
            iteration.owes = None;
            let value = |tensor: &usize| match iteration.tensors.get(tensor) {
                Some(FlowSlot::Value(value)) => Some((*tensor, value.clone())),
                _ => None,
            };
            let values = self.wanted.iter().filter_map(value).collect();
            self.give(place, Some(values), effects);
        }
    }

    /// Responses leave in the order in which their iterations began.
    fn give(
        &mut self,
        place: u64,
        response: Option<Vec<(usize, T)>>,
        effects: &mut Vec<FlowEffect<T, E>>,
    ) {
        self.held.insert(place, response);
        while let Some(next) = self.held.remove(&self.next_given) {
            self.next_given += 1;
            if let Some(response) = next {
                self.given += 1;
                effects.push(FlowEffect::Respond(response));
            }
        }
    }

    /// Forgets an iteration in which nothing runs.
    fn retire(&mut self, id: u64, effects: &mut Vec<FlowEffect<T, E>>) {
        if self.iterations.get(&id).is_none_or(|iteration| iteration.running > 0) {
            return;
        }
        let owes = self.iterations.remove(&id).and_then(|iteration| iteration.owes);
        if let Some(place) = owes.filter(|_| self.failure.is_none()) {
            self.give(place, None, effects);
        }
    }

    fn end_if_idle(&mut self, effects: &mut Vec<FlowEffect<T, E>>) {
        if !self.runs.is_empty() || std::mem::replace(&mut self.ended, true) {
            return;
        }
        let result = match self.failure.take() {
            Some(error) => Err(FlowFailure::Step(error)),
            None if self.graph.output_label == 0 && self.given == 0 => Err(FlowFailure::Deadlock),
            None => Ok(()),
        };
        effects.push(FlowEffect::End(result));
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;

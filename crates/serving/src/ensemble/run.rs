//! Runs the steps of requests: hands them to the models and takes the answers, on whichever thread brings them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::flow::{EnsembleFlow, FlowEffect, FlowFailure, RunId};
use super::gate::{GateEntry, GatePlace, StepGate};
use super::plan::EnsemblePlan;
use super::value::{SequenceTags, ShapedValue, fit, reshape};
use crate::cancel::CancelToken;
use crate::driver::is_inside;
use crate::error::ServingError;
use crate::payload::{ActiveRequest, ExecutionContext, now_ms};
use crate::repository::ModelId;
use crate::request::{
    InferenceRequest, InferenceResponse, InputData, InputTensor, OutputTensor, ParameterValue,
    ResponseSink, SinkAnswer,
};
use crate::statistics::{FailureReason, RequestOutcome, StageTimes};

/// How long a step at its limit may go without progress before it holds nobody back any more.
const STALLED: Duration = Duration::from_secs(30);

/// Takes the requests of steps.
pub trait StepServer: Send + Sync {
    /// Takes a request for a version of a model, -1 for the latest.
    ///
    /// # Errors
    /// When the model is not ready or refuses the request; the sink is not called then.
    fn submit(
        &self,
        model: &ModelId,
        version: i64,
        request: InferenceRequest,
        sink: ResponseSink,
    ) -> Result<(), ServingError>;

    /// Adds the numbers of the loads that answer for this version now: other numbers, other answers.
    fn loads(&self, model: &ModelId, version: i64, into: &mut Vec<u64>);
}

/// An ensemble that serves.
pub struct ServedEnsemble {
    plan: EnsemblePlan,
    server: Arc<dyn StepServer>,
    context: Arc<ExecutionContext>,
    gate: Mutex<StepGate<StepLaunch>>,
    /// An execution was let in, or a client gave up.
    moved: Condvar,
    open: Mutex<usize>,
    idle: Condvar,
}

impl fmt::Debug for ServedEnsemble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ensemble").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

/// A step that is to run.
struct StepLaunch {
    request: Arc<EnsembleRequest>,
    run: RunId,
    step: usize,
    inputs: Vec<(usize, ShapedValue)>,
}

/// Part of an answer that a client gets at once.
struct EarlyResponse {
    outputs: Vec<OutputTensor>,
    parameters: Vec<(String, ParameterValue)>,
}

/// Something for the client.
enum ClientDelivery {
    Response(EarlyResponse),
    Error(ServingError),
    /// The last one, with the response that comes with it.
    End(Result<(), ServingError>, Option<EarlyResponse>),
}

struct EnsembleState {
    flow: EnsembleFlow<ShapedValue, ServingError>,
    deliveries: VecDeque<ClientDelivery>,
    /// Away while a thread delivers, so that only one does.
    client: Option<ActiveRequest>,
    /// The response of an ensemble that has only one, until all its steps are over.
    only: Option<EarlyResponse>,
    /// Why there is no such response, although the steps succeeded.
    fault: Option<ServingError>,
}

/// A request on its way.
struct EnsembleRequest {
    ensemble: Arc<ServedEnsemble>,
    /// Common data of the requests of steps: all but inputs and names.
    template: InferenceRequest,
    stages: Arc<StageTimes>,
    state: Mutex<EnsembleState>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServedEnsemble {
    /// An ensemble whose steps go to `server`.
    #[must_use]
    pub fn new(
        plan: EnsemblePlan,
        server: Arc<dyn StepServer>,
        context: &Arc<ExecutionContext>,
    ) -> Arc<Self> {
        let gate = Mutex::new(StepGate::new(plan.steps.len(), plan.max_inflight));
        let context = Arc::clone(context);
        let moved = Condvar::new();
        let open = Mutex::new(0);
        let idle = Condvar::new();
        Arc::new(Self { plan, server, context, gate, moved, open, idle })
    }

    /// The checked configuration.
    #[must_use]
    pub fn plan(&self) -> &EnsemblePlan {
        &self.plan
    }

    /// Runs a checked request; the sink gets the answers.
    pub fn start(self: &Arc<Self>, request: InferenceRequest, batch_size: u64, sink: ResponseSink) {
        *lock(&self.open) += 1;
        let mut client = ActiveRequest::new(request, batch_size, Arc::clone(&self.context), sink);
        let template = InferenceRequest {
            model_name: String::new(),
            model_version: String::new(),
            inputs: Vec::new(),
            requested_outputs: Vec::new(),
            stages: None,
            ..client.request.clone()
        };
        self.wake_at_cancellation(&template);
        let tags = SequenceTags::of(&template);
        let given = std::mem::take(&mut client.request.inputs);
        let inputs = given.into_iter().filter_map(|input| {
            let end = self.plan.inputs.iter().find(|end| end.name == input.name)?;
            let shape = reshape(&input.shape, &end.dims, &end.inner, self.plan.batching);
            let value = ShapedValue {
                datatype: input.datatype,
                data: shaped(input.data, &input.shape, &shape)?,
                shape,
                tags: tags.clone(),
            };
            Some((end.tensor, value))
        });
        let inputs = inputs.collect();
        let request = Arc::new(EnsembleRequest {
            ensemble: Arc::clone(self),
            template,
            stages: Arc::default(),
            state: Mutex::new(EnsembleState {
                flow: EnsembleFlow::new(&self.plan.graph, &self.wanted(&client.request)),
                deliveries: VecDeque::new(),
                client: Some(client),
                only: None,
                fault: None,
            }),
        });
        request.advance(|flow| flow.start(inputs));
    }

    /// Adds the numbers of the loads that the steps run on now.
    pub fn loads(&self, into: &mut Vec<u64>) {
        let steps = &self.plan.steps;
        steps.iter().for_each(|step| self.server.loads(&step.model, step.version, into));
    }

    /// A cancelled request holds no step back any more.
    fn wake_at_cancellation(self: &Arc<Self>, template: &InferenceRequest) {
        if self.plan.is_decoupled() && lock(&self.gate).is_limited() {
            let this = Arc::downgrade(self);
            template.cancel.on_cancel(move || {
                if let Some(ensemble) = this.upgrade() {
                    drop(lock(&ensemble.gate));
                    ensemble.moved.notify_all();
                }
            });
        }
    }

    /// An execution of a step is over; gives the one that takes its place.
    fn leave(&self, step: usize) -> Option<StepLaunch> {
        let next = lock(&self.gate).leave(step);
        if next.is_some() {
            self.moved.notify_all();
        }
        next
    }

    /// Waits until an execution was let in, which holds back whoever brought it: the model that it reads from. A step
    /// that nobody gets into for long may itself need the thread that waits here, which then goes on.
    fn hold_back(&self, place: GatePlace, cancel: &CancelToken) {
        let mut gate = lock(&self.gate);
        while let Some(before) = gate.before(place).filter(|_| !cancel.is_cancelled()) {
            let still = |gate: &mut StepGate<StepLaunch>| {
                gate.before(place) == Some(before) && !cancel.is_cancelled()
            };
            let waited = self.moved.wait_timeout_while(gate, STALLED, still);
            let (locked, result) = waited.unwrap_or_else(PoisonError::into_inner);
            gate = locked;
            if result.timed_out() {
                tracing::warn!(
                    ensemble = %self.plan.name,
                    "a step at its limit of requests made no progress; its producer is held back no longer"
                );
                return;
            }
        }
    }

    /// Waits until every request that was taken is answered.
    pub fn drain(&self) {
        let mut open = lock(&self.open);
        while *open > 0 {
            open = self.idle.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The outputs that a request wants, in the order in which Triton gives them: the last of the configuration first.
    fn wanted(&self, request: &InferenceRequest) -> Vec<usize> {
        let asked = &request.requested_outputs;
        let ends = self.plan.outputs.iter().rev();
        let ends = ends.filter(|end| asked.is_empty() || asked.contains(&end.name));
        ends.map(|end| end.tensor).collect()
    }

    fn nested(&self, error: ServingError) -> ServingError {
        let message = format!("in ensemble '{}', {}", self.plan.name, error.message);
        ServingError { message, ..error }
    }

    fn closed(&self) {
        let mut open = lock(&self.open);
        *open = open.saturating_sub(1);
        if *open == 0 {
            self.idle.notify_all();
        }
    }
}

/// `None` if a tensor cannot have the shape; then the request lacks it, which its step reports.
fn shaped(data: InputData, from: &[i64], to: &[i64]) -> Option<InputData> {
    match data {
        InputData::Tensor(tensor) if from != to => {
            let sizes: Option<Vec<usize>> =
                to.iter().map(|&dim| usize::try_from(dim).ok()).collect();
            Some(InputData::Tensor(tensor.reshape(&sizes?).ok()?))
        }
        data => Some(data),
    }
}

impl EnsembleRequest {
    /// Moves the flow on and does what it wants: deliveries first, because steps may run on this very thread.
    fn advance(
        self: &Arc<Self>,
        change: impl FnOnce(
            &mut EnsembleFlow<ShapedValue, ServingError>,
        ) -> Vec<FlowEffect<ShapedValue, ServingError>>,
    ) -> Vec<GatePlace> {
        let mut launches = Vec::new();
        {
            let mut state = lock(&self.state);
            let mut responded = false;
            for effect in change(&mut state.flow) {
                match effect {
                    FlowEffect::Start { run, step, inputs } => {
                        launches.push(StepLaunch { request: Arc::clone(self), run, step, inputs });
                    }
                    FlowEffect::Respond(values) => {
                        self.tell_missing(state.flow.wanted(), &values);
                        let delivery = match self.response(values) {
                            Ok(response) => ClientDelivery::Response(response),
                            Err(error) => ClientDelivery::Error(error),
                        };
                        state.deliveries.push_back(delivery);
                        responded = true;
                    }
                    FlowEffect::End(result) => {
                        let result = result.map_err(|stop| self.stop_error(stop));
                        // As in Triton, a response that no step follows is the last, and says so itself.
                        let newest = if responded && result.is_ok() {
                            state.deliveries.pop_back()
                        } else {
                            None
                        };
                        let last = match newest {
                            Some(ClientDelivery::Response(response)) => Some(response),
                            other => {
                                state.deliveries.extend(other);
                                None
                            }
                        };
                        state.deliveries.push_back(ClientDelivery::End(result, last));
                    }
                }
            }
        }
        self.deliver();
        let mut places = Vec::new();
        for launch in launches {
            // A model that waits for this request may be what holds the step's place.
            if !self.template.callers.is_none() {
                launch.go();
                continue;
            }
            let entry = lock(&self.ensemble.gate).enter(launch.step, launch);
            match entry {
                GateEntry::Run(launch) => launch.go(),
                GateEntry::Wait(place) => places.push(place),
            }
        }
        places
    }

    fn stop_error(&self, stop: FlowFailure<ServingError>) -> ServingError {
        match stop {
            FlowFailure::Step(error) => error,
            FlowFailure::Deadlock => self.ensemble.nested(ServingError::invalid_arg(
                "unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
            )),
        }
    }

    /// Names in the log the outputs that are wanted and that no model has made.
    fn tell_missing(&self, wanted: &[usize], values: &[(usize, ShapedValue)]) {
        if values.len() == wanted.len() {
            return;
        }
        let made = |tensor: usize| values.iter().any(|(known, _)| *known == tensor);
        for end in &self.ensemble.plan.outputs {
            if wanted.contains(&end.tensor) && !made(end.tensor) {
                tracing::debug!("Composing models did not output tensor {}", end.name);
            }
        }
    }

    fn response(&self, values: Vec<(usize, ShapedValue)>) -> Result<EarlyResponse, ServingError> {
        let plan = &self.ensemble.plan;
        let mut outputs = Vec::with_capacity(values.len());
        let mut parameters = Vec::with_capacity(3 * values.len());
        for (tensor, value) in values {
            let Some(end) = plan.outputs.iter().find(|end| end.tensor == tensor) else { continue };
            let shape = fit(&value.shape, &end.inner, plan.batching);
            let shape = reshape(&shape, &end.inner, &end.dims, plan.batching);
            let tensor = value.tensor(&shape).map_err(|error| self.ensemble.nested(error))?;
            outputs.push(OutputTensor { name: end.name.clone(), tensor });
            parameters.extend(value.tags.parameters());
        }
        Ok(EarlyResponse { outputs, parameters })
    }

    /// Hands deliveries to the client in order; one thread does so at a time.
    fn deliver(&self) {
        loop {
            let mut state = lock(&self.state);
            if state.deliveries.is_empty() {
                return;
            }
            let Some(mut client) = state.client.take() else { return };
            let Some(delivery) = state.deliveries.pop_front() else { return };
            let one = !self.ensemble.plan.is_decoupled();
            match delivery {
                ClientDelivery::Response(response) if one => state.only = Some(response),
                ClientDelivery::Response(EarlyResponse { outputs, parameters }) => {
                    drop(state);
                    client.respond_with(Ok(outputs), parameters);
                    state = lock(&self.state);
                }
                ClientDelivery::Error(error) if one => state.fault = Some(error),
                ClientDelivery::Error(error) => {
                    drop(state);
                    client.respond(Err(error));
                    state = lock(&self.state);
                }
                ClientDelivery::End(result, last) => {
                    let only = last.or_else(|| state.only.take());
                    let result = state.fault.take().map_or(result, Err);
                    drop(state);
                    self.end(client, only, result);
                    return;
                }
            }
            state.client = Some(client);
        }
    }

    fn end(
        &self,
        client: ActiveRequest,
        only: Option<EarlyResponse>,
        result: Result<(), ServingError>,
    ) {
        let context = &self.ensemble.context;
        if let Err(error) = result {
            // Triton counts the failure of the steps here, and that of the request.
            context.statistics.failure(FailureReason::Other, client.arrived.elapsed());
            client.fail(FailureReason::Other, error);
            return self.ensemble.closed();
        }
        let (queue, compute) = self.stages.sums();
        let outcome = RequestOutcome {
            filler: false,
            failure: None,
            batch_size: client.batch_size,
            queue,
            total: client.arrived.elapsed(),
            goal: None,
        };
        context.statistics.execution(compute, &[outcome], now_ms());
        if let Some(outer) = &client.request.stages {
            outer.add(queue, compute);
        }
        match only {
            Some(EarlyResponse { outputs, parameters }) => client.answer_with(outputs, parameters),
            None => client.finish(),
        }
        self.ensemble.closed();
    }

    fn answered(
        self: &Arc<Self>,
        run: RunId,
        step: usize,
        tags: &SequenceTags,
        answer: SinkAnswer,
    ) {
        let is_final = answer.is_final;
        match answer.result {
            Ok(response) => {
                let outputs = response.map(|response| self.outputs(step, tags, response));
                let places = self.advance(|flow| flow.answer(run, outputs, is_final));
                // A final answer frees its thread anyway; a thread that runs this for another must not rest here.
                if !is_final && !is_inside() {
                    let cancel = &self.template.cancel;
                    places.into_iter().for_each(|place| self.ensemble.hold_back(place, cancel));
                }
            }
            Err(error) => {
                let error = self.ensemble.nested(error);
                self.advance(|flow| flow.fail(run, error, is_final));
            }
        }
    }

    fn outputs(
        &self,
        step: usize,
        tags: &SequenceTags,
        response: InferenceResponse,
    ) -> Vec<(usize, ShapedValue)> {
        let tags = tags.clone().overridden(&response.parameters);
        let Some(step) = self.ensemble.plan.steps.get(step) else { return Vec::new() };
        let mut values = Vec::with_capacity(response.outputs.len());
        for output in response.outputs {
            let known = step.outputs.iter().find(|(name, _)| *name == output.name);
            let Some(&(_, tensor)) = known else { continue };
            let shape = output.tensor.shape().iter();
            let value = ShapedValue {
                datatype: output.tensor.dtype(),
                shape: shape.map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect(),
                data: InputData::Tensor(output.tensor),
                tags: tags.clone(),
            };
            values.push((tensor, value));
        }
        values
    }
}

impl StepLaunch {
    /// Runs the step, and those that wait for its place as far as they are over at once: a loop, because there may be
    /// any number of them.
    fn go(self) {
        let mut next = Some(self);
        while let Some(launch) = next.take() {
            let ensemble = Arc::clone(&launch.request.ensemble);
            let step = launch.step;
            let entered = launch.request.template.callers.is_none();
            if !launch.submit() && entered {
                next = ensemble.leave(step);
            }
        }
    }

    /// Whether the step runs; otherwise it is over already.
    fn submit(self) -> bool {
        let Self { request, run, step, inputs } = self;
        let ensemble = &request.ensemble;
        let over = |error: ServingError| {
            let error = ensemble.nested(error);
            request.advance(|flow| flow.fail(run, error, true));
            false
        };
        if request.template.cancel.is_cancelled() {
            return over(ServingError::cancelled("the request was cancelled"));
        }
        let mut stopped = None;
        request.advance(|flow| match flow.may_start(run) {
            Ok(()) => Vec::new(),
            Err(effects) => {
                stopped = Some(());
                effects
            }
        });
        if stopped.is_some() {
            return false;
        }
        let Some(plan) = ensemble.plan.steps.get(step) else { return false };
        let (inner, tags) = match request.of_step(plan, inputs) {
            Ok(made) => made,
            Err(error) => return over(error),
        };
        let back = Arc::clone(&request);
        let sink: ResponseSink = Box::new(move |answer: SinkAnswer| {
            let is_final = answer.is_final;
            back.answered(run, step, &tags, answer);
            if is_final && back.template.callers.is_none() {
                let waiting = back.ensemble.leave(step);
                if let Some(launch) = waiting {
                    launch.go();
                }
            }
        });
        match ensemble.server.submit(&plan.model, plan.version, inner, sink) {
            Ok(()) => true,
            Err(error) => over(error),
        }
    }
}

impl EnsembleRequest {
    fn of_step(
        &self,
        plan: &super::plan::EnsembleStep,
        values: Vec<(usize, ShapedValue)>,
    ) -> Result<(InferenceRequest, SequenceTags), ServingError> {
        let own = SequenceTags::of(&self.template);
        let changed = values.iter().map(|(_, value)| &value.tags).find(|tags| **tags != own);
        let tags = changed.cloned().unwrap_or(own);
        let mut inputs = Vec::with_capacity(values.len());
        for (at, value) in values {
            let Some(input) = plan.inputs.get(at) else { continue };
            let shape = fit(&value.shape, &input.dims, plan.batching);
            inputs.push(InputTensor {
                name: input.name.clone(),
                datatype: value.datatype,
                data: value.data_shaped(&shape)?,
                shape,
            });
        }
        let request = InferenceRequest {
            inputs,
            requested_outputs: plan.outputs.iter().map(|(name, _)| name.clone()).collect(),
            correlation: tags.correlation.clone(),
            sequence_start: tags.start,
            sequence_end: tags.end,
            trace: self.template.trace.as_ref().map(|trace| trace.child()),
            stages: Some(Arc::clone(&self.stages)),
            ..self.template.clone()
        };
        Ok((request, tags))
    }
}

//! A batch on its way through an instance, and the guarantee that each of its requests is answered exactly once.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use galatea_runtime::{IntervalKind, IntervalSource, RecordedInterval};
use galatea_tensor::{InterruptSource, Tensor};

use crate::cancel::CancelToken;
use crate::config::ModelConfig;
use crate::error::{ErrorCode, ServingError};
pub use crate::model_answer::ModelAnswer;
use crate::request::{
    InferenceRequest, InferenceResponse, OutputTensor, ParameterValue, ResponseSink, SinkAnswer,
};
use crate::sequence::SequenceContext;
use crate::statistics::{
    ComputeTimes, FailureReason, RequestOutcome, ResponseKind, StatisticsRecorder,
};
use crate::trace;

/// Tensors by name.
pub type NamedTensors = Vec<(String, Tensor)>;

/// State that instances and requests of one model version share.
#[derive(Debug)]
pub struct ExecutionContext {
    /// Model.
    pub name: String,
    /// Version.
    pub version: String,
    /// Completed configuration.
    pub config: Arc<ModelConfig>,
    /// Counters.
    pub statistics: Arc<StatisticsRecorder>,
    /// Recorder of requests and batches as they begin and end.
    pub(crate) intervals: IntervalSource,
    /// Requests in the scheduler.
    pub(crate) pending: AtomicU64,
    /// Requests accepted and not yet answered.
    unanswered: AtomicUsize,
    /// Requests accepted so far.
    accepted: AtomicU64,
    /// Somebody waits for their end.
    awaited: AtomicBool,
    none_left: (Mutex<()>, Condvar),
}

/// Counters and recorders of the requests of a version.
#[derive(Debug, Default)]
pub(crate) struct ContextObservers {
    /// Counters, which may be those of an earlier load.
    pub(crate) statistics: Arc<StatisticsRecorder>,
    /// Recorder of begins and ends.
    pub(crate) intervals: IntervalSource,
}

impl ExecutionContext {
    /// Counters at zero.
    #[must_use]
    pub fn new(name: &str, version: i64, config: Arc<ModelConfig>) -> Arc<Self> {
        let observed = ContextObservers::default();
        Self::observed(name, version, config, observed)
    }

    /// Counters that exist, and a recorder.
    pub(crate) fn observed(
        name: &str,
        version: i64,
        config: Arc<ModelConfig>,
        observers: ContextObservers,
    ) -> Arc<Self> {
        let ContextObservers { statistics, intervals } = observers;
        Arc::new(Self {
            name: name.to_owned(),
            version: version.to_string(),
            config,
            statistics,
            intervals,
            pending: AtomicU64::new(0),
            unanswered: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            none_left: (Mutex::new(()), Condvar::new()),
        })
    }

    /// Requests accepted and not yet answered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::SeqCst)
    }

    /// Requests accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn took(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.unanswered.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn answered(&self) {
        // Whoever waits says so before it looks, so one of the two sees the other.
        if self.unanswered.fetch_sub(1, Ordering::SeqCst) == 1
            && self.awaited.load(Ordering::SeqCst)
        {
            drop(self.none_left.0.lock().unwrap_or_else(PoisonError::into_inner));
            self.none_left.1.notify_all();
        }
    }

    /// Waits until every request that was accepted is answered, also those that were taken out of their batch. Nobody
    /// accepts any more.
    pub(crate) fn wait_answered(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        let mut locked = self.none_left.0.lock().unwrap_or_else(PoisonError::into_inner);
        while self.unanswered() > 0 {
            locked = self.none_left.1.wait(locked).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// An accepted request. Dropping it unanswered answers INTERNAL.
pub struct ActiveRequest {
    /// The request; its inputs are checked.
    pub request: InferenceRequest,
    /// Batch items; at least 1.
    pub batch_size: u64,
    pub(crate) arrived: Instant,
    /// How soon after its arrival it is to be answered.
    pub(crate) goal: Option<Duration>,
    pub(crate) context: Arc<ExecutionContext>,
    /// Its place in a sequence, in models over sequences.
    pub sequence: Option<Box<SequenceContext>>,
    sink: Option<ResponseSink>,
    execution: Option<Arc<DetachedExecution>>,
    back: Option<WayBack>,
    responses: usize,
    /// Wait inside of the model, behind that in the queue.
    queue_time: Duration,
    iteration: u64,
    /// Lasts until the request is answered and let go.
    recorded: Option<RecordedInterval>,
}

/// Takes a request that has to run once more.
pub(crate) type WayBack = Box<dyn FnOnce(ActiveRequest) + Send>;

/// An execution whose requests are answered one by one, see [`BatchPayload::detach`].
struct DetachedExecution {
    context: Arc<ExecutionContext>,
    started: Instant,
    batch_size: u64,
    left: AtomicUsize,
    /// Whether any of the requests has run.
    ran: AtomicBool,
    /// Lasts until the last of them has left.
    _recorded: Option<RecordedInterval>,
}

impl DetachedExecution {
    /// Times of a request that has waited so long inside of the model.
    fn times(&self, end: Instant, queue_time: Duration) -> ComputeTimes {
        let infer = end.saturating_duration_since(self.started).saturating_sub(queue_time);
        ComputeTimes { infer, ..ComputeTimes::default() }
    }

    /// One of the requests has run and left.
    fn leave(&self, queue_time: Duration) {
        self.ran.store(true, Ordering::Release);
        self.leave_unrun(queue_time);
    }

    /// One of the requests has left; the last one counts the execution, if there was any.
    fn leave_unrun(&self, queue_time: Duration) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 && self.ran.load(Ordering::Acquire) {
            let times = self.times(Instant::now(), queue_time);
            self.context.statistics.batch(times, self.batch_size, now_ms());
        }
    }
}

impl ActiveRequest {
    pub(crate) fn new(
        request: InferenceRequest,
        batch_size: u64,
        context: Arc<ExecutionContext>,
        sink: ResponseSink,
    ) -> Self {
        context.took();
        let recorded = context.intervals.begin(IntervalKind::Request, &context.name);
        let mut active = Self::without_sink(request, batch_size, context);
        active.recorded = recorded;
        active.sink = Some(sink);
        if let Some(trace) = &active.request.trace {
            trace.begin(&active.context.name, &active.context.version, &active.request);
        }
        active
    }

    fn without_sink(
        request: InferenceRequest,
        batch_size: u64,
        context: Arc<ExecutionContext>,
    ) -> Self {
        Self {
            request,
            batch_size,
            arrived: Instant::now(),
            goal: None,
            context,
            sequence: None,
            sink: None,
            execution: None,
            back: None,
            responses: 0,
            queue_time: Duration::ZERO,
            iteration: 0,
            recorded: None,
        }
    }

    /// An item that fills a gap between sequences: it has no client and is not counted as a request.
    pub(crate) fn filler(request: InferenceRequest, context: Arc<ExecutionContext>) -> Self {
        Self::without_sink(request, 1, context)
    }

    /// Whether this item only fills a gap between sequences; its answer goes nowhere.
    #[must_use]
    pub fn is_filler(&self) -> bool {
        self.sequence.as_ref().is_some_and(|sequence| !sequence.step.ready)
    }

    /// Answers with outputs or an error, and consumes the request.
    pub(crate) fn answer(mut self, result: Result<Vec<OutputTensor>, ServingError>) {
        let result = result.map(|outputs| Some(self.response(outputs)));
        self.send_final(result);
    }

    /// When it is to be answered, where that is said.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.arrived.checked_add(self.goal?)
    }

    /// Whether the client has given up.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.request.cancel.is_cancelled()
    }

    /// Configuration of the model.
    #[must_use]
    pub fn config(&self) -> &Arc<ModelConfig> {
        &self.context.config
    }

    /// How often the request has run before, in models over iterative sequences.
    #[must_use]
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Outputs that the request asks for, in the order given.
    ///
    /// # Errors
    /// When an output is none of the model's, or has another type than the configuration says.
    pub fn wanted(
        &self,
        outputs: Vec<(String, Tensor)>,
    ) -> Result<Vec<OutputTensor>, ServingError> {
        let asked = &self.request.requested_outputs;
        let mut wanted = Vec::with_capacity(outputs.len());
        for (name, tensor) in outputs {
            let model = &self.context.name;
            let known = self.context.config.output.iter().find(|output| output.name == name);
            let Some(known) = known else {
                return Err(ServingError::internal(format!(
                    "unexpected inference output '{name}' for model '{model}'"
                )));
            };
            if crate::config::datatype(known.data_type) != Some(tensor.dtype()) {
                return Err(ServingError::internal(format!(
                    "output '{name}' of model '{model}' has the type {}, which is not that of the configuration",
                    tensor.dtype().wire_name()
                )));
            }
            if asked.is_empty() || asked.contains(&name) {
                wanted.push(OutputTensor { name, tensor });
            }
        }
        Ok(wanted)
    }

    /// Gives one of several responses of a decoupled model; one of the `finish` calls must follow.
    pub fn respond(&mut self, result: Result<Vec<OutputTensor>, ServingError>) {
        self.respond_with(result, Vec::new());
    }

    /// Responds like [`respond`](Self::respond), with parameters of the response.
    pub fn respond_with(
        &mut self,
        result: Result<Vec<OutputTensor>, ServingError>,
        parameters: Vec<(String, ParameterValue)>,
    ) {
        self.observe_first_response();
        self.responses += 1;
        let response = |outputs| InferenceResponse { parameters, ..self.response(outputs) };
        let result = result.map(|outputs| Some(response(outputs)));
        self.trace_response(&result);
        if let Some(sink) = &mut self.sink {
            call(sink, SinkAnswer { result, is_final: false }, &self.context);
        }
    }

    /// Ends the responses of a decoupled model without another one.
    pub fn finish(mut self) {
        self.send_final(Ok(None));
    }

    /// Gives the last response of a decoupled model.
    pub fn finish_with(self, result: Result<Vec<OutputTensor>, ServingError>) {
        self.answer(result);
    }

    /// Gives the last response of a decoupled model, with what else it says.
    pub fn finish_as(mut self, answer: ModelAnswer) {
        match answer.result {
            Ok(outputs) => self.answer_with(outputs, answer.parameters),
            Err(error) if answer.deliberate => {
                self.count_end(None);
                self.send_final(Err(error));
            }
            Err(error) => self.answer(Err(error)),
        }
    }

    /// Counts the next response in the statistics of responses by index: `from` is when its making began, `made` when
    /// the model had run for it.
    pub fn count_response(&self, kind: ResponseKind, from: Instant, made: Instant) {
        let infer = made.saturating_duration_since(from);
        self.context.statistics.response(self.responses, kind, infer, made.elapsed());
    }

    /// Counts a response that a front end reads past the sink: `from` is when its making began.
    pub(crate) fn respond_past_sink(&mut self, from: Instant) {
        self.observe_first_response();
        self.count_past_sink(ResponseKind::Success, from);
        self.responses += 1;
        if let Some(trace) = &self.request.trace {
            trace.respond(&[]);
        }
    }

    /// Counts the next response of a decoupled model by its index, which a front end reads past the sink.
    pub(crate) fn count_past_sink(&self, kind: ResponseKind, from: Instant) {
        let policy = self.context.config.model_transaction_policy.as_ref();
        if policy.is_some_and(|policy| policy.decoupled) {
            let infer = from.elapsed();
            self.context.statistics.response(self.responses, kind, infer, Duration::ZERO);
        }
    }

    /// Adds the wait inside of the model to that in the queue.
    pub(crate) fn add_queue_time(&mut self, time: Duration) {
        let most = self.arrived.elapsed();
        self.queue_time = (self.queue_time + time).min(most);
    }

    /// Answers a request that its model has not taken, so that it is counted as one that never ran.
    pub(crate) fn refuse(mut self, error: ServingError) {
        if let Some(execution) = self.execution.take() {
            execution.leave_unrun(self.queue_time);
        }
        let reason = match error.code {
            ErrorCode::Unavailable => FailureReason::Rejected,
            _ => FailureReason::Other,
        };
        self.fail(reason, error);
    }

    /// Gives the request back to the scheduler, which executes it once more. Only schedulers of iterative sequences
    /// take it; otherwise it is answered with an error.
    pub fn reschedule(mut self) {
        let Some(back) = self.back.take() else {
            let error = not_again(&self.context.name);
            return self.finish_with(Err(error));
        };
        self.iteration += 1;
        if let Some(execution) = self.execution.take() {
            execution.leave(self.queue_time);
        }
        back(self);
    }

    /// Where [`reschedule`](Self::reschedule) leads.
    pub(crate) fn set_way_back(&mut self, back: WayBack) {
        self.back = Some(back);
    }

    fn response(&self, outputs: Vec<OutputTensor>) -> InferenceResponse {
        InferenceResponse {
            model_name: self.context.name.clone(),
            model_version: self.context.version.clone(),
            id: self.request.id.clone(),
            parameters: Vec::new(),
            outputs,
        }
    }

    /// Answers a request that never ran, and counts it.
    pub(crate) fn fail(self, reason: FailureReason, error: ServingError) {
        self.context.statistics.failure(reason, self.arrived.elapsed());
        if self.goal.is_some() && reason == FailureReason::Rejected {
            self.context.statistics.missed_goal();
        }
        self.answer(Err(error));
    }

    /// Takes the request back before it was accepted, with its sink, which is not called.
    pub(crate) fn withdraw(mut self) -> (InferenceRequest, Option<ResponseSink>) {
        let sink = self.sink.take();
        if sink.is_some() {
            self.context.answered();
        }
        (std::mem::take(&mut self.request), sink)
    }

    /// Gives the only or last response, with parameters.
    pub(crate) fn answer_with(
        mut self,
        outputs: Vec<OutputTensor>,
        parameters: Vec<(String, ParameterValue)>,
    ) {
        let response = InferenceResponse { parameters, ..self.response(outputs) };
        self.send_final(Ok(Some(response)));
    }

    /// Gives the request and its sink up, to be handed to another version. It is not counted as answered here.
    fn hand_over(mut self) -> Option<HandedRequest> {
        let sink = self.sink.take()?;
        self.context.answered();
        Some(HandedRequest { request: std::mem::take(&mut self.request), sink })
    }

    /// Puts a step between the request and its sink.
    pub(crate) fn wrap_sink(&mut self, wrap: impl FnOnce(ResponseSink) -> ResponseSink) {
        self.sink = self.sink.take().map(wrap);
    }

    /// Counts the end of a request that was answered apart from its batch.
    fn count_end(&mut self, error: Option<&ServingError>) {
        let Some(execution) = self.execution.take() else { return };
        let end = Instant::now();
        if let Some(trace) = &self.request.trace {
            trace.stamp_at(trace::COMPUTE_OUTPUT_START, end);
            trace.stamp_at(trace::COMPUTE_END, end);
        }
        let outcome = RequestOutcome {
            filler: self.is_filler(),
            failure: error.map(|error| self.failure_of(error)),
            batch_size: self.batch_size,
            queue: execution.started.saturating_duration_since(self.arrived) + self.queue_time,
            total: end.saturating_duration_since(self.arrived),
            goal: self.goal,
        };
        let times = execution.times(end, self.queue_time);
        self.context.statistics.request(times, &outcome);
        if let Some(stages) = &self.request.stages {
            stages.add(outcome.queue, times);
        }
        execution.leave(self.queue_time);
    }

    /// Takes the time to the response that follows in, if it is the first.
    fn observe_first_response(&self) {
        if let (0, Some(latencies)) = (self.responses, self.context.statistics.latencies()) {
            latencies.observe_first_response(self.arrived.elapsed());
        }
    }

    fn trace_response(&self, result: &Result<Option<InferenceResponse>, ServingError>) {
        let Some(trace) = &self.request.trace else { return };
        match result {
            Ok(None) => {}
            Ok(Some(response)) => trace.respond(&response.outputs),
            Err(_) => trace.respond(&[]),
        }
    }

    fn failure_of(&self, error: &ServingError) -> FailureReason {
        if error.code == ErrorCode::Cancelled || self.is_cancelled() {
            FailureReason::Canceled
        } else {
            FailureReason::Backend
        }
    }

    fn send_final(&mut self, result: Result<Option<InferenceResponse>, ServingError>) {
        let Some(mut sink) = self.sink.take() else { return };
        // Counted first, so that a client that asks right after its answer finds it counted.
        self.count_end(result.as_ref().err());
        if !matches!(result, Ok(None)) {
            self.observe_first_response();
        }
        self.trace_response(&result);
        call(&mut sink, SinkAnswer { result, is_final: true }, &self.context);
        if let Some(trace) = self.request.trace.take() {
            trace.stamp(trace::REQUEST_END);
        }
        self.context.answered();
    }
}

fn call(sink: &mut ResponseSink, answer: SinkAnswer, context: &ExecutionContext) {
    if catch_unwind(AssertUnwindSafe(|| sink(answer))).is_err() {
        tracing::error!(model = %context.name, "a receiver of responses panicked");
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let error = ServingError::internal(format!(
            "model '{}' did not answer the request",
            self.context.name
        ));
        self.send_final(Err(error));
    }
}

impl fmt::Debug for ActiveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

/// A request that a version has taken and cannot answer, on its way to the next one.
pub struct HandedRequest {
    /// The request.
    pub request: InferenceRequest,
    /// Its sink, which was not called yet.
    pub sink: ResponseSink,
}

impl fmt::Debug for HandedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

/// A batch to execute. Dropping it without [`complete`](Self::complete) answers INTERNAL to all its requests.
#[derive(Debug)]
pub struct BatchPayload {
    requests: Vec<ActiveRequest>,
    context: Arc<ExecutionContext>,
    started: Instant,
    input_end: Option<Instant>,
    output_start: Option<Instant>,
    /// Lasts from the begin of the execution until the requests are answered.
    recorded: Option<RecordedInterval>,
}

impl BatchPayload {
    pub(crate) fn new(requests: Vec<ActiveRequest>, context: Arc<ExecutionContext>) -> Self {
        Self {
            requests,
            context,
            started: Instant::now(),
            input_end: None,
            output_start: None,
            recorded: None,
        }
    }

    /// The requests, in the order of their items in the batch.
    #[must_use]
    pub fn requests(&self) -> &[ActiveRequest] {
        &self.requests
    }

    /// When the first of the requests is to be answered, where that is said.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.requests.iter().filter_map(ActiveRequest::deadline).min()
    }

    /// The items of all requests.
    pub(crate) fn items(&self) -> u64 {
        self.requests.iter().map(|request| request.batch_size).sum()
    }

    /// State that the model version's instances share.
    #[must_use]
    pub fn context(&self) -> &Arc<ExecutionContext> {
        &self.context
    }

    /// Items of all requests together.
    #[must_use]
    pub fn batch_size(&self) -> u64 {
        self.requests.iter().map(|request| request.batch_size).sum()
    }

    /// Bytes of all inputs together.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        let inputs = self.requests.iter().flat_map(|request| &request.request.inputs);
        inputs.map(|input| input.data.len_bytes()).sum()
    }

    /// The execution begins now; the wait in the queue ends.
    pub(crate) fn mark_started(&mut self) {
        self.started = Instant::now();
        self.recorded = self.context.intervals.begin(IntervalKind::Batch, &self.context.name);
        for request in self.requests.iter().map(|request| &request.request) {
            if let Some(trace) = &request.trace {
                trace.start_compute(request, self.started);
            }
        }
    }

    fn stamp(&self, name: &'static str, at: Instant) {
        for trace in self.requests.iter().filter_map(|request| request.request.trace.as_ref()) {
            trace.stamp_at(name, at);
        }
    }

    /// The inputs are ready; the model runs from now on.
    pub fn mark_inputs_ready(&mut self) {
        let now = Instant::now();
        self.input_end = Some(now);
        self.stamp(trace::COMPUTE_INPUT_END, now);
    }

    /// The model has run; outputs are given to the requests from now on.
    pub fn mark_model_done(&mut self) {
        let now = Instant::now();
        self.output_start = Some(now);
        self.stamp(trace::COMPUTE_OUTPUT_START, now);
    }

    /// Answers every request with the result at its position and counts the execution. Requests beyond the results
    /// are answered INTERNAL.
    pub fn complete(self, results: Vec<Result<Vec<OutputTensor>, ServingError>>) {
        self.complete_with(results.into_iter().map(ModelAnswer::from).collect());
    }

    /// Completes like [`complete`](Self::complete), with what else a model says of its answers.
    pub fn complete_with(mut self, answers: Vec<ModelAnswer>) {
        self.finish(answers);
    }

    /// Answers every request with the same error.
    pub fn fail(self, error: &ServingError) {
        let results = self.requests.iter().map(|_| Err(error.clone())).collect();
        self.complete(results);
    }

    /// Gives all requests up, to be handed to another version.
    #[must_use]
    pub fn hand_over(mut self) -> Vec<HandedRequest> {
        let requests = std::mem::take(&mut self.requests);
        requests.into_iter().filter_map(ActiveRequest::hand_over).collect()
    }

    /// Source that tells whether the clients of all requests have gone.
    #[must_use]
    pub fn interrupt_source(&self) -> InterruptSource {
        let clients = self.requests.iter().filter(|request| !request.is_filler());
        let tokens: Vec<CancelToken> = clients.map(|one| one.request.cancel.clone()).collect();
        InterruptSource::new(move || {
            !tokens.is_empty() && tokens.iter().all(CancelToken::is_cancelled)
        })
    }

    /// Takes the requests out, without items that only fill gaps, for models that answer each by itself, some time, with any number of responses. The
    /// execution is counted when the last of them is done.
    #[must_use]
    pub fn detach(mut self) -> Vec<ActiveRequest> {
        self.stamp(trace::COMPUTE_INPUT_END, Instant::now());
        let mut requests = std::mem::take(&mut self.requests);
        let batch_size = requests.iter().map(|request| request.batch_size).sum();
        requests.retain(|request| !request.is_filler());
        let execution = Arc::new(DetachedExecution {
            context: Arc::clone(&self.context),
            started: self.started,
            batch_size,
            left: AtomicUsize::new(requests.len()),
            ran: AtomicBool::new(false),
            _recorded: self.recorded.take(),
        });
        for request in &mut requests {
            request.execution = Some(Arc::clone(&execution));
        }
        requests
    }

    fn times(&self, end: Instant) -> ComputeTimes {
        let input_end = self.input_end.unwrap_or(self.started);
        let output_start = self.output_start.unwrap_or(end);
        ComputeTimes {
            input: input_end.saturating_duration_since(self.started),
            infer: output_start.saturating_duration_since(input_end),
            output: end.saturating_duration_since(output_start),
        }
    }

    fn finish(&mut self, results: Vec<ModelAnswer>) {
        let requests = std::mem::take(&mut self.requests);
        if requests.is_empty() {
            return;
        }
        let end = Instant::now();
        for trace in requests.iter().filter_map(|request| request.request.trace.as_ref()) {
            trace.stamp_at(trace::COMPUTE_END, end);
        }
        let mut results = results.into_iter();
        let answers: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let missing = || {
                    let text = format!("model '{}' gave no result", self.context.name);
                    ModelAnswer::from(Err(ServingError::internal(text)))
                };
                let answer = results.next().unwrap_or_else(missing);
                (request, answer)
            })
            .collect();
        let outcomes: Vec<RequestOutcome> = answers
            .iter()
            .map(|(request, answer)| RequestOutcome {
                filler: request.is_filler(),
                failure: answer.failure().map(|error| request.failure_of(error)),
                batch_size: request.batch_size,
                queue: self.started.saturating_duration_since(request.arrived),
                total: end.saturating_duration_since(request.arrived),
                goal: request.goal,
            })
            .collect();
        // Counted before the answers leave, so that a client that asks right after its answer finds it counted.
        let times = self.times(end);
        self.context.statistics.execution(times, &outcomes, now_ms());
        for ((request, answer), outcome) in answers.into_iter().zip(outcomes) {
            if let Some(stages) = &request.request.stages {
                stages.add(outcome.queue, times);
            }
            match answer.result {
                Ok(outputs) => request.answer_with(outputs, answer.parameters),
                Err(error) => request.answer(Err(error)),
            }
        }
    }
}

impl Drop for BatchPayload {
    fn drop(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let why = if std::thread::panicking() { "panicked" } else { "ended without an answer" };
        let text = format!("the execution of model '{}' {why}", self.context.name);
        let failed = |_| ModelAnswer::from(Err(ServingError::internal(text.clone())));
        let results = self.requests.iter().map(failed).collect();
        self.finish(results);
    }
}

/// Answer to a request that is to run once more where nobody takes it.
pub(crate) fn not_again(model: &str) -> ServingError {
    ServingError::internal(format!(
        "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, but model '{model}' has no iterative \
         sequences"
    ))
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

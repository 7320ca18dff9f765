//! Tests of the engines of every kind of model: their queue, their ends, and what is counted.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use galatea_llm::embed::{EncoderEngine, EncoderModel, TextEncoder, TextTokens};
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_llm::engine::{
    EngineOptions, EngineStatistics, GenerationEngine, GenerationEvent, RequestTicket,
};
use galatea_llm::error::{LlmError, LlmErrorKind, Result};
use galatea_llm::observe::{EngineObserver, EngineOutcome, RequestRecord, StepRecord};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::stop::FinishReason;
use galatea_runtime::{ExecutionProvider, SessionOptions};

use crate::fake::{FakeModel, greedy, options, request, start, tokenizer};
use crate::gate::{GateKeeper, GatedReference, StepGate, StepOrder};

/// Kinds of models that an engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelKind {
    Decoder,
    EncoderDecoder,
    Encoder,
}

const KINDS: [ModelKind; 3] = [ModelKind::Decoder, ModelKind::EncoderDecoder, ModelKind::Encoder];

/// Size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestLength {
    /// Ends with its first result.
    Short,
    /// Takes several steps.
    Long,
}

/// How a request ended.
#[derive(Debug, PartialEq)]
enum RequestEnd {
    Finished,
    Cancelled,
    Failed(LlmError),
}

type EndSink = Box<dyn FnMut(RequestEnd) + Send>;

/// An engine of one kind, which computes one request at a time.
enum KindEngine {
    Generation(GenerationEngine),
    Encoder(EncoderEngine),
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

/// Starts an engine whose steps wait for orders.
fn gated(kind: ModelKind, max_waiting: usize) -> (KindEngine, GateKeeper) {
    let (gate, keeper) = StepGate::new();
    let options = EngineOptions { max_waiting, ..options(1, 8) };
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(GatedReference(Arc::clone(&gate)))];
    let session = SessionOptions::default();
    let engine = match kind {
        ModelKind::Decoder => {
            let model = FakeModel::new(16, 4).with_trouble(Box::new(move |_, _| {
                gate.pass();
                Ok(())
            }));
            KindEngine::Generation(start(model, options))
        }
        ModelKind::EncoderDecoder => {
            let model = EncoderDecoder::load(&golden("t5"), &providers, &session).unwrap();
            let engine = GenerationEngine::start_encoder_decoder(model, tokenizer(), options);
            KindEngine::Generation(engine.unwrap())
        }
        ModelKind::Encoder => {
            let model = EncoderModel::load(&golden("bert-mean"), &providers, &session).unwrap();
            let model = TextEncoder::new(tokenizer(), model);
            KindEngine::Encoder(EncoderEngine::start(model, max_waiting).unwrap())
        }
    };
    (engine, keeper)
}

/// A request whose end is awaited.
struct AwaitedRequest {
    ticket: RequestTicket,
    end: Receiver<RequestEnd>,
}

impl AwaitedRequest {
    /// Waits for the end, and checks that there is one only.
    fn end(self) -> RequestEnd {
        let end = self.end.recv_timeout(Duration::from_secs(60)).expect("a request ends");
        assert!(self.end.recv().is_err(), "a request ends once");
        self.ticket.detach();
        end
    }

    /// Takes the request back.
    fn take_back(self) -> Receiver<RequestEnd> {
        self.end
    }
}

impl KindEngine {
    fn submit(&self, length: RequestLength, mut sink: EndSink) -> Result<RequestTicket> {
        let long = length == RequestLength::Long;
        match self {
            Self::Generation(engine) => {
                let tokens = if long { 40 } else { 1 };
                let sampling = SamplingParameters { ignore_eos: true, ..greedy(tokens) };
                let mut cancelled = false;
                let sink = move |event| match event {
                    GenerationEvent::Started { .. } => {}
                    GenerationEvent::Delta(delta) => {
                        cancelled |= delta.finish == Some(FinishReason::Cancelled);
                    }
                    GenerationEvent::Finished(_) if cancelled => sink(RequestEnd::Cancelled),
                    GenerationEvent::Finished(_) => sink(RequestEnd::Finished),
                    GenerationEvent::Failed(error) => sink(RequestEnd::Failed(error)),
                };
                engine.submit(request(&[5, 6], sampling), Box::new(sink))
            }
            Self::Encoder(engine) => {
                let text = TextTokens { tokens: vec![5, 6], types: Vec::new() };
                let texts = vec![text; if long { 100 } else { 1 }];
                let sink = move |result: Result<_>| match result {
                    Ok(_) => sink(RequestEnd::Finished),
                    Err(error) if error.message() == "the client left" => {
                        sink(RequestEnd::Cancelled);
                    }
                    Err(error) => sink(RequestEnd::Failed(error)),
                };
                engine.submit(texts, Box::new(sink))
            }
        }
    }

    fn ask(&self, length: RequestLength) -> AwaitedRequest {
        let (sender, end) = mpsc::channel();
        let sink = Box::new(move |ended| {
            let _ = sender.send(ended);
        });
        AwaitedRequest { ticket: self.submit(length, sink).unwrap(), end }
    }

    fn statistics(&self) -> EngineStatistics {
        match self {
            Self::Generation(engine) => engine.statistics(),
            Self::Encoder(engine) => engine.statistics(),
        }
    }

    fn observe(&self, observer: Arc<dyn EngineObserver>) {
        match self {
            Self::Generation(engine) => engine.observe(observer),
            Self::Encoder(engine) => engine.observe(observer),
        }
    }
}

fn stopped(end: &RequestEnd) -> bool {
    let RequestEnd::Failed(error) = end else { return false };
    error.kind() == LlmErrorKind::Unavailable && error.message() == "it stops"
}

#[test]
fn requests_are_refused_while_too_many_wait() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 1);
        let first = engine.ask(RequestLength::Short);
        keeper.wait();
        // The first one runs, so one more may wait.
        let second = engine.ask(RequestLength::Short);
        let sink = Box::new(|end| panic!("{end:?} for a refused request"));
        let refused = engine.submit(RequestLength::Short, sink).unwrap_err();
        assert_eq!(refused.to_string(), "queue: 1 requests wait, at most 1 may", "{kind:?}");
        assert_eq!(refused.kind(), LlmErrorKind::Overloaded);
        drop(keeper);
        assert_eq!(first.end(), RequestEnd::Finished, "{kind:?}");
        assert_eq!(second.end(), RequestEnd::Finished, "{kind:?}");
        assert_eq!(engine.ask(RequestLength::Short).end(), RequestEnd::Finished, "{kind:?}");
        let told = engine.statistics();
        assert_eq!((told.refused, told.requests), (1, 3), "{kind:?}");
    }
}

#[test]
fn a_request_that_waits_can_be_taken_back() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 1);
        let first = engine.ask(RequestLength::Short);
        keeper.wait();
        let taken = engine.ask(RequestLength::Long).take_back();
        drop(keeper);
        assert_eq!(taken.recv(), Ok(RequestEnd::Cancelled), "{kind:?}");
        assert_eq!(first.end(), RequestEnd::Finished, "{kind:?}");
        // Its place in the queue is free.
        assert_eq!(engine.ask(RequestLength::Short).end(), RequestEnd::Finished, "{kind:?}");
        let told = engine.statistics();
        assert_eq!((told.cancelled, told.failed, told.waiting), (1, 0, 0), "{kind:?}");
    }
}

#[test]
fn a_request_that_runs_can_be_taken_back() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 1);
        let running = engine.ask(RequestLength::Long);
        keeper.wait();
        let taken = running.take_back();
        keeper.order(StepOrder::Run);
        if kind == ModelKind::EncoderDecoder {
            // Reading the text and the first token are one turn of the thread.
            keeper.wait();
            keeper.order(StepOrder::Run);
        }
        // No further step comes before it ends.
        assert_eq!(taken.recv(), Ok(RequestEnd::Cancelled), "{kind:?}");
        drop(keeper);
        assert_eq!(engine.ask(RequestLength::Short).end(), RequestEnd::Finished, "{kind:?}");
        let told = engine.statistics();
        assert_eq!((told.cancelled, told.failed, told.running), (1, 0, 0), "{kind:?}");
    }
}

#[test]
fn dropping_an_engine_ends_the_requests_that_are_open() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 2);
        let running = engine.ask(RequestLength::Long);
        keeper.wait();
        let waiting = engine.ask(RequestLength::Long);
        let dropping = std::thread::spawn(move || drop(engine));
        drop(keeper);
        for open in [running, waiting] {
            let end = open.end();
            assert!(end == RequestEnd::Finished || stopped(&end), "{kind:?}: {end:?}");
        }
        dropping.join().unwrap();
    }
}

#[test]
fn a_client_may_drop_the_engine_on_its_own_thread() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 2);
        let engine = Arc::new(engine);
        let (sender, dropped) = mpsc::channel();
        let mut last = Some(Arc::clone(&engine));
        let sink = Box::new(move |end| {
            // With the last reference the engine goes, which must not wait for its own thread.
            drop(last.take());
            sender.send(end).unwrap();
        });
        engine.submit(RequestLength::Short, sink).unwrap().detach();
        keeper.wait();
        let waiting = engine.ask(RequestLength::Short);
        assert_eq!(Arc::strong_count(&engine), 2);
        drop(engine);
        drop(keeper);
        let end = dropped.recv_timeout(Duration::from_secs(60));
        assert_eq!(end, Ok(RequestEnd::Finished), "{kind:?}");
        let end = waiting.end();
        assert!(stopped(&end), "{kind:?}: {end:?}");
    }
}

#[test]
fn a_step_that_panics_fails_its_request_only() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 1);
        let first = engine.ask(RequestLength::Long);
        keeper.wait();
        let second = engine.ask(RequestLength::Short);
        keeper.order(StepOrder::Panic);
        let RequestEnd::Failed(error) = first.end() else { panic!("{kind:?}: it ends well") };
        assert_eq!(error.kind(), LlmErrorKind::Model);
        assert!(error.message().contains("the gate says so"), "{kind:?}: {error}");
        drop(keeper);
        assert_eq!(second.end(), RequestEnd::Finished, "{kind:?}");
        assert_eq!(engine.statistics().failed, 1, "{kind:?}");
    }
}

/// Records what an engine does, and panics at the first step if it is told to.
#[derive(Default)]
struct KindObserver {
    panics: Mutex<bool>,
    steps: Mutex<Vec<StepRecord>>,
    requests: Mutex<Vec<RequestRecord>>,
}

impl EngineObserver for KindObserver {
    fn stepped(&self, step: StepRecord) {
        let panics = std::mem::take(&mut *self.panics.lock().unwrap());
        assert!(!panics, "the observer is out of order");
        self.steps.lock().unwrap().push(step);
    }

    fn ended(&self, request: RequestRecord) {
        self.requests.lock().unwrap().push(request);
    }
}

#[test]
fn a_panic_outside_the_model_does_not_end_the_thread() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 1);
        let panics = Mutex::new(true);
        engine.observe(Arc::new(KindObserver { panics, ..KindObserver::default() }));
        let first = engine.ask(RequestLength::Long);
        drop(keeper);
        let end = first.end();
        assert!(matches!(end, RequestEnd::Failed(_)), "{kind:?}: {end:?}");
        assert_eq!(engine.ask(RequestLength::Short).end(), RequestEnd::Finished, "{kind:?}");
        let told = engine.statistics();
        assert_eq!((told.failed, told.running, told.waiting), (1, 0, 0), "{kind:?}");
    }
}

#[test]
fn every_kind_counts_the_same() {
    for kind in KINDS {
        let (engine, keeper) = gated(kind, 3);
        let observer = Arc::new(KindObserver::default());
        engine.observe(observer.clone());
        drop(keeper);
        for length in [RequestLength::Short, RequestLength::Long] {
            assert_eq!(engine.ask(length).end(), RequestEnd::Finished, "{kind:?}");
        }
        let told = engine.statistics();
        assert_eq!((told.requests, told.refused, told.failed), (2, 0, 0), "{kind:?}");
        assert_eq!(told.finished.values().sum::<u64>(), 2, "{kind:?}");
        assert_eq!((told.running, told.waiting), (0, 0), "{kind:?}");
        let all = [&told.request_latency, &told.queue_time, &told.request_prompt_tokens];
        for histogram in all {
            assert_eq!(histogram.count(), 2, "{kind:?}");
        }
        let tokens = if kind == ModelKind::Encoder { 2 + 200 } else { 2 + 2 };
        assert_eq!(told.prompt_tokens, tokens, "{kind:?}");
        assert_eq!(told.request_prompt_tokens.sum() as u64, tokens, "{kind:?}");
        assert_eq!(told.steps, told.step_tokens.count(), "{kind:?}");
        // The thread has told the observer of the last step when it has ended.
        drop(engine);
        let requests = observer.requests.lock().unwrap();
        let numbers: Vec<u64> = requests.iter().map(|request| request.number).collect();
        assert_eq!(numbers, [0, 1], "{kind:?}");
        for request in &*requests {
            assert_eq!(request.outcome, EngineOutcome::Finished, "{kind:?}");
            assert!(request.submitted <= request.admitted.unwrap(), "{kind:?}");
            assert!(request.admitted.unwrap() <= request.end, "{kind:?}");
        }
        let steps = observer.steps.lock().unwrap();
        for number in numbers {
            assert!(steps.iter().any(|step| step.sequences.contains(&number)), "{kind:?}");
        }
        assert!(told.steps > 0 && steps.len() as u64 >= told.steps, "{kind:?}");
    }
}

//! Requests of texts take the way of all requests: queues, the rate limiter, traces, and the end of a version.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::core::{LoadOverrides, UnloadDependents};
use galatea_serving::generate::GenerateRequest;
use galatea_serving::{ControlMode, Core, CoreOptions, InferenceRequest, ServingError};
use galatea_tensor::OrderedMap;
use serde_json::{Value, json};

use crate::client::{get, json_of, post};
use crate::encoders::write_encoder;
use crate::speller::{self, write_checkpoint};
use crate::{Fixture, flags, repository};

const COMPLETIONS: &str = "/v1/completions";

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn completion(members: &Value) -> Value {
    let mut body = json!({"model": "speller", "prompt": "w", "max_tokens": 3});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// A speller with this configuration.
fn configured(folder: &Path, config: &str) {
    write_checkpoint(&folder.join("speller/1"));
    fs::write(folder.join("speller/config.pbtxt"), format!("backend: 'llm' {config}")).unwrap();
}

/// The names of the stages in a file of traces, by the model.
fn stages(file: &Path) -> OrderedMap<String, Vec<Vec<String>>> {
    let entries = json_of(&fs::read_to_string(file).unwrap());
    let entries = entries.as_array().unwrap();
    let mut found: OrderedMap<String, Vec<Vec<String>>> = OrderedMap::new();
    for trace in entries.iter().filter(|entry| entry.get("model_name").is_some()) {
        let own = entries.iter().filter(|entry| entry["id"] == trace["id"]);
        let stamps = own.filter_map(|entry| entry["timestamps"].as_array()).flatten();
        let names = stamps.map(|stamp| stamp["name"].as_str().unwrap().to_owned()).collect();
        found.entry(trace["model_name"].as_str().unwrap().to_owned()).or_default().push(names);
    }
    found
}

/// Flags by which every request is traced to a file.
fn tracing(file: &Path) -> [String; 3] {
    [
        format!("--trace-config=triton,file={}", file.display()),
        "--trace-config=rate=1".to_owned(),
        "--trace-config=level=TIMESTAMPS".to_owned(),
    ]
}

/// Stages of a request with one response.
const STAGES: [&str; 12] = [
    "HTTP_RECV_START",
    "HTTP_RECV_END",
    "REQUEST_START",
    "QUEUE_START",
    "COMPUTE_START",
    "COMPUTE_INPUT_END",
    "INFER_RESPONSE_COMPLETE",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_END",
    "REQUEST_END",
    "HTTP_SEND_START",
    "HTTP_SEND_END",
];

#[test]
fn requests_for_texts_are_traced_as_tritons_are() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let file = folder.path().join("trace.json");
    let arguments = tracing(&file);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let fixture = Fixture::on(speller::core(folder.path()), &flags(&arguments));
    assert_eq!(post(fixture.http(), COMPLETIONS, &completion(&json!({}))).0, 200);
    let pieces = completion(&json!({"stream": true}));
    assert_eq!(post(fixture.http(), COMPLETIONS, &pieces).0, 200);
    // What is refused before it is a request has no trace.
    assert_eq!(post(fixture.http(), COMPLETIONS, &completion(&json!({"n": -1}))).0, 400);
    assert!(fixture.stop());
    let traces = stages(&file).remove("speller").unwrap();
    assert_eq!(traces.len(), 2);
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let expected = sorted(STAGES.map(str::to_owned).to_vec());
    assert_eq!(sorted(traces[0].clone()), expected);
    let responses =
        |names: &[String]| names.iter().filter(|name| *name == "INFER_RESPONSE_COMPLETE").count();
    assert_eq!((responses(&traces[0]), responses(&traces[1])), (1, 3));
}

#[test]
fn requests_of_encoders_are_traced_too() {
    let folder = tempfile::tempdir().unwrap();
    write_encoder("bert-mean", &folder.path().join("mean"));
    let file = folder.path().join("trace.json");
    let arguments = tracing(&file);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let fixture = Fixture::on(repository(folder.path()), &flags(&arguments));
    let body = json!({"model": "mean", "input": ["a5", "a6 a7"]});
    assert_eq!(post(fixture.http(), "/v1/embeddings", &body).0, 200);
    let statistics = get(fixture.http(), "/v2/models/mean/stats");
    let of = |pointer: &str| statistics.pointer(pointer).unwrap().as_u64().unwrap();
    assert_eq!(of("/model_stats/0/inference_count"), 2);
    assert_eq!(of("/model_stats/0/execution_count"), 1);
    assert_eq!(of("/model_stats/0/inference_stats/success/count"), 1);
    assert!(fixture.stop());
    let mut found = stages(&file).remove("mean").unwrap().remove(0);
    let mut expected = STAGES.map(str::to_owned).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// A model whose executions begin with a message and wait for one.
#[derive(Debug, Clone)]
struct HoldingModel(Arc<Mutex<(Sender<()>, Receiver<()>)>>);

impl ModelBackend for HoldingModel {
    fn name(&self) -> &str {
        "held"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(&self, _: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl BackendModel for HoldingModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(&self, _: &InstancePlacement) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for HoldingModel {
    fn execute(&mut self, payload: BatchPayload) {
        let messages = self.0.lock().unwrap();
        messages.0.send(()).unwrap();
        messages.1.recv_timeout(PATIENCE).unwrap();
        payload.fail(&ServingError::internal("held"));
    }
}

/// A server on a speller with this configuration and a model that holds the resource `R` while it runs.
fn beside_a_holder(folder: &Path, config: &str) -> (Fixture, Sender<()>) {
    let resource = "rate_limiter { resources [{ name: 'R' global: true count: 1 }] }";
    let group = format!("instance_group [{{ count: 1 kind: KIND_CPU {resource} }}]");
    configured(folder, &format!("{group} {config}"));
    fs::create_dir_all(folder.join("holder/1")).unwrap();
    let holder = format!(
        "backend: 'held' {group} input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 optional: true }} \
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 1 }}"
    );
    fs::write(folder.join("holder/config.pbtxt"), holder).unwrap();
    let ((begun_to, begun), (leave, leave_from)) = (channel(), channel());
    let held = HoldingModel(Arc::new(Mutex::new((begun_to, leave_from))));
    let backends = speller::backends().into_iter();
    let options = CoreOptions {
        repositories: vec![folder.to_owned()],
        rate_limits: Some(Vec::new()),
        ..CoreOptions::default()
    };
    let core = Core::start(options, backends.chain([Arc::new(held) as _]).collect()).unwrap();
    let request = InferenceRequest { model_name: "holder".to_owned(), ..Default::default() };
    core.infer(request, Box::new(|_| {})).unwrap();
    begun.recv_timeout(PATIENCE).unwrap();
    (Fixture::on(core, &flags(&[])), leave)
}

/// Asks on a thread, and waits until the request is in the model's queue.
fn ask_and_wait(fixture: &Fixture, body: Value) -> JoinHandle<(u16, String, String)> {
    let address = fixture.http();
    let core = Arc::clone(fixture.server.app().core());
    let pending = move || -> u64 {
        let rows = core.metrics_snapshot().into_iter();
        rows.filter(|row| row.model == "speller").map(|row| row.pending).sum()
    };
    let before = pending();
    let asked = std::thread::spawn(move || post(address, COMPLETIONS, &body));
    while pending() == before {
        std::thread::yield_now();
    }
    asked
}

#[test]
fn the_rate_limiter_holds_texts_back() {
    let folder = tempfile::tempdir().unwrap();
    let (fixture, leave) = beside_a_holder(folder.path(), "");
    let asked = ask_and_wait(&fixture, completion(&json!({})));
    let model = fixture.server.app().core().resolve("speller", "").unwrap();
    let engine = model.language_model().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(engine.engine().statistics().requests, 0);
    leave.send(()).unwrap();
    let (status, _, body) = asked.join().unwrap();
    assert_eq!((status, &json_of(&body)["choices"][0]["text"]), (200, &json!("xyz")), "{body}");
    drop(engine);
    assert!(fixture.stop());
}

#[test]
fn queue_policies_are_for_texts_too() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "dynamic_batching { default_queue_policy { max_queue_size: 1 } }";
    let (fixture, leave) = beside_a_holder(folder.path(), policy);
    let asked = ask_and_wait(&fixture, completion(&json!({})));
    let refused = completion(&json!({"request_id": "late"}));
    let (status, _, body) = post(fixture.http(), COMPLETIONS, &refused);
    let why = "[request id: late] Exceeds maximum queue size";
    assert_eq!((status, &json_of(&body)["error"]["message"]), (503, &json!(why)), "{body}");
    leave.send(()).unwrap();
    assert_eq!(asked.join().unwrap().0, 200);
    assert!(fixture.stop());
}

#[test]
fn a_text_for_a_model_over_sequences_is_a_sequence_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), "sequence_batching { direct {} }");
    let fixture = Fixture::on(speller::core(folder.path()), &flags(&[]));
    for _ in 0..3 {
        let (status, _, body) = post(fixture.http(), COMPLETIONS, &completion(&json!({})));
        assert_eq!((status, &json_of(&body)["choices"][0]["text"]), (200, &json!("xyz")), "{body}");
    }
    assert!(fixture.stop());
}

#[test]
fn what_the_engine_refuses_is_counted_as_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let fixture = Fixture::on(speller::core(folder.path()), &flags(&[]));
    let served = fixture.server.app().core().resolve("speller", "").unwrap();
    let served = served.checkpoint().unwrap().unwrap();
    // Prompts are checked before, but for those who bring their own.
    let empty = galatea_llm::engine::GenerationRequest {
        prompt: Vec::new(),
        sampling: galatea_llm::sampling::SamplingParameters::default(),
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
        id: String::new(),
    };
    let wanted = GenerateRequest { prompts: vec![empty], ..GenerateRequest::default() };
    let mut stream = served.generate(wanted).unwrap();
    assert!(fixture.runtime.block_on(stream.next()).is_err());
    let row = fixture.server.app().core().metrics_snapshot().remove(0);
    let failures = row.failures.iter().map(|(reason, count)| (reason.name(), *count));
    let failures: OrderedMap<&str, u64> = failures.filter(|(_, count)| *count > 0).collect();
    assert_eq!((failures, row.execution_count), (OrderedMap::from([("OTHER", 1)]), 0));
    drop((stream, served));
    assert!(fixture.stop());
}

#[test]
fn prompts_that_come_behind_an_unload_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let core = speller::core(folder.path());
    assert!(matches!(core.options().control_mode, ControlMode::Explicit { .. }));
    let served = core.resolve("speller", "").unwrap().checkpoint().unwrap().unwrap();
    core.unload_model("speller", UnloadDependents::Keep).unwrap();
    let refused = served.generate(GenerateRequest::default()).unwrap_err();
    assert_eq!(refused, core.resolve("speller", "").unwrap_err());
    // The same folder, loaded anew, has the requests of its predecessor.
    core.load_model("speller", LoadOverrides::default()).unwrap();
    let mut stream = served.generate(GenerateRequest::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(stream.next()).unwrap().is_none());
    drop(stream);
    assert!(core.shutdown(PATIENCE).complete);
    let stopped = served.generate(GenerateRequest::default()).unwrap_err();
    assert_eq!(stopped, ServingError::unavailable("Server exiting"));
}

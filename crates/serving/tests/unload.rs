//! Unloads and shutdowns wait for requests that are answered after their execution.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo, builtin,
};
use galatea_serving::core::{UnloadDependents, VersionState};
use galatea_serving::request::{InputData, InputTensor, OutputTensor};
use galatea_serving::{ControlMode, Core, CoreOptions, InferenceRequest, ServingError, SinkAnswer};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which whoever does not wait would have gone on.
const MOMENT: Duration = Duration::from_millis(100);

/// Hands its requests to the test, which answers them, and tells when an instance ends.
#[derive(Debug)]
struct Later {
    requests: Sender<ActiveRequest>,
    ended: Sender<()>,
}

struct Instance(Sender<ActiveRequest>, Sender<()>);

impl ModelBackend for Later {
    fn name(&self) -> &str {
        "later"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(&self, _files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let (requests, ended) = (self.requests.clone(), self.ended.clone());
        Ok(Box::new(Loaded(Mutex::new((requests, ended)))))
    }
}

struct Loaded(Mutex<(Sender<ActiveRequest>, Sender<()>)>);

impl BackendModel for Loaded {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let (requests, ended) = self.0.lock().unwrap().clone();
        Ok(Box::new(Instance(requests, ended)))
    }
}

impl ModelInstance for Instance {
    fn execute(&mut self, payload: BatchPayload) {
        payload.detach().into_iter().for_each(|request| self.0.send(request).unwrap());
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The test may be over.
        let _gone = self.1.send(());
    }
}

struct Server {
    core: Arc<Core>,
    requests: Receiver<ActiveRequest>,
    ended: Receiver<()>,
    _folder: tempfile::TempDir,
}

fn write(folder: &Path, name: &str, config: &str) {
    fs::create_dir_all(folder.join(name).join("1")).unwrap();
    let policy = "model_transaction_policy { decoupled: true }";
    fs::write(folder.join(name).join("config.pbtxt"), format!("{config} {policy}")).unwrap();
}

fn end(kind: &str, name: &str, data_type: &str) -> String {
    format!("{kind} {{ name: '{name}' data_type: TYPE_{data_type} dims: -1 }} ")
}

fn start() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let out = end("output", "OUT", "INT32");
    let later = end("input", "IN", "INT32") + &out;
    write(folder.path(), "later", &format!("backend: 'later' {later}"));
    let repeat = [
        end("input", "IN", "INT32"),
        end("input", "DELAY", "UINT32"),
        end("input", "WAIT", "UINT32"),
        out,
        end("output", "IDX", "UINT32"),
    ];
    write(folder.path(), "repeat", &format!("backend: 'repeat' {}", repeat.concat()));
    let ((requests_to, requests), (ended_to, ended)) = (channel(), channel());
    let later: Arc<dyn ModelBackend> = Arc::new(Later { requests: requests_to, ended: ended_to });
    let options = CoreOptions {
        repositories: vec![folder.path().to_owned()],
        control_mode: ControlMode::Explicit { load: vec!["*".to_owned()] },
        ..CoreOptions::default()
    };
    let core = Core::start(options, std::iter::once(later).chain(builtin::all()).collect());
    Server { core: core.unwrap(), requests, ended, _folder: folder }
}

fn input(name: &str, datatype: DataType, values: &[u32]) -> InputTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let shape = vec![i64::try_from(values.len()).unwrap()];
    InputTensor { name: name.to_owned(), datatype, shape, data: InputData::Raw(bytes.into()) }
}

impl Server {
    fn send(&self, model: &str, inputs: Vec<InputTensor>) -> Receiver<SinkAnswer> {
        let (to, from) = channel();
        let model_name = model.to_owned();
        let request = InferenceRequest { model_name, inputs, ..InferenceRequest::default() };
        self.core.infer(request, Box::new(move |answer| to.send(answer).unwrap())).unwrap();
        from
    }

    fn send_later(&self) -> (Receiver<SinkAnswer>, ActiveRequest) {
        let from = self.send("later", vec![input("IN", DataType::Int32, &[1])]);
        (from, self.requests.recv_timeout(PATIENCE).unwrap())
    }

    fn state(&self, model: &str) -> Option<VersionState> {
        let index = self.core.repository_index(false);
        index.into_iter().find(|line| line.name == model).and_then(|line| line.state)
    }

    fn wait_for(&self, model: &str, state: VersionState) {
        let start = Instant::now();
        while self.state(model) != Some(state) {
            assert!(start.elapsed() < PATIENCE, "{:?}", self.state(model));
            std::thread::yield_now();
        }
    }
}

fn respond(request: &mut ActiveRequest) {
    let tensor = Tensor::from_vec(&[1], vec![7_i32]).unwrap();
    request.respond(Ok(vec![OutputTensor { name: "OUT".to_owned(), tensor }]));
}

#[test]
fn an_unload_lets_requests_end_that_are_answered_after_their_execution() {
    let server = start();
    let (from, mut request) = server.send_later();
    server.core.unload_model("later", UnloadDependents::Keep).unwrap();
    assert_eq!(server.ended.recv_timeout(MOMENT), Err(RecvTimeoutError::Timeout));
    assert_eq!(server.state("later"), Some(VersionState::Unloading));
    respond(&mut request);
    assert!(!from.recv_timeout(PATIENCE).unwrap().is_final);
    request.finish();
    assert!(from.recv_timeout(PATIENCE).unwrap().is_final);
    server.wait_for("later", VersionState::Unavailable);
    server.ended.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn an_unload_lets_a_stream_of_responses_end() {
    let server = start();
    let inputs = vec![
        input("IN", DataType::Int32, &[4, 5, 6]),
        input("DELAY", DataType::Uint32, &[0, 20, 20]),
        input("WAIT", DataType::Uint32, &[0]),
    ];
    let from = server.send("repeat", inputs);
    let mut answers = vec![from.recv_timeout(PATIENCE).unwrap()];
    server.core.unload_model("repeat", UnloadDependents::Keep).unwrap();
    while !answers.last().unwrap().is_final {
        answers.push(from.recv_timeout(PATIENCE).unwrap());
    }
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|answer| answer.result.is_ok()));
    server.wait_for("repeat", VersionState::Unavailable);
}

#[test]
fn a_shutdown_waits_for_such_requests_as_long_as_it_may() {
    let server = start();
    let (from, request) = server.send_later();
    let core = Arc::clone(&server.core);
    let stop = std::thread::spawn(move || core.shutdown(PATIENCE));
    while server.core.is_live() {
        std::thread::yield_now();
    }
    request.finish();
    assert!(from.recv_timeout(PATIENCE).unwrap().is_final);
    let report = stop.join().unwrap();
    assert!(report.complete && report.unanswered == 0);

    let server = start();
    let (_from, request) = server.send_later();
    let report = server.core.shutdown(MOMENT);
    assert!(!report.complete && report.unanswered == 1);
    drop(request);
}

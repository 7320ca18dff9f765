//! The core from a folder on disk to answers, over a backend in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance,
    ModelIo, ModelTensor, PlacementKind,
};
use galatea_serving::core::{LoadOverrides, ShutdownReport, VersionState};
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::statistics::FailureReason;
use galatea_serving::{
    ControlMode, Core, CoreOptions, ErrorCode, InferenceRequest, InferenceResponse, ServingError,
    batch,
};
use galatea_tensor::{DataType, Tensor};

mod rate_limits;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gives every INT32 input back under the output's name; executions wait for `gate` where a test holds it, and the
/// value -1 makes them panic, -2 fail.
#[derive(Debug, Default)]
struct Echo {
    gate: Option<Arc<Gate>>,
    io: Option<ModelIo>,
}

#[derive(Debug)]
struct Gate {
    entered: Mutex<Sender<u64>>,
    leave: Mutex<Receiver<()>>,
}

impl ModelBackend for Echo {
    fn name(&self) -> &str {
        "echo"
    }
    fn platform(&self) -> &str {
        "echo_memory"
    }
    fn default_model_filename(&self) -> &str {
        "model.echo"
    }
    fn default_instance_count(&self, _kind: PlacementKind) -> i32 {
        1
    }
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        if files.parameter("fail").is_some() {
            return Err(ServingError::internal("the file is broken"));
        }
        Ok(Box::new(EchoModel { gate: self.gate.clone(), io: self.io.clone() }))
    }
}

struct EchoModel {
    gate: Option<Arc<Gate>>,
    io: Option<ModelIo>,
}

impl BackendModel for EchoModel {
    fn io(&self) -> Option<&ModelIo> {
        self.io.as_ref()
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(EchoInstance { gate: self.gate.clone() }))
    }
}

struct EchoInstance {
    gate: Option<Arc<Gate>>,
}

impl ModelInstance for EchoInstance {
    fn execute(&mut self, payload: BatchPayload) {
        let size = payload.batch_size();
        let gate = self.gate.clone();
        batch::execute(payload, |inputs| {
            if let Some(gate) = &gate {
                gate.entered.lock().unwrap().send(size).unwrap();
                let _closed = gate.leave.lock().unwrap().recv();
            }
            let (_, tensor) =
                inputs.into_iter().next().ok_or_else(|| ServingError::internal("no input"))?;
            let first = tensor.to_vec::<i32>()?[0];
            assert!(first != -1, "asked to panic");
            if first == -2 {
                return Err(ServingError::new(ErrorCode::Unsupported, "asked to fail"));
            }
            Ok(vec![("OUT".to_owned(), tensor)])
        });
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("galatea-core-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn model(self, name: &str, versions: &[&str], config: &str) -> Self {
        for version in versions {
            fs::create_dir_all(self.0.join(name).join(version)).unwrap();
        }
        fs::create_dir_all(self.0.join(name)).unwrap();
        fs::write(self.0.join(name).join("config.pbtxt"), config).unwrap();
        self
    }

    fn file(self, path: &str, content: &str) -> Self {
        fs::write(self.0.join(path), content).unwrap();
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn echo_config(extra: &str) -> String {
    format!(
        "backend: \"echo\" input {{ name: \"IN\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"OUT\" data_type: TYPE_INT32 dims: 1 }} {extra}"
    )
}

fn options(folder: &Path) -> CoreOptions {
    CoreOptions {
        repositories: vec![folder.to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    }
}

fn start(folder: &Folder) -> Arc<Core> {
    Core::start(options(&folder.0), vec![Arc::new(Echo::default())]).unwrap()
}

struct Gated {
    core: Arc<Core>,
    entered: Receiver<u64>,
    leave: Sender<()>,
}

/// A core whose executions report their batch size and wait to be let go.
fn gated(folder: &Folder) -> Gated {
    let ((entered_to, entered), (leave, leave_from)) = (channel(), channel());
    let gate = Gate { entered: Mutex::new(entered_to), leave: Mutex::new(leave_from) };
    let echo = Echo { gate: Some(Arc::new(gate)), io: None };
    Gated { core: Core::start(options(&folder.0), vec![Arc::new(echo)]).unwrap(), entered, leave }
}

fn request(model: &str, shape: &[i64], value: i32) -> InferenceRequest {
    let count = usize::try_from(shape.iter().product::<i64>()).unwrap();
    let bytes: Vec<u8> = vec![value; count].into_iter().flat_map(i32::to_le_bytes).collect();
    let input = InputTensor {
        name: "IN".to_owned(),
        datatype: DataType::Int32,
        shape: shape.to_vec(),
        data: InputData::Raw(bytes.into()),
    };
    InferenceRequest {
        model_name: model.to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    }
}

type Answer = Result<InferenceResponse, ServingError>;

fn send(core: &Core, request: InferenceRequest) -> Receiver<Answer> {
    let (to, from) = channel();
    let once = move |answer: galatea_serving::SinkAnswer| {
        assert!(answer.is_final);
        to.send(answer.result.map(|response| response.expect("a response"))).unwrap();
    };
    core.infer(request, Box::new(once)).unwrap();
    from
}

fn answer(from: &Receiver<Answer>) -> Answer {
    let answer = from.recv_timeout(PATIENCE).expect("an answer");
    assert!(from.try_recv().is_err(), "answered twice");
    answer
}

fn value(from: &Receiver<Answer>) -> Tensor {
    answer(from).unwrap().outputs[0].tensor.clone()
}

#[test]
fn a_repository_is_served_with_its_versions_and_failures() {
    let folder = Folder::new()
        .model("good", &["1", "3", "x"], &echo_config("version_policy { all {} }"))
        .model("broken", &["1"], &echo_config("parameters { key: \"fail\" value {} }"))
        .model("nonsense", &["1"], "backend: \"echo\" no_such_field: 3")
        .model("other", &["1"], &echo_config("name: \"another\""))
        .model("empty", &[], &echo_config(""))
        .model("stranger", &["1"], "backend: \"nosuchbackend\"")
        .model(
            "labels",
            &["1"],
            &echo_config("")
                .replace("name: \"OUT\"", "name: \"OUT\" label_filename: \"labels.txt\""),
        )
        .file("labels/labels.txt", "cat\ndog\n");
    let core = start(&folder);
    let index: Vec<_> = core
        .repository_index(false)
        .into_iter()
        .map(|line| {
            (
                line.name,
                line.version.unwrap_or_default(),
                line.state,
                line.reason.unwrap_or_default(),
            )
        })
        .collect();
    let line = |name: &str, version: &str, state, reason: &str| {
        (name.to_owned(), version.to_owned(), state, reason.to_owned())
    };
    let (ready, unavailable) = (Some(VersionState::Ready), Some(VersionState::Unavailable));
    let no_backend = "Invalid argument: unable to find backend library for backend 'nosuchbackend', try specifying \
                      runtime on the model configuration.";
    assert_eq!(
        index,
        [
            line("broken", "1", unavailable, "Internal: the file is broken"),
            line("good", "1", ready, ""),
            line("good", "3", ready, ""),
            line("labels", "1", ready, ""),
            line("nonsense", "", None, ""),
            line("other", "", None, ""),
            line("stranger", "1", unavailable, no_backend),
        ]
    );
    assert_eq!(core.repository_index(true).len(), 3);
    assert_eq!(core.load_failures().len(), 5);
    let reason =
        |model| core.load_failures().into_iter().find(|f| f.model == model).unwrap().reason;
    assert!(
        reason("nonsense").contains("1:17: no_such_field: ModelConfig has no field"),
        "{}",
        reason("nonsense")
    );
    assert!(reason("other").starts_with("unexpected directory name 'other' for model 'another'"));
    assert!(core.is_live() && !core.is_ready());
    assert!(core.model_ready("good", "").unwrap() && !core.model_ready("broken", "").unwrap());
    assert!(!core.model_ready("nobody", "7").unwrap());
    assert_eq!(core.resolve("labels", "").unwrap().labels("OUT").unwrap(), ["cat", "dog"]);
    assert_eq!(
        core.load_model("good", LoadOverrides::default()).unwrap_err().code,
        ErrorCode::Unavailable
    );
}

#[test]
fn what_is_not_there_is_said_as_triton_says_it() {
    let folder = Folder::new()
        .model("good", &["1", "3"], &echo_config("version_policy { all {} }"))
        .model("broken", &["1"], &echo_config("parameters { key: \"fail\" value {} }"))
        .model("nonsense", &["1"], "nonsense");
    let core = start(&folder);
    let message = |name, version| core.resolve(name, version).unwrap_err().message;
    assert_eq!(message("nobody", ""), "Request for unknown model: 'nobody' is not found");
    assert_eq!(message("nonsense", ""), "Request for unknown model: 'nonsense' is not found");
    assert_eq!(message("good", "2"), "Request for unknown model: 'good' version 2 is not found");
    assert_eq!(
        message("broken", ""),
        "Request for unknown model: 'broken' has no available versions"
    );
    assert_eq!(
        message("broken", "1"),
        "Request for unknown model: 'broken' version 1 is not at ready state"
    );
    let metadata = core.resolve("good", "").unwrap().metadata();
    assert_eq!(
        (metadata.versions, metadata.platform.as_str()),
        (vec!["1".to_owned(), "3".to_owned()], "echo_memory")
    );
    let statistics = |name, version| core.model_statistics(name, version).map(|all| all.len());
    assert_eq!(statistics(None, ""), Ok(2));
    assert_eq!(statistics(Some("good"), ""), Ok(2));
    assert_eq!(
        statistics(Some("broken"), "").unwrap_err().message,
        "requested model 'broken' is not available"
    );
}

#[test]
fn warm_up_runs_on_every_instance_before_the_model_is_ready_and_does_not_count() {
    let sample = |data: &str| {
        format!(
            "max_batch_size: 4 instance_group {{ count: 2 kind: KIND_CPU }} \
             model_warmup {{ name: \"s\" batch_size: 3 count: 2 inputs {{ key: \"IN\" \
             value {{ data_type: TYPE_INT32 dims: 1 {data} }} }} }}"
        )
    };
    let folder = Folder::new().model("m", &["1"], &echo_config(&sample("zero_data: true")));
    let ((entered_to, entered), (leave, leave_from)) = (channel(), channel());
    let gate = Gate { entered: Mutex::new(entered_to), leave: Mutex::new(leave_from) };
    (0..4).for_each(|_| leave.send(()).unwrap());
    let echo = Echo { gate: Some(Arc::new(gate)), io: None };
    let core = Core::start(options(&folder.0), vec![Arc::new(echo)]).unwrap();
    assert!(core.model_ready("m", "").unwrap());
    assert_eq!(entered.try_iter().collect::<Vec<_>>(), [3; 4]);
    assert_eq!(core.model_statistics(Some("m"), "").unwrap()[0].execution_count, 0);

    // The file's one item is -2, at which the model fails.
    let folder =
        Folder::new().model("m", &["1"], &echo_config(&sample("input_data_file: \"two\"")));
    fs::create_dir_all(folder.0.join("m/warmup")).unwrap();
    fs::write(folder.0.join("m/warmup/two"), (-2_i32).to_le_bytes()).unwrap();
    let reason = start(&folder).load_failures().remove(0).reason;
    assert_eq!(reason, "Unsupported: failed to run warmup sample 's': asked to fail; ");
}

#[test]
fn agents_that_are_not_known_or_refuse_the_model_keep_it_from_loading() {
    let agent = |text: &str| {
        let config = format!("model_repository_agents {{ agents {{ {text} }} }}");
        let folder = Folder::new().model("m", &["1"], &echo_config(&config));
        let core = start(&folder);
        core.load_failures().pop().map(|failure| failure.reason)
    };
    let unknown = agent("name: 'relocate'").unwrap();
    assert_eq!(
        unknown,
        "unable to find repository agent 'relocate' of model 'm'; known here: checksum"
    );
    assert_eq!(agent("name: 'checksum'"), None);
    let wrong = agent("name: 'checksum' parameters { key: 'MD5:config.pbtxt' value: 'no' }");
    assert!(wrong.unwrap().starts_with("Mismatched MD5 hash for file config.pbtxt, expected: no"));
}

#[test]
fn explicit_control_loads_only_what_is_named() {
    let folder =
        Folder::new().model("a", &["1"], &echo_config("")).model("b", &["1"], &echo_config(""));
    let load = |names: &[&str]| {
        let load = names.iter().map(|&name| name.to_owned()).collect();
        let options =
            CoreOptions { control_mode: ControlMode::Explicit { load }, ..options(&folder.0) };
        Core::start(options, vec![Arc::new(Echo::default())]).unwrap()
    };
    let ready = |core: &Core| {
        core.repository_index(true).into_iter().map(|line| line.name).collect::<Vec<_>>()
    };
    assert_eq!(ready(&load(&["b"])), ["b"]);
    assert_eq!(ready(&load(&["*"])), ["a", "b"]);
    assert!(load(&[]).is_ready());
    let missing = load(&["missing", "a"]);
    assert_eq!((ready(&missing), missing.is_ready()), (vec!["a".to_owned()], true));
    assert_eq!(missing.load_failures().len(), 1);
}

#[test]
fn folders_that_are_no_models_leave_the_server_ready() {
    let folder = Folder::new().model("good", &["1"], &echo_config("")).model("none", &["1"], "");
    fs::remove_file(folder.0.join("none/config.pbtxt")).unwrap();
    let start = |exit_on_error| {
        let options = CoreOptions {
            auto_complete: false,
            exit_on_error,
            // A repository that is named again counts once.
            repositories: vec![folder.0.clone(), folder.0.join("good/..")],
            ..options(&folder.0)
        };
        Core::start(options, vec![Arc::new(Echo::default())])
    };
    let core = start(false).unwrap();
    assert!(core.is_ready() && core.model_ready("good", "").unwrap());
    let failures = core.load_failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].model, "none");
    assert!(start(true).unwrap_err().message.contains("none"));
}

#[test]
fn a_failure_ends_the_start_only_where_that_is_asked() {
    let folder = Folder::new().model("m", &["1"], "nonsense");
    let strict = CoreOptions { exit_on_error: true, ..options(&folder.0) };
    assert!(Core::start(strict, vec![]).unwrap_err().message.contains("m: "));
    let missing = CoreOptions { repositories: vec!["/nowhere".into()], ..CoreOptions::default() };
    assert!(Core::start(missing, vec![]).unwrap_err().message.contains("/nowhere"));
}

#[test]
fn a_model_without_configuration_is_found_by_its_file_and_completed() {
    let folder = Folder::new().model("m", &["1"], "").file("m/1/model.echo", "");
    fs::remove_file(folder.0.join("m/config.pbtxt")).unwrap();
    let tensor = |name: &str| ModelTensor {
        name: name.to_owned(),
        datatype: DataType::Int32,
        dims: vec![-1, 1],
        ranked: true,
        optional: false,
    };
    let io =
        ModelIo { inputs: vec![tensor("IN")], outputs: vec![tensor("OUT")], ..ModelIo::default() };
    let echo: Arc<dyn ModelBackend> = Arc::new(Echo { gate: None, io: Some(io) });
    let core = Core::start(options(&folder.0), vec![Arc::clone(&echo)]).unwrap();
    let config = core.resolve("m", "").unwrap().config();
    assert_eq!(
        (config.backend.as_str(), config.platform.as_str(), config.max_batch_size),
        ("echo", "echo_memory", 4)
    );
    assert_eq!(config.instance_group[0].name, "m");
    assert_eq!(value(&send(&core, request("m", &[2, 1], 5))).to_vec::<i32>().unwrap(), [5, 5]);
    let off = CoreOptions { auto_complete: false, ..options(&folder.0) };
    assert!(Core::start(off, vec![echo]).unwrap().repository_index(true).is_empty());
}

#[test]
fn answers_errors_and_panics_are_counted_and_the_instance_goes_on() {
    let folder = Folder::new().model("m", &["1"], &echo_config("max_batch_size: 4"));
    let core = start(&folder);
    let good = answer(&send(&core, request("m", &[3, 1], 7))).unwrap();
    assert_eq!((good.model_name.as_str(), good.model_version.as_str()), ("m", "1"));
    let failed = answer(&send(&core, request("m", &[1, 1], -2))).unwrap_err();
    assert_eq!((failed.code, failed.message.as_str()), (ErrorCode::Unsupported, "asked to fail"));
    let panicked = answer(&send(&core, request("m", &[1, 1], -1))).unwrap_err();
    assert_eq!(panicked.code, ErrorCode::Internal);
    assert_eq!(panicked.message, "the execution of model 'm' panicked");
    assert_eq!(value(&send(&core, request("m", &[1, 1], 8))).to_vec::<i32>().unwrap(), [8]);

    let statistics = core.model_statistics(Some("m"), "1").unwrap().remove(0);
    assert_eq!((statistics.inference_count, statistics.execution_count), (4, 4));
    assert_eq!(
        (statistics.inference_stats.success.count, statistics.inference_stats.fail.count),
        (2, 2)
    );
    assert!(statistics.last_inference_ms > 0);
    let metrics = core.metrics_snapshot().remove(0);
    assert_eq!(
        metrics.failures.iter().find(|(reason, _)| *reason == FailureReason::Backend).unwrap().1,
        2
    );

    let error = core.infer(request("m", &[9, 1], 0), Box::new(|_| panic!("answered"))).unwrap_err();
    assert!(
        error.message.ends_with("inference request batch-size must be <= 4 for 'm'"),
        "{error}"
    );
    assert_eq!(core.model_statistics(Some("m"), "").unwrap()[0].inference_stats.fail.count, 2);
}

#[test]
fn requests_that_wait_together_run_together() {
    let folder =
        Folder::new().model("m", &["1"], &echo_config("max_batch_size: 4 dynamic_batching {}"));
    let Gated { core, entered, leave } = gated(&folder);
    let first = send(&core, request("m", &[1, 1], 0));
    assert_eq!(entered.recv_timeout(PATIENCE), Ok(1));
    let others: Vec<_> = (1..=5).map(|value| send(&core, request("m", &[1, 1], value))).collect();
    wait_for_pending(&core, 5);
    leave.send(()).unwrap();
    assert_eq!(entered.recv_timeout(PATIENCE), Ok(4));
    leave.send(()).unwrap();
    assert_eq!(entered.recv_timeout(PATIENCE), Ok(1));
    leave.send(()).unwrap();
    assert_eq!(value(&first).to_vec::<i32>().unwrap(), [0]);
    for (from, expected) in others.iter().zip(1..) {
        let got = value(from);
        assert_eq!(
            (got.shape(), got.to_vec::<i32>().unwrap()),
            ([1, 1].as_slice(), vec![expected])
        );
    }
    let statistics = core.model_statistics(Some("m"), "").unwrap().remove(0);
    let sizes: Vec<_> =
        statistics.batch_stats.iter().map(|b| (b.batch_size, b.compute_infer.count)).collect();
    assert_eq!(sizes, [(1, 2), (4, 1)]);
    assert_eq!((statistics.inference_count, statistics.execution_count), (6, 3));
}

/// Waits until the gauge says so; the driver sets it on its own thread.
fn wait_for_pending(core: &Core, wanted: u64) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while core.metrics_snapshot()[0].pending != wanted {
        assert!(
            std::time::Instant::now() < deadline,
            "{} pending",
            core.metrics_snapshot()[0].pending
        );
        std::thread::yield_now();
    }
}

#[test]
fn full_queues_refuse_and_cancelled_requests_leave() {
    let policy = "dynamic_batching { default_queue_policy { max_queue_size: 2 } }";
    let folder =
        Folder::new().model("m", &["1"], &echo_config(&format!("max_batch_size: 1 {policy}")));
    let Gated { core, entered, leave } = gated(&folder);
    let running = send(&core, request("m", &[1, 1], 0));
    entered.recv_timeout(PATIENCE).unwrap();
    let kept = send(&core, request("m", &[1, 1], 1));
    let cancelled = request("m", &[1, 1], 2);
    let token = cancelled.cancel.clone();
    let cancelled = send(&core, cancelled);
    let never = Box::new(|_| panic!("a refused request is not answered"));
    let refused = core.infer(request("m", &[1, 1], 3), never).unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (ErrorCode::Unavailable, "[request id: <id_unknown>] Exceeds maximum queue size")
    );
    token.cancel();
    assert_eq!(answer(&cancelled).unwrap_err().code, ErrorCode::Cancelled);
    leave.send(()).unwrap();
    leave.send(()).unwrap();
    assert!(answer(&running).is_ok() && answer(&kept).is_ok());
    let metrics = core.metrics_snapshot().remove(0);
    // As in recorded Triton, what a full queue refuses is not counted.
    for (reason, wanted) in [(FailureReason::Canceled, 1), (FailureReason::Rejected, 0)] {
        let count = metrics.failures.iter().find(|(found, _)| *found == reason).unwrap().1;
        assert_eq!(count, wanted, "{reason:?}");
    }
    assert_eq!((metrics.pending, metrics.stats.fail.count), (0, 1));
}

#[test]
fn an_ordered_answer_may_bring_the_next_request_to_the_same_model() {
    let config = echo_config(
        "max_batch_size: 1 dynamic_batching { preserve_ordering: true } instance_group { count: 2 kind: KIND_CPU }",
    );
    let folder = Folder::new().model("m", &["1"], &config);
    let core = start(&folder);
    let (to, from) = channel();
    for chain in 0..8 {
        follow(&core, chain * 100, 40, to.clone());
    }
    drop(to);
    let ends: Vec<i32> = (0..8).map(|_| from.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(ends.iter().sum::<i32>(), 8 * 40 + 100 * 28);
}

/// Sends `value`, and from within its answer the next value, so many times.
fn follow(core: &Arc<Core>, value: i32, rest: i32, to: Sender<i32>) {
    let again = Arc::downgrade(core);
    let sink = Box::new(move |answer: galatea_serving::SinkAnswer| {
        let given = answer.result.unwrap().unwrap().outputs[0].tensor.to_vec::<i32>().unwrap()[0];
        match again.upgrade() {
            Some(core) if rest > 0 => follow(&core, given + 1, rest - 1, to.clone()),
            _ => to.send(given).unwrap(),
        }
    });
    core.infer(request("m", &[1, 1], value), sink).unwrap();
}

#[test]
fn ordered_answers_leave_in_order_from_several_instances() {
    let config = echo_config(
        "max_batch_size: 1 dynamic_batching { preserve_ordering: true } instance_group { count: 3 kind: KIND_CPU }",
    );
    let folder = Folder::new().model("m", &["1"], &config);
    let core = start(&folder);
    let (to, from) = channel();
    for number in 0..200 {
        let to = to.clone();
        core.infer(request("m", &[1, 1], number), Box::new(move |_| to.send(number).unwrap()))
            .unwrap();
    }
    let order: Vec<i32> = (0..200).map(|_| from.recv_timeout(PATIENCE).unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_shutdown_drains_and_then_refuses() {
    let folder = Folder::new().model("m", &["1"], &echo_config(""));
    let Gated { core, entered, leave } = gated(&folder);
    let running = send(&core, request("m", &[1], 4));
    entered.recv_timeout(PATIENCE).unwrap();
    let waiting = send(&core, request("m", &[1], 5));
    let short = core.shutdown(Duration::ZERO);
    assert!(matches!(short, ShutdownReport { complete: false, unanswered: 2, .. }), "{short:?}");
    assert_eq!(answer(&waiting).unwrap_err().code, ErrorCode::Unavailable);
    leave.send(()).unwrap();
    assert!(answer(&running).is_ok());
    let refused = core.infer(request("m", &[1], 6), Box::new(|_| {})).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);

    let folder = Folder::new().model("m", &["1"], &echo_config(""));
    let core = start(&folder);
    let answers: Vec<_> = (0..50).map(|number| send(&core, request("m", &[1], number))).collect();
    assert!(core.shutdown(PATIENCE).complete);
    assert!(answers.iter().all(|from| answer(from).is_ok()));
}

#[test]
fn many_clients_lose_nothing_and_the_statistics_add_up() {
    let config = echo_config(
        "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 200 } \
         instance_group { count: 2 kind: KIND_CPU }",
    );
    let folder = Folder::new().model("m", &["1"], &config);
    let core = start(&folder);
    std::thread::scope(|scope| {
        for client in 0..16 {
            let core = &core;
            scope.spawn(move || {
                for number in 0..100 {
                    let expected = client * 1000 + number;
                    let rows = i64::from(number % 3 + 1);
                    let got = value(&send(core, request("m", &[rows, 1], expected)));
                    assert!(got.to_vec::<i32>().unwrap().iter().all(|&value| value == expected));
                    assert_eq!(i64::try_from(got.elements()).unwrap(), rows);
                }
            });
        }
    });
    let statistics = core.model_statistics(Some("m"), "").unwrap().remove(0);
    assert_eq!(statistics.inference_stats.success.count, 1600);
    assert_eq!(statistics.inference_count, 16 * (34 + 33 * 2 + 33 * 3));
    let items: u64 =
        statistics.batch_stats.iter().map(|b| b.batch_size * b.compute_infer.count).sum();
    let runs: u64 = statistics.batch_stats.iter().map(|b| b.compute_infer.count).sum();
    assert_eq!((items, runs), (statistics.inference_count, statistics.execution_count));
    assert!(statistics.batch_stats.iter().all(|b| b.batch_size <= 8));
}

/// Keeps the thread busy for so long.
fn compute_for(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Tells which thread executed, and takes as many milliseconds as the value says.
#[derive(Debug)]
struct Whereabouts;

impl ModelBackend for Whereabouts {
    fn name(&self) -> &str {
        "whereabouts"
    }
    fn default_model_filename(&self) -> &str {
        "model.whereabouts"
    }
    fn load(&self, _files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(Self))
    }
}

impl BackendModel for Whereabouts {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(Self))
    }
}

impl ModelInstance for Whereabouts {
    fn execute(&mut self, payload: BatchPayload) {
        let here = std::thread::current().name().unwrap_or("").to_owned();
        batch::execute(payload, |inputs| {
            let value = inputs[0].1.to_vec::<i32>().unwrap()[0];
            compute_for(Duration::from_millis(u64::try_from(value).unwrap()));
            let elsewhere = i32::from(here.starts_with("m_"));
            Ok(vec![("OUT".to_owned(), Tensor::from_vec(&[1, 1], vec![elsewhere]).unwrap())])
        });
    }
    fn time_depends_on_sizes_only(&self) -> bool {
        true
    }
}

#[test]
fn proven_short_executions_run_on_the_callers_thread_until_one_is_long() {
    let config = echo_config("max_batch_size: 4").replace("echo", "whereabouts");
    let folder = Folder::new().model("m", &["1"], &config);
    let core = Core::start(options(&folder.0), vec![Arc::new(Whereabouts)]).unwrap();
    let elsewhere =
        |millis| value(&send(&core, request("m", &[1, 1], millis))).to_vec::<i32>().unwrap() == [1];
    assert!(elsewhere(0), "nothing is known of the first execution");
    let moved = (0..10_000).any(|_| !elsewhere(0));
    assert!(moved, "never ran on this thread");
    elsewhere(2);
    assert!(elsewhere(0), "a long execution ends the proof");
}

#[test]
fn equal_requests_are_answered_from_the_cache_and_counted_as_such() {
    let config = echo_config("max_batch_size: 4 response_cache { enable: true }");
    let folder = Folder::new().model("m", &["1"], &config);
    let cached = CoreOptions { response_cache_bytes: Some(1 << 16), ..options(&folder.0) };
    let core = Core::start(cached, vec![Arc::new(Echo::default())]).unwrap();
    for (input, id) in [(5, "a"), (5, "b"), (6, "c")] {
        let request = InferenceRequest { id: id.to_owned(), ..request("m", &[2, 1], input) };
        let response = answer(&send(&core, request)).unwrap();
        assert_eq!(response.outputs[0].tensor.to_vec::<i32>().unwrap(), [input, input]);
        assert_eq!(response.id, id);
    }
    assert!(answer(&send(&core, request("m", &[1, 1], -2))).is_err());
    let statistics = core.model_statistics(Some("m"), "").unwrap().remove(0);
    let stats = &statistics.inference_stats;
    assert_eq!((statistics.inference_count, statistics.execution_count), (4, 3));
    assert_eq!((stats.success.count, stats.queue.count, stats.compute_infer.count), (3, 3, 2));
    assert_eq!((stats.cache_hit.count, stats.cache_miss.count), (1, 2));
    assert!(core.metrics_snapshot()[0].response_cache);
}

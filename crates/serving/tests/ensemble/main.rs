//! Ensembles from folders on disk to answers, over a backend in memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod changes;
mod limits;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::core::{LoadOverrides, UnloadDependents};
use galatea_serving::request::{InputData, InputTensor, OutputTensor};
use galatea_serving::statistics::{FailureReason, ModelStatistics};
use galatea_serving::{
    ControlMode, Core, CoreOptions, CorrelationId, ErrorCode, InferenceRequest, InferenceResponse,
    ParameterValue, ServingError, SinkAnswer, batch,
};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Models that do what the parameter `does` says: `sum` adds all inputs and 1 and gives the same at every output,
/// `plain` adds no 1, `half` gives only the first output, `fail` fails, `hold` tells the test and waits for it, `spread`
/// is decoupled and gives one response for each element, `tell` too and tells the test of each.
#[derive(Debug)]
struct Steps {
    entered: Sender<String>,
    leave: Arc<Mutex<Receiver<()>>>,
}

#[derive(Clone)]
struct Step {
    name: String,
    does: String,
    entered: Sender<String>,
    leave: Arc<Mutex<Receiver<()>>>,
}

impl ModelBackend for Steps {
    fn name(&self) -> &str {
        "steps"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let does = files.parameter("does").unwrap_or("sum").to_owned();
        if does == "broken" {
            return Err(ServingError::internal("the file is broken"));
        }
        let (entered, leave) = (self.entered.clone(), Arc::clone(&self.leave));
        Ok(Box::new(Step { name: files.name.clone(), does, entered, leave }))
    }
}

impl BackendModel for Step {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for Step {
    fn execute(&mut self, payload: BatchPayload) {
        match self.does.as_str() {
            "spread" => return spread(payload, || {}),
            "tell" => return spread(payload, || self.entered.send("gave".to_owned()).unwrap()),
            _ => {}
        }
        let names: Vec<String> =
            payload.context().config.output.iter().map(|output| output.name.clone()).collect();
        batch::execute(payload, |inputs| {
            if self.does == "hold" {
                self.entered.send(self.name.clone()).unwrap();
                let _closed = self.leave.lock().unwrap().recv();
            }
            if self.does == "fail" {
                return Err(ServingError::new(ErrorCode::Unsupported, "asked to fail"));
            }
            let shape = inputs[0].1.shape().to_vec();
            let first = i32::from(self.does != "plain");
            let mut sum = vec![first; shape.iter().product()];
            for (_, tensor) in &inputs {
                sum.iter_mut().zip(tensor.to_vec::<i32>()?).for_each(|(sum, value)| *sum += value);
            }
            let count = if self.does == "half" { 1 } else { names.len() };
            let sum = Tensor::from_vec(&shape, sum)?;
            Ok(names.into_iter().take(count).map(|name| (name, sum.clone())).collect())
        });
    }
}

fn spread(payload: BatchPayload, gave: impl Fn()) {
    for mut request in payload.detach() {
        let inputs = batch::gather(request.config(), std::slice::from_ref(&request)).unwrap();
        for value in inputs[0].1.to_vec::<i32>().unwrap() {
            let tensor = Tensor::from_vec(&[1], vec![value]).unwrap();
            request.respond(Ok(vec![OutputTensor { name: "OUT".to_owned(), tensor }]));
            gave();
        }
        request.finish();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("galatea-ensemble-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(self, name: &str, config: &str) -> Self {
        fs::create_dir_all(self.0.join(name).join("1")).unwrap();
        fs::write(self.0.join(name).join("config.pbtxt"), config).unwrap();
        self
    }

    /// A model of the backend.
    fn model(self, name: &str, does: &str, inputs: &str, outputs: &str, extra: &str) -> Self {
        let ends = ends("input", inputs) + &ends("output", outputs);
        let policy = match does {
            "spread" | "tell" => "model_transaction_policy { decoupled: true }",
            _ => "",
        };
        let text = format!(
            "backend: \"steps\" {ends} {policy} {extra} \
             parameters {{ key: \"does\" value {{ string_value: \"{does}\" }} }}"
        );
        self.write(name, &text)
    }

    /// An ensemble; a step is `model(IN=a, ...) -> (OUT=b, ...)`.
    fn ensemble(
        self,
        name: &str,
        inputs: &str,
        outputs: &str,
        extra: &str,
        steps: &[&str],
    ) -> Self {
        let ends = ends("input", inputs) + &ends("output", outputs);
        let steps: String = steps.iter().map(|step| step_text(step)).collect();
        let text =
            format!("platform: \"ensemble\" {ends} {extra} ensemble_scheduling {{ {steps} }}");
        self.write(name, &text)
    }
}

fn ends(kind: &str, names: &str) -> String {
    let end = |name: &str| {
        let (name, option) = match name.strip_suffix('?') {
            Some(name) => (name, "optional: true"),
            None => (name, ""),
        };
        let (name, dims) = name.split_once(':').unwrap_or((name, "-1"));
        format!("{kind} {{ name: \"{name}\" data_type: TYPE_INT32 dims: [{dims}] {option} }} ")
    };
    names.split_whitespace().map(end).collect()
}

fn step_text(step: &str) -> String {
    let (left, writes) = step.split_once(" -> ").unwrap();
    let (model, reads) = left.split_once('(').unwrap();
    let (model, version) = model.split_once('@').unwrap_or((model, "-1"));
    let map = |kind: &str, pairs: &str| -> String {
        let pairs = pairs.trim_matches(['(', ')']).split(", ");
        let entry = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap();
            format!("{kind} {{ key: \"{key}\" value: \"{value}\" }} ")
        };
        pairs.map(entry).collect()
    };
    let maps = map("input_map", reads) + &map("output_map", writes);
    format!("step {{ model_name: \"{model}\" model_version: {version} {maps} }} ")
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

struct Server {
    core: Arc<Core>,
    entered: Receiver<String>,
    leave: Sender<()>,
}

fn start(folder: &Folder) -> Server {
    start_with(folder, ControlMode::None)
}

fn explicit(folder: &Folder, load: &str) -> Server {
    let load = load.split_whitespace().map(str::to_owned).collect();
    start_with(folder, ControlMode::Explicit { load })
}

fn start_with(folder: &Folder, control_mode: ControlMode) -> Server {
    let ((entered_to, entered), (leave, leave_from)) = (channel(), channel());
    let backend = Steps { entered: entered_to, leave: Arc::new(Mutex::new(leave_from)) };
    let options = CoreOptions {
        repositories: vec![folder.0.clone()],
        control_mode,
        exit_on_error: false,
        response_cache_bytes: Some(1 << 16),
        ..CoreOptions::default()
    };
    Server { core: Core::start(options, vec![Arc::new(backend)]).unwrap(), entered, leave }
}

fn input(name: &str, shape: &[i64], values: &[i32]) -> InputTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    InputTensor {
        name: name.to_owned(),
        datatype: DataType::Int32,
        shape: shape.to_vec(),
        data: InputData::Raw(bytes.into()),
    }
}

fn request(model: &str, inputs: Vec<InputTensor>) -> InferenceRequest {
    InferenceRequest { model_name: model.to_owned(), inputs, ..InferenceRequest::default() }
}

/// A request with the vector `values` as input `A`.
fn simple(model: &str, values: &[i32]) -> InferenceRequest {
    let size = i64::try_from(values.len()).unwrap();
    request(model, vec![input("A", &[size], values)])
}

impl Server {
    fn send(&self, request: InferenceRequest) -> Receiver<SinkAnswer> {
        let (to, from) = channel();
        let sink = move |answer: SinkAnswer| to.send(answer).unwrap();
        self.core.infer(request, Box::new(sink)).unwrap();
        from
    }

    fn ask(&self, request: InferenceRequest) -> Result<InferenceResponse, ServingError> {
        one(&self.send(request))
    }

    fn statistics(&self, model: &str) -> ModelStatistics {
        self.core.model_statistics(Some(model), "").unwrap().remove(0)
    }

    fn reason(&self, model: &str) -> String {
        let failures = self.core.load_failures();
        failures.into_iter().find(|failure| failure.model == model).unwrap().reason
    }

    fn ready(&self, model: &str) -> bool {
        self.core.model_ready(model, "").unwrap()
    }
}

/// The only answer.
fn one(from: &Receiver<SinkAnswer>) -> Result<InferenceResponse, ServingError> {
    let answer = from.recv_timeout(PATIENCE).expect("an answer");
    assert!(answer.is_final);
    assert!(from.try_recv().is_err(), "answered twice");
    answer.result.map(|response| response.expect("a response"))
}

/// All answers up to the final one.
fn all(from: &Receiver<SinkAnswer>) -> Vec<SinkAnswer> {
    let mut answers = Vec::new();
    loop {
        let answer = from.recv_timeout(PATIENCE).expect("an answer");
        let is_final = answer.is_final;
        answers.push(answer);
        if is_final {
            return answers;
        }
    }
}

/// Number of responses among answers: the last answer may have one, or tell only that nothing more comes.
fn responses(answers: &[SinkAnswer]) -> usize {
    answers.iter().filter(|answer| matches!(answer.result, Ok(Some(_)))).count()
}

fn values(response: &InferenceResponse) -> Vec<(&str, Vec<i32>)> {
    let value = |output: &OutputTensor| output.tensor.to_vec::<i32>().expect("INT32 in the tests");
    response.outputs.iter().map(|output| (&*output.name, value(output))).collect()
}

fn one_to_one(folder: Folder, name: &str, does: &str) -> Folder {
    folder.model(name, does, "IN", "OUT", "")
}

/// A -> first -> (left, right) -> join -> Y, and right -> Z.
fn diamond() -> Folder {
    let folder = one_to_one(Folder::new(), "first", "sum");
    let folder = one_to_one(one_to_one(folder, "left", "sum"), "right", "sum");
    folder.model("join", "sum", "IN0 IN1", "OUT", "").ensemble(
        "e",
        "A",
        "Y Z",
        "",
        &[
            "join(IN0=l, IN1=Z) -> (OUT=Y)",
            "left(IN=f) -> (OUT=l)",
            "right(IN=f) -> (OUT=Z)",
            "first(IN=A) -> (OUT=f)",
        ],
    )
}

#[test]
fn a_diamond_of_models_answers_as_one_and_everything_is_counted() {
    let folder = diamond();
    let server = start(&folder);
    let asked = InferenceRequest {
        id: "seven".to_owned(),
        correlation: CorrelationId::Uint(9),
        sequence_end: true,
        ..simple("e", &[10, 20])
    };
    let response = server.ask(asked).unwrap();
    assert_eq!((&*response.model_name, &*response.model_version), ("e", "1"));
    assert_eq!(response.id, "seven");
    assert_eq!(values(&response), [("Z", vec![12, 22]), ("Y", vec![25, 45])]);
    let parameters = [
        ("sequence_id".to_owned(), ParameterValue::Int(9)),
        ("sequence_start".to_owned(), ParameterValue::Bool(false)),
        ("sequence_end".to_owned(), ParameterValue::Bool(true)),
    ];
    assert_eq!(response.parameters, [parameters.clone(), parameters].concat());
    let own = server.statistics("e");
    let stats = own.inference_stats;
    assert_eq!((own.inference_count, own.execution_count), (1, 1));
    assert_eq!((stats.success.count, stats.queue.count, stats.compute_infer.count), (1, 1, 1));
    let steps = ["first", "left", "right", "join"].map(|step| server.statistics(step));
    assert!(steps.iter().all(|step| step.execution_count == 1));
    let infer: u64 = steps.iter().map(|step| step.inference_stats.compute_infer.ns).sum();
    let queue: u64 = steps.iter().map(|step| step.inference_stats.queue.ns).sum();
    assert_eq!((stats.compute_infer.ns, stats.queue.ns), (infer, queue));
}

#[test]
fn only_what_the_wanted_outputs_need_runs() {
    let folder = diamond();
    let server = start(&folder);
    let asked = InferenceRequest { requested_outputs: vec!["Z".to_owned()], ..simple("e", &[1]) };
    let response = server.ask(asked).unwrap();
    assert_eq!(values(&response), [("Z", vec![3])]);
    let count = |model| server.statistics(model).execution_count;
    assert_eq!(["first", "right", "left", "join"].map(count), [1, 1, 0, 0]);
}

#[test]
fn ready_steps_run_at_the_same_time() {
    let folder = one_to_one(one_to_one(Folder::new(), "x", "hold"), "y", "hold").ensemble(
        "e",
        "A",
        "X Y",
        "",
        &["x(IN=A) -> (OUT=X)", "y(IN=A) -> (OUT=Y)"],
    );
    let server = start(&folder);
    let from = server.send(simple("e", &[1]));
    let mut entered: Vec<String> =
        (0..2).map(|_| server.entered.recv_timeout(PATIENCE).unwrap()).collect();
    entered.sort();
    assert_eq!(entered, ["x", "y"]);
    drop(server.leave);
    assert_eq!(values(&one(&from).unwrap()), [("Y", vec![2]), ("X", vec![2])]);
}

#[test]
fn a_failing_step_fails_the_request_with_its_code_and_the_rest_does_not_run() {
    let folder = one_to_one(one_to_one(Folder::new(), "bad", "fail"), "next", "sum").ensemble(
        "e",
        "A",
        "Z",
        "",
        &["bad(IN=A) -> (OUT=m)", "next(IN=m) -> (OUT=Z)"],
    );
    let server = start(&folder);
    let error = server.ask(simple("e", &[1])).unwrap_err();
    assert_eq!(error, ServingError::new(ErrorCode::Unsupported, "in ensemble 'e', asked to fail"));
    assert_eq!(server.statistics("next").execution_count, 0);
    let own = server.statistics("e").inference_stats;
    // The failure of the step, and that of the request.
    assert_eq!((own.success.count, own.fail.count), (0, 2));
    let rows = server.core.metrics_snapshot();
    let row = rows.into_iter().find(|row| row.model == "e").unwrap();
    assert!(row.failures.contains(&(FailureReason::Other, 2)));
}

#[test]
fn models_with_and_without_batches_work_together() {
    let folder = Folder::new()
        .model("rows", "sum", "IN:2", "OUT:2", "max_batch_size: 4")
        .model("flat", "sum", "IN:-1,2", "OUT:-1,2", "")
        .ensemble(
            "batched",
            "A:2",
            "Z:2",
            "max_batch_size: 4",
            &["rows(IN=A) -> (OUT=m)", "flat(IN=m) -> (OUT=n)", "rows(IN=n) -> (OUT=Z)"],
        )
        .ensemble("bare", "A:2", "Z:2", "", &["rows(IN=A) -> (OUT=Z)"]);
    let server = start(&folder);
    let asked = request("batched", vec![input("A", &[2, 2], &[1, 2, 3, 4])]);
    let response = server.ask(asked).unwrap();
    assert_eq!(response.outputs[0].tensor.shape(), [2, 2]);
    assert_eq!(values(&response), [("Z", vec![4, 5, 6, 7])]);
    assert_eq!(server.statistics("batched").inference_count, 2);
    let response = server.ask(request("bare", vec![input("A", &[2], &[1, 2])])).unwrap();
    assert_eq!(response.outputs[0].tensor.shape(), [2]);
}

#[test]
fn optional_inputs_are_passed_on_or_left_out() {
    let folder = Folder::new().model("m", "sum", "IN MORE?", "OUT", "").ensemble(
        "e",
        "A B?",
        "Z",
        "",
        &["m(IN=A, MORE=B) -> (OUT=Z)"],
    );
    let server = start(&folder);
    let without = server.ask(simple("e", &[5])).unwrap();
    assert_eq!(values(&without), [("Z", vec![6])]);
    let both = request("e", vec![input("A", &[1], &[5]), input("B", &[1], &[10])]);
    assert_eq!(values(&server.ask(both).unwrap()), [("Z", vec![16])]);
}

#[test]
fn outputs_that_a_model_does_not_give_are_left_out() {
    let folder = one_to_one(Folder::new(), "plus", "sum")
        .model("half", "half", "IN", "OUT0 OUT1", "")
        .ensemble("some", "A", "Y Z", "", &["half(IN=A) -> (OUT0=Y, OUT1=Z)"])
        .ensemble("none", "A", "Z", "", &["half(IN=A) -> (OUT1=Z)"])
        .ensemble("chain", "A", "Z", "", &["half(IN=A) -> (OUT1=m)", "plus(IN=m) -> (OUT=Z)"]);
    let server = start(&folder);
    assert_eq!(values(&server.ask(simple("some", &[1])).unwrap()), [("Y", vec![2])]);
    let none = server.ask(simple("none", &[1])).unwrap();
    assert!(none.outputs.is_empty() && none.parameters.is_empty());
    assert_eq!(
        server.ask(simple("chain", &[1])).unwrap_err().message,
        "in ensemble 'chain', [request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'plus'. Got \
         input(s) [], but missing required input(s) ['IN']. Please provide all required input(s)."
    );
}

#[test]
fn each_response_of_a_decoupled_model_goes_through_the_steps_behind_it() {
    let folder = one_to_one(Folder::new(), "spread", "spread");
    let folder = one_to_one(folder, "plus", "sum").ensemble(
        "e",
        "A",
        "Z",
        "",
        &["plus(IN=A) -> (OUT=a)", "spread(IN=a) -> (OUT=b)", "plus(IN=b) -> (OUT=Z)"],
    );
    let server = start(&folder);
    assert!(server.core.resolve("e", "").unwrap().is_decoupled());
    let answers = all(&server.send(simple("e", &[10, 20, 30])));
    let last = answers.last().unwrap();
    assert!(last.is_final && last.result.is_ok());
    let given: Vec<Vec<i32>> = answers
        .iter()
        .filter_map(|answer| answer.result.as_ref().unwrap().as_ref())
        .map(|response| response.outputs[0].tensor.to_vec().unwrap())
        .collect();
    assert_eq!(given, [[12], [22], [32]]);
    assert_eq!(server.statistics("plus").execution_count, 4);
    assert_eq!(server.statistics("e").inference_stats.success.count, 1);
    let none = all(&server.send(request("e", vec![input("A", &[0], &[])])));
    assert_eq!(none.len(), 1);
}

#[test]
fn the_last_response_of_decoupled_steps_says_so() {
    let folder = one_to_one(one_to_one(Folder::new(), "spread", "spread"), "held", "hold");
    let folder =
        folder.ensemble("e", "A", "Z", "", &["spread(IN=A) -> (OUT=b)", "held(IN=b) -> (OUT=Z)"]);
    let server = start(&folder);
    let from = server.send(simple("e", &[10, 20]));
    server.entered.recv_timeout(PATIENCE).unwrap();
    // The first step is over before the second one answers.
    let end = Instant::now() + PATIENCE;
    while server.statistics("spread").inference_stats.success.count == 0 {
        assert!(Instant::now() < end, "the decoupled step did not end");
        std::thread::yield_now();
    }
    server.leave.send(()).unwrap();
    server.entered.recv_timeout(PATIENCE).unwrap();
    server.leave.send(()).unwrap();
    let answers = all(&from);
    assert_eq!(answers.len(), 2);
    let last = answers.last().unwrap();
    assert!(last.is_final && last.result.as_ref().unwrap().is_some());
    assert_eq!(server.statistics("e").inference_stats.success.count, 1);
}

#[test]
fn ensembles_may_contain_ensembles() {
    let folder = one_to_one(Folder::new(), "plus", "sum");
    let folder = one_to_one(folder, "bad", "fail")
        .ensemble("inner", "A", "Z", "", &["plus(IN=A) -> (OUT=m)", "plus(IN=m) -> (OUT=Z)"])
        .ensemble("sad", "A", "Z", "", &["bad(IN=A) -> (OUT=Z)"])
        .ensemble("outer", "A", "Z", "", &["inner(A=A) -> (Z=m)", "plus(IN=m) -> (OUT=Z)"])
        .ensemble("outer_sad", "A", "Z", "", &["sad(A=A) -> (Z=Z)"]);
    let server = start(&folder);
    assert_eq!(values(&server.ask(simple("outer", &[1])).unwrap()), [("Z", vec![4])]);
    let infer = |model| server.statistics(model).inference_stats.compute_infer.ns;
    assert_eq!(infer("outer"), infer("plus"));
    let error = server.ask(simple("outer_sad", &[1])).unwrap_err();
    assert_eq!(error.message, "in ensemble 'outer_sad', in ensemble 'sad', asked to fail");
}

#[test]
fn what_is_cancelled_starts_no_further_step() {
    let folder = one_to_one(one_to_one(Folder::new(), "held", "hold"), "next", "sum").ensemble(
        "e",
        "A",
        "Z",
        "",
        &["held(IN=A) -> (OUT=m)", "next(IN=m) -> (OUT=Z)"],
    );
    let server = start(&folder);
    let asked = simple("e", &[1]);
    let cancel = asked.cancel.clone();
    let from = server.send(asked);
    server.entered.recv_timeout(PATIENCE).unwrap();
    cancel.cancel();
    server.leave.send(()).unwrap();
    assert_eq!(one(&from).unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!(server.statistics("next").execution_count, 0);
}

#[test]
fn an_ensemble_with_a_cache_answers_equal_requests_without_its_models() {
    let folder = one_to_one(Folder::new(), "plus", "sum").ensemble(
        "e",
        "A",
        "Z",
        "response_cache { enable: true }",
        &["plus(IN=A) -> (OUT=Z)"],
    );
    let server = start(&folder);
    for _ in 0..3 {
        assert_eq!(values(&server.ask(simple("e", &[1])).unwrap()), [("Z", vec![2])]);
    }
    assert_eq!(server.statistics("plus").execution_count, 1);
    let own = server.statistics("e");
    assert_eq!((own.inference_stats.cache_hit.count, own.inference_stats.cache_miss.count), (2, 1));
    assert_eq!((own.inference_stats.success.count, own.inference_count), (3, 1));
}

#[test]
fn every_one_of_many_requests_ends_once_also_when_clients_give_up() {
    let group = "instance_group { count: 2 kind: KIND_CPU }";
    let folder = one_to_one(Folder::new(), "spread", "spread")
        .model("plus", "sum", "IN", "OUT", group)
        .model("picky", "sum", "IN:1", "OUT:1", group)
        .write(
            "e",
            &format!(
                "platform: \"ensemble\" {} {} ensemble_scheduling {{ max_inflight_requests: 2 {} }}",
                ends("input", "A"),
                ends("output", "Y Z"),
                [
                    step_text("plus(IN=A) -> (OUT=a)"),
                    step_text("spread(IN=a) -> (OUT=b)"),
                    step_text("plus(IN=b) -> (OUT=Y)"),
                    step_text("picky(IN=b) -> (OUT=Z)"),
                ]
                .concat()
            ),
        )
        .ensemble("picky_e", "A", "Z", "", &["picky(IN=A) -> (OUT=Z)"]);
    let server = start(&folder);
    let elements = [7; 40];
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (server, elements) = (&server.core, &elements);
            scope.spawn(move || {
                for number in 0..40 {
                    let model = if number % 8 == 3 { "picky_e" } else { "e" };
                    let asked = simple(model, elements);
                    let cancel = asked.cancel.clone();
                    let (to, from) = channel();
                    let sink = move |answer: SinkAnswer| to.send(answer).unwrap();
                    server.infer(asked, Box::new(sink)).unwrap();
                    if (thread + number) % 5 == 0 {
                        cancel.cancel();
                    }
                    let answers = all(&from);
                    let last = answers.last().unwrap();
                    if model == "picky_e" {
                        assert_eq!(answers.len(), 1);
                        assert!(last.result.is_err());
                    } else if last.result.is_ok() {
                        assert_eq!(responses(&answers), elements.len());
                    } else {
                        assert_eq!(last.result.as_ref().unwrap_err().code, ErrorCode::Cancelled);
                    }
                    // The sink is gone, so nothing can come any more.
                    assert!(from.recv_timeout(PATIENCE).is_err());
                }
            });
        }
    });
    assert!(server.core.shutdown(PATIENCE).complete);
}

#[test]
fn a_shutdown_lets_ensembles_finish_their_steps() {
    let folder = one_to_one(one_to_one(Folder::new(), "held", "hold"), "next", "sum").ensemble(
        "e",
        "A",
        "Z",
        "",
        &["held(IN=A) -> (OUT=m)", "next(IN=m) -> (OUT=Z)"],
    );
    let server = start(&folder);
    let from = server.send(simple("e", &[1]));
    server.entered.recv_timeout(PATIENCE).unwrap();
    let core = Arc::clone(&server.core);
    let stop = std::thread::spawn(move || core.shutdown(PATIENCE));
    while server.core.is_live() {
        std::thread::yield_now();
    }
    server.leave.send(()).unwrap();
    assert_eq!(values(&one(&from).unwrap()), [("Z", vec![3])]);
    assert!(stop.join().unwrap().complete);
}

#[test]
fn ensembles_bring_their_models_and_go_and_come_with_them() {
    let folder = one_to_one(Folder::new(), "plus", "sum")
        .ensemble("e", "A", "Z", "", &["plus(IN=A) -> (OUT=Z)"])
        .ensemble("over", "A", "Z", "", &["e(A=A) -> (Z=Z)"]);
    let server = explicit(&folder, "over");
    assert!(["plus", "e", "over"].map(|model| server.ready(model)) == [true; 3]);
    assert_eq!(values(&server.ask(simple("over", &[1])).unwrap()), [("Z", vec![2])]);
    server.core.unload_model("plus", UnloadDependents::Keep).unwrap();
    assert!(["plus", "e", "over"].map(|model| server.ready(model)) == [false; 3]);
    let refused = server.core.infer(simple("e", &[1]), Box::new(|_| {})).unwrap_err();
    assert_eq!(refused.message, "Request for unknown model: 'e' has no available versions");
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!(values(&server.ask(simple("over", &[1])).unwrap()), [("Z", vec![2])]);
    // A step that is loaded anew serves the ensembles over it at once.
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!(values(&server.ask(simple("over", &[1])).unwrap()), [("Z", vec![2])]);
    // Nobody but the outer ensemble wanted the inner one; the other model was asked for by its name.
    server.core.unload_model("over", UnloadDependents::Unload).unwrap();
    assert_eq!(["plus", "e", "over"].map(|model| server.ready(model)), [true, false, false]);
}

#[test]
fn ensembles_that_cannot_be_served_say_why() {
    let folder = one_to_one(one_to_one(Folder::new(), "plus", "sum"), "broken", "broken")
        .ensemble("missing", "A", "Z", "", &["nobody(IN=A) -> (OUT=Z)"])
        .ensemble("failed", "A", "Z", "", &["broken(IN=A) -> (OUT=Z)"])
        .ensemble("version", "A", "Z", "", &["plus@7(IN=A) -> (OUT=Z)"])
        .ensemble("one", "A", "Z", "", &["two(A=A) -> (Z=Z)"])
        .ensemble("two", "A", "Z", "", &["one(A=A) -> (Z=Z)"])
        .ensemble("loose", "A", "Z", "", &["plus(IN=A) -> (OUT=m)", "plus(IN=x) -> (OUT=Z)"])
        .ensemble("strange", "A", "Z", "", &["plus(IN=A) -> (NO=Z)"]);
    let server = start(&folder);
    let texts = [
        ("missing", "ensemble missing contains models that are not available or ambiguous: nobody"),
        (
            "failed",
            "ensemble 'failed' depends on 'broken' which has no loaded version. Model 'broken' loading failed",
        ),
        ("version", "ensemble 'version' depends on 'plus' whose required version 7 is not loaded."),
        ("one", "circular dependency between ensembles: one -> ... -> two -> one"),
        (
            "loose",
            "output 'Z' for ensemble 'loose' is not written: at least one of its depending tensors, 'x', is not",
        ),
        (
            "strange",
            "in ensemble strange, ensemble tensor Z is mapped from non-existing output NO in model plus",
        ),
    ];
    for (model, text) in texts {
        let reason = server.reason(model);
        assert!(reason.contains(text), "{model}: {reason}");
        assert!(!server.ready(model));
        // An ensemble that does not come as far as a load has no version in the index.
        let index = server.core.repository_index(false);
        let line = index.iter().find(|line| line.name == model).unwrap();
        assert_eq!((&line.version, &line.state), (&None, &None), "{model}");
    }
}

#[test]
fn labels_are_those_of_the_model_that_makes_the_output() {
    let folder = Folder::new()
        .write(
            "plus",
            "backend: \"steps\" input { name: \"IN\" data_type: TYPE_INT32 dims: [-1] } \
             output { name: \"OUT\" data_type: TYPE_INT32 dims: [-1] label_filename: \"labels.txt\" }",
        )
        .ensemble("e", "A", "Z", "", &["plus(IN=A) -> (OUT=Z)"])
        .ensemble("over", "A", "Y", "", &["e(A=A) -> (Z=Y)"]);
    fs::write(folder.0.join("plus/labels.txt"), "cat\ndog\n").unwrap();
    let server = start(&folder);
    assert_eq!(server.core.resolve("over", "").unwrap().labels("Y").unwrap(), ["cat", "dog"]);
}

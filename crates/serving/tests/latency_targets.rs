//! Latency goals of models and requests: which requests are refused, how long they wait for company, and what is
//! counted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use galatea_serving::backend::builtin;
use galatea_serving::request::{InputData, InputTensor, ParameterValue, SinkAnswer};
use galatea_serving::statistics::GoalCounts;
use galatea_serving::{Core, CoreOptions, ErrorCode, InferenceRequest, ServingError};
use galatea_tensor::DataType;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// What an execution takes where the model is slow, in milliseconds.
const RUN_MS: u64 = 40;

struct Server {
    core: Arc<Core>,
    _root: tempfile::TempDir,
}

fn parameter(name: &str, value: &str) -> String {
    format!("parameters {{ key: '{name}' value {{ string_value: '{value}' }} }} ")
}

/// A model with one instance that gives back what it gets, with more in its configuration.
fn serve(more: &str) -> Server {
    let root = tempfile::tempdir().unwrap();
    let model = root.path().join("echo");
    std::fs::create_dir_all(model.join("1")).unwrap();
    let tensor = |io: &str| format!("{io}put {{ name: '{io}' data_type: TYPE_INT32 dims: 1 }} ");
    let (io, instances) =
        (tensor("in") + &tensor("out"), "instance_group { count: 1 kind: KIND_CPU }");
    let config = format!("backend: 'identity' {io} {instances} {more}");
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
    let options = CoreOptions {
        repositories: vec![root.path().to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    Server { core: Core::start(options, builtin::all()).unwrap(), _root: root }
}

impl Server {
    fn slow(goal_ms: &str, admission: &str) -> Self {
        let run = parameter("execute_delay_ms", &RUN_MS.to_string());
        let goal = parameter("latency_goal_ms", goal_ms) + &parameter("admission", admission);
        serve(&format!("max_batch_size: 0 {run} {goal}"))
    }

    fn send(&self, goal: Option<ParameterValue>) -> Result<Receiver<SinkAnswer>, ServingError> {
        let batching = self.core.resolve("echo", "").unwrap().config().max_batch_size > 0;
        let request = InferenceRequest {
            model_name: "echo".to_owned(),
            inputs: vec![InputTensor {
                name: "in".to_owned(),
                datatype: DataType::Int32,
                shape: if batching { vec![1, 1] } else { vec![1] },
                data: InputData::Raw(Bytes::from_static(&[7, 0, 0, 0])),
            }],
            parameters: goal.map(|goal| ("latency_goal_ms".to_owned(), goal)).into_iter().collect(),
            ..InferenceRequest::default()
        };
        let (to, answers) = channel();
        self.core.infer(request, Box::new(move |answer| to.send(answer).unwrap()))?;
        Ok(answers)
    }

    /// Sends requests one after the other, so that it is known what they take.
    fn warm(&self) {
        for _ in 0..3 {
            // Of the first nothing is known, and later ones have nobody before them.
            answered(&self.send(Some(ParameterValue::Int(60_000))).unwrap());
        }
    }

    fn goals(&self) -> Option<GoalCounts> {
        self.core.metrics_snapshot()[0].goals
    }
}

/// Waits for the one answer.
fn answered(answers: &Receiver<SinkAnswer>) {
    let answer = answers.recv_timeout(PATIENCE).unwrap();
    assert!(answer.is_final);
    let response = answer.result.unwrap().unwrap();
    assert_eq!(response.outputs[0].tensor.to_vec::<i32>().unwrap(), [7]);
    // The sink is gone with the request.
    assert!(answers.recv_timeout(PATIENCE).is_err(), "a second answer");
}

#[test]
fn requests_are_refused_that_would_miss_the_goal_and_all_others_answered_once() {
    let server = Server::slow("150", "in_time");
    server.warm();
    let sent: Vec<Result<Receiver<SinkAnswer>, ServingError>> =
        (0..12).map(|_| server.send(None)).collect();
    let (taken, refused): (Vec<_>, Vec<_>) = sent.into_iter().partition(Result::is_ok);
    assert!((1..=3).contains(&taken.len()), "{} of 12 fit into the time", taken.len());
    taken.iter().flatten().for_each(answered);
    for error in refused.iter().filter_map(|one| one.as_ref().err()) {
        assert_eq!(error.code, ErrorCode::Unavailable);
        assert!(error.message.contains("its latency goal of 150 ms"), "{error}");
    }
    let counts = server.goals().unwrap();
    assert_eq!(counts.refused, refused.len() as u64);
    assert_eq!(counts.met + counts.missed, 3 + taken.len() as u64);
}

#[test]
fn nothing_is_refused_where_all_are_taken() {
    let server = Server::slow("1", "all");
    server.warm();
    let sent: Vec<Receiver<SinkAnswer>> = (0..4).map(|_| server.send(None).unwrap()).collect();
    sent.iter().for_each(answered);
    assert_eq!(server.goals(), Some(GoalCounts { met: 3, missed: 4, refused: 0 }));
}

#[test]
fn a_request_is_tried_now_and_then_where_none_is_predicted_to_be_in_time() {
    let server = Server::slow("1", "in_time");
    server.warm();
    let begin = Instant::now();
    assert_eq!(server.send(None).unwrap_err().code, ErrorCode::Unavailable);
    let taken = loop {
        assert!(begin.elapsed() < PATIENCE, "what was known for so long is not looked at again");
        match server.send(None) {
            Ok(answers) => break answers,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert!(server.send(None).is_err(), "one at a time");
    answered(&taken);
}

#[test]
fn a_request_says_how_soon_it_is_to_be_answered() {
    let server = Server::slow("60000", "in_time");
    server.warm();
    assert_eq!(
        server.send(Some(ParameterValue::Double(0.5))).unwrap_err().code,
        ErrorCode::Unavailable
    );
    answered(&server.send(Some(ParameterValue::Uint(30_000))).unwrap());
    let error = server.send(Some(ParameterValue::Int(-4))).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArg);
    assert!(
        error.message.contains("'latency_goal_ms': Int(-4) found, expected milliseconds"),
        "{error}"
    );
}

#[test]
fn a_request_waits_for_company_no_longer_than_its_goal_allows() {
    let delay = 3_600_000_000_u64;
    let batching = format!("dynamic_batching {{ max_queue_delay_microseconds: {delay} }} ");
    let server =
        serve(&format!("max_batch_size: 8 {batching} {}", parameter("latency_goal_ms", "100")));
    for _ in 0..4 {
        answered(&server.send(None).unwrap());
    }
    assert_eq!(server.goals().map(|goals| goals.refused), Some(0));
}

#[test]
fn a_model_without_goals_counts_none() {
    let server = serve("max_batch_size: 0");
    answered(&server.send(None).unwrap());
    assert_eq!(server.goals(), None);
    answered(&server.send(Some(ParameterValue::Int(60_000))).unwrap());
    assert_eq!(server.goals(), Some(GoalCounts { met: 1, missed: 0, refused: 0 }));
}

#[test]
fn mistakes_keep_a_model_from_loading() {
    for (more, said) in [
        (parameter("latency_goal_ms", "none"), "'none' found, expected milliseconds above 0"),
        (parameter("admission", "late"), "'late' found, expected all or in_time"),
    ] {
        let failures = serve(&format!("max_batch_size: 0 {more}")).core.load_failures();
        assert!(failures[0].reason.contains(said), "{failures:?}");
    }
}

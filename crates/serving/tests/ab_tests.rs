//! A/B tests of models that serve: which variant answers, how a test ends, and what becomes of it when the model
//! changes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use galatea_serving::ab_test::{AbReport, AbVariant, StopReason};
use galatea_serving::backend::builtin;
use galatea_serving::core::{LoadOverrides, UnloadDependents};
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{ControlMode, Core, CoreOptions, InferenceRequest};
use galatea_tensor::DataType;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    core: Arc<Core>,
    root: tempfile::TempDir,
}

impl Server {
    /// A server of one model with two versions, of which the second takes so many milliseconds longer.
    fn start(test: &str, slower_ms: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let core = |repository: PathBuf| {
            let options = CoreOptions {
                repositories: vec![repository],
                control_mode: ControlMode::Explicit { load: Vec::new() },
                exit_on_error: false,
                ..CoreOptions::default()
            };
            Core::start(options, builtin::all()).unwrap()
        };
        for version in ["1", "2"] {
            fs::create_dir_all(root.path().join("echo").join(version)).unwrap();
        }
        let delay = format!("{{\"execute_delay_ms\": {slower_ms}}}");
        fs::write(root.path().join("echo/2/parameters.json"), delay).unwrap();
        let server = Self { core: core(root.path().to_owned()), root };
        server.configure(test, "version_policy { all { } }");
        server
    }

    fn configure(&self, test: &str, more: &str) {
        let tensor =
            |io: &str| format!("{io}put {{ name: '{io}' data_type: TYPE_INT32 dims: 1 }} ");
        let test = match test {
            "" => String::new(),
            test => format!("parameters {{ key: 'ab_test' value {{ string_value: '{test}' }} }}"),
        };
        let config =
            format!("backend: 'identity' {} {} {test} {more}", tensor("in"), tensor("out"));
        fs::write(self.root.path().join("echo/config.pbtxt"), config).unwrap();
    }

    fn load(&self) -> Result<(), String> {
        self.core.load_model("echo", LoadOverrides::default()).map_err(|error| error.message)
    }

    /// Sends a request and gives the version that answered.
    fn ask(&self, version: &str, id: &str) -> String {
        let request = InferenceRequest {
            model_name: "echo".to_owned(),
            model_version: version.to_owned(),
            id: id.to_owned(),
            inputs: vec![InputTensor {
                name: "in".to_owned(),
                datatype: DataType::Int32,
                shape: vec![1],
                data: InputData::Raw(Bytes::from_static(&[7, 0, 0, 0])),
            }],
            ..InferenceRequest::default()
        };
        let (to, answers) = channel();
        self.core.infer(request, Box::new(move |answer| to.send(answer).unwrap())).unwrap();
        let answer = answers.recv_timeout(PATIENCE).unwrap();
        answer.result.unwrap().unwrap().model_version
    }

    fn report(&self) -> AbReport {
        self.core.ab_report("echo").unwrap()
    }

    fn counts(&self) -> [u64; 2] {
        self.report().statistics.variants.map(|variant| variant.requests)
    }
}

const VERSIONS: &str = r#"{"a": {"version": 1}, "b": {"version": 2}, "stop": {"min_requests": 10, "max_requests": 400}}"#;

#[test]
fn the_faster_version_gets_all_requests_in_the_end() {
    let server = Server::start(VERSIONS, 20);
    server.load().unwrap();
    let mut versions = galatea_tensor::OrderedSet::new();
    let start = Instant::now();
    let outcome = loop {
        versions.insert(server.ask("", ""));
        if let Some(outcome) = server.report().statistics.outcome {
            break outcome;
        }
        assert!(start.elapsed() < PATIENCE, "the test does not end");
    };
    assert_eq!(versions.into_iter().collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!((outcome.winner, outcome.reason), (AbVariant::A, StopReason::Faster));
    let found = server.report();
    assert_eq!(
        found.variants.map(|variant| (variant.version, variant.share)),
        [(1, 1.0), (2, 0.0)]
    );
    let latency = found.statistics.latency.unwrap();
    assert!(latency.difference > 1.0 && latency.interval[0] > 1.0, "{latency:?}");
    // The latest version is another one.
    assert!((0..20).all(|_| server.ask("", "") == "1"));
    // Who names a version gets it, and is no part of the test.
    let before = server.counts();
    assert_eq!(server.ask("2", ""), "2");
    assert_eq!(server.counts(), before);
}

#[test]
fn requests_with_an_id_stay_at_their_version() {
    let test = VERSIONS.replace("\"stop\"", "\"sticky\": \"request_id\", \"stop\"");
    let server = Server::start(&test, 0);
    server.load().unwrap();
    for id in ["anna", "bert", "carl", "dora"] {
        let first = server.ask("", id);
        assert!((0..5).all(|_| server.ask("", id) == first), "{id}");
    }
}

#[test]
fn two_settings_of_a_version_count_in_its_statistics() {
    let test = r#"{"b": {"parameters": {"execute_delay_ms": 20}}, "share": 0.5,
                   "stop": {"min_requests": 10, "max_requests": 300}}"#;
    let server = Server::start(&test.replace('\n', " "), 0);
    server.configure(&test.replace('\n', " "), "");
    server.load().unwrap();
    let start = Instant::now();
    let mut sent = 0;
    let outcome = loop {
        assert_eq!(server.ask("", ""), "2");
        sent += 1;
        if let Some(outcome) = server.report().statistics.outcome {
            break outcome;
        }
        assert!(start.elapsed() < PATIENCE, "the test does not end");
    };
    assert_eq!((outcome.winner, outcome.reason), (AbVariant::A, StopReason::Faster));
    assert_eq!(server.counts().iter().sum::<u64>(), sent);
    let rows = server.core.metrics_snapshot();
    assert_eq!((rows.len(), rows[0].stats.success.count), (1, sent));
    // An unload ends the instances of the test too.
    server.core.unload_model("echo", UnloadDependents::Keep).unwrap();
    assert!(server.core.ab_report("echo").is_err());
    assert!(server.core.shutdown(PATIENCE).complete);
}

#[test]
fn a_test_that_makes_no_sense_is_an_error_of_the_load() {
    for (test, more, said) in [
        (
            r#"{"b": {"version": 3}}"#,
            "version_policy { all { } }",
            "b: version 3 does not exist, expected one of 1, 2",
        ),
        (
            r#"{"b": {"version": 1}}"#,
            "",
            "b: version 1 is not loaded by version_policy, which chooses 2",
        ),
        (
            r#"{"b": {"version": 1}, "share": 1.01}"#,
            "version_policy { all { } }",
            "share: 1.01 found",
        ),
        (
            r#"{"b": {"metal_config": {"batch_size": 0}}}"#,
            "",
            "batch_size: 0 found, expected a whole number from 1",
        ),
        (
            r#"{"b": {"parameters": {"execute_delay_ms": "x"}}}"#,
            "",
            "b: parameter 'execute_delay_ms'",
        ),
    ] {
        let server = Server::start(test, 0);
        server.configure(test, more);
        let error = server.load().unwrap_err();
        assert!(error.contains("parameter 'ab_test'") && error.contains(said), "{error}");
        assert!(!server.core.model_ready("echo", "").unwrap());
        let index = server.core.repository_index(false);
        let reason = index[0].reason.clone().unwrap();
        assert!(reason.contains(said), "{reason}");
        // The same model without the test.
        server.configure("", more);
        server.load().unwrap();
        let error = server.core.ab_report("echo").unwrap_err().message;
        assert!(error.contains("has no A/B test"), "{error}");
    }
}

#[test]
fn a_test_goes_on_until_it_is_asked_for_otherwise() {
    let server = Server::start(VERSIONS, 0);
    server.load().unwrap();
    for _ in 0..8 {
        server.ask("", "");
    }
    server.load().unwrap();
    assert_eq!(
        server.counts().iter().sum::<u64>(),
        8,
        "a load that changes nothing keeps the test"
    );
    server.configure(&VERSIONS.replace("400", "500"), "version_policy { all { } }");
    server.load().unwrap();
    assert_eq!(server.counts(), [0, 0]);
    assert_eq!(server.report().plan.stop.max_requests, 500);
    server.configure("", "version_policy { all { } }");
    server.load().unwrap();
    assert!(server.core.ab_report("echo").is_err() && server.core.ab_reports().is_empty());
    assert_eq!(server.ask("", ""), "2");
}

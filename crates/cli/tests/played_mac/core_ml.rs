//! Models that Core ML runs, by the program with its worker.

use std::path::Path;

use galatea_coreml::{ConvertOptions, NewFunction, convert_functions};
use galatea_formats::coreml::write_package;
use galatea_graph::{Attributes, Fact, Graph, ONNX_DOMAIN};
use galatea_tensor::DataType;

use crate::galatea;
use crate::serve::PlayedServer;

/// Columns of a row.
const WIDTH: usize = 4;

/// Writes a package that doubles a row as a model of a repository, which Core ML runs by these settings.
fn doubling(repository: &Path, name: &str, settings: &[(&str, &str)]) {
    let mut graph = Graph::new("doubling");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let [x, y] = ["x", "y"].map(|name| graph.value_named(name));
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[1, WIDTH]));
    graph.inputs.push(x);
    let inputs = vec![Some(x), Some(x)];
    graph.add_node(ONNX_DOMAIN, "Add", "", &Attributes::new(), inputs, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    let function = NewFunction { name: "main", graph: &graph, states: &[] };
    let package = convert_functions([function], &ConvertOptions::default()).unwrap();
    let folder = repository.join(name);
    std::fs::create_dir_all(folder.join("1")).unwrap();
    write_package(&folder.join("1/model.mlpackage"), &package).unwrap();
    let parameter =
        |row: &(&str, &str)| format!("parameters {{ key: \"{}\" value: \"{}\" }} ", row.0, row.1);
    let settings: String = settings.iter().map(parameter).collect();
    let accelerator =
        format!("gpu_execution_accelerator {{ name: \"apple_neural_engine\" {settings} }}");
    let config = format!(
        "backend: \"coreml\"\noptimization {{ execution_accelerators {{ {accelerator} }} }}\n"
    );
    std::fs::write(folder.join("config.pbtxt"), config).unwrap();
}

/// Asks a model to double a row.
fn asked(server: &PlayedServer, model: &str) -> String {
    let input = r#"{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2.5,-3,0]}]}"#;
    server.post(&format!("/v2/models/{model}/infer"), input)
}

/// Settings with which a model is ready once its package is compiled.
const WAIT: &[(&str, &str)] = &[("compile", "wait")];

const DOUBLED: &str = r#""data":[2.0,5.0,-6.0,0.0]"#;

/// Starts a server with these models, whose caches are in a folder.
fn served(mac: &str, repository: tempfile::TempDir, caches: &Path) -> PlayedServer {
    let caches = format!("--cache-dir={}", caches.display());
    PlayedServer::of(galatea(mac), repository, &[&caches])
}

pub(crate) fn a_package_is_served_by_core_ml_in_a_worker() {
    let caches = tempfile::tempdir().unwrap();
    let macs = ["m5-max-128gb,macos=27.0", "m5-max-128gb,macos=27.0", "m1-16gb,macos=13.5"];
    for (start, mac) in macs.into_iter().enumerate() {
        let repository = tempfile::tempdir().unwrap();
        doubling(repository.path(), "doubling", WAIT);
        let server = served(mac, repository, caches.path());
        for _ in 0..3 {
            let answer = asked(&server, "doubling");
            assert!(answer.contains(DOUBLED), "{answer}");
        }
        assert!(server.value("ane_predictions_total").is_some_and(|count| count >= 3.0));
        // The second server finds what the first one compiled; another macOS compiles it anew.
        let found = server.value("ane_cache_hits_total").unwrap_or(0.0);
        assert_eq!(found > 0.0, start == 1, "{mac}: {found}");
        assert_eq!(server.value("ane_worker_restarts_total").unwrap_or(0.0), 0.0);
        assert_eq!(server.children().len(), 1, "Core ML has a process of its own");
    }
}

pub(crate) fn a_worker_that_is_killed_is_started_again() {
    let caches = tempfile::tempdir().unwrap();
    let repository = tempfile::tempdir().unwrap();
    doubling(repository.path(), "doubling", WAIT);
    let server = served("m1-16gb", repository, caches.path());
    assert!(asked(&server, "doubling").contains(DOUBLED));
    let [worker] = server.children()[..] else { panic!("there is no worker") };
    let worker = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    // The request that notices may fail; those behind it may not.
    asked(&server, "doubling");
    let answer = asked(&server, "doubling");
    assert!(answer.contains(DOUBLED), "{answer}");
    assert_eq!(server.value("ane_worker_restarts_total"), Some(1.0));
}

pub(crate) fn a_package_runs_in_the_server_itself_where_it_is_told_to() {
    let caches = tempfile::tempdir().unwrap();
    let repository = tempfile::tempdir().unwrap();
    let settings = [WAIT, &[("worker", "off")]].concat();
    doubling(repository.path(), "doubling", &settings);
    let server = served("m1-16gb", repository, caches.path());
    let answer = asked(&server, "doubling");
    assert!(answer.contains(DOUBLED), "{answer}");
    assert_eq!(server.children(), [0_u32; 0]);
}

pub(crate) fn instruments_and_profiles_see_predictions() {
    let caches = tempfile::tempdir().unwrap();
    let record = caches.path().join("signposts");
    let repository = tempfile::tempdir().unwrap();
    doubling(repository.path(), "doubling", WAIT);
    let mut command = galatea("m5-max-128gb,macos=27.0");
    command.env(galatea_doubles::c::RECORD_VARIABLE, &record);
    let folder = format!("--cache-dir={}", caches.path().display());
    let server = PlayedServer::of(command, repository, &[&folder]);
    // Results are compared with the CPU's at first.
    asked(&server, "doubling");
    assert!(server.post("/v2/profile/start", "{}").contains("true"));
    for _ in 0..3 {
        assert!(asked(&server, "doubling").contains(DOUBLED));
    }
    let page = server.page();
    let series = r#"ane_operator_execution_seconds_total{estimated="true",operator=""#;
    assert!(page.contains(series), "{page}");
    let profile = server.post("/v2/profile/stop", r#"{"trace":false}"#);
    assert!(profile.contains(r#""estimated":true"#), "{profile}");
    // What is asked of Metal is refused where it is not there.
    let refused = server.post("/v2/profile/start", r#"{"capture_runs":2}"#);
    assert!(refused.contains("--metal-capture-folder"), "{refused}");
    let text = std::fs::read_to_string(&record).unwrap();
    for name in [
        "Request: doubling",
        "Batch: doubling",
        "Graph partition: doubling on coreml",
        "Core ML prediction: doubling",
    ] {
        let ids: Vec<&str> = text.lines().filter(|line| line.ends_with(name)).collect();
        assert!(ids.len() >= 3, "{name} is not in\n{text}");
    }
    let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    // A request may be answered before its interval ends.
    assert!(count("begin ") - count("end ") <= 1, "{text}");
}

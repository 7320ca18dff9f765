//! Profiles that are started and stopped while requests come.

use std::path::Path;

use galatea::Engine;
use galatea::models::{CheckpointDefaults, ModelMachine};
use galatea_cli::server_options::server_options;
use galatea_server::server::RunningServer;
use galatea_serving::{ControlMode, Core, CoreOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::client::{exchange, get, json_of, parts, post, request};
use super::{Fixture, SIMPLE, flags, infer};

/// A server whose models and front ends share one who makes profiles.
fn start(arguments: &[&str]) -> Fixture {
    let engine = Engine::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models");
    let load = ["simple", "digits", "chat"].map(str::to_owned).to_vec();
    let options = CoreOptions {
        repositories: vec![samples],
        control_mode: ControlMode::Explicit { load },
        ..CoreOptions::default()
    };
    let (defaults, machine) = (CheckpointDefaults::default(), ModelMachine::default());
    let backends = engine.backends_with(None, defaults, None, machine);
    let core = Core::start(options, backends).unwrap();
    let runtime = Runtime::new().unwrap();
    let server = {
        let _inside = runtime.enter();
        RunningServer::start(core, engine, &server_options(&flags(arguments)).unwrap()).unwrap()
    };
    Fixture { server, runtime }
}

fn digits(fixture: &Fixture) {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/digits/sample_input.json");
    let body = std::fs::read_to_string(file).unwrap();
    let answer = exchange(fixture.http(), &request("POST", "/v2/models/digits/infer", &body));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn chat(fixture: &Fixture) {
    let body = json!({"model": "chat", "max_tokens": 4,
        "messages": [{"role": "user", "content": "hello"}]});
    let (status, _, answer) = post(fixture.http(), "/v1/chat/completions", &body);
    assert_eq!(status, 200, "{answer}");
}

/// What is said of a model.
fn of_model<'s>(summary: &'s Value, name: &str) -> Option<&'s Value> {
    summary["models"].as_array().unwrap().iter().find(|model| model["model"] == name)
}

/// Profiles watch the GPUs of the process, so that one test makes them all.
#[test]
fn a_profile_says_what_ran_between_its_start_and_its_stop() {
    let fixture = start(&[]);
    let address = fixture.http();
    let ask = |path: &str, body: Value| post(address, path, &body);
    digits(&fixture);
    assert_eq!(get(address, "/v2/profile"), json!({"profiling": false}));
    let (status, _, text) = ask("/v2/profile/stop", json!({}));
    assert!(status == 400 && text.contains("no profile is under way"), "{text}");
    assert_eq!(ask("/v2/profile/start", json!({})).2, r#"{"profiling":true}"#);
    let (status, _, text) = ask("/v2/profile/start", json!({}));
    assert!(status == 400 && text.contains("a profile is under way"), "{text}");
    for _ in 0..3 {
        digits(&fixture);
        infer(address, SIMPLE);
        chat(&fixture);
    }
    let now = get(address, "/v2/profile");
    assert_eq!(now["profiling"], true);
    assert!(of_model(&now["current"], "digits").is_some(), "{now}");
    let metrics = fixture.server.addresses().metrics.unwrap();
    let page = exchange(metrics, &request("GET", "/metrics", ""));
    assert!(page.contains("amx_kernel_execution_total{kernel=\""), "{page}");
    let (status, _, text) = ask("/v2/profile/stop", json!({}));
    assert_eq!(status, 200, "{text}");
    let found = json_of(&text);
    for name in ["simple", "digits"] {
        let model = of_model(&found, name).unwrap_or_else(|| panic!("{name}: {text}"));
        assert_eq!((&model["runs"], &model["requests"]["count"]), (&json!(3), &json!(3)), "{name}");
        assert_eq!(model["queue"]["count"], 3);
        let operators = model["operators"].as_array().unwrap();
        let shares: f64 = operators.iter().map(|one| one["share"].as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-6, "{name}: {shares}");
        assert!(operators.iter().all(|one| one["count"].as_u64().unwrap() % 3 == 0), "{name}");
    }
    let language = of_model(&found, "chat").unwrap();
    assert_eq!(
        (&language["requests"]["count"], &language["completion_tokens"]),
        (&json!(3), &json!(12))
    );
    assert!(language["operators"][0]["p99_us"].as_f64().unwrap() > 0.0);
    let unit = &found["units"][0];
    let share = unit["utilization"].as_f64().unwrap();
    assert!(unit["unit"] == "cpu" && share > 0.0 && share <= 1.0, "{unit}");
    let events = found["trace"]["traceEvents"].as_array().unwrap();
    for (kind, name) in [("run", "digits"), ("request", "simple"), ("engine", "step")] {
        let there = events.iter().any(|event| event["cat"] == kind && event["name"] == name);
        assert!(there, "{kind} {name} is not in {text}");
    }
    // The last one is kept, and its events are found alone.
    assert_eq!(get(address, "/v2/profile")["last"]["seconds"], found["seconds"]);
    assert_eq!(get(address, "/v2/profile/trace"), found["trace"]);
    let page = exchange(metrics, &request("GET", "/metrics", ""));
    assert!(!page.contains("_kernel_execution"), "nothing is under way: {page}");

    let wish = json!({"models": ["simple"], "limit": 0, "seconds": 60});
    assert_eq!(ask("/v2/profile/start", wish).0, 200);
    digits(&fixture);
    infer(address, SIMPLE);
    let found = json_of(&ask("/v2/profile/stop", json!({"trace": false})).2);
    assert!(of_model(&found, "digits").is_none() && of_model(&found, "simple").is_some());
    assert!(found.get("trace").is_none() && found["events"]["kept"] == 0, "{found}");
    assert!(fixture.stop());
}

#[test]
fn what_cannot_be_profiled_is_refused_and_the_doors_can_be_restricted() {
    let fixture = start(&["--http-restricted-api=profile:key=secret"]);
    let address = fixture.http();
    let ask = |path: &str, header: &str, body: &str| {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}Content-Length: {length}\r\n\r\n{body}"
        );
        parts(&exchange(address, text.as_bytes()))
    };
    let (status, _, text) = ask("/v2/profile/start", "", "");
    assert!(status == 403 && text.contains("expecting header 'key'"), "{text}");
    for (body, expected) in [
        (r#"{"models":["nobody"]}"#, "Request for unknown model : nobody"),
        (r#"{"models":"simple"}"#, "'models' expects a list of names"),
        (r#"{"seconds":0}"#, "'seconds' expects a number above 0"),
        (r#"{"seconds":1e300}"#, "'seconds' expects a number above 0"),
        (r#"{"limit":-1}"#, "'limit' expects a number of events"),
        (r#"{"file":"/etc/passwd"}"#, "unknown member 'file'; there are models, seconds"),
    ] {
        let (status, _, text) = ask("/v2/profile/start", "key: secret\r\n", body);
        assert!(status == 400 && text.contains(expected), "{body}: {status} {text}");
    }
    let (status, _, text) = ask("/v2/profile/stop", "key: secret\r\n", "");
    assert!(status == 400 && text.contains("no profile is under way"), "{text}");
    assert!(fixture.stop());
}

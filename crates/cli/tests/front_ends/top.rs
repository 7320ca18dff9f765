//! `galatea top` of a server that runs.

use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::Value;

use super::{SIMPLE, infer, start};

fn top(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_galatea");
    Command::new(program).arg("top").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn one_snapshot_has_every_model() {
    let fixture = start(&[]);
    let (http, metrics) = (fixture.http(), fixture.server.addresses().metrics.unwrap());
    let doors = [format!("--url={http}"), format!("--metrics-url=http://{metrics}/")];
    let doors = doors.each_ref().map(String::as_str);
    infer(http, SIMPLE);
    // Without a terminal it is printed once in any case.
    for more in [&["--once"][..], &[]] {
        let found = top(&[&doors, &["--interval", "0.1"], more].concat());
        assert!(found.status.success(), "{}", text(&found.stderr));
        let page = text(&found.stdout);
        for wanted in [&format!("at {http}"), "| Model ", "Req/s", "| digits ", "| simple "] {
            assert!(page.contains(wanted), "{wanted} is not in\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "no terminal is there to understand it: {page:?}");
    }
    let found = top(&[&doors[..], &["--interval=0.1", "--json", "--sort=name"]].concat());
    let json: Value = serde_json::from_slice(&found.stdout).unwrap();
    let models = json["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|model| model["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["digits", "identity_fp32", "simple", "simple_string"]);
    assert!(models.iter().all(|model| model["state"] == "READY" && model["requests_per_s"] == 0.0));
    assert!(json["seconds"].as_f64().unwrap() >= 0.1 && json["server"].is_string());
    assert!(fixture.stop());
}

#[test]
fn metrics_are_those_of_the_server_that_is_looked_at() {
    let fixture = start(&[]);
    let other = start(&["--allow-metrics=false"]);
    let metrics = fixture.server.addresses().metrics.unwrap();
    let failed = |arguments: &[&str]| {
        let found = top(&[&["--once", "--interval=0.1"], arguments].concat());
        assert!(!found.status.success(), "{arguments:?}: {}", text(&found.stdout));
        text(&found.stderr)
    };
    infer(fixture.http(), SIMPLE);
    // The server tells where they are.
    let found = top(&["--json", "--interval=0.1", &format!("--url={}", fixture.http())]);
    let json: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(json["models"].as_array().unwrap().len(), 4, "{json}");
    // Those of another server are not taken for its own.
    let error = failed(&[&format!("--url={}", other.http())]);
    assert!(
        error.contains("has no page of metrics") && error.contains("--allow-metrics"),
        "{error}"
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for more in [&[][..], &[&*format!("--metrics-url={metrics}")]] {
        let url = format!("--url={free}");
        let error = failed(&[&[&*url], more].concat());
        assert!(error.contains(&format!("no server answers at {free}")), "{error}");
    }
    // Metrics alone are of nobody else.
    let found = top(&["--json", "--interval=0.1", &format!("--metrics-url={metrics}")]);
    let json: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(json["address"], metrics.to_string());
    assert!(json.get("server").is_none(), "{json}");
    assert!(fixture.stop() && other.stop());
}

#[test]
fn a_server_that_is_gone_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = top(&["--once", &format!("--metrics-url={free}")]);
    let error = text(&found.stderr);
    assert!(
        !found.status.success() && error.contains(&format!("no metrics from {free}")),
        "{error}"
    );
    for (arguments, expected) in [
        (["--url", "x:y"], "--url expects HOST:PORT"),
        (["--interval", "0"], "--interval expects seconds from 0.1"),
        (["--sort", "age"], "--sort expects requests, latency or name"),
    ] {
        let error = text(&top(&arguments).stderr);
        assert!(error.contains(expected), "{error}");
    }
}

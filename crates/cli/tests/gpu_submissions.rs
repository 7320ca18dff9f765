//! `--gpu-submission-ms` on a running server: its log says into how many submissions a run is cut.

use std::net::TcpListener;
use std::path::Path;

use galatea_gpu::devices;
use rustix::process::{Pid, Signal, kill_process};

use crate::gpu_memory::{LAYERS, WIDTH, exchange, layers, metal};
use crate::program;

/// Rows whose products are predicted to take some milliseconds together.
const ROWS: usize = 8192;

/// Run of a server: the numbers of its dispatches and submissions, and the answer.
struct ServedRun {
    dispatches: usize,
    submissions: usize,
    answer: String,
}

/// A number that a line of the log has, such as that of `submissions=3`.
fn number(line: &str, name: &str) -> usize {
    let found = line.split_once(&format!("{name}=")).unwrap().1;
    let digits: String = found.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Serves a run of all layers, with more flags and a bound of the model's own.
fn served(flags: &[&str], own: Option<&str>) -> ServedRun {
    let root = tempfile::tempdir().unwrap();
    let parameters = own.map(|own| ("gpu_submission_ms", own));
    let config = metal(parameters.as_slice());
    let config = config.replace("max_batch_size: 1 ", &format!("max_batch_size: {ROWS} "));
    layers(root.path(), &config);
    let http = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let log = root.path().join("log");
    let mut command = program::galatea();
    command.arg("serve").env("TRITON_METAL_DEBUG", "1");
    command.arg(format!("--model-repository={}", root.path().display()));
    command.arg(format!("--http-port={http}")).arg(format!("--log-file={}", log.display()));
    command.args(["--allow-grpc=false", "--allow-metrics=false", "--allow-software-gpu=true"]);
    let mut server = command.arg("--model-cache-byte-size=0").args(flags).spawn().unwrap();
    let numbers = vec!["0.5"; ROWS * WIDTH].join(",");
    let shape = format!("[{ROWS},{WIDTH}]");
    let input = format!(r#"{{"name":"x","datatype":"FP32","shape":{shape},"data":[{numbers}]}}"#);
    let body = format!(r#"{{"inputs":[{input}]}}"#);
    let head = "POST /v2/models/layers/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    let answer = exchange(http, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    kill_process(Pid::from_child(&server), Signal::INT).unwrap();
    assert!(server.wait().unwrap().success());
    let (_, answer) = answer.split_once("\r\n\r\n").unwrap();
    let line = planned(&log);
    ServedRun {
        dispatches: number(&line, "dispatches"),
        submissions: number(&line, "submissions"),
        answer: answer.to_owned(),
    }
}

/// The line of a log about the plan of the run.
fn planned(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap();
    let line = text.lines().rfind(|line| line.contains("made a plan in"));
    line.unwrap_or_else(|| panic!("no plan in {text}")).to_owned()
}

#[test]
fn the_flag_bounds_submissions_where_the_model_does_not() {
    if devices().is_empty() {
        eprintln!("skipped: this host has no GPU and no software one");
        return;
    }
    // A software device has memory of its own in this, and no bound.
    let whole = served(&[], None);
    assert_eq!(whole.submissions, 1);
    let cut = served(&["--gpu-submission-ms=1"], None);
    assert!((2..=LAYERS).contains(&cut.submissions), "{}", cut.submissions);
    assert_eq!(cut.dispatches, whole.dispatches);
    assert!(cut.answer == whole.answer, "cuts change results");
    let wide = served(&["--gpu-submission-ms=600000"], None);
    assert_eq!(wide.submissions, 1);
    // The model's own bound goes before the flag.
    let own = served(&["--gpu-submission-ms=600000"], Some("1"));
    assert_eq!(own.submissions, cut.submissions);
}

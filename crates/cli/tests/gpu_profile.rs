//! The profile of GPUs, and their metrics, from the commands that users give.

#![cfg(all(unix, any(target_os = "macos", feature = "gpu")))]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea::profile::{ProfileRequest, Profiler, RunningProfile};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{OrderedMap, Tensor};
use serde_json::{Value, json};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models").join(name)
}

/// The GPU for one test at a time, if only a software one; none where the host has none, which is said.
fn gpu() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = galatea::Engine::new().providers(Some("gpu"));
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok().then_some(alone)
}

/// Runs a command, which must succeed.
fn galatea(arguments: &[&str]) {
    let all = std::iter::once("galatea").chain(arguments.iter().copied());
    let code = galatea_cli::main(all.map(Into::into).collect());
    assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS), "{arguments:?}");
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Nanoseconds: what is written as microseconds is exact to them.
#[allow(clippy::cast_possible_truncation, reason = "a short time")]
fn ns(event: &Value, field: &str) -> i64 {
    (event[field].as_f64().unwrap() * 1e3).round() as i64
}

/// The spans of each row by their begin; what begins together, the longest first.
fn rows(profile: &Value) -> OrderedMap<(i64, i64), Vec<&Value>> {
    let mut rows: OrderedMap<(i64, i64), Vec<&Value>> = OrderedMap::new();
    for event in profile["traceEvents"].as_array().unwrap() {
        if event["ph"] == "X" {
            let row = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
            rows.entry(row).or_default().push(event);
        }
    }
    for spans in rows.values_mut() {
        spans.sort_by_key(|span| (ns(span, "ts"), -ns(span, "dur")));
    }
    rows
}

/// Spans of a row lie in each other or behind each other.
fn check_nesting(spans: &[&Value]) {
    let mut open: Vec<i64> = Vec::new();
    for span in spans {
        let (begin, end) = (ns(span, "ts"), ns(span, "ts") + ns(span, "dur"));
        // Both are rounded.
        while open.last().is_some_and(|last| *last <= begin + 2) {
            open.pop();
        }
        assert!(open.last().is_none_or(|last| end <= last + 2), "{span} ends behind what it is in");
        open.push(end);
    }
}

/// Checks the rows of a GPU and gives how many runs and kernels there are.
fn check(profile: &Value) -> (usize, usize) {
    let (mut runs, mut kernels) = (0, 0);
    for ((pid, _), spans) in rows(profile) {
        check_nesting(&spans);
        if pid < 100 {
            let of = |name: &str| spans.iter().filter(|span| span["name"] == name).count();
            assert!(of("encode") > 0 && of("encode") == of("wait") && of("submit") == of("wait"));
            continue;
        }
        let all: Vec<&&Value> = spans.iter().filter(|span| span["cat"] == "run").collect();
        let parts: Vec<&&Value> = spans.iter().filter(|span| span["cat"] == "kernel").collect();
        let told: u64 = all.iter().map(|run| run["args"]["kernels"].as_u64().unwrap()).sum();
        assert_eq!(told, parts.len() as u64);
        let sum = |of: &[&&Value], name: &str| -> u64 {
            of.iter().map(|span| span["args"][name].as_u64().unwrap()).sum()
        };
        for name in ["flop", "bytes"] {
            assert_eq!(sum(&all, name), sum(&parts, name), "{name}");
        }
        let time = |of: &[&&Value]| -> i64 { of.iter().map(|span| ns(span, "dur")).sum() };
        assert!(time(&parts) <= time(&all) + i64::try_from(2 * parts.len()).unwrap());
        for part in &parts {
            let args = &part["args"];
            assert!(!args["shapes"].as_str().unwrap().is_empty() && args["operator"].is_string());
        }
        (runs, kernels) = (runs + all.len(), kernels + parts.len());
    }
    (runs, kernels)
}

#[test]
fn a_bench_writes_what_happened_when() {
    let Some(_alone) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    let (model, output) = (sample("digits"), format!("--metal-profile-output={}", path.display()));
    let model = model.to_str().unwrap();
    galatea(&[
        "bench",
        model,
        "--provider",
        "gpu",
        "--seconds",
        "0.1",
        "--no-model-cache",
        "--profile",
        "--metal-profile",
        &output,
    ]);
    let profile = read(&path);
    let (runs, kernels) = check(&profile);
    assert!(runs > 5 && kernels > runs, "{runs} runs, {kernels} kernels");
    assert_eq!(profile["otherData"]["left_out"], 0);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_at_the_start() {
    let error =
        RunningProfile::start(&Profiler::default(), Path::new("/nowhere/at/all/profile.json"))
            .unwrap_err();
    assert!(error.contains("--metal-profile-output '/nowhere/at/all/profile.json'"), "{error}");
}

#[test]
fn a_profile_is_started_on_a_gpu_that_is_open_and_taken_off_it_again() {
    let Some(_alone) = gpu() else { return };
    let engine = galatea::Engine::new();
    let providers = engine.providers(Some("gpu")).unwrap();
    let profiler = engine.profiler();
    let options = SessionOptions { watch: profiler.watch("served"), ..SessionOptions::default() };
    let model = galatea_formats::onnx::load_model(&sample("digits").join("1/model.onnx")).unwrap();
    let session = Session::new(model.graph, &providers, &options).unwrap();
    let input = Tensor::from_vec(&[1, 1, 8, 8], vec![1.0_f32; 64]).unwrap();
    let run = || session.run_tensors(Run::named(&[("IMAGE", input.clone())])).unwrap();
    run();
    for _ in 0..2 {
        profiler.start(&ProfileRequest { peaks: true, ..ProfileRequest::default() }).unwrap();
        (0..3).for_each(|_| drop(run()));
        let found = profiler.stop().unwrap();
        // Nobody is told of this one.
        run();
        let units = found.summary["units"].as_array().unwrap();
        let device = units.iter().find(|unit| unit["unit"] == "gpu:0").unwrap();
        // The first may have been written down before anybody watched.
        let runs = device["runs"].as_u64().unwrap();
        assert!((2..=3).contains(&runs) && device["busy_seconds"].as_f64().unwrap() > 0.0);
        let models = found.summary["models"].as_array().unwrap();
        assert_eq!((models.len(), &models[0]["model"]), (1, &json!("served")));
        let operators = models[0]["operators"].as_array().unwrap();
        let kernel = operators.iter().find(|one| one["unit"] == "gpu:0").unwrap();
        assert!(kernel["bound"].is_string() && kernel["gb_per_s"].is_number(), "{kernel}");
        let trace: Value = serde_json::from_str(found.trace.as_deref().unwrap()).unwrap();
        assert_eq!(check(&trace).0, usize::try_from(runs).unwrap());
    }
}

/// Returns the answer of an endpoint.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn post(address: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

fn infer(address: &str) {
    let data = vec![0.5; 64];
    let image = json!({"name": "IMAGE", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": data});
    post(address, "/v2/models/digits/infer", &json!({"inputs": [image]}));
}

/// A chat of so many tokens, by that name.
fn chat(address: &str, tokens: usize, name: &str) {
    let body = json!({
        "model": "chat", "messages": [{"role": "user", "content": "Good day"}],
        "max_tokens": tokens, "ignore_eos": true, "temperature": 0, "request_id": name,
    });
    assert!(post(address, "/v1/chat/completions", &body).contains(&format!("chatcmpl-{name}")));
}

/// Checks what is told of a chat of so many tokens: its phases follow each other, and as many steps as it
/// needs lie inside, each with runs of the GPU inside.
fn check_chat(profile: &Value, name: &str, tokens: usize) {
    let events = profile["traceEvents"].as_array().unwrap();
    let begins = events.iter().find(|event| event["args"]["request_id"] == name).unwrap();
    assert_eq!((&begins["name"], &begins["args"]["outcome"]), (&json!("chat"), &json!("finished")));
    assert_eq!(begins["args"]["completion_tokens"], tokens);
    let phases: Vec<(&str, i64, i64)> = ["chat", "queue", "prefill", "decode"]
        .map(|phase| {
            let of = |ph: &str| {
                let found = |event: &&Value| {
                    event["id"] == begins["id"] && event["name"] == phase && event["ph"] == ph
                };
                ns(events.iter().find(found).unwrap(), "ts")
            };
            (phase, of("b"), of("e"))
        })
        .into();
    let [(_, begin, end), queue, prefill, decode] = phases[..] else { unreachable!() };
    assert!(begin == queue.1 && queue.2 == prefill.1 && prefill.2 == decode.1 && decode.2 == end);
    let sequence = &begins["args"]["sequence"];
    let own = |event: &&Value| {
        let sequences = event["args"]["sequences"].as_array();
        event["name"] == "step" && sequences.is_some_and(|all| all.contains(sequence))
    };
    let steps: Vec<&Value> = events.iter().filter(own).collect();
    assert!(steps.len() >= tokens, "{} steps for {tokens} tokens", steps.len());
    for step in steps {
        let (from, to) = (ns(step, "ts"), ns(step, "ts") + ns(step, "dur"));
        assert!(begin <= from && step["args"]["model"] == "chat", "{step}");
        let inside =
            |event: &&Value| event["cat"] == "kernel" && (from..to).contains(&ns(event, "ts"));
        assert!(events.iter().any(|event| inside(&event)), "{step} has no kernels");
    }
}

/// A repository with the samples `digits` and `chat` on the GPU.
fn repository(folder: &Path) {
    let model = folder.join("digits");
    std::fs::create_dir_all(model.join("1")).unwrap();
    let from = sample("digits");
    std::fs::copy(from.join("1/model.onnx"), model.join("1/model.onnx")).unwrap();
    std::fs::copy(from.join("labels.txt"), model.join("labels.txt")).unwrap();
    let config = std::fs::read_to_string(from.join("config.pbtxt")).unwrap();
    let config =
        format!("{config}\ninstance_group [ {{ kind: KIND_GPU count: 1 gpus: [ 0 ] }} ]\n");
    std::fs::write(model.join("config.pbtxt"), config).unwrap();
    let chat = folder.join("chat/1");
    std::fs::create_dir_all(&chat).unwrap();
    for file in std::fs::read_dir(sample("chat/1")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), chat.join(file.file_name())).unwrap();
    }
    let config = std::fs::read_to_string(sample("chat/config.pbtxt")).unwrap();
    let device = "parameters { key: \"device\" value { string_value: \"gpu\" } }\n";
    std::fs::write(folder.join("chat/config.pbtxt"), config + device).unwrap();
}

/// A port that nobody has now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until a front end is open.
fn opened(address: &str) {
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "{address} stays shut");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_profiles_runs_and_requests_until_it_is_interrupted() {
    let Some(_alone) = gpu() else { return };
    let folder = tempfile::tempdir().unwrap();
    repository(folder.path());
    let path = folder.path().join("profile.json");
    let (http, metrics) = (free_port(), free_port());
    let arguments = [
        format!("--model-repository={}", folder.path().display()),
        format!("--metal-profile-output={}", path.display()),
        format!("--http-port={http}"),
        format!("--metrics-port={metrics}"),
    ];
    let server = std::thread::spawn(move || {
        let switches = [
            "serve",
            "--allow-software-gpu=true",
            "--metal-profile",
            "--allow-grpc=false",
            "--metrics-interval-ms=0",
            "--model-cache-byte-size=0",
        ];
        let all: Vec<&str> =
            switches.into_iter().chain(arguments.iter().map(String::as_str)).collect();
        galatea(&all);
    });
    let (http, metrics) = (format!("127.0.0.1:{http}"), format!("127.0.0.1:{metrics}"));
    opened(&metrics);
    (0..3).for_each(|_| infer(&http));
    chat(&http, 5, "first");
    chat(&http, 3, "second");
    let page = get(&metrics, "/metrics");
    for family in ["metal_gpu_utilization_percent", "metal_memory_bandwidth_gbps"] {
        let start = format!("{family}{{gpu=\"0\",name=\"");
        let line = page.lines().find(|line| line.starts_with(&start));
        let value: f64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(value > 0.0, "{family} {value}");
    }
    // The file is whole at any time.
    assert!(read(&path)["traceEvents"].is_array());
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::INT).unwrap();
    server.join().unwrap();
    let profile = read(&path);
    let (runs, kernels) = check(&profile);
    assert!(runs >= 3 && kernels > runs, "{runs} runs, {kernels} kernels");
    let requests = profile["traceEvents"].as_array().unwrap().iter();
    let named = requests.filter(|event| event["cat"] == "request" && event["ph"] == "b");
    let names: Vec<&str> = named.map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "digits").count(), 3, "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "compute").count(), 3, "{names:?}");
    check_chat(&profile, "first", 5);
    check_chat(&profile, "second", 3);
}

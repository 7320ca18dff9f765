//! Workers of Python models that are killed again and again while clients ask: every request is answered once, a kill
//! loses only what its worker had, and nothing is left over.
//!
//! `GALATEA_KILLS=1000 cargo test --test python_kills` kills more of them. They need a Python with NumPy, as those of
//! `python_backend`.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it counts"
)]

mod python;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::Core;
use galatea_serving::backend::ModelBackend;
use galatea_serving::backend::python::PythonBackend;
use galatea_serving::core::UnloadDependents;
use galatea_tensor::OrderedSet;

use self::python::{PATIENCE, answer, ints, options, python, request, send, write_model};

const CLIENTS: u64 = 6;
const INSTANCES: usize = 2;

/// Half of the requests are large, so that shared memory is in use. Each worker has a child of its own.
const MODEL: &str = "import os, subprocess
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.child = subprocess.Popen(['sleep', '3600'])
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(__import__('json').loads(args['model_config']))

    def execute(self, requests):
        made = []
        for r in requests:
            x = r.inputs()[0].as_numpy()
            response = pb_utils.InferenceResponse([
                pb_utils.Tensor('OUT', x + 1), pb_utils.Tensor('PID', np.array([os.getpid()], np.int32))])
            if self.decoupled:
                r.get_response_sender().send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            made.append(response)
        return None if self.decoupled else made
";

fn config(more: &str) -> String {
    format!(
        "backend: \"python\" {more} instance_group {{ count: {INSTANCES} kind: KIND_CPU }} \
         input {{ name: \"IN\" data_type: TYPE_INT32 dims: -1 }} \
         output {{ name: \"OUT\" data_type: TYPE_INT32 dims: -1 }} \
         output {{ name: \"PID\" data_type: TYPE_INT32 dims: 1 }}"
    )
}

#[derive(Debug, Default)]
struct Counts {
    asked: AtomicU64,
    good: AtomicU64,
    lost: AtomicU64,
    /// Answers behind the last one.
    again: AtomicU64,
    pids: Mutex<OrderedSet<i32>>,
    stop: AtomicBool,
}

/// Asks until it is told to stop, and counts.
fn ask(core: &Core, counts: &Counts, client: u64) {
    let mut number = client;
    while !counts.stop.load(Ordering::Relaxed) {
        number += CLIENTS;
        let (value, len) =
            (i32::try_from(number).unwrap(), if number.is_multiple_of(2) { 3 } else { 9000 });
        counts.asked.fetch_add(1, Ordering::Relaxed);
        let from = send(core, request("m", &[("IN", &ints(&vec![value; len]))]));
        let answer = answer(&from);
        assert!(answer.is_final);
        match answer.result {
            Ok(response) => {
                let response = response.expect("a response");
                let out: Vec<i32> = response.outputs[0].tensor.to_vec().unwrap();
                assert!(out == vec![value + 1; len], "the answer to another request");
                let pid: Vec<i32> = response.outputs[1].tensor.to_vec().unwrap();
                counts.pids.lock().unwrap().insert(pid[0]);
                counts.good.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                assert!(error.message.contains("is not healthy."), "{error}");
                counts.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        counts.again.fetch_add(u64::try_from(from.iter().count()).unwrap(), Ordering::Relaxed);
    }
}

/// Kills workers that have answered, one after the other, so many in all.
fn kill(counts: &Counts, kills: usize) -> OrderedSet<i32> {
    let mut killed = OrderedSet::new();
    let mut last = Instant::now();
    while killed.len() < kills {
        let found = counts.pids.lock().unwrap().difference(&killed).next().copied();
        match found {
            Some(pid) => {
                // It is gone already where it ended by itself, which it must not.
                assert!(
                    Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success()
                );
                killed.insert(pid);
                last = Instant::now();
            }
            None => {
                assert!(
                    last.elapsed() < PATIENCE,
                    "no worker follows after {} kills",
                    killed.len()
                );
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    killed
}

/// The beginning of the names of this process's shared memory.
fn names() -> String {
    format!("g{:x}_", std::process::id())
}

/// Descriptors, threads, names of shared memory and processes of this one.
fn held() -> (usize, usize, usize, usize) {
    let count = |path: &str| fs::read_dir(path).unwrap().count();
    let names = names();
    let shared = fs::read_dir("/dev/shm").unwrap().flatten();
    let shared = shared.filter(|one| one.file_name().to_string_lossy().starts_with(&names)).count();
    let marked = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let wanted = format!("GALATEA_MARK={}\0", std::process::id());
        environment.windows(wanted.len()).any(|part| part == wanted.as_bytes())
    });
    (count("/proc/self/fd"), count("/proc/self/task"), shared, marked.count())
}

fn run(python: &str, more: &str, kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), "m", &config(more), MODEL);
    // Marks the workers and their children.
    let marked = folder.path().join("python");
    let script = format!("#!/bin/sh\nGALATEA_MARK={} exec {python} \"$@\"\n", std::process::id());
    fs::write(&marked, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&marked, mode).unwrap();
    let names = names();
    let settings =
        [("python-executable", marked.to_str().unwrap()), ("shm-region-prefix-name", &names)];
    let backends: Vec<Arc<dyn ModelBackend>> = vec![Arc::new(PythonBackend::default())];
    let options = options(folder.path(), &backends, &settings);
    let before = held();
    let core = Core::start(options, backends).unwrap();
    let counts = Counts::default();
    let began = Instant::now();
    let killed = std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (core, counts) = (&core, &counts);
            scope.spawn(move || ask(core, counts, client));
        }
        let killed = kill(&counts, kills);
        counts.stop.store(true, Ordering::Relaxed);
        killed.len()
    });
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let (asked, good, lost) = (count(&counts.asked), count(&counts.good), count(&counts.lost));
    eprintln!(
        "{killed} kills in {:?}: {asked} requests, {good} answered, {lost} lost",
        began.elapsed()
    );
    assert_eq!((asked, count(&counts.again)), (good + lost, 0));
    // A worker has one request at a time.
    assert!(lost <= u64::try_from(killed).unwrap(), "{lost} lost in {killed} kills");
    let stats = core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!((stats.success.count, stats.fail.count), (good, lost));
    core.unload_model("m", UnloadDependents::Keep).unwrap();
    drop(core);
    let deadline = Instant::now() + PATIENCE;
    while {
        let now = held();
        let over = now.0 > before.0 || now.1 > before.1 || now.2 > 0 || now.3 > 0;
        assert!(!over || Instant::now() < deadline, "{now:?} at the end, {before:?} before");
        over
    } {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn kills_lose_only_what_their_workers_had_and_leave_nothing_behind() {
    let Some(python) = python() else { return };
    let kills =
        std::env::var("GALATEA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    run(python, "", kills / 2);
    run(python, "model_transaction_policy { decoupled: true }", kills - kills / 2);
}

//! Sessions of one process share its workers.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Barrier;

use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{Tensor, Tolerance, compare};
use support::{Maker, floats};

/// Products that are worth several threads.
fn net() -> Maker {
    let mut maker = Maker::new();
    let mut x = maker.input("x", floats(&[96, 160], 9));
    for seed in 1..6 {
        let w = maker.constant(floats(&[160, 160], seed));
        x = maker.node("MatMul", &[], &[x, w], 1)[0];
        x = maker.node("Tanh", &[], &[x], 1)[0];
        x = maker.node("Softmax", &[], &[x], 1)[0];
    }
    maker.graph.outputs = x.into_iter().collect();
    maker
}

fn session(net: &Maker, threads: usize) -> Session {
    // Each with a provider of its own, as several commands and models have.
    let providers = [galatea_providers::by_name("cpu").unwrap()];
    let options = SessionOptions { threads, ..SessionOptions::default() };
    Session::new(net.graph.clone(), &providers, &options).unwrap()
}

/// Names of this process' threads that belong to kernels.
fn workers() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let mut names: Vec<String> =
        tasks.filter_map(name).map(|name| name.trim().to_owned()).collect();
    names.retain(|name| name.starts_with("kernel-"));
    names.sort();
    names
}

#[test]
fn sessions_that_run_at_once_have_the_workers_of_the_largest() {
    let net = net();
    let inputs: Vec<(&str, Tensor)> =
        net.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let counts = [2, 4, 1, 3, 4, 2];
    let wanted =
        counts.map(|threads| session(&net, threads).run_tensors(Run::named(&inputs)).unwrap());
    assert_eq!(workers(), Vec::<String>::new(), "workers end with the last session");
    let sessions = counts.map(|threads| session(&net, threads));
    let together = Barrier::new(counts.len());
    std::thread::scope(|scope| {
        for (session, wanted) in sessions.iter().zip(&wanted) {
            let (together, inputs) = (&together, &inputs);
            scope.spawn(move || {
                together.wait();
                for _ in 0..30 {
                    let found = session.run_tensors(Run::named(inputs)).unwrap();
                    // The same threads give the same bits, whoever helps.
                    compare(&found[0], &wanted[0], Tolerance::Exact).unwrap();
                    assert_eq!(workers(), ["kernel-1", "kernel-2", "kernel-3"]);
                }
            });
        }
    });
}

//! Every ONNX backend node case in a session on the GPU provider alone. What it does not claim is not
//! compared here: another provider runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use galatea_graph::{Datum, Graph};
use galatea_runtime::{Run, SessionOptions};
use galatea_testkit::conformance::{TestedProvider, run};
use galatea_testkit::expectations::GPU;
use libtest_mimic::{Arguments, Trial};

fn run_session(graph: &Graph, inputs: Vec<Datum>) -> Result<Vec<Datum>, String> {
    let device = support::device().ok_or("there is no GPU")?;
    let session = support::session(&device, graph, &SessionOptions::default())?;
    let names: Vec<String> = session.inputs().iter().map(|info| info.name.clone()).collect();
    let bound: Vec<(&str, Datum)> = names.iter().map(String::as_str).zip(inputs).collect();
    session.run(Run::values(&bound)).map(|ran| ran.outputs).map_err(|error| error.to_string())
}

fn main() {
    if support::device().is_none() {
        let skipped =
            Trial::test("onnx nodes (skipped: no GPU)", || Ok(())).with_ignored_flag(true);
        libtest_mimic::run(&Arguments::from_args(), vec![skipped]).exit();
    }
    let provider = TestedProvider {
        name: galatea_gpu::NAME,
        expectations: GPU,
        run: Box::new(run_session),
        claims: Some(Box::new(|graph| {
            let taken = |device| support::claims(&device, graph, &SessionOptions::default());
            support::device().is_some_and(taken)
        })),
    };
    run(vec![provider]).exit();
}

//! Every ONNX backend node case in a session on the CPU provider, rewrites included.

use galatea_graph::{Datum, Graph};
use galatea_providers::{by_name, cpu};
use galatea_runtime::{Session, SessionOptions};
use galatea_testkit::conformance::{Provider, run};
use galatea_testkit::expectations::CPU;

fn run_session(graph: &Graph, inputs: Vec<Datum>) -> Result<Vec<Datum>, String> {
    let provider = by_name(cpu::NAME).ok_or("there is no CPU provider")?;
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    let session =
        Session::new(graph.clone(), &[provider], &options).map_err(|error| error.to_string())?;
    let names: Vec<String> = session.inputs().iter().map(|info| info.name.clone()).collect();
    if names.len() != inputs.len() {
        return Err(format!("the model takes {names:?}, {} inputs are given", inputs.len()));
    }
    let bound: Vec<(&str, Datum)> = names.iter().map(String::as_str).zip(inputs).collect();
    session.run_values(&bound).map_err(|error| error.to_string())
}

fn main() {
    let provider = Provider { name: cpu::NAME, expectations: CPU, run: Box::new(run_session) };
    run(vec![provider]).exit();
}

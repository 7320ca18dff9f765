//! The operators of ML programs on `cpu`, rewritten and with its kernels: the cases of `golden/mil`.

use galatea_graph::Graph;
use galatea_providers::by_name;
use galatea_runtime::{OptimiseLevel, Run, Session, SessionOptions};
use galatea_tensor::Tensor;
use galatea_testkit::mil;

/// A session on `cpu`.
fn session(graph: &Graph, optimise: OptimiseLevel) -> Result<Session, String> {
    let cpu = by_name("cpu").ok_or("there is no provider 'cpu'")?;
    let options = SessionOptions { threads: 2, optimise, ..SessionOptions::default() };
    Session::new(graph.clone(), &[cpu], &options).map_err(|error| error.to_string())
}

#[test]
fn every_case_gives_its_recorded_outputs_on_kernels() {
    let mut failures = Vec::new();
    for case in mil::cases() {
        let checked = case.check(|graph| {
            let session = session(graph, OptimiseLevel::O2)?;
            let names: Vec<String> =
                graph.inputs.iter().map(|&id| graph.value(id).name.clone()).collect();
            Ok(move |inputs: &[Tensor]| {
                let named: Vec<(&str, Tensor)> =
                    names.iter().map(String::as_str).zip(inputs.iter().cloned()).collect();
                session.run_tensors(Run::named(&named)).map_err(|error| error.to_string())
            })
        });
        if let Err(text) = checked {
            failures.push(format!("{}: {text}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

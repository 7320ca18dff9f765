//! Every ONNX backend node case through a Core ML package in FP32, in plain forms and in those that the
//! Neural Engine favours: converted, written, read again and
//! evaluated as the interpreter has it. A case that is listed must be refused; it is never wrong. Where a
//! case is refused because a run brings axes or a shape, these are constants.

mod package;

use galatea_coreml::ConvertOptions;
use galatea_graph::rewrite::RewriteLevel;
use galatea_graph::{Datum, Graph};
use galatea_tensor::Tensor;
use galatea_testkit::conformance::{TestedProvider, run};
use galatea_testkit::expectations::COREML;
use package::Failure;

/// The most elements of an input that is a constant where a run cannot bring it.
const FEW: usize = 16;

fn run_package(
    graph: &Graph,
    inputs: Vec<Datum>,
    level: RewriteLevel,
) -> Result<Vec<Datum>, String> {
    let mut tensors = Vec::with_capacity(inputs.len());
    for datum in inputs {
        let Datum::Tensor(tensor) = datum else {
            let found = datum.describe().to_string();
            return Err(format!("refused: a package takes tensors, not {found}"));
        };
        tensors.push(tensor);
    }
    let found = match run_shaped(graph, &tensors, level) {
        Err(Failure::Refused(refused)) => {
            let (graph, left) = bound(graph, &tensors);
            let tries = left.len() < tensors.len();
            // What is refused in any case is so for the first reason.
            match tries.then(|| run_shaped(&graph, &left, level)) {
                None | Some(Err(Failure::Refused(_))) => Err(Failure::Refused(refused)),
                Some(other) => other,
            }
        }
        other => other,
    };
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.into_iter().map(Datum::Tensor).collect())
}

/// In a package for the shapes of the inputs.
fn run_shaped(
    graph: &Graph,
    tensors: &[Tensor],
    level: RewriteLevel,
) -> Result<Vec<Tensor>, Failure> {
    let mut options = ConvertOptions { half: false, level, ..ConvertOptions::default() };
    for (tensor, &id) in tensors.iter().zip(&graph.inputs) {
        options.shapes.insert(graph.value(id).name.clone(), tensor.shape().to_vec());
    }
    package::through(graph, &options, tensors)
}

/// The graph with its small inputs behind the first one as constants: axes, shapes, limits and the
/// like, which models have as constants. And the inputs that are left.
fn bound(graph: &Graph, tensors: &[Tensor]) -> (Graph, Vec<Tensor>) {
    let (mut graph, mut left, mut ids) = (graph.clone(), Vec::new(), Vec::new());
    for (at, (&id, tensor)) in graph.inputs.clone().iter().zip(tensors).enumerate() {
        if at > 0 && tensor.rank() <= 1 && tensor.elements() <= FEW {
            graph.value_mut(id).initializer = Some(tensor.clone());
        } else {
            ids.push(id);
            left.push(tensor.clone());
        }
    }
    graph.inputs = ids;
    (graph, left)
}

/// With this variable set, no refusal is expected: `python/coreml_expectations.py` reads what fails then.
const BARE: &str = "GALATEA_BARE";

fn main() {
    let expectations = match std::env::var_os(BARE) {
        None => COREML,
        Some(_) => {
            let others = COREML.lines().filter(|line| !line.contains(": [refused] "));
            Box::leak(others.collect::<Vec<&str>>().join("\n").into_boxed_str())
        }
    };
    let at = |name: &'static str, level: RewriteLevel| {
        let run = move |graph: &Graph, inputs: Vec<Datum>| run_package(graph, inputs, level);
        TestedProvider { name, expectations, run: Box::new(run), claims: None }
    };
    run(vec![at("coreml", RewriteLevel::O2), at("coreml-favoured", RewriteLevel::O3)]).exit();
}

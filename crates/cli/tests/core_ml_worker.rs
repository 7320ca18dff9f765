//! The program as the worker of an engine.

use std::process::{Command, Stdio};

use galatea_coreml::engine::{
    CoreMlEngine, EngineLoadOptions, WorkerCommand, WorkerEngine, WorkerLimits, predict,
};
use galatea_coreml::{ConvertOptions, convert};
use galatea_formats::coreml::write_package;
use galatea_graph::{Attributes, Fact, Graph, ONNX_DOMAIN};
use galatea_tensor::{DataType, Tensor};

fn doubles() -> Graph {
    let mut graph = Graph::new("doubles");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 3]));
    graph.inputs.push(x);
    let y = graph.value_named("y");
    let both = vec![Some(x), Some(x)];
    graph.add_node(ONNX_DOMAIN, "Add", "", &Attributes::new(), both, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

#[test]
fn the_program_runs_packages_for_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("doubles.mlpackage");
    write_package(&package, &convert(&doubles(), &ConvertOptions::default()).unwrap()).unwrap();
    let command = WorkerCommand {
        program: env!("CARGO_BIN_EXE_galatea").into(),
        arguments: vec!["core-ml-worker".to_owned()],
    };
    let engine = WorkerEngine::new(command, WorkerLimits::default());
    let compiled = folder.path().join("doubles.mlmodelc");
    engine.compile(&package, &compiled).unwrap();
    let model = engine.load(&compiled, &EngineLoadOptions::default()).unwrap();
    let x = Tensor::from_vec(&[2, 3], vec![1.5_f32; 6]).unwrap();
    let given = predict(&*model, vec![("x".to_owned(), x)], None).unwrap();
    assert_eq!(given[0].1.to_vec::<f32>().unwrap(), [3.0; 6]);
}

#[test]
fn the_worker_ends_where_nobody_speaks_to_it_and_the_help_leaves_it_out() {
    let run = |argument: &str| {
        let program = env!("CARGO_BIN_EXE_galatea");
        Command::new(program).arg(argument).stdin(Stdio::null()).output().unwrap()
    };
    let worker = run("core-ml-worker");
    assert!(!worker.status.success());
    let told = String::from_utf8_lossy(&worker.stderr).into_owned();
    assert!(told.contains("started by galatea itself"), "{told}");
    let help = run("help");
    assert!(!String::from_utf8_lossy(&help.stdout).contains("core-ml-worker"));
}

//! Devices, and plans of models on them.

use galatea_apple::coreml::{
    self, CoreMlDevice, CoreMlFault, CoreMlFaultKind, CoreMlLoadOptions, CoreMlPlannedOperator,
    EnclosingBlock,
};
use galatea_doubles::objc::core_ml::{
    PipelineStage, PlayedDevice, PlayedFailure, PlayedFunction, PlayedOperation, PlayedStructure,
    PlayedUsage,
};
use galatea_doubles::objc::runtime::hide;

use crate::player::{LoneTest, TestCoreMl};

fn planned(
    plan: Result<PlayedStructure, PlayedFailure>,
) -> Result<Vec<CoreMlPlannedOperator>, CoreMlFault> {
    let test = LoneTest::of(TestCoreMl { plan: Some(plan), ..TestCoreMl::default() });
    coreml::plan(test.folder.path(), &CoreMlLoadOptions::default())
}

fn operation(operator: &str) -> PlayedOperation {
    PlayedOperation {
        operator: operator.to_owned(),
        outputs: vec![format!("{operator}_0")],
        ..PlayedOperation::default()
    }
}

fn on(operator: &str, preferred: PlayedDevice) -> PlayedOperation {
    let usage = PlayedUsage { preferred, supported: vec![PlayedDevice::Cpu, PlayedDevice::Other] };
    PlayedOperation { usage: Some(usage), weight: Some(0.5), ..operation(operator) }
}

fn program(functions: &[(&str, Vec<PlayedOperation>)]) -> PlayedStructure {
    let function = |(name, operations): &(&str, Vec<PlayedOperation>)| PlayedFunction {
        name: (*name).to_owned(),
        operations: operations.clone(),
    };
    PlayedStructure::Program(functions.iter().map(function).collect())
}

#[test]
fn operators_of_a_program_come_with_their_blocks_and_devices() {
    let inner =
        PlayedOperation { blocks: vec![vec![on("add", PlayedDevice::Cpu)]], ..operation("loop") };
    let branches = PlayedOperation {
        blocks: vec![vec![operation("const")], vec![inner]],
        ..on("cond", PlayedDevice::NeuralEngine(16))
    };
    let gpu = PlayedDevice::Gpu(Some("Apple M1".to_owned()));
    let functions =
        [("main", vec![operation("const"), branches]), ("decode", vec![on("conv", gpu)])];
    let found = planned(Ok(program(&functions))).unwrap();
    let told: Vec<_> =
        found.iter().map(|one| (one.function.as_str(), one.operator.as_str())).collect();
    let main = ["const", "cond", "const", "loop", "add"].map(|name| ("main", name));
    assert_eq!(told[0], ("decode", "conv"));
    assert_eq!(told[1..], main);
    assert_eq!(found[0].preferred, Some(CoreMlDevice::Gpu { name: "Apple M1".to_owned() }));
    assert_eq!(found[0].supported, [CoreMlDevice::Cpu, CoreMlDevice::Other]);
    assert_eq!((found[1].preferred.clone(), found[1].weight), (None, None));
    assert_eq!(found[2].preferred, Some(CoreMlDevice::NeuralEngine { cores: 16 }));
    assert_eq!(found[5].outputs, ["add_0"]);
    let path =
        [EnclosingBlock { operation: 1, block: 1 }, EnclosingBlock { operation: 0, block: 0 }];
    assert_eq!((found[5].path.as_slice(), found[5].weight), (&path[..], Some(0.5)));
}

#[test]
fn networks_and_pipelines_are_planned_too() {
    let network = PlayedStructure::Network(vec![
        on("convolution", PlayedDevice::Gpu(None)),
        operation("softmax"),
    ]);
    let stage = |name: &str, structure| PipelineStage { name: name.to_owned(), structure };
    let inner = PlayedStructure::Pipeline(vec![stage(
        "second",
        program(&[("f", vec![operation("const")])]),
    )]);
    let stages = vec![stage("first", network), stage("rest", inner)];
    let found = planned(Ok(PlayedStructure::Pipeline(stages))).unwrap();
    let told: Vec<_> =
        found.iter().map(|one| (one.function.as_str(), one.operator.as_str())).collect();
    assert_eq!(told, [("first", "convolution"), ("first", "softmax"), ("f", "const")]);
    assert_eq!(found[0].preferred, Some(CoreMlDevice::Gpu { name: String::new() }));
    assert_eq!(found[0].outputs, ["convolution_0"]);
    assert_eq!(found[1].supported, []);
}

#[test]
fn a_model_without_a_plan_is_a_fault() {
    let fault = planned(Err(PlayedFailure::error(2, "no plan"))).unwrap_err();
    assert_eq!(fault.kind, CoreMlFaultKind::Plan);
    assert!(fault.text.ends_with("no plan (com.apple.CoreML 2)"), "{fault}");
    for silent in [PlayedFailure::Nothing, PlayedFailure::Forgotten] {
        let fault = planned(Err(silent)).unwrap_err();
        assert!(fault.text.ends_with("Core ML gives neither a plan nor an error"), "{fault}");
    }
    let hidden = hide(&["MLComputePlan"]);
    let fault = planned(Ok(program(&[]))).unwrap_err();
    drop(hidden);
    assert!(fault.text.ends_with("the plan of a model: needs macOS 14.4 or later"), "{fault}");
}

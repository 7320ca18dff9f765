//! Plans that differ from the rules.

use galatea_graph::{Attributes, Fact, Graph, ONNX_DOMAIN};
use galatea_tensor::DataType;

use super::*;
use crate::{ConvertOptions, convert};

/// A graph of operators of one input that follow each other.
fn package(operators: &[&str]) -> NewPackage {
    let mut graph = Graph::new("plan");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let mut at = graph.value_named("x");
    graph.value_mut(at).declared = Some(Fact::fixed(DataType::Fp32, &[1, 4, 8, 8]));
    graph.inputs.push(at);
    for operator in operators {
        let next = graph.value_named(&format!("{operator} of {}", graph.nodes.len()));
        let none = Attributes::new();
        graph.add_node(ONNX_DOMAIN, operator, "", &none, vec![Some(at)], vec![Some(next)]).unwrap();
        at = next;
    }
    graph.outputs.push(at);
    convert(&graph, &ConvertOptions::default()).unwrap()
}

/// A plan in which operations of these operators run on the processor and all others could run on the engine.
fn plan(package: &NewPackage, on_cpu: &[&str]) -> Vec<PlacedOperator> {
    let function = &package.program.functions["main"];
    let real = function.block.operations.iter().filter(|one| !is_constant(one));
    let row = |operation: &galatea_formats::coreml::mil::MilOperation| {
        let away = on_cpu.contains(&operation.operator.as_str());
        let engine = "Neural Engine of 16 cores".to_owned();
        let supported = if away { vec!["CPU".to_owned()] } else { vec!["CPU".to_owned(), engine] };
        PlacedOperator {
            operator: format!("ios17.{}", operation.operator),
            outputs: operation.outputs.iter().map(|(name, _)| name.clone()).collect(),
            // What Core ML plans, it plans for the whole: cheap operations stay where they are.
            planned: "CPU".to_owned(),
            supported,
            weight: None,
        }
    };
    real.map(row).collect()
}

const PLACE: RulePlace = RulePlace { opset: 7, generation: Some(4) };

#[test]
fn what_a_plan_has_elsewhere_is_refused_from_then_on_with_its_source() {
    let package = package(&["Relu", "Tanh"]);
    let mut measured = PlannedElsewhere::default();
    note_plan(&mut measured, &package, PLACE, &plan(&package, &["tanh", "cast"]));
    let function = &package.program.functions["main"];
    let judge = CompatibilityCheck::of(rules(), PLACE, &measured, function);
    let reason = |operator: &str| {
        let found = function.block.operations.iter().find(|one| one.operator == operator);
        judge.refusal(found.unwrap())
    };
    assert_eq!(reason("relu"), None);
    let expected = "measured plan: Core ML runs tanh fp16[1,4,8,8] from fp16[1,4,8,8] on the CPU";
    assert_eq!(reason("tanh").as_deref(), Some(expected));
    // One stretch at the end of the program: the engine has no more to do behind it.
    let stretches = judge.stretches(function);
    assert_eq!(stretches.len(), 1);
    assert_eq!((stretches[0].operations, stretches[0].changes), (1, 1));
    // A later plan says that it could.
    assert!(note_plan(&mut measured, &package, PLACE, &plan(&package, &["cast"])));
    let judge = CompatibilityCheck::of(rules(), PLACE, &measured, function);
    assert_eq!(judge.stretches(function), []);
}

#[test]
fn an_operation_that_rules_refuse_is_taken_where_a_plan_has_it_on_the_engine() {
    let package = package(&["Relu", "Sin", "Relu"]);
    let function = &package.program.functions["main"];
    let none = PlannedElsewhere::default();
    let stretches = CompatibilityCheck::of(rules(), PLACE, &none, function).stretches(function);
    assert_eq!(stretches.iter().map(|one| one.changes).collect::<Vec<_>>(), [2]);
    assert!(stretches[0].reason.contains("'sin'"), "{}", stretches[0].reason);
    let mut measured = PlannedElsewhere::default();
    note_plan(&mut measured, &package, PLACE, &plan(&package, &["cast"]));
    assert_eq!(CompatibilityCheck::of(rules(), PLACE, &measured, function).stretches(function), []);
}

#[test]
fn a_plan_without_the_engine_says_nothing_of_it() {
    let package = package(&["Relu"]);
    let mut measured = PlannedElsewhere::default();
    assert!(!note_plan(&mut measured, &package, PLACE, &plan(&package, &["relu", "cast"])));
    assert!(measured.is_empty());
}

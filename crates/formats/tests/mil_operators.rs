//! Every operator of ML programs against values that other programs computed: the cases of
//! `golden/mil`.

use galatea_tensor::OrderedSet;

use galatea_formats::coreml;
use galatea_graph::evaluate;
use galatea_testkit::mil;

/// Operators without a case of their own, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[];

#[test]
fn every_case_gives_its_recorded_outputs() {
    let mut failures = Vec::new();
    let cases = mil::cases();
    for case in &cases {
        let checked = case.check(|graph| {
            let graph = graph.clone();
            let run = move |inputs: &[galatea_tensor::Tensor]| evaluate::run(&graph, inputs);
            Ok(move |inputs: &[_]| run(inputs).map_err(|error| error.to_string()))
        });
        if let Err(text) = checked {
            failures.push(format!("{}: {text}", case.name));
        }
    }
    let (failed, all) = (failures.len(), cases.len());
    assert!(failures.is_empty(), "{failed} of {all} cases fail:\n{}", failures.join("\n"));
}

#[test]
fn every_operator_has_a_case() {
    let cases = mil::cases();
    let covered: OrderedSet<&str> = cases.iter().flat_map(mil::MilCase::operators).collect();
    let excused: OrderedSet<&str> = WITHOUT_CASE.iter().map(|(name, _)| *name).collect();
    let known: OrderedSet<&str> = coreml::operators().collect();
    let expected: OrderedSet<&str> = covered.iter().chain(&excused).copied().collect();
    let uncovered: Vec<&&str> = known.difference(&expected).collect();
    assert!(uncovered.is_empty(), "without a case: {uncovered:?}");
    let unknown: Vec<&&str> = covered.difference(&known).collect();
    assert!(unknown.is_empty(), "cases of what is no operator: {unknown:?}");
    let needless: Vec<&&str> = excused.intersection(&covered).collect();
    assert!(needless.is_empty(), "excused, but there are cases: {needless:?}");
}

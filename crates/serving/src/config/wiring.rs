//! Checks of an ensemble's data flow by its configuration alone, without the models.

use galatea_tensor::{OrderedMap, OrderedSet};

use super::ModelConfig;
use super::inference::ModelEnsembling;

#[derive(Default)]
struct TensorWire<'a> {
    /// Tensors of the ensemble that its step reads.
    sources: OrderedSet<&'a str>,
    written: bool,
    read: bool,
}

/// Tensors that are written twice, not written or not read; nothing if all is well.
pub(super) fn problems(config: &ModelConfig, ensemble: &ModelEnsembling) -> Vec<String> {
    let name = &config.name;
    let mut wires: OrderedMap<&str, TensorWire<'_>> = OrderedMap::new();
    for (number, step) in ensemble.step.iter().enumerate() {
        for tensor in step.input_map.values() {
            wires.entry(tensor).or_default().read = true;
        }
        for tensor in step.output_map.values() {
            let wire = wires.entry(tensor).or_default();
            if std::mem::replace(&mut wire.written, true) {
                return vec![format!(
                    "ensemble tensor '{tensor}' can appear in an output map only once for ensemble '{name}' step \
                     {number}"
                )];
            }
            wire.sources = step.input_map.values().map(String::as_str).collect();
        }
    }
    let inputs = config.input.iter().map(|input| input.name.as_str());
    let outputs: Vec<&str> = config.output.iter().map(|output| output.name.as_str()).collect();
    let mut problems = Vec::new();
    let unused =
        |kind, tensor| format!("ensemble {kind} '{tensor}' for ensemble {name}' is not used");
    let mut known: OrderedSet<&str> = OrderedSet::new();
    for input in inputs {
        if !wires.contains_key(input) {
            problems.push(unused("input", input));
        }
        known.insert(input);
    }
    let strange = outputs.iter().filter(|output| !wires.contains_key(*output));
    problems.extend(strange.map(|output| unused("output", output)));
    if !problems.is_empty() {
        return problems;
    }
    loop {
        let before = known.len();
        let next = wires.iter().filter(|(_, wire)| wire.written && wire.sources.is_subset(&known));
        let next: Vec<&str> = next.map(|(&tensor, _)| tensor).collect();
        known.extend(next);
        if known.len() == before {
            break;
        }
    }
    for output in outputs.iter().filter(|output| !known.contains(*output)) {
        let missing = wires.get(output).and_then(|wire| wire.sources.difference(&known).next());
        let why = missing.map_or(String::new(), |tensor| {
            format!(": at least one of its depending tensors, '{tensor}', is not connected")
        });
        problems.push(format!("output '{output}' for ensemble '{name}' is not written{why}"));
    }
    if problems.is_empty() {
        let idle = |(tensor, wire): &(&&str, &TensorWire<'_>)| {
            (!wire.read || !known.contains(**tensor)) && !outputs.contains(*tensor)
        };
        let idle = wires.iter().filter(idle);
        problems.extend(idle.map(|(tensor, _)| {
            format!("ensemble tensor '{tensor}' is unused in ensemble '{name}'")
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::inference::model_config::SchedulingChoice;
    use super::*;

    fn found(steps: &[(&str, &str)]) -> Vec<String> {
        let map = |kind: &str, names: &str| -> String {
            let entry = |(at, name)| format!("{kind} {{ key: \"k{at}\" value: \"{name}\" }} ");
            names.split_whitespace().enumerate().map(entry).collect()
        };
        let steps: String = steps
            .iter()
            .map(|(reads, writes)| {
                let maps = map("input_map", reads) + &map("output_map", writes);
                format!("step {{ model_name: \"m\" {maps} }} ")
            })
            .collect();
        let text = format!(
            "name: \"e\" platform: \"ensemble\" input {{ name: \"in\" }} output {{ name: \"out\" }} \
             ensemble_scheduling {{ {steps} }}"
        );
        let config = crate::config::from_text(&text).unwrap();
        let Some(SchedulingChoice::EnsembleScheduling(ensemble)) = &config.scheduling_choice else {
            unreachable!("the text says so")
        };
        problems(&config, ensemble)
    }

    #[test]
    fn a_chain_a_fork_and_a_join_are_well() {
        assert!(found(&[("in", "out")]).is_empty());
        assert!(found(&[("a b", "out"), ("in", "a"), ("in", "b")]).is_empty());
    }

    #[test]
    fn every_loose_end_is_named_in_the_words_of_triton() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (
                &[("in", "a"), ("a", "out"), ("in", "a")],
                "ensemble tensor 'a' can appear in an output map only once for ensemble 'e' step 2",
            ),
            (&[("a", "out")], "ensemble input 'in' for ensemble e' is not used"),
            (&[("in", "a")], "ensemble output 'out' for ensemble e' is not used"),
            (
                &[("in a", "out")],
                "output 'out' for ensemble 'e' is not written: at least one of its depending tensors, 'a', is not \
                 connected",
            ),
            (
                &[("in a", "out"), ("out", "a")],
                "output 'out' for ensemble 'e' is not written: at least one of its depending tensors, 'a', is not \
                 connected",
            ),
            (&[("in out", "x")], "output 'out' for ensemble 'e' is not written"),
            (&[("in", "out spare")], "ensemble tensor 'spare' is unused in ensemble 'e'"),
            (
                &[("in", "out"), ("b", "c"), ("c", "b")],
                "ensemble tensor 'b' is unused in ensemble 'e'",
            ),
        ];
        for (steps, text) in cases {
            assert_eq!(found(steps).first().map(String::as_str), Some(*text), "{steps:?}");
        }
    }
}

//! Branches and loops as operations with blocks, in packages of Core ML.

use crate::agreement::through_package;
use galatea_coreml::ConvertOptions;
use galatea_formats::{npy, onnx};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};
use galatea_testkit::exported::control_flow;

/// Models that become packages, and what those that do not are refused for.
const MODELS: &[(&str, Option<&str>)] = &[
    ("choose", None),
    ("collect", Some("lists")),
    ("condition", None),
    ("generate", Some("")),
    ("nested", None),
    ("recur", None),
    ("repeat", None),
    ("until", None),
];

fn converted(name: &str) -> Result<(), String> {
    let archive = |what: &str| npy::read_npz(&control_flow(&format!("{name}.{what}.npz"))).unwrap();
    let mut graph = onnx::load(&control_flow(&format!("{name}.onnx"))).unwrap();
    graph.sort().unwrap();
    let given: Vec<(String, Tensor)> = archive("in");
    let inputs = graph.inputs.iter().map(|&id| {
        let name = &graph.value(id).name;
        given.iter().find(|(given, _)| given == name).unwrap().clone()
    });
    let inputs: Vec<(String, Tensor)> = inputs.collect();
    let shapes = inputs.iter().map(|(name, one)| (name.clone(), one.shape().to_vec()));
    let options =
        ConvertOptions { half: false, shapes: shapes.collect(), ..ConvertOptions::default() };
    let found = through_package(&graph, &inputs, &options).map_err(|error| error.to_string())?;
    let expected = archive("out");
    for (found, &id) in found.iter().zip(&graph.outputs) {
        let name = &graph.value(id).name;
        let expected = &expected.iter().find(|(expected, _)| expected == name).unwrap().1;
        let wide = |tensor: &Tensor| galatea_graph::converted(tensor, DataType::Fp32).unwrap();
        let expected = match expected.rank() {
            0 => wide(expected).reshape(&[1]).unwrap(),
            _ => wide(expected),
        };
        compare(&wide(found), &expected, Tolerance::Within(1e-4))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

#[test]
fn branches_and_loops_become_blocks() {
    let mut wrong = Vec::new();
    for &(name, refused) in MODELS {
        match (converted(name), refused) {
            (Ok(()), None) => {}
            (Err(error), Some(reason)) if error.contains(reason) => {}
            (found, _) => wrong.push(format!("{name}: {found:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

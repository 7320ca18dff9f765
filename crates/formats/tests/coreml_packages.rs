//! Core ML packages that coremltools made, with inputs and outputs: `mlpackages` of the folder that
//! `GALATEA_SHARED` names.

use std::path::{Path, PathBuf};

use galatea_formats::coreml::{self, CoreMlFunction};
use galatea_formats::npy;
use galatea_graph::{converted, evaluate};
use galatea_tensor::{ByteString, DataType, Tensor};
use serde_json::Value;

/// The folder of the packages; `None`, with a word about it, where it is not said.
fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("GALATEA_SHARED");
    if shared.is_none() {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded packages are");
    }
    Some(Path::new(&shared?).join("mlpackages"))
}

fn read(path: &Path) -> Tensor {
    let bytes = std::fs::read(path).unwrap();
    npy::read_npy(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The largest difference of two tensors as numbers.
fn distance(found: &Tensor, expected: &Tensor) -> f64 {
    let wide =
        |tensor: &Tensor| converted(tensor, DataType::Fp64).unwrap().to_vec::<f64>().unwrap();
    let (found, expected) = (wide(found), wide(expected));
    assert_eq!(found.len(), expected.len());
    found
        .iter()
        .zip(&expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0_f64, |worst, far| if far.is_nan() { f64::INFINITY } else { worst.max(far) })
}

/// Runs the recorded cases of a package in order, states going from one to the next.
fn check(folder: &Path, name: &str, entry: &Value) {
    let package = folder.join(entry["package"].as_str().unwrap());
    let model = coreml::load(&package).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tolerance = entry["tolerance_abs"].as_f64().unwrap();
    let mut states: Vec<Tensor> = Vec::new();
    for case in entry["cases"].as_array().unwrap() {
        let function = case["function"].as_str();
        let function = match function {
            Some("main") | None => model.function(None).unwrap(),
            other => model.function(other).unwrap(),
        };
        if states.is_empty() {
            states = zeros(function);
        }
        let inputs = inputs(folder, function, case, &states);
        let mut outputs = evaluate::run(&function.graph, &inputs)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        states = outputs.split_off(function.outputs.len());
        for (feature, found) in function.outputs.iter().zip(&outputs) {
            let expected = &case["outputs"][&feature.name];
            let Some(file) = expected["file"].as_str() else { continue };
            let expected = read(&folder.join(file));
            if found.dtype() == DataType::Bytes {
                // Labels are recorded by their positions.
                let at = usize::try_from(expected.to_i64_vec().unwrap()[0]).unwrap();
                let label = found.to_vec::<ByteString>().unwrap();
                let labels = &function.labels.as_ref().unwrap().names;
                assert_eq!(label[0].as_str().unwrap(), labels[at], "{name}");
                continue;
            }
            let distance = distance(found, &expected);
            assert!(distance <= tolerance, "{name}: {} is {distance} off", feature.name);
        }
    }
}

fn zeros(function: &CoreMlFunction) -> Vec<Tensor> {
    let of = |id: &galatea_graph::ValueId| {
        let fact = function.graph.value(*id).declared.clone().unwrap();
        Tensor::zeros(fact.dtype, &fact.known_shape().unwrap()).unwrap()
    };
    function.graph.inputs[function.inputs.len()..].iter().map(of).collect()
}

fn inputs(
    folder: &Path,
    function: &CoreMlFunction,
    case: &Value,
    states: &[Tensor],
) -> Vec<Tensor> {
    let given = function.inputs.iter().zip(&function.graph.inputs).map(|(feature, &id)| {
        let file = case["inputs"][&feature.name]["file"].as_str().unwrap();
        let dtype = function.graph.value(id).declared.as_ref().unwrap().dtype;
        let tensor = converted(&read(&folder.join(file)), dtype).unwrap();
        feature.check_shape(tensor.shape()).unwrap();
        tensor
    });
    given.chain(states.iter().cloned()).collect()
}

#[test]
fn every_recorded_program_gives_its_recorded_outputs() {
    let Some(folder) = folder() else { return };
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut checked = 0;
    for (name, entry) in manifest.as_object().unwrap() {
        if entry["package"].as_str().unwrap().ends_with(".mlmodel") {
            continue;
        }
        check(&folder, name, entry);
        checked += 1;
    }
    assert!(checked >= 17, "only {checked} packages");
}

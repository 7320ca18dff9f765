//! Every operator of ML programs against values that other programs computed: the cases of
//! `golden/mil`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::panic, reason = "a test reports so")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use galatea_formats::coreml::{self, Function};
use galatea_formats::npy;
use galatea_graph::{converted, evaluate};
use galatea_tensor::{ByteString, DataType, Tensor};
use serde_json::Value;

/// Operators without a case of their own, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[];

/// The files of one case, by their paths inside its folder.
type Files = BTreeMap<String, Vec<u8>>;

fn archives() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mil");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "zip")).collect();
    found.sort();
    found
}

/// The cases of an archive, by name.
fn cases(archive: &Path) -> BTreeMap<String, Files> {
    let mut archive = zip::ZipArchive::new(File::open(archive).unwrap()).unwrap();
    let mut cases: BTreeMap<String, Files> = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let name = file.name().unwrap().into_owned();
        let (case, path) = name.split_once('/').unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        cases.entry(case.to_owned()).or_default().insert(path.to_owned(), bytes);
    }
    cases
}

fn description(files: &Files) -> Value {
    serde_json::from_slice(&files["case.json"]).unwrap()
}

fn operators_of(case: &Value) -> Vec<String> {
    let all = case["operators"].as_array().unwrap();
    all.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The model of a case; its weights lie in a folder for as long as it is read.
fn model(files: &Files) -> Result<coreml::Model, String> {
    let folder = tempfile::tempdir().unwrap();
    if let Some(weights) = files.get("weights/weight.bin") {
        std::fs::create_dir(folder.path().join("weights")).unwrap();
        std::fs::write(folder.path().join("weights/weight.bin"), weights).unwrap();
    }
    let bytes = files["model.mlmodel"].clone().into();
    coreml::read_model(bytes, Some(folder.path())).map_err(|error| error.to_string())
}

/// Runs a case.
fn check(files: &Files) -> Result<(), String> {
    let case = description(files);
    let model = model(files)?;
    let function = model.function(None).map_err(|error| error.to_string())?;
    let runs: Vec<String> = match in_runs(files) {
        true => (0..).map(|run| format!("{run}/")).take_while(|run| has(files, run)).collect(),
        false => vec![String::new()],
    };
    let mut states = zeros(function);
    for run in &runs {
        let inputs = inputs(files, function, run, &states)?;
        let outputs = evaluate::run(&function.graph, &inputs);
        let mut outputs = outputs.map_err(|error| format!("{run}{error}"))?;
        states = outputs.split_off(function.outputs.len());
        for (feature, found) in function.outputs.iter().zip(&outputs) {
            let compared = match case["oracle"].as_str() {
                Some("range") => in_range(&case, &feature.name, found),
                _ => {
                    let path = format!("{run}outputs/{}.npy", feature.name);
                    let Some(bytes) = files.get(&path) else {
                        return Err(format!("there is no {path}"));
                    };
                    close(&case, found, &npy::read_npy(bytes).unwrap())
                }
            };
            compared.map_err(|text| format!("output {run}{}: {text}", feature.name))?;
        }
    }
    Ok(())
}

fn has(files: &Files, folder: &str) -> bool {
    files.keys().any(|path| path.starts_with(folder))
}

/// Whether a case has several runs, which states connect.
fn in_runs(files: &Files) -> bool {
    has(files, "0/")
}

fn zeros(function: &Function) -> Vec<Tensor> {
    let of = |id: &galatea_graph::ValueId| {
        let fact = function.graph.value(*id).declared.clone().unwrap();
        Tensor::zeros(fact.dtype, &fact.known_shape().unwrap()).unwrap()
    };
    function.graph.inputs[function.inputs.len()..].iter().map(of).collect()
}

fn inputs(
    files: &Files,
    function: &Function,
    run: &str,
    states: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    let given = function.inputs.iter().zip(&function.graph.inputs).map(|(feature, &id)| {
        let path = format!("{run}inputs/{}.npy", feature.name);
        let bytes = files.get(&path).ok_or_else(|| format!("there is no {path}"))?;
        let dtype = function.graph.value(id).declared.as_ref().unwrap().dtype;
        let tensor = converted(&npy::read_npy(bytes).unwrap(), dtype).unwrap();
        feature.check_shape(tensor.shape()).map_err(|error| error.to_string())?;
        Ok(tensor)
    });
    given.chain(states.iter().cloned().map(Ok)).collect()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    converted(tensor, DataType::Fp64).unwrap().to_vec::<f64>().unwrap()
}

/// Compares with what is recorded.
fn close(case: &Value, found: &Tensor, expected: &Tensor) -> Result<(), String> {
    if found.shape() != expected.shape() {
        return Err(format!("shape {:?}, expected {:?}", found.shape(), expected.shape()));
    }
    if found.dtype() == DataType::Bytes || expected.dtype() == DataType::Bytes {
        let texts = |tensor: &Tensor| tensor.to_vec::<ByteString>();
        return match (texts(found), texts(expected)) {
            (Ok(found), Ok(expected)) if found == expected => Ok(()),
            (found, expected) => Err(format!("{found:?}, expected {expected:?}")),
        };
    }
    let tolerance = |key: &str| case[key].as_f64().unwrap();
    let (absolute, relative) = (tolerance("tolerance_abs"), tolerance("tolerance_rel"));
    let pairs = numbers(found).into_iter().zip(numbers(expected)).enumerate();
    for (at, (found, expected)) in pairs {
        let same = found == expected || (found.is_nan() && expected.is_nan());
        let near = (found - expected).abs() <= absolute + relative * expected.abs();
        if !same && !near {
            return Err(format!("element {at} is {found}, expected {expected}"));
        }
    }
    Ok(())
}

/// Compares what chance decides with its bounds.
fn in_range(case: &Value, name: &str, found: &Tensor) -> Result<(), String> {
    let shape: Vec<usize> = case["shapes"][name]
        .as_array()
        .ok_or_else(|| format!("case.json has no shape of {name}"))?
        .iter()
        .map(|len| usize::try_from(len.as_u64().unwrap()).unwrap())
        .collect();
    if found.shape() != shape {
        return Err(format!("shape {:?}, expected {shape:?}", found.shape()));
    }
    let bound = |key: &str| case[key].as_f64().unwrap();
    let (low, high) = (bound("low"), bound("high"));
    match numbers(found).into_iter().find(|value| !(low..=high).contains(value)) {
        None => Ok(()),
        Some(value) => Err(format!("{value} is not in {low} to {high}")),
    }
}

#[test]
fn every_case_gives_its_recorded_outputs() {
    let (mut failures, mut checked) = (Vec::new(), 0);
    for archive in archives() {
        for (name, files) in cases(&archive) {
            checked += 1;
            if let Err(text) = check(&files) {
                let archive = archive.file_stem().unwrap().display();
                failures.push(format!("{archive}/{name}: {text}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {checked} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn every_operator_has_a_case() {
    let mut covered = BTreeSet::new();
    for archive in archives() {
        for files in cases(&archive).values() {
            covered.extend(operators_of(&description(files)));
        }
    }
    let excused: BTreeSet<&str> = WITHOUT_CASE.iter().map(|(name, _)| *name).collect();
    let known: BTreeSet<&str> = coreml::operators().collect();
    let uncovered: Vec<&&str> = known
        .iter()
        .filter(|name| !covered.contains(**name) && !excused.contains(**name))
        .collect();
    assert!(uncovered.is_empty(), "without a case: {uncovered:?}");
    let unknown: Vec<&String> =
        covered.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "cases of what is no operator: {unknown:?}");
    let needless: Vec<&&str> = excused.iter().filter(|name| covered.contains(**name)).collect();
    assert!(needless.is_empty(), "excused, but there are cases: {needless:?}");
}

//! Classic Core ML neural networks: every case of `golden/neural_network` gives what NumPy and PyTorch
//! computed (`python/neural_network_cases.py` writes them).

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use galatea_formats::coreml::{self, Function};
use galatea_formats::npy::read_npy;
use galatea_graph::{Datum, evaluate, infer};
use galatea_tensor::{DataType, Tensor};
use zip::ZipArchive;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/neural_network")
}

/// The files of a case by their names.
type Files = HashMap<String, Vec<u8>>;

/// The cases of an archive by their names.
fn cases(path: &Path) -> Vec<(String, Files)> {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut cases: Vec<(String, Files)> = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).unwrap();
        let name = entry.name().unwrap().into_owned();
        let (case, file) = name.split_once('/').unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if cases.last().is_none_or(|(last, _)| last != case) {
            cases.push((case.to_owned(), Files::new()));
        }
        cases.last_mut().unwrap().1.insert(file.to_owned(), bytes);
    }
    cases
}

fn array(files: &Files, folder: &str, name: &str) -> Option<Tensor> {
    let bytes = files.get(&format!("{folder}/{name}.npy"))?;
    Some(read_npy(bytes).unwrap())
}

fn run(function: &Function, input: impl Fn(&str) -> Tensor) -> Result<Vec<Tensor>, String> {
    let graph = &function.graph;
    infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
    let inputs = graph.inputs.iter().map(|&id| Datum::Tensor(input(&graph.value(id).name)));
    let outputs = evaluate::run_values(graph, inputs.collect()).map_err(|error| error.to_string())?;
    Ok(outputs.into_iter().map(|one| one.into_tensor().unwrap()).collect())
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DataType::Fp32 => tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
        DataType::Fp64 => tensor.to_vec::<f64>().unwrap(),
        DataType::Fp16 => {
            let all = tensor.to_vec::<galatea_tensor::f16>().unwrap();
            all.into_iter().map(|one| f64::from(one.to_f32())).collect()
        }
        _ => tensor.to_i64_vec().unwrap().iter().map(|&one| one as f64).collect(),
    }
}

fn compare(name: &str, found: &Tensor, expected: &Tensor, (abs, rel): (f64, f64)) -> Option<String> {
    if found.shape() != expected.shape() {
        return Some(format!("{name}: shape {:?}, expected {:?}", found.shape(), expected.shape()));
    }
    if found.dtype() == DataType::Bytes {
        let (found, expected) = (found.to_vec::<galatea_tensor::ByteString>().unwrap(), expected);
        let expected = expected.to_vec::<galatea_tensor::ByteString>().unwrap();
        return (found != expected).then(|| format!("{name}: {found:?}, expected {expected:?}"));
    }
    let far = |(found, expected): &(&f64, &f64)| {
        !(**found == **expected || (*found - *expected).abs() <= abs + rel * expected.abs())
    };
    let (found, expected) = (floats(found), floats(expected));
    let at = found.iter().zip(&expected).position(|pair| far(&pair))?;
    Some(format!("{name}[{at}]: {}, expected {}", found[at], expected[at]))
}

fn check(case: &str, files: &Files) -> Vec<String> {
    let said: serde_json::Value = serde_json::from_slice(&files["case.json"]).unwrap();
    let tolerance = (said["tolerance_abs"].as_f64().unwrap(), said["tolerance_rel"].as_f64().unwrap());
    let bytes = files["model.mlmodel"].clone();
    let model = match coreml::read_model(bytes.into(), None) {
        Ok(model) => model,
        Err(error) => return vec![format!("{case}: {error}")],
    };
    let function = &model.functions[0];
    let input = |name: &str| array(files, "inputs", name).unwrap_or_else(|| panic!("no input {name}"));
    let outputs = match run(function, input) {
        Ok(outputs) => outputs,
        Err(error) => return vec![format!("{case}: {error}")],
    };
    let mut wrong = Vec::new();
    let wanted = files.keys().filter(|name| name.starts_with("outputs/")).count();
    if wanted != outputs.len() {
        wrong.push(format!("{case}: {} outputs, expected {wanted}", outputs.len()));
    }
    for (&id, found) in function.graph.outputs.iter().zip(&outputs) {
        let name = &function.graph.value(id).name;
        let expected = array(files, "outputs", name).unwrap_or_else(|| panic!("no output {name}"));
        let place = format!("{case}: {name}");
        wrong.extend(compare(&place, found, &expected, tolerance));
    }
    wrong
}

#[test]
fn every_case_gives_the_expected_values() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut archives: Vec<PathBuf> =
        golden().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    archives.sort();
    for path in archives {
        for (case, files) in cases(&path) {
            wrong.extend(check(&case, &files));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "{count} cases");
}

#[test]
fn a_converted_network_gives_what_its_source_gives() {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        println!("skipped: GALATEA_SHARED is not set");
        return;
    };
    let folder = Path::new(&shared).join("mlpackages");
    let bytes = std::fs::read(folder.join("cnn_nn_ios14.mlmodel")).unwrap();
    let model = coreml::read_model(bytes.into(), None).unwrap();
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join("cnn_nn_ios14.data").join(name)).unwrap();
        read_npy(&bytes).unwrap()
    };
    let found = run(&model.functions[0], |_| read("0_in_image.npy")).unwrap();
    let wrong = compare("output", &found[0], &read("0_torch_out.npy"), (1e-4, 0.0));
    assert_eq!(wrong, None);
}

//! Classic Core ML neural networks: every case of `golden/neural_network` gives what NumPy and PyTorch
//! computed (`python/neural_network_cases.py` writes them).

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use galatea_formats::coreml::proto::network::layers::{BranchLayerProto, ConvolutionLayerProto};
use galatea_formats::coreml::proto::network::{NetworkLayerProto, NetworkProto};
use galatea_formats::coreml::proto::{self, ModelKind};
use galatea_formats::coreml::{self, CoreMlFunction};
use galatea_formats::npy::read_npy;
use galatea_graph::{Datum, evaluate, infer};
use galatea_tensor::{DataType, Tensor};
use prost::Message;
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

fn run(function: &CoreMlFunction, input: impl Fn(&str) -> Tensor) -> Result<Vec<Tensor>, String> {
    let graph = &function.graph;
    infer::facts(graph, &HashMap::new()).map_err(|error| error.to_string())?;
    let inputs = graph.inputs.iter().map(|&id| Datum::Tensor(input(&graph.value(id).name)));
    let outputs =
        evaluate::run_values(graph, inputs.collect()).map_err(|error| error.to_string())?;
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

fn compare(
    name: &str,
    found: &Tensor,
    expected: &Tensor,
    (abs, rel): (f64, f64),
) -> Option<String> {
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
    let tolerance =
        (said["tolerance_abs"].as_f64().unwrap(), said["tolerance_rel"].as_f64().unwrap());
    let bytes = files["model.mlmodel"].clone();
    let model = match coreml::read_model(bytes.into(), None) {
        Ok(model) => model,
        Err(error) => return vec![format!("{case}: {error}")],
    };
    let function = &model.functions[0];
    let input =
        |name: &str| array(files, "inputs", name).unwrap_or_else(|| panic!("no input {name}"));
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

/// A network of a case, and the model around it.
fn opened(files: &Files) -> (proto::CoreMlModelProto, NetworkProto) {
    let model = proto::CoreMlModelProto::decode(&files["model.mlmodel"][..]).unwrap();
    let Some(ModelKind::NeuralNetwork(bytes)) = &model.kind else { panic!("another kind") };
    let network = NetworkProto::decode(bytes.clone()).unwrap();
    (model, network)
}

fn read_again(
    mut model: proto::CoreMlModelProto,
    network: &NetworkProto,
) -> Result<coreml::LoadedCoreMl, String> {
    model.kind = Some(ModelKind::NeuralNetwork(network.encode_to_vec().into()));
    coreml::read_model(model.encode_to_vec().into(), None).map_err(|error| error.to_string())
}

/// Changes the message of the first layer, which is a convolution.
fn changed(network: &mut NetworkProto, change: impl FnOnce(&mut ConvolutionLayerProto)) {
    let Some((tag, bytes)) = network.layers[0].kind.clone() else { panic!("no kind") };
    let mut message = ConvolutionLayerProto::decode(bytes).unwrap();
    change(&mut message);
    network.layers[0].kind = Some((tag, message.encode_to_vec().into()));
}

type Damage = (&'static str, fn(&mut NetworkProto));

const DAMAGES: &[Damage] = &[
    ("layer 'conv_valid' (convolution): it reads 'nobody'", |n| {
        n.layers[0].input[0] = "nobody".to_owned();
    }),
    ("layer 'conv_valid' (convolution): it reads 'conv_valid'", |n| {
        n.layers[0].input[0] = "conv_valid".to_owned();
    }),
    ("layer 'conv_valid' (convolution): it has 0 inputs, expected 1 to 3", |n| {
        n.layers[0].input.clear();
    }),
    ("layer 'conv_groups' (convolution): it writes 'conv_valid'", |n| {
        n.layers[1].output[0] = "conv_valid".to_owned();
    }),
    ("output 'conv_same_top': no layer writes it", |n| {
        n.layers.pop();
    }),
    ("layer 'conv_valid': layers of kind 99999 are not known", |n| {
        n.layers[0].kind = Some((99_999, Vec::new().into()));
    }),
    ("layer 'conv_valid': custom layer 'Mine' is code outside the file", |n| {
        n.layers[0].kind = Some((500, b"\x52\x04Mine".to_vec().into()));
    }),
    ("layer 'conv_valid': it is of no kind", |n| n.layers[0].kind = None),
    ("layer 'conv_valid' (convolution): not a readable Core ML message", |n| {
        n.layers[0].kind = Some((100, b"\x08".to_vec().into()));
    }),
    ("layer 'conv_valid' (convolution): 'weights': it has 215 constants, expected 216", |n| {
        changed(n, |c| {
            c.weights.as_mut().unwrap().float_value.pop();
        });
    }),
    ("layer 'conv_valid' (convolution): 'bias': it is missing", |n| changed(n, |c| c.bias = None)),
    ("layer 'conv_valid' (convolution): 18446744073709551615 is no length", |n| {
        changed(n, |c| c.output_channels = u64::MAX);
    }),
    ("layer 'conv_valid' (convolution): 'weights': ", |n| {
        changed(n, |c| c.output_channels = 1 << 62);
    }),
    ("layer 'conv_valid' (convolution): 3 numbers for 'kernelSize', expected 2", |n| {
        changed(n, |c| c.kernel_size.push(3));
    }),
    ("layer 'conv_valid' (convolution): 6 channels in 5 groups", |n| {
        changed(n, |c| c.n_groups = 5)
    }),
    ("layer 'conv_valid' (convolution): ", |n| changed(n, |c| c.kernel_channels = 3)),
    ("layer 'conv_valid' (convolution): ", |n| changed(n, |c| c.stride = vec![0, 0])),
    ("there is no mapping of arrays 7", |n| n.array_input_shape_mapping = 7),
];

#[test]
fn damages_are_errors_that_name_the_layer() {
    let archive = cases(&golden().join("image.zip"));
    let (_, files) = archive.iter().find(|(name, _)| name == "convolution").unwrap();
    let (model, network) = opened(files);
    read_again(model.clone(), &network).unwrap();
    for (expected, damage) in DAMAGES {
        let mut damaged = network.clone();
        damage(&mut damaged);
        let error = read_again(model.clone(), &damaged).unwrap_err();
        assert!(error.contains(expected), "{error}\nexpected {expected}");
    }
}

#[test]
fn cut_and_changed_files_never_panic() {
    for archive in ["control", "model", "pipeline", "recurrent"] {
        for (_, files) in cases(&golden().join(format!("{archive}.zip"))) {
            let bytes = &files["model.mlmodel"];
            let step = bytes.len() / 40 + 1;
            for at in (0..bytes.len()).step_by(step) {
                let _ = coreml::read_model(bytes[..at].to_vec().into(), None);
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x41;
                let _ = coreml::read_model(flipped.into(), None);
            }
        }
    }
}

#[test]
fn networks_nested_without_end_are_refused() {
    let archive = cases(&golden().join("control.zip"));
    let (_, files) = archive.iter().find(|(name, _)| name == "branch_1").unwrap();
    let (model, mut network) = opened(files);
    let inner = network.layers[0].clone();
    for _ in 0..40 {
        let nested = NetworkProto { layers: network.layers.clone(), ..NetworkProto::default() };
        let branch = BranchLayerProto { if_branch: Some(nested), else_branch: None };
        let kind = Some((605, branch.encode_to_vec().into()));
        network.layers = vec![NetworkLayerProto {
            input: vec!["flag".to_owned()],
            kind,
            ..NetworkLayerProto::default()
        }];
    }
    network.layers.push(inner);
    let error = read_again(model, &network).unwrap_err();
    assert!(error.contains("nested more than"), "{error}");
}

//! Packages of Core ML served from a repository: shapes, functions, labels and states.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::plain::Plain;
use galatea_formats::coreml::mil::{self, MilArg, MilBuilder, MilElement};
use galatea_formats::coreml::{
    CoreMlModelInfo, FeatureShapes, FeatureType, ModelFeature, NewPackage, WrittenDescription,
    write_package,
};
use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::request::{CorrelationId, InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, InferenceRequest, InferenceResponse, ServingError};
use galatea_tensor::{DataType, OrderedMap, Tensor};

fn array(name: &str, shape: &[usize], shapes: FeatureShapes) -> ModelFeature {
    let kind =
        FeatureType::Array { dtype: DataType::Fp32, shape: shape.to_vec(), shapes, default: None };
    ModelFeature { name: name.to_owned(), description: String::new(), kind, optional: false }
}

/// `y = x · factor`, of a shape whose second length may be one of a list.
fn scaled(name: &str, factor: f32) -> (mil::MilFunction, WrittenDescription) {
    let mut builder = MilBuilder::new(name, 8);
    let x = builder.input("x", MilElement::Fp32, &[Some(1), None]).unwrap();
    let inputs = vec![("x", MilArg::from(&x)), ("y", MilArg::Float(MilElement::Fp32, factor))];
    let y = builder.op("mul", "y", inputs).unwrap();
    builder.output(&y);
    let shapes = FeatureShapes::Enumerated(vec![vec![1, 2], vec![1, 4]]);
    let described = WrittenDescription {
        name: name.to_owned(),
        inputs: vec![array("x", &[1, 2], shapes)],
        outputs: vec![array("y", &[], FeatureShapes::Fixed)],
        states: Vec::new(),
    };
    (builder.finish(), described)
}

/// Adds its input to a state and gives the sum.
fn summing() -> (mil::MilFunction, WrittenDescription) {
    let mut builder = MilBuilder::new("main", 8);
    let x = builder.input("x", MilElement::Fp32, &[Some(1)]).unwrap();
    let state = builder.state("sum", MilElement::Fp32, &[1]).unwrap();
    let held = builder.op("read_state", "held", vec![("input", MilArg::from(&state))]).unwrap();
    let inputs = vec![("x", MilArg::from(&held)), ("y", MilArg::from(&x))];
    let y = builder.op("add", "y", inputs).unwrap();
    let written = vec![("input", MilArg::from(&state)), ("data", MilArg::from(&y))];
    builder.op_of("write_state", "write", written, 0).unwrap();
    builder.output(&y);
    let described = WrittenDescription {
        name: "main".to_owned(),
        inputs: vec![array("x", &[1], FeatureShapes::Fixed)],
        outputs: vec![array("y", &[1], FeatureShapes::Fixed)],
        states: vec![array("sum", &[1], FeatureShapes::Fixed)],
    };
    (builder.finish(), described)
}

/// Fills a square as large as `x` is long, whose shape is joined from lengths without axes, and adds everything up: a
/// result without axes.
fn square() -> (mil::MilFunction, WrittenDescription) {
    let mut builder = MilBuilder::new("main", 8);
    let x = builder.input("x", MilElement::Fp32, &[None]).unwrap();
    let shape = builder.op("shape", "lengths", vec![("x", MilArg::from(&x))]).unwrap();
    let inputs =
        vec![("x", MilArg::from(&shape)), ("indices", MilArg::Int(0)), ("axis", MilArg::Int(0))];
    let length = builder.op("gather", "length", inputs).unwrap();
    let values = MilArg::Vars(vec![length.clone(), length]);
    let inputs =
        vec![("values", values), ("axis", MilArg::Int(0)), ("interleave", MilArg::Bool(false))];
    let sides = builder.op("concat", "sides", inputs).unwrap();
    let value = MilArg::Float(MilElement::Fp32, 0.5);
    let full = vec![("shape", MilArg::from(&sides)), ("value", value)];
    let full = builder.op("fill", "full", full).unwrap();
    let axes = MilArg::Ints(vec![0, 1]);
    let inputs =
        vec![("x", MilArg::from(&full)), ("axes", axes), ("keep_dims", MilArg::Bool(false))];
    let y = builder.op("reduce_sum", "y", inputs).unwrap();
    builder.output(&y);
    let described = WrittenDescription {
        name: "main".to_owned(),
        inputs: vec![array("x", &[2], FeatureShapes::Range(vec![(1, None)]))],
        outputs: vec![array("y", &[], FeatureShapes::Fixed)],
        states: Vec::new(),
    };
    (builder.finish(), described)
}

fn write(folder: &Path, functions: Vec<(mil::MilFunction, WrittenDescription)>) {
    let version = folder.join("1");
    std::fs::create_dir_all(&version).unwrap();
    let names = functions.iter().map(|(_, described)| described.name.clone());
    let names: Vec<String> = names.collect();
    let (programs, described): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
    let package = NewPackage {
        specification: 9,
        program: mil::MilProgram { functions: names.iter().cloned().zip(programs).collect() },
        functions: described,
        default_function: names[0].clone(),
        info: CoreMlModelInfo { metadata: OrderedMap::new(), ..CoreMlModelInfo::default() },
    };
    write_package(&version.join("model.mlpackage"), &package).unwrap();
}

fn start(repository: &Path) -> Arc<Core> {
    let options = CoreOptions {
        repositories: vec![repository.to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let backend = GraphBackend::core_ml(vec![Arc::new(Plain)], SessionOptions::default());
    Core::start(options, vec![Arc::new(backend)]).unwrap()
}

fn request(model: &str, shape: &[i64], x: &[f32]) -> InferenceRequest {
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    let input = InputTensor {
        name: "x".to_owned(),
        datatype: DataType::Fp32,
        shape: shape.to_vec(),
        data: InputData::Raw(bytes.into()),
    };
    InferenceRequest {
        model_name: model.to_owned(),
        inputs: vec![input],
        ..InferenceRequest::default()
    }
}

fn answer(core: &Core, request: InferenceRequest) -> Result<InferenceResponse, ServingError> {
    let (to, from) = channel();
    let once = move |answer: galatea_serving::SinkAnswer| to.send(answer.result).unwrap();
    core.infer(request, Box::new(once))?;
    from.recv_timeout(Duration::from_secs(60)).unwrap().map(Option::unwrap)
}

fn numbers(response: &InferenceResponse) -> Vec<f32> {
    let found: &Tensor = &response.outputs[0].tensor;
    found.to_vec().unwrap()
}

#[test]
fn a_package_is_served_without_a_configuration_and_takes_its_shapes_only() {
    let repository = tempfile::tempdir().unwrap();
    write(&repository.path().join("scaled"), vec![scaled("main", 3.0)]);
    let core = start(repository.path());
    let found = answer(&core, request("scaled", &[1, 2], &[1.0, 2.0])).unwrap();
    assert_eq!(numbers(&found), [3.0, 6.0]);
    assert_eq!(numbers(&answer(&core, request("scaled", &[1, 4], &[1.0; 4])).unwrap()), [3.0; 4]);
    let error = answer(&core, request("scaled", &[1, 3], &[1.0; 3])).unwrap_err().to_string();
    let expected = "input 'x' has shape [1, 3], expected one of [1, 2], [1, 4]";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_parameter_chooses_the_function() {
    let repository = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("first", ""),
        ("second", "parameters { key: \"function_name\" value { string_value: \"ten\" } }"),
        ("third", "parameters { key: \"function_name\" value { string_value: \"nine\" } }"),
    ] {
        let folder = repository.path().join(name);
        write(&folder, vec![scaled("two", 2.0), scaled("ten", 10.0)]);
        std::fs::write(folder.join("config.pbtxt"), format!("backend: \"coreml\" {text}")).unwrap();
    }
    let core = start(repository.path());
    let of = |model| answer(&core, request(model, &[1, 2], &[1.0, 2.0]));
    assert_eq!(numbers(&of("first").unwrap()), [2.0, 4.0]);
    assert_eq!(numbers(&of("second").unwrap()), [10.0, 20.0]);
    assert!(of("third").is_err());
    let failures = core.load_failures();
    let reason = &failures.iter().find(|failure| failure.model == "third").unwrap().reason;
    assert!(reason.contains("there is no function 'nine', only two, ten"), "{reason}");
}

#[test]
fn states_go_from_request_to_request_of_a_sequence_and_start_at_zero_elsewhere() {
    let repository = tempfile::tempdir().unwrap();
    write(&repository.path().join("alone"), vec![summing()]);
    let folder = repository.path().join("sums");
    write(&folder, vec![summing()]);
    let text = "backend: \"coreml\" sequence_batching { }";
    std::fs::write(folder.join("config.pbtxt"), text).unwrap();
    let core = start(repository.path());
    for _ in 0..2 {
        let found = answer(&core, request("alone", &[1], &[5.0])).unwrap();
        assert_eq!(numbers(&found), [5.0]);
        assert_eq!(found.outputs.len(), 1, "the state is no output");
    }
    let step = |id: u64, x: f32, first: bool, last: bool| {
        let request = InferenceRequest {
            correlation: CorrelationId::Uint(id),
            sequence_start: first,
            sequence_end: last,
            ..request("sums", &[1], &[x])
        };
        numbers(&answer(&core, request).unwrap())
    };
    assert_eq!(step(7, 1.0, true, false), [1.0]);
    assert_eq!(step(7, 2.0, false, false), [3.0]);
    assert_eq!(step(7, 4.0, false, true), [7.0]);
    assert_eq!(step(7, 4.0, true, true), [4.0], "a new sequence begins with zeros");
}

#[test]
fn a_damaged_package_is_refused_by_name_and_place() {
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path().join("damaged");
    write(&folder, vec![scaled("main", 3.0)]);
    let file = folder.join("1/model.mlpackage/Data/com.apple.CoreML/model.mlmodel");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let core = start(repository.path());
    let failures = core.load_failures();
    let reason = &failures[0].reason;
    assert!(reason.contains("model.mlpackage") && reason.contains("at byte"), "{reason}");
}

#[test]
fn a_result_without_axes_is_served_as_one_element() {
    let repository = tempfile::tempdir().unwrap();
    for (name, config) in [
        ("silent", "backend: \"coreml\""),
        ("told", "backend: \"coreml\" output { name: \"y\" data_type: TYPE_FP32 dims: [ 1 ] }"),
    ] {
        let folder = repository.path().join(name);
        write(&folder, vec![square()]);
        std::fs::write(folder.join("config.pbtxt"), config).unwrap();
    }
    let core = start(repository.path());
    for model in ["silent", "told"] {
        let found = answer(&core, request(model, &[3], &[0.0; 3])).unwrap();
        assert_eq!(numbers(&found), [4.5]);
        assert_eq!(found.outputs[0].tensor.shape(), [1]);
    }
}

#[test]
fn the_only_model_of_a_version_is_found_whatever_its_name_and_two_are_named_in_the_error() {
    let repository = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let folder = repository.path().join(name);
        write(&folder, vec![scaled("main", 3.0)]);
        let version = folder.join("1");
        std::fs::rename(version.join("model.mlpackage"), version.join("net.mlpackage")).unwrap();
    }
    std::fs::write(repository.path().join("two/1/other.mlmodel"), "").unwrap();
    std::fs::write(repository.path().join("two/config.pbtxt"), "backend: \"coreml\"").unwrap();
    let core = start(repository.path());
    let found = answer(&core, request("one", &[1, 2], &[1.0, 2.0])).unwrap();
    assert_eq!(numbers(&found), [3.0, 6.0]);
    let reason = &core.load_failures()[0].reason;
    let named = "model.mlpackage' for model 'two'; there is 'net.mlpackage' and 'other.mlmodel'";
    assert!(reason.contains(named), "{reason}");
}

#[test]
fn a_folder_that_core_ml_has_compiled_is_served_without_a_configuration() {
    let repository = tempfile::tempdir().unwrap();
    let folder = repository.path().join("compiled/1/anything.mlmodelc");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "program(1.0)\n{\n  func main<ios16>(tensor<fp32, [1, 2]> x) {\n    \
                tensor<fp32, []> three = const()[val = tensor<fp32, []>(0x1.8p+1)];\n    \
                tensor<fp32, [1, 2]> y = mul(x = x, y = three)[name = tensor<string, []>(\"y\")];\n  \
                } -> (y);\n}\n";
    std::fs::write(folder.join("model.mil"), text).unwrap();
    let core = start(repository.path());
    assert!(core.load_failures().is_empty(), "{:?}", core.load_failures());
    let found = answer(&core, request("compiled", &[1, 2], &[1.0, 2.0])).unwrap();
    assert_eq!(numbers(&found), [3.0, 6.0]);
}

//! The sample repository served: each model answers its sample request with its sample response, alone and in a batch
//! with itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::plain::Plain;
use galatea_runtime::SessionOptions;
use galatea_serving::backend::graph::GraphBackend;
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{Core, CoreOptions, InferenceRequest, InferenceResponse, ServingError};
use galatea_tensor::{ByteString, DataType, Tensor, bf16, encode_byte_strings, f16};
use serde_json::Value as Json;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models")
}

fn start(repository: &Path) -> Arc<Core> {
    let options = CoreOptions {
        repositories: vec![repository.to_owned()],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let backend = GraphBackend::onnx(vec![Arc::new(Plain)], SessionOptions::default());
    Core::start(options, vec![Arc::new(backend)]).unwrap()
}

fn read(path: &Path) -> Json {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The wire bytes of a list of JSON values.
fn wire(datatype: DataType, data: &[Json]) -> Vec<u8> {
    macro_rules! numbers {
        ($convert:expr) => {
            data.iter().flat_map(|value| $convert(value).to_le_bytes()).collect()
        };
    }
    let int = |value: &Json| value.as_i64().unwrap();
    let real = |value: &Json| value.as_f64().unwrap();
    match datatype {
        DataType::Bool => data.iter().map(|value| u8::from(value == true || value == 1)).collect(),
        DataType::Int8 => numbers!(|v| i8::try_from(int(v)).unwrap()),
        DataType::Int16 => numbers!(|v| i16::try_from(int(v)).unwrap()),
        DataType::Int32 => numbers!(|v| i32::try_from(int(v)).unwrap()),
        DataType::Int64 => numbers!(int),
        DataType::Uint8 => numbers!(|v| u8::try_from(int(v)).unwrap()),
        DataType::Uint16 => numbers!(|v| u16::try_from(int(v)).unwrap()),
        DataType::Uint32 => numbers!(|v| u32::try_from(int(v)).unwrap()),
        DataType::Uint64 => numbers!(|v: &Json| v.as_u64().unwrap()),
        DataType::Fp16 => numbers!(|v| f16::from_f64(real(v))),
        DataType::Bf16 => numbers!(|v| bf16::from_f64(real(v))),
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the sample was written from single precision"
        )]
        DataType::Fp32 => numbers!(|v| real(v) as f32),
        DataType::Fp64 => numbers!(real),
        DataType::Small(small) => panic!("{small} is not on the wire"),
        DataType::Bytes => {
            let strings: Vec<ByteString> = data
                .iter()
                .map(|value| ByteString::from(value.as_str().unwrap().as_bytes()))
                .collect();
            encode_byte_strings(&strings).unwrap()
        }
    }
}

fn flat(data: &Json) -> Vec<Json> {
    match data {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.clone()],
    }
}

fn request(model: &str, sample: &Json) -> InferenceRequest {
    let input = |input: &Json| {
        let datatype: DataType = input["datatype"].as_str().unwrap().parse().unwrap();
        InputTensor {
            name: input["name"].as_str().unwrap().to_owned(),
            datatype,
            shape: input["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(|dim| dim.as_i64().unwrap())
                .collect(),
            data: InputData::Raw(wire(datatype, &flat(&input["data"])).into()),
        }
    };
    InferenceRequest {
        model_name: model.to_owned(),
        inputs: sample["inputs"].as_array().unwrap().iter().map(input).collect(),
        ..InferenceRequest::default()
    }
}

type Answer = Result<InferenceResponse, ServingError>;

fn send(core: &Core, request: InferenceRequest) -> Receiver<Answer> {
    let (to, from) = channel();
    let once = move |answer: galatea_serving::SinkAnswer| {
        assert!(answer.is_final);
        to.send(answer.result.map(|response| response.expect("a response"))).unwrap();
    };
    core.infer(request, Box::new(once)).unwrap();
    from
}

/// Samples were computed elsewhere: sums in another order differ in the last digits.
fn assert_close(found: &Tensor, datatype: DataType, expected: &[Json], what: &str) {
    assert_eq!(found.dtype(), datatype, "{what}");
    if datatype == DataType::Fp32 {
        let found = found.to_vec::<f32>().unwrap();
        assert_eq!(found.len(), expected.len(), "{what}");
        for (found, expected) in found.iter().zip(expected) {
            let expected = expected.as_f64().unwrap();
            let difference = (f64::from(*found) - expected).abs();
            assert!(
                difference <= 1e-4 * expected.abs().max(1.0),
                "{what}: {found} instead of {expected}"
            );
        }
    } else if datatype == DataType::Bytes {
        let found = found.to_vec::<ByteString>().unwrap();
        assert_eq!(encode_byte_strings(&found).unwrap(), wire(datatype, expected), "{what}");
    } else {
        assert_eq!(
            found.contiguous().unwrap().as_bytes().unwrap(),
            wire(datatype, expected),
            "{what}"
        );
    }
}

fn assert_sample(answer: &Receiver<Answer>, expected: &Json, model: &str) {
    let response = answer
        .recv_timeout(Duration::from_secs(60))
        .unwrap()
        .unwrap_or_else(|e| panic!("{model}: {e}"));
    let outputs = expected["outputs"].as_array().unwrap();
    assert_eq!(response.outputs.len(), outputs.len(), "{model}");
    for (found, expected) in response.outputs.iter().zip(outputs) {
        let what = format!("{model} {}", found.name);
        assert_eq!(found.name, expected["name"].as_str().unwrap(), "{what}");
        let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
        assert_eq!(found.tensor.shape(), shape, "{what}");
        let datatype = expected["datatype"].as_str().unwrap().parse().unwrap();
        assert_close(&found.tensor, datatype, &flat(&expected["data"]), &what);
    }
}

#[test]
fn every_sample_model_answers_its_sample_alone_and_in_a_batch() {
    let core = start(&samples());
    // The language model has a backend that is not among these.
    let mut failures = core.load_failures();
    failures.retain(|failure| !failure.reason.contains("backend 'llm'"));
    assert_eq!(failures, []);
    let models = core.repository_index(true);
    assert!(models.len() >= 10);
    for model in models.iter().map(|line| line.name.as_str()) {
        let sample = read(&samples().join(model).join("sample_input.json"));
        let expected = read(&samples().join(model).join("sample_output.json"));
        let answers: Vec<_> = (0..3).map(|_| send(&core, request(model, &sample))).collect();
        for answer in &answers {
            assert_sample(answer, &expected, model);
        }
    }
}

#[test]
fn samples_need_no_configuration() {
    let root = std::env::temp_dir().join(format!("galatea-onnx-{}", std::process::id()));
    for model in ["simple", "digits"] {
        std::fs::create_dir_all(root.join(model).join("1")).unwrap();
        std::fs::copy(
            samples().join(model).join("1/model.onnx"),
            root.join(model).join("1/model.onnx"),
        )
        .unwrap();
    }
    std::fs::create_dir_all(root.join("broken/1")).unwrap();
    std::fs::write(root.join("broken/1/model.onnx"), b"this is no model").unwrap();
    let core = start(&root);
    for model in ["simple", "digits"] {
        let given = core.resolve(model, "").unwrap().config();
        assert_eq!(
            (given.backend.as_str(), given.platform.as_str()),
            ("onnxruntime", "onnxruntime_onnx")
        );
        assert_eq!((given.max_batch_size, given.instance_group[0].count), (4, 2), "{model}");
        let sample = read(&samples().join(model).join("sample_input.json"));
        let expected = read(&samples().join(model).join("sample_output.json"));
        assert_sample(&send(&core, request(model, &sample)), &expected, model);
    }
    let failures = core.load_failures();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].reason.contains("broken/1/model.onnx"), "{failures:?}");
    std::fs::remove_dir_all(root).unwrap();
}

/// A linear classifier of three classes whose scores become maps.
const ZIP_MAP: &[u8] = include_bytes!("golden/zip_map.onnx");
/// `y = x + b`, where `b` is an initializer and an input.
const DEFAULT: &[u8] = include_bytes!("golden/default.onnx");

fn served(model: &[u8], config: &str) -> (tempfile::TempDir, Arc<Core>) {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("m/1")).unwrap();
    std::fs::write(root.path().join("m/1/any name.onnx"), model).unwrap();
    std::fs::write(root.path().join("m/config.pbtxt"), config).unwrap();
    let core = start(root.path());
    assert_eq!(core.load_failures(), []);
    (root, core)
}

fn floats(name: &str, shape: &[i64], values: &[f32]) -> InputTensor {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (name, shape) = (name.to_owned(), shape.to_vec());
    InputTensor { name, datatype: DataType::Fp32, shape, data: InputData::Raw(bytes.into()) }
}

fn answer(core: &Arc<Core>, inputs: Vec<InputTensor>, output: &str) -> Vec<f32> {
    let request =
        InferenceRequest { model_name: "m".to_owned(), inputs, ..InferenceRequest::default() };
    let response = send(core, request).recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    let found = response.outputs.iter().find(|found| found.name == output).unwrap();
    found.tensor.to_vec().unwrap()
}

#[test]
fn scores_that_a_model_gives_as_maps_are_a_tensor() {
    let (_root, core) = served(ZIP_MAP, "");
    let found = answer(&core, vec![floats("X", &[1, 2], &[1.0, 2.0])], "output_probability");
    assert_eq!(found, [1.0, 2.0, 3.0]);
}

#[test]
fn an_initializer_that_the_configuration_names_is_an_input() {
    for (optional, inputs) in [("optional: true", 1), ("", 2), ("optional: true", 2)] {
        let config = format!(
            "input [{{ name: \"x\" data_type: TYPE_FP32 dims: 2 }}, \
             {{ name: \"b\" data_type: TYPE_FP32 dims: 2 {optional} }}]"
        );
        let (_root, core) = served(DEFAULT, &config);
        let mut all = vec![floats("x", &[2], &[1.0, 2.0]), floats("b", &[2], &[0.5, 0.5])];
        all.truncate(inputs);
        let expected = if inputs == 1 { [11.0, 22.0] } else { [1.5, 2.5] };
        assert_eq!(answer(&core, all, "y"), expected, "{optional} {inputs}");
    }
}

/// `y = Identity(x)` over two elements of type FLOAT8E4M3FN, as the ONNX package writes it.
const IDENTITY_OF_SMALL_FLOATS: &[u8] = b"\x08\n\x12\x00:7\n\x10\n\x01x\x12\x01y\"\x08Identity\
\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x11\x12\x04\n\x02\x08\x02b\x0f\n\x01y\x12\n\n\x08\x08\x11\x12\x04\n\x02\x08\
\x02B\x04\n\x00\x10\x15";

#[test]
fn a_type_that_no_request_carries_is_refused_when_the_model_loads() {
    let root = tempfile::tempdir().unwrap();
    let version = root.path().join("small").join("1");
    std::fs::create_dir_all(&version).unwrap();
    std::fs::write(version.join("model.onnx"), IDENTITY_OF_SMALL_FLOATS).unwrap();
    std::fs::write(root.path().join("small/config.pbtxt"), "backend: \"onnxruntime\"").unwrap();
    let core = start(root.path());
    let failures = core.load_failures();
    let reason = &failures.iter().find(|failure| failure.model == "small").unwrap().reason;
    assert!(reason.contains("'x' has type FLOAT8E4M3FN, which no request can carry"), "{reason}");
}

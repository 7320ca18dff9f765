//! Files of TensorFlow from a folder on disk to answers: names, batches, strings, types, errors.
//!
//! Most need an interpreter with TensorFlow, named by `GALATEA_TENSORFLOW_PYTHON`, which also makes their files. Where
//! it names none, each says so and does nothing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use galatea_serving::backend::ModelBackend;
use galatea_serving::backend::python::TensorflowBackend;
use galatea_serving::{Core, ErrorCode, InferenceResponse, ServingError};
use galatea_tensor::{ByteString, Tensor, bf16};
use tempfile::TempDir;

use crate::python::{self, answer, request, send};

/// An interpreter with TensorFlow.
fn tensorflow() -> Option<String> {
    let named = std::env::var("GALATEA_TENSORFLOW_PYTHON").ok();
    if named.is_none() {
        eprintln!("left out: name a Python with TensorFlow in GALATEA_TENSORFLOW_PYTHON");
    }
    named
}

/// A model: its name, its configuration less the backend, and a script that writes its files to the folder that is
/// current.
struct TensorflowModel<'a> {
    name: &'a str,
    config: &'a str,
    script: &'a str,
}

/// What scripts that make files begin with.
const HEAD: &str = "import os
import tensorflow as tf

class Affine(tf.Module):
    def __init__(self):
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name='x')])
    def forward(self, x):
        return {'y': x @ self.weight, 'total': tf.reduce_sum(x, axis=1)}

def save(folder='model.savedmodel'):
    one = Affine()
    tf.saved_model.save(one, folder, signatures={'serving_default': one.forward, 'other': one.forward})

";

fn repository(python: &str, models: &[TensorflowModel<'_>]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for TensorflowModel { name, config, script } in models {
        let version = folder.path().join(name).join("1");
        fs::create_dir_all(&version).unwrap();
        fs::write(folder.path().join(name).join("config.pbtxt"), config).unwrap();
        if script.is_empty() {
            continue;
        }
        let program = format!("{HEAD}{script}");
        let made = Command::new(python).args(["-c", &program]).current_dir(&version).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    folder
}

fn start(python: &str, folder: &Path) -> Arc<Core> {
    let backends = TensorflowBackend::of_platforms();
    let backends = backends.map(|one| -> Arc<dyn ModelBackend> { Arc::new(one) }).to_vec();
    let settings = [("python-executable", python)];
    Core::start(python::options(folder, &backends, &settings), backends).unwrap()
}

fn infer(
    core: &Core,
    model: &str,
    inputs: &[(&str, &Tensor)],
) -> Result<InferenceResponse, ServingError> {
    let answer = answer(&send(core, request(model, inputs)));
    answer.result.map(|response| response.expect("a response"))
}

fn output<'a>(response: &'a InferenceResponse, name: &str) -> &'a Tensor {
    &response.outputs.iter().find(|output| output.name == name).expect("the output").tensor
}

fn reason(core: &Core, model: &str) -> String {
    let failures = core.load_failures();
    let found = failures.iter().find(|one| one.model == model);
    found.unwrap_or_else(|| panic!("model '{model}' loads")).reason.clone()
}

#[test]
fn files_that_are_missing_are_named_without_an_interpreter() {
    let config = "platform: \"tensorflow_graphdef\"";
    let models = [
        TensorflowModel { name: "saved", config: "backend: \"tensorflow\"", script: "" },
        TensorflowModel { name: "frozen", config, script: "" },
    ];
    let folder = repository("python3", &models);
    let core = start("python3", folder.path());
    let text = reason(&core, "saved");
    assert!(
        text.contains("saved/1/model.savedmodel' for model 'saved': there is nothing"),
        "{text}"
    );
    let text = reason(&core, "frozen");
    assert!(text.contains("frozen/1/model.graphdef' for model 'frozen'"), "{text}");
}

#[test]
fn saved_models_complete_the_configuration_and_answer_in_batches() {
    let Some(python) = tensorflow() else { return };
    let plain = "backend: \"tensorflow\" dynamic_batching {}";
    let named = "backend: \"tensorflow\"
        parameters { key: \"TF_SIGNATURE_DEF\" value { string_value: \"other\" } }
        output { name: \"y\" data_type: TYPE_FP32 dims: 2 }";
    let missing = "backend: \"tensorflow\"
        parameters { key: \"TF_SIGNATURE_DEF\" value { string_value: \"none\" } }";
    let models = [
        TensorflowModel { name: "guessed", config: "", script: "save('anything.savedmodel')" },
        TensorflowModel { name: "plain", config: plain, script: "save()" },
        TensorflowModel { name: "serving", config: plain, script: "save('.')" },
        TensorflowModel { name: "named", config: named, script: "save()" },
        TensorflowModel { name: "missing", config: missing, script: "save()" },
    ];
    let folder = repository(&python, &models);
    let core = start(&python, folder.path());
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
    for model in ["guessed", "plain", "serving", "named"] {
        let response = infer(&core, model, &[("x", &x)]).unwrap();
        assert_eq!(output(&response, "y").to_vec::<f32>().unwrap(), [1.0, 2.0, 9.0, 12.0]);
    }
    let response = infer(&core, "plain", &[("x", &x)]).unwrap();
    assert_eq!(output(&response, "total").to_vec::<f32>().unwrap(), [1.0, 3.0]);
    let answers: Vec<_> = (0..8).map(|_| send(&core, request("plain", &[("x", &x)]))).collect();
    for one in &answers {
        let response = answer(one).result.unwrap().unwrap();
        assert_eq!(output(&response, "total").to_vec::<f32>().unwrap(), [1.0, 3.0]);
    }
    let text = reason(&core, "missing");
    assert!(text.contains("has no signature 'none', found other, serving_default"), "{text}");
}

#[test]
fn an_operation_that_fails_fails_its_own_request_alone() {
    let Some(python) = tensorflow() else { return };
    let script = "
class Checked(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name='x')])
    def forward(self, x):
        with tf.control_dependencies([tf.debugging.assert_positive(x, message='too small')]):
            return {'y': tf.identity(x)}

one = Checked()
tf.saved_model.save(one, 'model.savedmodel', signatures=one.forward)
";
    let config =
        "backend: \"tensorflow\" dynamic_batching { max_queue_delay_microseconds: 100000 }";
    let folder = repository(&python, &[TensorflowModel { name: "m", config, script }]);
    let core = start(&python, folder.path());
    let good = Tensor::from_slice(&[1, 2], &[1.0f32, 2.0]).unwrap();
    let bad = Tensor::from_slice(&[1, 2], &[1.0f32, -2.0]).unwrap();
    let sent = [&good, &bad, &good].map(|x| send(&core, request("m", &[("x", x)])));
    let [first, second, third] = sent.each_ref().map(|one| answer(one).result);
    for answered in [first, third] {
        let response = answered.unwrap().unwrap();
        assert_eq!(output(&response, "y").to_vec::<f32>().unwrap(), [1.0, 2.0]);
    }
    let error = second.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("TensorFlow execute failure of model 'm'"), "{error}");
    assert!(error.message.contains("too small"), "{error}");
}

#[test]
fn strings_scalars_and_halves_cross() {
    let Some(python) = tensorflow() else { return };
    let script = "
class Texts(tf.Module):
    @tf.function(input_signature=[
        tf.TensorSpec([None], tf.string, name='text'), tf.TensorSpec([None], tf.bfloat16, name='half')])
    def forward(self, text, half):
        return {'upper': tf.strings.upper(text), 'count': tf.size(text), 'twice': half + half}

one = Texts()
tf.saved_model.save(one, 'model.savedmodel', signatures=one.forward)
";
    let config = "backend: \"tensorflow\" max_batch_size: 0";
    let folder = repository(&python, &[TensorflowModel { name: "texts", config, script }]);
    let core = start(&python, folder.path());
    let texts = [ByteString::from(&b"ab"[..]), ByteString::from(&b"\xff"[..])];
    let text = Tensor::from_slice(&[2], &texts).unwrap();
    let half = [1.5f32, -3.0].map(bf16::from_f32);
    let half = Tensor::from_slice(&[2], &half).unwrap();
    let response = infer(&core, "texts", &[("text", &text), ("half", &half)]).unwrap();
    let upper = output(&response, "upper").to_vec::<ByteString>().unwrap();
    assert_eq!(upper, [ByteString::from(&b"AB"[..]), ByteString::from(&b"\xff"[..])]);
    assert_eq!(output(&response, "count").to_vec::<i32>().unwrap(), [2]);
    let twice = output(&response, "twice");
    assert_eq!(twice.to_vec::<bf16>().unwrap(), [3.0f32, -6.0].map(bf16::from_f32));
}

#[test]
fn frozen_graphs_and_files_of_litert_run() {
    let Some(python) = tensorflow() else { return };
    let frozen = "
graph = tf.Graph()
with graph.as_default():
    x = tf.compat.v1.placeholder(tf.float32, [None, 3], name='x')
    tf.identity(x * 2.0 + 1.0, name='y')
with open('model.graphdef', 'wb') as file:
    file.write(graph.as_graph_def().SerializeToString())
";
    let lite = "
one = Affine()
made = tf.lite.TFLiteConverter.from_concrete_functions([one.forward.get_concrete_function()], one).convert()
with open('net.tflite', 'wb') as file:
    file.write(made)
";
    let graph = "platform: \"tensorflow_graphdef\" max_batch_size: 4
        input { name: \"x\" data_type: TYPE_FP32 dims: 3 } output { name: \"y\" data_type: TYPE_FP32 dims: 3 }";
    let wrong = "platform: \"tensorflow_graphdef\" max_batch_size: 4
        input { name: \"z\" data_type: TYPE_FP32 dims: 3 } output { name: \"y\" data_type: TYPE_FP32 dims: 3 }";
    let models = [
        TensorflowModel { name: "frozen", config: graph, script: frozen },
        TensorflowModel { name: "wrong", config: wrong, script: frozen },
        TensorflowModel { name: "lite", config: "", script: lite },
    ];
    let folder = repository(&python, &models);
    let core = start(&python, folder.path());
    let x = Tensor::from_slice(&[1, 3], &[1.0f32, 2.0, 3.0]).unwrap();
    let response = infer(&core, "frozen", &[("x", &x)]).unwrap();
    assert_eq!(output(&response, "y").to_vec::<f32>().unwrap(), [3.0, 5.0, 7.0]);
    let text = reason(&core, "wrong");
    assert!(text.contains("has no node 'z', which the configuration names"), "{text}");
    let long = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 0.0, 0.0, 1.0]).unwrap();
    for (given, expected) in [(&x, vec![22.0f32, 28.0]), (&long, vec![22.0, 28.0, 5.0, 6.0])] {
        let response = infer(&core, "lite", &[("x", given)]).unwrap();
        let outputs = &response.outputs;
        let y =
            outputs.iter().find(|one| one.tensor.shape().last() == Some(&2)).expect("the product");
        assert_eq!(y.tensor.to_vec::<f32>().unwrap(), expected);
    }
}

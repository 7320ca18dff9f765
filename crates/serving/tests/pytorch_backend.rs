//! Files of torch from a folder on disk to answers: names, batches, strings, types, errors.
//!
//! Most need an interpreter with torch and NumPy, named by `GALATEA_TORCH_PYTHON`, which also makes their files. Where
//! it names none, each says so and does nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

use galatea_serving::backend::ModelBackend;
use galatea_serving::backend::python::PytorchBackend;
use galatea_serving::{
    Core, CoreOptions, CorrelationId, ErrorCode, InferenceRequest, InferenceResponse, ServingError,
    SinkAnswer,
};
use galatea_tensor::{ByteString, DataType, Tensor};
use tempfile::TempDir;

use crate::python;
use crate::python::{python, send, write_model};

/// An interpreter with torch.
fn torch() -> Option<String> {
    let named = std::env::var("GALATEA_TORCH_PYTHON").ok();
    if named.is_none() {
        eprintln!("left out: name a Python with torch in GALATEA_TORCH_PYTHON");
    }
    named
}

/// An interpreter with NumPy, for tests that need no torch.
fn numpy() -> Option<String> {
    python().map(str::to_owned).or_else(torch)
}

/// The same as [`torch`], where it has programs of `torch.export`.
fn exporting_torch() -> Option<String> {
    static EXPORTS: OnceLock<bool> = OnceLock::new();
    let python = torch()?;
    let exports = EXPORTS.get_or_init(|| {
        let asked = "import torch.export; torch.export.load";
        Command::new(&python).args(["-c", asked]).output().unwrap().status.success()
    });
    if !exports {
        eprintln!("left out: this torch has no torch.export");
    }
    exports.then_some(python)
}

/// What scripts that make files begin with.
const HEAD: &str = "from typing import Dict, List, Optional, Tuple
import torch
from torch import Tensor, nn

def script(module, file):
    torch.jit.save(torch.jit.script(module), file)

def export(module, file, args, kwargs=None, **shapes):
    torch.export.save(torch.export.export(module, args, kwargs, dynamic_shapes=shapes or None), file)

";

/// A model: its name, its configuration less the backend, and a script that writes its files to the folder that is
/// current.
type Made<'a> = (&'a str, &'a str, &'a str);

fn serve(python: &str, models: &[Made<'_>]) -> (Arc<Core>, TempDir) {
    let folder = make(python, models);
    (start(python, folder.path()), folder)
}

/// A repository with these models.
fn make(python: &str, models: &[Made<'_>]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, config, script) in models {
        write_model(folder.path(), name, &format!("backend: \"pytorch\" {config}"), "");
        let version = folder.path().join(name).join("1");
        if script.is_empty() {
            continue;
        }
        // Scripting reads the source of classes, which must be in a file.
        let file = folder.path().join(name).join("make.py");
        fs::write(&file, format!("{HEAD}{script}")).unwrap();
        let made = Command::new(python).arg(&file).current_dir(&version).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    folder
}

fn start(python: &str, folder: &Path) -> Arc<Core> {
    start_with_gpus(python, folder, 0)
}

fn start_with_gpus(python: &str, folder: &Path, gpus: u32) -> Arc<Core> {
    let backends: Vec<Arc<dyn ModelBackend>> = vec![Arc::new(PytorchBackend::default())];
    let options = python::options(folder, &backends, &[("python-executable", python)]);
    Core::start(CoreOptions { gpus, ..options }, backends).unwrap()
}

fn request(model: &str, inputs: &[(&str, Tensor)]) -> InferenceRequest {
    let inputs: Vec<(&str, &Tensor)> =
        inputs.iter().map(|(name, tensor)| (*name, tensor)).collect();
    python::request(model, &inputs)
}

fn answer(from: &Receiver<SinkAnswer>) -> Result<InferenceResponse, ServingError> {
    let answer = python::answer(from);
    assert!(answer.is_final);
    answer.result.map(|response| response.expect("a response"))
}

fn infer(
    core: &Core,
    model: &str,
    inputs: &[(&str, Tensor)],
) -> Result<InferenceResponse, ServingError> {
    answer(&send(core, request(model, inputs)))
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn output(response: &InferenceResponse, name: &str) -> Vec<f32> {
    let found = response.outputs.iter().find(|output| output.name == name);
    found.expect("the output").tensor.to_vec().unwrap()
}

/// Inputs and outputs of type FP32 with these names and any number of elements.
fn tensors(inputs: &[&str], outputs: &[&str]) -> String {
    let of = |what: &str, names: &[&str]| -> String {
        let one =
            |name: &&str| format!("{what} {{ name: \"{name}\" data_type: TYPE_FP32 dims: -1 }} ");
        names.iter().map(one).collect()
    };
    of("input", inputs) + &of("output", outputs)
}

fn parameter(name: &str, value: &str) -> String {
    format!("parameters {{ key: \"{name}\" value {{ string_value: \"{value}\" }} }} ")
}

/// Why a model does not load.
fn reason(core: &Core, model: &str) -> String {
    let failures = core.load_failures();
    let found = failures.iter().find(|one| one.model == model);
    found.unwrap_or_else(|| panic!("model '{model}' loads")).reason.clone()
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

#[test]
fn files_that_are_missing_and_calls_that_forward_is_not_are_refused() {
    let sequences = "sequence_batching { state { input_name: \"A__0\" output_name: \"B__0\" \
        data_type: TYPE_FP32 dims: 1 } }";
    let two = tensors(&["A__0"], &["B__0"]);
    let models = [
        ("missing", two.clone()),
        ("named", format!("{two} default_model_filename: \"net.pt\"")),
        ("decoupled", format!("{two} model_transaction_policy {{ decoupled: true }}")),
        ("states", format!("{two} {sequences}")),
    ];
    let models = models.each_ref().map(|(name, config)| (*name, config.as_str(), ""));
    let (core, _folder) = serve("python3", &models);
    assert_says(&reason(&core, "missing"), &["missing/1/model.pt' or 'model.pt2'"]);
    assert_says(
        &reason(&core, "named"),
        &["unable to find '", "named/1/net.pt' for model 'named'"],
    );
    assert_says(&reason(&core, "decoupled"), &["'decoupled' is configured as decoupled"]);
    assert_says(&reason(&core, "states"), &["states that the server keeps"]);
}

#[test]
fn an_interpreter_without_torch_is_named() {
    let Some(real) = numpy() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = format!("platform: \"pytorch_libtorch\" {}", tensors(&["A__0"], &["B__0"]));
    fs::create_dir_all(folder.path().join("m/1")).unwrap();
    fs::write(folder.path().join("m/config.pbtxt"), config).unwrap();
    fs::write(folder.path().join("m/1/model.pt"), "").unwrap();
    // Also where python3 has one.
    let aside = tempfile::tempdir().unwrap();
    fs::write(aside.path().join("torch.py"), "raise ImportError('none here')\n").unwrap();
    let python = aside.path().join("python");
    let path = aside.path().display();
    let text = format!("#!/bin/sh\nPYTHONPATH='{path}' exec '{real}' \"$@\"\n");
    fs::write(&python, text).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let core = start(python.to_str().unwrap(), folder.path());
    let expected =
        ["model 'm' needs torch, which '", "cannot import (none here)", "PYTHON_EXECUTABLE"];
    assert_says(&reason(&core, "m"), &expected);
}

const TWO: &str = "class M(nn.Module):
    def forward(self, x, y):
        return x - y, x * y

script(M(), 'model.pt')
";

#[test]
fn names_give_places_by_number_by_argument_or_by_order() {
    let Some(python) = torch() else { return };
    let numbers = tensors(&["B__1", "A__0"], &["PRODUCT__1", "DIFFERENCE__0"]);
    let arguments = tensors(&["y", "x"], &["DIFFERENCE", "PRODUCT"]);
    let order = tensors(&["FIRST", "SECOND"], &["DIFFERENCE"]);
    let models = [("numbers", &numbers), ("arguments", &arguments), ("order", &order)];
    let models = models.map(|(name, config)| (name, config.as_str(), TWO));
    let (core, _folder) = serve(&python, &models);
    let run = |model, first, second| {
        infer(&core, model, &[(first, floats(&[5.0, 7.0])), (second, floats(&[2.0, 3.0]))]).unwrap()
    };
    let response = run("numbers", "A__0", "B__1");
    assert_eq!(output(&response, "DIFFERENCE__0"), [3.0, 4.0]);
    assert_eq!(output(&response, "PRODUCT__1"), [10.0, 21.0]);
    let response = run("arguments", "x", "y");
    assert_eq!(output(&response, "DIFFERENCE"), [3.0, 4.0]);
    assert_eq!(output(&response, "PRODUCT"), [10.0, 21.0]);
    assert_eq!(output(&run("order", "FIRST", "SECOND"), "DIFFERENCE"), [3.0, 4.0]);
}

#[test]
fn dictionaries_go_by_names() {
    let Some(python) = torch() else { return };
    let config = tensors(&["a", "b"], &["sum", "difference"]);
    let script = "class M(nn.Module):
    def forward(self, given: Dict[str, Tensor]) -> Dict[str, Tensor]:
        a, b = given['a'], given['b']
        return {'difference': a - b, 'more': a, 'sum': a + b}

script(M(), 'model.pt')
";
    let other = tensors(&["a", "b"], &["sum", "quotient"]);
    let (core, _folder) = serve(&python, &[("m", &config, script), ("other", &other, script)]);
    let inputs = [("b", floats(&[1.0])), ("a", floats(&[5.0]))];
    let response = infer(&core, "m", &inputs).unwrap();
    assert_eq!(output(&response, "sum"), [6.0]);
    assert_eq!(output(&response, "difference"), [4.0]);
    let error = infer(&core, "other", &inputs).unwrap_err();
    assert_says(&error.message, &["gives difference, more, sum, expected output 'quotient'"]);
}

#[test]
fn an_input_that_has_a_default_may_be_left_out() {
    let Some(python) = torch() else { return };
    let optional = "input { name: \"y\" data_type: TYPE_FP32 dims: -1 optional: true } \
        input { name: \"z\" data_type: TYPE_FP32 dims: -1 optional: true }";
    let config = tensors(&["x"], &["OUT"]) + optional;
    let script = "class M(nn.Module):
    def forward(self, x, y: Optional[Tensor] = None, z: Optional[Tensor] = None, times: int = 3):
        if y is not None:
            x = x + y
        if z is not None:
            x = x - z
        return x * times

script(M(), 'model.pt')
";
    let (core, _folder) = serve(&python, &[("m", &config, script)]);
    let one = || floats(&[1.0]);
    let run = |inputs: &[(&str, Tensor)]| output(&infer(&core, "m", inputs).unwrap(), "OUT");
    assert_eq!(run(&[("x", one())]), [3.0]);
    assert_eq!(run(&[("x", one()), ("y", one())]), [6.0]);
    assert_eq!(run(&[("x", one()), ("z", one())]), [0.0]);
    assert_eq!(run(&[("x", one()), ("y", one()), ("z", one())]), [3.0]);
}

/// Batches of four rows, or of what came until the delay was over.
const BATCHES: &str = "max_batch_size: 4 \
    dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 30000000 } ";

#[test]
fn requests_of_a_batch_run_as_one_and_a_bad_one_fails_alone() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def forward(self, x):
        if bool((x < 0).any()):
            raise ValueError('it is negative')
        return x * 10 + x.shape[0]

script(M(), 'model.pt')
";
    let config = format!("{BATCHES} {}", tensors(&["x"], &["OUT"]));
    let (core, _folder) = serve(&python, &[("m", &config, script)]);
    let row = |value: f32| Tensor::from_slice(&[1, 1], &[value]).unwrap();
    let run = |last: f32| {
        let two = Tensor::from_slice(&[2, 1], &[2.0_f32, 3.0]).unwrap();
        let sent = [row(1.0), two, row(last)].map(|x| send(&core, request("m", &[("x", x)])));
        sent.map(|from| answer(&from))
    };
    let found = run(4.0).map(|result| output(&result.unwrap(), "OUT"));
    assert_eq!(found, [vec![14.0], vec![24.0, 34.0], vec![44.0]]);
    let [first, second, last] = run(-1.0);
    assert_eq!(output(&first.unwrap(), "OUT"), [11.0]);
    assert_eq!(output(&second.unwrap(), "OUT"), [22.0, 32.0]);
    let error = last.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    assert_says(&error.message, &["PyTorch execute failure of model 'm'", "it is negative"]);
    let stats = core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!((stats.success.count, stats.fail.count), (5, 1));
}

#[test]
fn outputs_without_rows_of_the_batch_are_computed_for_each_request() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def forward(self, x):
        return x.sum(dim=0)

script(M(), 'model.pt')
";
    let config = format!("{BATCHES} {}", tensors(&["x"], &["OUT"]));
    let (core, _folder) = serve(&python, &[("m", &config, script)]);
    let two = |value: f32| Tensor::from_slice(&[2, 1], &[value, value]).unwrap();
    for _ in 0..2 {
        let sent = [1.0, 2.0].map(|value| send(&core, request("m", &[("x", two(value))])));
        let found = sent.map(|from| output(&answer(&from).unwrap(), "OUT"));
        assert_eq!(found, [vec![2.0], vec![4.0]]);
    }
}

#[test]
fn strings_are_lists() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def forward(self, texts: List[str], n) -> Tuple[List[str], Tensor]:
        made: List[str] = []
        for text in texts:
            made.append(text + '!')
        return made, n + len(texts)

script(M(), 'model.pt')
";
    let tensor = |what, name, kind, dims| {
        format!("{what} {{ name: \"{name}\" data_type: {kind} dims: {dims} }} ")
    };
    let plain = tensor("input", "texts", "TYPE_STRING", "-1")
        + &tensor("input", "n", "TYPE_FP32", "-1")
        + &tensor("output", "OUT__0", "TYPE_STRING", "-1")
        + &tensor("output", "N__1", "TYPE_FP32", "-1");
    let reshaped = plain.replace("dims: -1", "dims: 1 reshape { }");
    let batched = format!("{BATCHES} {reshaped}");
    let wide = format!("max_batch_size: 4 {plain}");
    let models = [("plain", &plain), ("batched", &batched), ("wide", &wide)];
    let models = models.map(|(name, config)| (name, config.as_str(), script));
    let (core, _folder) = serve(&python, &models);
    let strings = |texts: &[&str], shape: &[usize]| {
        let texts: Vec<ByteString> = texts.iter().map(|&text| ByteString::from(text)).collect();
        Tensor::from_vec(shape, texts).unwrap()
    };
    let texts = |response: &InferenceResponse| -> Vec<ByteString> {
        response.outputs.iter().find(|one| one.name == "OUT__0").unwrap().tensor.to_vec().unwrap()
    };
    let given = [("texts", strings(&["a", "", "é"], &[3])), ("n", floats(&[1.0]))];
    let response = infer(&core, "plain", &given).unwrap();
    assert_eq!(texts(&response), ["a!", "!", "é!"].map(ByteString::from));
    assert_eq!(output(&response, "N__1"), [4.0]);
    let sent = [["a", "b"], ["c", "d"]].map(|two| {
        let n = Tensor::from_slice(&[2, 1], &[0.0_f32, 1.0]).unwrap();
        send(&core, request("batched", &[("texts", strings(&two, &[2, 1])), ("n", n)]))
    });
    let found = sent.map(|from| answer(&from).unwrap());
    assert_eq!(
        found.each_ref().map(texts).concat(),
        ["a!", "b!", "c!", "d!"].map(ByteString::from)
    );
    assert_eq!(output(&found[1], "N__1"), [4.0, 5.0]);
    assert_says(
        &reason(&core, "wide"),
        &["input 'texts' of model 'wide'", "one dimension", "found 2"],
    );
}

const IDENTITY: &str = "class M(nn.Module):
    def forward(self, x):
        return x

script(M(), 'model.pt')
";

#[test]
fn all_types_and_sizes_come_back() {
    let Some(python) = torch() else { return };
    let kinds = [
        ("BOOL", DataType::Bool),
        ("UINT8", DataType::Uint8),
        ("INT8", DataType::Int8),
        ("INT16", DataType::Int16),
        ("INT32", DataType::Int32),
        ("INT64", DataType::Int64),
        ("FP16", DataType::Fp16),
        ("BF16", DataType::Bf16),
        ("FP32", DataType::Fp32),
        ("FP64", DataType::Fp64),
    ];
    let configs = kinds
        .map(|(name, _)| tensors(&["x"], &["OUT"]).replace("TYPE_FP32", &format!("TYPE_{name}")));
    let models: Vec<_> = kinds
        .iter()
        .zip(&configs)
        .map(|((name, _), config)| (*name, config.as_str(), IDENTITY))
        .collect();
    let (core, _folder) = serve(&python, &models);
    for (name, kind) in kinds {
        for len in [0, 1, 3, 100_000] {
            let bytes: Vec<u8> =
                (0..len * kind.size_bytes().unwrap_or(1)).map(|at| u8::from(at % 3 == 0)).collect();
            let given = Tensor::from_bytes(kind, &[len], &bytes).unwrap();
            let response = infer(&core, name, &[("x", given)]).unwrap();
            let found = &response.outputs[0].tensor;
            assert_eq!((found.dtype(), found.shape()), (kind, [len].as_slice()), "{name}");
            assert!(found.as_bytes().unwrap() == bytes, "{name}");
        }
    }
}

#[test]
fn exported_programs_run_as_scripts_do() {
    let Some(python) = exporting_torch() else { return };
    let arguments = "class M(nn.Module):
    def forward(self, x, flag, *, y):
        return x - y if flag else x

n = torch.export.Dim('n')
x = torch.ones(3)
export(M(), 'model.pt2', (x, True), {'y': x.clone()}, x={0: n}, flag=None, y={0: n})
";
    let dictionary = "class M(nn.Module):
    def forward(self, given):
        return {'difference': given['a'] - given['b'], 'sum': given['a'] + given['b']}

n = torch.export.Dim('n')
x = torch.ones(3)
export(M(), 'net.pt2', ({'b': x, 'a': x.clone()},), given={'a': {0: n}, 'b': {0: n}})
";
    let rows = "class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x) * 0 + x.shape[0]

n = torch.export.Dim('n', max=64)
export(M().eval(), 'model.pt2', (torch.ones(3, 2),), x={0: n})
script(M().eval(), 'other.pt')
";
    let dictionary_config =
        tensors(&["a", "b"], &["sum", "difference"]) + "default_model_filename: \"net.pt2\"";
    let rows_config = format!("{BATCHES} {}", tensors(&["x"], &["OUT"]));
    let wrong = tensors(&["x"], &["OUT"]);
    let models = [
        ("arguments", &tensors(&["y", "x"], &["OUT"]), arguments),
        ("dictionary", &dictionary_config, dictionary),
        ("rows", &rows_config, rows),
        ("wrong", &wrong, arguments),
    ];
    let models = models.map(|(name, config, script)| (name, config.as_str(), script));
    let (core, _folder) = serve(&python, &models);
    let five_two = |first, second| [(first, floats(&[5.0, 6.0])), (second, floats(&[2.0, 1.0]))];
    let response = infer(&core, "arguments", &five_two("x", "y")).unwrap();
    assert_eq!(output(&response, "OUT"), [3.0, 5.0]);
    let response = infer(&core, "dictionary", &five_two("a", "b")).unwrap();
    assert_eq!(output(&response, "difference"), [3.0, 5.0]);
    assert_eq!(output(&response, "sum"), [7.0, 7.0]);
    let two = || Tensor::from_slice(&[2, 2], &[1.0_f32; 4]).unwrap();
    let sent = [two(), two()].map(|x| send(&core, request("rows", &[("x", x)])));
    for from in sent {
        assert_eq!(output(&answer(&from).unwrap(), "OUT"), [4.0, 4.0]);
    }
    assert_says(&reason(&core, "wrong"), &["takes 2 inputs (x, y), the configuration gives 1 (x)"]);
}

#[test]
fn the_file_is_chosen_and_one_that_is_no_model_is_named() {
    let Some(python) = exporting_torch() else { return };
    let both = "class M(nn.Module):
    def __init__(self, plus: float):
        super().__init__()
        self.plus = plus

    def forward(self, x):
        return x + self.plus

script(M(1.0), 'model.pt')
script(M(2.0), 'net.pt')
export(M(3.0), 'model.pt2', (torch.ones(1),))
";
    let weights = "torch.save(nn.Linear(1, 1).state_dict(), 'model.pt')\n";
    let text = "open('model.pt2', 'w').write('nothing')\n";
    let exported = format!("{both}\nimport os\nos.remove('model.pt')\n");
    let config = tensors(&["x"], &["OUT"]);
    let named = |name: &str| format!("{config} default_model_filename: \"{name}\"");
    let models = [
        ("both", config.clone(), both),
        ("exported", config.clone(), exported.as_str()),
        ("named", named("net.pt"), both),
        ("second", named("model.pt2"), both),
        ("weights", config.clone(), weights),
        ("text", config.clone(), text),
    ];
    let models = models.each_ref().map(|(name, config, script)| (*name, config.as_str(), *script));
    let (core, _folder) = serve(&python, &models);
    for (model, plus) in [("both", 1.0), ("exported", 3.0), ("named", 2.0), ("second", 3.0)] {
        let response = infer(&core, model, &[("x", floats(&[0.0]))]).unwrap();
        assert_eq!(output(&response, "OUT"), [plus], "{model}");
    }
    let expected = ["weights/1/model.pt' of model 'weights' cannot be read as TorchScript"];
    assert_says(&reason(&core, "weights"), &expected);
    let expected =
        ["text/1/model.pt2' of model 'text' cannot be read as a program of torch.export"];
    assert_says(&reason(&core, "text"), &expected);
}

#[test]
fn configurations_that_do_not_fit_forward_are_refused() {
    let Some(python) = torch() else { return };
    let numbers = "class M(nn.Module):
    def forward(self, x, n: int):
        return x * n

script(M(), 'model.pt')
";
    let strings = tensors(&["x", "y"], &["OUT"])
        .replace("FP32 dims: -1 } output", "STRING dims: -1 } output");
    let models = [
        ("fewer", tensors(&["x"], &["OUT"]), TWO),
        ("more", tensors(&["A", "B", "C"], &["OUT"]), TWO),
        ("gap", tensors(&["A__0", "B__2"], &["OUT"]), TWO),
        ("twice", tensors(&["A__1", "B__1"], &["OUT"]), TWO),
        ("number", tensors(&["x", "n"], &["OUT"]), numbers),
        ("strings", strings, TWO),
        ("flag", tensors(&["x", "y"], &["OUT"]) + &parameter("INFERENCE_MODE", "maybe"), TWO),
        (
            "threads",
            tensors(&["x", "y"], &["OUT"]) + &parameter("INTRA_OP_THREAD_COUNT", "many"),
            TWO,
        ),
    ];
    let models = models.each_ref().map(|(name, config, script)| (*name, config.as_str(), *script));
    let (core, _folder) = serve(&python, &models);
    let says = |model, parts: &[&str]| assert_says(&reason(&core, model), parts);
    says(
        "fewer",
        &["fewer/1/model.pt' takes 2 inputs (x, y), the configuration gives 1 (x), by name"],
    );
    says("more", &["the configuration gives 3 (A, B, C), in the order of the configuration"]);
    says("gap", &["the configuration gives 2 (A__0, B__2), by the numbers behind '__'"]);
    says("twice", &["the configuration gives 2 (A__1, B__1), by the numbers behind '__'"]);
    says("number", &["argument 'n' of forward()", "is int, expected Tensor or List[str]"]);
    says(
        "strings",
        &["argument 'y' of forward()", "is Tensor, which input 'y' of model 'strings' cannot be"],
    );
    says(
        "flag",
        &["parameter 'INFERENCE_MODE' of model 'flag' must be true or false, found 'maybe'"],
    );
    says("threads", &["parameter 'INTRA_OP_THREAD_COUNT'", "must be a whole number, found 'many'"]);
}

#[test]
fn outputs_that_are_not_the_configured_ones_fail_their_request() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def forward(self, x):
        if x.shape[0] == 0:
            return x.sum()
        if x.shape[0] == 1:
            return x.to(torch.int64)
        return x

script(M(), 'model.pt')
";
    let second = tensors(&["x"], &["FIRST__0", "SECOND__1"]);
    let models = [("m", &tensors(&["x"], &["OUT"]), script), ("second", &second, script)];
    let models = models.map(|(name, config, script)| (name, config.as_str(), script));
    let (core, _folder) = serve(&python, &models);
    let run = |model, values: &[f32]| infer(&core, model, &[("x", floats(values))]);
    assert_eq!(output(&run("m", &[1.0, 2.0]).unwrap(), "OUT"), [1.0, 2.0]);
    let error = run("m", &[]).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArg);
    assert_says(&error.message, &["output 'OUT' is a scalar"]);
    let error = run("m", &[1.0]).unwrap_err();
    let expected =
        "configuration expects datatype TYPE_FP32 for output 'OUT', model provides TYPE_INT64";
    assert_says(&error.message, &[expected]);
    let error = run("second", &[1.0, 2.0]).unwrap_err();
    assert_says(&error.message, &["forward() gives 1 outputs, expected one at 1 for 'SECOND__1'"]);
}

#[test]
fn parameters_set_torch() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def forward(self, x):
        return torch.tensor([float((x * 2).is_inference()), float(torch.is_grad_enabled())])

script(M(), 'model.pt')
";
    let config = tensors(&["x"], &["OUT"]);
    let more = [
        ("INFERENCE_MODE", "false"),
        ("DISABLE_OPTIMIZED_EXECUTION", "TRUE"),
        ("INTRA_OP_THREAD_COUNT", "3"),
        ("INTER_OP_THREAD_COUNT", "2"),
        ("ENABLE_JIT_PROFILING", "0"),
        ("ENABLE_JIT_EXECUTOR", "false"),
        ("ENABLE_TENSOR_FUSER", "false"),
        ("ENABLE_CACHE_CLEANING", "true"),
        ("ENABLE_WEIGHT_SHARING", "true"),
        ("DISABLE_CUDNN", "true"),
        ("ENABLE_NVFUSER", "true"),
    ];
    let set = more.iter().map(|(name, value)| parameter(name, value)).collect::<String>() + &config;
    let (core, _folder) = serve(&python, &[("set", &set, script), ("unset", &config, script)]);
    let run = |model| output(&infer(&core, model, &[("x", floats(&[1.0]))]).unwrap(), "OUT");
    assert_eq!(run("set"), [0.0, 0.0]);
    assert_eq!(run("unset"), [1.0, 0.0]);
}

#[test]
fn scripts_over_sequences_get_their_controls() {
    let Some(python) = torch() else { return };
    let script = "class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', torch.zeros(1, 1))

    def forward(self, x, start):
        if bool(start.any()):
            self.total = torch.zeros(1, 1)
        self.total = self.total + x
        return self.total

script(M(), 'model.pt')
";
    let config = format!(
        "max_batch_size: 1 {} sequence_batching {{ control_input {{ name: \"START__1\" \
         control {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} }} }}",
        tensors(&["X__0"], &["OUT__0"])
    );
    let (core, _folder) = serve(&python, &[("m", &config, script)]);
    let run = |id: u64, value: f32, start: bool, end: bool| {
        let x = Tensor::from_slice(&[1, 1], &[value]).unwrap();
        let given = InferenceRequest {
            correlation: CorrelationId::Uint(id),
            sequence_start: start,
            sequence_end: end,
            ..request("m", &[("X__0", x)])
        };
        output(&answer(&send(&core, given)).unwrap(), "OUT__0")
    };
    assert_eq!(run(1, 1.0, true, false), [1.0]);
    assert_eq!(run(1, 2.0, false, true), [3.0]);
    assert_eq!(run(2, 5.0, true, true), [5.0]);
}

#[test]
fn instances_on_a_gpu_outlive_errors_of_cuda() {
    let Some(python) = torch() else { return };
    let asked = "import torch; assert torch.cuda.is_available()";
    if !Command::new(&python).args(["-c", asked]).output().unwrap().status.success() {
        eprintln!("left out: this torch sees no CUDA");
        return;
    }
    // On the processor the last row would be an ordinary error.
    let script = "class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Parameter(torch.ones(4, 1))

    def forward(self, x):
        found = self.rows[x.to(torch.int64)]
        return found + float(found.is_cuda)

script(M(), 'model.pt')
if hasattr(torch.export, 'load'):
    export(M(), 'model.pt2', (torch.zeros(2),), x={0: torch.export.Dim('n')})
";
    let config = tensors(&["x"], &["OUT"]) + "instance_group { kind: KIND_GPU }";
    let exported = format!("{config} default_model_filename: \"model.pt2\"");
    let folder = make(&python, &[("m", &config, script), ("exported", &exported, script)]);
    let core = start_with_gpus(&python, folder.path(), 1);
    let run = |model, row: f32| infer(&core, model, &[("x", floats(&[row, 0.0]))]);
    assert_eq!(output(&run("m", 3.0).unwrap(), "OUT"), [2.0, 2.0]);
    let response = run("exported", 3.0).unwrap();
    assert_eq!(response.outputs[0].tensor.shape(), [2, 1]);
    for _ in 0..2 {
        assert_says(&run("m", 9.0).unwrap_err().message, &["PyTorch execute failure", "CUDA"]);
        // The process is another one; until it is there, a request may meet the end of the last.
        let again = run("m", 1.0).or_else(|_| run("m", 1.0)).unwrap();
        assert_eq!(output(&again, "OUT"), [2.0, 2.0]);
    }
}

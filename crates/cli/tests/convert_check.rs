//! `galatea convert --check`: a package that loses numbers which FP32 has is not written.

use std::path::{Path, PathBuf};

use galatea_formats::{npy, onnx};
use galatea_graph::{AttributeValue, Attributes, Fact, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use crate::program::galatea;

/// A folder with models and samples.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn model(&self, name: &str, graph: &Graph) -> PathBuf {
        let info = onnx::OnnxModelInfo { ir_version: 9, ..Default::default() };
        let path = self.path(name);
        onnx::write_model(graph, &info, &path, onnx::WriteOptions::default()).unwrap();
        path
    }

    fn samples(&self, name: &str, shape: &[usize], value: f32) -> PathBuf {
        let count = shape.iter().product();
        let all = (0..count).map(|at| if at % 2 == 0 { value } else { 1.0 }).collect();
        let path = self.path(name);
        npy::write_npz(&path, [("x", &Tensor::from_vec::<f32>(shape, all).unwrap())]).unwrap();
        path
    }

    /// The exit code, and all that the program says.
    fn convert(&self, model: &Path, target: &Path, more: &[&str]) -> (Option<i32>, String) {
        let mut command = galatea();
        command.env("XDG_CACHE_HOME", self.0.path()).env("HOME", self.0.path());
        let output = command.arg("convert").args([model, target]).args(more).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }
}

/// Operators one after the other; `constants` are second inputs by the place of the operator.
fn chain(shape: &[usize], operators: &[&str]) -> Graph {
    let mut graph = Graph::new("chain");
    graph.opsets.insert(String::new(), 21);
    let mut at = graph.value_named("x");
    graph.value_mut(at).declared = Some(Fact::fixed(DataType::Fp32, shape));
    graph.inputs.push(at);
    for (place, operator) in operators.iter().enumerate() {
        let name = if place + 1 == operators.len() { "y".to_owned() } else { format!("v{place}") };
        let to = graph.value_named(&name);
        let inputs = match *operator {
            "Mul" | "Sub" => vec![Some(at), Some(at)],
            _ => vec![Some(at)],
        };
        let none = Attributes::new();
        graph.add_node("", operator, "", &none, inputs, vec![Some(to)]).unwrap();
        at = to;
    }
    graph.value_mut(at).declared = Some(Fact::fixed(DataType::Fp32, shape));
    graph.outputs.push(at);
    graph
}

/// A product of codes that are found as a run goes.
fn dynamic(length: usize) -> Graph {
    let mut graph = Graph::new("dynamic");
    graph.opsets.insert(String::new(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, length]));
    graph.inputs.push(x);
    let codes: Vec<i8> = (0..length * 4).map(|at| (at * 37 % 251) as u8 as i8).collect();
    let weights = graph.add_constant("w", Tensor::from_vec(&[length, 4], codes).unwrap());
    let unit = graph.add_constant("unit", Tensor::scalar(0.01_f32));
    let mut add =
        |name: &str, named: &[(&str, AttributeValue)], inputs: &[ValueId], to: &[&str]| {
            let named =
                named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let inputs = inputs.iter().copied().map(Some).collect();
            let made: Vec<ValueId> = to.iter().map(|name| graph.value_named(name)).collect();
            let slots = made.iter().copied().map(Some).collect();
            graph.add_node("", name, "", &named, inputs, slots).unwrap();
            made
        };
    let made = add("DynamicQuantizeLinear", &[], &[x], &["codes", "scale", "zero"]);
    let sums = add("MatMulInteger", &[], &[made[0], weights, made[2]], &["sums"]);
    let floats = add("Cast", &[("to", 1_i64.into())], &sums, &["floats"]);
    let both = add("Mul", &[], &[made[1], unit], &["both"]);
    let y = add("Mul", &[], &[floats[0], both[0]], &["y"])[0];
    graph.value_mut(y).declared = Some(Fact::fixed(DataType::Fp32, &[2, 4]));
    graph.outputs.push(y);
    graph
}

#[test]
fn a_package_that_loses_numbers_is_not_written() {
    let place = Place::new();
    let samples = place.samples("large.npz", &[2, 8], 20.0);
    let samples = samples.to_str().unwrap();
    // Infinities, and what is made of them.
    for (name, operators) in [
        ("infinite", &["Exp"][..]),
        ("none", &["Exp", "Sub", "Sigmoid"]),
        ("hidden", &["Exp", "Mul", "Sub"]),
    ] {
        let model = place.model(&format!("{name}.onnx"), &chain(&[2, 8], operators));
        let target = place.path(&format!("{name}.mlpackage"));
        let (code, text) = place.convert(&model, &target, &["--check", samples]);
        assert_eq!(code, Some(1), "{name}: {text}");
        let said =
            "output 'y' has 8 of 16 elements that are no finite numbers, where FP32 has some";
        assert!(text.contains(said) && text.contains("nothing is written"), "{name}: {text}");
        assert!(!text.contains("0.000e0"), "{name}: {text}");
        let node = "(Exp) is the first that loses them; --islands auto";
        assert!(text.contains(node) && text.contains("node 0"), "{name}: {text}");
        assert!(!target.exists(), "{name}");
        let left = std::fs::read_dir(place.0.path()).unwrap().flatten();
        let left = left.filter(|one| one.file_name().to_string_lossy().ends_with(".mlpackage"));
        assert_eq!(left.count(), 0, "{name}");
    }
    let model = place.path("infinite.onnx");
    let target = place.path("infinite.mlpackage");
    let (code, text) = place.convert(&model, &target, &["--check", samples, "--json"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\"largest_difference\":null") && text.contains("\"failed\""), "{text}");
    assert!(text.contains("\"lost_at\":{\"node\":\"node 0"), "{text}");
    // What was there stays, and the ways out work.
    let (code, text) = place.convert(&model, &target, &["--check", "random"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(place.convert(&model, &target, &["--check", samples]).0 == Some(1) && target.exists());
    for way in [&["--precision", "fp32"][..], &["--islands", "auto", "--calibration", samples]] {
        let all: Vec<&str> = way.iter().copied().chain(["--check", samples]).collect();
        let (code, text) = place.convert(&model, &target, &all);
        assert_eq!(code, Some(0), "{way:?}: {text}");
    }
}

#[test]
fn dynamic_codes_pass_a_check_without_any_option() {
    let place = Place::new();
    for length in [16, 512, 4096] {
        let model = place.model("dynamic.onnx", &dynamic(length));
        let target = place.path("dynamic.mlpackage");
        let samples = place.samples("samples.npz", &[2, length], 40.0);
        for data in ["random", samples.to_str().unwrap()] {
            let (code, text) = place.convert(&model, &target, &["--check", data]);
            assert_eq!(code, Some(0), "{length} {data}: {text}");
            assert!(target.exists(), "{text}");
        }
    }
}

#[test]
fn options_that_chunks_do_not_have_are_refused() {
    let place = Place::new();
    let chat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat/1");
    let (code, text) = place.convert(&chat, &place.path("chunks"), &["--check", "random"]);
    assert!(code == Some(1) && text.contains("--check goes with packages"), "{text}");
}

//! Every option of `galatea convert`: a right value changes what is written or said, a wrong one is refused, and so is
//! a right one that has no use where it is given.

use std::path::{Path, PathBuf};

use galatea_formats::{npy, onnx};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use crate::program::galatea;

/// A folder with a model and samples.
struct ConvertFolder {
    folder: tempfile::TempDir,
    model: PathBuf,
}

/// Files and words of a conversion.
#[derive(Debug, PartialEq)]
struct ConvertOutcome {
    code: Option<i32>,
    text: String,
    /// Files by their paths, without those that have numbers of their own.
    files: OrderedMap<String, Vec<u8>>,
}

fn noise(shape: &[usize], factor: f32) -> Tensor {
    let count: usize = shape.iter().product();
    let all = (0..count).map(|at| ((at * 37 % 23) as f32 - 11.0) / 73.0 * factor).collect();
    Tensor::from_vec(shape, all).unwrap()
}

/// Two products with a threshold and a copy between them, of rows whose number is open.
fn model() -> Graph {
    let mut graph = Graph::new("products");
    graph.opsets.insert(String::new(), 21);
    let x = graph.value_named("x");
    let dims = || vec![Dim::symbol("n"), Dim::Known(64)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims()));
    graph.inputs.push(x);
    let none = Attributes::new();
    let mut at = x;
    for (name, operator) in
        [("first", "MatMul"), ("middle", "Relu"), ("same", "Identity"), ("second", "MatMul")]
    {
        let mut inputs = vec![Some(at)];
        if operator == "MatMul" {
            let weights = noise(&[64, 64], if name == "first" { 1.0 } else { 3.0 });
            let weights = graph.add_constant(&format!("{name}.w"), weights);
            // Turned, which a rewrite does once for all.
            let turned = graph.value_named(&format!("{name}.turned"));
            let turns = (vec![Some(weights)], vec![Some(turned)]);
            graph.add_node("", "Transpose", "", &none, turns.0, turns.1).unwrap();
            inputs.push(Some(turned));
        }
        at = graph.value_named(if name == "second" { "y" } else { name });
        graph.add_node("", operator, name, &none, inputs, vec![Some(at)]).unwrap();
    }
    graph.value_mut(at).declared = Some(Fact::new(DataType::Fp32, dims()));
    graph.outputs.push(at);
    graph
}

fn files_of(folder: &Path, at: &Path, files: &mut OrderedMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_of(folder, &path, files);
        } else if !path.ends_with("Manifest.json") {
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
}

impl ConvertFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model_path = folder.path().join("model.onnx");
        let info = onnx::OnnxModelInfo { ir_version: 9, ..Default::default() };
        onnx::write_model(&model(), &info, &model_path, onnx::WriteOptions::default()).unwrap();
        for (name, factor) in [("small", 1.0), ("large", 40.0)] {
            let path = folder.path().join(format!("{name}.npz"));
            npy::write_npz(&path, [("x", &noise(&[4, 64], factor))]).unwrap();
        }
        // A bell of many values and one that is far from them: entropy cuts it off.
        let part = |at: usize, by: usize, of: usize| (at * by % of) as f32 / of as f32 - 0.5;
        let bell = |at| part(at, 7_919, 1_009) + part(at, 331, 2_003) + part(at, 613, 3_001);
        let mut values: Vec<f32> = (0..256 * 64).map(bell).collect();
        values[7] = 40.0;
        let uneven = Tensor::from_vec(&[256, 64], values).unwrap();
        npy::write_npz(&folder.path().join("uneven.npz"), [("x", &uneven)]).unwrap();
        Self { folder, model: model_path }
    }

    /// Converts to `target` with options in one text; `{small}`, `{large}` and `{uneven}` are samples.
    fn convert(&self, source: &Path, target: &str, options: &str) -> ConvertOutcome {
        let folder = self.folder.path();
        let target = folder.join(target);
        drop(std::fs::remove_dir_all(&target));
        let place = |name: &str| folder.join(name).display().to_string();
        let options = options.replace("{small}", &place("small.npz"));
        let options = options.replace("{large}", &place("large.npz"));
        let options = options.replace("{uneven}", &place("uneven.npz"));
        let mut command = galatea();
        command.env("XDG_CACHE_HOME", folder).env("HOME", folder);
        command.arg("convert").args([source, &target]).args(options.split_whitespace());
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let mut files = OrderedMap::new();
        files_of(&target, &target, &mut files);
        // Times are other ones in each run.
        let text = text.lines().filter(|line| !line.ends_with(" s")).collect::<Vec<_>>().join("\n");
        ConvertOutcome { code: output.status.code(), text, files }
    }

    fn package(&self, options: &str) -> ConvertOutcome {
        self.convert(&self.model, "model.mlpackage", options)
    }
}

/// Options that act: the option with a value, what is in its place without it, and what is given beside either.
const EFFECTS: &[(&str, &str, &str)] = &[
    ("--precision fp32", "", ""),
    ("--specification 7", "", ""),
    ("--length n=4", "", ""),
    ("--shape x=4,64", "", ""),
    ("--bucket n=2 --bucket n=4", "", ""),
    ("--longest 16", "", ""),
    ("--weights int8", "", ""),
    ("--weights int4", "", ""),
    ("--weights int4:16", "--weights int4", ""),
    ("--weights palette:4", "", ""),
    ("--weights palette:4:8", "--weights palette:4", ""),
    ("--weights sparse:0.5", "", ""),
    ("--activations int8", "", CALIBRATED),
    ("--calibration {large}", "--calibration {small}", "--length n=4 --activations int8"),
    ("--method entropy", "", "--length n=256 --calibration {uneven} --activations int8"),
    ("--percentile 60", "--percentile 90", PERCENTILE),
    ("--exclude second", "", QUANTIZED),
    ("--accuracy 0.9999", "", QUANTIZED),
    ("--islands second", "", ""),
    ("--check {small}", "", "--length n=4"),
    ("--level O0", "", ""),
    ("--json", "", ""),
];

const CALIBRATED: &str = "--length n=4 --calibration {small}";
const QUANTIZED: &str = "--length n=4 --calibration {small} --activations int8";
const PERCENTILE: &str =
    "--length n=4 --calibration {small} --activations int8 --method percentile";

/// Options that are refused with packages of graphs: what is given, and a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("--precision bf16", "--precision: 'bf16' found, expected fp16 or fp32"),
    ("--specification 5", "--specification: 5 found, expected 6 to 9"),
    ("--specification 8 --weights int4", "this form of weights came with CoreML8"),
    ("--length rows=4", "no input has a length 'rows'"),
    ("--length n", "--length"),
    ("--shape z=4,64", "there is no input 'z'"),
    ("--shape x=4,65", "shape [4, 65] is given"),
    ("--shape x=four", "--shape: 'x=four' found"),
    ("--bucket rows=4", "no input has a length 'rows'"),
    ("--bucket n=2 --shape x=4,64", "--bucket: all lengths of the inputs are given"),
    ("--bucket n=2 --length n=4", "--bucket: all lengths of the inputs are given"),
    ("--longest 0", "--longest: 0 found, expected 1 or more"),
    ("--longest 16 --length n=4", "--longest: each input has its lengths"),
    ("--longest 16 --bucket n=4", "--longest: each input has its lengths"),
    ("--weights int5", "--weights: 'int5' found"),
    ("--weights int4:0", "--weights: 'int4:0' found"),
    ("--weights palette:5", "--weights: 'palette:5' found"),
    ("--weights sparse:2", "--weights: 'sparse:2' found"),
    ("--activations fp16", "--activations: 'fp16' found"),
    ("--activations int8", "--activations int8 needs --calibration"),
    ("--calibration {small} --precision fp32", "--calibration goes with --islands auto"),
    ("--calibration {small} --islands second", "--calibration goes with --islands auto"),
    ("--calibration nowhere.npz", "nowhere.npz"),
    ("--method entropy", "--method goes with --activations int8"),
    ("--percentile 60", "--percentile goes with --activations int8"),
    ("--exclude second", "--exclude goes with --activations int8"),
    ("--accuracy 0.9", "--accuracy goes with --activations int8"),
    ("--accuracy 2 --activations int8 --calibration {small}", "--accuracy"),
    ("--exclude nothing --length n=4 --activations int8 --calibration {small}", "'nothing'"),
    ("--islands nothing", "nothing"),
    ("--islands second --precision fp32", "--islands goes with --precision fp16"),
    ("--islands none,second", "'none' goes with no others"),
    ("--check nowhere.npz", "nowhere.npz"),
    ("--level O4", "--level"),
    ("--context 64", "--context goes with language models"),
    ("--prefill 16", "--prefill goes with language models"),
    ("--chunk-bytes 1000", "--chunk-bytes goes with language models"),
    ("--tokenizer .", "--tokenizer goes with language models"),
    ("--function other", "function"),
];

/// Options that an ONNX model has no use for.
const REFUSED_FOR_ONNX: &[&str] = &[
    "--precision fp16",
    "--specification 9",
    "--length n=4",
    "--shape x=4,64",
    "--bucket n=4",
    "--longest 16",
    "--weights int8",
    "--activations int8",
    "--calibration {small}",
    "--method entropy",
    "--percentile 60",
    "--exclude second",
    "--accuracy 0.9",
    "--islands auto",
    "--check {small}",
    "--level O1",
    "--context 64",
    "--prefill 16",
    "--chunk-bytes 1000",
    "--tokenizer .",
];

/// Options that packages of chunks have no use for.
const REFUSED_FOR_CHUNKS: &[&str] = &[
    "--length n=4",
    "--shape x=4,64",
    "--bucket n=4",
    "--longest 16",
    "--activations int8",
    "--calibration {small}",
    "--method entropy",
    "--percentile 60",
    "--exclude second",
    "--accuracy 0.9",
    "--islands auto",
    "--check {small}",
    "--function main",
];

fn option_of(text: &str) -> &str {
    text.split_whitespace().next().unwrap()
}

#[test]
fn right_values_change_what_is_written_or_said() {
    let folder = ConvertFolder::new();
    let mut known: OrderedMap<String, ConvertOutcome> = OrderedMap::new();
    for (option, other, beside) in EFFECTS {
        let without = format!("{other} {beside}");
        if !known.contains_key(&without) {
            let plain = folder.package(&without);
            assert_eq!(plain.code, Some(0), "{without}: {}", plain.text);
            assert!(!plain.files.is_empty(), "{without}: {}", plain.text);
            known.insert(without.clone(), plain);
        }
        let found = folder.package(&format!("{option} {beside}"));
        assert_eq!(found.code, Some(0), "{option} {beside}: {}", found.text);
        assert!(found != known[&without], "{option} changes nothing beside '{without}'");
    }
}

#[test]
fn wrong_values_and_those_without_use_are_refused_and_nothing_is_written() {
    let folder = ConvertFolder::new();
    for (options, reason) in REFUSED {
        let found = folder.package(options);
        assert!(matches!(found.code, Some(1 | 2)), "{options}: {:?} {}", found.code, found.text);
        assert!(found.text.contains(reason), "{options}: {}", found.text);
        assert!(found.files.is_empty(), "{options}");
    }
}

#[test]
fn options_that_an_onnx_model_does_not_have_are_refused() {
    let folder = ConvertFolder::new();
    assert_eq!(folder.convert(&folder.model, "plain.onnx", "").code, Some(0));
    for options in REFUSED_FOR_ONNX {
        let found = folder.convert(&folder.model, "other.onnx", options);
        assert_eq!(found.code, Some(1), "{options}: {}", found.text);
        let reason = format!("{} goes with ", option_of(options));
        assert!(found.text.contains(&reason), "{options}: {}", found.text);
        assert!(!folder.folder.path().join("other.onnx").exists(), "{options}");
    }
}

#[test]
fn options_that_chunks_do_not_have_are_refused_each() {
    let folder = ConvertFolder::new();
    let chat = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/chat/1");
    for options in REFUSED_FOR_CHUNKS {
        let found = folder.convert(&chat, "chunks", options);
        assert_eq!(found.code, Some(1), "{options}: {}", found.text);
        let reason = format!("{} goes with ", option_of(options));
        assert!(found.text.contains(&reason), "{options}: {}", found.text);
        assert!(found.files.is_empty(), "{options}");
    }
}

#[test]
fn small_weights_that_keep_their_form_are_told() {
    let folder = ConvertFolder::new();
    let small = folder.folder.path().join("small.onnx");
    let mut graph = Graph::new("small");
    graph.opsets.insert(String::new(), 21);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[2, 8]));
    graph.inputs.push(x);
    let w = graph.add_constant("w", noise(&[8, 8], 1.0));
    let none = Attributes::new();
    graph.add_node("", "MatMul", "", &none, vec![Some(x), Some(w)], vec![Some(y)]).unwrap();
    graph.value_mut(y).declared = Some(Fact::fixed(DataType::Fp32, &[2, 8]));
    graph.outputs.push(y);
    let info = onnx::OnnxModelInfo { ir_version: 9, ..Default::default() };
    onnx::write_model(&graph, &info, &small, onnx::WriteOptions::default()).unwrap();
    let found = folder.convert(&small, "small.mlpackage", "--weights int8");
    assert_eq!(found.code, Some(0), "{}", found.text);
    assert!(found.text.contains("--weights: no weights are large enough"), "{}", found.text);
}

#[test]
fn every_option_has_its_rows() {
    let mut command = galatea();
    let output = command.args(["convert", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let words = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    let tried = EFFECTS.iter().map(|(option, ..)| *option);
    let refused = REFUSED.iter().map(|(options, _)| *options);
    let tried: Vec<&str> = tried.chain(refused).collect();
    let mut found = 0;
    for word in words {
        let name = word.trim_matches(|c: char| !c.is_ascii_lowercase());
        // Of every command.
        if matches!(name, "help" | "cache-dir") || name.is_empty() {
            continue;
        }
        found += 1;
        let option = format!("--{name}");
        assert!(tried.iter().any(|row| option_of(row) == option), "{option} has no row");
    }
    assert!(found >= 20, "{found} options in {help}");
}

//! Folders that Core ML has compiled: the programs of `golden/mil` as text, against the same recorded values.

use std::path::{Path, PathBuf};

use galatea_formats::coreml::proto::{CoreMlModelProto, ModelKind};
use galatea_formats::coreml::{self, CoreMlFunction, FeatureShapes, FeatureType};
use galatea_graph::evaluate;
use galatea_tensor::Tensor;
use galatea_testkit::mil::{self, MilCase};
use prost::Message;

use crate::compiled_text::{self, TextStyle};

const STYLES: [TextStyle; 3] = [
    TextStyle { short_scalars: false, grouped_results: true, blocks_first: false },
    TextStyle { short_scalars: true, grouped_results: false, blocks_first: true },
    TextStyle { short_scalars: true, grouped_results: true, blocks_first: false },
];

/// A case as a compiled folder, with its description or without.
fn compiled(case: &MilCase, style: TextStyle, described: bool) -> Option<tempfile::TempDir> {
    let (bytes, folder) = case.model();
    let proto = CoreMlModelProto::decode(bytes.as_slice()).unwrap();
    let ModelKind::MlProgram(program) = proto.kind.as_ref()? else { return None };
    std::fs::write(folder.path().join("model.mil"), compiled_text::program(program, style))
        .unwrap();
    if described {
        let model = coreml::read_model(bytes.into(), Some(folder.path())).unwrap();
        let CoreMlFunction { inputs, outputs, states, .. } = model.function(None).unwrap();
        let text = compiled_text::metadata(proto.specification_version, inputs, outputs, states);
        std::fs::write(folder.path().join("metadata.json"), text).unwrap();
    }
    Some(folder)
}

fn check(case: &MilCase, folder: &Path) -> Result<(), String> {
    let model = coreml::load(folder).map_err(|error| error.to_string())?;
    case.check_model(&model, |graph| {
        let graph = graph.clone();
        Ok(move |inputs: &[Tensor]| {
            evaluate::run(&graph, inputs).map_err(|error| error.to_string())
        })
    })
}

#[test]
fn programs_as_text_give_what_their_packages_give() {
    let mut failures = Vec::new();
    let mut checked = 0;
    for (at, case) in mil::cases().iter().enumerate() {
        let Some(folder) = compiled(case, STYLES[at % STYLES.len()], true) else { continue };
        checked += 1;
        if let Err(text) = check(case, folder.path()) {
            failures.push(format!("{}: {text}", case.name));
        }
    }
    assert!(checked > 300, "only {checked} cases are programs");
    assert!(failures.is_empty(), "{} of {checked} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn programs_without_a_description_are_described_by_their_functions() {
    let case = mil::case("control/list_gathered");
    let folder = compiled(&case, STYLES[0], false).unwrap();
    let model = coreml::load(folder.path()).unwrap();
    let function = model.function(None).unwrap();
    assert!(!function.outputs.is_empty());
    check(&case, folder.path()).unwrap();
}

/// A folder with a program of one operation, and a description.
fn small(text: &str, metadata: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.mil"), text).unwrap();
    if let Some(metadata) = metadata {
        std::fs::write(folder.path().join("metadata.json"), metadata).unwrap();
    }
    folder
}

const RELU: &str = "program(1.0)\n{\n  func main<ios16>(tensor<fp32, [?, 2]> x) [FlexibleShapeInformation = \
                    tuple<tuple<string, dict<string, tensor<int32, [?]>>>>(((\"DefaultShapes\", {{\"x\", [1, 2]}})))] {\n    \
                    tensor<fp32, [?, 2]> y = relu(x = x)[name = string(\"y\")];\n  } -> (y);\n}";

#[test]
fn lengths_of_the_description_bound_runs() {
    let metadata = r#"[{"specificationVersion": 7, "inputSchema": [{"name": "x", "type": "MultiArray",
        "dataType": "Float32", "shape": "[1, 2]", "hasShapeFlexibility": "1", "shapeRange": "[[1, 4], [2, 2]]"}],
        "outputSchema": [{"name": "y", "type": "MultiArray", "dataType": "Float32", "shape": "[]"}]}]"#;
    let folder = small(RELU, Some(metadata));
    let model = coreml::load(folder.path()).unwrap();
    assert_eq!(model.specification, 7);
    let function = model.function(None).unwrap();
    let FeatureType::Array { shapes, .. } = &function.inputs[0].kind else { panic!("an array") };
    assert_eq!(*shapes, FeatureShapes::Range(vec![(1, Some(4)), (2, Some(2))]));
    assert!(function.inputs[0].check_shape(&[5, 2]).is_err());
}

#[test]
fn other_kinds_and_damaged_folders_are_refused_by_name() {
    let error = |folder: &tempfile::TempDir| coreml::load(folder.path()).unwrap_err().to_string();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.espresso.net"), "{}").unwrap();
    assert!(
        error(&folder).contains("a compiled neural network, which only Core ML reads"),
        "{}",
        error(&folder)
    );

    let cases: [(&str, &str); 8] = [
        ("program(2.0)\n{\n}", "model.mil: the program has version 2.0, expected 1"),
        ("graph(1.0)", "model.mil: the text does not begin with 'program'"),
        ("program(1.0)\n{ func main<ios16>(tensor<fp32, [1]> x) {\n y } -> (x);", "expected '('"),
        (
            "program(1.0)\n{ func main<ios16>(tensor<fp23, [1]> x) { } -> (x);}",
            "there is no type of elements 'fp23'",
        ),
        (
            "program(1.0)\n{ func main<ios16>(tensor<fp32, [1]> x) {\n tensor<fp32, [2]> y = const()[val = tensor<fp32, [2]>([1])];} -> (y);}",
            "fp32[2] has 2 elements, found 1",
        ),
        (
            "program(1.0)\n{ func main<ios16>(tensor<fp32, [1]> x) {\n tensor<int8, [1]> y = const()[val = tensor<int8, [1]>([128])];} -> (y);}",
            "line 3: found the number 128, expected an element of int8",
        ),
        (
            "program(1.0)\n{ func main<ios16>(tensor<fp32, [1]> x) {\n tensor<fp32, [1]> y = const()[val = tensor<fp32, [1]>(BLOBFILE(path = string(\"@model_path/../w\"), offset = uint64(64)))];} -> (y);}",
            "the file is not below '@model_path'",
        ),
        (
            "program(1.0)\n{ func main<ios99>(tensor<fp32, [1]> x) { } -> (x);}",
            "the opset is 'ios99'",
        ),
    ];
    for (text, expected) in cases {
        let found = error(&small(text, None));
        assert!(found.contains(expected), "{found}\nexpected {expected}");
    }
    let wrong = small(RELU, Some("{}"));
    assert!(error(&wrong).contains("metadata.json: is no list"), "{}", error(&wrong));
}

#[test]
fn nesting_is_bounded() {
    for text in [
        format!("program(1.0)\n{{ func main<ios16>({}", "list<".repeat(100_000)),
        format!(
            "program(1.0)\n{{ func main<ios16>() {{ fp32 y = const()[val = fp32({}",
            "[".repeat(100_000)
        ),
        format!("program(1.0)\n{{ func main<ios16>() {}", "{ cond() ".repeat(100_000)),
        format!("program(1.0)\n{{ func main<ios16>({}", "tuple<".repeat(100_000)),
    ] {
        let folder = small(&text, None);
        let found = coreml::load(folder.path()).unwrap_err().to_string();
        assert!(found.contains("nested more than 16 deep"), "{found}");
    }
}

/// Every beginning of a text is refused or read, and none ends the process.
#[test]
fn cut_texts_are_refused() {
    let case = mil::case("control/list_gathered");
    let folder = compiled(&case, STYLES[1], true).unwrap();
    let path: PathBuf = folder.path().join("model.mil");
    let text = std::fs::read_to_string(&path).unwrap();
    for end in (0..text.len() - 3).filter(|&end| text.is_char_boundary(end)) {
        std::fs::write(&path, &text[..end]).unwrap();
        assert!(coreml::load(folder.path()).is_err(), "cut at {end}");
    }
}

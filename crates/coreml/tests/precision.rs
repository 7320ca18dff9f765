//! Packages of few bits beside the models in FP32: activations of 8 bits with scales from samples, nodes
//! that stay FP32 as FP16 is too narrow for them, and what both cost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_coreml::{
    ConvertOptions, WeightCompression, calibrate, convert, islands, named_islands,
};
use galatea_formats::coreml::mil::{MilArgument, MilElement, MilOperation};
use galatea_formats::coreml::{load, write_package};
use galatea_formats::npy::read_npz;
use galatea_graph::{Attributes, Fact, Graph, ONNX_DOMAIN, converted};
use galatea_runtime::quantize::{
    NamedInputs, OutputComparison, QuantizeContext, QuantizeMode, QuantizeOptions, RangeMethod,
    compare, quantize,
};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn providers() -> Vec<Arc<dyn ExecutionProvider>> {
    ["cpu", "reference"].into_iter().filter_map(galatea_providers::by_name).collect()
}

/// Runs `body` with everything that measuring on samples needs.
fn with_samples<T>(samples: &[NamedInputs], body: impl FnOnce(&QuantizeContext<'_>) -> T) -> T {
    let (providers, session) = (providers(), SessionOptions::default());
    body(&QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: samples,
        evaluation: &[],
    })
}

/// Writes the package, reads it, runs it operation by operation, and compares it with the model in FP32:
/// the first output.
fn compared(graph: &Graph, options: &ConvertOptions, samples: &[NamedInputs]) -> OutputComparison {
    let package = convert(graph, options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mlpackage");
    write_package(&path, &package).unwrap();
    let program = load(&path).unwrap().functions[0].graph.clone();
    let exact = Session::new(graph.clone(), &providers(), &SessionOptions::default()).unwrap();
    let plain = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    let program = Session::new(program, &providers(), &plain).unwrap();
    compare(&exact, &program, samples).unwrap().remove(0)
}

/// Images of an archive as `[images, 1, 8, 8]`.
fn images(name: &str) -> (Tensor, Vec<i64>) {
    let archive = read_npz(&root().join("golden/digits/images.npz")).unwrap();
    let find = |name: &str| archive.iter().find(|(found, _)| found == name).unwrap().1.clone();
    let pixels = converted(&find(name), DataType::Fp32).unwrap();
    let shape = [pixels.shape()[0], 1, 8, 8];
    (pixels.reshape(&shape).unwrap(), find("labels").to_i64_vec().unwrap())
}

fn digits() -> Graph {
    let path = root().join("examples/models/digits/1/model.onnx");
    galatea_formats::onnx::load(&path).unwrap()
}

fn sample(name: &str, tensor: Tensor) -> NamedInputs {
    vec![(name.to_owned(), tensor)]
}

#[test]
fn digits_are_read_alike_with_few_bits() {
    let graph = digits();
    let test = [sample("IMAGE", images("test").0)];
    let train = [sample("IMAGE", images("train").0)];
    let half = ConvertOptions::default();
    let activations = with_samples(&train, |context| {
        calibrate(&graph, &half, context, RangeMethod::MinMax, &[]).unwrap()
    });
    let weights = |compression| ConvertOptions { compression, ..ConvertOptions::default() };
    let int8 = weights(WeightCompression::Int8);
    let whole = ConvertOptions { activations, ..int8.clone() };
    for (name, options, least) in [
        ("FP16", half, 0.9975),
        ("INT8 weights", int8, 0.992),
        ("INT8 weights and activations", whole, 0.992),
        ("INT4 weights", weights(WeightCompression::Int4 { block: 32 }), 0.98),
        ("palettes of 4 bits", weights(WeightCompression::Palette { bits: 4, group: 0 }), 0.98),
    ] {
        let found = compared(&graph, &options, &test);
        println!("{name}: {found:?}");
        assert_eq!((found.likeness.rows, found.broken), (450, 0), "{name}");
        assert!(found.likeness.top1 >= least, "{name}: {found:?}");
    }
}

#[test]
fn digits_whose_codes_are_found_as_they_run_are_read_alike() {
    let test = [sample("IMAGE", images("test").0)];
    let graph = with_samples(&[], |context| {
        let options = QuantizeOptions::new(QuantizeMode::Dynamic);
        quantize(&digits(), context, &options, &mut |_| {}).unwrap().graph
    });
    assert!(graph.nodes.iter().any(|node| node.op_type == "DynamicQuantizeLinear"));
    for level in [OptimiseLevel::O1, OptimiseLevel::O2, OptimiseLevel::O3] {
        let options = ConvertOptions { level, ..ConvertOptions::default() };
        let found = compared(&graph, &options, &test);
        assert_eq!((found.likeness.rows, found.broken), (450, 0), "{level}");
        assert!(found.likeness.top1 >= 0.99 && found.relative < 0.1, "{level}: {found:?}");
    }
}

/// The operations of a package.
fn operations(graph: &Graph, options: &ConvertOptions) -> Vec<MilOperation> {
    convert(graph, options).unwrap().program.functions["main"].block.operations.clone()
}

#[test]
fn layers_and_pools_read_integers() {
    let graph = digits();
    let train = [sample("IMAGE", images("train").0)];
    let half = ConvertOptions::default();
    let found = |exclude: &[String]| {
        with_samples(&train, |context| {
            calibrate(&graph, &half, context, RangeMethod::MinMax, exclude)
        })
    };
    let activations = found(&[]).unwrap();
    // Three convolutions, two pools and a product; pixels and what limits at zero give are never negative.
    assert_eq!(activations.scales.len(), 6, "{activations:?}");
    assert!(activations.scales.values().all(|affine| !affine.signed && affine.zero == 0));
    let options =
        ConvertOptions { activations, compression: WeightCompression::Int8, ..half.clone() };
    let all = operations(&graph, &options);
    let count = |name: &str| all.iter().filter(|one| one.operator == name).count();
    assert_eq!((count("quantize"), count("dequantize")), (6, 6));
    let made: Vec<&str> = all
        .iter()
        .filter(|one| one.operator == "dequantize")
        .flat_map(|one| one.outputs.iter().map(|(name, _)| name.as_str()))
        .collect();
    for operation in all.iter().filter(|one| matches!(&*one.operator, "conv" | "max_pool")) {
        let Some([MilArgument::Name(read)]) = operation.inputs.get("x").map(Vec::as_slice) else {
            panic!("{operation:?}")
        };
        assert!(made.contains(&read.as_str()), "{} reads {read}", operation.place());
    }
    let fewer = found(&["Conv".to_owned()]).unwrap();
    assert_eq!(fewer.scales.len(), 3, "{fewer:?}");
    let error = found(&["Convolution".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no node, operator or weight 'Convolution'"), "{error}");
    // A layer that is fused with others goes by its weights.
    let layer = graph.nodes.iter().find(|node| node.op_type == "Conv").unwrap();
    let weights = graph.value(layer.input(1).unwrap()).name.clone();
    assert_eq!(found(&[weights]).unwrap().scales.len(), 5);
    let old = ConvertOptions { specification: 7, ..half };
    let error = with_samples(&train, |context| {
        calibrate(&graph, &old, context, RangeMethod::MinMax, &[]).unwrap_err().to_string()
    });
    assert!(error.contains("came with specification 8"), "{error}");
    let error = with_samples(&[], |context| {
        let usual = ConvertOptions::default();
        calibrate(&graph, &usual, context, RangeMethod::MinMax, &[]).unwrap_err().to_string()
    });
    assert!(error.contains("need samples"), "{error}");
}

/// A chain of operators, each with the constant behind its name where one stands there; a name without
/// one gives `x` as the second input where it is binary.
fn chain(shape: &[usize], steps: &[(&str, &str, Option<f32>)]) -> Graph {
    let mut graph = Graph::new("chain");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, shape));
    graph.inputs.push(x);
    let mut at = x;
    for (operator, name, constant) in steps {
        let y = graph.value_named(name);
        let mut inputs = vec![Some(at)];
        match (constant, *operator) {
            (Some(value), _) => {
                inputs.push(Some(graph.add_constant("number", Tensor::scalar(*value))));
            }
            (None, "Div") => inputs = vec![Some(x), Some(at)],
            (None, "Mul") => inputs.push(Some(at)),
            (None, _) => {}
        }
        graph
            .add_node(ONNX_DOMAIN, operator, "", &Attributes::new(), inputs, vec![Some(y)])
            .unwrap();
        at = y;
    }
    graph.outputs.push(at);
    graph
}

fn ramp(shape: &[usize], from: f32, step: f32) -> Tensor {
    let count: usize = shape.iter().product();
    let all = (0..count).map(|at| from + step * f32::from(u16::try_from(at).unwrap()));
    Tensor::from_vec(shape, all.collect()).unwrap()
}

/// The results of the nodes that are to be FP32.
fn found(graph: &Graph, options: &ConvertOptions, samples: &[NamedInputs]) -> Vec<String> {
    let all = with_samples(samples, |context| islands(graph, options, context).unwrap());
    all.into_iter().map(|island| island.result).collect()
}

#[test]
fn nodes_whose_values_fp16_does_not_hold_stay_fp32() {
    // x / √(x² where it is positive)
    let steps = [
        ("Mul", "square", None),
        ("Relu", "above", None),
        ("Sqrt", "root", None),
        ("Div", "y", None),
    ];
    let graph = chain(&[4, 8], &steps);
    let options = ConvertOptions { level: OptimiseLevel::O0, ..ConvertOptions::default() };
    let small = [sample("x", ramp(&[4, 8], -2.0, 0.1))];
    assert_eq!(found(&graph, &options, &small), Vec::<String>::new());
    let large = [sample("x", ramp(&[4, 8], 500.0, 10.0))];
    // The root is held again; the quotient reads what FP16 holds.
    assert_eq!(found(&graph, &options, &large), ["square", "above", "root"]);
    let before = compared(&graph, &options, &large);
    assert!(before.relative > 0.5 || before.broken > 0, "{before:?}");
    let wide = |names: &[&str]| ConvertOptions {
        islands: names.iter().map(|&name| name.to_owned()).collect(),
        ..options.clone()
    };
    let after = compared(&graph, &wide(&["square", "above", "root"]), &large);
    assert!(after.relative < 2e-3 && after.broken == 0, "{after:?}");
    // Between nodes of FP32 there is no cast: one before the first, for the input, which the last one
    // reads as FP16, and one behind them.
    let all = operations(&graph, &wide(&["square", "above", "root"]));
    let halves = |one: &&MilOperation| {
        let given = one.outputs.iter().filter_map(|(_, found)| found.as_tensor());
        one.operator == "cast" && given.into_iter().any(|found| found.element == MilElement::Fp16)
    };
    assert_eq!(all.iter().filter(halves).count(), 2);
}

#[test]
fn nodes_whose_values_vanish_in_fp16_stay_fp32() {
    let steps = [
        ("Mul", "small", Some(1e-4)),
        ("Mul", "tiny", Some(1e-4)),
        ("Mul", "back", Some(1e4)),
        ("Mul", "y", Some(1e3)),
    ];
    let graph = chain(&[3, 5], &steps);
    let options = ConvertOptions { level: OptimiseLevel::O0, ..ConvertOptions::default() };
    let samples = [sample("x", ramp(&[3, 5], 0.5, 0.25))];
    let names = found(&graph, &options, &samples);
    assert_eq!(names, ["tiny", "back"]);
    assert!(compared(&graph, &options, &samples).relative > 0.1);
    let options = ConvertOptions { islands: names.into_iter().collect(), ..options };
    let after = compared(&graph, &options, &samples);
    assert!(after.relative < 2e-3, "{after:?}");
}

#[test]
fn inputs_and_outputs_beyond_fp16_pass_through_islands() {
    let graph = chain(&[2, 2], &[("Mul", "y", Some(2.0))]);
    let options = ConvertOptions::default();
    let samples = [sample("x", ramp(&[2, 2], 1e6, 1.0))];
    let names = found(&graph, &options, &samples);
    assert_eq!(names, ["y"]);
    let options = ConvertOptions { islands: names.into_iter().collect(), ..options };
    let after = compared(&graph, &options, &samples);
    assert_eq!((after.largest, after.broken), (0.0, 0), "{after:?}");
}

#[test]
fn an_island_that_is_no_result_of_a_node_is_refused() {
    let graph = digits();
    let first = graph.nodes[0].output(0).map(|id| graph.value(id).name.clone()).unwrap();
    for (name, is_known) in [(first.as_str(), true), ("Conv", false), ("nothing", false)] {
        let islands = [name.to_owned()].into_iter().collect();
        let made = convert(&graph, &ConvertOptions { islands, ..ConvertOptions::default() });
        match made {
            Ok(_) => assert!(is_known, "{name}"),
            Err(error) => {
                let said = format!("islands: '{name}' found, expected the first result of a node");
                assert!(!is_known && error.to_string().starts_with(&said), "{error}");
            }
        }
    }
}

#[test]
fn islands_may_be_named() {
    let graph = chain(&[2, 2], &[("Mul", "square", None), ("Sqrt", "y", None)]);
    let options = ConvertOptions::default();
    let of = |name: &str| named_islands(&graph, &options, &[name.to_owned()]);
    assert_eq!(of("square").unwrap()[0].result, "square");
    assert_eq!(of("Sqrt").unwrap()[0].result, "y");
    let error = of("Exp").unwrap_err().to_string();
    assert!(error.contains("no node 'Exp'"), "{error}");
}

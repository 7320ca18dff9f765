//! Graphs that are written as Core ML packages, read again and run, beside the graphs themselves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]

use galatea_coreml::{ConvertError, ConvertOptions, convert};
use galatea_formats::coreml::{self, write_package};
use galatea_graph::{Graph, ValueId, evaluate};
use galatea_tensor::{DataType, OrderedMap, Tensor, compare};

use galatea_testkit::graph_maker::GraphMaker;

/// Computes the outputs of a package.
pub fn through_package(
    graph: &Graph,
    inputs: &[(String, Tensor)],
    options: &ConvertOptions,
) -> Result<Vec<Tensor>, ConvertError> {
    let package = convert(graph, options)?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mlpackage");
    write_package(&path, &package).unwrap();
    let model = coreml::load(&path).unwrap();
    let function = model.function(None).unwrap();
    let given = function.inputs.iter().zip(inputs).map(|(feature, (_, tensor))| {
        let shape = if tensor.rank() == 0 { vec![1] } else { tensor.shape().to_vec() };
        let tensor = tensor.reshape(&shape).unwrap();
        let dtype = match tensor.dtype() {
            dtype if dtype.is_float() => DataType::Fp32,
            _ => DataType::Int32,
        };
        assert!(!feature.name.is_empty());
        galatea_graph::converted(&tensor, dtype).unwrap()
    });
    let given: Vec<Tensor> = given.collect();
    Ok(evaluate::run(&function.graph, &given).unwrap())
}

/// Compares a package with its graph: computed in FP32 and in FP16, with lengths that are known and with
/// those that each run brings.
pub fn agree(maker: GraphMaker, outputs: &[Option<ValueId>], half: f64) {
    agree_at(maker, outputs, half, ConvertOptions::default(), true);
}

/// The same with known lengths only.
pub fn agree_fixed(maker: GraphMaker, outputs: &[Option<ValueId>], half: f64) {
    agree_at(maker, outputs, half, ConvertOptions::default(), false);
}

/// The same with options; `flexible` is whether lengths may be brought by each run.
pub fn agree_at(
    mut maker: GraphMaker,
    outputs: &[Option<ValueId>],
    half: f64,
    options: ConvertOptions,
    flexible: bool,
) {
    maker.graph.outputs = outputs.iter().flatten().copied().collect();
    let given: Vec<Tensor> = maker.inputs.iter().map(|(_, tensor)| tensor.clone()).collect();
    let expected = evaluate::run(&maker.graph, &given).unwrap();
    let fixed: OrderedMap<String, Vec<usize>> =
        maker.inputs.iter().map(|(name, tensor)| (name.clone(), tensor.shape().to_vec())).collect();
    for shapes in [Some(fixed), flexible.then(OrderedMap::new)].into_iter().flatten() {
        for (precise, distance) in [(true, 1e-5), (false, half)] {
            let options =
                ConvertOptions { half: !precise, shapes: shapes.clone(), ..options.clone() };
            let found = through_package(&maker.graph, &maker.inputs, &options).unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                near(found, expected, distance);
            }
        }
    }
}

/// Numbers that are so far apart at most, relative to the largest expected one.
fn near(found: &Tensor, expected: &Tensor, distance: f64) {
    let expected = match expected.rank() {
        0 => expected.reshape(&[1]).unwrap(),
        _ => expected.clone(),
    };
    let (found, expected) = (wide(found), wide(&expected));
    let largest =
        expected.to_vec::<f32>().unwrap().into_iter().fold(1.0_f32, |most, value| {
            if value.is_finite() { most.max(value.abs()) } else { most }
        });
    let tolerance = galatea_tensor::Tolerance::Within(distance * f64::from(largest));
    compare(&found, &expected, tolerance).unwrap();
}

fn wide(tensor: &Tensor) -> Tensor {
    galatea_graph::converted(tensor, DataType::Fp32).unwrap()
}

/// Why a graph has no package.
pub fn refused(mut maker: GraphMaker, outputs: &[Option<ValueId>]) -> String {
    maker.graph.outputs = outputs.iter().flatten().copied().collect();
    let shapes = maker.inputs.iter().map(|(name, one)| (name.clone(), one.shape().to_vec()));
    let options = ConvertOptions { shapes: shapes.collect(), ..ConvertOptions::default() };
    convert(&maker.graph, &options).unwrap_err().to_string()
}

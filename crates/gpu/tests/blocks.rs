//! Products with matrices of few bits, and rows of them, beside the reference.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

#[path = "support/matrices.rs"]
mod matrices;
mod support;

use std::sync::Arc;

use galatea_gpu::Device;
use galatea_graph::blocks::{BlockWeights, CodeFormat};
use galatea_graph::ops::fused::BlockMatMul;
use galatea_graph::{Dim, Fact, Graph, Operator, evaluate};
use galatea_runtime::SessionOptions;
use galatea_tensor::Tensor;
use matrices::{Made, Random, Scales, formats};

/// A graph of one node.
fn graph(op: &str, operator: Arc<dyn Operator>, inputs: &[Tensor], outputs: usize) -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert("ai.galatea".into(), 1);
    let ids = inputs.iter().enumerate().map(|(at, value)| {
        let id = graph.value_named(&format!("x{at}"));
        let dims = value.shape().iter().map(|&length| Dim::Known(length)).collect();
        graph.value_mut(id).declared = Some(Fact::new(value.dtype(), dims));
        graph.inputs.push(id);
        Some(id)
    });
    let ids: Vec<_> = ids.collect();
    let results: Vec<_> = (0..outputs).map(|at| graph.value_named(&format!("y{at}"))).collect();
    graph.outputs.clone_from(&results);
    let results = results.into_iter().map(Some).collect();
    graph.add_operator(("ai.galatea", op), operator, ids, results);
    graph
}

fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut random = Random(seed);
    Tensor::from_vec(shape, (0..shape.iter().product()).map(|_| random.unit()).collect()).unwrap()
}

fn made(rows: usize, columns: usize, (format, scales): (CodeFormat, Scales), seed: u64) -> Made {
    Made { rows, columns, format, scales, seed }
}

/// How far each product may be off: rounding to FP32 of terms as large as the largest number of a row.
fn slack(x: &Tensor, weights: &dyn BlockWeights) -> Vec<f32> {
    let columns = weights.columns();
    let mut row = vec![0.0; columns];
    let most: Vec<f32> = (0..weights.rows())
        .map(|at| {
            weights.dequantize_row(at, &mut row).unwrap();
            row.iter().fold(0.0_f32, |most, x| most.max(x.abs()))
        })
        .collect();
    let x = x.to_vec::<f32>().unwrap();
    let sums = x.chunks(columns.max(1)).map(|x| x.iter().map(|x| x.abs()).sum::<f32>());
    sums.flat_map(|sum| most.iter().map(move |most| 3e-6 * sum * most + 1e-6)).collect()
}

fn compare(what: &str, found: &Tensor, expected: &Tensor, slack: &[f32]) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    let (found, expected) = (found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let near = (found - expected).abs() <= slack[at % slack.len()];
        assert!(near, "{what}: {found} for {expected} at {at}, slack {}", slack[at % slack.len()]);
    }
}

fn on_gpu(device: &Arc<Device>, graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let session = support::session(device, graph, &SessionOptions::default()).unwrap();
    session.run_owned(inputs.to_vec()).unwrap()
}

#[test]
fn products_with_every_format_are_those_of_its_numbers() {
    let Some(device) = support::device() else { return };
    for (at, (name, format, scales)) in formats().into_iter().enumerate() {
        let two: Vec<Arc<dyn BlockWeights>> = [(37, 3), (18, 4)]
            .map(|(rows, seed)| Arc::new(made(rows, 512, (format, scales), seed)) as _)
            .to_vec();
        for m in [1, [2, 3, 9, 40][at % 4]] {
            let x = random(&[m, 512], 5);
            let bias = random(&[18], 6);
            let product = BlockMatMul::new(two.clone()).unwrap();
            let mut of = graph("BlockMatMul", Arc::new(product), &[x.clone(), bias.clone()], 2);
            of.nodes[0].inputs.insert(1, None);
            let inputs = [x.clone(), bias];
            let (found, expected) =
                (on_gpu(&device, &of, &inputs), evaluate::run(&of, &inputs).unwrap());
            for ((found, expected), weights) in found.iter().zip(&expected).zip(&two) {
                compare(&format!("{name}, {m} rows"), found, expected, &slack(&x, &**weights));
            }
        }
    }
}

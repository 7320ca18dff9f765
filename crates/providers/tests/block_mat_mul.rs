//! Products with weights as GGUF stores them, of every type, on `cpu` and by reference evaluation.

use std::path::Path;
use std::sync::Arc;

use crate::support::{floats, ints};
use bytes::Bytes;
use galatea_formats::blocks::BlockMatrix;
use galatea_formats::gguf::{GgmlType, GgufWriter, TensorData, parse};
use galatea_formats::safetensors;
use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockGather, BlockMatMul, FusedActivation};
use galatea_graph::{Dim, Fact, Graph, Operator, evaluate};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::Tensor;

const ROWS: usize = 24;
const COLUMNS: usize = 512;

/// A matrix of the blocks that the `gguf` package made, each as often as there is room.
fn matrix(kind: GgmlType, first: usize) -> BlockMatrix {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/gguf/blocks.safetensors");
    let all = safetensors::open(&path).unwrap();
    let blocks = all.tensor(&format!("{kind}.blocks")).unwrap();
    let bytes = blocks.as_bytes().unwrap();
    let each: Vec<&[u8]> = bytes.chunks_exact(kind.block_bytes()).collect();
    let count = ROWS * COLUMNS / kind.block();
    let data: Vec<u8> =
        (0..count).flat_map(|at| each[(at * 7 + first) % each.len()].to_vec()).collect();
    let mut writer = GgufWriter::new();
    let data = TensorData::Bytes(Bytes::from(data));
    writer.tensor("x", kind, &[ROWS, COLUMNS], data).unwrap();
    let mut file = Vec::new();
    writer.write(&mut file).unwrap();
    parse(file.into()).unwrap().tensor("x").unwrap().blocks().unwrap()
}

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
    graph.add_operator("ai.galatea", op, operator, ids, results);
    graph
}

/// Runs the node on `cpu` and by reference, and compares to a share of the largest result.
fn check(what: &str, graph: &Graph, inputs: &[Tensor], share: f32) {
    let expected = evaluate::run(graph, inputs).unwrap();
    let providers = [galatea_providers::by_name("cpu").unwrap()];
    let session = Session::new(graph.clone(), &providers, &SessionOptions::default()).unwrap();
    let found = session.run_tensors(Run::owned(inputs.to_vec())).unwrap();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.shape(), expected.shape(), "{what}");
        let (found, expected) = (found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        let most = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            // Some recorded blocks have scales whose products are beyond FP32.
            let near = found == expected || (found - expected).abs() <= share * most;
            assert!(near, "{what}: {found} for {expected}, largest {most}");
        }
    }
}

#[test]
fn products_with_every_type_are_those_of_its_floats() {
    for kind in GgmlType::all().filter(|kind| kind.code_format().is_some()) {
        let two: [Arc<dyn BlockWeights>; 2] = [0, 3].map(|first| {
            let matrix: Arc<dyn BlockWeights> = Arc::new(matrix(kind, first));
            matrix
        });
        for rounded in [false, true] {
            // Bytes are off by 1/254 of the largest of a block at most.
            let share = if rounded { 0.02 } else { 1e-5 };
            for rows in [1, 3, 40] {
                let x = floats(&[rows, COLUMNS], 5);
                let bias = floats(&[ROWS], 6);
                let what = format!("{kind}, {rows} rows, rounded: {rounded}");
                let product = BlockMatMul::new(two.to_vec()).unwrap().with_rounded_rows(rounded);
                let inputs = [x.clone(), bias.clone(), bias];
                let of = graph("BlockMatMul", Arc::new(product), &inputs, 2);
                check(&what, &of, &inputs, share);
                let gated = BlockMatMul::gated(two.clone(), FusedActivation::Silu).unwrap();
                let gated = Arc::new(gated.with_rounded_rows(rounded));
                let of = graph("BlockMatMul", gated, std::slice::from_ref(&x), 1);
                // Both factors are off, by more of themselves where their terms cancel.
                check(&format!("{what}, gated"), &of, &[x], 5.0 * share);
            }
        }
        let gather = Arc::new(BlockGather::new(Arc::clone(&two[0])));
        let indices = [ints(&[2, 2], &[3, 0, 23, 3])];
        check(&format!("{kind}, rows"), &graph("BlockGather", gather, &indices, 1), &indices, 0.0);
    }
}

#[test]
fn a_row_that_is_not_there_is_an_error() {
    let gather = BlockGather::new(Arc::new(matrix(GgmlType::Q4_0, 0)));
    let indices = [ints(&[1], &[24])];
    let of = graph("BlockGather", Arc::new(gather), &indices, 1);
    let error = evaluate::run(&of, &indices).unwrap_err().to_string();
    assert!(error.contains("index 24 of 24 rows"), "{error}");
}

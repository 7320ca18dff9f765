//! Constants that are larger than what a device shows a kernel at once, on devices that show little.

use std::sync::Arc;

use crate::support;
use crate::support::node::floats;
use galatea_gpu::{GpuDevice, GpuProvider, PoolConfig};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId, evaluate, infer};
use galatea_runtime::{ClaimRequest, ExecutionProvider, Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare};

/// A device that shows a kernel so many bytes of a value.
fn showing(bytes: u64) -> Option<Arc<GpuDevice>> {
    let config = PoolConfig::default().showing(bytes);
    support::device().map(|_| GpuDevice::open_with(support::index(), &config).unwrap())
}

fn add(
    graph: &mut Graph,
    (domain, op): (&str, &str),
    attributes: &[(&str, AttributeValue)],
    inputs: &[ValueId],
) -> ValueId {
    let all: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let result = graph.fresh_value("value");
    let inputs = inputs.iter().map(|&id| Some(id)).collect();
    graph.add_node(domain, op, op, &all, inputs, vec![Some(result)]).unwrap();
    result
}

/// A graph with an input of these dimensions.
fn begun(dtype: DataType, dims: Vec<Dim>) -> (Graph, ValueId) {
    let mut graph = Graph::new("parts");
    for (domain, version) in [("", 21), ("com.microsoft", 1), ("ai.galatea", 1)] {
        graph.opsets.insert(domain.into(), version);
    }
    let x = graph.value_named("x");
    graph.value_mut(x).declared = Some(Fact::new(dtype, dims));
    graph.inputs = vec![x];
    (graph, x)
}

fn rows(width: usize) -> (Graph, ValueId) {
    begun(DataType::Fp32, vec![Dim::symbol("rows"), Dim::Known(width)])
}

/// Checks that the device computes all of the graph as the reference does.
fn agrees(device: &Arc<GpuDevice>, graph: &Graph, x: &Tensor, within: [f64; 2]) {
    let expected = evaluate::run(graph, std::slice::from_ref(x)).unwrap();
    for (precision, within) in [Precision::Fp32, Precision::Fp16].into_iter().zip(within) {
        let options = SessionOptions { precision, ..SessionOptions::default() };
        assert!(support::claims(device, graph, &options));
        let session = support::session(device, graph, &options).unwrap();
        let found = session.run_tensors(Run::named(&[("x", x.clone())])).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            let same = compare(found, expected, Tolerance::Within(within));
            assert!(same.is_ok(), "{:?} in {precision:?}: {same:?}", x.shape());
        }
    }
}

#[test]
fn a_product_with_a_matrix_beyond_a_binding_is_summed_in_parts() {
    let Some(device) = showing(64 << 10) else { return };
    // 128 rows of 31 or 32 columns have 16 KiB: parts of 512 rows, the last one odd.
    for n in [31, 32] {
        let (mut graph, x) = rows(1501);
        let weight = graph.add_constant("weight", floats(&[1501, n], 0.1));
        let bias = graph.add_constant("bias", floats(&[n], 1.0));
        let product = add(&mut graph, ("", "MatMul"), &[], &[x, weight]);
        let sum = add(&mut graph, ("", "Add"), &[], &[product, bias]);
        let y = add(&mut graph, ("", "Relu"), &[], &[sum]);
        graph.outputs = vec![y];
        for m in [1, 5, 10] {
            agrees(&device, &graph, &floats(&[m, 1501], 1.0), [1e-4, 5e-2]);
        }
    }
}

#[test]
fn a_product_with_a_turned_matrix_beyond_a_binding_is_computed_by_columns() {
    let Some(device) = showing(64 << 10) else { return };
    for (n, k) in [(701, 64), (640, 63)] {
        let (mut graph, x) = rows(k);
        let weight = graph.add_constant("weight", floats(&[n, k], 0.1));
        let bias = graph.add_constant("bias", floats(&[n], 1.0));
        let options = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
        let y = add(&mut graph, ("", "Gemm"), &options, &[x, weight, bias]);
        graph.outputs = vec![y];
        for m in [1, 3, 22] {
            agrees(&device, &graph, &floats(&[m, k], 1.0), [1e-4, 5e-2]);
        }
    }
}

#[test]
fn a_table_beyond_a_binding_is_picked_and_multiplied_in_parts() {
    let Some(device) = showing(48 << 10) else { return };
    let (vocabulary, width) = (900, 32);
    let (mut graph, x) = begun(DataType::Int64, vec![Dim::symbol("batch"), Dim::symbol("tokens")]);
    let table = graph.add_constant("table", floats(&[vocabulary, width], 1.0));
    let shape = graph.add_constant("shape", Tensor::vector(vec![-1_i64, 32]));
    let picked = add(&mut graph, ("", "Gather"), &[], &[table, x]);
    let flat = add(&mut graph, ("", "Reshape"), &[], &[picked, shape]);
    let turn = [("transB", AttributeValue::Int(1))];
    let logits = add(&mut graph, ("", "Gemm"), &turn, &[flat, table]);
    graph.outputs = vec![picked, logits];
    let picks = [0_i64, 899, -1, -900, 383, 384, 385, 511, 512, 640];
    let x = Tensor::from_vec(&[2, 5], picks.to_vec()).unwrap();
    agrees(&device, &graph, &x, [1e-4, 5e-2]);
}

#[test]
fn what_is_not_read_in_parts_is_refused_with_its_name_and_sizes() {
    let Some(device) = showing(16 << 10) else { return };
    let (mut graph, x) = rows(8192);
    let mask = graph.add_constant("mask", floats(&[8192], 1.0));
    let y = add(&mut graph, ("", "Add"), &[], &[x, mask]);
    graph.outputs = vec![y];
    let facts = infer::facts(&graph, &std::collections::HashMap::new()).unwrap();
    let claims = GpuProvider::on(device).claim(&ClaimRequest::new(&graph, &facts));
    assert!(claims.claims.is_empty());
    let reason = &claims.refusals[0].reason;
    for part in ["'mask", "32768 bytes", "16384"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn a_value_of_a_run_beyond_a_binding_is_an_error_of_that_run() {
    let Some(device) = showing(64 << 10) else { return };
    let (mut graph, x) = rows(64);
    let y = add(&mut graph, ("", "Relu"), &[], &[x]);
    graph.outputs = vec![y];
    let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
    let run = |m: usize| {
        let found = session.run_tensors(Run::named(&[("x", floats(&[m, 64], 1.0))]));
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    run(256).unwrap();
    let error = run(257).unwrap_err();
    for part in ["'x' has 65792 bytes", "at most 65536"] {
        assert!(error.contains(part), "{error}");
    }
    run(3).unwrap();
}

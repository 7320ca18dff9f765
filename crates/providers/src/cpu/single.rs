//! Graphs of FP16 on processors that compute in FP32.

use std::collections::HashMap;

use galatea_graph::{
    Attributes, Fact, Graph, GraphError, Node, ONNX_DOMAIN, ValueId, converted, infer,
};
use galatea_tensor::DataType;

/// Operators that take long in FP16, for which there are no kernels. Sums, products, quotients and roots are
/// the same: FP32 has more than twice the digits.
const LONG: &[&str] = &[
    "Add",
    "Attention",
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "Div",
    "Erf",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "LayerNormalization",
    "MatMul",
    "MaxPool",
    "Mul",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Softmax",
    "Sqrt",
    "Sub",
    "Tanh",
];

/// Lets operators that take long compute in FP32 what they are given in FP16, and rounds what they give:
/// what FP16 gives whose sums are kept in FP32, as the reference keeps them wide. Gives how many they are.
///
/// # Errors
/// Fails where the types of the graph cannot be inferred.
pub fn in_single(graph: &mut Graph) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let half = |id: ValueId| {
        let fact: Option<&Fact> = facts.get(id.index()).and_then(Option::as_ref);
        fact.is_some_and(|fact| fact.dtype == DataType::Fp16)
    };
    let (mut wide, mut count): (HashMap<ValueId, ValueId>, usize) = (HashMap::new(), 0);
    for mut node in std::mem::take(&mut graph.nodes) {
        let long = node.domain == ONNX_DOMAIN && LONG.contains(&node.op_type.as_str());
        if !long || !node.output(0).is_some_and(half) {
            graph.nodes.push(node);
            continue;
        }
        count += 1;
        for slot in &mut node.inputs {
            let Some(id) = slot.filter(|&id| half(id)) else { continue };
            let found = match wide.get(&id) {
                Some(&found) => found,
                None => widened(graph, id)?,
            };
            wide.insert(id, found);
            *slot = Some(found);
        }
        let narrow = narrowed(graph, &mut node, half);
        graph.nodes.push(node);
        for (from, to) in narrow {
            cast(graph, from, to, FLOAT16)?;
        }
    }
    Ok(count)
}

/// The numbers of types in ONNX.
const FLOAT: i64 = 1;
const FLOAT16: i64 = 10;

/// The outputs of a node as FP32; gives those that are to be rounded.
fn narrowed(
    graph: &mut Graph,
    node: &mut Node,
    half: impl Fn(ValueId) -> bool,
) -> Vec<(ValueId, ValueId)> {
    let mut all = Vec::new();
    for slot in &mut node.outputs {
        if let Some(id) = slot.filter(|&id| half(id)) {
            let name = graph.value(id).name.clone();
            let exact = graph.fresh_value(&name);
            all.push((exact, id));
            *slot = Some(exact);
        }
    }
    all
}

/// A value as FP32.
fn widened(graph: &mut Graph, id: ValueId) -> Result<ValueId, GraphError> {
    let name = graph.value(id).name.clone();
    if let Some(tensor) = graph.constant(id)
        && let Ok(tensor) = converted(tensor, DataType::Fp32)
    {
        return Ok(graph.add_constant(&name, tensor));
    }
    let to = graph.fresh_value(&name);
    cast(graph, id, to, FLOAT)?;
    Ok(to)
}

fn cast(graph: &mut Graph, from: ValueId, to: ValueId, dtype: i64) -> Result<(), GraphError> {
    let attributes = Attributes::from([("to".to_owned(), dtype.into())]);
    graph.add_node(ONNX_DOMAIN, "Cast", "", &attributes, vec![Some(from)], vec![Some(to)])
}

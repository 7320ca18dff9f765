//! Graphs of 16-bit floats on processors that compute in FP32.

use std::collections::HashMap;

use galatea_graph::{
    Attributes, Fact, Graph, GraphError, Node, ONNX_DOMAIN, OperatorInputs, ValueId, converted,
    infer, onnx_number,
};
use galatea_kernels::Isa;
use galatea_runtime::Precision;
use galatea_tensor::DataType;

use super::kernel::{CpuBuildContext, CpuKernelRow, CpuNodeView};
use super::rows::KERNELS;

/// Most elements of a constant that a row may look at to tell whether it takes a node, such as a border or a scale.
const MAX_READ: usize = 4096;

/// Facts of a graph with FP32 in the place of FP16 and BF16.
#[derive(Debug)]
pub(super) struct SingleFacts(Vec<Option<Fact>>);

impl SingleFacts {
    /// Widens facts; gives none where no value has 16 bits.
    pub(super) fn of(facts: &[Option<Fact>]) -> Option<Self> {
        let any = facts.iter().flatten().any(is_half);
        any.then(|| Self(facts.iter().map(|fact| fact.as_ref().map(widened_fact)).collect()))
    }

    /// Finds the row that takes a node of 16-bit floats as one of FP32. A node that gives 16 bits whatever it is given
    /// has none.
    pub(super) fn row(
        &self,
        graph: &Graph,
        node: &Node,
        facts: &[Option<Fact>],
    ) -> Option<&'static CpuKernelRow> {
        let narrow = |id: &ValueId| facts[id.index()].as_ref().is_some_and(is_half);
        if !node.inputs.iter().chain(&node.outputs).flatten().any(narrow)
            || node.is_view()
            || !node.operator.bodies().is_empty()
        {
            return None;
        }
        let device =
            CpuBuildContext { isa: Isa::detect(), packed: None, choices: None, blas: None };
        let precision = Precision::Fp32;
        let view = CpuNodeView { graph, node, facts, precision, device };
        if KERNELS.find(&view).is_ok() {
            return None;
        }
        let row = KERNELS.find(&CpuNodeView { facts: &self.0, ..view }).ok()?;
        self.gives_single(node).then_some(row)
    }

    /// Returns whether a node that is given FP32 gives FP32 where it gave 16 bits.
    fn gives_single(&self, node: &Node) -> bool {
        let fact = |id: ValueId| self.0[id.index()].as_ref();
        let inputs: Vec<Option<&Fact>> =
            node.inputs.iter().map(|slot| slot.and_then(fact)).collect();
        let Ok(found) = node.operator.infer(OperatorInputs::new(&inputs)) else { return false };
        node.outputs.iter().zip(&found).all(|(slot, found)| {
            slot.and_then(fact).is_none_or(|expected| expected.dtype == found.dtype)
        })
    }
}

/// Lets nodes for which there are kernels in FP32 alone compute in FP32 what they are given in FP16 or BF16, and
/// rounds what they give: what 16 bits give whose sums are kept in FP32, as the reference keeps them wide. Gives
/// how many they are.
///
/// # Errors
/// Fails where the types of the graph cannot be inferred.
pub fn in_single(graph: &mut Graph) -> Result<usize, GraphError> {
    let facts = infer::facts(graph, &HashMap::new())?;
    let Some(single) = SingleFacts::of(&facts) else { return Ok(0) };
    let half = |id: ValueId| {
        let fact: Option<&Fact> = facts.get(id.index()).and_then(Option::as_ref);
        fact.filter(|fact| is_half(fact)).map(|fact| fact.dtype)
    };
    let chosen: Vec<bool> =
        graph.nodes.iter().map(|node| single.row(graph, node, &facts).is_some()).collect();
    let (mut wide, mut count): (HashMap<ValueId, ValueId>, usize) = (HashMap::new(), 0);
    for (mut node, chosen) in std::mem::take(&mut graph.nodes).into_iter().zip(chosen) {
        if !chosen {
            graph.nodes.push(node);
            continue;
        }
        count += 1;
        for slot in &mut node.inputs {
            let Some(id) = slot.filter(|&id| half(id).is_some()) else { continue };
            let found = match wide.get(&id) {
                Some(&found) => found,
                None => widened(graph, id)?,
            };
            wide.insert(id, found);
            *slot = Some(found);
        }
        let narrow = narrowed(graph, &mut node, half);
        graph.nodes.push(node);
        for RoundedOutput { exact, rounded, dtype } in narrow {
            cast(graph, exact, rounded, dtype)?;
        }
    }
    Ok(count)
}

fn is_half(fact: &Fact) -> bool {
    fact.is_tensor() && matches!(fact.dtype, DataType::Fp16 | DataType::Bf16)
}

/// The fact of a value as FP32.
fn widened_fact(fact: &Fact) -> Fact {
    let mut wide = fact.clone();
    if is_half(fact) {
        wide.dtype = DataType::Fp32;
        if let Some(value) = wide.value.as_mut().filter(|value| value.elements() <= MAX_READ)
            && let Ok(converted) = converted(value, DataType::Fp32)
        {
            *value = converted;
        }
    }
    wide
}

/// A result in FP32, and the value of 16 bits that it becomes.
struct RoundedOutput {
    exact: ValueId,
    rounded: ValueId,
    dtype: DataType,
}

/// The outputs of a node as FP32; gives those that are to be rounded.
fn narrowed(
    graph: &mut Graph,
    node: &mut Node,
    half: impl Fn(ValueId) -> Option<DataType>,
) -> Vec<RoundedOutput> {
    let mut all = Vec::new();
    for slot in &mut node.outputs {
        if let Some(rounded) = *slot
            && let Some(dtype) = half(rounded)
        {
            let name = graph.value(rounded).name.clone();
            let exact = graph.fresh_value(&name);
            all.push(RoundedOutput { exact, rounded, dtype });
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
    cast(graph, id, to, DataType::Fp32)?;
    Ok(to)
}

fn cast(graph: &mut Graph, from: ValueId, to: ValueId, dtype: DataType) -> Result<(), GraphError> {
    let number = onnx_number(dtype).unwrap_or_default();
    let attributes = Attributes::from([("to".to_owned(), number.into())]);
    graph.add_node(ONNX_DOMAIN, "Cast", "", &attributes, vec![Some(from)], vec![Some(to)])
}

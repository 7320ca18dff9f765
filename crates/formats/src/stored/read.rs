//! Bytes to a graph.

use std::sync::Arc;

use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, Node, SubgraphAttribute, ValueId, ops,
};
use galatea_tensor::{Allocation, ByteString, DataType, Tensor};
use prost::Message;

use super::proto::{
    AttributeKind, DimKind, StoredAttribute, StoredBody, StoredConstant, StoredDims, StoredFact,
    StoredGraphProto as GraphMessage, StoredModel, StoredNode, StoredPort,
};
use super::{KINDS, MAX_DEPTH, StoredError, StoredGraph, data_type};

/// Reads a graph back. `files` are those that its large constants are placed in.
///
/// # Errors
/// Fails when the bytes are no such graph, or a file is shorter than a constant's place.
pub fn read(bytes: &[u8], files: &[Arc<dyn Allocation>]) -> Result<StoredGraph, StoredError> {
    let model = StoredModel::decode(bytes).map_err(|error| StoredError::new(error.to_string()))?;
    let constants = model.constants.iter().map(|constant| tensor(constant, files));
    let constants = constants.collect::<Result<_, _>>()?;
    of_message(model, constants)
}

/// The graph of a message with these constants.
pub(super) fn of_message(
    model: StoredModel,
    constants: Vec<Tensor>,
) -> Result<StoredGraph, StoredError> {
    let stored = model.graph.ok_or_else(|| StoredError::new("there is no graph"))?;
    let graph = graph(stored, &constants, 0)?;
    let inputs = ports(model.inputs)?;
    let outputs = ports(model.outputs)?;
    if inputs.len() != graph.inputs.len() || outputs.len() != graph.outputs.len() {
        return Err(StoredError::new("inputs or outputs are missing"));
    }
    Ok(StoredGraph { graph, inputs, outputs, constants })
}

fn length(value: u64) -> Result<usize, StoredError> {
    usize::try_from(value).map_err(|_| StoredError::new(format!("length {value} is too large")))
}

fn index(value: u32) -> Result<usize, StoredError> {
    length(u64::from(value))
}

fn tensor(stored: &StoredConstant, files: &[Arc<dyn Allocation>]) -> Result<Tensor, StoredError> {
    let failed = |error: galatea_tensor::TensorError| StoredError::new(error.to_string());
    let dtype = data_type(&stored.dtype)?;
    let shape = stored.dims.iter().map(|&len| length(len)).collect::<Result<Vec<_>, _>>()?;
    if dtype == DataType::Bytes {
        let all = stored.strings.iter().map(|text| ByteString::from(&text[..])).collect();
        return Tensor::from_vec::<ByteString>(&shape, all).map_err(failed);
    }
    let Some(place) = stored.place else {
        return Tensor::from_bytes(dtype, &shape, &stored.bytes).map_err(failed);
    };
    let file = files.get(index(place.file)?);
    let file = file.ok_or_else(|| StoredError::new(format!("there is no file {}", place.file)))?;
    let start = length(place.offset)?;
    Tensor::from_allocation_lazily(dtype, &shape, Arc::clone(file), start).map_err(failed)
}

fn ports(all: Vec<StoredPort>) -> Result<Vec<(String, Fact)>, StoredError> {
    let port = |port: StoredPort| {
        let found = port.fact.ok_or_else(|| StoredError::new("an input or output has no type"))?;
        Ok((port.name, fact(found)?))
    };
    all.into_iter().map(port).collect()
}

fn fact(stored: StoredFact) -> Result<Fact, StoredError> {
    let kind = KINDS.get(index(stored.kind)?).copied();
    let kind = kind.ok_or_else(|| StoredError::new("a value is of no known kind"))?;
    let dims = |all: StoredDims| {
        let dim = |kind: Option<DimKind>| {
            Ok(match kind {
                Some(DimKind::Known(len)) => Dim::Known(length(len)?),
                Some(DimKind::Symbol(name)) => Dim::Symbol(name.into()),
                None => Dim::Unknown,
            })
        };
        all.dims.into_iter().map(|one| dim(one.kind)).collect::<Result<Vec<_>, StoredError>>()
    };
    let dtype = data_type(&stored.dtype)?;
    let shape = stored.shape.map(dims).transpose()?;
    let elements = stored.elements.map(dims).transpose()?;
    Ok(Fact { kind, dtype, shape, value: None, elements })
}

fn graph(stored: GraphMessage, constants: &[Tensor], depth: usize) -> Result<Graph, StoredError> {
    if depth > MAX_DEPTH {
        return Err(StoredError::new(format!("subgraphs are nested more than {MAX_DEPTH} deep")));
    }
    let mut graph = Graph::new(stored.name);
    graph.opsets = stored.opsets;
    let mut ids = Vec::with_capacity(stored.values.len());
    for value in stored.values {
        let id = graph.value_named(&value.name);
        ids.push(id);
        let slot = graph.value_mut(id);
        slot.declared = value.declared.map(fact).transpose()?;
        slot.initializer = value.constant.map(|at| constant(constants, at)).transpose()?;
    }
    let at = |position: u32| -> Result<ValueId, StoredError> {
        let found = ids.get(index(position)?).copied();
        found.ok_or_else(|| StoredError::new(format!("there is no value {position}")))
    };
    graph.inputs = stored.inputs.into_iter().map(at).collect::<Result<_, _>>()?;
    graph.outputs = stored.outputs.into_iter().map(at).collect::<Result<_, _>>()?;
    for node in stored.nodes {
        let slot = |position: &u32| position.checked_sub(1).map(at).transpose();
        let inputs = node.inputs.iter().map(slot).collect::<Result<_, _>>()?;
        let outputs = node.outputs.iter().map(slot).collect::<Result<_, _>>()?;
        graph.nodes.push(read_node(node, inputs, outputs, constants, depth)?);
    }
    graph.sort().map_err(|error| StoredError::new(error.to_string()))?;
    Ok(graph)
}

fn constant(constants: &[Tensor], at: u32) -> Result<Tensor, StoredError> {
    let found = constants.get(index(at)?).cloned();
    found.ok_or_else(|| StoredError::new(format!("there is no constant {at}")))
}

fn read_node(
    stored: StoredNode,
    inputs: Vec<Option<ValueId>>,
    outputs: Vec<Option<ValueId>>,
    constants: &[Tensor],
    depth: usize,
) -> Result<Node, StoredError> {
    let StoredNode { name, domain, op_type, opset, attributes, bodies, .. } = stored;
    let mut attributes = read_attributes(attributes, constants)?;
    let bodies = bodies.into_iter().map(|body| read_body(body, constants, depth));
    let bodies: Vec<ReadBody> = bodies.collect::<Result<_, _>>()?;
    let captured: usize = bodies.iter().map(|body| body.captures.len()).sum();
    if bodies.iter().flat_map(|body| &body.captures).any(|&at| at >= inputs.len()) {
        return Err(StoredError::new(format!("'{name}' captures an input that it does not have")));
    }
    for body in &bodies {
        let subgraph =
            SubgraphAttribute { graph: body.graph.clone(), captured: body.captures.len() };
        attributes.insert(body.name.clone(), AttributeValue::Graph(Box::new(subgraph)));
    }
    let own = inputs.len().checked_sub(captured);
    let own = own.ok_or_else(|| StoredError::new(format!("'{name}' has too few inputs")))?;
    let operator = ops::parse(&domain, &op_type, opset, &attributes, own, outputs.len())
        .map_err(|error| StoredError::new(format!("'{name}': {error:?}")))?;
    let operator = Arc::from(operator);
    let mut node = Node { name, domain, op_type, inputs, outputs, operator, parsed: None };
    if !bodies.is_empty() {
        // The captured values may be in another order than parsing gives them.
        let place = |body: &galatea_graph::OperatorBody| {
            let found = bodies.iter().find(|found| found.name == body.name());
            let found = found.ok_or_else(|| StoredError::new("a subgraph is missing"))?;
            Ok(body.with_graph(found.graph.clone(), found.captures.clone()))
        };
        let placed =
            node.operator.bodies().iter().map(place).collect::<Result<_, StoredError>>()?;
        if !node.replace_bodies(placed) {
            return Err(StoredError::new(format!("'{}' takes no subgraphs", node.name)));
        }
    }
    Ok(node)
}

struct ReadBody {
    name: String,
    graph: Graph,
    captures: Vec<usize>,
}

fn read_body(
    stored: StoredBody,
    constants: &[Tensor],
    depth: usize,
) -> Result<ReadBody, StoredError> {
    let inner = stored.graph.ok_or_else(|| StoredError::new("a subgraph is missing"))?;
    let graph = graph(inner, constants, depth + 1)?;
    let captures = stored.captures.into_iter().map(index).collect::<Result<Vec<_>, _>>()?;
    if captures.len() > graph.inputs.len() {
        return Err(StoredError::new("a subgraph captures more than it has inputs"));
    }
    Ok(ReadBody { name: stored.name, graph, captures })
}

fn read_attributes(
    stored: Vec<StoredAttribute>,
    constants: &[Tensor],
) -> Result<Attributes, StoredError> {
    let mut all = Attributes::new();
    for attribute in stored {
        let value = match attribute.value {
            Some(AttributeKind::Float(value)) => AttributeValue::Float(value),
            Some(AttributeKind::Int(value)) => AttributeValue::Int(value),
            Some(AttributeKind::Text(text)) => AttributeValue::String(ByteString::from(&text[..])),
            Some(AttributeKind::Tensor(at)) => AttributeValue::Tensor(constant(constants, at)?),
            Some(AttributeKind::Type(found)) => AttributeValue::Type(fact(found)?),
            Some(AttributeKind::Floats(floats)) => AttributeValue::Floats(floats.all),
            Some(AttributeKind::Ints(ints)) => AttributeValue::Ints(ints.all),
            Some(AttributeKind::Texts(texts)) => {
                let texts = texts.all.iter().map(|text| ByteString::from(&text[..]));
                AttributeValue::Strings(texts.collect())
            }
            None => {
                let text = format!("attribute '{}' has no value", attribute.name);
                return Err(StoredError::new(text));
            }
        };
        all.insert(attribute.name, value);
    }
    Ok(all)
}

//! A graph to bytes.

use std::collections::HashMap;

use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, Node, OperatorBody, ValueId};
use galatea_tensor::{ByteString, DataType, OrderedMap, Tensor};
use prost::Message;

use super::proto::{
    AttributeKind, DimKind, StoredAttribute, StoredBody, StoredConstant, StoredDim, StoredDims,
    StoredFact, StoredFloats, StoredGraphProto, StoredInts, StoredModel, StoredNode, StoredPlace,
    StoredPort, StoredTexts, StoredValue,
};
use super::{KINDS, MAX_DEPTH, StoredError, read};

/// Constants of up to so many bytes are stored with the graph.
const INLINE_BYTES: usize = 1 << 10;

/// A constant that is too large to be stored with the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeConstant {
    /// The file that holds its elements: a position in the list given to [`super::read`].
    pub file: u32,
    /// Where in the file.
    pub offset: u64,
}

/// The bytes of a graph and its constants, in their order. `place` says where a large constant is,
/// or puts it there.
///
/// # Errors
/// Fails when an operator does not say what it was parsed from, or `place` fails.
pub fn write(
    graph: &Graph,
    inputs: &[(String, Fact)],
    outputs: &[(String, Fact)],
    place: &mut dyn FnMut(&Tensor) -> Result<LargeConstant, StoredError>,
) -> Result<(Vec<u8>, Vec<Tensor>), StoredError> {
    let mut writer =
        StoredWriter { place, constants: Vec::new(), tensors: Vec::new(), known: HashMap::new() };
    let stored = writer.graph(graph, 0)?;
    let ports = |all: &[(String, Fact)]| {
        let port = |(name, fact): &(String, Fact)| {
            Ok(StoredPort { name: name.clone(), fact: Some(writer_fact(fact)?) })
        };
        all.iter().map(port).collect::<Result<Vec<_>, StoredError>>()
    };
    let inputs = ports(inputs)?;
    let outputs = ports(outputs)?;
    let StoredWriter { constants, tensors, .. } = writer;
    let model = StoredModel { graph: Some(stored), inputs, outputs, constants };
    let bytes = model.encode_to_vec();
    let again = read::of_message(model, tensors)?;
    same(graph, &again.graph)?;
    Ok((bytes, again.constants))
}

/// Returns whether reading gives the same nodes: an operator's debug text has all its attributes.
fn same(graph: &Graph, again: &Graph) -> Result<(), StoredError> {
    let differs = |node: &Node, found: &str| {
        let text = format!("{} '{}' would be read as {found}", node.operator_name(), node.name);
        Err(StoredError::new(text))
    };
    if graph.nodes.len() != again.nodes.len() {
        return Err(StoredError::new("nodes would be lost"));
    }
    for (node, found) in graph.nodes.iter().zip(&again.nodes) {
        let text = format!("{:?}", found.operator);
        if format!("{:?}", node.operator) != text {
            return differs(node, &text);
        }
        let bodies = node.operator.bodies();
        let others = found.operator.bodies();
        if bodies.len() != others.len() {
            return differs(node, "one with other subgraphs");
        }
        for (body, other) in bodies.iter().zip(others) {
            if body.name() != other.name() || body.captures() != other.captures() {
                return differs(node, "one with other subgraphs");
            }
            same(body.graph(), other.graph())?;
        }
    }
    Ok(())
}

/// Key of a constant: place and length of its bytes, type and shape. Constants with equal keys are
/// the same.
type ConstantKey = (usize, usize, DataType, Vec<usize>);

struct StoredWriter<'a> {
    place: &'a mut dyn FnMut(&Tensor) -> Result<LargeConstant, StoredError>,
    constants: Vec<StoredConstant>,
    tensors: Vec<Tensor>,
    known: HashMap<ConstantKey, u32>,
}

fn number(value: usize) -> Result<u32, StoredError> {
    u32::try_from(value).map_err(|_| StoredError::new("the graph is too large"))
}

fn long(value: usize) -> Result<u64, StoredError> {
    u64::try_from(value).map_err(|_| StoredError::new("a length is too large"))
}

fn dims(all: &[Dim]) -> Result<StoredDims, StoredError> {
    let dim = |dim: &Dim| {
        let kind = match dim {
            Dim::Known(len) => Some(DimKind::Known(long(*len)?)),
            Dim::Symbol(name) => Some(DimKind::Symbol(name.to_string())),
            Dim::Unknown => None,
        };
        Ok(StoredDim { kind })
    };
    Ok(StoredDims { dims: all.iter().map(dim).collect::<Result<_, StoredError>>()? })
}

fn writer_fact(fact: &Fact) -> Result<StoredFact, StoredError> {
    let kind = KINDS.iter().position(|kind| *kind == fact.kind);
    let kind = kind.ok_or_else(|| StoredError::new(format!("no number for {}", fact.kind)))?;
    Ok(StoredFact {
        kind: number(kind)?,
        dtype: fact.dtype.to_string(),
        shape: fact.shape.as_deref().map(dims).transpose()?,
        elements: fact.elements.as_deref().map(dims).transpose()?,
    })
}

impl StoredWriter<'_> {
    fn graph(&mut self, graph: &Graph, depth: usize) -> Result<StoredGraphProto, StoredError> {
        if depth > MAX_DEPTH {
            return Err(StoredError::new(format!(
                "subgraphs are nested more than {MAX_DEPTH} deep"
            )));
        }
        let mut stored = StoredGraphProto {
            name: graph.name.clone(),
            opsets: graph.opsets.clone(),
            ..StoredGraphProto::default()
        };
        // Rewriting leaves values behind that nothing uses.
        let mut numbers: OrderedMap<ValueId, u32> = OrderedMap::new();
        let of_nodes = graph.nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
        let used = graph.inputs.iter().chain(&graph.outputs).chain(of_nodes.flatten());
        for &id in used {
            if numbers.contains_key(&id) {
                continue;
            }
            numbers.insert(id, number(stored.values.len())?);
            let value = graph.value(id);
            let declared = value.declared.as_ref().map(writer_fact).transpose()?;
            let constant = value.initializer.as_ref().map(|t| self.constant(t)).transpose()?;
            stored.values.push(StoredValue { name: value.name.clone(), declared, constant });
        }
        let at = |id: &ValueId| {
            numbers.get(id).copied().ok_or_else(|| StoredError::new("a value has no number"))
        };
        stored.inputs = graph.inputs.iter().map(at).collect::<Result<_, _>>()?;
        stored.outputs = graph.outputs.iter().map(at).collect::<Result<_, _>>()?;
        let slot = |slot: &Option<ValueId>| match slot {
            None => Ok(0),
            Some(id) => at(id).map(|number| number.saturating_add(1)),
        };
        for node in &graph.nodes {
            let (opset, attributes) = node.attributes().ok_or_else(|| {
                let text = format!("{} does not say its attributes", node.operator_name());
                StoredError::new(text)
            })?;
            let bodies = node.operator.bodies().iter();
            stored.nodes.push(StoredNode {
                name: node.name.clone(),
                domain: node.domain.clone(),
                op_type: node.op_type.clone(),
                inputs: node.inputs.iter().map(slot).collect::<Result<_, _>>()?,
                outputs: node.outputs.iter().map(slot).collect::<Result<_, _>>()?,
                opset,
                attributes: self.attributes(&attributes)?,
                bodies: bodies.map(|body| self.body(body, depth)).collect::<Result<_, _>>()?,
            });
        }
        Ok(stored)
    }

    fn body(&mut self, body: &OperatorBody, depth: usize) -> Result<StoredBody, StoredError> {
        Ok(StoredBody {
            name: body.name().to_owned(),
            graph: Some(self.graph(body.graph(), depth + 1)?),
            captures: body.captures().iter().map(|&at| number(at)).collect::<Result<_, _>>()?,
        })
    }

    fn attributes(&mut self, all: &Attributes) -> Result<Vec<StoredAttribute>, StoredError> {
        let bytes = |text: &ByteString| text.as_bytes().to_vec();
        let mut stored = Vec::with_capacity(all.len());
        for (name, value) in all {
            let value = match value {
                AttributeValue::Float(value) => AttributeKind::Float(*value),
                AttributeValue::Int(value) => AttributeKind::Int(*value),
                AttributeValue::String(text) => AttributeKind::Text(bytes(text)),
                AttributeValue::Tensor(tensor) => AttributeKind::Tensor(self.constant(tensor)?),
                AttributeValue::Type(fact) => AttributeKind::Type(writer_fact(fact)?),
                AttributeValue::Floats(all) => {
                    AttributeKind::Floats(StoredFloats { all: all.clone() })
                }
                AttributeValue::Ints(all) => AttributeKind::Ints(StoredInts { all: all.clone() }),
                AttributeValue::Strings(all) => {
                    AttributeKind::Texts(StoredTexts { all: all.iter().map(bytes).collect() })
                }
                _ => {
                    return Err(StoredError::new(format!(
                        "attribute '{name}' is of no known kind"
                    )));
                }
            };
            stored.push(StoredAttribute { name: name.clone(), value: Some(value) });
        }
        Ok(stored)
    }

    /// The number of a constant.
    fn constant(&mut self, tensor: &Tensor) -> Result<u32, StoredError> {
        let failed = |error: galatea_tensor::TensorError| StoredError::new(error.to_string());
        let tensor = tensor.contiguous().map_err(failed)?;
        let mut stored = StoredConstant {
            dtype: tensor.dtype().to_string(),
            dims: tensor.shape().iter().map(|&len| long(len)).collect::<Result<_, _>>()?,
            ..StoredConstant::default()
        };
        let next = number(self.constants.len())?;
        if tensor.dtype() == DataType::Bytes {
            let all = tensor.to_vec::<ByteString>().map_err(failed)?;
            stored.strings = all.iter().map(|text| text.as_bytes().to_vec()).collect();
        } else {
            let bytes = tensor.unaligned_bytes().map_err(failed)?;
            let key = (bytes.as_ptr().addr(), bytes.len(), tensor.dtype(), tensor.shape().to_vec());
            if let Some(&known) = self.known.get(&key) {
                return Ok(known);
            }
            if bytes.len() <= INLINE_BYTES {
                stored.bytes = bytes.to_vec();
            } else {
                let LargeConstant { file, offset } = (self.place)(&tensor)?;
                stored.place = Some(StoredPlace { file, offset });
            }
            // The tensor is kept below: its address stays its own.
            self.known.insert(key, next);
        }
        self.constants.push(stored);
        self.tensors.push(tensor);
        Ok(next)
    }
}

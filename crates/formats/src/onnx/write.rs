//! [`Graph`]s to ONNX files that other programs read too.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, FactKind, GALATEA_DOMAIN, Graph, MapKey, Node,
    OperatorBody, ValueId, infer, onnx_data_type, ops,
};
use galatea_tensor::{ByteString, DataType, SmallType, Tensor};
use prost::Message;

use super::OnnxModelInfo;
use super::error::{FieldPath, OnnxError, OnnxErrorKind};
use super::proto::{
    AttributeProto, AttributeType, DataLocation, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, dimension, type_proto,
};

/// The oldest version of the format that is written: initializers need not be inputs any more, and
/// every program in use reads it.
const MIN_IR_VERSION: i64 = 8;
/// Constants below this size stay in the model when others go into a file beside it.
const MIN_EXTERNAL_BYTES: usize = 1 << 10;
/// Constants in a file start at multiples of this, so that a mapped file can be used as it is.
const ALIGNMENT: u64 = 64;
/// Deepest nesting of subgraphs.
const MAX_DEPTH: usize = 16;

/// How a model is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The most bytes of constants that the model itself may hold: a message ends at 2 GiB. With
    /// more, constants go into a file beside the model.
    pub inline_bytes: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { inline_bytes: 1 << 30 }
    }
}

/// Writes a model, all of it or nothing: `path`, and `path` with `.data` behind it where the
/// constants are too large for one message.
///
/// # Errors
/// Fails when a node has no form in ONNX, or a file cannot be written.
pub fn write_model(
    graph: &Graph,
    info: &OnnxModelInfo,
    path: &Path,
    options: WriteOptions,
) -> Result<(), OnnxError> {
    let failed = |path: &Path, error: &io::Error| {
        let text = format!("cannot be written: {error}");
        OnnxError::new(OnnxErrorKind::File(text), &FieldPath::ROOT).in_file(path)
    };
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(failed(path, &io::Error::other("the path names no file")));
    };
    if constant_bytes(graph) <= options.inline_bytes {
        let bytes = model(graph, info, None)?.encode_to_vec();
        let write = |to: &mut BufWriter<File>| to.write_all(&bytes);
        return replace(path, write).map_err(|error| failed(path, &error));
    }
    let beside = path.with_file_name(format!("{name}.data"));
    let mut encoded = Ok(Vec::new());
    let write = |to: &mut BufWriter<File>| {
        let mut data = ExternalFile { location: format!("{name}.data"), to, at: 0, failed: None };
        encoded = model(graph, info, Some(&mut data)).map(|model| model.encode_to_vec());
        data.failed.map_or(Ok(()), Err)
    };
    replace(&beside, write).map_err(|error| failed(&beside, &error))?;
    let bytes = encoded?;
    replace(path, |to| to.write_all(&bytes)).map_err(|error| failed(path, &error))
}

/// The bytes of a model with all its constants.
///
/// # Errors
/// Fails when a node has no form in ONNX.
pub fn to_bytes(graph: &Graph, info: &OnnxModelInfo) -> Result<Vec<u8>, OnnxError> {
    model(graph, info, None).map(|model| model.encode_to_vec())
}

/// Writes a file under another name and gives it its own when it is whole.
fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part: PathBuf = path.with_file_name(name);
    let written = (|| {
        let mut to = BufWriter::new(File::create(&part)?);
        write(&mut to)?;
        to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&part, path)
    })();
    if written.is_err() {
        std::fs::remove_file(&part).ok();
    }
    written
}

fn constant_bytes(graph: &Graph) -> usize {
    let all = graph.values().iter().filter_map(|value| value.initializer.as_ref());
    all.map(Tensor::size_bytes).fold(0, usize::saturating_add)
}

/// The file for large constants.
struct ExternalFile<'w> {
    location: String,
    to: &'w mut BufWriter<File>,
    at: u64,
    failed: Option<io::Error>,
}

impl ExternalFile<'_> {
    /// Puts bytes at the end of the file; gives their place.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let start = self.at.next_multiple_of(ALIGNMENT);
        let pad = vec![0; usize::try_from(start.saturating_sub(self.at)).unwrap_or(0)];
        let written = self.to.write_all(&pad).and_then(|()| self.to.write_all(bytes));
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
        self.at = start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        start
    }
}

fn model(
    graph: &Graph,
    info: &OnnxModelInfo,
    beside: Option<&mut ExternalFile<'_>>,
) -> Result<ModelProto, OnnxError> {
    let place = FieldPath::ROOT.field("graph");
    let facts = infer::facts(graph, &HashMap::new())
        .map_err(|error| OnnxError::new(OnnxErrorKind::Graph(error), &place))?;
    let mut writer = OnnxWriter { beside, depth: 0 };
    let mut written = writer.graph(graph, &HashMap::new(), &place)?;
    written.input = ports(graph, &facts, &graph.inputs, &place)?;
    written.output = ports(graph, &facts, &graph.outputs, &place)?;
    let opsets = graph
        .opsets
        .iter()
        .map(|(domain, &version)| OperatorSetIdProto { domain: domain.clone(), version });
    let entry = |(key, value): (&String, &String)| StringStringEntryProto {
        key: key.clone(),
        value: value.clone(),
    };
    Ok(ModelProto {
        ir_version: info.ir_version.max(MIN_IR_VERSION),
        producer_name: info.producer_name.clone(),
        producer_version: info.producer_version.clone(),
        domain: info.domain.clone(),
        model_version: info.model_version,
        graph: Some(Box::new(written)),
        opset_import: opsets.collect(),
        metadata_props: info.metadata.iter().map(entry).collect(),
        functions: Vec::new(),
    })
}

/// Inputs or outputs of the model with their types.
fn ports(
    graph: &Graph,
    facts: &[Option<Fact>],
    ids: &[ValueId],
    place: &FieldPath<'_>,
) -> Result<Vec<ValueInfoProto>, OnnxError> {
    let port = |id: &ValueId| {
        let value = graph.value(*id);
        let inferred = facts.get(id.index()).and_then(Option::as_ref);
        let fact = value.declared.as_ref().or(inferred);
        let r#type = fact.map(|fact| type_of(fact, place)).transpose()?;
        Ok(ValueInfoProto { name: value.name.clone(), r#type })
    };
    ids.iter().map(port).collect()
}

/// The number of an element type in `TensorProto.DataType`.
fn number(dtype: DataType, place: &FieldPath<'_>) -> Result<i32, OnnxError> {
    (1..=i32::from(u8::MAX))
        .find(|&number| onnx_data_type(i64::from(number)).is_ok_and(|found| found == dtype))
        .ok_or_else(|| OnnxError::unsupported(place, format!("ONNX has no element type {dtype}")))
}

fn type_of(fact: &Fact, place: &FieldPath<'_>) -> Result<TypeProto, OnnxError> {
    use type_proto::{ElementType, MapType, Value};
    let dim = |dim: &Dim| {
        let value = match dim {
            Dim::Known(len) => i64::try_from(*len).ok().map(dimension::Value::DimValue),
            // Inference marks the names that it makes up itself.
            Dim::Symbol(name) if !name.contains('?') => {
                Some(dimension::Value::DimParam(name.to_string()))
            }
            Dim::Symbol(_) | Dim::Unknown => None,
        };
        Dimension { value }
    };
    let shape = fact.shape.as_ref();
    let shape = shape.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = Value::Tensor(type_proto::Tensor { elem_type: number(fact.dtype, place)?, shape });
    let of = |value: Value| TypeProto { value: Some(value) };
    let held = |value: Value| ElementType { elem_type: Some(Box::new(of(value))) };
    let map = |key: MapKey, value: Value| -> Result<Value, OnnxError> {
        let key_type = number(key.dtype(), place)?;
        Ok(Value::Map(MapType { key_type, value_type: Some(Box::new(of(value))) }))
    };
    Ok(of(match fact.kind {
        FactKind::Tensor => tensor,
        FactKind::Sequence => Value::Sequence(held(tensor)),
        FactKind::OptionalTensor => Value::Optional(held(tensor)),
        FactKind::OptionalSequence => Value::Optional(held(Value::Sequence(held(tensor)))),
        FactKind::Map(key) => map(key, tensor)?,
        FactKind::Maps(key) => Value::Sequence(held(map(key, tensor)?)),
    }))
}

struct OnnxWriter<'a, 'w> {
    beside: Option<&'a mut ExternalFile<'w>>,
    depth: usize,
}

/// Names of values that are read from the graphs around a subgraph.
type OuterNames = HashMap<ValueId, String>;

impl OnnxWriter<'_, '_> {
    /// Nodes and constants of a graph, without its ports.
    fn graph(
        &mut self,
        graph: &Graph,
        outer: &OuterNames,
        place: &FieldPath<'_>,
    ) -> Result<GraphProto, OnnxError> {
        let name_of = |id: ValueId| outer.get(&id).unwrap_or(&graph.value(id).name).clone();
        let mut written = GraphProto { name: graph.name.clone(), ..GraphProto::default() };
        if written.name.is_empty() {
            "graph".clone_into(&mut written.name);
        }
        let mut used = vec![false; graph.values().len()];
        let read = graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten());
        for id in read.chain(&graph.outputs) {
            if let Some(slot) = used.get_mut(id.index()) {
                *slot = true;
            }
        }
        for (index, (value, used)) in graph.values().iter().zip(used).enumerate() {
            if let Some(tensor) = value.initializer.as_ref().filter(|_| used) {
                let place = place.item("initializer", index);
                written.initializer.push(self.tensor(&value.name, tensor, &place)?);
            }
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let place = place.item("node", index);
            written.node.push(self.node(graph, node, &name_of, &place)?);
        }
        Ok(written)
    }

    fn node(
        &mut self,
        graph: &Graph,
        node: &Node,
        name_of: &dyn Fn(ValueId) -> String,
        place: &FieldPath<'_>,
    ) -> Result<NodeProto, OnnxError> {
        let bodies = node.operator.bodies();
        let attributes = writable(graph, node, place)?;
        let mut attribute = Vec::with_capacity(attributes.len() + bodies.len());
        for (name, value) in &attributes {
            attribute.push(self.attribute(name, value, place)?);
        }
        for body in bodies {
            attribute.push(self.body(node, body, name_of, place)?);
        }
        // What subgraphs read is behind the node's own inputs and known by name there.
        let own = bodies.iter().flat_map(|body| body.captures()).min().copied();
        let own = own.unwrap_or(node.inputs.len());
        let slot = |slot: &Option<ValueId>| slot.map(name_of).unwrap_or_default();
        Ok(NodeProto {
            input: node.inputs.iter().take(own).map(slot).collect(),
            output: node.outputs.iter().map(slot).collect(),
            name: node.name.clone(),
            op_type: node.op_type.clone(),
            attribute,
            domain: node.domain.clone(),
            overload: String::new(),
        })
    }

    fn body(
        &mut self,
        node: &Node,
        body: &OperatorBody,
        name_of: &dyn Fn(ValueId) -> String,
        place: &FieldPath<'_>,
    ) -> Result<AttributeProto, OnnxError> {
        if self.depth == MAX_DEPTH {
            let text = format!("subgraphs are nested more than {MAX_DEPTH} deep");
            return Err(OnnxError::invalid(place, text));
        }
        let inner = body.graph();
        let (own, captured) = inner.inputs.split_at(body.own_inputs());
        let mut outer = OuterNames::new();
        for (id, &at) in captured.iter().zip(body.captures()) {
            let given = node.inputs.get(at).copied().flatten();
            let absent = || OnnxError::invalid(place, "a subgraph reads a value that is absent");
            outer.insert(*id, name_of(given.ok_or_else(absent)?));
        }
        self.depth += 1;
        let graph = self.graph(inner, &outer, place);
        self.depth -= 1;
        let mut graph = graph?;
        let port = |id: &ValueId| {
            let value = inner.value(*id);
            let r#type = value.declared.as_ref().map(|fact| type_of(fact, place)).transpose()?;
            let name = outer.get(id).unwrap_or(&value.name).clone();
            Ok(ValueInfoProto { name, r#type })
        };
        graph.input = own.iter().map(port).collect::<Result<_, OnnxError>>()?;
        graph.output = inner.outputs.iter().map(port).collect::<Result<_, OnnxError>>()?;
        Ok(AttributeProto {
            name: body.name().to_owned(),
            g: Some(Box::new(graph)),
            r#type: AttributeType::Graph.into(),
            ..AttributeProto::default()
        })
    }

    fn attribute(
        &mut self,
        name: &str,
        value: &AttributeValue,
        place: &FieldPath<'_>,
    ) -> Result<AttributeProto, OnnxError> {
        let mut proto = AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
        let kind = match value {
            AttributeValue::Float(value) => {
                proto.f = *value;
                AttributeType::Float
            }
            AttributeValue::Int(value) => {
                proto.i = *value;
                AttributeType::Int
            }
            AttributeValue::String(text) => {
                proto.s = Some(bytes(text));
                AttributeType::String
            }
            AttributeValue::Tensor(tensor) => {
                proto.t = Some(Box::new(tensor_of("", tensor, place)?));
                AttributeType::Tensor
            }
            AttributeValue::Type(fact) => {
                proto.tp = Some(Box::new(type_of(fact, place)?));
                AttributeType::TypeProto
            }
            AttributeValue::Floats(all) => {
                proto.floats.clone_from(all);
                AttributeType::Floats
            }
            AttributeValue::Ints(all) => {
                proto.ints.clone_from(all);
                AttributeType::Ints
            }
            AttributeValue::Strings(all) => {
                proto.strings = all.iter().map(bytes).collect();
                AttributeType::Strings
            }
            _ => {
                let text = format!("attribute '{name}' is of a kind that is not written");
                return Err(OnnxError::unsupported(place, text));
            }
        };
        proto.r#type = kind.into();
        Ok(proto)
    }

    /// A constant in the model or in the file beside it.
    fn tensor(
        &mut self,
        name: &str,
        tensor: &Tensor,
        place: &FieldPath<'_>,
    ) -> Result<TensorProto, OnnxError> {
        let mut proto = tensor_of(name, tensor, place)?;
        let Some(beside) = &mut self.beside else { return Ok(proto) };
        let large = |raw: &Bytes| raw.len() >= MIN_EXTERNAL_BYTES;
        if let Some(raw) = proto.raw_data.take_if(|raw| large(raw)) {
            let entry =
                |key: &str, value: String| StringStringEntryProto { key: key.to_owned(), value };
            let offset = beside.put(&raw);
            proto.external_data = vec![
                entry("location", beside.location.clone()),
                entry("offset", offset.to_string()),
                entry("length", raw.len().to_string()),
            ];
            proto.data_location = DataLocation::External.into();
        }
        Ok(proto)
    }
}

fn bytes(text: &ByteString) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// The attributes of a node, subgraphs aside, that mean its operator in the version of the domain
/// which the graph imports.
fn writable(graph: &Graph, node: &Node, place: &FieldPath<'_>) -> Result<Attributes, OnnxError> {
    let refuse = |why: String| {
        let text = format!("{} '{}' {why}", node.operator_name(), node.name);
        Err(OnnxError::unsupported(place, text))
    };
    if node.domain == GALATEA_DOMAIN {
        return refuse("is known to this program only".to_owned());
    }
    let Some((opset, attributes)) = node.attributes() else {
        return refuse("does not say its attributes".to_owned());
    };
    let imported = graph.opsets.get(&node.domain).copied();
    if opset == imported || !node.operator.bodies().is_empty() {
        return Ok(attributes);
    }
    // Of a function that imports another version, or made by a rewrite: right if it means the same.
    let inputs = node.inputs.len();
    let outputs = node.outputs.len();
    let same = ops::parse(&node.domain, &node.op_type, imported, &attributes, inputs, outputs)
        .is_ok_and(|found| format!("{found:?}") == format!("{:?}", node.operator));
    if same {
        return Ok(attributes);
    }
    let version = imported.map_or("no version".to_owned(), |version| format!("version {version}"));
    refuse(format!("means something else in {version} of its domain, which the model imports"))
}

/// A constant with its elements.
pub(super) fn tensor_of(
    name: &str,
    tensor: &Tensor,
    place: &FieldPath<'_>,
) -> Result<TensorProto, OnnxError> {
    let failed = |error: galatea_tensor::TensorError| OnnxError::tensor(place, &error);
    let tensor = tensor.contiguous().map_err(failed)?;
    let long = |&len: &usize| i64::try_from(len).unwrap_or(i64::MAX);
    let mut proto = TensorProto {
        name: name.to_owned(),
        dims: tensor.shape().iter().map(long).collect(),
        data_type: number(tensor.dtype(), place)?,
        ..TensorProto::default()
    };
    match tensor.dtype() {
        DataType::Bytes => {
            let all = tensor.to_vec::<ByteString>().map_err(failed)?;
            proto.string_data = all.iter().map(bytes).collect();
        }
        DataType::Small(small) if small.bits() < 8 => {
            let codes = tensor.unaligned_bytes().map_err(failed)?;
            proto.raw_data = Some(Bytes::from(packed(small, codes)));
        }
        _ => {
            let raw = tensor.unaligned_bytes().map_err(failed)?;
            proto.raw_data = Some(Bytes::copy_from_slice(raw));
        }
    }
    Ok(proto)
}

/// Several elements in a byte, from its low bits up.
fn packed(small: SmallType, codes: &[u8]) -> Vec<u8> {
    let bits = small.bits();
    let mask = u8::MAX >> (8 - bits);
    let byte =
        |group: &[u8]| group.iter().rev().fold(0_u8, |byte, code| (byte << bits) | (code & mask));
    codes.chunks(8 / bits).map(byte).collect()
}

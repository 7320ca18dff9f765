//! `ModelProto` to [`Graph`].

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use galatea_graph::{
    AttributeValue, Attributes, Fact, Graph, ML_DOMAIN, ONNX_DOMAIN, SubgraphAttribute, ValueId,
};
use galatea_tensor::{OrderedMap, OrderedSet, Tensor};

use super::error::{FieldPath, OnnxError, OnnxErrorKind};
use super::external::ExternalData;
use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto, ValueInfoProto,
};
use super::scope::{NameScope, SeenSubgraph};
use super::{NEWEST_ML_OPSET, NEWEST_OPSET, OLDEST_OPSET, OnnxFile, tensor, value};

/// Most nodes that inlining functions may make, those of subgraphs included: functions that call
/// functions can double with each level.
const MAX_INLINED_NODES: usize = 1 << 17;
/// Most bytes of attributes that inlining functions may repeat.
const MAX_INLINED_BYTES: usize = 1 << 27;
/// Bytes that are copied in about the time in which a pattern is compiled.
const PATTERN_BYTES: usize = 1 << 16;
/// Deepest nesting of function calls.
const MAX_CALLS: usize = 32;
/// Deepest nesting of subgraphs.
const MAX_DEPTH: usize = 16;

/// Domain, name and overload of a function.
type FunctionKey<'m> = (&'m str, &'m str, &'m str);
/// The inputs or outputs of a node.
type NodeSlots = Vec<Option<ValueId>>;
/// Values by their names in a function.
type FunctionBindings = HashMap<String, Option<ValueId>>;

/// Imports the model's graph.
pub(super) fn model(
    proto: &ModelProto,
    external: ExternalData<'_>,
) -> Result<(Graph, Vec<OnnxFile>), OnnxError> {
    let root = FieldPath::ROOT;
    let opsets = opsets(&proto.opset_import, &root)?;
    let graph = proto
        .graph
        .as_ref()
        .ok_or_else(|| OnnxError::invalid(&root, "the file holds no graph: not an ONNX model?"))?;
    let mut functions = HashMap::new();
    for (index, function) in proto.functions.iter().enumerate() {
        let key = (domain(&function.domain), function.name.as_str(), function.overload.as_str());
        if functions.insert(key, function).is_some() {
            return Err(OnnxError::invalid(
                &root.item("functions", index),
                format!("function '{}' is defined twice", function.name),
            ));
        }
    }
    let mut importer =
        OnnxImporter { functions, external, inlined: (0, 0), calls: Vec::new(), depth: 0 };
    let place = root.field("graph");
    let graph =
        importer.graph(graph, opsets, &mut NameScope::model(), &OrderedSet::new(), &place)?;
    Ok((graph, importer.external.into_files()))
}

/// The default domain has two spellings.
fn domain(name: &str) -> &str {
    if name == "ai.onnx" { ONNX_DOMAIN } else { name }
}

/// Versions by domain, checked against what is supported.
fn opsets(
    imports: &[OperatorSetIdProto],
    place: &FieldPath<'_>,
) -> Result<OrderedMap<String, i64>, OnnxError> {
    let mut opsets = OrderedMap::new();
    for (index, import) in imports.iter().enumerate() {
        let name = domain(&import.domain);
        let (shown, supported) = match name {
            ONNX_DOMAIN => ("ONNX", OLDEST_OPSET..=NEWEST_OPSET),
            ML_DOMAIN => (ML_DOMAIN, OLDEST_OPSET..=NEWEST_ML_OPSET),
            _ => ("", i64::MIN..=i64::MAX),
        };
        if !supported.contains(&import.version) {
            let text = format!(
                "the model imports opset {} of {shown}; versions {} to {} are supported \
                 (onnx.version_converter can convert it)",
                import.version,
                supported.start(),
                supported.end()
            );
            return Err(OnnxError::new(
                OnnxErrorKind::Version(text),
                &place.item("opset_import", index),
            ));
        }
        let highest = opsets.entry(name.to_owned()).or_insert(import.version);
        *highest = import.version.max(*highest);
    }
    Ok(opsets)
}

struct OnnxImporter<'m> {
    functions: HashMap<FunctionKey<'m>, &'m FunctionProto>,
    external: ExternalData<'m>,
    /// Nodes and bytes of attributes made by inlining so far.
    inlined: (usize, usize),
    /// Functions that are being inlined, each called by the one before it.
    calls: Vec<FunctionKey<'m>>,
    /// Subgraphs that are being read.
    depth: usize,
}

/// Values that a call of a function takes and gives.
struct FunctionCallSlots {
    inputs: NodeSlots,
    outputs: NodeSlots,
}

impl<'m> OnnxImporter<'m> {
    /// Reads a graph. The values of the graphs around it that it reads become its last inputs.
    fn graph(
        &mut self,
        proto: &'m GraphProto,
        opsets: OrderedMap<String, i64>,
        scope: &mut NameScope<'m>,
        captured: &OrderedSet<String>,
        place: &FieldPath<'_>,
    ) -> Result<Graph, OnnxError> {
        let mut graph = Graph::new(proto.name.clone());
        graph.opsets = opsets;
        let captured: Vec<ValueId> = captured.iter().map(|name| graph.value_named(name)).collect();
        self.initializers(proto, &mut graph, place)?;
        add_inputs(proto, &mut graph, self.depth > 0, place)?;
        for (index, node) in proto.node.iter().enumerate() {
            self.node(node, &mut graph, scope, &place.item("node", index))?;
        }
        add_outputs(proto, &mut graph, scope, self.depth > 0, place)?;
        add_declared(&proto.value_info, &mut graph, place)?;
        graph.inputs.extend(captured);
        graph.sort().map_err(|error| OnnxError::new(OnnxErrorKind::Graph(error), place))?;
        Ok(graph)
    }

    /// Reads a subgraph.
    fn subgraph(
        &mut self,
        proto: &'m GraphProto,
        mut seen: SeenSubgraph<'m>,
        place: &FieldPath<'_>,
    ) -> Result<AttributeValue, OnnxError> {
        if self.depth == MAX_DEPTH {
            let text = format!("subgraphs are nested more than {MAX_DEPTH} deep");
            return Err(OnnxError::invalid(place, text));
        }
        self.depth += 1;
        let read = self.graph(proto, seen.opsets, &mut seen.scope, &seen.captured, place);
        self.depth -= 1;
        let subgraph = SubgraphAttribute { graph: read?, captured: seen.captured.len() };
        Ok(AttributeValue::Graph(Box::new(subgraph)))
    }

    fn initializers(
        &mut self,
        proto: &GraphProto,
        graph: &mut Graph,
        place: &FieldPath<'_>,
    ) -> Result<(), OnnxError> {
        for (index, found) in proto.initializer.iter().enumerate() {
            let place = place.item("initializer", index);
            let tensor = tensor::read(found, &mut self.external, &place)?;
            add_initializer(graph, &found.name, tensor, &place)?;
        }
        for (index, found) in proto.sparse_initializer.iter().enumerate() {
            let place = place.item("sparse_initializer", index);
            let tensor = tensor::read_sparse(found, &mut self.external, &place)?;
            let name = found.values.as_ref().map_or("", |values| values.name.as_str());
            add_initializer(graph, name, tensor, &place)?;
        }
        Ok(())
    }

    fn node(
        &mut self,
        proto: &'m NodeProto,
        graph: &mut Graph,
        scope: &mut NameScope<'m>,
        place: &FieldPath<'_>,
    ) -> Result<(), OnnxError> {
        if !self.calls.is_empty() {
            self.count_inlined(proto, place)?;
        }
        let domain = domain(&proto.domain);
        let mut inputs: NodeSlots =
            proto.input.iter().map(|name| scope.resolve(graph, name)).collect();
        let outputs: NodeSlots =
            proto.output.iter().map(|name| scope.resolve(graph, name)).collect();
        let key = (domain, proto.op_type.as_str(), proto.overload.as_str());
        if let Some(&function) = self.functions.get(&key) {
            return self.call(
                function,
                proto,
                FunctionCallSlots { inputs, outputs },
                graph,
                scope,
                place,
            );
        }
        if domain == ONNX_DOMAIN && !graph.opsets.contains_key(ONNX_DOMAIN) {
            let text = "the model imports no opset of ONNX, which this node belongs to";
            return Err(OnnxError::invalid(place, text));
        }
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let attributes = self.attributes(proto, graph, scope, place)?;
        graph
            .add_node(domain, &proto.op_type, &proto.name, &attributes, inputs, outputs)
            .map_err(|error| OnnxError::new(OnnxErrorKind::Graph(error), place))
    }

    /// Refuses functions that make the model much larger than its file.
    fn count_inlined(&mut self, proto: &NodeProto, place: &FieldPath<'_>) -> Result<(), OnnxError> {
        let (nodes, bytes) = &mut self.inlined;
        *nodes += 1;
        *bytes = proto.attribute.iter().map(copied_bytes).fold(*bytes, usize::saturating_add);
        if proto.op_type == "RegexFullMatch" {
            *bytes = bytes.saturating_add(PATTERN_BYTES);
        }
        if *nodes > MAX_INLINED_NODES {
            let text = format!("functions make the model longer than {MAX_INLINED_NODES} nodes");
            return Err(OnnxError::invalid(place, text));
        }
        if *bytes > MAX_INLINED_BYTES {
            let text =
                format!("functions repeat more than {MAX_INLINED_BYTES} bytes of attributes");
            return Err(OnnxError::invalid(place, text));
        }
        Ok(())
    }

    fn attributes(
        &mut self,
        proto: &'m NodeProto,
        graph: &mut Graph,
        scope: &mut NameScope<'m>,
        place: &FieldPath<'_>,
    ) -> Result<Attributes, OnnxError> {
        let mut attributes = Attributes::new();
        for (index, stated) in proto.attribute.iter().enumerate() {
            let place = place.item("attribute", index);
            let found = scope.attribute(stated).map_err(|name| outside_function(name, &place))?;
            let Some(found) = found else { continue };
            let value = match (value::attribute(found, &mut self.external, &place)?, &found.g) {
                (Some(value), _) => value,
                (None, Some(nested)) => {
                    let seen = match stated.ref_attr_name.as_str() {
                        "" => scope.of_subgraph(graph, nested),
                        name => scope.given(name).ok_or_else(|| hidden_subgraph(name, &place))?,
                    };
                    self.subgraph(nested, seen, &place.field("g"))?
                }
                (None, None) => continue,
            };
            if attributes.insert(stated.name.clone(), value).is_some() {
                let text = format!("attribute '{}' is given twice", stated.name);
                return Err(OnnxError::invalid(&place, text));
            }
        }
        Ok(attributes)
    }

    /// Inlines a call of a function.
    fn call(
        &mut self,
        function: &'m FunctionProto,
        node: &'m NodeProto,
        FunctionCallSlots { inputs, outputs }: FunctionCallSlots,
        graph: &mut Graph,
        scope: &mut NameScope<'m>,
        place: &FieldPath<'_>,
    ) -> Result<(), OnnxError> {
        let refuse = |text: String| {
            Err(OnnxError::invalid(place, format!("function '{}' {text}", function.name)))
        };
        if inputs.len() > function.input.len() || outputs.len() > function.output.len() {
            return refuse(format!(
                "takes {} inputs and gives {} outputs, the node has {} and {}",
                function.input.len(),
                function.output.len(),
                inputs.len(),
                outputs.len()
            ));
        }
        let key = (domain(&function.domain), function.name.as_str(), function.overload.as_str());
        if self.calls.contains(&key) {
            return refuse("calls itself, or one that it calls does".to_owned());
        }
        if self.calls.len() == MAX_CALLS {
            return refuse(format!("is called {MAX_CALLS} levels deep"));
        }
        let own = opsets(&function.opset_import, place)?;
        let attributes = call_attributes(function, node, scope, place)?;
        let (bound, passed) = bind(function, inputs, outputs);
        for pair in passed {
            let none = Attributes::new();
            let from = vec![Some(pair.0)];
            let to = vec![Some(pair.1)];
            graph
                .add_node(ONNX_DOMAIN, "Identity", &node.name, &none, from, to)
                .map_err(|error| OnnxError::new(OnnxErrorKind::Graph(error), place))?;
        }
        let subgraphs = call_subgraphs(node, graph, scope);
        let mut body = NameScope::Function { bound, attributes, subgraphs };
        let outer = std::mem::replace(&mut graph.opsets, own);
        self.calls.push(key);
        for (index, inner) in function.node.iter().enumerate() {
            self.node(inner, graph, &mut body, &place.item("function.node", index))?;
        }
        self.calls.pop();
        graph.opsets = outer;
        Ok(())
    }
}

/// Bytes of an attribute that are copied for each node that has it: raw data are shared, and the
/// nodes of subgraphs count themselves.
fn copied_bytes(attribute: &AttributeProto) -> usize {
    let strings =
        |all: &[Bytes]| -> usize { all.iter().map(|text| text.len() + size_of::<Bytes>()).sum() };
    let tensor = |found: &TensorProto| {
        let words = found.float_data.len() + found.int32_data.len();
        let long = found.int64_data.len() + found.uint64_data.len() + found.double_data.len();
        4 * words + 8 * (long + found.dims.len()) + strings(&found.string_data)
    };
    let sparse = attribute.sparse_tensor.iter().flat_map(|s| s.values.iter().chain(&s.indices));
    let tensors: usize = attribute.t.as_deref().into_iter().chain(sparse).map(tensor).sum();
    let lists = 4 * attribute.floats.len() + 8 * attribute.ints.len();
    lists + strings(&attribute.strings) + attribute.s.as_ref().map_or(0, Bytes::len) + tensors
}

/// The attributes of a function's body: those of the call, and the defaults of the others.
fn call_attributes<'m>(
    function: &'m FunctionProto,
    node: &'m NodeProto,
    scope: &NameScope<'m>,
    place: &FieldPath<'_>,
) -> Result<HashMap<&'m str, &'m AttributeProto>, OnnxError> {
    let mut attributes: HashMap<&str, _> =
        function.attribute_proto.iter().map(|default| (default.name.as_str(), default)).collect();
    for (index, stated) in node.attribute.iter().enumerate() {
        let found = scope
            .attribute(stated)
            .map_err(|name| outside_function(name, &place.item("attribute", index)))?;
        if let Some(found) = found {
            attributes.insert(stated.name.as_str(), found);
        }
    }
    Ok(attributes)
}

/// The attributes of a call that are subgraphs, as the caller sees them.
fn call_subgraphs<'m>(
    node: &'m NodeProto,
    graph: &mut Graph,
    scope: &mut NameScope<'m>,
) -> HashMap<&'m str, SeenSubgraph<'m>> {
    let mut subgraphs = HashMap::new();
    for stated in &node.attribute {
        let seen = match (&stated.g, stated.ref_attr_name.as_str()) {
            (Some(nested), "") => Some(scope.of_subgraph(graph, nested)),
            (None, name) if !name.is_empty() => scope.given(name),
            _ => None,
        };
        subgraphs.extend(seen.map(|seen| (stated.name.as_str(), seen)));
    }
    subgraphs
}

fn hidden_subgraph(name: &str, place: &FieldPath<'_>) -> OnnxError {
    let text = format!("subgraph '{name}' of a function is used inside another subgraph");
    OnnxError::unsupported(place, text)
}

fn outside_function(name: &str, place: &FieldPath<'_>) -> OnnxError {
    let text = format!("refers to attribute '{name}' of a function, outside of one");
    OnnxError::invalid(place, text)
}

/// The caller's values by their names in the function, and the pairs (input, output) of values that
/// the function hands through.
fn bind(
    function: &FunctionProto,
    inputs: NodeSlots,
    outputs: NodeSlots,
) -> (FunctionBindings, Vec<(ValueId, ValueId)>) {
    let mut bound = HashMap::new();
    let mut passed = Vec::new();
    let inputs = inputs.into_iter().chain(std::iter::repeat(None));
    for (name, id) in function.input.iter().zip(inputs) {
        bound.insert(name.clone(), id);
    }
    for (name, id) in function.output.iter().zip(outputs) {
        match (bound.get(name).copied(), id) {
            (Some(Some(from)), Some(to)) => passed.push((from, to)),
            (None, Some(_)) => {
                bound.insert(name.clone(), id);
            }
            _ => {}
        }
    }
    (bound, passed)
}

fn add_initializer(
    graph: &mut Graph,
    name: &str,
    tensor: Tensor,
    place: &FieldPath<'_>,
) -> Result<(), OnnxError> {
    if name.is_empty() {
        return Err(OnnxError::invalid(place, "an initializer has no name"));
    }
    let id = graph.value_named(name);
    if graph.value_mut(id).initializer.replace(tensor).is_some() {
        return Err(OnnxError::invalid(place, format!("initializer '{name}' is given twice")));
    }
    Ok(())
}

/// Inputs. An initializer that is listed among them is a default, which a run may replace.
fn add_inputs(
    proto: &GraphProto,
    graph: &mut Graph,
    nested: bool,
    place: &FieldPath<'_>,
) -> Result<(), OnnxError> {
    let mut seen = HashSet::new();
    for (index, info) in proto.input.iter().enumerate() {
        let place = place.item("input", index);
        check_name(info, &mut seen, &place)?;
        let id = graph.value_named(&info.name);
        graph.value_mut(id).declared = checked_type(info, nested, &place)?;
        match graph.constant(id) {
            None => graph.inputs.push(id),
            Some(_) => graph.overridable.push(id),
        }
    }
    Ok(())
}

fn add_outputs(
    proto: &GraphProto,
    graph: &mut Graph,
    scope: &mut NameScope<'_>,
    nested: bool,
    place: &FieldPath<'_>,
) -> Result<(), OnnxError> {
    let mut seen = HashSet::new();
    for (index, info) in proto.output.iter().enumerate() {
        let place = place.item("output", index);
        // A subgraph may give a value twice: a loop has other names for its outputs.
        if !nested || info.name.is_empty() {
            check_name(info, &mut seen, &place)?;
        }
        let Some(id) = scope.resolve(graph, &info.name) else {
            return Err(OnnxError::invalid(&place, format!("'{}' is absent", info.name)));
        };
        let declared = checked_type(info, true, &place)?;
        if graph.value(id).declared.is_none() {
            graph.value_mut(id).declared = declared;
        }
        graph.outputs.push(id);
    }
    Ok(())
}

fn check_name<'p>(
    info: &'p ValueInfoProto,
    seen: &mut HashSet<&'p str>,
    place: &FieldPath<'_>,
) -> Result<(), OnnxError> {
    if info.name.is_empty() {
        return Err(OnnxError::invalid(place, "has no name"));
    }
    if !seen.insert(&info.name) {
        return Err(OnnxError::invalid(place, format!("'{}' is listed twice", info.name)));
    }
    Ok(())
}

/// The declared type of an input or output; where `optional`, it may be left out.
fn checked_type(
    info: &ValueInfoProto,
    optional: bool,
    place: &FieldPath<'_>,
) -> Result<Option<Fact>, OnnxError> {
    let declared = value::declared(info.r#type.as_ref(), place)?;
    let stated = info.r#type.as_ref().is_some_and(|found| found.value.is_some());
    if declared.is_some() || (optional && !stated) {
        return Ok(declared);
    }
    Err(OnnxError::unsupported(
        place,
        format!(
            "'{}' is {}; inputs and outputs must be tensors, sequences, maps, or optional",
            info.name,
            value::type_name(info.r#type.as_ref())
        ),
    ))
}

/// Types of values in between; those of values that the graph does not have are left alone.
fn add_declared(
    infos: &[ValueInfoProto],
    graph: &mut Graph,
    place: &FieldPath<'_>,
) -> Result<(), OnnxError> {
    for (index, info) in infos.iter().enumerate() {
        let Some(id) = graph.find_value(&info.name) else { continue };
        let place = place.item("value_info", index);
        if graph.value(id).declared.is_none() {
            graph.value_mut(id).declared = value::declared(info.r#type.as_ref(), &place)?;
        }
    }
    Ok(())
}

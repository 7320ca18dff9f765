//! The graph that a network becomes, while its layers are lowered one after the other.
//!
//! A blob of rank 5 `[sequence, batch, channels, height, width]` whose sequence has length 1 is kept
//! as an image `[batch, channels, height, width]` and remembers the hidden axis: then the layers of
//! older networks are the operators of ONNX without reshapes in between. Facts are inferred as nodes
//! are added, and a node whose results are known becomes constants, so that layers compute shapes by
//! operators whether lengths are known or not.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, ML_DOMAIN, Node, ONNX_DOMAIN, ValueId, infer,
};
use galatea_tensor::{ByteString, DataType, OrderedMap, OrderedSet, Tensor};
use prost::Message;

use crate::coreml::decode;
use crate::coreml::error::CoreMlError;

/// The version of ONNX's operators that layers are lowered to.
pub(super) const OPSET: i64 = 21;
/// The version of the operators of classical machine learning.
const ML_OPSET: i64 = 3;
/// Most nodes of a network: condition networks are lowered twice, those of nested loops more often.
const MAX_NODES: usize = 1 << 18;

/// The outputs of a layer.
pub(super) type LayerOutputs = Result<Vec<ScopeBlob>, CoreMlError>;

/// A value of the current scope as the network sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeBlob {
    /// The value.
    pub(super) id: ValueId,
    /// True if the network sees another axis of length 1 in front.
    pub(super) hidden: bool,
}

impl ScopeBlob {
    /// A value as it is.
    pub(super) fn exact(id: ValueId) -> Self {
        Self { id, hidden: false }
    }
}

/// A layer that is being lowered.
#[derive(Debug)]
pub(super) struct LayerCall {
    /// The bytes of its message.
    pub(super) message: Bytes,
    /// The blobs that it reads.
    pub(super) inputs: Vec<ScopeBlob>,
    /// Number of blobs that it writes.
    pub(super) outputs: usize,
}

impl LayerCall {
    /// The layer's message.
    ///
    /// # Errors
    /// Fails when it cannot be decoded.
    pub(super) fn read<M: Message + Default>(&self) -> Result<M, CoreMlError> {
        decode(self.message.clone())
    }

    /// The input at a position.
    ///
    /// # Errors
    /// Fails when there are fewer.
    pub(super) fn input(&self, at: usize) -> Result<ScopeBlob, CoreMlError> {
        let missing = || CoreMlError::invalid(format!("input {at} is missing"));
        self.inputs.get(at).copied().ok_or_else(missing)
    }
}

/// A blob by name, and how deep the scope is that made it.
#[derive(Clone, Copy, Debug)]
struct NamedBlob {
    level: usize,
    blob: ScopeBlob,
}

/// The network itself, or a network inside a layer.
#[derive(Debug, Default)]
pub(super) struct NetworkScope {
    /// The graph that it becomes; the inputs are its own, then the captured values.
    pub(super) graph: Graph,
    /// Blobs that have another value than around the network.
    pub(super) written: OrderedSet<String>,
    /// Blobs that a layer made here.
    pub(super) made: OrderedSet<String>,
    /// How many inputs are captured.
    pub(super) captured: usize,
    facts: Vec<Option<Fact>>,
    names: HashMap<String, NamedBlob>,
}

/// The state of lowering.
#[derive(Debug)]
pub(super) struct NetworkLowering {
    scopes: Vec<NetworkScope>,
    taken: HashSet<String>,
    /// Names that anything reads, and how often.
    pub(super) wanted: OrderedMap<String, usize>,
    /// How many loops are around the current layer.
    pub(super) loops: usize,
    /// The name of the layer that is being lowered.
    pub(super) layer: String,
    nodes: usize,
}

impl NetworkScope {
    /// Returns whether a blob with this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Infers what the last node gives; where that is known already, the node goes.
    fn settle_last(&mut self) -> Result<(), CoreMlError> {
        let Some(node) = self.graph.nodes.last() else { return Ok(()) };
        let deterministic = node.operator.is_deterministic();
        let outputs: Vec<ValueId> = node.outputs.iter().copied().flatten().collect();
        infer::extend(&self.graph, &mut self.facts, self.graph.nodes.len() - 1)?;
        let value = |id: &ValueId| self.facts.get(id.index())?.as_ref()?.value.clone();
        let known: Option<Vec<Tensor>> = outputs.iter().map(value).collect();
        if let Some(known) = known.filter(|_| deterministic) {
            self.graph.nodes.pop();
            for (id, value) in outputs.into_iter().zip(known) {
                self.graph.value_mut(id).initializer = Some(value);
            }
        }
        Ok(())
    }
}

impl NetworkLowering {
    /// Starts a graph; `reserved` are names that only the caller gives.
    pub(super) fn new(name: &str, reserved: impl IntoIterator<Item = String>) -> Self {
        let mut lowering = Self {
            scopes: Vec::new(),
            taken: reserved.into_iter().collect(),
            wanted: OrderedMap::new(),
            loops: 0,
            layer: String::new(),
            nodes: 0,
        };
        lowering.open(name);
        lowering
    }

    /// Starts a network inside the current one.
    pub(super) fn open(&mut self, name: &str) {
        let mut graph = Graph::new(name);
        graph.opsets = OrderedMap::from([(ONNX_DOMAIN.to_owned(), OPSET)]);
        let names = self.scopes.last().map(|outer| outer.names.clone()).unwrap_or_default();
        self.scopes.push(NetworkScope { graph, names, ..NetworkScope::default() });
    }

    /// Ends the innermost network.
    ///
    /// # Errors
    /// Fails when its nodes depend on each other in circles.
    pub(super) fn close(&mut self) -> Result<NetworkScope, CoreMlError> {
        let mut scope = self.scopes.pop().unwrap_or_default();
        scope.graph.sort()?;
        Ok(scope)
    }

    /// Takes the innermost network, to go on with it later.
    pub(super) fn suspend(&mut self) -> NetworkScope {
        self.scopes.pop().unwrap_or_default()
    }

    /// Goes on with a network that was taken.
    pub(super) fn resume(&mut self, scope: NetworkScope) {
        self.scopes.push(scope);
    }

    /// Makes a value an output of the graph, with a name that `new` was told of.
    ///
    /// # Errors
    /// Fails when an input or another output has that name.
    pub(super) fn give(&mut self, id: ValueId, name: &str) -> Result<(), CoreMlError> {
        let out = self.reserved(name);
        let fact = self.fact(id)?;
        let scope = self.scope();
        if scope.graph.inputs.contains(&out) || scope.graph.outputs.contains(&out) {
            return Err(CoreMlError::invalid(format!("two inputs or outputs are called '{name}'")));
        }
        let from = vec![Some(id)];
        let to = vec![Some(out)];
        scope.graph.add_node(ONNX_DOMAIN, "Identity", name, &Attributes::new(), from, to)?;
        scope.graph.outputs.push(out);
        set(&mut scope.facts, out, fact);
        Ok(())
    }

    /// How deep the current network is nested.
    pub(super) fn depth(&self) -> usize {
        self.scopes.len()
    }

    pub(super) fn scope(&mut self) -> &mut NetworkScope {
        // `new` opens the first scope, and each is closed by whoever opened it.
        if self.scopes.is_empty() {
            self.scopes.push(NetworkScope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// A name that no value has.
    fn fresh(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        let mut number = self.taken.len();
        while !self.taken.insert(name.clone()) || name.is_empty() {
            name = format!("{stem}~{number}");
            number += 1;
        }
        name
    }

    /// A value of the current scope with this name exactly, which `new` was told of.
    pub(super) fn reserved(&mut self, name: &str) -> ValueId {
        self.scope().graph.value_named(name)
    }

    /// An input of the current scope's own.
    pub(super) fn own_input(&mut self, stem: &str, fact: Fact) -> ValueId {
        let name = self.fresh(stem);
        let id = self.scope().graph.value_named(&name);
        self.declare_input(id, fact);
        id
    }

    /// Makes a value an input.
    pub(super) fn declare_input(&mut self, id: ValueId, fact: Fact) {
        let scope = self.scope();
        scope.graph.inputs.push(id);
        scope.graph.value_mut(id).declared = Some(fact.clone());
        set(&mut scope.facts, id, fact);
    }

    /// The blob with this name, as a value of the current scope.
    pub(super) fn find(&mut self, name: &str) -> Option<ScopeBlob> {
        let NamedBlob { level, blob } = *self.scope().names.get(name)?;
        let mut id = blob.id;
        for inner in level + 1..self.scopes.len() {
            let (outer, scope) = self.scopes.split_at_mut(inner);
            let (Some(outer), Some(scope)) = (outer.last(), scope.first_mut()) else { break };
            let name = &outer.graph.value(id).name;
            let fact = outer.facts.get(id.index()).cloned().flatten();
            let known = scope.graph.find_value(name);
            id = scope.graph.value_named(name);
            if known.is_none() {
                scope.graph.inputs.push(id);
                scope.captured += 1;
                scope.graph.value_mut(id).declared =
                    fact.as_ref().map(|fact| Fact::shaped(fact.dtype, fact.shape.clone()));
                if let Some(fact) = fact {
                    set(&mut scope.facts, id, fact);
                }
            }
        }
        Some(ScopeBlob { id, ..blob })
    }

    /// Returns whether a blob with this name exists.
    pub(super) fn exists(&mut self, name: &str) -> bool {
        self.scope().has(name)
    }

    /// Gives a blob a name; a later one replaces an earlier one.
    pub(super) fn bind(&mut self, name: &str, blob: ScopeBlob) {
        let level = self.scopes.len().saturating_sub(1);
        let scope = self.scope();
        scope.names.insert(name.to_owned(), NamedBlob { level, blob });
        scope.written.insert(name.to_owned());
    }

    /// A constant.
    pub(super) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let stem = format!("{}.constant", self.layer);
        let name = self.fresh(&stem);
        let scope = self.scope();
        let id = scope.graph.value_named(&name);
        set(&mut scope.facts, id, Fact::constant(tensor.clone()));
        scope.graph.value_mut(id).initializer = Some(tensor);
        id
    }

    /// A constant of rank 0.
    pub(super) fn scalar(&mut self, value: f32) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    /// A constant of rank 1.
    pub(super) fn longs(&mut self, values: &[i64]) -> ValueId {
        self.constant(Tensor::vector(values.to_vec()))
    }

    /// Returns the fact of a value.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub(super) fn fact(&mut self, id: ValueId) -> Result<Fact, CoreMlError> {
        let found = self.scope().facts.get(id.index()).cloned().flatten();
        found.ok_or_else(|| CoreMlError::invalid("nothing is known about a value"))
    }

    /// Says what is known about a value.
    pub(super) fn know(&mut self, id: ValueId, fact: Fact) {
        set(&mut self.scope().facts, id, fact);
    }

    /// The number of axes of a value.
    ///
    /// # Errors
    /// Fails when it is not known.
    pub(super) fn rank(&mut self, id: ValueId) -> Result<usize, CoreMlError> {
        let unknown = || CoreMlError::unsupported("the rank of an input is not known");
        self.fact(id)?.rank().ok_or_else(unknown)
    }

    /// The lengths of a value, where they are known.
    ///
    /// # Errors
    /// Fails when the rank is not known.
    pub(super) fn dims(&mut self, id: ValueId) -> Result<Vec<Option<usize>>, CoreMlError> {
        self.rank(id)?;
        let shape = self.fact(id)?.shape.unwrap_or_default();
        Ok(shape.iter().map(Dim::known).collect())
    }

    /// The length of an axis, from the end where negative, if it is known.
    ///
    /// # Errors
    /// Fails when there is no such axis.
    pub(super) fn dim(&mut self, id: ValueId, axis: i64) -> Result<Option<usize>, CoreMlError> {
        let dims = self.dims(id)?;
        let axis = axis_of(axis, dims.len())?;
        Ok(dims.get(axis).copied().flatten())
    }

    /// Adds a node with one result.
    ///
    /// # Errors
    /// Fails when the operator refuses its attributes or inputs.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: &[(&str, AttributeValue)],
    ) -> Result<ValueId, CoreMlError> {
        let inputs = inputs.iter().map(|&id| Some(id)).collect();
        one(&self.nodes(operator, inputs, attributes, 1)?)
    }

    /// Adds a node of classical machine learning with one result.
    ///
    /// # Errors
    /// Fails like [`NetworkLowering::node`].
    pub(super) fn ml_node(
        &mut self,
        operator: &str,
        inputs: &[ValueId],
        attributes: &[(&str, AttributeValue)],
    ) -> Result<ValueId, CoreMlError> {
        let inputs = inputs.iter().map(|&id| Some(id)).collect();
        self.scope().graph.opsets.insert(ML_DOMAIN.to_owned(), ML_OPSET);
        one(&self.nodes_of(ML_DOMAIN, operator, inputs, attributes, 1)?)
    }

    /// Adds a node with several results.
    ///
    /// # Errors
    /// Fails when the operator refuses its attributes or inputs.
    pub(super) fn nodes(
        &mut self,
        operator: &str,
        inputs: Vec<Option<ValueId>>,
        attributes: &[(&str, AttributeValue)],
        outputs: usize,
    ) -> Result<Vec<ValueId>, CoreMlError> {
        self.nodes_of(ONNX_DOMAIN, operator, inputs, attributes, outputs)
    }

    fn nodes_of(
        &mut self,
        domain: &str,
        operator: &str,
        inputs: Vec<Option<ValueId>>,
        attributes: &[(&str, AttributeValue)],
        outputs: usize,
    ) -> Result<Vec<ValueId>, CoreMlError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let text = format!("the network becomes more than {MAX_NODES} nodes");
            return Err(CoreMlError::unsupported(text));
        }
        let stem = self.layer.clone();
        let names: Vec<String> = (0..outputs).map(|_| self.fresh(&stem)).collect();
        let scope = self.scope();
        let ids: Vec<ValueId> = names.iter().map(|name| scope.graph.value_named(name)).collect();
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let slots = ids.iter().map(|&id| Some(id)).collect();
        scope.graph.add_node(domain, operator, &stem, &attributes, inputs, slots)?;
        scope.settle_last()?;
        Ok(ids)
    }

    /// Adds the nodes of a whole graph, which reads these values in the place of its inputs; the
    /// values in the place of its outputs.
    ///
    /// # Errors
    /// Fails when an operator refuses what it is given.
    pub(super) fn splice(
        &mut self,
        graph: &Graph,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>, CoreMlError> {
        let mut places: HashMap<ValueId, ValueId> =
            graph.inputs.iter().copied().zip(inputs.iter().copied()).collect();
        for (domain, &version) in &graph.opsets {
            self.scope().graph.opsets.entry(domain.clone()).or_insert(version);
        }
        for node in &graph.nodes {
            let mut read = Vec::with_capacity(node.inputs.len());
            for slot in &node.inputs {
                read.push(slot.map(|id| self.spliced(graph, &mut places, id)).transpose()?);
            }
            let mut written = Vec::with_capacity(node.outputs.len());
            for slot in &node.outputs {
                written.push(slot.map(|id| {
                    let name = self.fresh(&graph.value(id).name);
                    let made = self.scope().graph.value_named(&name);
                    places.insert(id, made);
                    made
                }));
            }
            let node = Node { inputs: read, outputs: written, ..node.clone() };
            let scope = self.scope();
            scope.graph.nodes.push(node);
            scope.settle_last()?;
        }
        graph.outputs.iter().map(|&id| self.spliced(graph, &mut places, id)).collect()
    }

    /// Returns the value here that corresponds to a value of another graph; its constants are
    /// copied.
    fn spliced(
        &mut self,
        graph: &Graph,
        places: &mut HashMap<ValueId, ValueId>,
        id: ValueId,
    ) -> Result<ValueId, CoreMlError> {
        if let Some(&known) = places.get(&id) {
            return Ok(known);
        }
        let missing = || CoreMlError::invalid(format!("nothing gives '{}'", graph.value(id).name));
        let made = self.constant(graph.constant(id).cloned().ok_or_else(missing)?);
        places.insert(id, made);
        Ok(made)
    }

    /// The finished graph.
    ///
    /// # Errors
    /// Fails when its nodes depend on each other in circles.
    pub(super) fn finish(mut self) -> Result<Graph, CoreMlError> {
        let mut graph = self.close()?.graph;
        graph.remove_unused();
        Ok(graph)
    }
}

/// The only result of a node.
fn one(all: &[ValueId]) -> Result<ValueId, CoreMlError> {
    all.first().copied().ok_or_else(|| CoreMlError::invalid("an operator has no result"))
}

fn set(facts: &mut Vec<Option<Fact>>, id: ValueId, fact: Fact) {
    if facts.len() <= id.index() {
        facts.resize(id.index() + 1, None);
    }
    if let Some(slot) = facts.get_mut(id.index()) {
        *slot = Some(fact);
    }
}

/// An axis, which may count from the end.
///
/// # Errors
/// Fails when there is none such.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, CoreMlError> {
    let wide = int(rank);
    let at = if axis < 0 { axis + wide } else { axis };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(CoreMlError::invalid(format!("axis {axis} of a blob of rank {rank}"))),
    }
}

/// A length as an integer; no length is beyond those.
pub(super) fn int(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Lengths as integers.
pub(super) fn ints(lengths: &[usize]) -> Vec<i64> {
    lengths.iter().map(|&length| int(length)).collect()
}

/// A length from the file.
///
/// # Errors
/// Fails when it is too large for this machine.
pub(super) fn size(found: u64) -> Result<usize, CoreMlError> {
    usize::try_from(found)
        .ok()
        .filter(|&found| i64::try_from(found).is_ok())
        .ok_or_else(|| CoreMlError::invalid(format!("{found} is no length")))
}

/// Lengths from the file.
///
/// # Errors
/// Fails like [`size`].
pub(super) fn sizes(found: &[u64]) -> Result<Vec<usize>, CoreMlError> {
    found.iter().map(|&found| size(found)).collect()
}

/// One of the values of a choice in the schema.
///
/// # Errors
/// Fails when there is none such.
pub(super) fn choice<E: TryFrom<i32>>(found: i32, what: &str) -> Result<E, CoreMlError> {
    E::try_from(found).map_err(|_| CoreMlError::invalid(format!("there is no {what} {found}")))
}

/// An attribute that is a text.
pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::String(ByteString::from(value))
}

/// An attribute that is a list of integers.
pub(super) fn list(values: Vec<i64>) -> AttributeValue {
    AttributeValue::Ints(values)
}

/// The number of a type in ONNX.
pub(super) fn onnx_type(dtype: DataType) -> Result<i64, CoreMlError> {
    Ok(match dtype {
        DataType::Fp32 => 1,
        DataType::Int8 => 3,
        DataType::Int32 => 6,
        DataType::Int64 => 7,
        DataType::Bool => 9,
        DataType::Fp16 => 10,
        DataType::Fp64 => 11,
        other => return Err(CoreMlError::unsupported(format!("values of type {other}"))),
    })
}

//! Graphs: nodes in topological order over values, with operators, their attributes and their subgraphs.

pub(crate) mod attribute;
mod body;
pub(crate) mod operator;

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use galatea_tensor::{OrderedMap, Tensor};

use attribute::Attributes;
pub use body::{BodyRunner, OperatorBody};
use operator::Operator;
pub(crate) use operator::OperatorInputs;

use crate::error::{GraphError, NodePlace};
use crate::fact::{Dim, Fact, unknown_length};

/// A value of a graph: an input, an initializer or an output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// The position in [`Graph::values`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Properties that a graph declares for a value.
#[derive(Clone, Debug)]
pub struct GraphValue {
    /// The name in the model; unique in the graph.
    pub name: String,
    /// Type and shape as the model declares them.
    pub declared: Option<Fact>,
    /// The value of an initializer.
    pub initializer: Option<Tensor>,
}

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name in the model; may be empty.
    pub name: String,
    /// The operator's domain; empty for ONNX's default one.
    pub domain: String,
    /// The operator's name.
    pub op_type: String,
    /// The values that it reads; an absent optional input is `None`.
    pub inputs: Vec<Option<ValueId>>,
    /// The values that it writes; an output that is not used is `None`.
    pub outputs: Vec<Option<ValueId>>,
    /// The parsed operator.
    pub operator: Arc<dyn Operator>,
    /// The text that the operator was parsed from; `None` for one that was made otherwise.
    pub parsed: Option<ParsedOperator>,
}

/// Text that an operator was parsed from.
#[derive(Clone, Debug)]
pub struct ParsedOperator {
    /// That operator: a node whose operator is another one by now was not parsed from this.
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) opset: Option<i64>,
    /// Without subgraphs, which the operator holds.
    pub(crate) attributes: Arc<Attributes>,
}

impl Node {
    /// The version of the domain and the attributes, without subgraphs, that parse to the node's
    /// operator: those of the model, or what the operator says of itself in the newest version.
    /// `None` where neither is known.
    #[must_use]
    pub fn attributes(&self) -> Option<(Option<i64>, Attributes)> {
        let thin = |operator: &Arc<dyn Operator>| Arc::as_ptr(operator).cast::<()>();
        match &self.parsed {
            Some(parsed) if thin(&parsed.operator) == thin(&self.operator) => {
                Some((parsed.opset, (*parsed.attributes).clone()))
            }
            _ => self.operator.attributes().map(|attributes| (None, attributes)),
        }
    }

    /// Gives the operator other subgraphs; false where it has none.
    pub fn replace_bodies(&mut self, bodies: Vec<OperatorBody>) -> bool {
        let Some(operator) = self.operator.with_bodies(bodies) else { return false };
        self.replace_operator(operator, |_| {});
        true
    }

    /// Puts another operator in the place of the node's own: what its attributes parse to after this
    /// change.
    pub(crate) fn replace_operator(
        &mut self,
        operator: Arc<dyn Operator>,
        change: impl FnOnce(&mut Attributes),
    ) {
        let attributes = self.attributes();
        self.operator = operator;
        self.parsed = attributes.map(|(opset, mut attributes)| {
            change(&mut attributes);
            let attributes = Arc::new(attributes);
            ParsedOperator { operator: Arc::clone(&self.operator), opset, attributes }
        });
    }

    /// The operator as the type `T`, if it is one.
    #[must_use]
    pub fn operator<T: Operator>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.operator;
        any.downcast_ref()
    }

    /// The input at a position, if present.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// The output at a position, if present.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<ValueId> {
        self.outputs.get(index).copied().flatten()
    }

    /// `Conv`, or `com.acme:Foo` outside the default domain.
    #[must_use]
    pub fn operator_name(&self) -> String {
        if self.domain.is_empty() {
            self.op_type.clone()
        } else {
            format!("{}:{}", self.domain, self.op_type)
        }
    }
}

/// A computation: nodes over values, with named inputs and outputs.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The model's name for it.
    pub name: String,
    /// Versions of the operator domains that the model imports.
    pub opsets: OrderedMap<String, i64>,
    /// The inputs that a run takes, in order.
    pub inputs: Vec<ValueId>,
    /// The outputs that a run gives, in order.
    pub outputs: Vec<ValueId>,
    /// Initializers that a run may give another value: those that the model lists among its inputs.
    /// Rewriting takes them for constants; see [`Graph::open`].
    pub overridable: Vec<ValueId>,
    /// The nodes; every value is written before it is read.
    pub nodes: Vec<Node>,
    /// The most elements that folding may leave in constants, once it has begun.
    pub(crate) folding_limit: Option<usize>,
    values: Vec<GraphValue>,
    by_name: HashMap<String, ValueId>,
}

impl Graph {
    /// A graph without nodes.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The value with this name, made if there is none.
    pub fn value_named(&mut self, name: &str) -> ValueId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = ValueId(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(GraphValue { name: name.to_owned(), declared: None, initializer: None });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// A new value whose name starts with `stem` and is not taken.
    pub fn fresh_value(&mut self, stem: &str) -> ValueId {
        let mut name = format!("{stem}~{}", self.values.len());
        while self.by_name.contains_key(&name) {
            name.push('~');
        }
        self.value_named(&name)
    }

    /// A new initializer.
    pub fn add_constant(&mut self, stem: &str, tensor: Tensor) -> ValueId {
        let id = self.fresh_value(stem);
        self.value_mut(id).initializer = Some(tensor);
        id
    }

    /// The value with this name.
    #[must_use]
    pub fn find_value(&self, name: &str) -> Option<ValueId> {
        self.by_name.get(name).copied()
    }

    /// All values, by [`ValueId::index`].
    #[must_use]
    pub fn values(&self) -> &[GraphValue] {
        &self.values
    }

    /// Returns the properties of a value.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &GraphValue {
        &self.values[id.index()]
    }

    /// Returns the properties of a value, writable. Names stay unchanged.
    pub fn value_mut(&mut self, id: ValueId) -> &mut GraphValue {
        &mut self.values[id.index()]
    }

    /// The value of an initializer.
    #[must_use]
    pub fn constant(&self, id: ValueId) -> Option<&Tensor> {
        self.value(id).initializer.as_ref()
    }

    /// Adds a node whose operator no attributes describe: one that holds weights.
    pub fn add_operator(
        &mut self,
        domain: &str,
        op_type: &str,
        operator: Arc<dyn Operator>,
        inputs: Vec<Option<ValueId>>,
        outputs: Vec<Option<ValueId>>,
    ) {
        self.nodes.push(Node {
            name: String::new(),
            domain: domain.to_owned(),
            op_type: op_type.to_owned(),
            inputs,
            outputs,
            operator,
            parsed: None,
        });
    }

    /// Where a node stands, for messages.
    #[must_use]
    pub fn place(&self, index: usize) -> NodePlace {
        let node = &self.nodes[index];
        NodePlace { index, name: node.name.clone(), operator: node.operator_name() }
    }

    /// For each value, the index of the node that writes it.
    #[must_use]
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut producers = vec![None; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for output in node.outputs.iter().flatten() {
                producers[output.index()] = Some(index);
            }
        }
        producers
    }

    /// For each value, the indices of the nodes that read it (once per reading position).
    #[must_use]
    pub fn consumers(&self) -> Vec<Vec<usize>> {
        let mut consumers = vec![Vec::new(); self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in node.inputs.iter().flatten() {
                consumers[input.index()].push(index);
            }
        }
        consumers
    }

    /// Puts the nodes into topological order, keeping their order where it is free.
    ///
    /// # Errors
    /// Fails when a value is written twice, read but never written, or depends on itself.
    pub fn sort(&mut self) -> Result<(), GraphError> {
        let mut known: HashSet<ValueId> = self.inputs.iter().copied().collect();
        known.extend((0..self.values.len()).filter_map(|index| {
            let id = ValueId(u32::try_from(index).ok()?);
            self.values[index].initializer.is_some().then_some(id)
        }));
        let mut written = HashSet::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for output in node.outputs.iter().flatten() {
                if known.contains(output) || !written.insert(*output) {
                    return Err(GraphError::structure(format!(
                        "{} writes '{}', which has a value already",
                        self.place(index),
                        self.value(*output).name
                    )));
                }
            }
        }
        self.check_written(&known, &written)?;
        let order = self.topological_order(&known)?;
        let mut slots: Vec<Option<Node>> =
            std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        self.nodes = order.into_iter().filter_map(|index| slots[index].take()).collect();
        Ok(())
    }

    fn check_written(
        &self,
        known: &HashSet<ValueId>,
        written: &HashSet<ValueId>,
    ) -> Result<(), GraphError> {
        let exists = |id: &ValueId| known.contains(id) || written.contains(id);
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(missing) = node.inputs.iter().flatten().find(|id| !exists(id)) {
                return Err(GraphError::structure(format!(
                    "{} reads '{}', which nothing writes",
                    self.place(index),
                    self.value(*missing).name
                )));
            }
        }
        match self.outputs.iter().find(|id| !exists(id)) {
            None => Ok(()),
            Some(missing) => Err(GraphError::structure(format!(
                "nothing writes the graph's output '{}'",
                self.value(*missing).name
            ))),
        }
    }

    /// Kahn's algorithm with the lowest ready index first.
    fn topological_order(&self, known: &HashSet<ValueId>) -> Result<Vec<usize>, GraphError> {
        let consumers = self.consumers();
        let mut waiting: Vec<usize> = self
            .nodes
            .iter()
            .map(|node| node.inputs.iter().flatten().filter(|id| !known.contains(id)).count())
            .collect();
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..self.nodes.len()).filter(|&index| waiting[index] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(index)) = ready.pop() {
            order.push(index);
            for output in self.nodes[index].outputs.iter().flatten() {
                for &consumer in &consumers[output.index()] {
                    waiting[consumer] -= 1;
                    if waiting[consumer] == 0 {
                        ready.push(Reverse(consumer));
                    }
                }
            }
        }
        match (0..self.nodes.len()).find(|&index| waiting[index] > 0) {
            None => Ok(order),
            Some(index) => Err(GraphError::structure(format!(
                "{} depends on its own output",
                self.place(index)
            ))),
        }
    }

    /// Turns the graph into one for runs that are not as the model declares: initializers that a run may
    /// replace become inputs, and lengths of inputs that have one name may differ. Returns the inputs
    /// that it makes and their usual values.
    ///
    /// The graph must not have been rewritten, as rules rely on what this gives up.
    pub fn open(&mut self) -> Vec<(String, Tensor)> {
        let mut usual = Vec::new();
        for id in std::mem::take(&mut self.overridable) {
            let value = self.value_mut(id);
            let Some(tensor) = value.initializer.take() else { continue };
            let of_type = |fact: &Fact| fact.is_tensor() && fact.dtype == tensor.dtype();
            if !value.declared.as_ref().is_some_and(of_type) {
                value.declared = Some(Fact::fixed(tensor.dtype(), tensor.shape()));
            }
            usual.push((value.name.clone(), tensor));
            self.inputs.push(id);
        }
        for &id in &self.inputs {
            let GraphValue { name, declared, .. } = &mut self.values[id.index()];
            let dims = declared.iter_mut().filter_map(|fact| fact.shape.as_mut()).flatten();
            for (axis, dim) in dims.enumerate() {
                if matches!(dim, Dim::Symbol(_)) {
                    *dim = unknown_length(name, axis);
                }
            }
        }
        usual
    }

    /// Makes every reader of `old` (and the graph's outputs) read `new`.
    pub fn replace_uses(&mut self, old: ValueId, new: ValueId) {
        for node in &mut self.nodes {
            for input in node.inputs.iter_mut().flatten() {
                if *input == old {
                    *input = new;
                }
            }
        }
        for output in &mut self.outputs {
            if *output == old {
                *output = new;
            }
        }
    }

    /// Drops nodes whose outputs nobody needs, and the initializers that only they read.
    pub fn remove_unused(&mut self) {
        let mut needed: HashSet<ValueId> = self.outputs.iter().copied().collect();
        let mut keep = vec![false; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.outputs.iter().flatten().any(|id| needed.contains(id)) {
                keep[index] = true;
                needed.extend(node.inputs.iter().flatten());
            }
        }
        let mut keep = keep.into_iter();
        self.nodes.retain(|_| keep.next().unwrap_or(false));
        for (index, value) in self.values.iter_mut().enumerate() {
            let id = ValueId(u32::try_from(index).unwrap_or(u32::MAX));
            if !needed.contains(&id) {
                value.initializer = None;
            }
        }
    }
}

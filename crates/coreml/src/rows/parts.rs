//! A node that is written as a graph of simpler operators.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, Graph, GraphError, Node, Operator, ValueId, converted,
    infer, rewrite,
};
use galatea_tensor::{DataType, Tensor};

use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse};

/// The version of ONNX that the parts are of.
const OPSET: i64 = 21;

/// The graph in the place of a node. All of its floats are FP32 and its wide integers INT64: programs
/// have one type for each.
#[derive(Debug)]
pub(super) struct DecomposedNode {
    graph: Graph,
    vars: HashMap<ValueId, MilVar>,
}

fn failed(error: &GraphError) -> UnwritableNode {
    UnwritableNode(error.to_string())
}

/// The type that stands for a type in the parts.
fn stands_for(dtype: DataType) -> DataType {
    match dtype {
        DataType::Fp16 | DataType::Bf16 | DataType::Fp64 => DataType::Fp32,
        DataType::Int32 => DataType::Int64,
        other => other,
    }
}

impl DecomposedNode {
    /// A graph without nodes.
    pub(super) fn new() -> Self {
        let mut graph = Graph::new("parts");
        graph.opsets.insert(String::new(), OPSET);
        Self { graph, vars: HashMap::new() }
    }

    /// The node's input at a position.
    pub(super) fn input(
        &mut self,
        emit: &mut ProgramEmitter<'_>,
        node: &Node,
        at: usize,
    ) -> Result<ValueId> {
        if let Some(tensor) = emit.known(node, at) {
            return self.constant(&tensor);
        }
        let id = emit.input(node, at)?;
        let fact = emit.fact(id)?.clone();
        let var = match emit.narrow(id)? {
            Some((var, _)) => var,
            None => emit.value(id)?,
        };
        let own = self.graph.fresh_value("x");
        let dtype = stands_for(fact.dtype);
        self.graph.value_mut(own).declared =
            Some(Fact { dtype, value: None, elements: None, ..fact });
        self.graph.inputs.push(own);
        self.vars.insert(own, var);
        Ok(own)
    }

    /// Floats of the program, which lie in this shape.
    pub(super) fn given(&mut self, var: MilVar, shape: Option<Vec<Dim>>) -> ValueId {
        let own = self.graph.fresh_value("x");
        self.graph.value_mut(own).declared = Some(Fact::shaped(DataType::Fp32, shape));
        self.graph.inputs.push(own);
        self.vars.insert(own, var);
        own
    }

    /// The same of an input that may be absent.
    pub(super) fn optional(
        &mut self,
        emit: &mut ProgramEmitter<'_>,
        node: &Node,
        at: usize,
    ) -> Result<Option<ValueId>> {
        node.input(at).map(|_| self.input(emit, node, at)).transpose()
    }

    /// A constant.
    pub(super) fn constant(&mut self, tensor: &Tensor) -> Result<ValueId> {
        let dtype = stands_for(tensor.dtype());
        let tensor = match dtype == tensor.dtype() {
            true => tensor.clone(),
            false => converted(tensor, dtype).map_err(|error| UnwritableNode(error.to_string()))?,
        };
        Ok(self.graph.add_constant("c", tensor))
    }

    /// A number.
    pub(super) fn float(&mut self, value: f32) -> ValueId {
        self.graph.add_constant("c", Tensor::scalar(value))
    }

    /// Numbers in a shape.
    pub(super) fn floats(&mut self, shape: &[usize], all: Vec<f32>) -> Result<ValueId> {
        let tensor =
            Tensor::from_vec(shape, all).map_err(|error| UnwritableNode(error.to_string()))?;
        Ok(self.graph.add_constant("c", tensor))
    }

    /// An integer.
    pub(super) fn int(&mut self, value: usize) -> Result<ValueId> {
        let value = i64::try_from(value).map_err(|error| UnwritableNode(error.to_string()))?;
        Ok(self.graph.add_constant("c", Tensor::scalar(value)))
    }

    /// A vector of integers.
    pub(super) fn ints(&mut self, all: &[i64]) -> ValueId {
        self.graph.add_constant("c", Tensor::vector(all.to_vec()))
    }

    /// The first integers in a shape.
    pub(super) fn counted(&mut self, shape: &[usize]) -> Result<ValueId> {
        let count: usize = shape.iter().product();
        let all: Vec<i64> = (0..).take(count).collect();
        let tensor =
            Tensor::from_vec(shape, all).map_err(|error| UnwritableNode(error.to_string()))?;
        Ok(self.graph.add_constant("c", tensor))
    }

    /// An operator of ONNX with one output.
    pub(super) fn op(
        &mut self,
        operator: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> Result<ValueId> {
        let mut all = self.ops(("", operator), attributes, inputs, 1)?;
        all.pop().ok_or_else(|| UnwritableNode(format!("{operator} gives nothing")))
    }

    /// An operator without attributes, and with one output.
    pub(super) fn plain(&mut self, operator: &str, inputs: &[ValueId]) -> Result<ValueId> {
        self.op(operator, &[], inputs)
    }

    /// An operator with so many outputs.
    pub(super) fn ops(
        &mut self,
        name: (&str, &str),
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.with_absent(name, attributes, inputs.iter().copied().map(Some).collect(), outputs)
    }

    /// The same with inputs that may be absent.
    pub(super) fn with_absent(
        &mut self,
        name: (&str, &str),
        attributes: Attributes,
        mut inputs: Vec<Option<ValueId>>,
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        let made: Vec<ValueId> = (0..outputs).map(|_| self.graph.fresh_value(name.1)).collect();
        let slots = made.iter().copied().map(Some).collect();
        let added = self.graph.add_node(name.0, name.1, "", &attributes, inputs, slots);
        added.map_err(|error| failed(&error))?;
        Ok(made)
    }

    /// An operator that is parsed already, with one output.
    pub(super) fn parsed(
        &mut self,
        name: (&str, &str),
        operator: Arc<dyn Operator>,
        inputs: &[ValueId],
    ) -> ValueId {
        let made = self.graph.fresh_value(name.1);
        let inputs = inputs.iter().copied().map(Some).collect();
        self.graph.add_operator(name.0, name.1, operator, inputs, vec![Some(made)]);
        made
    }

    /// The value as one of another type.
    pub(super) fn cast(&mut self, x: ValueId, to: DataType) -> Result<ValueId> {
        // The numbers of ONNX's types.
        let code: i64 = match to {
            DataType::Fp32 => 1,
            DataType::Int64 => 7,
            DataType::Bool => 9,
            other => return refuse(format!("a cast to {other}")),
        };
        self.op("Cast", &[("to", code.into())], &[x])
    }

    /// The value in another shape, whose lengths may be 0 (as before) and -1 (what is left).
    pub(super) fn reshape(&mut self, x: ValueId, shape: &[i64]) -> Result<ValueId> {
        let plain: Option<Vec<usize>> =
            shape.iter().map(|&len| usize::try_from(len).ok().filter(|len| *len > 0)).collect();
        if let (Some(tensor), Some(plain)) = (self.graph.constant(x), plain) {
            let made = tensor.reshape(&plain).map_err(|error| UnwritableNode(error.to_string()))?;
            return Ok(self.graph.add_constant("c", made));
        }
        let shape = self.ints(shape);
        self.plain("Reshape", &[x, shape])
    }

    /// A number, or a vector of one, as often as this.
    pub(super) fn repeated(&mut self, x: ValueId, count: usize) -> Result<ValueId> {
        let failed = |error: &dyn std::fmt::Display| UnwritableNode(error.to_string());
        if let Some(tensor) = self.graph.constant(x) {
            let wide = tensor.broadcast_to(&[count]).map_err(|error| failed(&error))?;
            let wide = wide.contiguous().map_err(|error| failed(&error))?;
            return Ok(self.graph.add_constant("c", wide));
        }
        let shape = self.ints(&[i64::try_from(count).map_err(|error| failed(&error))?]);
        self.plain("Expand", &[x, shape])
    }

    /// The value with its axes in another order.
    pub(super) fn transpose(&mut self, x: ValueId, order: &[i64]) -> Result<ValueId> {
        self.op("Transpose", &[("perm", AttributeValue::Ints(order.to_vec()))], &[x])
    }

    /// The value with new axes of length 1.
    pub(super) fn unsqueeze(&mut self, x: ValueId, axes: &[i64]) -> Result<ValueId> {
        let axes = self.ints(axes);
        self.plain("Unsqueeze", &[x, axes])
    }

    /// Every `step`th position of an axis from `start` to before `end`.
    pub(super) fn slice(
        &mut self,
        x: ValueId,
        axis: i64,
        start: usize,
        end: usize,
        step: usize,
    ) -> Result<ValueId> {
        let mut one = |value: usize| {
            let value = i64::try_from(value).map_err(|error| UnwritableNode(error.to_string()))?;
            Ok::<_, UnwritableNode>(self.ints(&[value]))
        };
        let start = one(start)?;
        let end = one(end)?;
        let step = one(step)?;
        let axes = self.ints(&[axis]);
        self.plain("Slice", &[x, start, end, axes, step])
    }

    /// Values side by side.
    pub(super) fn concat(&mut self, all: &[ValueId], axis: i64) -> Result<ValueId> {
        self.op("Concat", &[("axis", axis.into())], all)
    }

    /// Returns whether a value is a constant.
    pub(super) fn is_constant(&self, id: ValueId) -> bool {
        self.graph.constant(id).is_some()
    }

    /// Returns the number of elements that a value has.
    pub(super) fn known_elements(&self, id: ValueId) -> Result<usize> {
        let found = self.dims(id)?.iter().map(Dim::known).product::<Option<usize>>();
        found.ok_or_else(|| UnwritableNode("lengths are known in a run only".to_owned()))
    }

    /// The lengths of a value of the graph so far.
    pub(super) fn dims(&self, id: ValueId) -> Result<Vec<Dim>> {
        let facts = infer::facts(&self.graph, &HashMap::new()).map_err(|error| failed(&error))?;
        let fact = facts.get(id.index()).cloned().flatten();
        fact.and_then(|fact| fact.shape)
            .ok_or_else(|| UnwritableNode("the number of axes is known in a run only".to_owned()))
    }

    /// Writes the graph. Gives the values of its outputs, floats in the type of the node.
    ///
    /// # Errors
    /// Fails when a part has no form in a program, with its name and the reason.
    pub(super) fn write(
        mut self,
        emit: &mut ProgramEmitter<'_>,
        outputs: &[ValueId],
    ) -> Result<Vec<MilVar>> {
        self.graph.outputs = outputs.to_vec();
        self.graph.sort().map_err(|error| failed(&error))?;
        let rules: Vec<&str> = rewrite::TIDYING.iter().map(|rule| rule.name).collect();
        rewrite::run_named(&mut self.graph, &rules).map_err(|error| failed(&error))?;
        let graph = self.graph;
        let facts = infer::facts(&graph, &HashMap::new()).map_err(|error| failed(&error))?;
        emit.nested(&graph, &facts, self.vars, |inner| {
            for node in &graph.nodes {
                let written = super::emit(inner, node);
                written.map_err(|refused| {
                    UnwritableNode(format!("{}: {}", node.op_type, refused.0))
                })?;
            }
            let value = |&id: &ValueId| match inner.narrow(id)? {
                Some((var, _)) => Ok(var),
                None => inner.value(id),
            };
            graph.outputs.iter().map(value).collect()
        })
    }
}

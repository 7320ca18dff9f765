//! A graph that grows: nodes by their inputs, weights by their names.

use std::collections::HashSet;
use std::sync::Arc;

use galatea_graph::blocks::BlockWeights;
use galatea_graph::ops::fused::{BlockGather, BlockMatMul, FusedActivation};
use galatea_graph::{
    AttributeValue, Attributes, Dim, Fact, GALATEA_DOMAIN, Graph, ONNX_DOMAIN, OpError, Operator,
    ValueId,
};
use galatea_tensor::{DataType, Tensor};

use super::CheckpointWeights;
use super::built::{BuiltArchitecture, RowTable};
use crate::error::{LlmError, LlmErrorKind, Result};
use crate::weights::is_half;

/// The version of ONNX that graphs are written in.
const OPSET: i64 = 23;

fn held(error: &OpError) -> LlmError {
    LlmError::new(LlmErrorKind::Weights, "the graph", error.to_string())
}

/// Element types of weights that are not low-bit.
const FLOATS: &[DataType] = &[DataType::Fp32, DataType::Fp16, DataType::Bf16, DataType::Fp64];

/// Whether rows may be rounded: beside weights of few bits that takes nothing away, beside floats it would.
fn rounds(all: &[Arc<dyn BlockWeights>]) -> bool {
    !all.iter().any(|matrix| is_half(&**matrix))
}

/// A length as ONNX writes it.
pub(super) fn int(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Sizes of a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinearSizes {
    /// Length of a row.
    pub(super) inputs: usize,
    /// Length of a row's result.
    pub(super) outputs: usize,
}

impl LinearSizes {
    /// Sizes of a projection whose results are as long as its rows.
    pub(super) const fn square(length: usize) -> Self {
        Self { inputs: length, outputs: length }
    }

    /// Returns the shape `[outputs, inputs]` of the matrix.
    const fn shape(self) -> [usize; 2] {
        [self.outputs, self.inputs]
    }
}

/// A graph and the weights that it has not used yet.
pub(super) struct NetBuilder<'w> {
    graph: Graph,
    weights: &'w dyn CheckpointWeights,
    used: HashSet<String>,
    /// Kinds of rows that are inputs, in graphs of fixed lengths.
    pub(super) tables: Vec<RowTable>,
    /// The rows behind each layer, in the same.
    pub(super) ends: Vec<ValueId>,
}

impl<'w> NetBuilder<'w> {
    pub(super) fn new(name: &str, weights: &'w dyn CheckpointWeights) -> Self {
        let mut graph = Graph::new(name);
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), OPSET);
        graph.opsets.insert(GALATEA_DOMAIN.to_owned(), 1);
        Self { graph, weights, used: HashSet::new(), tables: Vec::new(), ends: Vec::new() }
    }

    /// An input of the graph.
    pub(super) fn input(&mut self, name: &str, dtype: DataType, dims: &[Dim]) -> ValueId {
        let id = self.graph.value_named(name);
        self.graph.value_mut(id).declared = Some(Fact::new(dtype, dims.to_vec()));
        self.graph.inputs.push(id);
        id
    }

    /// The input of this name, made if there is none.
    pub(super) fn input_once(&mut self, name: &str, dtype: DataType, dims: &[Dim]) -> ValueId {
        match self.graph.find_value(name).filter(|id| self.graph.inputs.contains(id)) {
            Some(id) => id,
            None => self.input(name, dtype, dims),
        }
    }

    /// Writes the graph in another version of ONNX.
    pub(super) fn set_opset(&mut self, opset: i64) {
        self.graph.opsets.insert(ONNX_DOMAIN.to_owned(), opset);
    }

    /// Makes a value an output of the graph.
    pub(super) fn output(&mut self, name: &str, id: ValueId) -> Result<()> {
        let named = self.graph.value_named(name);
        self.add("Identity", &[], &[Some(id)], vec![Some(named)])?;
        self.graph.outputs.push(named);
        Ok(())
    }

    /// A weight as it lies in the checkpoint.
    pub(super) fn weight(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let tensor = self.weights.tensor(name)?;
        self.used.insert(name.to_owned());
        if tensor.shape() == shape {
            return Ok(tensor);
        }
        let text = format!("shape {:?}, expected {shape:?}", tensor.shape());
        Err(LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), text))
    }

    /// Whether the checkpoint has a weight of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.weights.names().iter().any(|other| other == name)
    }

    /// A weight as FP32 values.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize]) -> Result<ValueId> {
        let tensor = self.weight(name, shape)?;
        self.as_floats(name, tensor)
    }

    /// A constant as FP32 values.
    pub(super) fn as_floats(&mut self, name: &str, tensor: Tensor) -> Result<ValueId> {
        let dtype = tensor.dtype();
        if !FLOATS.contains(&dtype) {
            let text = format!("{dtype} of shape {:?}, expected one of {FLOATS:?}", tensor.shape());
            return Err(LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), text));
        }
        let stored = self.graph.add_constant(name, tensor);
        if dtype == DataType::Fp32 {
            return Ok(stored);
        }
        self.one("Cast", &[("to", AttributeValue::Int(1))], &[stored])
    }

    /// A constant of the architecture.
    pub(super) fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.graph.add_constant(name, tensor)
    }

    /// A node with one output; `domain:op` names another domain than ONNX's.
    pub(super) fn one(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> Result<ValueId> {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        let output = self.graph.fresh_value(op);
        self.add(op, attributes, &inputs, vec![Some(output)])?;
        Ok(output)
    }

    /// A node with several outputs.
    pub(super) fn several<const N: usize>(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> Result<[ValueId; N]> {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        let outputs: [ValueId; N] = std::array::from_fn(|_| self.graph.fresh_value(op));
        self.add(op, attributes, &inputs, outputs.into_iter().map(Some).collect())?;
        Ok(outputs)
    }

    fn add(
        &mut self,
        op: &str,
        attributes: &[(&str, AttributeValue)],
        inputs: &[Option<ValueId>],
        outputs: Vec<Option<ValueId>>,
    ) -> Result<()> {
        let (domain, op) = op.split_once(':').unwrap_or((ONNX_DOMAIN, op));
        let attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.graph
            .add_node(domain, op, "", &attributes, inputs.to_vec(), outputs)
            .map_err(|error| LlmError::new(LlmErrorKind::Weights, op, error.to_string()))
    }

    /// A projection `x Wᵀ + b` of rows, with `W` `[outputs, inputs]` and a bias if the checkpoint
    /// should have one.
    pub(super) fn linear(
        &mut self,
        x: ValueId,
        name: &str,
        sizes: LinearSizes,
        bias: bool,
    ) -> Result<ValueId> {
        if let Some(result) = self.held_linear(x, name, sizes, bias)? {
            return Ok(result);
        }
        let mut operands = vec![x, self.floats(&format!("{name}.weight"), &sizes.shape())?];
        if bias {
            operands.push(self.floats(&format!("{name}.bias"), &[sizes.outputs])?);
        }
        self.one("Gemm", &[("transB", AttributeValue::Int(1))], &operands)
    }

    /// The same of rows of any shape, where the numbers of `W` stay as small as the checkpoint has them.
    pub(super) fn held_linear(
        &mut self,
        x: ValueId,
        name: &str,
        sizes: LinearSizes,
        bias: bool,
    ) -> Result<Option<ValueId>> {
        let blocks = self.blocks(&format!("{name}.weight"), sizes.shape())?;
        let Some(blocks) = blocks else { return Ok(None) };
        let bias = bias.then(|| self.floats(&format!("{name}.bias"), &[sizes.outputs]));
        let bias = bias.transpose()?;
        let [result] = self.products(vec![blocks], &[Some(x), bias])?;
        Ok(Some(result))
    }

    /// [`NetBuilder::linear`] with a bias, where the checkpoint has `W` as `[inputs, outputs]`.
    pub(super) fn turned_linear(
        &mut self,
        x: ValueId,
        name: &str,
        sizes: LinearSizes,
    ) -> Result<ValueId> {
        let weight = format!("{name}.weight");
        let turned = [sizes.inputs, sizes.outputs];
        self.weight(&weight, &turned)?;
        let blocks = self.weights.turned_blocks(&weight)?;
        let bias = format!("{name}.bias");
        if let Some(blocks) = self.fitting(blocks, &weight, sizes.shape())? {
            let bias = self.floats(&bias, &[sizes.outputs])?;
            let [result] = self.products(vec![blocks], &[Some(x), Some(bias)])?;
            return Ok(result);
        }
        let operands = [x, self.floats(&weight, &turned)?, self.floats(&bias, &[sizes.outputs])?];
        self.one("Gemm", &[], &operands)
    }

    /// The matrix of this name and shape `[rows, columns]` where its numbers are of few bits.
    fn blocks(&mut self, name: &str, shape: [usize; 2]) -> Result<Option<Arc<dyn BlockWeights>>> {
        let blocks = self.weights.blocks(name)?;
        self.fitting(blocks, name, shape)
    }

    /// A matrix, if it has this shape `[rows, columns]`.
    fn fitting(
        &mut self,
        blocks: Option<Arc<dyn BlockWeights>>,
        name: &str,
        shape: [usize; 2],
    ) -> Result<Option<Arc<dyn BlockWeights>>> {
        let Some(blocks) = blocks else { return Ok(None) };
        self.used.insert(name.to_owned());
        let found = [blocks.rows(), blocks.columns()];
        if found == shape {
            return Ok(Some(blocks));
        }
        let text = format!("shape {found:?}, expected {shape:?}");
        Err(LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), text))
    }

    /// Rows of a matrix by their numbers.
    pub(super) fn rows_of(
        &mut self,
        name: &str,
        shape: [usize; 2],
        indices: ValueId,
    ) -> Result<ValueId> {
        let table = self.weights.table(name)?;
        let Some(blocks) = self.fitting(table, name, shape)? else {
            let words = self.floats(name, &shape)?;
            return self.one("Gather", &[], &[words, indices]);
        };
        let [rows] = self.hold("BlockGather", Arc::new(BlockGather::new(blocks)), &[Some(indices)]);
        Ok(rows)
    }

    /// Projections of the same rows, each as [`NetBuilder::linear`] makes it.
    pub(super) fn linears<const N: usize>(
        &mut self,
        x: ValueId,
        names: [&str; N],
        inputs: usize,
        outputs: [usize; N],
        bias: bool,
    ) -> Result<[ValueId; N]> {
        let mut all = Vec::with_capacity(N);
        for (name, outputs) in names.iter().zip(outputs) {
            all.extend(self.blocks(&format!("{name}.weight"), [outputs, inputs])?);
        }
        let mut results = [x; N];
        if all.len() < N {
            for ((result, name), outputs) in results.iter_mut().zip(names).zip(outputs) {
                *result = self.linear(x, name, LinearSizes { inputs, outputs }, bias)?;
            }
            return Ok(results);
        }
        let mut operands = vec![Some(x)];
        for (name, outputs) in names.iter().zip(outputs) {
            let bias = bias.then(|| self.floats(&format!("{name}.bias"), &[outputs]));
            operands.push(bias.transpose()?);
        }
        self.products(all, &operands)
    }

    /// Products of the same rows with each of some matrices.
    fn products<const N: usize>(
        &mut self,
        all: Vec<Arc<dyn BlockWeights>>,
        operands: &[Option<ValueId>],
    ) -> Result<[ValueId; N]> {
        let rounded = rounds(&all);
        let product = BlockMatMul::new(all).map_err(|error| held(&error))?;
        let product = Arc::new(product.with_rounded_rows(rounded));
        Ok(self.hold("BlockMatMul", product, operands))
    }

    /// `activation(gate(x)) · up(x)` in one node, where both matrices have numbers of few bits.
    pub(super) fn gated(
        &mut self,
        x: ValueId,
        gate: &str,
        up: &str,
        sizes: LinearSizes,
        activation: FusedActivation,
    ) -> Result<Option<ValueId>> {
        let gate = self.blocks(&format!("{gate}.weight"), sizes.shape())?;
        let up = self.blocks(&format!("{up}.weight"), sizes.shape())?;
        let (Some(gate), Some(up)) = (gate, up) else { return Ok(None) };
        let rounded = rounds(&[Arc::clone(&gate), Arc::clone(&up)]);
        let product = BlockMatMul::gated([gate, up], activation).map_err(|error| held(&error))?;
        let product = Arc::new(product.with_rounded_rows(rounded));
        let [inner] = self.hold("BlockMatMul", product, &[Some(x)]);
        Ok(Some(inner))
    }

    /// A node whose operator holds weights.
    fn hold<const N: usize>(
        &mut self,
        op: &str,
        operator: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
    ) -> [ValueId; N] {
        let outputs: [ValueId; N] = std::array::from_fn(|_| self.graph.fresh_value(op));
        let all = outputs.iter().copied().map(Some).collect();
        self.graph.add_operator(GALATEA_DOMAIN, op, operator, inputs.to_vec(), all);
        outputs
    }

    /// The graph, if every weight was used that is not told to be left over.
    ///
    /// # Errors
    /// When the checkpoint has a weight that the architecture does not know.
    pub(super) fn finish(self, left_over: impl Fn(&str) -> bool) -> Result<Graph> {
        self.finish_step(left_over).map(|built| built.graph)
    }

    /// [`NetBuilder::finish`] of a decoder's step.
    ///
    /// # Errors
    /// Fails like [`NetBuilder::finish`].
    pub(super) fn finish_step(
        mut self,
        left_over: impl Fn(&str) -> bool,
    ) -> Result<BuiltArchitecture> {
        for name in self.weights.names() {
            if !self.used.contains(&name) && !left_over(&name) {
                let text = "the architecture has no such weight";
                return Err(LlmError::new(LlmErrorKind::Weights, format!("tensor '{name}'"), text));
            }
        }
        let failed = |error: galatea_graph::GraphError| {
            LlmError::new(LlmErrorKind::Weights, "the graph", error.to_string())
        };
        self.graph.sort().map_err(failed)?;
        Ok(BuiltArchitecture { graph: self.graph, tables: self.tables, ends: self.ends })
    }
}

//! Recurrent layers: `LSTM`, `GRU` and `RNN` with all their attributes.
//!
//! The inputs of many steps are multiplied with their weights at once, as one matrix multiplication (GEMM). Then
//! come the steps: a dispatch each, or many in one dispatch where a layer is so small that a workgroup computes
//! all of it.

mod activations;
mod lengths;
mod node;
mod states;
mod step;
mod way;

use std::sync::Arc;

use galatea_graph::{Fact, Node, ValueId};
use galatea_runtime::{NodeShapes, NodeWork};
use galatea_tensor::{DataType, Tensor};

use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView};
use crate::throughput::StepSequence;
use lengths::RecurrentLengths;
pub(crate) use node::RecurrentSpec;
use step::SequenceRun;
pub use way::{RecurrentWay, StepTeam};

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[GpuKernelRow {
    name: "recurrent",
    domain: "",
    ops: &["GRU", "LSTM", "RNN"],
    supports,
    build,
}];

/// Inputs of the node.
pub(crate) mod input {
    pub(crate) const X: usize = 0;
    pub(crate) const W: usize = 1;
    pub(crate) const R: usize = 2;
    pub(crate) const BIAS: usize = 3;
    pub(crate) const LENGTHS: usize = 4;
    pub(crate) const HIDDEN: usize = 5;
    pub(crate) const CELL: usize = 6;
    pub(crate) const PEEPHOLES: usize = 7;
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    RecurrentSpec::of(view.node)?.check()?;
    for index in [input::X, input::W, input::R] {
        let rank = view.rank(index)?;
        if rank != 3 {
            return Err(format!("input {index} has {rank} axes, expected 3"));
        }
    }
    let floats =
        [input::X, input::W, input::R, input::BIAS, input::HIDDEN, input::CELL, input::PEEPHOLES];
    view.floats(&floats)?;
    match view.input(input::LENGTHS).map(|fact| fact.dtype) {
        None | Some(DataType::Int32) => Ok(()),
        Some(other) => Err(format!("sequence lengths are {other}, the kernel takes INT32")),
    }
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let layer = RecurrentSpec::of(view.node)?;
    Ok(Box::new(GpuRecurrentKernel::new(layer, view.device)))
}

/// A recurrent layer as a kernel.
#[derive(Debug)]
pub struct GpuRecurrentKernel {
    layer: RecurrentSpec,
    device: Arc<GpuDevice>,
    forced: Option<RecurrentWay>,
    /// Bytes of products of inputs at a time.
    room: usize,
}

/// Bytes of products of inputs at a time; those of later steps come later.
const ROOM: usize = 64 << 20;

impl GpuRecurrentKernel {
    fn new(layer: RecurrentSpec, device: &Arc<GpuDevice>) -> Self {
        Self { layer, device: Arc::clone(device), forced: None, room: ROOM }
    }

    /// Returns the kernel of a node.
    ///
    /// # Errors
    /// Fails when it is no recurrent layer, or one that no kernel computes.
    pub fn of(node: &Node, device: &Arc<GpuDevice>) -> Result<Self, String> {
        let layer = RecurrentSpec::of(node)?;
        layer.check()?;
        Ok(Self::new(layer, device))
    }

    /// The same in one way, whatever is known.
    #[must_use]
    pub fn forcing(self, way: RecurrentWay) -> Self {
        Self { forced: Some(way), ..self }
    }

    /// The same with so many bytes for products of inputs at a time.
    #[must_use]
    pub fn within(self, room: usize) -> Self {
        Self { room, ..self }
    }

    fn lengths(&self, shapes: &NodeShapes) -> Result<RecurrentLengths, String> {
        RecurrentLengths::of(&self.layer, shapes, self.room)
    }

    /// Returns the way that lengths suggest, and all that a tuner may choose.
    ///
    /// # Errors
    /// Fails when the shapes do not fit each other.
    pub fn ways(&self, shapes: &NodeShapes) -> Result<Vec<RecurrentWay>, String> {
        let lengths = self.lengths(shapes)?;
        let usual = lengths.usual_way(self.device.capabilities());
        let others = lengths.ways(self.device.capabilities());
        Ok(std::iter::once(usual).chain(others).collect())
    }
}

impl GpuKernel for GpuRecurrentKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let lengths = self.lengths(shapes)?;
        if lengths.batch == 0 || lengths.hidden == 0 {
            return Ok(());
        }
        let capabilities = self.device.capabilities();
        let way = match self.forced {
            Some(way) => way,
            None => lengths.tuned_way(shapes, capabilities, step)?,
        };
        SequenceRun::new(&self.layer, &lengths, shapes, way, capabilities, step).run(step)
    }

    fn typical(&self, index: usize, shapes: &NodeShapes) -> Option<Tensor> {
        let lengths = self.lengths(shapes).ok()?;
        let steps = i32::try_from(lengths.steps).ok()?;
        (index == input::LENGTHS).then(|| Tensor::vector(vec![steps; lengths.batch]))
    }
}

/// Returns the dispatches of a node that wait for each other, where it is a recurrent layer of known lengths.
pub(crate) fn sequence(node: &Node, facts: &[Option<Fact>]) -> Option<StepSequence> {
    let layer = RecurrentSpec::of(node).ok()?;
    let shapes = NodeShapes::known(node, facts)?;
    let lengths = RecurrentLengths::of(&layer, &shapes, ROOM).ok()?;
    let fact = |id: ValueId| facts.get(id.index()).and_then(Option::as_ref);
    let read = NodeWork::of(node, &fact).reads.get(input::R).copied().unwrap_or(0);
    let each = layer.cell.phases().len();
    Some(StepSequence { dispatches: (lengths.steps * each) as u64, weight_bytes: read })
}

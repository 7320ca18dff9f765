//! The choices of a compiled partition that can be measured.

use std::collections::HashSet;
use std::sync::Arc;

use galatea_graph::ops::fused::BlockMatMul;
use galatea_graph::{Fact, Graph, Node};
use galatea_runtime::tune::TuningProblem;
use galatea_tensor::Tensor;

use super::bench::{BenchCase, CandidateBench, can_make};
use crate::choices::{AskedQuestion, TuningChoices};
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel};
use galatea_runtime::{NodeShapes, ValueShape};

/// Binds a node, by its position in the graph.
pub(crate) type NodeBinder =
    Arc<dyn Fn(usize, &NodeShapes, &mut DispatchStep) -> Result<(), String>>;

/// A partition whose choices are to be measured.
pub(crate) struct TunablePartition<'a> {
    pub(crate) device: &'a Arc<GpuDevice>,
    pub(crate) graph: &'a Graph,
    pub(crate) kernels: &'a [Option<Box<dyn GpuKernel>>],
    /// Facts of all values in a run.
    pub(crate) facts: &'a [Option<Fact>],
    /// Choices that are known already.
    pub(crate) choices: &'a TuningChoices,
    /// Binds the kernels above, for as long as somebody measures.
    pub(crate) bind: NodeBinder,
}

impl TunablePartition<'_> {
    /// All choices, each family and bucket once. Between two nodes `pause` is called.
    pub(crate) fn problems(&self, pause: &dyn Fn()) -> Vec<TuningProblem> {
        let mut problems = Vec::new();
        let mut seen = HashSet::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(kernel) = self.kernels.get(index).and_then(Option::as_ref) else { continue };
            let Some(shapes) = NodeShapes::known(node, self.facts) else { continue };
            pause();
            let mut step = DispatchStep::asking(self.choices.noting());
            if kernel.bind(&shapes, &mut step).is_err() {
                continue;
            }
            for asked in step.asked() {
                let new = seen.insert((asked.family.clone(), asked.bucket.clone()));
                if !new || asked.space.len() < 2 {
                    continue;
                }
                let Some(typical) = typical(&**kernel, &shapes) else { continue };
                problems.push(self.problem(index, node, &shapes, typical, asked));
            }
        }
        problems
    }

    fn problem(
        &self,
        index: usize,
        node: &Node,
        shapes: &NodeShapes,
        typical: Vec<Option<Tensor>>,
        asked: AskedQuestion,
    ) -> TuningProblem {
        let matrices = node.operator::<BlockMatMul>().map_or(&[][..], BlockMatMul::weights);
        let case = BenchCase {
            operator: Arc::clone(&node.operator),
            shapes: shapes.clone(),
            typical,
            weights: matrices.iter().map(|matrix| matrix.rows() * matrix.columns()).sum(),
            tolerance: asked.tolerance,
        };
        let bind = Arc::clone(&self.bind);
        let choices = self.choices.clone();
        let shapes = shapes.clone();
        let own = asked.clone();
        let bind = move |candidate: usize| {
            let mut step = DispatchStep::asking(choices.forcing(&own, candidate));
            bind(index, &shapes, &mut step).map(|()| step)
        };
        let bench = CandidateBench::new(self.device, case, Box::new(bind));
        let AskedQuestion { family, bucket, space, .. } = asked;
        let unit = Some(self.choices.unit.to_string());
        let node = self.graph.place(index).to_string();
        TuningProblem { node, unit, family, bucket, space, device: Box::new(bench) }
    }
}

/// Returns the contents of inputs that are not made up; `None` if one must be known and is not.
fn typical(kernel: &dyn GpuKernel, shapes: &NodeShapes) -> Option<Vec<Option<Tensor>>> {
    let one = |(at, slot): (usize, &Option<ValueShape>)| {
        let constant = shapes.constants.get(at).is_some_and(Option::is_some);
        match slot {
            Some(value) if !constant => {
                let typical = kernel.typical(at, shapes);
                (typical.is_some() || can_make(value.dtype)).then_some(typical)
            }
            _ => Some(None),
        }
    };
    shapes.inputs.iter().enumerate().map(one).collect()
}

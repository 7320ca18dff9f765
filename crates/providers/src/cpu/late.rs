//! Kernels of nodes about whose values too little is known before a run, such as how many axes they have.

use galatea_graph::{Fact, Graph, Node};
use galatea_runtime::Precision;

use super::KERNELS;
use super::kernel::{CpuBuildContext, CpuKernel, CpuNodeView};

/// Builder of kernels for the shapes of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateKernels<'a> {
    /// Nodes that have no kernel, and may have one when more is known.
    pub(super) open: &'a [bool],
    pub(super) precision: Precision,
    pub(super) device: CpuBuildContext<'a>,
}

impl LateKernels<'_> {
    /// Returns whether a node may have a kernel when its shapes are known.
    pub(super) fn is_open(&self, index: usize) -> bool {
        self.open.get(index).is_some_and(|open| *open)
    }

    /// Builds the kernel of such a node for facts of a run, if there is one.
    pub(super) fn build(
        &self,
        graph: &Graph,
        index: usize,
        facts: &[Option<Fact>],
    ) -> Option<(Box<dyn CpuKernel>, &'static str)> {
        if !self.is_open(index) {
            return None;
        }
        let node = graph.nodes.get(index)?;
        let (precision, device) = (self.precision, self.device);
        let view = CpuNodeView { graph, node, facts, precision, device };
        let row = KERNELS.find(&view).ok()?;
        Some(((row.build)(&view).ok()?, row.name))
    }
}

/// Returns whether a node without a kernel may have one when the shapes of its values are known.
pub(super) fn is_open(node: &Node, facts: &[Option<Fact>]) -> bool {
    let unknown = |fact: &Fact| fact.is_tensor() && fact.known_shape().is_none();
    let mut all = node.inputs.iter().chain(&node.outputs).flatten();
    !node.is_view()
        && node.operator.bodies().is_empty()
        && all.any(|id| facts.get(id.index()).and_then(Option::as_ref).is_some_and(unknown))
}

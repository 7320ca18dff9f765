//! The layers that can be quantised: products with constant weights.

use galatea_graph::ops::convolution::Conv;
use galatea_graph::ops::matrix::{Gemm, MatMul};
use galatea_graph::{Graph, Node, ValueId};
use galatea_tensor::{DataType, Tensor};

/// Kind of computation of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LayerKind {
    /// A convolution.
    Conv,
    /// A product with a matrix.
    MatMul,
    /// A product with a matrix, plus a bias.
    Gemm(Gemm),
}

/// A node with constant weights.
#[derive(Clone, Debug)]
pub(super) struct WeightedLayer {
    /// The node's name, or that of its result where it has none.
    pub(super) name: String,
    /// Its position in the graph.
    pub(super) index: usize,
    pub(super) node: Node,
    pub(super) kind: LayerKind,
    pub(super) input: ValueId,
    pub(super) weights: ValueId,
    pub(super) bias: Option<ValueId>,
    pub(super) output: ValueId,
    /// The axis of the weights along which the results differ.
    pub(super) axis: usize,
}

/// The layers of a graph in its order.
pub(super) fn find(graph: &Graph) -> Vec<WeightedLayer> {
    let layer = |(index, node)| of_node(graph, index, node);
    graph.nodes.iter().enumerate().filter_map(layer).collect()
}

fn of_node(graph: &Graph, index: usize, node: &Node) -> Option<WeightedLayer> {
    let input = node.input(0)?;
    let weights = node.input(1)?;
    let output = node.output(0)?;
    let constant = graph.constant(weights)?;
    if constant.dtype() != DataType::Fp32 || constant.elements() == 0 {
        return None;
    }
    let bias = node.input(2);
    let rank = constant.rank();
    let (kind, axis) = if node.operator::<Conv>().is_some() {
        (rank >= 3).then_some((LayerKind::Conv, 0))?
    } else if node.operator::<MatMul>().is_some() {
        (rank == 2).then_some((LayerKind::MatMul, 1))?
    } else {
        let gemm = *node.operator::<Gemm>()?;
        (rank == 2 && !gemm.trans_a)
            .then_some((LayerKind::Gemm(gemm), usize::from(!gemm.trans_b)))?
    };
    if graph.constant(input).is_some() || bias.is_some_and(|id| graph.constant(id).is_none()) {
        return None;
    }
    let name = match node.name.as_str() {
        "" => graph.value(output).name.clone(),
        name => name.to_owned(),
    };
    Some(WeightedLayer {
        name,
        index,
        node: node.clone(),
        kind,
        input,
        weights,
        bias,
        output,
        axis,
    })
}

/// The weights of a product as a matrix.
#[derive(Clone, Debug)]
pub(super) struct WeightMatrix {
    /// Row by row, `[rows, columns]`: a row for each result.
    pub(super) values: Vec<f32>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl WeightedLayer {
    /// Returns whether the layer is a matrix multiplication.
    pub(super) fn is_product(&self) -> bool {
        self.kind != LayerKind::Conv
    }

    /// The weights.
    pub(super) fn constant<'g>(&self, graph: &'g Graph) -> Option<&'g Tensor> {
        graph.constant(self.weights)
    }

    /// The weights of a product with a row for each result, `alpha` included; `None` for a
    /// convolution.
    pub(super) fn matrix(&self, graph: &Graph) -> Option<WeightMatrix> {
        let constant = self.constant(graph)?;
        let (transposed, alpha) = match self.kind {
            LayerKind::Conv => return None,
            LayerKind::MatMul => (false, 1.0),
            LayerKind::Gemm(gemm) => (gemm.trans_b, gemm.alpha),
        };
        let rows_first =
            if transposed { constant.clone() } else { constant.permute(&[1, 0]).ok()? };
        let &[rows, columns] = rows_first.shape() else { return None };
        let mut values = rows_first.to_vec::<f32>().ok()?;
        if alpha != 1.0 {
            values.iter_mut().for_each(|value| *value *= alpha);
        }
        Some(WeightMatrix { values, rows, columns })
    }

    /// The bias as it is added, `beta` included.
    pub(super) fn added(&self, graph: &Graph) -> Option<Tensor> {
        let bias = graph.constant(self.bias?)?;
        let beta = match self.kind {
            LayerKind::Gemm(gemm) => gemm.beta,
            _ => 1.0,
        };
        let values = bias.to_vec::<f32>().ok()?.into_iter().map(|value| value * beta).collect();
        Tensor::from_vec(bias.shape(), values).ok()
    }

    /// Returns the number of results for which the weights have rows.
    pub(super) fn channels(&self, graph: &Graph) -> usize {
        let shape = self.constant(graph).map(Tensor::shape);
        shape.and_then(|shape| shape.get(self.axis)).copied().unwrap_or(0)
    }
}

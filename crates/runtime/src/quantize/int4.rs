//! Weights of four bits: `MatMulNBits`, which ONNX Runtime has kernels for and needs not derive.

use std::collections::HashMap;

use galatea_graph::{Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::Tensor;

use super::blocks::BlockedMatrix;
use super::edit;
use super::form::{QuantizePurpose, QuantizedForm, ValueCache};
use super::layer::WeightedLayer;
use crate::error::RuntimeError;

/// ONNX Runtime's own domain.
pub(super) const CONTRIB_DOMAIN: &str = "com.microsoft";

/// Products with weights of four bits.
#[derive(Debug)]
pub(super) struct Int4Blocks {
    /// By layer: its result.
    pub(super) blocks: HashMap<ValueId, BlockedMatrix>,
    pub(super) block: usize,
}

impl QuantizedForm for Int4Blocks {
    fn name(&self) -> &'static str {
        "INT4"
    }

    fn refusal(&self, _: &Graph, layer: &WeightedLayer) -> Option<String> {
        (!layer.is_product())
            .then(|| "weights of four bits are for products of matrices".to_owned())
    }

    fn begin(
        &self,
        graph: &mut Graph,
        _: &[&WeightedLayer],
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        if made.purpose == QuantizePurpose::Storing {
            graph.opsets.entry(CONTRIB_DOMAIN.to_owned()).or_insert(1);
        }
        Ok(())
    }

    fn emit(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        let title = |suffix: &str| format!("{}/{suffix}", layer.name);
        let missing = || RuntimeError::Quantise(format!("'{}' was not rounded", layer.name));
        let blocks = self.blocks.get(&layer.output).ok_or_else(missing)?;
        let matrix = layer.matrix(graph).ok_or_else(missing)?;
        let name = graph.value(layer.weights).name.clone();
        let added = layer.added(graph);
        let product = match added {
            Some(_) => edit::after(graph, output, "product"),
            None => output,
        };
        let mut constant = |suffix: &str, tensor: Tensor| {
            Some(edit::constant(graph, &format!("{name}/{suffix}"), tensor))
        };
        // The weights that the numbers stand for give the same results, up to the order of sums.
        if made.purpose == QuantizePurpose::Measuring {
            let inputs = [Some(layer.input), constant("rounded", blocks.values()?)];
            let op = (ONNX_DOMAIN, "MatMul");
            edit::node(graph, op, &layer.name, &[], &inputs, &[product])?;
        } else {
            let mut inputs = vec![Some(layer.input), constant("blocks", blocks.packed()?)];
            inputs.push(constant("scales", blocks.scales()));
            inputs.extend(blocks.zero_points().map(|zeros| constant("zero_points", zeros)));
            let length = |length: usize| i64::try_from(length).unwrap_or(i64::MAX).into();
            let attributes = [
                ("K", length(matrix.columns)),
                ("N", length(matrix.rows)),
                ("bits", 4.into()),
                ("block_size", length(self.block)),
            ];
            let op = (CONTRIB_DOMAIN, "MatMulNBits");
            edit::node(graph, op, &layer.name, &attributes, &inputs, &[product])?;
        }
        if let Some(bias) = added {
            let bias = edit::constant(graph, &title("bias"), bias);
            let terms = [Some(product), Some(bias)];
            let op = (ONNX_DOMAIN, "Add");
            edit::node(graph, op, &title("add"), &[], &terms, &[output])?;
        }
        Ok(())
    }
}

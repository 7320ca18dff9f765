//! Dynamic quantisation: weights are integers in the file, inputs become integers as a run goes.

use galatea_graph::{Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::Tensor;

use super::edit;
use super::form::{QuantizedForm, ValueCache};
use super::layer::WeightedLayer;
use super::weights::quantise;
use crate::error::RuntimeError;

/// The number of `FLOAT` in `TensorProto.DataType`.
const FLOAT: i64 = 1;

/// Products of integers whose inputs are quantised by `DynamicQuantizeLinear`.
#[derive(Debug)]
pub(super) struct DynamicInt8 {
    pub(super) per_channel: bool,
}

impl QuantizedForm for DynamicInt8 {
    fn name(&self) -> &'static str {
        "dynamic INT8"
    }

    fn refusal(&self, _: &Graph, layer: &WeightedLayer) -> Option<String> {
        (!layer.is_product()).then(|| "dynamic quantisation leaves convolutions alone".to_owned())
    }

    fn emit(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        let onnx = |name: &'static str| (ONNX_DOMAIN, name);
        let title = |suffix: &str| format!("{}/{suffix}", layer.name);
        let input = made.once(layer.input, "dynamic", || {
            let parts = ["quantized", "scale", "zero_point"];
            let parts = parts.map(|suffix| edit::after(graph, layer.input, suffix));
            let name = format!("{}/quantize", graph.value(layer.input).name);
            let op = onnx("DynamicQuantizeLinear");
            edit::node(graph, op, &name, &[], &[Some(layer.input)], &parts)?;
            Ok(parts.to_vec())
        })?;
        let Some(matrix) = layer.matrix(graph) else {
            return Err(RuntimeError::Quantise(format!("'{}' is no product", layer.name)));
        };
        let rows = Tensor::from_vec(&[matrix.rows, matrix.columns], matrix.values)?;
        let weights = quantise(&rows, self.per_channel.then_some(0), &|_| 0.0)?;
        let columns = weights.values.permute(&[1, 0])?.contiguous()?;
        let name = graph.value(layer.weights).name.clone();
        let b = edit::constant(graph, &format!("{name}/quantized"), columns);
        let scale = weights.scale(self.per_channel);
        let scale = edit::constant(graph, &format!("{name}/scale"), scale);
        let zero = weights.zero(self.per_channel);
        let zero = edit::constant(graph, &format!("{name}/zero_point"), zero);
        let [sums, floats, unit] =
            ["sums", "floats", "unit"].map(|suffix| edit::after(graph, output, suffix));
        let slots = [Some(input[0]), Some(b), Some(input[2]), Some(zero)];
        edit::node(graph, onnx("MatMulInteger"), &layer.name, &[], &slots, &[sums])?;
        let to = [("to", FLOAT.into())];
        edit::node(graph, onnx("Cast"), &title("cast"), &to, &[Some(sums)], &[floats])?;
        let factors = [Some(input[1]), Some(scale)];
        edit::node(graph, onnx("Mul"), &title("unit"), &[], &factors, &[unit])?;
        let added = layer.added(graph);
        let product = match added {
            Some(_) => edit::after(graph, output, "product"),
            None => output,
        };
        let factors = [Some(floats), Some(unit)];
        edit::node(graph, onnx("Mul"), &title("scale"), &[], &factors, &[product])?;
        if let Some(bias) = added {
            let bias = edit::constant(graph, &title("bias"), bias);
            let terms = [Some(product), Some(bias)];
            edit::node(graph, onnx("Add"), &title("add"), &[], &terms, &[output])?;
        }
        Ok(())
    }
}

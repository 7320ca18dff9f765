//! Running a graph on samples to see what its values are.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_graph::{AttributeValue, Graph, ONNX_DOMAIN, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::NamedInputs;
use super::edit;
use super::gptq::LayerHessian;
use super::histogram::ValueHistogram;
use crate::error::RuntimeError;
use crate::options::SessionOptions;
use crate::provider::ExecutionProvider;
use crate::session::{Run, Session};

/// The most bytes of Hessians that are summed up in one pass over the samples.
const HESSIAN_BYTES: usize = 1 << 30;

/// Runs graphs.
pub(super) struct CalibrationRunner<'a> {
    pub(super) providers: &'a [Arc<dyn ExecutionProvider>],
    pub(super) options: &'a SessionOptions,
}

/// A sample in the form that a session takes.
pub(super) fn named(sample: &NamedInputs) -> Vec<(&str, Tensor)> {
    sample.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect()
}

/// Callback that receives the values of one run.
pub(super) type ValueObserver<'s> = &'s mut dyn FnMut(Vec<Tensor>) -> Result<(), RuntimeError>;

impl CalibrationRunner<'_> {
    /// The outputs of a graph for every sample, one after the other.
    pub(super) fn outputs(
        &self,
        graph: &Graph,
        samples: &[NamedInputs],
        see: ValueObserver<'_>,
    ) -> Result<(), RuntimeError> {
        let session = Session::new(graph.clone(), self.providers, self.options)?;
        for (index, sample) in samples.iter().enumerate() {
            let outputs =
                session.run_tensors(Run::named(&named(sample))).map_err(|error| match error {
                    RuntimeError::Input(text) => {
                        RuntimeError::Input(format!("sample {}: {text}", index + 1))
                    }
                    other => other,
                })?;
            see(outputs)?;
        }
        Ok(())
    }

    /// The given values of a graph for every sample, one after the other.
    pub(super) fn values(
        &self,
        graph: &Graph,
        values: &[ValueId],
        samples: &[NamedInputs],
        see: ValueObserver<'_>,
    ) -> Result<(), RuntimeError> {
        if values.is_empty() {
            return Ok(());
        }
        let mut watched = graph.clone();
        watched.outputs = values.to_vec();
        watched.remove_unused();
        self.outputs(&watched, samples, see)
    }

    /// Returns histograms of the values over all samples.
    pub(super) fn histograms(
        &self,
        graph: &Graph,
        values: &[ValueId],
        samples: &[NamedInputs],
    ) -> Result<HashMap<ValueId, ValueHistogram>, RuntimeError> {
        let mut found = vec![ValueHistogram::default(); values.len()];
        self.values(graph, values, samples, &mut |tensors| {
            for (histogram, tensor) in found.iter_mut().zip(tensors) {
                histogram.add(&floats(&tensor)?);
            }
            Ok(())
        })?;
        Ok(values.iter().copied().zip(found).collect())
    }

    /// Calls `each` with the Hessian of the inputs of every product: values whose last axis has the
    /// given length.
    pub(super) fn hessians(
        &self,
        graph: &Graph,
        inputs: &[(ValueId, usize)],
        samples: &[NamedInputs],
        each: &mut dyn FnMut(ValueId, &LayerHessian),
    ) -> Result<(), RuntimeError> {
        let mut rest = inputs;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, size): &&(ValueId, usize)| {
                bytes += LayerHessian::bytes(*size);
                bytes <= HESSIAN_BYTES
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let mut hessians: Vec<LayerHessian> =
                now.iter().map(|&(_, size)| LayerHessian::new(size)).collect();
            let (graph, products) = with_products(graph, now)?;
            self.values(&graph, &products, samples, &mut |tensors| {
                for (hessian, tensor) in hessians.iter_mut().zip(tensors) {
                    hessian.add(&floats(&tensor)?);
                }
                Ok(())
            })?;
            for (&(id, _), hessian) in now.iter().zip(&hessians) {
                each(id, hessian);
            }
            rest = later;
        }
        Ok(())
    }
}

/// The graph with `xᵀ·x` for each of some values, whose last axis has the given length: whoever runs
/// the model has fast products. Gives the results.
fn with_products(
    graph: &Graph,
    inputs: &[(ValueId, usize)],
) -> Result<(Graph, Vec<ValueId>), RuntimeError> {
    let mut new = graph.clone();
    let mut results = Vec::with_capacity(inputs.len());
    for &(id, size) in inputs {
        let name = format!("{}/products", new.value(id).name);
        let shape = vec![-1, i64::try_from(size).unwrap_or(i64::MAX)];
        let shape = edit::constant(&mut new, &format!("{name}/shape"), Tensor::vector(shape));
        let [rows, columns, result] = ["rows", "columns", "sums"]
            .map(|part| edit::value(&mut new, &format!("{name}/{part}")));
        let order = [("perm", AttributeValue::Ints(vec![1, 0]))];
        let mut add = |op: &'static str, attributes: &[_], inputs: &[_], output: ValueId| {
            let op = (ONNX_DOMAIN, op);
            edit::node(&mut new, op, &name, attributes, inputs, &[output])
        };
        add("Reshape", &[], &[Some(id), Some(shape)], rows)?;
        add("Transpose", &order, &[Some(rows)], columns)?;
        add("MatMul", &[], &[Some(columns), Some(rows)], result)?;
        results.push(result);
    }
    new.sort()?;
    Ok((new, results))
}

/// The elements of a tensor of floats, in its order.
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f32>, RuntimeError> {
    match tensor.dtype() {
        DataType::Fp32 => Ok(tensor.to_vec::<f32>()?),
        other => Err(RuntimeError::Quantise(format!("a value is {other}, expected FP32"))),
    }
}

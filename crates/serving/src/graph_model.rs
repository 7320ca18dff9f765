//! Models that are graphs, in whatever format they come.

use std::path::Path;
use std::sync::Arc;

use galatea_formats::coreml::{self, ClassifierClasses, FeatureType, ModelFeature};
use galatea_formats::onnx;
use galatea_graph::ops::ml::ZipMap;
use galatea_graph::ops::shape::Identity;
use galatea_graph::{Graph, converted};
use galatea_tensor::Tensor;

/// The format of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFormat {
    /// A file of ONNX.
    Onnx,
    /// A package, a file or a compiled folder of Core ML.
    CoreMl,
}

impl ModelFormat {
    /// The format that a path names, by its ending.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "onnx" => Some(Self::Onnx),
            "mlpackage" | "mlmodel" | "mlmodelc" => Some(Self::CoreMl),
            _ => None,
        }
    }
}

/// A function of a model of Core ML: its computation, and what it says of itself.
#[derive(Clone, Debug)]
pub struct CoreMlModel {
    /// The computation: inputs and outputs, and behind them the states.
    pub graph: Graph,
    /// Inputs, outputs and states.
    pub interface: FunctionInterface,
}

/// Inputs, outputs and states of a function of a Core ML model.
#[derive(Clone, Debug)]
pub struct FunctionInterface {
    /// Arguments of a run.
    pub inputs: Vec<ModelFeature>,
    /// Values of inputs that a run may leave out.
    pub defaults: Vec<(String, Tensor)>,
    /// States that a run finds and leaves.
    pub states: Vec<RunState>,
    /// Classes of a classifier.
    pub labels: Option<ClassifierClasses>,
}

/// States that a run finds and leaves.
#[derive(Clone, Debug)]
pub struct RunState {
    /// The input that it is.
    pub input: String,
    /// The output that it is afterwards.
    pub output: String,
    /// Value before the first run.
    pub zeros: Tensor,
}

impl FunctionInterface {
    /// Checks the shapes of a run's inputs against those that the model allows.
    ///
    /// # Errors
    /// The first input that has another shape, with those that it may have.
    pub fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    ) -> Result<(), String> {
        for (name, tensor) in inputs {
            let Some(feature) = self.inputs.iter().find(|feature| feature.name == name) else {
                continue;
            };
            feature.check_shape(tensor.shape())?;
        }
        Ok(())
    }
}

/// Reads the computation of an ONNX file.
///
/// # Errors
/// Says what is wrong with the file, and where.
pub fn read_onnx(path: &Path) -> Result<Graph, String> {
    onnx::load(path).map_err(|error| error.to_string())
}

/// Gives the outputs of `ZipMap` as the tensors that it makes maps of: requests and answers know no maps. The columns
/// of such a tensor are in the order of the model's labels.
///
/// # Errors
/// Says that the graph is wrong.
pub fn maps_as_tensors(graph: &mut Graph) -> Result<(), String> {
    let producers = graph.producers();
    for output in graph.outputs.clone() {
        let made = producers.get(output.index()).copied().flatten();
        let Some(node) = made.and_then(|at| graph.nodes.get_mut(at)) else { continue };
        if node.operator::<ZipMap>().is_some() {
            node.operator = Arc::new(Identity);
            node.op_type = "Identity".to_owned();
            node.domain = String::new();
            node.parsed = None;
            graph.value_mut(output).declared = None;
        }
    }
    graph.sort().map_err(|error| error.to_string())
}

/// Reads a function of a model of Core ML; its default one where none is named.
///
/// # Errors
/// Says what is wrong with the model, and where; also that it has no such function.
pub fn read_core_ml(path: &Path, function: Option<&str>) -> Result<CoreMlModel, String> {
    let model = coreml::load(path).map_err(|error| error.to_string())?;
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = model.function(function).map_err(|error| failed(&error))?;
    let fed = found.graph.inputs.iter().skip(found.inputs.len());
    let left = found.graph.outputs.iter().skip(found.outputs.len());
    let states = fed.zip(left).map(|(&input, &output)| {
        let value = found.graph.value(input);
        let shape =
            value.declared.as_ref().and_then(|fact| Some((fact.dtype, fact.known_shape()?)));
        let (dtype, shape) = shape.ok_or_else(|| failed(&"a state of unknown shape"))?;
        let zeros = Tensor::zeros(dtype, &shape).map_err(|error| failed(&error))?;
        Ok(RunState {
            input: value.name.clone(),
            output: found.graph.value(output).name.clone(),
            zeros,
        })
    });
    let states = states.collect::<Result<_, String>>()?;
    let inputs = found.inputs.clone();
    let labels = found.labels.clone();
    let defaults = found.inputs.iter().filter_map(|input| default_value(input).transpose());
    let defaults = defaults.collect::<Result<_, String>>().map_err(|error| failed(&error))?;
    let interface = FunctionInterface { inputs, defaults, states, labels };
    Ok(CoreMlModel { graph: found.graph.clone(), interface })
}

/// The value of an input that a run may leave out: its default in its usual shape, zeros where the model states none.
fn default_value(input: &ModelFeature) -> Result<Option<(String, Tensor)>, String> {
    let FeatureType::Array { dtype, shape, default, .. } = &input.kind else { return Ok(None) };
    if !input.optional || shape.is_empty() {
        return Ok(None);
    }
    let place = |error: &dyn std::fmt::Display| format!("default of '{}': {error}", input.name);
    let one = converted(&Tensor::scalar(default.unwrap_or(0.0)), *dtype);
    let one = one.map_err(|error| place(&error))?;
    let value = one.broadcast_to(shape).and_then(|value| value.contiguous());
    Ok(Some((input.name.clone(), value.map_err(|error| place(&error))?)))
}

#[cfg(test)]
mod tests {
    use galatea_formats::coreml::FeatureShapes;
    use galatea_tensor::{DataType, f16};

    use super::*;

    fn feature(optional: bool, default: Option<f64>, shape: &[usize]) -> ModelFeature {
        let kind = FeatureType::Array {
            dtype: DataType::Fp16,
            shape: shape.to_vec(),
            shapes: FeatureShapes::Fixed,
            default,
        };
        ModelFeature { name: "x".to_owned(), description: String::new(), kind, optional }
    }

    #[test]
    fn an_optional_input_has_its_default_in_its_usual_shape() {
        let (name, value) =
            default_value(&feature(true, Some(2.5), &[2, 3])).unwrap().expect("a default");
        assert_eq!(
            (name.as_str(), value.dtype(), value.shape()),
            ("x", DataType::Fp16, &[2, 3][..])
        );
        assert_eq!(value.to_vec::<f16>().unwrap(), [f16::from_f32(2.5); 6]);
        let (_, zeros) = default_value(&feature(true, None, &[2])).unwrap().expect("zeros");
        assert_eq!(zeros.to_vec::<f16>().unwrap(), [f16::ZERO; 2]);
        assert!(default_value(&feature(false, Some(2.5), &[2])).unwrap().is_none());
        assert!(default_value(&feature(true, Some(2.5), &[])).unwrap().is_none());
    }
}

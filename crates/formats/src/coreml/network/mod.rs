//! Classic neural networks (`NeuralNetwork.proto`) to graphs.
//!
//! [`function`] makes a graph of a network: blobs by name, one layer after the other. Each kind of
//! layer is a row of [`rows::ROWS`] whose function adds operators of ONNX; `lower` holds the graph
//! and what is known of its values meanwhile, and [`control`] the networks inside layers. All values
//! are FP32, as Core ML computes networks; numbers of other types are cast where they go in and out.
//!
//! Source: the messages of coremltools 9.0 and what is said there about each layer.

mod activation;
mod blob;
mod border;
mod control;
mod convolution;
mod elementwise;
mod generate;
mod glm;
mod index;
mod lower;
mod matrix;
mod nms;
mod normalize;
pub(super) mod pipeline;
mod pooling;
mod recurrent;
mod reduce;
mod resize;
mod rows;
mod shape;
mod simple;
mod simple_step;
mod slice;
mod svm;
mod svm_classifier;
mod trees;
mod weights;

use bytes::Bytes;

use super::decode;
use super::error::CoreMlError;
use super::feature::ModelFeature;
use super::proto::network::layers::CustomLayerProto;
use super::proto::network::{NetworkLayerProto, NetworkProto};
use super::proto::{FeatureDescription, ModelDescription, ModelKind};
use super::{ClassifierClasses, CoreMlFunction};
use control::LayerJump;
use lower::{LayerCall, NetworkLowering};

/// Purpose of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkKind {
    /// Anything.
    Plain,
    /// It tells labels apart.
    Classifier,
    /// It gives one number.
    Regressor,
}

/// The number of the field that is code outside the file.
const CUSTOM: u32 = 500;
/// The number of `copy`, which alone may write a blob again.
const COPY: u32 = 600;

/// Makes a function of a model that is a network; `None` for models of other kinds.
pub(super) fn of_model(
    kind: &ModelKind,
    description: &ModelDescription,
) -> Option<Result<CoreMlFunction, CoreMlError>> {
    let (message, kind) = match kind {
        ModelKind::NeuralNetwork(message) => (message, NetworkKind::Plain),
        ModelKind::NeuralNetworkClassifier(message) => (message, NetworkKind::Classifier),
        ModelKind::NeuralNetworkRegressor(message) => (message, NetworkKind::Regressor),
        _ => return None,
    };
    Some(function(message, kind, description))
}

/// Makes a function of a network, given as the bytes of its message.
///
/// # Errors
/// Fails when the message is damaged, or a layer says what is not possible or not supported; the
/// error names the layer.
fn function(
    message: &Bytes,
    kind: NetworkKind,
    description: &ModelDescription,
) -> Result<CoreMlFunction, CoreMlError> {
    let network: NetworkProto = decode(Bytes::clone(message))?;
    let read = |all: &[FeatureDescription]| {
        all.iter().map(ModelFeature::read).collect::<Result<Vec<_>, _>>()
    };
    let inputs = read(&description.input)?;
    let outputs = read(&description.output)?;
    let reserved = inputs.iter().chain(&outputs).map(|feature| feature.name.clone());
    let mut cx = NetworkLowering::new("main", reserved);
    let mut note = |name: &str, reads: bool| {
        if reads {
            *cx.wanted.entry(name.to_owned()).or_insert(0) += 1;
        }
    };
    control::names(&network.layers, 0, &mut note)?;
    outputs.iter().for_each(|feature| note(&feature.name, true));
    note(&network.label_probability_layer_name, true);
    border::inputs(&mut cx, &inputs, &network)?;
    cx.layers(&network.layers)?;
    let labels = border::outputs(&mut cx, &outputs, &network, kind, description)?;
    let graph = cx.finish()?;
    Ok(CoreMlFunction {
        name: "main".to_owned(),
        graph,
        inputs,
        outputs,
        states: Vec::new(),
        labels,
    })
}

/// How an error names a layer.
fn place(layer: &NetworkLayerProto) -> String {
    let tag = layer.kind.as_ref().map(|(tag, _)| *tag);
    match tag.and_then(rows::find) {
        Some(row) => format!("layer '{}' ({})", layer.name, row.name),
        None => format!("layer '{}'", layer.name),
    }
}

impl NetworkLowering {
    /// Lowers layers in their order.
    ///
    /// # Errors
    /// Fails when one is not possible or not supported; the error names it.
    fn layers(&mut self, layers: &[NetworkLayerProto]) -> Result<(), CoreMlError> {
        for (at, layer) in layers.iter().enumerate() {
            self.one_layer(layer).map_err(|error| error.at(place(layer)))?;
            match control::jump(layer, self.depth())? {
                LayerJump::Never => {}
                LayerJump::Always => return Ok(()),
                LayerJump::Maybe => {
                    return control::unless_left(self, layers.get(at + 1..).unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn one_layer(&mut self, layer: &NetworkLayerProto) -> Result<(), CoreMlError> {
        let Some((tag, message)) = &layer.kind else {
            return Err(CoreMlError::invalid("it is of no kind"));
        };
        let Some(row) = rows::find(*tag) else { return Err(unknown(*tag, message)) };
        let within = |what: &str, (least, most): (usize, usize), found: usize| {
            if (least..=most).contains(&found) {
                return Ok(());
            }
            let expected = match most {
                usize::MAX => format!("{least} or more"),
                most if most == least => least.to_string(),
                most => format!("{least} to {most}"),
            };
            Err(CoreMlError::invalid(format!("it has {found} {what}, expected {expected}")))
        };
        within("inputs", row.inputs, layer.input.len())?;
        within("outputs", row.outputs, layer.output.len())?;
        let name = [layer.name.as_str(), layer.output.first().map_or("", String::as_str), row.name];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        name.clone_into(&mut self.layer);
        let mut inputs = Vec::with_capacity(layer.input.len());
        for name in &layer.input {
            let missing = || CoreMlError::invalid(format!("it reads '{name}', which is no blob"));
            inputs.push(self.find(name).ok_or_else(missing)?);
        }
        let outputs = layer.output.len();
        let call = LayerCall { message: Bytes::clone(message), inputs, outputs };
        let blobs = (row.lower)(self, &call)?;
        if blobs.len() < outputs {
            let text = format!("it has {outputs} outputs, expected {}", blobs.len());
            return Err(CoreMlError::invalid(text));
        }
        for (name, blob) in layer.output.iter().zip(blobs) {
            if !self.scope().made.insert(name.clone()) && *tag != COPY {
                let text = format!("it writes '{name}', which is a blob already");
                return Err(CoreMlError::invalid(text));
            }
            self.bind(name, blob);
        }
        Ok(())
    }
}

fn unknown(tag: u32, message: &Bytes) -> CoreMlError {
    match (tag, decode::<CustomLayerProto>(Bytes::clone(message))) {
        (CUSTOM, Ok(custom)) => {
            let class = custom.class_name;
            CoreMlError::unsupported(format!("custom layer '{class}' is code outside the file"))
        }
        _ => CoreMlError::unsupported(format!("layers of kind {tag} are not known")),
    }
}

/// Returns the labels of a classifier, as texts.
fn labels(description: &ModelDescription, names: Vec<String>) -> ClassifierClasses {
    ClassifierClasses {
        predicted: description.predicted_feature_name.clone(),
        probabilities: description.predicted_probabilities_name.clone(),
        names,
    }
}

//! Pipelines: models that run one after the other become one graph.
//!
//! Features go from model to model by name. Members are networks, the simple models of [`simple`],
//! and whatever else the caller knows to read.

use galatea_graph::{Dim, Fact, ValueId};
use galatea_tensor::DataType;

use super::lower::NetworkLowering;
use super::simple_step::FeatureValues;
use super::{border, labels, simple};
use crate::coreml::CoreMlFunction;
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::feature::{ColorOrder, FeatureType, ModelFeature};
use crate::coreml::proto::{
    CoreMlModelProto, CoreMlPipelineProto, FeatureDescription, ModelDescription, ModelKind,
    PipelineOf,
};

/// Makes the function of a member that is neither a pipeline nor a simple model.
pub(in crate::coreml) type PipelineMember<'m> =
    &'m mut dyn FnMut(&CoreMlModelProto) -> Result<CoreMlFunction, CoreMlError>;

/// Deepest nesting of pipelines.
const MAX_DEPTH: usize = 8;

/// Makes a function of a pipeline or of a simple model; `None` for models of other kinds.
pub(in crate::coreml) fn of_model(
    model: &CoreMlModelProto,
    member: PipelineMember<'_>,
) -> Option<Result<CoreMlFunction, CoreMlError>> {
    let kind = model.kind.as_ref()?;
    let known = is_pipeline(kind) || simple::find(kind).is_some();
    known.then(|| joined(model, member))
}

fn is_pipeline(kind: &ModelKind) -> bool {
    matches!(
        kind,
        ModelKind::Pipeline(_) | ModelKind::PipelineClassifier(_) | ModelKind::PipelineRegressor(_)
    )
}

fn members(kind: &ModelKind) -> Result<Option<CoreMlPipelineProto>, CoreMlError> {
    match kind {
        ModelKind::Pipeline(message) => decode(message.clone()).map(Some),
        ModelKind::PipelineClassifier(message) | ModelKind::PipelineRegressor(message) => {
            let found: PipelineOf = decode(message.clone())?;
            Ok(Some(found.pipeline.unwrap_or_default()))
        }
        _ => Ok(None),
    }
}

fn features(all: &[FeatureDescription]) -> Result<Vec<ModelFeature>, CoreMlError> {
    all.iter().map(ModelFeature::read).collect()
}

fn joined(
    model: &CoreMlModelProto,
    member: PipelineMember<'_>,
) -> Result<CoreMlFunction, CoreMlError> {
    let none = ModelDescription::default();
    let description = model.description.as_ref().unwrap_or(&none);
    let inputs = features(&description.input)?;
    let outputs = features(&description.output)?;
    let reserved = inputs.iter().chain(&outputs).map(|feature| feature.name.clone());
    let mut cx = NetworkLowering::new("main", reserved);
    let mut values = FeatureValues::new();
    for feature in &inputs {
        let id = cx.reserved(&feature.name);
        let fact = fact(feature).map_err(|error| error.at(format!("input '{}'", feature.name)))?;
        cx.declare_input(id, fact);
        values.insert(feature.name.clone(), id);
    }
    let names = run(&mut cx, &mut values, model, description, member, 0)?;
    for feature in &outputs {
        let place = || format!("output '{}'", feature.name);
        let missing = || CoreMlError::invalid("no model gives it").at(place());
        let &id = values.get(&feature.name).ok_or_else(missing)?;
        let id = wanted(&mut cx, id, feature).map_err(|error| error.at(place()))?;
        cx.give(id, &feature.name)?;
    }
    let graph = cx.finish()?;
    let classifies = !description.predicted_feature_name.is_empty();
    let labels = names.filter(|_| classifies).map(|names| labels(description, names));
    Ok(CoreMlFunction {
        name: "main".to_owned(),
        graph,
        inputs,
        outputs,
        states: Vec::new(),
        labels,
    })
}

/// Adds a model to the graph; the labels of the last classifier.
fn run(
    cx: &mut NetworkLowering,
    values: &mut FeatureValues,
    model: &CoreMlModelProto,
    description: &ModelDescription,
    member: PipelineMember<'_>,
    depth: usize,
) -> Result<Option<Vec<String>>, CoreMlError> {
    let Some(kind) = &model.kind else { return Err(CoreMlError::invalid("it is no model")) };
    if let Some(row) = simple::find(kind) {
        return simple::lower(cx, values, row, kind, description);
    }
    if let Some(pipeline) = members(kind)? {
        if depth == MAX_DEPTH {
            let text = format!("pipelines are nested more than {MAX_DEPTH} deep");
            return Err(CoreMlError::unsupported(text));
        }
        let none = ModelDescription::default();
        let mut names = None;
        for (at, model) in pipeline.models.iter().enumerate() {
            let called = pipeline.names.get(at).map_or("", String::as_str);
            let kind = model.kind.as_ref().map_or("no model", ModelKind::name);
            let place = |error: CoreMlError| error.at(format!("model {at} '{called}' ({kind})"));
            let description = model.description.as_ref().unwrap_or(&none);
            let found = run(cx, values, model, description, &mut *member, depth + 1);
            names = found.map_err(place)?.or(names);
        }
        return Ok(names);
    }
    let function = member(model)?;
    if !function.states.is_empty() {
        return Err(CoreMlError::unsupported("a model with states in a pipeline"));
    }
    let graph = &function.graph;
    let mut inputs = Vec::with_capacity(graph.inputs.len());
    for &id in &graph.inputs {
        let value = graph.value(id);
        let missing = || CoreMlError::invalid(format!("no model before gives '{}'", value.name));
        let &given = values.get(&value.name).ok_or_else(missing)?;
        inputs.push(match &value.declared {
            Some(fact) => fitted(cx, given, fact)?,
            None => given,
        });
    }
    let outputs = cx.splice(graph, &inputs)?;
    for (&id, given) in graph.outputs.iter().zip(outputs) {
        values.insert(graph.value(id).name.clone(), given);
    }
    Ok(function.labels.map(|labels| labels.names))
}

/// Returns the fact of a feature.
fn fact(feature: &ModelFeature) -> Result<Fact, CoreMlError> {
    Ok(match &feature.kind {
        FeatureType::Array { dtype, shape, shapes, .. } => {
            Fact::new(*dtype, border::dims(&feature.name, shape, shapes)?)
        }
        FeatureType::Image { colors, size, sizes } => {
            let mut dims = border::dims(&feature.name, size, sizes)?;
            dims.splice(..0, [Dim::Known(1), Dim::Known(colors.channels())]);
            let dtype =
                if *colors == ColorOrder::GrayHalf { DataType::Fp16 } else { DataType::Fp32 };
            Fact::new(dtype, dims)
        }
        FeatureType::Int64 => Fact::fixed(DataType::Int64, &[1]),
        FeatureType::Double => Fact::fixed(DataType::Fp64, &[1]),
        FeatureType::Text => Fact::fixed(DataType::Bytes, &[1]),
        FeatureType::Dictionary { .. } | FeatureType::List => {
            return Err(CoreMlError::unsupported("dictionaries and lists are no tensors"));
        }
    })
}

/// A value in the type and shape that a feature has.
fn wanted(
    cx: &mut NetworkLowering,
    id: ValueId,
    feature: &ModelFeature,
) -> Result<ValueId, CoreMlError> {
    match &feature.kind {
        // A label may have no axis, and probabilities are a tensor.
        FeatureType::Text | FeatureType::Int64 | FeatureType::Dictionary { .. } => Ok(id),
        FeatureType::Array { dtype, shape, .. } if shape.is_empty() => cx.cast(id, *dtype),
        _ => {
            let fact = fact(feature)?;
            fitted(cx, id, &fact)
        }
    }
}

/// A value in another type and, where both are known, another shape of as many elements.
fn fitted(cx: &mut NetworkLowering, id: ValueId, fact: &Fact) -> Result<ValueId, CoreMlError> {
    let found = cx.fact(id)?;
    if (found.dtype == DataType::Bytes) != (fact.dtype == DataType::Bytes) {
        let text = format!("a value of type {} where {} is expected", found.dtype, fact.dtype);
        return Err(CoreMlError::invalid(text));
    }
    let id = cx.cast(id, fact.dtype)?;
    match (found.known_shape(), fact.known_shape()) {
        (Some(found), Some(shape)) if found != shape => cx.reshape(id, &super::lower::ints(&shape)),
        _ => Ok(id),
    }
}

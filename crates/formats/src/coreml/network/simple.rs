//! The simple models that pipelines hold: transformers of features, linear models, trees, and the
//! suppression of overlapping boxes.
//!
//! Numbers are FP32: Core ML computes some of these in doubles.

use bytes::Bytes;
use galatea_tensor::{ByteString, DataType, Tensor};

use super::lower::{NetworkLowering, choice, ints, size, sizes};
use super::nms::{NmsThresholds, survivors};
use super::simple_step::{ClassifierNames, FeatureValues, SimpleModelStep, floats};
use super::{glm, svm, svm_classifier, trees};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::{
    ArrayFeatureExtractorProto, CategoricalMapping, CategoriesProto, FeatureVectorizerProto,
    ImputedProto, ImputerProto, MappingProto, NormProto, NormalizerProto, OneHotEncoderProto,
    ReplacedProto, ScalerProto, SuppressionModel,
};
use crate::coreml::proto::{ModelDescription, ModelKind};

/// How a simple model is lowered.
pub(super) type SimpleModelLowering =
    fn(&mut NetworkLowering, &mut SimpleModelStep<'_>) -> Result<ClassifierNames, CoreMlError>;

/// The simple models by the names of their fields.
const ROWS: &[(&str, SimpleModelLowering)] = &[
    ("arrayFeatureExtractor", array_feature_extractor),
    ("categoricalMapping", categorical_mapping),
    ("featureVectorizer", feature_vectorizer),
    ("glmClassifier", glm::classifier),
    ("glmRegressor", glm::regressor),
    ("identity", identity),
    ("imputer", imputer),
    ("nonMaximumSuppression", suppression),
    ("normalizer", normalizer),
    ("oneHotEncoder", one_hot_encoder),
    ("scaler", scaler),
    ("supportVectorClassifier", svm_classifier::classifier),
    ("supportVectorRegressor", svm::regressor),
    ("treeEnsembleClassifier", trees::classifier),
    ("treeEnsembleRegressor", trees::regressor),
];

/// The row of a simple model.
pub(super) fn find(kind: &ModelKind) -> Option<SimpleModelLowering> {
    ROWS.iter().find(|(name, _)| *name == kind.name()).map(|&(_, lower)| lower)
}

/// The bytes of a model's message.
fn message(kind: &ModelKind) -> Option<&Bytes> {
    Some(match kind {
        ModelKind::ArrayFeatureExtractor(message)
        | ModelKind::CategoricalMapping(message)
        | ModelKind::FeatureVectorizer(message)
        | ModelKind::GlmClassifier(message)
        | ModelKind::GlmRegressor(message)
        | ModelKind::Identity(message)
        | ModelKind::Imputer(message)
        | ModelKind::NonMaximumSuppression(message)
        | ModelKind::Normalizer(message)
        | ModelKind::OneHotEncoder(message)
        | ModelKind::Scaler(message)
        | ModelKind::SupportVectorClassifier(message)
        | ModelKind::SupportVectorRegressor(message)
        | ModelKind::TreeEnsembleClassifier(message)
        | ModelKind::TreeEnsembleRegressor(message) => message,
        _ => return None,
    })
}

/// Lowers a simple model.
///
/// # Errors
/// Fails when it is damaged or does not fit what it is given.
pub(super) fn lower(
    cx: &mut NetworkLowering,
    values: &mut FeatureValues,
    row: SimpleModelLowering,
    kind: &ModelKind,
    description: &ModelDescription,
) -> Result<ClassifierNames, CoreMlError> {
    let missing = || CoreMlError::unsupported(kind.name());
    let message = message(kind).ok_or_else(missing)?;
    kind.name().clone_into(&mut cx.layer);
    row(cx, &mut SimpleModelStep { message, description, values })
}

fn identity(
    _: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let names = step.description.input.iter().zip(&step.description.output);
    for (input, output) in names {
        let id = step.value(&input.name)?;
        step.values.insert(output.name.clone(), id);
    }
    Ok(None)
}

/// `(x + shift) · scale`.
fn scaler(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: ScalerProto = decode(Bytes::clone(step.message))?;
    let mut x = step.floats(cx)?;
    for (operator, values) in [("Add", &params.shift_value), ("Mul", &params.scale_value)] {
        if !values.is_empty() {
            let values = cx.constant(Tensor::vector(floats(values)));
            x = cx.node(operator, &[x, values], &[])?;
        }
    }
    step.give(x)
}

/// A vector divided by its norm.
fn normalizer(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: NormalizerProto = decode(Bytes::clone(step.message))?;
    let x = step.floats(cx)?;
    let keep = [("keepdims", true.into())];
    let norm = match choice(params.norm_type, "norm")? {
        NormProto::Max => {
            let size = cx.node("Abs", &[x], &[])?;
            cx.node("ReduceMax", &[size], &keep)?
        }
        NormProto::L1 => cx.node("ReduceL1", &[x], &keep)?,
        NormProto::L2 => cx.node("ReduceL2", &[x], &keep)?,
    };
    let id = cx.node("Div", &[x, norm], &[])?;
    step.give(id)
}

/// Other values where one is missing: a number, or not a number.
fn imputer(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: ImputerProto = decode(Bytes::clone(step.message))?;
    let x = step.floats(cx)?;
    // Integers beyond what a float holds are no values that anybody replaces.
    #[allow(clippy::cast_precision_loss, reason = "as all numbers here")]
    let wide = |value: &i64| *value as f64;
    let imputed = match &params.imputed {
        Some(ImputedProto::Double(value)) => vec![*value],
        Some(ImputedProto::Int(value)) => vec![wide(value)],
        Some(ImputedProto::Doubles(all)) => all.vector.clone(),
        Some(ImputedProto::Ints(all)) => all.vector.iter().map(wide).collect(),
        None => return Err(CoreMlError::unsupported("values that are no numbers")),
    };
    let replaced = match &params.replaced {
        Some(ReplacedProto::Double(value)) => *value,
        Some(ReplacedProto::Int(value)) => wide(value),
        None => f64::NAN,
    };
    let missing = if replaced.is_nan() {
        cx.node("IsNaN", &[x], &[])?
    } else {
        let replaced = cx.constant(Tensor::vector(floats(&[replaced])));
        cx.node("Equal", &[x, replaced], &[])?
    };
    let imputed = cx.constant(Tensor::vector(floats(&imputed)));
    let id = cx.node("Where", &[missing, imputed, x], &[])?;
    step.give(id)
}

/// 1 at the place of the category. A sparse result is a dictionary from places to ones: here, as every dictionary, the
/// vector of its values.
fn one_hot_encoder(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: OneHotEncoderProto = decode(Bytes::clone(step.message))?;
    let x = step.input()?;
    let x = cx.reshape(x, &[1])?;
    let (x, table) = match &params.categories {
        Some(CategoriesProto::Strings(all)) => {
            let texts = all.vector.iter().map(|text| ByteString::from(text.as_str()));
            (x, Tensor::vector(texts.collect::<Vec<_>>()))
        }
        Some(CategoriesProto::Ints(all)) => {
            (cx.cast(x, DataType::Int64)?, Tensor::vector(all.vector.clone()))
        }
        None => return Err(CoreMlError::invalid("it has no categories")),
    };
    let table = cx.constant(table);
    let found = cx.node("Equal", &[x, table], &[])?;
    let id = cx.cast(found, DataType::Fp32)?;
    step.give(id)
}

/// Maps a category to its value, and an unknown one to a default.
fn categorical_mapping(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: CategoricalMapping = decode(Bytes::clone(step.message))?;
    let text = |text: &String| ByteString::from(text.as_str());
    let (keys, values) = match &params.mapping {
        Some(MappingProto::ToInt(found)) => {
            let keys: Vec<ByteString> = found.map.keys().map(text).collect();
            let values = found.map.values().copied().chain([params.int64_value]);
            (Tensor::vector(keys), Tensor::vector(values.collect::<Vec<i64>>()))
        }
        Some(MappingProto::ToString(found)) => {
            let keys: Vec<i64> = found.map.keys().copied().collect();
            let values = found.map.values().chain([&params.str_value]).map(text);
            (Tensor::vector(keys), Tensor::vector(values.collect::<Vec<ByteString>>()))
        }
        None => return Err(CoreMlError::invalid("it maps nothing")),
    };
    let x = step.input()?;
    let x = cx.reshape(x, &[1])?;
    let keys = cx.constant(keys);
    let found = cx.node("Equal", &[x, keys], &[])?;
    let found = cx.cast(found, DataType::Int64)?;
    // The first 1 is that of the key, or the last, of what is not known.
    let last = cx.longs(&[1]);
    let all = cx.node("Concat", &[found, last], &[("axis", 0_i64.into())])?;
    let at = cx.node("ArgMax", &[all], &[("axis", 0_i64.into())])?;
    let values = cx.constant(values);
    let id = cx.node("Gather", &[values, at], &[])?;
    step.give(id)
}

/// Features one behind the other.
fn feature_vectorizer(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: FeatureVectorizerProto = decode(Bytes::clone(step.message))?;
    let mut parts = Vec::with_capacity(params.input_list.len());
    for column in &params.input_list {
        let id = step.value(&column.input_column)?;
        let id = cx.reshape(id, &[-1])?;
        let wanted = size(column.input_dimensions)?;
        if cx.dim(id, 0)?.is_some_and(|found| found != wanted) {
            let text = format!("'{}' has not {wanted} numbers", column.input_column);
            return Err(CoreMlError::invalid(text));
        }
        parts.push(cx.cast(id, DataType::Fp32)?);
    }
    let id = cx.node("Concat", &parts, &[("axis", 0_i64.into())])?;
    step.give(id)
}

/// Some elements.
fn array_feature_extractor(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: ArrayFeatureExtractorProto = decode(Bytes::clone(step.message))?;
    let x = step.floats(cx)?;
    let indices = cx.longs(&ints(&sizes(&params.extract_index)?));
    let id = cx.node("Gather", &[x, indices], &[])?;
    step.give(id)
}

/// The best boxes that do not overlap, as many as there are.
fn suppression(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: SuppressionModel = decode(Bytes::clone(step.message))?;
    let floats = |cx: &mut NetworkLowering, name: &str| {
        let id = step.value(name)?;
        cx.cast(id, DataType::Fp32)
    };
    let scores = floats(cx, &params.confidence_input)?;
    let boxes = floats(cx, &params.coordinates_input)?;
    if cx.rank(scores)? != 2 || cx.rank(boxes)? != 2 {
        return Err(CoreMlError::invalid("boxes and scores are no matrices"));
    }
    let threshold = |cx: &mut NetworkLowering, name: &str, field: f64| match step.values.get(name) {
        Some(&id) => {
            let id = cx.cast(id, DataType::Fp32)?;
            cx.reshape(id, &[1])
        }
        None => Ok(cx.constant(Tensor::vector(self::floats(&[field])))),
    };
    let by = NmsThresholds {
        overlap: threshold(cx, &params.iou_threshold_input, params.iou_threshold)?,
        score: threshold(cx, &params.confidence_threshold_input, params.confidence_threshold)?,
        count: cx.length(boxes, 0)?,
        by_class: params.pick_top.is_some_and(|found| found.per_class),
        never_empty: false,
    };
    let kept = survivors(cx, boxes, scores, &by)?;
    let outputs = [(&params.confidence_output, scores), (&params.coordinates_output, boxes)];
    for (name, from) in outputs {
        let rows = cx.node("Gather", &[from, kept], &[])?;
        step.values.insert(name.clone(), rows);
    }
    Ok(None)
}

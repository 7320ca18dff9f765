//! Inputs and outputs of a network: features to blobs and back.

use galatea_graph::{Dim, Fact, ValueId};
use galatea_tensor::{ByteString, DataType, OrderedSet, Tensor};

use super::lower::{NetworkLowering, ScopeBlob, choice, int};
use super::{NetworkKind, labels};
use crate::coreml::ClassifierClasses;
use crate::coreml::error::CoreMlError;
use crate::coreml::feature::{ColorOrder, FeatureShapes, FeatureType, ModelFeature};
use crate::coreml::proto::ModelDescription;
use crate::coreml::proto::network::{
    ArrayMapping, ClassLabels, ImageMapping, ImageScaler, NetworkPreprocessorProto, NetworkProto,
};

/// Declares the inputs of a network.
///
/// # Errors
/// Fails when one is neither array nor image, or has a shape that the network's mapping does not
/// have; the error names the feature.
pub(super) fn inputs(
    cx: &mut NetworkLowering,
    features: &[ModelFeature],
    network: &NetworkProto,
) -> Result<(), CoreMlError> {
    let mut seen = OrderedSet::new();
    let images = features.iter().filter(|one| matches!(one.kind, FeatureType::Image { .. }));
    let only_image = images.clone().count() == 1;
    for found in &network.preprocessing {
        let named = |feature: &ModelFeature| feature.name == found.feature_name;
        let implied = found.feature_name.is_empty() && only_image;
        if !implied && !images.clone().any(named) {
            let text = format!("preprocessing of '{}', which is no image", found.feature_name);
            return Err(CoreMlError::invalid(text));
        }
    }
    for feature in features {
        let place = || format!("input '{}'", feature.name);
        if !seen.insert(&feature.name) {
            return Err(CoreMlError::invalid("there are two of that name").at(place()));
        }
        let blob = input(cx, feature, network).map_err(|error| error.at(place()))?;
        cx.bind(&feature.name, blob);
    }
    // A layer may not write an input.
    cx.scope().made.extend(features.iter().map(|feature| feature.name.clone()));
    Ok(())
}

fn input(
    cx: &mut NetworkLowering,
    feature: &ModelFeature,
    network: &NetworkProto,
) -> Result<ScopeBlob, CoreMlError> {
    cx.layer.clone_from(&feature.name);
    match &feature.kind {
        FeatureType::Array { dtype, shape, shapes, .. } => {
            let dims = dims(&feature.name, shape, shapes)?;
            let rank = dims.len();
            let id = declare(cx, feature, *dtype, dims)?;
            match (choice(network.array_input_shape_mapping, "mapping of arrays")?, rank) {
                (ArrayMapping::Exact, _) | (ArrayMapping::Rank5, 5) => Ok(ScopeBlob::exact(id)),
                // Channels alone, or an image: one step of a sequence, one of a batch.
                (ArrayMapping::Rank5, 1) => {
                    Ok(ScopeBlob { id: cx.unsqueeze(id, &[0, 2, 3])?, hidden: true })
                }
                (ArrayMapping::Rank5, 3) => {
                    Ok(ScopeBlob { id: cx.unsqueeze(id, &[0])?, hidden: true })
                }
                (ArrayMapping::Rank5, rank) => {
                    Err(CoreMlError::invalid(format!("an array of rank {rank}, expected 1 or 3")))
                }
            }
        }
        FeatureType::Image { colors, size, sizes } => {
            let [height, width] = *size;
            let mut dims = dims(&feature.name, &[height, width], sizes)?;
            dims.splice(..0, [Dim::Known(1), Dim::Known(colors.channels())]);
            let dtype =
                if *colors == ColorOrder::GrayHalf { DataType::Fp16 } else { DataType::Fp32 };
            let mut id = declare(cx, feature, dtype, dims)?;
            for found in &network.preprocessing {
                if !found.feature_name.is_empty() && found.feature_name != feature.name {
                    continue;
                }
                id = match &found.preprocessor {
                    None => id,
                    Some(NetworkPreprocessorProto::Scaler(scaler)) => {
                        scaled(cx, id, *scaler, *colors)?
                    }
                    Some(NetworkPreprocessorProto::MeanImage(mean)) => {
                        let shape = [colors.channels(), height, width];
                        let mean = Tensor::from_slice(&shape, &mean.mean_image)
                            .map_err(|error| CoreMlError::from(error).at("mean image"))?;
                        let mean = cx.constant(mean);
                        cx.node("Sub", &[id, mean], &[])?
                    }
                };
            }
            let mapping: ImageMapping =
                choice(network.image_input_shape_mapping, "mapping of images")?;
            Ok(ScopeBlob { id, hidden: mapping == ImageMapping::Rank5 })
        }
        _ => Err(CoreMlError::unsupported("it is neither an array nor an image")),
    }
}

/// Makes a feature an input of the graph, as floats.
fn declare(
    cx: &mut NetworkLowering,
    feature: &ModelFeature,
    dtype: DataType,
    dims: Vec<Dim>,
) -> Result<ValueId, CoreMlError> {
    let id = cx.reserved(&feature.name);
    cx.declare_input(id, Fact::new(dtype, dims));
    cx.cast(id, DataType::Fp32)
}

/// The lengths of a feature: those that vary have a name.
pub(super) fn dims(
    name: &str,
    shape: &[usize],
    shapes: &FeatureShapes,
) -> Result<Vec<Dim>, CoreMlError> {
    let symbol = |axis: usize| {
        let plain = |one: char| if one.is_ascii_alphanumeric() { one } else { '_' };
        let name: String = name.chars().map(plain).collect();
        Dim::Symbol(format!("{name}_{axis}").into())
    };
    let dims: Vec<Dim> = match shapes {
        FeatureShapes::Fixed => shape.iter().map(|&length| Dim::Known(length)).collect(),
        FeatureShapes::Enumerated(all) => {
            let first = all.first().map_or(shape, Vec::as_slice);
            let same = |axis: usize, length: usize| {
                all.iter()
                    .map(Vec::as_slice)
                    .chain([shape])
                    .all(|one| one.get(axis) == Some(&length))
            };
            if all.iter().any(|one| one.len() != shape.len()) {
                return Err(CoreMlError::unsupported("its shapes have different ranks"));
            }
            let dim = |(axis, &length): (usize, &usize)| match same(axis, length) {
                true => Dim::Known(length),
                false => symbol(axis),
            };
            first.iter().enumerate().map(dim).collect()
        }
        FeatureShapes::Range(bounds) => {
            let dim = |(axis, &(low, high)): (usize, &(usize, Option<usize>))| match high {
                Some(high) if high == low => Dim::Known(low),
                _ => symbol(axis),
            };
            bounds.iter().enumerate().map(dim).collect()
        }
    };
    match dims.is_empty() {
        true => Err(CoreMlError::invalid("it has no shape")),
        false => Ok(dims),
    }
}

/// Pixels times a number, and a number for each channel.
fn scaled(
    cx: &mut NetworkLowering,
    id: ValueId,
    scaler: ImageScaler,
    colors: ColorOrder,
) -> Result<ValueId, CoreMlError> {
    let ImageScaler { blue_bias, green_bias, red_bias, gray_bias, .. } = scaler;
    let biases = match colors {
        ColorOrder::Gray | ColorOrder::GrayHalf => vec![gray_bias],
        ColorOrder::Rgb => vec![red_bias, green_bias, blue_bias],
        ColorOrder::Bgr => vec![blue_bias, green_bias, red_bias],
    };
    let scaled = super::activation::linear(cx, id, scaler.channel_scale, 0.0)?;
    if biases.iter().all(|bias| bias.to_bits() == 0) {
        return Ok(scaled);
    }
    let biases = cx.constant(Tensor::from_vec(&[biases.len(), 1, 1], biases)?);
    cx.node("Add", &[scaled, biases], &[])
}

/// Gives the outputs of a network; the labels of a classifier.
///
/// # Errors
/// Fails when nothing writes one, or it has not the shape that is declared; the error names the
/// feature.
pub(super) fn outputs(
    cx: &mut NetworkLowering,
    features: &[ModelFeature],
    network: &NetworkProto,
    kind: NetworkKind,
    description: &ModelDescription,
) -> Result<Option<ClassifierClasses>, CoreMlError> {
    let mapping: ArrayMapping = choice(network.array_input_shape_mapping, "mapping of arrays")?;
    let classes = match kind {
        NetworkKind::Classifier => Some(classes(cx, network)?),
        NetworkKind::Plain | NetworkKind::Regressor => None,
    };
    for feature in features {
        cx.layer.clone_from(&feature.name);
        let id = match &classes {
            Some(found) if feature.name == description.predicted_feature_name => found.label,
            Some(found) if feature.name == description.predicted_probabilities_name => {
                found.probabilities
            }
            _ => output(cx, feature, mapping == ArrayMapping::Rank5)
                .map_err(|error| error.at(format!("output '{}'", feature.name)))?,
        };
        cx.give(id, &feature.name)?;
    }
    Ok(classes.map(|found| labels(description, found.names)))
}

fn output(
    cx: &mut NetworkLowering,
    feature: &ModelFeature,
    rank_5: bool,
) -> Result<ValueId, CoreMlError> {
    let missing = || CoreMlError::invalid("no layer writes it");
    let blob = cx.find(&feature.name).ok_or_else(missing)?;
    match &feature.kind {
        FeatureType::Array { dtype, shape, shapes, .. } => {
            let id = shaped(cx, blob, shape, shapes, rank_5)?;
            cx.cast(id, *dtype)
        }
        FeatureType::Image { colors, .. } => {
            let (image, _) = cx.image(blob)?;
            let dtype =
                if *colors == ColorOrder::GrayHalf { DataType::Fp16 } else { DataType::Fp32 };
            cx.cast(image, dtype)
        }
        FeatureType::Int64 | FeatureType::Double => {
            let id = cx.reshape(blob.id, &[1])?;
            let double = feature.kind == FeatureType::Double;
            cx.cast(id, if double { DataType::Fp64 } else { DataType::Int64 })
        }
        FeatureType::Text | FeatureType::Dictionary { .. } | FeatureType::List => {
            Err(CoreMlError::unsupported("a network without labels gives numbers only"))
        }
    }
}

/// A blob in the shape that its feature declares, if that says one.
fn shaped(
    cx: &mut NetworkLowering,
    blob: ScopeBlob,
    shape: &[usize],
    shapes: &FeatureShapes,
    rank_5: bool,
) -> Result<ValueId, CoreMlError> {
    let rank = match shapes {
        FeatureShapes::Range(bounds) => bounds.len(),
        FeatureShapes::Fixed | FeatureShapes::Enumerated(_) => shape.len(),
    };
    let found: Option<Vec<usize>> = cx.dims(blob.id)?.into_iter().collect();
    if let (FeatureShapes::Fixed, Some(found), false) = (shapes, &found, shape.is_empty()) {
        let elements = |all: &[usize]| all.iter().copied().map(int).product::<i64>();
        if elements(found) != elements(shape) {
            let text = format!("it is declared as {shape:?}, the network makes {found:?}");
            return Err(CoreMlError::invalid(text));
        }
        if !blob.hidden && found == shape {
            return Ok(blob.id);
        }
        return cx.reshape(blob.id, &super::lower::ints(shape));
    }
    let exact = cx.exact(blob)?;
    match (rank_5 && cx.rank(exact)? == 5, rank) {
        (true, 1) => cx.reshape(exact, &[-1]),
        (true, 3) => cx.squeeze(exact, &[0, 1]),
        _ => Ok(exact),
    }
}

/// Outputs of a classifier.
struct ClassifierAnswer {
    label: ValueId,
    probabilities: ValueId,
    names: Vec<String>,
}

/// The labels as texts, and as a vector of what they are.
///
/// # Errors
/// Fails when there are none.
pub(super) fn label_table(
    found: Option<&ClassLabels>,
) -> Result<(Vec<String>, Tensor), CoreMlError> {
    match found {
        Some(ClassLabels::Strings(found)) => {
            let texts = found.vector.iter().map(|text| ByteString::from(text.as_str()));
            Ok((found.vector.clone(), Tensor::vector(texts.collect::<Vec<_>>())))
        }
        Some(ClassLabels::Ints(found)) => {
            let names = found.vector.iter().map(i64::to_string).collect();
            Ok((names, Tensor::vector(found.vector.clone())))
        }
        None => Err(CoreMlError::invalid("the classifier has no labels")),
    }
}

/// The label of the highest probability, and all probabilities in the order of the labels.
fn classes(
    cx: &mut NetworkLowering,
    network: &NetworkProto,
) -> Result<ClassifierAnswer, CoreMlError> {
    let (names, all) = label_table(network.class_labels.as_ref())?;
    let last = network.layers.iter().rev().find_map(|layer| layer.output.first());
    let name = match network.label_probability_layer_name.as_str() {
        "" => last.map_or("", String::as_str),
        name => name,
    };
    let missing = || CoreMlError::invalid(format!("no layer writes the probabilities '{name}'"));
    let blob = cx.find(name).ok_or_else(missing)?;
    cx.layer = "classes".to_owned();
    let probabilities = cx.reshape(blob.id, &[-1])?;
    if let Some(found) = cx.dim(probabilities, 0)?
        && found != names.len()
    {
        let text = format!("{found} probabilities '{name}' of {} labels", names.len());
        return Err(CoreMlError::invalid(text));
    }
    let attributes = [("axis", 0_i64.into()), ("keepdims", false.into())];
    let best = cx.node("ArgMax", &[probabilities], &attributes)?;
    let all = cx.constant(all);
    let label = cx.node("Gather", &[all, best], &[])?;
    Ok(ClassifierAnswer { label, probabilities, names })
}

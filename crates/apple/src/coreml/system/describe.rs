//! `MLModelDescription`.

use objc2::rc::Retained;
use objc2::runtime::{AnyObject, NSObjectProtocol};
use objc2::sel;
use objc2_core_ml::{
    MLFeatureDescription, MLFeatureType, MLModel, MLModelAuthorKey, MLModelCreatorDefinedKey,
    MLModelDescription, MLModelDescriptionKey, MLModelLicenseKey, MLModelVersionStringKey,
    MLMultiArrayConstraint, MLMultiArrayShapeConstraintType,
};
use objc2_foundation::{NSDictionary, NSString};

use super::super::{
    ArrayDataType, ArrayFeature, DimensionRange, FeatureKind, InterfaceFeature, ModelInterface,
    ModelMetadata, PixelFormat, ShapeConstraint,
};
use super::{property, sizes};

/// Returns the inputs, outputs and states of a model.
pub(super) fn interface(model: &MLModel) -> ModelInterface {
    let described = property!(model.modelDescription());
    let states = if described.respondsToSelector(sel!(stateDescriptionsByName)) {
        features(&*property!(described.stateDescriptionsByName()))
    } else {
        Vec::new()
    };
    ModelInterface {
        inputs: features(&*property!(described.inputDescriptionsByName())),
        outputs: features(&*property!(described.outputDescriptionsByName())),
        states,
        predicted_feature: text(property!(described.predictedFeatureName())),
        predicted_probabilities: text(property!(described.predictedProbabilitiesName())),
        metadata: metadata(&described),
    }
}

fn text(string: Option<Retained<NSString>>) -> Option<String> {
    string.map(|string| string.to_string())
}

fn features(by_name: &NSDictionary<NSString, MLFeatureDescription>) -> Vec<InterfaceFeature> {
    let (names, described) = by_name.to_vecs();
    let feature = |(name, described): (Retained<NSString>, Retained<MLFeatureDescription>)| {
        InterfaceFeature {
            name: name.to_string(),
            kind: kind(&described),
            optional: property!(described.isOptional()),
        }
    };
    let mut features: Vec<InterfaceFeature> =
        names.into_iter().zip(described).map(feature).collect();
    features.sort_by(|a, b| a.name.cmp(&b.name));
    features
}

fn kind(of: &MLFeatureDescription) -> FeatureKind {
    let number = property!(of.r#type());
    let other = FeatureKind::Other(number.0);
    match number {
        MLFeatureType::Int64 => FeatureKind::Int64,
        MLFeatureType::Double => FeatureKind::Double,
        MLFeatureType::String => FeatureKind::String,
        MLFeatureType::Dictionary => FeatureKind::Dictionary,
        MLFeatureType::Image => image(of).unwrap_or(other),
        MLFeatureType::MultiArray => {
            property!(of.multiArrayConstraint()).and_then(|c| array(&c)).unwrap_or(other)
        }
        MLFeatureType::State => state(of).unwrap_or(other),
        _ => other,
    }
}

fn image(of: &MLFeatureDescription) -> Option<FeatureKind> {
    let constraint = property!(of.imageConstraint())?;
    Some(FeatureKind::Image {
        width: usize::try_from(property!(constraint.pixelsWide())).ok()?,
        height: usize::try_from(property!(constraint.pixelsHigh())).ok()?,
        format: PixelFormat(property!(constraint.pixelFormatType())),
    })
}

fn array(constraint: &MLMultiArrayConstraint) -> Option<FeatureKind> {
    let data_type = ArrayDataType::of(property!(constraint.dataType()).0)?;
    let shape = sizes(&*property!(constraint.shape()));
    let shapes = property!(constraint.shapeConstraint());
    let constraint = match property!(shapes.r#type()) {
        MLMultiArrayShapeConstraintType::Enumerated => {
            let listed = property!(shapes.enumeratedShapes());
            ShapeConstraint::Enumerated(listed.iter().map(|shape| sizes(&shape)).collect())
        }
        MLMultiArrayShapeConstraintType::Range => {
            let ranges = property!(shapes.sizeRangeForDimension());
            let ranges = ranges.iter().map(|value| {
                value.get_range().map(|range| DimensionRange::of(range.location, range.length))
            });
            ShapeConstraint::Range(ranges.collect::<Option<_>>()?)
        }
        _ => ShapeConstraint::Fixed,
    };
    Some(FeatureKind::Array(ArrayFeature { data_type, shape, constraint }))
}

/// Descriptions of states come with macOS 15, and their constraints with them.
fn state(of: &MLFeatureDescription) -> Option<FeatureKind> {
    let constraint = property!(of.stateConstraint())?;
    let data_type = ArrayDataType::of(property!(constraint.dataType()).0)?;
    let shape = sizes(&*property!(constraint.bufferShape()));
    let constraint = ShapeConstraint::Fixed;
    Some(FeatureKind::Array(ArrayFeature { data_type, shape, constraint }))
}

fn metadata(of: &MLModelDescription) -> ModelMetadata {
    let all = property!(of.metadata());
    let value = |key: Option<&'static NSString>| all.objectForKey(key?);
    let told = |key| {
        let value: Retained<AnyObject> = value(key)?;
        Some(value.downcast_ref::<NSString>()?.to_string()).filter(|text| !text.is_empty())
    };
    // SAFETY: constants of Core ML's.
    let [description, version, author, license, additional] = unsafe {
        [
            MLModelDescriptionKey,
            MLModelVersionStringKey,
            MLModelAuthorKey,
            MLModelLicenseKey,
            MLModelCreatorDefinedKey,
        ]
    };
    ModelMetadata {
        description: told(description),
        version: told(version),
        author: told(author),
        license: told(license),
        additional: value(additional).map(|value| texts(&value)).unwrap_or_default(),
    }
}

/// The texts of a dictionary by their keys, where it is one.
fn texts(object: &AnyObject) -> Vec<(String, String)> {
    let Some(dictionary) = object.downcast_ref::<NSDictionary>() else { return Vec::new() };
    let (keys, values) = dictionary.to_vecs();
    let string = |object: &AnyObject| object.downcast_ref::<NSString>().map(ToString::to_string);
    let pairs = keys.iter().zip(&values);
    let mut pairs: Vec<(String, String)> =
        pairs.filter_map(|(key, value)| Some((string(key)?, string(value)?))).collect();
    pairs.sort();
    pairs
}

//! `MLModelDescription` and `MLFeatureDescription`.

use objc2::rc::Retained;
use objc2::runtime::{AnyObject, NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class};
use objc2_core_ml::{
    MLFeatureDescription, MLFeatureType, MLImageConstraint, MLModelDescription,
    MLMultiArrayConstraint, MLStateConstraint,
};
use objc2_foundation::{NSDictionary, NSString};

use super::played::{PlayedFeature, PlayedInterface, PlayedKind, PlayedMetadata};
use super::{constraints, made};
use crate::objc::foundation::constant;

constant! {
    MLModelDescriptionKey = c"MLModelDescriptionKey";
    MLModelVersionStringKey = c"MLModelVersionStringKey";
    MLModelAuthorKey = c"MLModelAuthorKey";
    MLModelLicenseKey = c"MLModelLicenseKey";
    MLModelCreatorDefinedKey = c"MLModelCreatorDefinedKey";
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLFeatureDescription"]
    #[ivars = PlayedFeature]
    pub(crate) struct FeatureDescriptionDouble;

    unsafe impl NSObjectProtocol for FeatureDescriptionDouble {}

    impl FeatureDescriptionDouble {
        #[unsafe(method(type))]
        fn kind(&self) -> MLFeatureType {
            match self.ivars().kind {
                PlayedKind::Array { .. } => MLFeatureType::MultiArray,
                PlayedKind::Image { .. } => MLFeatureType::Image,
                PlayedKind::State { .. } => MLFeatureType::State,
                PlayedKind::Plain(number) => MLFeatureType(number),
            }
        }

        #[unsafe(method(isOptional))]
        fn optional(&self) -> bool {
            self.ivars().optional
        }

        #[unsafe(method_id(multiArrayConstraint))]
        fn array(&self) -> Option<Retained<MLMultiArrayConstraint>> {
            constraints::array(&self.ivars().kind)
        }

        #[unsafe(method_id(imageConstraint))]
        fn image(&self) -> Option<Retained<MLImageConstraint>> {
            constraints::image(&self.ivars().kind)
        }

        #[unsafe(method_id(stateConstraint))]
        fn state(&self) -> Option<Retained<MLStateConstraint>> {
            constraints::state(&self.ivars().kind)
        }
    }
);

type DescribedFeatures = NSDictionary<NSString, MLFeatureDescription>;

fn by_name(features: &[PlayedFeature]) -> Retained<DescribedFeatures> {
    let names: Vec<_> = features.iter().map(|one| NSString::from_str(&one.name)).collect();
    let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
    let described = |feature: &PlayedFeature| {
        made!(FeatureDescriptionDouble, feature.clone(), MLFeatureDescription)
    };
    let described: Vec<_> = features.iter().map(described).collect();
    NSDictionary::from_retained_objects(&names, &described)
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelDescription"]
    #[ivars = PlayedInterface]
    pub(crate) struct DescriptionDouble;

    unsafe impl NSObjectProtocol for DescriptionDouble {}

    impl DescriptionDouble {
        #[unsafe(method_id(inputDescriptionsByName))]
        fn inputs(&self) -> Retained<DescribedFeatures> {
            by_name(&self.ivars().inputs)
        }

        #[unsafe(method_id(outputDescriptionsByName))]
        fn outputs(&self) -> Retained<DescribedFeatures> {
            by_name(&self.ivars().outputs)
        }

        #[unsafe(method_id(stateDescriptionsByName))]
        fn states(&self) -> Retained<DescribedFeatures> {
            by_name(&self.ivars().states)
        }

        #[unsafe(method_id(predictedFeatureName))]
        fn predicted(&self) -> Option<Retained<NSString>> {
            self.ivars().predicted_feature.as_deref().map(NSString::from_str)
        }

        #[unsafe(method_id(predictedProbabilitiesName))]
        fn probabilities(&self) -> Option<Retained<NSString>> {
            self.ivars().predicted_probabilities.as_deref().map(NSString::from_str)
        }

        #[unsafe(method_id(metadata))]
        fn metadata(&self) -> Retained<NSDictionary<NSString, AnyObject>> {
            metadata(&self.ivars().metadata)
        }
    }
);

fn metadata(of: &PlayedMetadata) -> Retained<NSDictionary<NSString, AnyObject>> {
    let mut keys: Vec<Retained<NSString>> = Vec::new();
    let mut values: Vec<Retained<AnyObject>> = Vec::new();
    // SAFETY: constants of Core ML's, which this file has.
    let texts = unsafe {
        [
            (objc2_core_ml::MLModelDescriptionKey, &of.description),
            (objc2_core_ml::MLModelAuthorKey, &of.author),
        ]
    };
    for (key, text) in texts {
        if let (Some(key), Some(text)) = (key, text) {
            keys.push(objc2::Message::retain(key));
            values.push(NSString::from_str(text).into_super().into_super());
        }
    }
    let names: Vec<_> = of.additional.iter().map(|one| NSString::from_str(&one.name)).collect();
    let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
    let texts: Vec<_> = of.additional.iter().map(|one| NSString::from_str(&one.text)).collect();
    // SAFETY: a constant of Core ML's, which this file has.
    let key = unsafe { objc2_core_ml::MLModelCreatorDefinedKey };
    if let Some(key) = key.filter(|_| !names.is_empty()) {
        let own: Retained<NSDictionary<NSString, NSString>> =
            NSDictionary::from_retained_objects(&names, &texts);
        keys.push(objc2::Message::retain(key));
        values.push(own.into_super().into_super());
    }
    let keys: Vec<&NSString> = keys.iter().map(|key| &**key).collect();
    NSDictionary::from_retained_objects(&keys, &values)
}

/// Makes the description of a model.
pub(super) fn description(of: PlayedInterface) -> Retained<MLModelDescription> {
    made!(DescriptionDouble, of, MLModelDescription)
}

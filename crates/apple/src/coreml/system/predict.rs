//! Predictions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use block2::RcBlock;
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, NSObjectProtocol, ProtocolObject};
use objc2::{AnyThread, Message, sel};
use objc2_core_ml::{
    MLDictionaryFeatureProvider, MLFeatureProvider, MLFeatureType, MLFeatureValue, MLModel,
    MLPredictionOptions,
};
use objc2_foundation::{NSDictionary, NSError, NSNumber, NSString};

use super::super::request::{PendingSubmission, SubmissionSlot};
use super::super::{
    CoreMlFault, CoreMlFaultKind, InterfaceFeature, LabelKeyKind, ModelInterface, MultiArray,
    PredictionOutput, PredictionState, PredictionSubmission,
};
use super::{guarded, property, refused, returned};

type Features = ProtocolObject<dyn MLFeatureProvider>;
type Outputs = Result<Vec<(String, PredictionOutput)>, CoreMlFault>;

/// Predicts and waits.
pub(super) fn run(
    model: &MLModel,
    interface: &ModelInterface,
    inputs: &[(&str, &MultiArray)],
    backings: &[(&str, &MultiArray)],
    state: Option<&PredictionState>,
) -> Outputs {
    let inputs = features(inputs)?;
    let options = options(backings);
    let inputs = ProtocolObject::from_ref(&*inputs);
    let predicted = match state {
        // SAFETY: the inputs, outputs and the state fit the model, as was checked.
        None => unsafe { model.predictionFromFeatures_options_error(inputs, &options) },
        Some(state) => {
            let state = state.buffers().state();
            // SAFETY: as above; a system with states has the method, and nobody else has the state.
            unsafe {
                model.predictionFromFeatures_usingState_options_error(inputs, state, &options)
            }
        }
    };
    match predicted {
        Ok(given) => outputs(&interface.outputs, &given, backings),
        Err(error) => Err(refused(CoreMlFaultKind::Predict, "prediction", &error)),
    }
}

/// Starts a prediction.
pub(super) fn start(model: &MLModel, interface: &ModelInterface, pending: PendingSubmission) {
    let slot = SubmissionSlot::new(pending);
    let begun = guarded(CoreMlFaultKind::Predict, "prediction", || begin(model, interface, &slot));
    if let Err(fault) = begun {
        slot.finish(|_| Err(fault));
    }
}

/// Hands a submission to Core ML, which answers it from a thread of its own.
fn begin(
    model: &MLModel,
    interface: &ModelInterface,
    slot: &SubmissionSlot,
) -> Result<(), CoreMlFault> {
    if !model.respondsToSelector(sel!(predictionFromFeatures:options:completionHandler:)) {
        return Err(CoreMlFault::newer("a prediction that nobody waits for", "14"));
    }
    let handed = slot.with(|submission| {
        let inputs = features(&named(&submission.inputs))?;
        let options = options(&named(&submission.backings));
        let state = submission.state.as_ref().map(|state| state.buffers().state().retain());
        Ok::<_, CoreMlFault>((inputs, options, state))
    });
    let Some(handed) = handed else { return Ok(()) };
    let (inputs, options, state) = handed?;
    let handler = handler(interface.outputs.clone(), slot.clone());
    let inputs = ProtocolObject::from_ref(&*inputs);
    match state {
        // SAFETY: the inputs and outputs fit the model, as was checked; the block holds the arrays
        // until it was called.
        None => unsafe {
            model.predictionFromFeatures_options_completionHandler(inputs, &options, &handler);
        },
        // SAFETY: as above; a system with states has the method, and the block holds the state,
        // which nobody else has.
        Some(state) => unsafe {
            model.predictionFromFeatures_usingState_options_completionHandler(
                inputs, &state, &options, &handler,
            );
        },
    }
    Ok(())
}

/// Returns the block that answers a submission with what Core ML gives.
fn handler(
    wanted: Vec<InterfaceFeature>,
    slot: SubmissionSlot,
) -> RcBlock<dyn Fn(*mut Features, *mut NSError)> {
    RcBlock::new(move |given: *mut Features, error: *mut NSError| {
        // SAFETY: the outputs are alive while the block runs, or null.
        let given = unsafe { given.as_ref() };
        // SAFETY: so is the error.
        let error = unsafe { error.as_ref() };
        // A panic of whoever is told has been reported, and may not pass through Core ML.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            slot.finish(|submission| {
                guarded(CoreMlFaultKind::Predict, "prediction", || {
                    answer(&wanted, submission, given, error)
                })
            });
        }));
    })
}

fn answer(
    wanted: &[InterfaceFeature],
    submission: &PredictionSubmission,
    given: Option<&Features>,
    error: Option<&NSError>,
) -> Outputs {
    match (given, error) {
        (_, Some(error)) => Err(refused(CoreMlFaultKind::Predict, "prediction", error)),
        (Some(given), None) => outputs(wanted, given, &named(&submission.backings)),
        (None, None) => {
            let text = "prediction: Core ML gives neither outputs nor an error";
            Err(CoreMlFault::new(CoreMlFaultKind::Predict, text))
        }
    }
}

fn named(arrays: &[(String, MultiArray)]) -> Vec<(&str, &MultiArray)> {
    arrays.iter().map(|(name, array)| (name.as_str(), array)).collect()
}

/// The inputs by name.
fn features(
    inputs: &[(&str, &MultiArray)],
) -> Result<Retained<MLDictionaryFeatureProvider>, CoreMlFault> {
    let value = |array: &MultiArray| {
        let array = array.buffer().array();
        // SAFETY: the array is alive, and the value holds it.
        unsafe { MLFeatureValue::featureValueWithMultiArray(array) }
    };
    let values: Vec<_> = inputs.iter().map(|(_, array)| value(array)).collect();
    let by_name = dictionary(inputs.iter().zip(&values).map(|((name, _), value)| {
        let object: &AnyObject = value.as_ref();
        (*name, object)
    }));
    // SAFETY: the values are of the class that the provider wants.
    let made = unsafe {
        MLDictionaryFeatureProvider::initWithDictionary_error(
            MLDictionaryFeatureProvider::alloc(),
            &by_name,
        )
    };
    made.map_err(|error| refused(CoreMlFaultKind::Predict, "inputs", &error))
}

fn options(backings: &[(&str, &MultiArray)]) -> Retained<MLPredictionOptions> {
    // SAFETY: the class is as old as macOS 13.
    let options = unsafe { MLPredictionOptions::new() };
    if !backings.is_empty() {
        let by_name = dictionary(backings.iter().map(|(name, array)| {
            let object: &AnyObject = array.buffer().array().as_ref();
            (*name, object)
        }));
        // SAFETY: the values are arrays, as they may be.
        unsafe { options.setOutputBackings(&by_name) };
    }
    options
}

fn dictionary<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a AnyObject)>,
) -> Retained<NSDictionary<NSString, AnyObject>> {
    let (names, values): (Vec<_>, Vec<_>) =
        pairs.map(|(name, value)| (NSString::from_str(name), value)).unzip();
    let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
    NSDictionary::from_slices(&names, &values)
}

/// The outputs that the model has.
fn outputs(
    wanted: &[InterfaceFeature],
    given: &Features,
    backings: &[(&str, &MultiArray)],
) -> Outputs {
    let mut all = Vec::with_capacity(wanted.len());
    for feature in wanted {
        let name = NSString::from_str(&feature.name);
        let value = property!(given.featureValueForName(&name));
        let backing = backings.iter().find(|(name, _)| *name == feature.name);
        let value = match value {
            Some(value) => output(&feature.name, &value, backing.map(|(_, array)| *array))?,
            None => PredictionOutput::Undefined,
        };
        all.push((feature.name.clone(), value));
    }
    Ok(all)
}

fn output(
    name: &str,
    value: &MLFeatureValue,
    backing: Option<&MultiArray>,
) -> Result<PredictionOutput, CoreMlFault> {
    if property!(value.isUndefined()) {
        return Ok(PredictionOutput::Undefined);
    }
    let found = match property!(value.r#type()) {
        MLFeatureType::MultiArray => {
            let Some(array) = property!(value.multiArrayValue()) else {
                return Ok(PredictionOutput::Undefined);
            };
            match backing {
                Some(backing) if backing.buffer().is(&array) => PredictionOutput::Backed,
                _ => PredictionOutput::Array(returned::array(array)?),
            }
        }
        MLFeatureType::Int64 => PredictionOutput::Int64(property!(value.int64Value())),
        MLFeatureType::Double => PredictionOutput::Double(property!(value.doubleValue())),
        MLFeatureType::String => {
            PredictionOutput::String(property!(value.stringValue()).to_string())
        }
        MLFeatureType::Dictionary => {
            PredictionOutput::Dictionary(pairs(name, &*property!(value.dictionaryValue()))?)
        }
        other => {
            let text = format!("output `{name}` is of type {}, which is not taken", other.0);
            return Err(CoreMlFault::new(CoreMlFaultKind::Predict, text));
        }
    };
    Ok(found)
}

fn pairs(
    name: &str,
    dictionary: &NSDictionary<AnyObject, NSNumber>,
) -> Result<Vec<(LabelKeyKind, f64)>, CoreMlFault> {
    let key = |object: &AnyObject| {
        let text =
            object.downcast_ref::<NSString>().map(|text| LabelKeyKind::String(text.to_string()));
        text.or_else(|| Some(LabelKeyKind::Int64(object.downcast_ref::<NSNumber>()?.as_i64())))
    };
    let (keys, values) = dictionary.to_vecs();
    let pairs = keys.iter().zip(&values).map(|(k, value)| Some((key(k)?, value.as_f64())));
    pairs.collect::<Option<_>>().ok_or_else(|| {
        let text = format!("output `{name}` has a label that is neither text nor a number");
        CoreMlFault::new(CoreMlFaultKind::Predict, text)
    })
}

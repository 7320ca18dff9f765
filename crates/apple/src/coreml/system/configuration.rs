//! `MLModelConfiguration`.

use objc2::rc::Retained;
use objc2::runtime::NSObjectProtocol;
use objc2::sel;
use objc2_core_ml::{
    MLComputeUnits, MLModelConfiguration, MLOptimizationHints, MLReshapeFrequencyHint,
    MLSpecializationStrategy,
};
use objc2_foundation::NSString;

use super::super::{CoreMlFault, CoreMlLoadOptions};
use super::property;

/// The options as Core ML takes them.
pub(super) fn configuration(
    options: &CoreMlLoadOptions,
) -> Result<Retained<MLModelConfiguration>, CoreMlFault> {
    // SAFETY: the class is as old as macOS 13.
    let made = unsafe { MLModelConfiguration::new() };
    property!(made.setComputeUnits(MLComputeUnits(options.units.number())));
    property!(made.setAllowLowPrecisionAccumulationOnGPU(options.low_precision_accumulation));
    if let Some(name) = &options.display_name {
        property!(made.setModelDisplayName(Some(&NSString::from_str(name))));
    }
    if let Some(function) = &options.function {
        if !made.respondsToSelector(sel!(setFunctionName:)) {
            return Err(CoreMlFault::newer(&format!("function `{function}`"), "15"));
        }
        property!(made.setFunctionName(Some(&NSString::from_str(function))));
    }
    if options.infrequent_reshapes || options.fast_prediction {
        property!(made.setOptimizationHints(&*hints(&made, options)?));
    }
    Ok(made)
}

fn hints(
    of: &MLModelConfiguration,
    options: &CoreMlLoadOptions,
) -> Result<Retained<MLOptimizationHints>, CoreMlFault> {
    if !of.respondsToSelector(sel!(setOptimizationHints:)) {
        return Err(CoreMlFault::newer("optimization hints", "14.4"));
    }
    // SAFETY: the class came with the property that was asked for.
    let hints = unsafe { MLOptimizationHints::new() };
    if options.infrequent_reshapes {
        property!(hints.setReshapeFrequency(MLReshapeFrequencyHint::Infrequent));
    }
    if options.fast_prediction {
        if !hints.respondsToSelector(sel!(setSpecializationStrategy:)) {
            return Err(CoreMlFault::newer("fast prediction", "15"));
        }
        property!(hints.setSpecializationStrategy(MLSpecializationStrategy::FastPrediction));
    }
    Ok(hints)
}

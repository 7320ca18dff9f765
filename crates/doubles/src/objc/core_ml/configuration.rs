//! `MLModelConfiguration` and `MLOptimizationHints`.

use std::cell::Cell;
use std::cell::RefCell;

use objc2::rc::{Allocated, Retained};
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class, msg_send};
use objc2_core_ml::{
    MLComputeUnits, MLModelConfiguration, MLOptimizationHints, MLReshapeFrequencyHint,
    MLSpecializationStrategy,
};
use objc2_foundation::NSString;

use super::played::PlayedConfiguration;

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelConfiguration"]
    #[ivars = RefCell<PlayedConfiguration>]
    pub(crate) struct ConfigurationDouble;

    unsafe impl NSObjectProtocol for ConfigurationDouble {}

    impl ConfigurationDouble {
        #[unsafe(method_id(init))]
        fn init(this: Allocated<Self>) -> Retained<Self> {
            // Without a choice Core ML takes all devices.
            let all = PlayedConfiguration { units: 2, ..PlayedConfiguration::default() };
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(RefCell::new(all))), init] }
        }

        #[unsafe(method(setComputeUnits:))]
        fn set_units(&self, units: MLComputeUnits) {
            self.ivars().borrow_mut().units = units.0;
        }

        #[unsafe(method(setAllowLowPrecisionAccumulationOnGPU:))]
        fn set_low_precision(&self, low: bool) {
            self.ivars().borrow_mut().low_precision = low;
        }

        #[unsafe(method(setModelDisplayName:))]
        fn set_display_name(&self, name: Option<&NSString>) {
            self.ivars().borrow_mut().display_name = name.map(ToString::to_string);
        }

        #[unsafe(method(setFunctionName:))]
        fn set_function(&self, name: Option<&NSString>) {
            self.ivars().borrow_mut().function = name.map(ToString::to_string);
        }

        #[unsafe(method(setOptimizationHints:))]
        fn set_hints(&self, hints: &MLOptimizationHints) {
            let hints: *const MLOptimizationHints = hints;
            // SAFETY: all hints here are doubles.
            let hints = unsafe { &*hints.cast::<HintsDouble>() }.ivars();
            let mut contents = self.ivars().borrow_mut();
            contents.infrequent_reshapes = hints.infrequent.get();
            contents.fast_prediction = hints.fast.get();
        }
    }
);

/// Returns what a configuration says.
pub(super) fn contents(of: &MLModelConfiguration) -> PlayedConfiguration {
    let of: *const MLModelConfiguration = of;
    // SAFETY: all configurations here are doubles.
    unsafe { &*of.cast::<ConfigurationDouble>() }.ivars().borrow().clone()
}

/// Contents of hints.
#[derive(Default)]
pub(crate) struct HintsContents {
    infrequent: Cell<bool>,
    fast: Cell<bool>,
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLOptimizationHints"]
    #[ivars = HintsContents]
    pub(crate) struct HintsDouble;

    unsafe impl NSObjectProtocol for HintsDouble {}

    impl HintsDouble {
        #[unsafe(method_id(init))]
        fn init(this: Allocated<Self>) -> Retained<Self> {
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(this.set_ivars(HintsContents::default())), init] }
        }

        #[unsafe(method(setReshapeFrequency:))]
        fn set_frequency(&self, frequency: MLReshapeFrequencyHint) {
            self.ivars().infrequent.set(frequency == MLReshapeFrequencyHint::Infrequent);
        }

        #[unsafe(method(setSpecializationStrategy:))]
        fn set_strategy(&self, strategy: MLSpecializationStrategy) {
            self.ivars().fast.set(strategy == MLSpecializationStrategy::FastPrediction);
        }
    }
);

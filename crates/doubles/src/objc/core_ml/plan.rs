//! `MLComputePlan`.

use block2::Block;
use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class};
use objc2_core_ml::{
    MLComputePlan, MLComputePlanCost, MLComputePlanDeviceUsage, MLModelConfiguration,
    MLModelStructure, MLModelStructureNeuralNetworkLayer, MLModelStructureProgramOperation,
};
use objc2_foundation::{NSArray, NSError, NSURL};

use super::device::PlayedDeviceObject;
use super::model::{elsewhere, path_of};
use super::played::{self, PlayedFailure, PlayedOperation, PlayedStructure, PlayedUsage};
use super::{configuration, device, made, structure};
use crate::objc::foundation::error;

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLComputePlan"]
    #[ivars = PlayedStructure]
    pub(crate) struct PlanDouble;

    unsafe impl NSObjectProtocol for PlanDouble {}

    impl PlanDouble {
        #[unsafe(method(loadContentsOfURL:configuration:completionHandler:))]
        fn load(
            url: &NSURL,
            options: &MLModelConfiguration,
            handler: &Block<dyn Fn(*mut MLComputePlan, *mut NSError)>,
        ) {
            let compiled = path_of(url);
            let options = configuration::contents(options);
            elsewhere(handler.copy(), move |handler| {
                let null = std::ptr::null_mut();
                match played::player().and_then(|player| player.plan(&compiled, &options)) {
                    Ok(found) => {
                        let plan = made!(PlanDouble, found, MLComputePlan);
                        handler.call((Retained::as_ptr(&plan).cast_mut(), null));
                    }
                    Err(PlayedFailure::Forgotten) => {}
                    Err(failure) => {
                        let error = failure.into_error().as_ref().map(error);
                        let error = error.as_ref().map_or(null, |one| Retained::as_ptr(one).cast_mut());
                        handler.call((std::ptr::null_mut(), error));
                    }
                }
            });
        }

        #[unsafe(method_id(modelStructure))]
        fn structure(&self) -> Retained<MLModelStructure> {
            structure::structure(self.ivars())
        }

        #[unsafe(method_id(estimatedCostOfMLProgramOperation:))]
        fn cost(
            &self,
            operation: &MLModelStructureProgramOperation,
        ) -> Option<Retained<MLComputePlanCost>> {
            let weight = structure::operation_of(operation).weight;
            weight.map(|weight| made!(CostDouble, weight, MLComputePlanCost))
        }

        #[unsafe(method_id(computeDeviceUsageForMLProgramOperation:))]
        fn usage(
            &self,
            operation: &MLModelStructureProgramOperation,
        ) -> Option<Retained<MLComputePlanDeviceUsage>> {
            usage(structure::operation_of(operation))
        }

        #[unsafe(method_id(computeDeviceUsageForNeuralNetworkLayer:))]
        fn layer_usage(
            &self,
            layer: &MLModelStructureNeuralNetworkLayer,
        ) -> Option<Retained<MLComputePlanDeviceUsage>> {
            usage(structure::layer_of(layer))
        }
    }
);

fn usage(of: &PlayedOperation) -> Option<Retained<MLComputePlanDeviceUsage>> {
    let usage = of.usage.clone()?;
    Some(made!(UsageDouble, usage, MLComputePlanDeviceUsage))
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLComputePlanCost"]
    #[ivars = f64]
    pub(crate) struct CostDouble;

    unsafe impl NSObjectProtocol for CostDouble {}

    impl CostDouble {
        #[unsafe(method(weight))]
        fn weight(&self) -> f64 {
            *self.ivars()
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLComputePlanDeviceUsage"]
    #[ivars = PlayedUsage]
    pub(crate) struct UsageDouble;

    unsafe impl NSObjectProtocol for UsageDouble {}

    impl UsageDouble {
        #[unsafe(method_id(preferredComputeDevice))]
        fn preferred(&self) -> Retained<PlayedDeviceObject> {
            device::device(&self.ivars().preferred)
        }

        #[unsafe(method_id(supportedComputeDevices))]
        fn supported(&self) -> Retained<NSArray<PlayedDeviceObject>> {
            device::devices(&self.ivars().supported)
        }
    }
);

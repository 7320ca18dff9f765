//! The doubles of classes, by name: a class is made when it is first looked for.

use std::ffi::CStr;

use objc2::ClassType;

use super::core_ml;
use super::core_video::PixelDouble;
use super::foundation::{
    ArrayDouble, ConstantStringDouble, DictionaryDouble, ErrorDouble, ExceptionDouble,
    NumberDouble, ProcessDouble, StringDouble, UrlDouble, ValueDouble,
};
use super::runtime::{RuntimeClass, root_class};

/// Defines the classes, which programs name by their symbols, and the table of them.
macro_rules! rows {
    ($($name:literal => $class:ty,)*) => {
        static CLASSES: &[&RuntimeClass] = &[root_class(), $({
            #[unsafe(export_name = concat!("._OBJC_CLASS_", $name))]
            static CLASS: RuntimeClass = RuntimeClass::unready(match CStr::from_bytes_with_nul(
                concat!($name, "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            }, <$class>::class);
            &CLASS
        }),*];
    };
}

rows! {
    "NSArray" => ArrayDouble,
    "NSConstantString" => ConstantStringDouble,
    "NSDictionary" => DictionaryDouble,
    "NSError" => ErrorDouble,
    "NSException" => ExceptionDouble,
    "NSNumber" => NumberDouble,
    "NSProcessInfo" => ProcessDouble,
    "NSString" => StringDouble,
    "NSURL" => UrlDouble,
    "NSValue" => ValueDouble,
    "__NSCFType" => PixelDouble,
    "MLMultiArrayConstraint" => core_ml::ArrayConstraintDouble,
    "MLMultiArray" => core_ml::ArrayDouble,
    "MLModelStructureProgramBlock" => core_ml::BlockDouble,
    "MLModelConfiguration" => core_ml::ConfigurationDouble,
    "MLComputePlanCost" => core_ml::CostDouble,
    "MLCPUComputeDevice" => core_ml::CpuDouble,
    "MLModelDescription" => core_ml::DescriptionDouble,
    "MLNeuralEngineComputeDevice" => core_ml::EngineDouble,
    "MLFeatureDescription" => core_ml::FeatureDescriptionDouble,
    "MLModelStructureProgramFunction" => core_ml::FunctionDouble,
    "MLGPUComputeDevice" => core_ml::GpuDouble,
    "MLOptimizationHints" => core_ml::HintsDouble,
    "MLImageConstraint" => core_ml::ImageConstraintDouble,
    "MLModelStructureNeuralNetworkLayer" => core_ml::LayerDouble,
    "GalateaMetalDevice" => core_ml::MetalDouble,
    "MLModel" => core_ml::ModelDouble,
    "MLModelStructureProgramNamedValueType" => core_ml::NamedTypeDouble,
    "MLModelStructureNeuralNetwork" => core_ml::NetworkDouble,
    "MLModelStructureProgramOperation" => core_ml::OperationDouble,
    "MLPredictionOptions" => core_ml::OptionsDouble,
    "GalateaOtherDevice" => core_ml::OtherDeviceDouble,
    "MLModelStructurePipeline" => core_ml::PipelineDouble,
    "MLComputePlan" => core_ml::PlanDouble,
    "MLModelStructureProgram" => core_ml::ProgramDouble,
    "MLDictionaryFeatureProvider" => core_ml::ProviderDouble,
    "MLMultiArrayShapeConstraint" => core_ml::ShapeConstraintDouble,
    "MLStateConstraint" => core_ml::StateConstraintDouble,
    "MLState" => core_ml::StateDouble,
    "MLModelStructure" => core_ml::StructureDouble,
    "MLComputePlanDeviceUsage" => core_ml::UsageDouble,
    "MLFeatureValue" => core_ml::ValueDouble,
}

/// Returns the classes of which there are doubles.
#[unsafe(no_mangle)]
fn galatea_double_classes() -> &'static [&'static RuntimeClass] {
    CLASSES
}

//! `MLModelStructure` and what it consists of.

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{DefinedClass, define_class};
use objc2_core_ml::{
    MLModelStructure, MLModelStructureNeuralNetwork, MLModelStructureNeuralNetworkLayer,
    MLModelStructurePipeline, MLModelStructureProgram, MLModelStructureProgramBlock,
    MLModelStructureProgramFunction, MLModelStructureProgramNamedValueType,
    MLModelStructureProgramOperation,
};
use objc2_foundation::{NSArray, NSDictionary, NSString};

use super::made;
use super::played::{PipelineStage, PlayedFunction, PlayedOperation, PlayedStructure};

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructure"]
    #[ivars = PlayedStructure]
    pub(crate) struct StructureDouble;

    unsafe impl NSObjectProtocol for StructureDouble {}

    impl StructureDouble {
        #[unsafe(method_id(program))]
        fn program(&self) -> Option<Retained<MLModelStructureProgram>> {
            match self.ivars() {
                PlayedStructure::Program(functions) => {
                    Some(made!(ProgramDouble, functions.clone(), MLModelStructureProgram))
                }
                _ => None,
            }
        }

        #[unsafe(method_id(neuralNetwork))]
        fn network(&self) -> Option<Retained<MLModelStructureNeuralNetwork>> {
            match self.ivars() {
                PlayedStructure::Network(layers) => {
                    Some(made!(NetworkDouble, layers.clone(), MLModelStructureNeuralNetwork))
                }
                _ => None,
            }
        }

        #[unsafe(method_id(pipeline))]
        fn pipeline(&self) -> Option<Retained<MLModelStructurePipeline>> {
            match self.ivars() {
                PlayedStructure::Pipeline(stages) => {
                    Some(made!(PipelineDouble, stages.clone(), MLModelStructurePipeline))
                }
                _ => None,
            }
        }
    }
);

/// Makes the structure of a model.
pub(super) fn structure(of: &PlayedStructure) -> Retained<MLModelStructure> {
    made!(StructureDouble, of.clone(), MLModelStructure)
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructurePipeline"]
    #[ivars = Vec<PipelineStage>]
    pub(crate) struct PipelineDouble;

    unsafe impl NSObjectProtocol for PipelineDouble {}

    impl PipelineDouble {
        #[unsafe(method_id(subModelNames))]
        fn names(&self) -> Retained<NSArray<NSString>> {
            let names = self.ivars().iter().map(|stage| NSString::from_str(&stage.name));
            NSArray::from_retained_slice(&names.collect::<Vec<_>>())
        }

        #[unsafe(method_id(subModels))]
        fn models(&self) -> Retained<NSArray<MLModelStructure>> {
            let models = self.ivars().iter().map(|stage| structure(&stage.structure));
            NSArray::from_retained_slice(&models.collect::<Vec<_>>())
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureNeuralNetwork"]
    #[ivars = Vec<PlayedOperation>]
    pub(crate) struct NetworkDouble;

    unsafe impl NSObjectProtocol for NetworkDouble {}

    impl NetworkDouble {
        #[unsafe(method_id(layers))]
        fn layers(&self) -> Retained<NSArray<MLModelStructureNeuralNetworkLayer>> {
            let layer = |of: &PlayedOperation| {
                made!(LayerDouble, of.clone(), MLModelStructureNeuralNetworkLayer)
            };
            NSArray::from_retained_slice(&self.ivars().iter().map(layer).collect::<Vec<_>>())
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureNeuralNetworkLayer"]
    #[ivars = PlayedOperation]
    pub(crate) struct LayerDouble;

    unsafe impl NSObjectProtocol for LayerDouble {}

    impl LayerDouble {
        #[unsafe(method_id(type))]
        fn kind(&self) -> Retained<NSString> {
            NSString::from_str(&self.ivars().operator)
        }

        #[unsafe(method_id(outputNames))]
        fn outputs(&self) -> Retained<NSArray<NSString>> {
            let names = self.ivars().outputs.iter().map(|name| NSString::from_str(name));
            NSArray::from_retained_slice(&names.collect::<Vec<_>>())
        }
    }
);

/// Returns what a layer is.
pub(super) fn layer_of(layer: &MLModelStructureNeuralNetworkLayer) -> &PlayedOperation {
    let layer: *const MLModelStructureNeuralNetworkLayer = layer;
    // SAFETY: every layer here is a double.
    unsafe { &*layer.cast::<LayerDouble>() }.ivars()
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureProgram"]
    #[ivars = Vec<PlayedFunction>]
    pub(crate) struct ProgramDouble;

    unsafe impl NSObjectProtocol for ProgramDouble {}

    impl ProgramDouble {
        #[unsafe(method_id(functions))]
        fn functions(&self) -> Retained<NSDictionary<NSString, MLModelStructureProgramFunction>> {
            let names = self.ivars().iter().map(|one| NSString::from_str(&one.name));
            let names: Vec<_> = names.collect();
            let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
            let function = |of: &PlayedFunction| {
                made!(FunctionDouble, of.clone(), MLModelStructureProgramFunction)
            };
            let functions: Vec<_> = self.ivars().iter().map(function).collect();
            NSDictionary::from_retained_objects(&names, &functions)
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureProgramFunction"]
    #[ivars = PlayedFunction]
    pub(crate) struct FunctionDouble;

    unsafe impl NSObjectProtocol for FunctionDouble {}

    impl FunctionDouble {
        #[unsafe(method_id(block))]
        fn block(&self) -> Retained<MLModelStructureProgramBlock> {
            block(&self.ivars().operations)
        }
    }
);

fn block(of: &[PlayedOperation]) -> Retained<MLModelStructureProgramBlock> {
    made!(BlockDouble, of.to_vec(), MLModelStructureProgramBlock)
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureProgramBlock"]
    #[ivars = Vec<PlayedOperation>]
    pub(crate) struct BlockDouble;

    unsafe impl NSObjectProtocol for BlockDouble {}

    impl BlockDouble {
        #[unsafe(method_id(operations))]
        fn operations(&self) -> Retained<NSArray<MLModelStructureProgramOperation>> {
            let operation = |of: &PlayedOperation| {
                made!(OperationDouble, of.clone(), MLModelStructureProgramOperation)
            };
            NSArray::from_retained_slice(&self.ivars().iter().map(operation).collect::<Vec<_>>())
        }
    }
);

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureProgramOperation"]
    #[ivars = PlayedOperation]
    pub(crate) struct OperationDouble;

    unsafe impl NSObjectProtocol for OperationDouble {}

    impl OperationDouble {
        #[unsafe(method_id(operatorName))]
        fn operator(&self) -> Retained<NSString> {
            NSString::from_str(&self.ivars().operator)
        }

        #[unsafe(method_id(outputs))]
        fn outputs(&self) -> Retained<NSArray<MLModelStructureProgramNamedValueType>> {
            let output = |name: &String| {
                made!(NamedTypeDouble, name.clone(), MLModelStructureProgramNamedValueType)
            };
            NSArray::from_retained_slice(&self.ivars().outputs.iter().map(output).collect::<Vec<_>>())
        }

        #[unsafe(method_id(blocks))]
        fn blocks(&self) -> Retained<NSArray<MLModelStructureProgramBlock>> {
            let blocks = self.ivars().blocks.iter().map(|operations| block(operations));
            NSArray::from_retained_slice(&blocks.collect::<Vec<_>>())
        }
    }
);

/// Returns what an operation is.
pub(super) fn operation_of(operation: &MLModelStructureProgramOperation) -> &PlayedOperation {
    let operation: *const MLModelStructureProgramOperation = operation;
    // SAFETY: every operation here is a double.
    unsafe { &*operation.cast::<OperationDouble>() }.ivars()
}

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "MLModelStructureProgramNamedValueType"]
    #[ivars = String]
    pub(crate) struct NamedTypeDouble;

    unsafe impl NSObjectProtocol for NamedTypeDouble {}

    impl NamedTypeDouble {
        #[unsafe(method_id(name))]
        fn name(&self) -> Retained<NSString> {
            NSString::from_str(self.ivars())
        }
    }
);

//! `MLComputePlan`.

use std::path::Path;
use std::sync::mpsc;

use block2::RcBlock;
use objc2::rc::Retained;
use objc2::runtime::AnyClass;
use objc2_core_ml::{
    MLComputePlan, MLComputePlanDeviceUsage, MLModelStructure, MLModelStructureNeuralNetwork,
    MLModelStructureProgram, MLModelStructureProgramBlock, MLModelStructureProgramOperation,
};
use objc2_foundation::NSError;

use super::super::planned_operator::{CoreMlPlannedOperator, DEPTH, EnclosingBlock};
use super::super::{CoreMlDevice, CoreMlFault, CoreMlFaultKind, CoreMlLoadOptions};
use super::configuration::configuration;
use super::{device, guarded, property, refused, url};

type Planned = Result<Vec<CoreMlPlannedOperator>, CoreMlFault>;

pub(in super::super) fn plan(compiled: &Path, options: &CoreMlLoadOptions) -> Planned {
    if AnyClass::get(c"MLComputePlan").is_none() {
        return Err(CoreMlFault::newer("the plan of a model", "14.4"));
    }
    let (sender, receiver) = mpsc::channel::<Planned>();
    let what = compiled.display().to_string();
    guarded(CoreMlFaultKind::Plan, &what.clone(), || {
        let url = url(compiled)?;
        let options = configuration(options)?;
        // The plan is read where it arrives, since it may be bound to that thread.
        let handler = RcBlock::new(move |plan: *mut MLComputePlan, error: *mut NSError| {
            // SAFETY: the plan is alive while the block runs, or null.
            let plan = unsafe { plan.as_ref() };
            // SAFETY: so is the error.
            let error = unsafe { error.as_ref() };
            let planned = guarded(CoreMlFaultKind::Plan, &what, || match (plan, error) {
                (Some(plan), None) => Ok(operators(plan)),
                (_, Some(error)) => Err(refused(CoreMlFaultKind::Plan, &what, error)),
                (None, None) => Err(nothing(&what)),
            });
            // Nobody waits any more only when the whole process ends.
            let _ = sender.send(planned);
        });
        // SAFETY: all are alive, Core ML keeps its own copy of the block, and a system with the class
        // has the method.
        unsafe {
            MLComputePlan::loadContentsOfURL_configuration_completionHandler(
                &url, &options, &handler,
            );
        }
        Ok::<(), CoreMlFault>(())
    })?;
    // A block that is dropped without a call drops the sender.
    receiver.recv().unwrap_or_else(|_| Err(nothing(&compiled.display().to_string())))
}

fn nothing(what: &str) -> CoreMlFault {
    let text = format!("{what}: Core ML gives neither a plan nor an error");
    CoreMlFault::new(CoreMlFaultKind::Plan, text)
}

fn operators(plan: &MLComputePlan) -> Vec<CoreMlPlannedOperator> {
    let mut walk = Walk { plan, found: Vec::new() };
    walk.structure("", &*property!(plan.modelStructure()), 0);
    walk.found
}

/// Operators found in a plan so far.
struct Walk<'a> {
    plan: &'a MLComputePlan,
    found: Vec<CoreMlPlannedOperator>,
}

impl Walk<'_> {
    fn structure(&mut self, name: &str, of: &MLModelStructure, depth: usize) {
        if let Some(program) = property!(of.program()) {
            self.program(&program);
        }
        if let Some(network) = property!(of.neuralNetwork()) {
            self.network(name, &network);
        }
        if let Some(pipeline) = property!(of.pipeline()).filter(|_| depth < DEPTH) {
            let names = property!(pipeline.subModelNames());
            let models = property!(pipeline.subModels());
            for (name, model) in names.iter().zip(models.iter()) {
                self.structure(&name.to_string(), &model, depth + 1);
            }
        }
    }

    fn program(&mut self, program: &MLModelStructureProgram) {
        let (names, functions) = property!(program.functions()).to_vecs();
        let mut functions: Vec<_> = names.iter().map(ToString::to_string).zip(functions).collect();
        functions.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, function) in functions {
            self.block(&name, &*property!(function.block()), &mut Vec::new());
        }
    }

    fn block(
        &mut self,
        function: &str,
        block: &MLModelStructureProgramBlock,
        path: &mut Vec<EnclosingBlock>,
    ) {
        for (index, operation) in property!(block.operations()).iter().enumerate() {
            let planned = self.operation(function, path, index, &operation);
            self.found.push(planned);
            if path.len() == DEPTH {
                continue;
            }
            for (inner, block) in property!(operation.blocks()).iter().enumerate() {
                path.push(EnclosingBlock { operation: index, block: inner });
                self.block(function, &block, path);
                path.pop();
            }
        }
    }

    fn operation(
        &self,
        function: &str,
        path: &[EnclosingBlock],
        index: usize,
        operation: &MLModelStructureProgramOperation,
    ) -> CoreMlPlannedOperator {
        let plan = self.plan;
        let (preferred, supported) =
            devices(property!(plan.computeDeviceUsageForMLProgramOperation(operation)));
        let outputs = property!(operation.outputs());
        let cost = property!(plan.estimatedCostOfMLProgramOperation(operation));
        CoreMlPlannedOperator {
            function: function.to_owned(),
            path: path.to_vec(),
            index,
            operator: property!(operation.operatorName()).to_string(),
            outputs: outputs.iter().map(|value| property!(value.name()).to_string()).collect(),
            preferred,
            supported,
            weight: cost.map(|cost| property!(cost.weight())),
        }
    }

    fn network(&mut self, name: &str, network: &MLModelStructureNeuralNetwork) {
        let plan = self.plan;
        for (index, layer) in property!(network.layers()).iter().enumerate() {
            let (preferred, supported) =
                devices(property!(plan.computeDeviceUsageForNeuralNetworkLayer(&layer)));
            let outputs = property!(layer.outputNames());
            self.found.push(CoreMlPlannedOperator {
                function: name.to_owned(),
                path: Vec::new(),
                index,
                operator: property!(layer.r#type()).to_string(),
                outputs: outputs.iter().map(|name| name.to_string()).collect(),
                preferred,
                supported,
                weight: None,
            });
        }
    }
}

fn devices(
    usage: Option<Retained<MLComputePlanDeviceUsage>>,
) -> (Option<CoreMlDevice>, Vec<CoreMlDevice>) {
    let Some(usage) = usage else { return (None, Vec::new()) };
    let preferred = device::told(&*property!(usage.preferredComputeDevice()));
    let supported = property!(usage.supportedComputeDevices());
    (Some(preferred), supported.iter().map(|device| device::told(&device)).collect())
}

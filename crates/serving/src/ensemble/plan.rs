//! An ensemble's configuration beside those of its models: checked, and with names turned into numbers.

use std::collections::HashMap;
use std::sync::Arc;

use super::graph::{FlowGraph, FlowStep, GraphFault};
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_ensembling::Step;
use crate::config::inference::{DataType, ModelTensorReshape};
use crate::config::shape_text;
use crate::config::{self, ModelConfig};
use crate::error::ServingError;
use crate::repository::ModelId;

/// An input of a model that a step gives.
#[derive(Clone, Debug)]
pub(super) struct PlanInput {
    pub(super) name: String,
    pub(super) dims: Vec<i64>,
}

/// A step.
#[derive(Clone, Debug)]
pub(super) struct EnsembleStep {
    pub(super) model: ModelId,
    pub(super) version: i64,
    pub(super) batching: bool,
    /// Same field as in the graph's step.
    pub(super) inputs: Vec<PlanInput>,
    /// Names in the model with tensors of the ensemble.
    pub(super) outputs: Vec<(String, usize)>,
}

/// An input or output of the ensemble.
#[derive(Clone, Debug)]
pub(super) struct PlanEnd {
    pub(super) name: String,
    pub(super) tensor: usize,
    /// Shape that clients see, without the batch dimension.
    pub(super) dims: Vec<i64>,
    /// Shape that the steps see.
    pub(super) inner: Vec<i64>,
}

/// Which model makes an output of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputProducer<'a> {
    /// Model.
    pub model: &'a ModelId,
    /// Version, or -1 for the latest.
    pub version: i64,
    /// Its name of the output.
    pub output: &'a str,
}

/// A checked ensemble.
#[derive(Clone, Debug)]
pub struct EnsemblePlan {
    pub(super) name: String,
    pub(super) batching: bool,
    pub(super) max_inflight: usize,
    pub(super) graph: Arc<FlowGraph>,
    pub(super) steps: Vec<EnsembleStep>,
    pub(super) inputs: Vec<PlanEnd>,
    pub(super) outputs: Vec<PlanEnd>,
    /// Configurations of the steps' models, against which the ensemble was checked.
    models: Vec<Arc<ModelConfig>>,
}

/// Facts about a tensor of the ensemble, and from which model.
#[derive(Clone, Debug)]
struct EnsembleTensor {
    model: String,
    data_type: i32,
    dims: Vec<i64>,
    full: Vec<i64>,
}

impl EnsembleTensor {
    fn new(config: &ModelConfig, data_type: i32, dims: &[i64]) -> Self {
        let batch = (config.max_batch_size > 0).then_some(-1);
        let full = batch.into_iter().chain(dims.iter().copied()).collect();
        Self { model: config.name.clone(), data_type, dims: dims.to_vec(), full }
    }

    /// A batch dimension of one side may be a plain dimension of the other.
    fn agrees(&self, other: &Self, place: &str) -> Result<(), ServingError> {
        let (what, left, right) = if self.data_type != other.data_type {
            let name = |number| DataType::try_from(number).unwrap_or_default().as_str_name();
            ("data type", name(self.data_type).to_owned(), name(other.data_type).to_owned())
        } else if may_equal(&self.dims, &other.dims) || may_equal(&self.full, &other.full) {
            return Ok(());
        } else {
            ("shape", shape_text(&self.full), shape_text(&other.full))
        };
        Err(ServingError::invalid_arg(format!(
            "{place}: inconsistent {what}: {left} is inferred from model {} while {right} is inferred from model {}",
            self.model, other.model
        )))
    }
}

fn may_equal(left: &[i64], right: &[i64]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(&left, &right)| left == right || left == -1 || right == -1)
}

/// The names of the ensemble's tensors, with what is known of each.
#[derive(Debug, Default)]
struct EnsembleTensors {
    ensemble: String,
    numbers: HashMap<String, usize>,
    nodes: Vec<EnsembleTensor>,
}

impl EnsembleTensors {
    fn add(&mut self, name: &str, node: EnsembleTensor) -> Result<usize, ServingError> {
        if let Some(&number) = self.numbers.get(name) {
            if let Some(known) = self.nodes.get(number) {
                let place = format!("in ensemble {}, ensemble tensor {name}", self.ensemble);
                known.agrees(&node, &place)?;
            }
            return Ok(number);
        }
        let number = self.nodes.len();
        self.numbers.insert(name.to_owned(), number);
        self.nodes.push(node);
        Ok(number)
    }

    fn end(
        &mut self,
        config: &ModelConfig,
        name: &str,
        data_type: i32,
        dims: &[i64],
        reshape: Option<&ModelTensorReshape>,
    ) -> Result<PlanEnd, ServingError> {
        let inner = reshape.map_or(dims, |reshape| &reshape.shape).to_vec();
        // An output that is an input as well keeps the input's type and shape.
        let known = self.numbers.get(name).copied();
        let tensor = match known {
            Some(tensor) => tensor,
            None => self.add(name, EnsembleTensor::new(config, data_type, &inner))?,
        };
        Ok(PlanEnd { name: name.to_owned(), tensor, dims: dims.to_vec(), inner })
    }

    fn step(
        &mut self,
        step: &Step,
        model: &ModelConfig,
    ) -> Result<(FlowStep, EnsembleStep), ServingError> {
        let place = format!("in ensemble {}", self.ensemble);
        for (key, tensor) in &step.input_map {
            if model.input.iter().all(|input| input.name != *key) {
                return Err(ServingError::invalid_arg(format!(
                    "{place}, ensemble tensor {tensor} is mapping to non-existing input {key} in model {}",
                    step.model_name
                )));
            }
        }
        let mut flow = FlowStep { decoupled: is_decoupled(model), ..FlowStep::default() };
        let mut plan = EnsembleStep {
            model: model_of(step),
            version: step.model_version,
            batching: model.max_batch_size > 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        for input in &model.input {
            let Some(tensor) = step.input_map.get(&input.name) else {
                if input.optional {
                    continue;
                }
                return Err(ServingError::invalid_arg(format!(
                    "{place}, input {} in model {} is not mapped to any ensemble tensors",
                    input.name, model.name
                )));
            };
            let tensor =
                self.add(tensor, EnsembleTensor::new(model, input.data_type, &input.dims))?;
            flow.inputs.push(tensor);
            plan.inputs.push(PlanInput { name: input.name.clone(), dims: input.dims.clone() });
        }
        for (key, tensor) in &step.output_map {
            let Some(output) = model.output.iter().find(|output| output.name == *key) else {
                return Err(ServingError::invalid_arg(format!(
                    "{place}, ensemble tensor {tensor} is mapped from non-existing output {key} in model {}",
                    step.model_name
                )));
            };
            let tensor =
                self.add(tensor, EnsembleTensor::new(model, output.data_type, &output.dims))?;
            flow.outputs.push(tensor);
            plan.outputs.push((key.clone(), tensor));
        }
        Ok((flow, plan))
    }

    fn name(&self, tensor: usize) -> &str {
        let found = self.numbers.iter().find(|(_, number)| **number == tensor);
        found.map_or("", |(name, _)| name)
    }
}

fn model_of(step: &Step) -> ModelId {
    ModelId { namespace: step.model_namespace.clone(), name: step.model_name.clone() }
}

fn is_decoupled(config: &ModelConfig) -> bool {
    config.model_transaction_policy.as_ref().is_some_and(|policy| policy.decoupled)
}

impl EnsemblePlan {
    /// Checks an ensemble beside its models, of which `model` gives the completed configuration by identity and version
    /// (-1 is the latest).
    ///
    /// # Errors
    /// INVALID_ARG with the first thing that is wrong, in Triton's words.
    pub fn new(
        ensemble: &ModelConfig,
        model: &dyn Fn(&ModelId, i64) -> Option<Arc<ModelConfig>>,
    ) -> Result<Self, ServingError> {
        config::validate(ensemble)?;
        let name = &ensemble.name;
        let Some(SchedulingChoice::EnsembleScheduling(scheduling)) = &ensemble.scheduling_choice
        else {
            return Err(ServingError::invalid_arg(format!(
                "ensemble scheduling must be set for ensemble {name} whose platform is ensemble"
            )));
        };
        let mut tensors = EnsembleTensors { ensemble: name.clone(), ..EnsembleTensors::default() };
        let mut inputs = Vec::new();
        for input in &ensemble.input {
            let reshape = input.reshape.as_ref();
            let end = tensors.end(ensemble, &input.name, input.data_type, &input.dims, reshape)?;
            inputs.push(end);
        }
        let mut outputs = Vec::new();
        for output in &ensemble.output {
            let reshape = output.reshape.as_ref();
            let end =
                tensors.end(ensemble, &output.name, output.data_type, &output.dims, reshape)?;
            outputs.push(end);
        }
        let mut flow_steps = Vec::new();
        let mut steps = Vec::new();
        let mut models = Vec::new();
        for step in &scheduling.step {
            let Some(model) = model(&model_of(step), step.model_version) else {
                return Err(ServingError::invalid_arg(format!(
                    "ensemble {name} contains models that are not available or ambiguous: {}",
                    step.model_name
                )));
            };
            if model.max_batch_size != 0 && model.max_batch_size < ensemble.max_batch_size {
                return Err(ServingError::invalid_arg(format!(
                    "ensemble {name} allows maximum batch size {}, but it contains model {} which only allows maximum \
                     batch size to be {}",
                    ensemble.max_batch_size, step.model_name, model.max_batch_size
                )));
            }
            let (flow, plan) = tensors.step(step, &model)?;
            flow_steps.push(flow);
            steps.push(plan);
            models.push(model);
        }
        let numbers = |ends: &[PlanEnd]| ends.iter().map(|end| end.tensor).collect();
        let graph =
            FlowGraph::new(tensors.nodes.len(), numbers(&inputs), numbers(&outputs), flow_steps)
                .map_err(|fault| fault_text(fault, &tensors, &steps))?;
        Ok(Self {
            name: name.clone(),
            batching: ensemble.max_batch_size > 0,
            max_inflight: usize::try_from(scheduling.max_inflight_requests).unwrap_or(usize::MAX),
            graph: Arc::new(graph),
            steps,
            inputs,
            outputs,
            models,
        })
    }

    /// Whether the models are still what the ensemble was checked against; `model` is as in [`new`](Self::new).
    #[must_use]
    pub fn is_current(&self, model: &dyn Fn(&ModelId, i64) -> Option<Arc<ModelConfig>>) -> bool {
        let same = |(step, known): (&EnsembleStep, &Arc<ModelConfig>)| {
            model(&step.model, step.version)
                .is_none_or(|now| Arc::ptr_eq(&now, known) || now == *known)
        };
        self.steps.iter().zip(&self.models).all(same)
    }

    /// The model of each step.
    pub fn models(&self) -> impl Iterator<Item = &ModelId> {
        self.steps.iter().map(|step| &step.model)
    }

    /// Whether the ensemble answers any number of times, because one of its models does.
    #[must_use]
    pub fn is_decoupled(&self) -> bool {
        self.graph.is_decoupled()
    }

    /// Which model makes an output; its labels are those of the ensemble's output.
    #[must_use]
    pub fn producer(&self, output: &str) -> Option<OutputProducer<'_>> {
        let tensor = self.outputs.iter().find(|end| end.name == output)?.tensor;
        let step = self.steps.get(self.graph.producer(tensor)?)?;
        let (output, _) = step.outputs.iter().find(|(_, number)| *number == tensor)?;
        Some(OutputProducer { model: &step.model, version: step.version, output })
    }
}

fn fault_text(
    fault: GraphFault,
    tensors: &EnsembleTensors,
    steps: &[EnsembleStep],
) -> ServingError {
    let name = &tensors.ensemble;
    let mixed = |model: &str| {
        format!(
            "in ensemble {name}, step of model '{model}' receives inputs originated from different decoupled models"
        )
    };
    let model = |step: usize| steps.get(step).map_or("", |step| &step.model.name);
    // Triton calls the step by the model that it first heard of the output from, often the ensemble itself.
    let called = |step: usize| {
        let first = steps.get(step).and_then(|step| step.outputs.first());
        first.and_then(|(_, tensor)| tensors.nodes.get(*tensor)).map_or("", |node| &node.model)
    };
    ServingError::invalid_arg(match fault {
        GraphFault::MixedInputs(step) => mixed(called(step)),
        // The client is one more step, called by the ensemble's own name.
        GraphFault::MixedOutputs => mixed(name),
        GraphFault::WrittenTwice(tensor) => format!(
            "ensemble tensor '{}' can appear in an output map only once for ensemble '{name}'",
            tensors.name(tensor)
        ),
        GraphFault::Unwritten(tensor) => {
            format!("output '{}' for ensemble '{name}' is not written", tensors.name(tensor))
        }
        GraphFault::NeverRuns(step) => format!(
            "in ensemble {name}, step {step} of model '{}' never runs: its inputs depend on its own outputs or are \
             not written",
            model(step)
        ),
    })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

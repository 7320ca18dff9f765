//! Completing a configuration with what the model says of itself, and checking that they agree.

use super::inference::model_config::SchedulingChoice;
use super::inference::model_sequence_batching::initial_state::StateData;
use super::inference::model_sequence_batching::{InitialState, State};
use super::inference::{ModelDynamicBatching, ModelInput, ModelOutput, ModelTensorReshape};
use super::shape_text;
use super::{ModelConfig, data_type_number, inference};
use super::{ModelIo, ModelTensor, StateBinding};
use crate::error::ServingError;

/// Largest batch of a model that can batch and whose configuration gives no size.
/// Source: Triton's default of `--backend-config=default-max-batch-size`.
pub const DEFAULT_MAX_BATCH_SIZE: i32 = 4;

/// Completes a configuration where it is silent (with `fill`), and compares it with the model everywhere else.
///
/// # Errors
/// INVALID_ARG with all contradictions.
pub fn complete(
    config: &mut ModelConfig,
    io: &ModelIo,
    fill: bool,
    default_max_batch_size: i32,
) -> Result<(), ServingError> {
    let can_batch = io
        .inputs
        .iter()
        .chain(&io.outputs)
        .all(|tensor| !tensor.ranked || tensor.dims.first() == Some(&-1));
    if config.max_batch_size > 0 && !can_batch {
        return Err(ServingError::invalid_arg(format!(
            "autofill failed for model '{}': model does not support batching while non-zero max_batch_size is specified",
            config.name
        )));
    }
    if fill {
        complete_states(config, io);
        // A model that does not say how many dimensions it has does not say that it can batch.
        let batches = can_batch
            && !io.picky
            && io.inputs.iter().chain(&io.outputs).all(|tensor| tensor.ranked);
        complete_batching(config, io, batches, default_max_batch_size);
        complete_tensors(config, io);
    }
    let problems = contradictions(config, io);
    if problems.is_empty() { Ok(()) } else { Err(ServingError::invalid_arg(problems.join("; "))) }
}

fn complete_batching(config: &mut ModelConfig, io: &ModelIo, can_batch: bool, default: i32) {
    if !can_batch {
        return;
    }
    if config.max_batch_size == 0 && !has_full_dims(config, io) {
        config.max_batch_size = default.max(0);
    }
    if config.max_batch_size > 1 && config.scheduling_choice.is_none() {
        config.scheduling_choice =
            Some(SchedulingChoice::DynamicBatching(ModelDynamicBatching::default()));
    }
}

/// Whether the configuration gives a tensor with as many dimensions as the model, so that it means no batching.
fn has_full_dims(config: &ModelConfig, io: &ModelIo) -> bool {
    let full = |name: &str, dims: &[i64], of: &[ModelTensor]| {
        !dims.is_empty()
            && of.iter().any(|tensor| {
                tensor.name == name && tensor.ranked && tensor.dims.len() <= dims.len()
            })
    };
    config.input.iter().any(|input| full(&input.name, &input.dims, &io.inputs))
        || config.output.iter().any(|output| full(&output.name, &output.dims, &io.outputs))
}

/// A sequence keeps all states of a model where its configuration names none.
fn complete_states(config: &mut ModelConfig, io: &ModelIo) {
    let Some(SchedulingChoice::SequenceBatching(batching)) = &mut config.scheduling_choice else {
        return;
    };
    if !batching.state.is_empty() {
        return;
    }
    batching.state = io.states.iter().map(state).collect();
}

fn state(state: &StateBinding) -> State {
    let data_type = data_type_number(state.datatype);
    let zeros = InitialState {
        data_type,
        dims: state.dims.clone(),
        name: state.input.clone(),
        state_data: Some(StateData::ZeroData(true)),
    };
    State {
        input_name: state.input.clone(),
        output_name: state.output.clone(),
        data_type,
        dims: state.dims.clone(),
        initial_state: vec![zeros],
        ..State::default()
    }
}

fn complete_tensors(config: &mut ModelConfig, io: &ModelIo) {
    let skip = usize::from(config.max_batch_size > 0);
    let kept = |name: &String| io.states.iter().any(|s| s.input == *name || s.output == *name);
    if config.input.is_empty() {
        let named = |tensor: &ModelTensor| ModelInput {
            name: tensor.name.clone(),
            optional: tensor.optional,
            ..ModelInput::default()
        };
        let made: Vec<String> = made_inputs(config).into_iter().map(str::to_owned).collect();
        config.input = io
            .inputs
            .iter()
            .filter(|t| !made.contains(&t.name) && !kept(&t.name))
            .map(named)
            .collect();
    }
    if config.output.is_empty() {
        let named = |tensor: &ModelTensor| ModelOutput {
            name: tensor.name.clone(),
            ..ModelOutput::default()
        };
        let states: Vec<String> = sequence_states(config).map(|s| s.output_name.clone()).collect();
        let given = io.outputs.iter().filter(|t| !states.contains(&t.name) && !kept(&t.name));
        config.output = given.map(named).collect();
    }
    for input in &mut config.input {
        let known = io.inputs.iter().find(|tensor| tensor.name == input.name);
        fill(known, skip, &mut input.data_type, &mut input.dims, &mut input.reshape);
    }
    for output in &mut config.output {
        let known = io.outputs.iter().find(|tensor| tensor.name == output.name);
        fill(known, skip, &mut output.data_type, &mut output.dims, &mut output.reshape);
    }
}

fn fill(
    known: Option<&ModelTensor>,
    skip: usize,
    data_type: &mut i32,
    dims: &mut Vec<i64>,
    reshape: &mut Option<ModelTensorReshape>,
) {
    let Some(tensor) = known else { return };
    if *data_type == i32::from(inference::DataType::TypeInvalid) {
        *data_type = data_type_number(tensor.datatype);
    }
    if !dims.is_empty() {
        return;
    }
    if !tensor.ranked {
        dims.push(-1);
        return;
    }
    *dims = tensor.dims.iter().skip(skip).copied().collect();
    if dims.is_empty() {
        // A configuration has no way to say "a scalar" but one element that the model sees without its dimension.
        dims.push(1);
        reshape.get_or_insert(ModelTensorReshape { shape: Vec::new() });
    }
}

fn sequence_states(config: &ModelConfig) -> impl Iterator<Item = &State> {
    let states = match &config.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(batching)) => batching.state.as_slice(),
        _ => &[],
    };
    states.iter()
}

/// Inputs of the model that the server makes: clients do not send them.
fn made_inputs(config: &ModelConfig) -> Vec<&str> {
    let controls = match &config.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(batching)) => batching.control_input.as_slice(),
        _ => &[],
    };
    let batch = config.batch_input.iter().flat_map(|made| &made.target_name);
    let controls = controls.iter().map(|control| &control.name);
    let states = sequence_states(config).map(|state| &state.input_name);
    batch.chain(controls).chain(states).map(String::as_str).collect()
}

fn contradictions(config: &ModelConfig, io: &ModelIo) -> Vec<String> {
    let mut problems = Vec::new();
    let model = &config.name;
    let required = io.inputs.iter().filter(|input| !input.optional).count();
    let made = made_inputs(config);
    let given = config.input.len() + made.len();
    if given < required || given > io.inputs.len() {
        let provided = io.inputs.len();
        problems.push(format!(
            "unable to load model '{model}', configuration expects {given} inputs, model provides {provided}"
        ));
    }
    for input in &config.input {
        let shape = input.reshape.as_ref().map_or(&input.dims, |reshape| &reshape.shape);
        let side = TensorSide { kind: "input", of: &io.inputs, ragged: input.allow_ragged_batch };
        problems.extend(side.compare(config, &input.name, input.data_type, shape));
    }
    for output in &config.output {
        let shape = output.reshape.as_ref().map_or(&output.dims, |reshape| &reshape.shape);
        let flat = config.batch_output.iter().any(|made| made.target_name.contains(&output.name));
        let side = TensorSide { kind: "output", of: &io.outputs, ragged: flat };
        problems.extend(side.compare(config, &output.name, output.data_type, shape));
    }
    problems
}

/// The inputs or the outputs of a model.
struct TensorSide<'a> {
    kind: &'static str,
    of: &'a [ModelTensor],
    /// The tensor goes between server and model without its dimensions.
    ragged: bool,
}

impl TensorSide<'_> {
    fn compare(
        &self,
        config: &ModelConfig,
        name: &str,
        data_type: i32,
        shape: &[i64],
    ) -> Option<String> {
        let kind = self.kind;
        let Some(tensor) = self.of.iter().find(|tensor| tensor.name == name) else {
            let names: Vec<&str> = self.of.iter().map(|tensor| tensor.name.as_str()).collect();
            let names = names.join(", ");
            return Some(format!(
                "unexpected inference {kind} '{name}', allowed {kind}s are: {names}"
            ));
        };
        let expected = data_type_number(tensor.datatype);
        if data_type != expected && data_type != i32::from(inference::DataType::TypeInvalid) {
            let found = inference::DataType::try_from(data_type).unwrap_or_default().as_str_name();
            return Some(format!(
                "unable to load model '{}', unexpected datatype {found} for inference {kind} '{name}', expecting {}",
                config.name,
                tensor.datatype.config_name()
            ));
        }
        let batching = config.max_batch_size > 0;
        let full: Vec<i64> =
            batching.then_some(-1).into_iter().chain(shape.iter().copied()).collect();
        let fits = full.len() == tensor.dims.len()
            && full.iter().zip(&tensor.dims).all(|(given, own)| *own == -1 || given == own);
        if fits || self.ragged || !tensor.ranked {
            return None;
        }
        let given = shape_text(&full);
        let how = match batching {
            true => format!(
                "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making \
                 complete shape {given}"
            ),
            false => format!("shape {given}"),
        };
        Some(format!(
            "model '{}', tensor '{name}': the model expects {} dimensions (shape {}) but the model configuration \
             specifies {} dimensions ({how})",
            config.name,
            tensor.dims.len(),
            shape_text(&tensor.dims),
            full.len()
        ))
    }
}

//! The control and state tensors that a configuration asks for.

use std::path::Path;
use std::sync::Arc;

use galatea_tensor::{ByteString, DataType, Tensor, decode_byte_strings, read_plain_file};

use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_sequence_batching::control::Kind;
use crate::config::inference::model_sequence_batching::initial_state::StateData;
use crate::config::inference::model_sequence_batching::{Control, InitialState, State};
use crate::config::shape_text;
use crate::config::{ModelConfig, datatype};
use crate::error::ServingError;
use crate::repository;

/// Most bytes of one initial state.
const MAX_STATE_BYTES: usize = 1 << 30;

/// How a flag is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ControlFlag {
    Int32(i32, i32),
    Fp32(f32, f32),
    Bool(bool, bool),
}

/// Meaning of a control tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ControlMeaning {
    Start(ControlFlag),
    End(ControlFlag),
    Ready(ControlFlag),
    Correlation(DataType),
}

#[derive(Clone, Debug)]
pub(crate) struct StateTensor {
    pub(crate) input: String,
    pub(crate) output: String,
    /// With a batch dimension of 1 where the model batches.
    pub(crate) initial: Tensor,
}

/// See the module. It is made once, when a version is loaded.
#[derive(Clone, Debug)]
pub struct SequencePlan {
    pub(crate) controls: Vec<(String, ControlMeaning)>,
    pub(crate) states: Vec<StateTensor>,
    pub(crate) batching: bool,
}

impl SequencePlan {
    /// Reads a completed configuration; `None` for models that are not over sequences. Initial states are read from
    /// the folder `initial_state` of the model's folder.
    ///
    /// # Errors
    /// INVALID_ARG when a state contradicts the configuration or its file.
    pub fn from_config(
        config: &ModelConfig,
        model_dir: &Path,
    ) -> Result<Option<Arc<Self>>, ServingError> {
        let Some(SchedulingChoice::SequenceBatching(batching)) = &config.scheduling_choice else {
            return Ok(None);
        };
        let batching_model = config.max_batch_size > 0;
        let controls = batching
            .control_input
            .iter()
            .flat_map(|input| input.control.iter().map(|control| (input.name.clone(), control)))
            .filter_map(|(name, control)| Some((name, meaning(control)?)))
            .collect();
        let states: Result<Vec<StateTensor>, ServingError> =
            batching.state.iter().map(|state| state_tensor(config, state, model_dir)).collect();
        let states = states?;
        for (at, state) in states.iter().enumerate() {
            for (earlier, what) in states.iter().take(at).flat_map(|other| {
                [(other.input == state.input, "input"), (other.output == state.output, "output")]
            }) {
                if earlier {
                    return Err(ServingError::invalid_arg(format!(
                        "sequence batching names the state {what} of '{}' twice for {}",
                        state.input, config.name
                    )));
                }
            }
        }
        Ok(Some(Arc::new(Self { controls, states, batching: batching_model })))
    }
}

impl SequencePlan {
    /// Whether the server makes this input.
    pub(crate) fn makes(&self, input: &str) -> bool {
        self.controls.iter().any(|(name, _)| name == input)
            || self.states.iter().any(|state| state.input == input)
    }
}

fn meaning(control: &Control) -> Option<ControlMeaning> {
    if control.kind() == Kind::ControlSequenceCorrid {
        return datatype(control.data_type).map(ControlMeaning::Correlation);
    }
    let flag = match (
        control.int32_false_true.as_slice(),
        control.fp32_false_true.as_slice(),
        control.bool_false_true.as_slice(),
    ) {
        ([no, yes], ..) => ControlFlag::Int32(*no, *yes),
        (_, [no, yes], _) => ControlFlag::Fp32(*no, *yes),
        (.., [no, yes]) => ControlFlag::Bool(*no, *yes),
        _ => return None,
    };
    Some(match control.kind() {
        Kind::ControlSequenceStart => ControlMeaning::Start(flag),
        Kind::ControlSequenceEnd => ControlMeaning::End(flag),
        Kind::ControlSequenceReady => ControlMeaning::Ready(flag),
        Kind::ControlSequenceCorrid => return None,
    })
}

fn state_tensor(
    config: &ModelConfig,
    state: &State,
    model_dir: &Path,
) -> Result<StateTensor, ServingError> {
    let input = &state.input_name;
    let model = &config.name;
    let wrong = |what: String| {
        ServingError::invalid_arg(format!("state '{input}' of model '{model}' {what}"))
    };
    if input.is_empty() || state.output_name.is_empty() {
        return Err(wrong("must have an 'input_name' and an 'output_name'".to_owned()));
    }
    if state.use_growable_memory {
        return Err(wrong(
            "asks for 'use_growable_memory', which needs a GPU build of the server".to_owned(),
        ));
    }
    if config.input.iter().any(|other| other.name == *input) {
        return Err(wrong("has the name of an input".to_owned()));
    }
    let Some(kind) = datatype(state.data_type) else {
        return Err(wrong("must specify 'data_type'".to_owned()));
    };
    if let Some(output) = config.output.iter().find(|output| output.name == state.output_name)
        && datatype(output.data_type) != Some(kind)
    {
        return Err(wrong(format!(
            "has the data type {}, but the output '{}' has another",
            kind.config_name(),
            output.name
        )));
    }
    if let Some(&dim) = state.dims.iter().find(|&&dim| dim < 1 && dim != -1) {
        return Err(wrong(format!(
            "has the dimension {dim}; dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
        )));
    }
    let initial = match state.initial_state.as_slice() {
        [] => {
            // Nothing is said of the first value; a size is needed all the same.
            let dims: Vec<i64> = state.dims.iter().map(|&dim| dim.max(1)).collect();
            zeros(kind, &dims).map_err(wrong)?
        }
        [initial] => {
            check_initial(initial, state, kind).map_err(wrong)?;
            match &initial.state_data {
                Some(StateData::ZeroData(_)) => zeros(kind, &initial.dims).map_err(wrong)?,
                Some(StateData::DataFile(file)) => {
                    let path = repository::file_in(&model_dir.join("initial_state"), file)?;
                    from_file(&path, kind, &initial.dims).map_err(wrong)?
                }
                None => {
                    return Err(wrong(
                        "must specify 'zero_data' or 'data_file' in 'initial_state'".to_owned(),
                    ));
                }
            }
        }
        several => {
            return Err(wrong(format!("has {} initial states; one is expected", several.len())));
        }
    };
    let initial = with_batch(initial, config.max_batch_size > 0)?;
    Ok(StateTensor { input: input.clone(), output: state.output_name.clone(), initial })
}

fn with_batch(tensor: Tensor, batching: bool) -> Result<Tensor, ServingError> {
    if !batching {
        return Ok(tensor);
    }
    let shape: Vec<usize> = std::iter::once(1).chain(tensor.shape().iter().copied()).collect();
    Ok(tensor.reshape(&shape)?)
}

fn check_initial(initial: &InitialState, state: &State, kind: DataType) -> Result<(), String> {
    if datatype(initial.data_type) != Some(kind) {
        return Err("has an initial state of another 'data_type'".to_owned());
    }
    let fits = initial.dims.len() == state.dims.len()
        && initial
            .dims
            .iter()
            .zip(&state.dims)
            .all(|(&given, &wanted)| given >= 1 && (wanted == -1 || given == wanted));
    if fits {
        return Ok(());
    }
    Err(format!(
        "has an initial state of shape {}, which does not fit {}",
        shape_text(&initial.dims),
        shape_text(&state.dims)
    ))
}

fn sizes(kind: DataType, dims: &[i64]) -> Result<(Vec<usize>, usize), String> {
    let shape: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let elements = shape
        .as_ref()
        .and_then(|shape| shape.iter().try_fold(1_usize, |all, &dim| all.checked_mul(dim)));
    let fits = |elements: &usize| {
        elements.checked_mul(kind.size_bytes().unwrap_or(1)).is_some_and(|b| b <= MAX_STATE_BYTES)
    };
    match (shape, elements.filter(fits)) {
        (Some(shape), Some(elements)) => Ok((shape, elements)),
        _ => Err(format!("has an initial state of shape {}, which is too large", shape_text(dims))),
    }
}

fn zeros(kind: DataType, dims: &[i64]) -> Result<Tensor, String> {
    let (shape, elements) = sizes(kind, dims)?;
    let made = match kind.size_bytes() {
        Some(size) => Tensor::from_bytes(kind, &shape, &vec![0; elements * size]),
        None => Tensor::from_vec(&shape, vec![ByteString::default(); elements]),
    };
    made.map_err(|error| format!("has no initial state: {error}"))
}

fn from_file(path: &Path, kind: DataType, dims: &[i64]) -> Result<Tensor, String> {
    let of_file =
        |why: String| format!("cannot read its initial state '{}': {why}", path.display());
    let (shape, elements) = sizes(kind, dims)?;
    let bytes = read_plain_file(path).map_err(|error| of_file(error.to_string()))?;
    let made = match kind.size_bytes() {
        Some(size) if bytes.len() != elements * size => {
            let expected = elements * size;
            return Err(of_file(format!("expected {expected} bytes, got {}", bytes.len())));
        }
        Some(_) => Tensor::from_bytes(kind, &shape, &bytes),
        None => decode_byte_strings(&bytes).and_then(|strings| Tensor::from_vec(&shape, strings)),
    };
    made.map_err(|error| of_file(error.to_string()))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

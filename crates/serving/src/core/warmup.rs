//! Warm-up: requests that each instance runs before the model is ready.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use galatea_tensor::{ByteString, DataType, encode_byte_strings, read_plain_file};

use crate::backend::ModelInstance;
use crate::config::inference::model_warmup::input::InputDataType;
use crate::config::inference::{ModelWarmup, model_warmup};
use crate::config::{ModelConfig, datatype};
use crate::error::ServingError;
use crate::payload::{ActiveRequest, BatchPayload, ExecutionContext};
use crate::repository;
use crate::request::{InferenceRequest, InputData, InputTensor, SinkAnswer};
use crate::sequence::{SequenceContext, SequencePlan};
use crate::validate::RequestChecker;

/// Most bytes of one warm-up input.
const MAX_INPUT_BYTES: usize = 1 << 30;

/// Runs every sample of the configuration on an instance, as often as each says.
///
/// # Errors
/// With the first sample that cannot be made or that the model answers with an error.
pub(super) fn run(
    wanted: &WarmupPlace<'_>,
    instance: &mut dyn ModelInstance,
) -> Result<(), ServingError> {
    for sample in &wanted.config.model_warmup {
        run_sample(wanted, sample, instance).map_err(|error| {
            // As in Triton, which lists what each response of the sample says.
            let text =
                format!("failed to run warmup sample '{}': {}; ", sample.name, error.message);
            ServingError::new(error.code, text)
        })?;
    }
    Ok(())
}

/// Place of the warm-up: a model and the name of one of its instances.
pub(super) struct WarmupPlace<'a> {
    /// Folder of the model.
    pub(super) model_dir: &'a Path,
    /// Completed configuration.
    pub(super) config: &'a Arc<ModelConfig>,
    pub(super) sequences: Option<&'a Arc<SequencePlan>>,
    /// Name of the instance.
    pub(super) instance: &'a str,
}

fn run_sample(
    wanted: &WarmupPlace<'_>,
    sample: &ModelWarmup,
    instance: &mut dyn ModelInstance,
) -> Result<(), ServingError> {
    let &WarmupPlace { model_dir, config, sequences, instance: name } = wanted;
    let items = sample.batch_size.max(1);
    // A request of a sequence is one item, so that a batch of them is several requests.
    let (copies, rows) = if sequences.is_some() { (items, 1) } else { (1, items) };
    let mut request =
        InferenceRequest { model_name: config.name.clone(), ..InferenceRequest::default() };
    let is_made = |name: &String| sequences.is_some_and(|plan| plan.makes(name));
    for (input_name, input) in sample.inputs.iter().filter(|(name, _)| !is_made(name)) {
        let given = input_tensor(model_dir, config, rows, input_name, input).map_err(|error| {
            ServingError::new(error.code, format!("input '{input_name}': {}", error.message))
        })?;
        request.inputs.push(given);
    }
    let ticket = RequestChecker::new(config).check(&mut request)?;
    // Statistics of its own, so that warm-up does not count.
    let context = ExecutionContext::new(&config.name, 0, Arc::clone(config));
    for iteration in 1..=sample.count.max(1) {
        tracing::debug!(
            "model '{}' instance {name} is running warmup sample '{}' for iteration {iteration}",
            config.name,
            sample.name
        );
        let (to, from) = channel();
        let active = (0..usize::try_from(copies).unwrap_or(1)).map(|slot| {
            let to = to.clone();
            let sink = Box::new(move |answer: SinkAnswer| {
                // The receiver outlives the execution.
                let _sent = to.send((answer.result.map(|_| ()), answer.is_final));
            });
            let mut active =
                ActiveRequest::new(request.clone(), ticket.batch_size, Arc::clone(&context), sink);
            active.sequence = sequences.map(|plan| Box::new(SequenceContext::first(plan, slot)));
            // One execution of an iterative request is enough.
            active.set_way_back(Box::new(ActiveRequest::finish));
            active
        });
        instance.execute(BatchPayload::new(active.collect(), Arc::clone(&context)));
        let mut open = copies;
        while open > 0 {
            let (result, is_final) =
                from.recv().map_err(|_| ServingError::internal("the instance gave no answer"))?;
            result?;
            open -= u32::from(is_final);
        }
    }
    Ok(())
}

fn input_tensor(
    model_dir: &Path,
    config: &ModelConfig,
    rows: u32,
    name: &str,
    input: &model_warmup::Input,
) -> Result<InputTensor, ServingError> {
    let Some(datatype) = datatype(input.data_type) else {
        return Err(ServingError::invalid_arg("must specify 'data_type'"));
    };
    let batch = (config.max_batch_size > 0).then_some(i64::from(rows));
    let shape: Vec<i64> = batch.into_iter().chain(input.dims.iter().copied()).collect();
    let elements = shape
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?))
        .filter(|elements| {
            elements.saturating_mul(datatype.size_bytes().unwrap_or(4)) <= MAX_INPUT_BYTES
        });
    let Some(elements) = elements else {
        return Err(ServingError::invalid_arg(format!(
            "the dimensions {:?} have no size that fits",
            input.dims
        )));
    };
    let bytes = match &input.input_data_type {
        Some(InputDataType::ZeroData(_)) => zeros(datatype, elements)?,
        Some(InputDataType::RandomData(_)) => random(datatype, elements)?,
        Some(InputDataType::InputDataFile(file)) => {
            let path = repository::file_in(&model_dir.join("warmup"), file)?;
            let once = read_plain_file(&path).map_err(|error| {
                ServingError::internal(format!("failed to read '{}': {error}", path.display()))
            })?;
            // The file holds one item; every item of the batch is the same.
            once.repeat(usize::try_from(batch.unwrap_or(1)).unwrap_or(1))
        }
        None => {
            return Err(ServingError::invalid_arg(
                "must specify 'zero_data', 'random_data' or 'input_data_file'",
            ));
        }
    };
    Ok(InputTensor { name: name.to_owned(), datatype, shape, data: InputData::Raw(bytes.into()) })
}

fn zeros(datatype: DataType, elements: usize) -> Result<Vec<u8>, ServingError> {
    match datatype.size_bytes() {
        Some(size) => Ok(vec![0; elements * size]),
        None => Ok(encode_byte_strings(&vec![ByteString::default(); elements])?),
    }
}

/// Numbers that look random and are the same at every start: small integers, and reals of moderate size.
fn random(datatype: DataType, elements: usize) -> Result<Vec<u8>, ServingError> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut digits = std::iter::repeat_with(move || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u8::try_from(state >> 57).unwrap_or(0) % 10
    });
    let Some(size) = datatype.size_bytes() else {
        let strings: Vec<ByteString> =
            digits.take(elements).map(|digit| ByteString::from(digit.to_string())).collect();
        return Ok(encode_byte_strings(&strings)?);
    };
    let mut bytes = vec![0; elements * size];
    for element in bytes.chunks_exact_mut(size) {
        let Some((high, low)) = element.split_last_mut() else { continue };
        let digit = digits.next().unwrap_or(0);
        match (datatype.is_float(), low) {
            // The high byte of any floating-point format, 0x3c to 0x3f, gives a number between 1/128 and 2.
            (true, _) => *high = 0x3c + digit % 4,
            (false, [first, ..]) => *first = digit,
            (false, []) => *high = if datatype == DataType::Bool { digit % 2 } else { digit },
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_tensor::Tensor;

    #[test]
    fn random_data_fits_its_type() {
        for datatype in DataType::ALL {
            let bytes = random(datatype, 50).unwrap();
            if datatype == DataType::Bytes {
                assert_eq!(galatea_tensor::decode_byte_strings(&bytes).unwrap().len(), 50);
                continue;
            }
            let tensor = Tensor::from_bytes(datatype, &[50], &bytes).unwrap();
            match datatype {
                DataType::Fp32 => {
                    let values = tensor.to_vec::<f32>().unwrap();
                    assert!(values.iter().all(|value| (0.007..2.0).contains(value)), "{values:?}");
                }
                DataType::Fp64 => {
                    assert!(tensor.to_vec::<f64>().unwrap().iter().all(|value| value.is_normal()))
                }
                DataType::Int16 => {
                    assert!(tensor.to_vec::<i16>().unwrap().iter().any(|&value| value > 0))
                }
                _ => {}
            }
        }
    }
}

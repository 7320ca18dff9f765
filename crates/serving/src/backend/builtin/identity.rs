//! `identity`: every output is the input of the same place.
//!
//! `INPUT3` goes to `OUTPUT3`; inputs and outputs that are not called so are paired in the order of the
//! configuration. An optional input that a request leaves out stands for zeros, of the dimensions in the configuration
//! with 1 where they are variable. Parameters: `execute_delay_ms`, `instance_wise_delay_multiplier`, `creation_delay_sec`
//! and those of [`CustomTracing`].

use std::sync::Arc;
use std::time::Duration;

use galatea_tensor::{ByteString, DataType, HostBuffer, Tensor};

use super::activities::CustomTracing;
use super::delay::{self, ExecuteDelay};
use crate::backend::{
    ActiveRequest, BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles,
    ModelInstance, ModelIo,
};
use crate::batch;
use crate::config::inference::ModelInput;
use crate::config::{ModelConfig, datatype};
use crate::error::ServingError;

/// See the module.
#[derive(Debug)]
pub(super) struct IdentityBackend;

impl ModelBackend for IdentityBackend {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let delay = ExecuteDelay::from_files(files)?;
        let creation = Duration::from_secs(delay::number(files, "creation_delay_sec")?);
        let pairs = pairs(&files.config)?;
        let tracing = CustomTracing::from_files(files)?;
        std::thread::sleep(creation);
        Ok(Box::new(IdentityModel { delay, pairs, tracing }))
    }
}

/// An output, and the input that it repeats.
#[derive(Clone, Debug)]
struct IdentityPair {
    input: String,
    output: String,
    /// Zeros for requests without the input.
    absent: AbsentInput,
}

/// Type and dimensions of an input, with the axis of the batch where there is one.
#[derive(Clone, Debug)]
struct AbsentInput {
    datatype: Option<DataType>,
    dims: Vec<usize>,
    batching: bool,
}

impl AbsentInput {
    fn of(config: &ModelConfig, input: &ModelInput) -> Self {
        let dims = input.reshape.as_ref().map_or(&input.dims, |reshape| &reshape.shape);
        let dims = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(1)).collect();
        let batching = config.max_batch_size > 0 && !input.is_shape_tensor;
        Self { datatype: datatype(input.data_type), dims, batching }
    }

    /// Zeros for so many batch items; for strings, empty ones.
    fn zeros(&self, items: usize) -> Result<Tensor, ServingError> {
        let batch = self.batching.then_some(items);
        let shape: Vec<usize> = batch.into_iter().chain(self.dims.iter().copied()).collect();
        let elements = shape.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim));
        let too_large = || ServingError::internal("an absent input is too large for memory");
        let elements = elements.ok_or_else(too_large)?;
        let datatype = self.datatype.unwrap_or(DataType::Bytes);
        Ok(match datatype.size_bytes() {
            None => Tensor::from_vec(&shape, vec![ByteString::default(); elements])?,
            Some(size) => {
                let bytes = elements.checked_mul(size).ok_or_else(too_large)?;
                let buffer = HostBuffer::try_zeroed(bytes)?;
                Tensor::from_allocation(datatype, &shape, Arc::new(buffer), 0)?
            }
        })
    }
}

fn pairs(config: &ModelConfig) -> Result<Vec<IdentityPair>, ServingError> {
    let model = &config.name;
    if config.output.len() > config.input.len() {
        return Err(ServingError::invalid_arg(format!(
            "model '{model}' has {} outputs, but the identity backend gives only as many as there are inputs: {}",
            config.output.len(),
            config.input.len()
        )));
    }
    let mut pairs = Vec::with_capacity(config.output.len());
    for (at, output) in config.output.iter().enumerate() {
        let same_number = output.name.strip_prefix("OUTPUT").map(|number| format!("INPUT{number}"));
        let named = config.input.iter().find(|input| Some(&input.name) == same_number.as_ref());
        let Some(input) = named.or_else(|| config.input.get(at)) else { continue };
        if input.data_type != output.data_type {
            let name = |number| datatype(number).map_or("no type", |datatype| datatype.wire_name());
            return Err(ServingError::invalid_arg(format!(
                "output '{}' of model '{model}' has the type {}, but input '{}', which it repeats, has {}",
                output.name,
                name(output.data_type),
                input.name,
                name(input.data_type)
            )));
        }
        pairs.push(IdentityPair {
            input: input.name.clone(),
            output: output.name.clone(),
            absent: AbsentInput::of(config, input),
        });
    }
    Ok(pairs)
}

fn items(request: &ActiveRequest) -> usize {
    usize::try_from(request.batch_size).unwrap_or(usize::MAX)
}

struct IdentityModel {
    delay: ExecuteDelay,
    pairs: Vec<IdentityPair>,
    tracing: Option<CustomTracing>,
}

impl BackendModel for IdentityModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        let delay = self.delay.of(placement);
        let tracing = self.tracing;
        Ok(Box::new(IdentityInstance { delay, pairs: self.pairs.clone(), tracing }))
    }
}

struct IdentityInstance {
    delay: Duration,
    pairs: Vec<IdentityPair>,
    tracing: Option<CustomTracing>,
}

impl ModelInstance for IdentityInstance {
    fn execute(&mut self, payload: BatchPayload) {
        if !self.delay.is_zero() {
            delay::wait(self.delay, &payload);
        }
        if let Some(tracing) = self.tracing {
            tracing.report(&payload);
        }
        let sizes: Vec<usize> = payload.requests().iter().map(items).collect();
        let mut sizes = sizes.into_iter();
        batch::execute_apart(payload, |_, inputs| {
            let items = sizes.next().unwrap_or(1);
            let output = |pair: &IdentityPair| {
                let given = inputs.iter().find(|(name, _)| *name == pair.input);
                let tensor = match given {
                    Some((_, tensor)) => tensor.clone(),
                    None => pair.absent.zeros(items)?,
                };
                Ok((pair.output.clone(), tensor))
            };
            self.pairs.iter().map(output).collect()
        });
    }

    fn time_depends_on_sizes_only(&self) -> bool {
        self.delay.is_zero() && self.tracing.is_none()
    }
}

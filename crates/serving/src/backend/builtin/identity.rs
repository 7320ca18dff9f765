//! `identity`: every output is the input of the same place.
//!
//! `INPUT3` goes to `OUTPUT3`; inputs and outputs that are not called so are paired in the order of the
//! configuration. Parameters: `execute_delay_ms`, `instance_wise_delay_multiplier`, `creation_delay_sec`.

use std::time::Duration;

use super::delay::{self, ExecuteDelay};
use crate::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use crate::batch;
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
        std::thread::sleep(creation);
        Ok(Box::new(IdentityModel { delay, pairs }))
    }
}

/// Input and output by name.
type IdentityPair = (String, String);

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
        pairs.push((input.name.clone(), output.name.clone()));
    }
    Ok(pairs)
}

struct IdentityModel {
    delay: ExecuteDelay,
    pairs: Vec<IdentityPair>,
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
        Ok(Box::new(IdentityInstance { delay, pairs: self.pairs.clone() }))
    }
}

struct IdentityInstance {
    delay: Duration,
    pairs: Vec<IdentityPair>,
}

impl ModelInstance for IdentityInstance {
    fn execute(&mut self, payload: BatchPayload) {
        if !self.delay.is_zero() {
            delay::wait(self.delay, &payload);
        }
        batch::execute(payload, |inputs| {
            let output = |(input, output): &IdentityPair| {
                let (_, tensor) = inputs.iter().find(|(name, _)| name == input)?;
                Some((output.clone(), tensor.clone()))
            };
            Ok(self.pairs.iter().filter_map(output).collect())
        });
    }

    fn time_depends_on_sizes_only(&self) -> bool {
        self.delay.is_zero()
    }
}

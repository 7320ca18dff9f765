//! Delays that configurations ask of these backends.

use std::time::{Duration, Instant};

use crate::backend::{BatchPayload, InstancePlacement, ModelFiles};
use crate::error::ServingError;

/// Between two looks at whether anybody still waits.
const STEP: Duration = Duration::from_millis(5);

/// In the folder of a version: an object of parameters that this version has where the configuration is silent.
const PARAMETERS: &str = "parameters.json";

/// A parameter that is a number; 0 where neither the configuration nor the version has it.
///
/// # Errors
/// When it is no number, or the file of parameters cannot be read.
pub(super) fn number(files: &ModelFiles, name: &str) -> Result<u64, ServingError> {
    let text = match files.parameter(name) {
        Some(text) => text.to_owned(),
        None => match of_version(files, name)? {
            Some(text) => text,
            None => return Ok(0),
        },
    };
    text.trim().parse().map_err(|_| {
        ServingError::invalid_arg(format!(
            "parameter '{name}' of model '{}' must be an integer >= 0, found '{text}'",
            files.name
        ))
    })
}

fn of_version(files: &ModelFiles, name: &str) -> Result<Option<String>, ServingError> {
    let path = files.version_dir.join(PARAMETERS);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(ServingError::internal(format!(
                "{} cannot be read: {error}",
                path.display()
            )));
        }
    };
    let parameters: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text)
        .map_err(|error| {
            let path = path.display();
            ServingError::invalid_arg(format!("{path} must be an object of parameters: {error}"))
        })?;
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    Ok(parameters.get(name).map(text))
}

/// How long each execution takes, in addition to its work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExecuteDelay {
    delay: Duration,
    /// Instance n takes n times this as long; instance 0, and all where it is 0, take the plain delay.
    multiplier: u64,
}

impl ExecuteDelay {
    pub(super) fn from_files(files: &ModelFiles) -> Result<Self, ServingError> {
        Ok(Self {
            delay: Duration::from_millis(number(files, "execute_delay_ms")?),
            multiplier: number(files, "instance_wise_delay_multiplier")?,
        })
    }

    /// The delay of one instance, whose number stands at the end of its name.
    pub(super) fn of(self, placement: &InstancePlacement) -> Duration {
        let number = placement.name.rsplit('_').next().and_then(|text| text.parse::<u64>().ok());
        let times = self.multiplier.saturating_mul(number.unwrap_or(0)).max(1);
        self.delay.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
    }
}

/// Waits, but not longer than anybody waits for the answer.
pub(super) fn wait(delay: Duration, payload: &BatchPayload) {
    wait_while(delay, || payload.requests().iter().any(|request| !request.is_cancelled()));
}

/// Waits until the time is over or `wanted` is not true any more.
pub(super) fn wait_while(delay: Duration, wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while wanted() {
        let rest = delay.saturating_sub(start.elapsed());
        if rest.is_zero() {
            return;
        }
        std::thread::sleep(rest.min(STEP));
    }
}

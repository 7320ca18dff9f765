//! Settings of the front end for SageMaker, and the models that came through it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use galatea_tensor::OrderedMap;

/// Variable for the condition that the ping reports: `live` or `ready`.
pub const PING_MODE: &str = "SAGEMAKER_TRITON_PING_MODE";
/// Variable for the model of invocations.
pub const DEFAULT_MODEL: &str = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME";
/// Variable for the kind of invocations.
pub const INFERENCE_TYPE: &str = "SAGEMAKER_TRITON_INFERENCE_TYPE";

/// Kind of invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SageMakerInvocation {
    /// An inference with tensors.
    Infer,
    /// A generation with one answer.
    Generate,
    /// A generation whose answers are events.
    GenerateStream,
}

/// The kinds of invocations by their names.
const INVOCATIONS: [(&str, SageMakerInvocation); 3] = [
    ("infer", SageMakerInvocation::Infer),
    ("generate", SageMakerInvocation::Generate),
    ("generate_stream", SageMakerInvocation::GenerateStream),
];

/// The models that came through the front end, by the name that SageMaker gives.
#[derive(Debug, Default)]
pub(crate) struct HostedModels {
    models: Mutex<OrderedMap<String, HostedModel>>,
}

/// A model that SageMaker has loaded.
#[derive(Debug, Clone)]
pub(crate) struct HostedModel {
    /// Its name in the server.
    pub(crate) name: String,
    /// The repository that it came in.
    pub(crate) path: PathBuf,
}

impl HostedModels {
    /// Returns the models, locked.
    pub(crate) fn models(&self) -> MutexGuard<'_, OrderedMap<String, HostedModel>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Settings of the endpoint from the environment, and the models that were loaded through it.
#[derive(Debug)]
pub struct SageMaker {
    /// Whether the ping reports that the server lives, rather than that it is ready.
    pub(crate) ping_live: bool,
    /// Name of the model of invocations.
    pub(crate) model: String,
    /// Kind of invocations.
    pub(crate) invocation: SageMakerInvocation,
    /// Models that were loaded through the front end.
    pub(crate) hosted: HostedModels,
}

impl Default for SageMaker {
    fn default() -> Self {
        Self {
            ping_live: false,
            // The name in the error of a server that was given none.
            model: format!("unspecified_{DEFAULT_MODEL}"),
            invocation: SageMakerInvocation::Infer,
            hosted: HostedModels::default(),
        }
    }
}

impl SageMaker {
    /// Reads the environment.
    ///
    /// # Errors
    /// Fails when it names an unknown kind of invocation or ping.
    pub fn of<'e>(environment: impl Fn(&str) -> Option<&'e str>) -> Result<Self, String> {
        let mut read = Self::default();
        match environment(PING_MODE) {
            None | Some("ready") => {}
            Some("live") => read.ping_live = true,
            Some(other) => {
                return Err(format!("{PING_MODE} must be live or ready, found '{other}'"));
            }
        }
        if let Some(model) = environment(DEFAULT_MODEL) {
            model.clone_into(&mut read.model);
        }
        if let Some(kind) = environment(INFERENCE_TYPE) {
            let found = INVOCATIONS.iter().find(|(name, _)| *name == kind);
            let (_, invocation) = found.ok_or_else(|| {
                format!(
                    "{INFERENCE_TYPE} must be infer, generate or generate_stream, found '{kind}'"
                )
            })?;
            read.invocation = *invocation;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses() {
        let read = |name: &'static str, value: &'static str| {
            SageMaker::of(|asked| (asked == name).then_some(value))
        };
        let plain = SageMaker::of(|_| None).unwrap();
        assert!(!plain.ping_live);
        assert_eq!(plain.model, "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME");
        assert!(read(PING_MODE, "live").unwrap().ping_live);
        assert_eq!(read(DEFAULT_MODEL, "m").unwrap().model, "m");
        assert!(read(INFERENCE_TYPE, "generate").is_ok());
        for (name, value, text) in [
            (PING_MODE, "alive", "must be live or ready, found 'alive'"),
            (INFERENCE_TYPE, "guess", "must be infer, generate or generate_stream, found 'guess'"),
        ] {
            let error = read(name, value).unwrap_err();
            assert!(error.starts_with(name) && error.ends_with(text), "{error}");
        }
    }
}

//! A model version as a front end has it for one request.

use std::fmt;
use std::sync::{Arc, Weak};

use super::Core;
use super::ab_variants::{LiveAbTest, TestedVariants};
use super::describe::{ModelMetadata, TensorMetadata};
use super::loaded::{LoadedVersion, OutputLabels, enqueue, metadata};
use super::models::parse_version;
use crate::ab_test::AbVariant;
use crate::config::ModelConfig;
use crate::error::ServingError;
use crate::payload::ExecutionContext;
use crate::request::{InferenceRequest, InferenceResponse, ResponseSink};

/// A version that was looked up once, for all that a request asks of it.
///
/// It means that version also where a later one is loaded meanwhile. It keeps neither the server nor the instances of
/// the version, so that it may be dropped on any thread. A version that has left the service has requests taken by its
/// successor, as [`infer`](Self::infer) says.
#[derive(Clone)]
pub struct ModelHandle {
    core: Weak<Core>,
    loaded: Weak<LoadedVersion>,
    context: Arc<ExecutionContext>,
    labels: Arc<OutputLabels>,
    /// Version that was asked for; `None` for the latest.
    wanted: Option<i64>,
    /// A/B test of the model, where no version was asked for.
    pub(super) tested: Option<TestedVariants>,
    /// Variant that was chosen already.
    bound: Option<AbVariant>,
}

impl fmt::Debug for ModelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelHandle")
            .field("name", &self.name())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Looks a model up by its name, and a version in digits; the empty text stands for the latest that is ready.
    ///
    /// # Errors
    /// Fails when the text is no version, and when the version is unknown or not ready.
    pub fn resolve(&self, name: &str, version: &str) -> Result<ModelHandle, ServingError> {
        let wanted = parse_version(version)?;
        let models = self.models();
        let loaded = models.find(name, wanted)?;
        Ok(ModelHandle {
            core: Weak::clone(&self.this),
            loaded: Arc::downgrade(loaded),
            context: Arc::clone(&loaded.context),
            labels: Arc::clone(&loaded.labels),
            wanted,
            tested: match wanted {
                None => models.ab_test(&loaded.id).map(LiveAbTest::tested),
                Some(_) => None,
            },
            bound: None,
        })
    }
}

impl ModelHandle {
    /// Name of the model, without a namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.context.name
    }

    /// Version that was found, in digits.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.context.version
    }

    /// The completed configuration.
    #[must_use]
    pub fn config(&self) -> Arc<ModelConfig> {
        let loaded = self.loaded.upgrade();
        loaded.map_or_else(|| Arc::clone(&self.context.config), |loaded| loaded.config())
    }

    /// Whether inputs and outputs have a batch dimension.
    #[must_use]
    pub fn has_batches(&self) -> bool {
        self.context.config.max_batch_size > 0
    }

    /// Whether a request may have no answer, or many.
    #[must_use]
    pub fn is_decoupled(&self) -> bool {
        let policy = self.context.config.model_transaction_policy.as_ref();
        policy.is_some_and(|policy| policy.decoupled)
    }

    /// Inputs that the model takes.
    #[must_use]
    pub fn inputs(&self) -> Vec<TensorMetadata> {
        metadata(&self.context.config, Vec::new()).inputs
    }

    /// Description of the model. Where the latest version was asked for it names all that are ready now.
    #[must_use]
    pub fn metadata(&self) -> ModelMetadata {
        let core = self.core.upgrade().filter(|_| self.wanted.is_none());
        let ready = core.zip(self.loaded.upgrade());
        let ready = ready.map(|(core, loaded)| core.models().ready_versions(&loaded.id));
        let own = || vec![self.version().to_owned()];
        let versions = ready.filter(|versions| !versions.is_empty()).unwrap_or_else(own);
        metadata(&self.context.config, versions)
    }

    /// Labels of an output's classes by index, where the configuration names a file of them.
    #[must_use]
    pub fn labels(&self, output: &str) -> Option<&[String]> {
        self.labels.get(output).map(|labels| labels.as_slice())
    }

    /// Checks a request and takes it for execution. After `Ok` the sink is called, once for models that are not
    /// decoupled.
    ///
    /// A version that has left the service takes nothing. What was asked for is looked up again then, so that the
    /// version's successor gets the request.
    ///
    /// # Errors
    /// Fails when the server or the version takes no requests, or this one does not fit the model or is refused by
    /// its scheduler. The sink is not called then.
    pub fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), ServingError> {
        self.core()?.check_accepts()?;
        self.infer_for_model(request, sink)
    }

    /// Takes a request of a model, also while the server stops: the request behind it was taken before.
    pub(crate) fn infer_for_model(
        &self,
        mut request: InferenceRequest,
        sink: ResponseSink,
    ) -> Result<(), ServingError> {
        request.model_name.clone_from(&self.context.name);
        let Some(tested) = &self.tested else {
            return enqueue(self.in_service()?, || self.successor(), request, sink);
        };
        let variant = self.bound.unwrap_or_else(|| tested.test.assign(&request));
        let Some(loaded) = tested.find(variant) else {
            return enqueue(self.in_service()?, || self.successor(), request, sink);
        };
        let sink = tested.test.watch(variant, sink);
        let result = enqueue(loaded, || self.successor(), request, sink);
        if let Err(error) = &result {
            tested.test.refused(variant, error);
        }
        result
    }

    /// The same model, bound to the variant of its A/B test that a request without a key gets.
    pub(super) fn assigned(&self) -> Self {
        let drawn = self.tested.as_ref().map(|tested| tested.test.assign_any());
        Self { bound: self.bound.or(drawn), ..self.clone() }
    }

    /// The version that gave a response: this one, or the one that has taken its place.
    #[must_use]
    pub fn of_response(&self, response: &InferenceResponse) -> Self {
        let other = self.tested.is_some() && response.model_version != self.version();
        let gone = other || self.loaded.upgrade().is_none_or(|loaded| loaded.has_left());
        let core = self.core.upgrade().filter(|_| gone);
        let successor =
            core.and_then(|core| core.resolve(self.name(), &response.model_version).ok());
        successor.unwrap_or_else(|| self.clone())
    }

    pub(super) fn core(&self) -> Result<Arc<Core>, ServingError> {
        self.core.upgrade().ok_or_else(|| ServingError::unavailable("Server exiting"))
    }

    /// The version or the variant that was chosen, or where it has left the service its successor.
    pub(super) fn in_service(&self) -> Result<Arc<LoadedVersion>, ServingError> {
        let bound = self.tested.as_ref().zip(self.bound);
        if let Some(loaded) = bound.and_then(|(tested, variant)| tested.find(variant)) {
            return Ok(loaded);
        }
        let serving = self.loaded.upgrade().filter(|loaded| !loaded.has_left());
        serving.map_or_else(|| self.successor(), Ok)
    }

    /// Version that now serves under the name and version that were asked for.
    fn successor(&self) -> Result<Arc<LoadedVersion>, ServingError> {
        self.core()?.models().find(self.name(), self.wanted).cloned()
    }
}

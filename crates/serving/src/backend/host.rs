//! Services that a backend may ask of the server.

use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::custom_metrics::CustomMetrics;
use crate::error::ServingError;
use crate::payload::{BatchPayload, ExecutionContext, HandedRequest};
use crate::request::{InferenceRequest, ResponseSink};

/// Files and configuration of a client, in the place of a model's files on disk.
#[derive(Clone, Debug, Default)]
pub struct LoadOverrides {
    /// The configuration as JSON.
    pub config: Option<String>,
    /// Files by their path in the model's folder. If there are any, the folder on disk is not used at all.
    pub files: Vec<(String, Bytes)>,
}

/// Fate of an ensemble's models when it is unloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnloadDependents {
    /// They stay.
    #[default]
    Keep,
    /// Models that nobody else needs go too.
    Unload,
}

/// A version of a model that another model calls.
pub trait CalledModel {
    /// Returns whether its requests have any number of answers.
    fn is_decoupled(&self) -> bool;

    /// Hands it a request, whose answers go to the sink.
    ///
    /// # Errors
    /// When the request is refused; the sink then gets nothing.
    fn infer(&self, request: InferenceRequest, sink: ResponseSink) -> Result<(), ServingError>;
}

/// The server as a model sees it that calls others.
pub trait ModelHost: Send + Sync {
    /// Looks a version up, or with an empty text the latest one; nothing where it is not ready.
    ///
    /// # Errors
    /// When the text is no version.
    fn model(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Option<Box<dyn CalledModel>>, ServingError>;

    /// Loads a model and waits for the end.
    ///
    /// # Errors
    /// When the control mode does not permit it or the model cannot be loaded.
    fn load(&self, model: &str, overrides: LoadOverrides) -> Result<(), ServingError>;

    /// Loads a version again whose files have changed under it, and hands these of its requests to what is loaded then.
    /// This does not wait. Requests that cannot be handed on are answered with an error.
    fn load_again(&self, version: &Arc<ExecutionContext>, requests: Vec<HandedRequest>);

    /// Unloads a model, without waiting for its requests.
    ///
    /// # Errors
    /// When the control mode does not permit it.
    fn unload(&self, model: &str, dependents: UnloadDependents) -> Result<(), ServingError>;
}

/// A way to the server that does not keep it, and to its custom metrics, which a model may still use at its end.
#[derive(Clone, Default)]
pub struct HostLink {
    host: Option<Weak<dyn ModelHost>>,
    metrics: Arc<CustomMetrics>,
}

impl HostLink {
    /// The way to a server.
    #[must_use]
    pub fn new(host: Weak<dyn ModelHost>, metrics: Arc<CustomMetrics>) -> Self {
        Self { host: Some(host), metrics }
    }

    /// Metrics that models make themselves.
    #[must_use]
    pub fn metrics(&self) -> &CustomMetrics {
        &self.metrics
    }

    /// Hands a batch on whose version has files that changed: to the version that is loaded in its place.
    pub(crate) fn hand_on(&self, payload: BatchPayload) {
        match self.get() {
            Ok(host) => {
                let version = Arc::clone(payload.context());
                host.load_again(&version, payload.hand_over());
            }
            Err(error) => payload.fail(&error),
        }
    }

    /// The server.
    ///
    /// # Errors
    /// UNAVAILABLE when it has gone, or there is none.
    pub fn get(&self) -> Result<Arc<dyn ModelHost>, ServingError> {
        let host = self.host.as_ref().and_then(Weak::upgrade);
        host.ok_or_else(|| ServingError::unavailable("Server exiting"))
    }
}

impl fmt::Debug for HostLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostLink")
    }
}

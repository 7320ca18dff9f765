//! Receiver of the calls that the workers of a model make.

use std::sync::Arc;

use super::load_waits::ModelLoadWaits;
use crate::backend::{HostLink, ModelHost};
use crate::custom_metrics::CustomMetrics;
use crate::error::ServingError;

/// Receiver of the calls of a model's workers.
#[derive(Debug)]
pub(super) struct BlsCallee {
    /// The model's name.
    model: String,
    host: HostLink,
    /// Waits of all models of the server while they are loaded.
    pub(super) loads: Arc<ModelLoadWaits>,
}

impl BlsCallee {
    pub(super) fn new(model: &str, host: &HostLink, loads: &Arc<ModelLoadWaits>) -> Arc<Self> {
        let host = host.clone();
        let loads = Arc::clone(loads);
        Arc::new(Self { model: model.to_owned(), host, loads })
    }

    /// The model's name.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// The metrics that models make.
    pub(super) fn metrics(&self) -> &CustomMetrics {
        self.host.metrics()
    }

    /// The server.
    ///
    /// # Errors
    /// UNAVAILABLE when it stops.
    pub(super) fn host(&self) -> Result<Arc<dyn ModelHost>, ServingError> {
        self.host.get()
    }
}

//! Operations that an engine has prepared.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use galatea::{Engine, OperationSettings, PreparedOperation};

use crate::api_status::CallFailure;

/// Prepared operations that are kept for each engine.
const MAX_KEPT: usize = 64;

/// Key of a prepared operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperationKey {
    pub(crate) settings: OperationSettings,
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) device: Option<String>,
}

#[derive(Debug)]
struct KeptOperation {
    key: OperationKey,
    operation: Arc<PreparedOperation>,
}

/// Operations that were prepared, the latest last.
#[derive(Debug, Default)]
pub(crate) struct OperationCache(Mutex<VecDeque<KeptOperation>>);

impl OperationCache {
    /// Finds an operation, or prepares it.
    pub(crate) fn find(
        &self,
        engine: &Engine,
        key: &OperationKey,
    ) -> Result<Arc<PreparedOperation>, CallFailure> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().iter().find(|one| one.key == *key) {
            return Ok(Arc::clone(&found.operation));
        }
        let shapes: Vec<&[usize]> = key.shapes.iter().map(Vec::as_slice).collect();
        let operation = engine.operation(&key.settings, &shapes, key.device.as_deref())?;
        let operation = Arc::new(operation);
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(KeptOperation { key: key.clone(), operation: Arc::clone(&operation) });
        Ok(operation)
    }
}

//! Functions of chunks that an engine runs, with sessions behind it for when it gives up.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use galatea_runtime::ExecutionProvider;
use galatea_tensor::Tensor;

use super::{ChunkFunctions, ChunkManifest, ChunkPlace};
use crate::error::{LlmError, LlmErrorKind, Result};

/// Number of runs that may fail one after the other before an engine is given up.
const MAX_FAILURES: usize = 3;

/// Runner of the packages of a folder of chunks as they are, such as Core ML.
///
/// A run that fails with [`LlmErrorKind::Lost`] was no fault of its inputs: what sequences had is computed anew. One
/// that fails with [`LlmErrorKind::Unavailable`] ends the engine: sessions go on.
pub trait ChunkEngine: Send + Sync {
    /// Loads every function of a folder of chunks. May take minutes.
    ///
    /// # Errors
    /// When a package is refused; then sessions run all of them.
    fn load(&self, folder: &Path, manifest: &ChunkManifest) -> Result<Box<dyn ChunkFunctions>>;

    /// Functions that compute where the engine gives up.
    fn behind(&self) -> Vec<Arc<dyn ExecutionProvider>>;
}

/// Maker of the functions that go on where others give up.
pub(super) type FallbackMaker = Box<dyn FnOnce() -> Result<Box<dyn ChunkFunctions>> + Send>;

/// Functions, and others that take their place when they fail for good.
pub(super) struct ReplaceableFunctions {
    now: Box<dyn ChunkFunctions>,
    behind: Option<FallbackMaker>,
    /// How many runs have failed since the last one that did not.
    failures: usize,
}

impl ReplaceableFunctions {
    pub(super) fn new(now: Box<dyn ChunkFunctions>, behind: FallbackMaker) -> Self {
        Self { now, behind: Some(behind), failures: 0 }
    }

    /// Meaning of a failure for the step.
    fn failed(&mut self, error: LlmError) -> LlmError {
        if error.kind() == LlmErrorKind::Lost {
            return error;
        }
        self.failures += 1;
        if error.kind() != LlmErrorKind::Unavailable && self.failures < MAX_FAILURES {
            return error;
        }
        let Some(behind) = self.behind.take() else { return error };
        tracing::warn!(%error, "an engine for chunks is given up, the processor goes on");
        match behind() {
            Ok(functions) => {
                self.now = functions;
                LlmError::new(LlmErrorKind::Lost, error.place(), error.message())
            }
            Err(own) => own,
        }
    }
}

impl ChunkFunctions for ReplaceableFunctions {
    fn run(&mut self, place: ChunkPlace, inputs: &HashMap<String, Tensor>) -> Result<Vec<Tensor>> {
        let given = self.now.run(place, inputs).map_err(|error| self.failed(error))?;
        self.failures = 0;
        Ok(given)
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<()> {
        self.now.copy(from, to).map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails as it is told, or gives nothing.
    struct Fails(Option<LlmErrorKind>);

    impl ChunkFunctions for Fails {
        fn run(&mut self, _: ChunkPlace, _: &HashMap<String, Tensor>) -> Result<Vec<Tensor>> {
            self.0.map_or(Ok(Vec::new()), |kind| Err(LlmError::new(kind, "here", "broken")))
        }

        fn copy(&mut self, _: usize, _: usize) -> Result<()> {
            Ok(())
        }
    }

    /// Errors of the first runs of functions that always fail, with others behind them that do not.
    fn said(kind: LlmErrorKind) -> Vec<Option<LlmErrorKind>> {
        let behind: FallbackMaker = Box::new(|| Ok(Box::new(Fails(None))));
        let mut functions = ReplaceableFunctions::new(Box::new(Fails(Some(kind))), behind);
        let place = ChunkPlace { chunk: 0, rows: 1, sequence: 0 };
        let mut run = || functions.run(place, &HashMap::new()).err().map(|error| error.kind());
        (0..4).map(|_| run()).collect()
    }

    #[test]
    fn an_engine_that_gives_up_is_replaced_and_what_was_lost_is_computed_anew() {
        assert_eq!(said(LlmErrorKind::Unavailable), [Some(LlmErrorKind::Lost), None, None, None]);
        let lost = Some(LlmErrorKind::Lost);
        let failed = Some(LlmErrorKind::Model);
        assert_eq!(said(LlmErrorKind::Model), [failed, failed, lost, None]);
        assert_eq!(said(LlmErrorKind::Lost), [lost; 4]);
    }
}

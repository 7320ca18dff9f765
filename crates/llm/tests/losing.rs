//! A provider whose device is lost again and again.

use std::sync::atomic::{AtomicUsize, Ordering};

use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, PartitionRun, ProviderClaims,
    ProviderTraits, RunFence, RuntimeError,
};

use crate::reference::Reference;

/// The reference evaluation on a device that is lost with every fourth run, and opened again.
#[derive(Debug)]
pub(crate) struct LosingReference;

impl ExecutionProvider for LosingReference {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("reference")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        Reference { failing: None }.claim(request)
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let evaluation = Reference { failing: None }.compile(request)?;
        Ok(Box::new(LosingEvaluation { evaluation, runs: AtomicUsize::new(0) }))
    }
}

struct LosingEvaluation {
    evaluation: Box<dyn Executable>,
    runs: AtomicUsize,
}

impl Executable for LosingEvaluation {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        if self.runs.fetch_add(1, Ordering::Relaxed) < 3 {
            return self.evaluation.submit(run);
        }
        RunFence::failed(RuntimeError::Lost {
            provider: "reference".into(),
            message: "pulled out".into(),
            hung: false,
        })
    }
}

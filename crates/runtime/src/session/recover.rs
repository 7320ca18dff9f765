//! Recovery from a failed run: another provider takes the nodes, or what was lost with a device is compiled again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use galatea_graph::Datum;
use galatea_tensor::MemoryKind;

use super::compiled::{CompiledPartitions, PartFailure};
use super::compiled_graph::{CompiledGraph, lock};
use super::parts::PartsRun;
use super::run::PartsResult;
use crate::error::RuntimeError;

impl CompiledGraph {
    /// Repeats a run that failed, compiled again where a device was lost and without its provider where the
    /// partition has never run. Partitions that succeed are kept.
    ///
    /// # Errors
    /// Returns the first failure where nobody can run it.
    pub(super) fn run_again(
        &self,
        mut compiled: Arc<CompiledPartitions>,
        mut failure: PartFailure,
        run: &PartsRun<'_>,
    ) -> Result<PartsResult, RuntimeError> {
        let again = |compiled: &CompiledPartitions| compiled.run(run.clone(), &|_| None);
        if let Some(mended) = self.recompile(&compiled, &failure) {
            match again(&mended) {
                Ok(result) => return Ok(result),
                Err(next) => (compiled, failure) = (mended, next),
            }
        }
        let first = failure.error.clone();
        let mut claims = lock(&self.claims).clone();
        loop {
            let part = &compiled.parts[failure.part];
            // Limits hold for every provider, and who loses a device twice in a run would lose the next.
            let limited = matches!(
                failure.error,
                RuntimeError::MemoryLimit { .. } | RuntimeError::Lost { .. }
            );
            let proven = part.proven.load(Ordering::Relaxed);
            if proven || limited || self.providers.len() == 1 {
                return Err(first);
            }
            let text = failure.error.to_string();
            self.withdraw(&mut claims, part.provider, part.nodes.clone(), &text);
            let Ok(next) = self.compile(&mut claims) else { return Err(first) };
            compiled = Arc::new(next);
            match again(&compiled) {
                Ok(result) => {
                    self.keep(claims, &compiled);
                    return Ok(result);
                }
                Err(next) => failure = next,
            }
        }
    }

    /// Compiles again what was lost with a device, without the partition that hung it: its provider may have
    /// the device back, otherwise others take the nodes. None where nothing was lost, or nobody can.
    pub(super) fn recompile(
        &self,
        compiled: &Arc<CompiledPartitions>,
        failure: &PartFailure,
    ) -> Option<Arc<CompiledPartitions>> {
        let RuntimeError::Lost { hung, .. } = failure.error else { return None };
        let one = lock(&self.recompiling);
        let current = self.current();
        if !Arc::ptr_eq(&current, compiled) {
            return Some(current);
        }
        let mut claims = lock(&self.claims).clone();
        let part = &compiled.parts[failure.part];
        if hung {
            let text = failure.error.to_string();
            self.withdraw(&mut claims, part.provider, part.nodes.clone(), &text);
        } else {
            tracing::warn!(model = %self.graph.name, "{}; it is compiled anew", failure.error);
        }
        let Ok(mended) = self.compile(&mut claims) else {
            if hung {
                // Not even later, when somebody else has the device back.
                *lock(&self.claims) = claims;
            }
            return None;
        };
        let mended = Arc::new(mended);
        self.keep(claims, &mended);
        drop(one);
        Some(mended)
    }

    /// Returns whether some partition has never run and another provider may take it.
    pub(super) fn may_fall_back(&self, compiled: &CompiledPartitions) -> bool {
        self.providers.len() > 1
            && compiled.parts.iter().any(|part| !part.proven.load(Ordering::Relaxed))
    }

    /// Prepares later runs after one whose inputs are gone with it: they go to others where the provider failed
    /// in its first run.
    pub(super) fn fall_back_later(
        &self,
        compiled: &Arc<CompiledPartitions>,
        failure: &PartFailure,
    ) {
        let part = &compiled.parts[failure.part];
        let first = self.providers.len() > 1 && !part.proven.load(Ordering::Relaxed);
        match failure.error {
            RuntimeError::Lost { .. } => {
                self.recompile(compiled, failure);
            }
            RuntimeError::Provider { .. } if first => {
                let mut claims = lock(&self.claims).clone();
                let text = failure.error.to_string();
                self.withdraw(&mut claims, part.provider, part.nodes.clone(), &text);
                if let Ok(next) = self.compile(&mut claims) {
                    self.keep(claims, &Arc::new(next));
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a second owner of an input costs little: an input that is changed in place would be copied.
pub(super) fn is_light(input: &Datum) -> bool {
    /// The most bytes that are copied at once without being noticed.
    const LIGHT_BYTES: usize = 1 << 20;
    let Some(tensor) = input.as_tensor() else { return true };
    let on_device =
        tensor.whole_allocation().is_some_and(|(memory, _)| memory.kind() == MemoryKind::Device);
    !on_device && tensor.size_bytes() <= LIGHT_BYTES
}

//! Recovery of a session from a failed run: another provider takes the nodes, or what was lost with a device is
//! compiled anew.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use galatea_graph::Datum;
use galatea_tensor::MemoryKind;

use super::{ClaimSet, CompiledPartitions, OutputMask, PartFailure, Session, lock};
use crate::error::RuntimeError;
use crate::provider::ProfileRow;

impl Session {
    /// Runs what failed once more, compiled anew where a device was lost and without its provider where the
    /// partition has never run.
    pub(super) fn run_elsewhere(
        &self,
        mut compiled: Arc<CompiledPartitions>,
        mut failure: PartFailure,
        inputs: &[Datum],
        wanted: OutputMask<'_>,
        rows: &mut Option<Vec<ProfileRow>>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let mut again = |compiled: &CompiledPartitions| {
            if let Some(rows) = rows {
                rows.clear();
            }
            compiled.run(inputs.to_vec(), wanted, rows)
        };
        if let Some(mended) = self.recompile(&compiled, &failure) {
            match again(&mended) {
                Ok(outputs) => return Ok(outputs),
                Err(next) => (compiled, failure) = (mended, next),
            }
        }
        let first = failure.error.clone();
        let mut offers = lock(&self.offers).clone();
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
            self.withdraw(&mut offers, part.provider, part.nodes.clone(), &text);
            let Ok(next) = self.compile(&mut offers) else { return Err(first) };
            compiled = Arc::new(next);
            match again(&compiled) {
                Ok(outputs) => {
                    self.keep(offers, &compiled);
                    return Ok(outputs);
                }
                Err(next) => failure = next,
            }
        }
    }

    /// From now on runs take these partitions.
    fn keep(&self, offers: ClaimSet, compiled: &Arc<CompiledPartitions>) {
        *lock(&self.offers) = offers;
        *self.compiled.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(compiled);
        if let Some(routes) = &self.routes {
            routes.forget();
        }
    }

    /// Compiles anew what was lost with a device, without the partition that hung it: its provider may have
    /// the device back, otherwise others take the nodes. None where nothing was lost, or nobody can.
    pub(super) fn recompile(
        &self,
        compiled: &Arc<CompiledPartitions>,
        failure: &PartFailure,
    ) -> Option<Arc<CompiledPartitions>> {
        let RuntimeError::Lost { hung, .. } = failure.error else { return None };
        let one = lock(&self.mending);
        let current = self.current();
        if !Arc::ptr_eq(&current, compiled) {
            return Some(current);
        }
        let mut offers = lock(&self.offers).clone();
        let part = &compiled.parts[failure.part];
        if hung {
            let text = failure.error.to_string();
            self.withdraw(&mut offers, part.provider, part.nodes.clone(), &text);
        } else {
            tracing::warn!(model = %self.graph.name, "{}; it is compiled anew", failure.error);
        }
        let Ok(mended) = self.compile(&mut offers) else {
            if hung {
                // Not even later, when somebody else has the device back.
                *lock(&self.offers) = offers;
            }
            return None;
        };
        let mended = Arc::new(mended);
        self.keep(offers, &mended);
        drop(one);
        Some(mended)
    }

    /// Returns whether some partition has never run and another provider may take it.
    pub(super) fn may_demote(&self, compiled: &CompiledPartitions) -> bool {
        self.providers.len() > 1
            && compiled.parts.iter().any(|part| !part.proven.load(Ordering::Relaxed))
    }

    /// After a run whose inputs are gone with it: later runs go to others where this one's provider failed
    /// in its first.
    pub(super) fn fall_back(&self, compiled: &Arc<CompiledPartitions>, failure: &PartFailure) {
        let part = &compiled.parts[failure.part];
        let first = self.providers.len() > 1 && !part.proven.load(Ordering::Relaxed);
        match failure.error {
            RuntimeError::Lost { .. } => {
                self.recompile(compiled, failure);
            }
            RuntimeError::Provider { .. } if first => {
                let mut offers = lock(&self.offers).clone();
                let text = failure.error.to_string();
                self.withdraw(&mut offers, part.provider, part.nodes.clone(), &text);
                if let Ok(next) = self.compile(&mut offers) {
                    self.keep(offers, &Arc::new(next));
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

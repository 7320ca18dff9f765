//! A test that serves: assigns requests to variants and hears how they ended.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::plan::{AbTestPlan, AbVariant, StickyKey};
use super::record::{AbOutcome, AbRecord, AbStatistics};
use super::sequences::OpenSequences;
use crate::error::{ErrorCode, ServingError};
use crate::request::{InferenceRequest, ResponseSink, SinkAnswer};

/// A hash that is the same in every run of the program.
type FixedHash = BuildHasherDefault<DefaultHasher>;

/// An A/B test of a model.
#[derive(Debug)]
pub struct AbTest {
    model: String,
    plan: AbTestPlan,
    /// Whether the model's scheduler keeps the requests of a sequence together.
    sequences: bool,
    next: AtomicU64,
    open: Mutex<OpenSequences>,
    record: Mutex<AbRecord>,
}

/// A variant as it is told of.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantReport {
    /// Variant.
    pub variant: AbVariant,
    /// Version.
    pub version: i64,
    /// Share of requests that go to it now.
    pub share: f64,
}

/// A test as it is told of.
#[derive(Clone, Debug, PartialEq)]
pub struct AbReport {
    /// Model.
    pub model: String,
    /// Settings.
    pub plan: AbTestPlan,
    /// A and B.
    pub variants: [VariantReport; 2],
    /// Numbers so far.
    pub statistics: AbStatistics,
}

impl AbTest {
    /// A test that begins now.
    #[must_use]
    pub fn new(model: &str, plan: AbTestPlan, sequences: bool) -> Self {
        Self {
            model: model.to_owned(),
            record: Mutex::new(AbRecord::new(plan.stop, plan.share)),
            plan,
            sequences,
            next: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }

    /// Settings of the test.
    #[must_use]
    pub fn plan(&self) -> &AbTestPlan {
        &self.plan
    }

    /// Variant for a request.
    #[must_use]
    pub fn assign(&self, request: &InferenceRequest) -> AbVariant {
        let id = &request.correlation;
        if !self.sequences || !id.names_sequence() {
            return self.drawn(self.key(request));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // What was begun at a variant has its state there, also when the test has ended meanwhile.
        let going = open.find(id).filter(|_| !request.sequence_start);
        let variant = going.unwrap_or_else(|| self.drawn(self.key(request)));
        match request.sequence_end {
            true => open.close(id),
            false if going.is_none() => open.open(id, variant),
            false => {}
        }
        variant
    }

    /// Variant for a request of which nothing is known yet.
    #[must_use]
    pub fn assign_any(&self) -> AbVariant {
        self.drawn(None)
    }

    /// Hash of what requests share that stay together.
    fn key(&self, request: &InferenceRequest) -> Option<u64> {
        let hash = FixedHash::default();
        match self.plan.sticky {
            StickyKey::RequestId if !request.id.is_empty() => Some(hash.hash_one(&request.id)),
            StickyKey::Correlation if request.correlation.names_sequence() => {
                Some(hash.hash_one(&request.correlation))
            }
            StickyKey::None | StickyKey::RequestId | StickyKey::Correlation => None,
        }
    }

    fn drawn(&self, key: Option<u64>) -> AbVariant {
        if let Some(outcome) = self.lock().outcome() {
            return outcome.winner;
        }
        let key = key.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        let mixed = FixedHash::default().hash_one((&self.model, key));
        // The upper 53 bits are a number of [0, 1) that is exact.
        let place = (mixed >> 11) as f64 / (1_u64 << 53) as f64;
        if place < self.plan.share { AbVariant::B } else { AbVariant::A }
    }

    /// Watches over a request's answers, from now on until the last.
    #[must_use]
    pub fn watch(self: &Arc<Self>, variant: AbVariant, mut sink: ResponseSink) -> ResponseSink {
        let test = Arc::clone(self);
        let begin = Instant::now();
        let mut failed: Option<ErrorCode> = None;
        Box::new(move |answer: SinkAnswer| {
            failed = failed.or(answer.result.as_ref().err().map(|error| error.code));
            if answer.is_final {
                test.finish(variant, begin, failed);
            }
            sink(answer);
        })
    }

    /// Notes that a variant did not take a request.
    pub fn refused(&self, variant: AbVariant, error: &ServingError) {
        self.finish(variant, Instant::now(), Some(error.code));
    }

    fn finish(&self, variant: AbVariant, begin: Instant, failed: Option<ErrorCode>) {
        let answered_ns = match failed {
            None => Some(begin.elapsed().as_secs_f64() * 1e9),
            // Mistakes of clients, and clients that leave, say nothing about a variant.
            Some(ErrorCode::InvalidArg | ErrorCode::Cancelled) => return,
            Some(_) => None,
        };
        let outcome = self.lock().finish(variant, answered_ns);
        if let Some(AbOutcome { winner, reason }) = outcome {
            let winner = winner.name();
            let reason = reason.name();
            tracing::info!(model = %self.model, winner, reason, "an A/B test has ended");
        }
    }

    fn lock(&self) -> MutexGuard<'_, AbRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settings and numbers so far.
    #[must_use]
    pub fn report(&self) -> AbReport {
        let statistics = self.lock().statistics();
        let share = match statistics.outcome {
            Some(AbOutcome { winner: AbVariant::A, .. }) => 0.0,
            Some(AbOutcome { winner: AbVariant::B, .. }) => 1.0,
            None => self.plan.share,
        };
        let of = |variant: AbVariant| VariantReport {
            variant,
            version: self.plan.variants[variant.index()].version,
            share: match variant {
                AbVariant::A => 1.0 - share,
                AbVariant::B => share,
            },
        };
        AbReport {
            model: self.model.clone(),
            plan: self.plan.clone(),
            variants: AbVariant::ALL.map(of),
            statistics,
        }
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;

//! Variants of sequences that are open: one that was begun at a variant ends there.

use std::collections::HashMap;

use super::plan::AbVariant;
use crate::request::CorrelationId;

/// Open sequences that are remembered; beyond that the oldest half is forgotten.
const MAX_OPEN: usize = 65_536;

/// Variants by sequence.
#[derive(Debug, Default)]
pub(super) struct OpenSequences {
    variants: HashMap<CorrelationId, SequenceVariant>,
    /// Number of the next sequence, by which the oldest are told.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct SequenceVariant {
    variant: AbVariant,
    number: u64,
}

impl OpenSequences {
    /// Variant of an open sequence.
    pub(super) fn find(&self, id: &CorrelationId) -> Option<AbVariant> {
        self.variants.get(id).map(|found| found.variant)
    }

    /// Notes where a sequence goes on.
    pub(super) fn open(&mut self, id: &CorrelationId, variant: AbVariant) {
        if self.variants.len() >= MAX_OPEN && !self.variants.contains_key(id) {
            let mut numbers: Vec<u64> = self.variants.values().map(|one| one.number).collect();
            let middle = numbers.len() / 2;
            let kept = *numbers.select_nth_unstable(middle).1;
            self.variants.retain(|_, one| one.number >= kept);
        }
        self.variants.insert(id.clone(), SequenceVariant { variant, number: self.next });
        self.next += 1;
    }

    /// Forgets a sequence that ends.
    pub(super) fn close(&mut self, id: &CorrelationId) {
        self.variants.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_that_never_end_do_not_fill_memory() {
        let mut open = OpenSequences::default();
        for id in 0..200_000_u64 {
            open.open(&CorrelationId::Uint(id), AbVariant::B);
            assert!(open.variants.len() <= MAX_OPEN);
        }
        assert_eq!(open.find(&CorrelationId::Uint(199_999)), Some(AbVariant::B));
        assert_eq!(open.find(&CorrelationId::Uint(3)), None);
        open.close(&CorrelationId::Uint(199_999));
        assert_eq!(open.find(&CorrelationId::Uint(199_999)), None);
    }
}

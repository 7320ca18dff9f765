//! Places outside the caches that keep what preempted sequences had computed.

use std::ops::Range;

use crate::cache::{BlockId, BlockSwap};

/// The number of a place for one block.
pub(super) type SwapSlotId = usize;

/// Data that may be kept outside the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapLimits {
    /// Blocks that there is room for.
    pub blocks: usize,
    /// A sequence that has computed fewer positions is computed anew: that is a part of one step, beside
    /// others that need the step anyway.
    pub least_positions: usize,
}

/// Data of a sequence outside the caches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SwappedSequence {
    /// A place for each of its first blocks.
    slots: Vec<SwapSlotId>,
    /// Positions that these hold.
    pub(super) positions: usize,
}

/// All places, and which of them are free.
#[derive(Debug)]
pub(super) struct SwapSlots {
    limits: SwapLimits,
    free: Vec<SwapSlotId>,
}

impl SwapSlots {
    pub(super) fn new(limits: SwapLimits) -> Self {
        // The lowest number is taken first, so that memory is taken only for what is used.
        Self { limits, free: (0..limits.blocks).rev().collect() }
    }

    /// Blocks that are kept.
    pub(super) fn used(&self) -> usize {
        self.limits.blocks - self.free.len()
    }

    /// Keeps the first `positions` of a sequence, which lie in these blocks. Nothing where that does not
    /// pay, or there is not enough room.
    pub(super) fn keep(
        &mut self,
        blocks: &[BlockId],
        positions: usize,
        swaps: &mut Vec<BlockSwap>,
    ) -> SwappedSequence {
        let pays = positions > 0 && positions >= self.limits.least_positions;
        if !pays || blocks.len() > self.free.len() {
            return SwappedSequence::default();
        }
        let slots = self.free.split_off(self.free.len() - blocks.len());
        swaps.extend(
            blocks.iter().zip(&slots).map(|(&block, &slot)| BlockSwap::Out { block, slot }),
        );
        SwappedSequence { slots, positions }
    }

    /// Brings blocks back into those of a table, of which the first ones are there already. Nothing is
    /// kept any more.
    pub(super) fn bring_back(
        &mut self,
        kept: SwappedSequence,
        blocks: &[BlockId],
        lacking: Range<usize>,
        swaps: &mut Vec<BlockSwap>,
    ) {
        let pairs = kept.slots.iter().zip(blocks).take(lacking.end).skip(lacking.start);
        swaps.extend(pairs.map(|(&slot, &block)| BlockSwap::In { slot, block }));
        self.forget(kept);
    }

    /// Keeps nothing of a sequence any more.
    pub(super) fn forget(&mut self, kept: SwappedSequence) {
        self.free.extend(kept.slots.into_iter().rev());
    }
}

//! Memory outside the caches for blocks of preempted sequences.

use galatea_tensor::OwnedParts;

use crate::cache::BlockSwap;

/// Places for blocks. Each holds the bytes that a block has in every cache, one behind the other, and takes
/// no memory before it is used.
#[derive(Debug, Default)]
pub(super) struct BlockSwapStore {
    /// By cache and place.
    caches: Vec<Vec<Vec<u8>>>,
    slots: usize,
}

impl BlockSwapStore {
    pub(super) fn new(slots: usize) -> Self {
        Self { caches: Vec::new(), slots }
    }

    /// How many places there are.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Copies blocks of the numbered cache, of so many `blocks` of `each` bytes, out of it or into it, in
    /// this order.
    ///
    /// # Errors
    /// A block or a place that there is not, a place that holds nothing, and memory that the system has not.
    pub(super) fn swap(
        &mut self,
        swaps: &[BlockSwap],
        cache: usize,
        parts: &mut dyn OwnedParts,
        blocks: usize,
        each: usize,
    ) -> Result<(), String> {
        let out = |swap: &BlockSwap| matches!(swap, BlockSwap::Out { .. });
        // Those of one direction at once: a device is waited for each time.
        for swaps in swaps.chunk_by(|one, next| out(one) == out(next)) {
            let mut starts = Vec::with_capacity(swaps.len());
            for swap in swaps {
                let (BlockSwap::Out { block, slot } | BlockSwap::In { slot, block }) = *swap;
                let slots = self.slots;
                if slot >= slots || block >= blocks {
                    return Err(format!(
                        "block {block} and place {slot}, there are {blocks} and {slots}"
                    ));
                }
                starts.push(block * each);
            }
            if swaps.first().is_some_and(out) {
                let bytes = parts.read_parts(&starts, each).map_err(|error| error.to_string())?;
                for (at, swap) in swaps.iter().enumerate() {
                    self.keep(*swap, cache, &bytes[at * each..(at + 1) * each])?;
                }
            } else {
                let mut bytes = Vec::with_capacity(swaps.len() * each);
                for swap in swaps {
                    bytes.extend_from_slice(self.kept(*swap, cache, each)?);
                }
                let written = parts.write_parts(&starts, each, &bytes);
                written.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Keeps the bytes of a block.
    fn keep(&mut self, swap: BlockSwap, cache: usize, bytes: &[u8]) -> Result<(), String> {
        let (BlockSwap::Out { slot, .. } | BlockSwap::In { slot, .. }) = swap;
        if self.caches.len() <= cache {
            self.caches.resize_with(cache + 1, Vec::new);
        }
        let places = &mut self.caches[cache];
        if places.len() <= slot {
            places.resize_with(slot + 1, Vec::new);
        }
        let place = &mut places[slot];
        place.clear();
        let none = |_| format!("the system has no {} bytes to keep a block in", bytes.len());
        place.try_reserve_exact(bytes.len()).map_err(none)?;
        place.extend_from_slice(bytes);
        Ok(())
    }

    /// The bytes of a block that was kept.
    fn kept(&self, swap: BlockSwap, cache: usize, each: usize) -> Result<&[u8], String> {
        let (BlockSwap::Out { slot, .. } | BlockSwap::In { slot, .. }) = swap;
        let place = self.caches.get(cache).and_then(|places| places.get(slot));
        let place = place.filter(|place| place.len() == each);
        place.map(Vec::as_slice).ok_or_else(|| format!("place {slot} holds nothing"))
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::HostBuffer;

    use super::*;

    #[test]
    fn blocks_of_each_cache_come_back_as_they_were() {
        let mut store = BlockSwapStore::new(2);
        let mut first = HostBuffer::try_copy(&[1, 2, 3, 4, 5, 6]).unwrap();
        let mut second = HostBuffer::try_copy(&[7, 8, 9]).unwrap();
        let back = [BlockSwap::In { slot: 1, block: 0 }, BlockSwap::In { slot: 0, block: 1 }];
        for (at, cache) in [&mut first, &mut second].into_iter().enumerate() {
            let each = cache.as_bytes().len() / 3;
            let out = [BlockSwap::Out { block: 2, slot: 1 }, BlockSwap::Out { block: 0, slot: 0 }];
            store.swap(&out, at, cache, 3, each).unwrap();
            cache.as_bytes_mut().fill(0);
            store.swap(&back, at, cache, 3, each).unwrap();
        }
        assert_eq!(
            (first.as_bytes(), second.as_bytes()),
            (&[5, 6, 1, 2, 0, 0][..], &[9, 7, 0][..])
        );
    }

    #[test]
    fn what_there_is_not_is_told() {
        let mut store = BlockSwapStore::new(2);
        let mut cache = HostBuffer::zeroed(4);
        let mut swap = |swap| store.swap(&[swap], 0, &mut cache, 4, 1).unwrap_err();
        let error = swap(BlockSwap::Out { block: 4, slot: 0 });
        assert_eq!(error, "block 4 and place 0, there are 4 and 2");
        let error = swap(BlockSwap::Out { block: 0, slot: 2 });
        assert_eq!(error, "block 0 and place 2, there are 4 and 2");
        assert_eq!(swap(BlockSwap::In { slot: 0, block: 1 }), "place 0 holds nothing");
    }
}

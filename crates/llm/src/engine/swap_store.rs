//! Memory outside the caches for blocks of preempted sequences.

use crate::cache::Swap;

/// Places for blocks. Each holds the bytes that a block has in every cache, one behind the other, and takes
/// no memory before it is used.
#[derive(Debug, Default)]
pub(super) struct SwapStore {
    /// By cache and place.
    caches: Vec<Vec<Vec<u8>>>,
    slots: usize,
}

impl SwapStore {
    pub(super) fn new(slots: usize) -> Self {
        Self { caches: Vec::new(), slots }
    }

    /// How many places there are.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Copies a block of the numbered cache of so many `blocks`, out of its bytes or into them.
    ///
    /// # Errors
    /// A block or a place that there is not, a place that holds nothing, and memory that the system has not.
    pub(super) fn swap(
        &mut self,
        swap: Swap,
        cache: usize,
        bytes: &mut [u8],
        blocks: usize,
    ) -> Result<(), String> {
        let (Swap::Out { block, slot } | Swap::In { slot, block }) = swap;
        let absent = || {
            let slots = self.slots;
            format!("block {block} and place {slot}, there are {blocks} and {slots}")
        };
        if slot >= self.slots || block >= blocks {
            return Err(absent());
        }
        if self.caches.len() <= cache {
            self.caches.resize_with(cache + 1, Vec::new);
        }
        let places = &mut self.caches[cache];
        if places.len() <= slot {
            places.resize_with(slot + 1, Vec::new);
        }
        let each = bytes.len() / blocks;
        let (place, block) = (&mut places[slot], &mut bytes[block * each..(block + 1) * each]);
        match swap {
            Swap::Out { .. } => {
                place.clear();
                let none = |_| format!("the system has no {each} bytes to keep a block in");
                place.try_reserve_exact(each).map_err(none)?;
                place.extend_from_slice(block);
            }
            Swap::In { .. } if place.len() == each => block.copy_from_slice(place),
            Swap::In { .. } => return Err(format!("place {slot} holds nothing")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_each_cache_come_back_as_they_were() {
        let mut store = SwapStore::new(2);
        let (mut first, mut second) = ([1_u8, 2, 3, 4, 5, 6], [7_u8, 8, 9]);
        for (at, cache) in [&mut first[..], &mut second[..]].into_iter().enumerate() {
            store.swap(Swap::Out { block: 2, slot: 1 }, at, cache, 3).unwrap();
            cache.fill(0);
            store.swap(Swap::In { slot: 1, block: 0 }, at, cache, 3).unwrap();
        }
        assert_eq!((first, second), ([5, 6, 0, 0, 0, 0], [9, 0, 0]));
    }

    #[test]
    fn what_there_is_not_is_told() {
        let mut store = SwapStore::new(2);
        let mut cache = [0_u8; 4];
        let mut swap = |swap| store.swap(swap, 0, &mut cache, 4).unwrap_err();
        let error = swap(Swap::Out { block: 4, slot: 0 });
        assert_eq!(error, "block 4 and place 0, there are 4 and 2");
        let error = swap(Swap::Out { block: 0, slot: 2 });
        assert_eq!(error, "block 0 and place 2, there are 4 and 2");
        assert_eq!(swap(Swap::In { slot: 0, block: 1 }), "place 0 holds nothing");
    }
}

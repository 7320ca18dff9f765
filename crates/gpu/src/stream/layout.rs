//! Division of weights into regions that are streamed together, and blocks that stay on the device.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::memory::{DeviceBlock, STEP};

/// Regions at most, more or less: each load has a price of its own.
const REGIONS: u64 = 256;

/// Place of a block.
#[derive(Clone, Debug)]
pub(super) enum BlockSpot {
    /// In whatever slot holds the region, from this byte on.
    Region(usize, u64),
    /// In a block of its own.
    Stays(Arc<DeviceBlock>),
}

/// Regions of blocks in the order in which runs need them.
#[derive(Debug)]
pub(crate) struct StreamLayout {
    blocks: Vec<Arc<DeviceBlock>>,
    spots: HashMap<usize, BlockSpot>,
    /// The blocks of each region and where they start in it.
    regions: Vec<Vec<(Arc<DeviceBlock>, u64)>>,
    cut: SlotShares,
}

/// Division of the available room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlotShares {
    /// Blocks with more bytes stay.
    largest: u64,
    slot_bytes: u64,
    slots: u64,
}

/// Shares room among blocks of these sizes. Large ones among many small ones stay, so that slots are small.
///
/// # Errors
/// Returns the number of bytes that are needed at least.
fn cut(sizes: &[u64], room: u64) -> Result<SlotShares, u64> {
    let mut candidates = sizes.to_vec();
    candidates.sort_unstable();
    candidates.dedup();
    let stays = |largest: u64| sizes.iter().filter(|&&size| size > largest).sum::<u64>();
    let all: u64 = sizes.iter().sum();
    let even = (all / REGIONS).next_multiple_of(STEP);
    // Three slots: one in use, one that is being filled, and one between.
    for wanted in [3, 2, 1] {
        for &largest in &candidates {
            let left = room.saturating_sub(stays(largest));
            if left / largest >= wanted {
                let slot_bytes = even.clamp(largest, left / wanted) / STEP * STEP;
                return Ok(SlotShares { largest, slot_bytes, slots: left / slot_bytes });
            }
        }
    }
    Err(candidates.iter().map(|&largest| stays(largest) + largest).min().unwrap_or(0))
}

fn key(block: &Arc<DeviceBlock>) -> usize {
    Arc::as_ptr(block).addr()
}

impl StreamLayout {
    /// Arranges blocks within so many bytes.
    ///
    /// # Errors
    /// Fails when not even the largest has room.
    pub(super) fn new(
        blocks: Vec<Arc<DeviceBlock>>,
        room: u64,
        device: &GpuDevice,
    ) -> Result<Self, GpuError> {
        let size = |block: &Arc<DeviceBlock>| block.bytes().max(1).next_multiple_of(STEP);
        let sizes: Vec<u64> = blocks.iter().map(size).collect();
        let cut = cut(&sizes, room).map_err(|needed| GpuError::Memory {
            bytes: needed,
            reason: format!(
                "a model's weights of {} bytes do not fit the GPU and the largest of them, of {} bytes, \
                 needs at least that much at a time; {room} bytes are left of {} that may be taken",
                sizes.iter().sum::<u64>(),
                sizes.iter().max().unwrap_or(&0),
                device.memory().budget_bytes.unwrap_or(0),
            ),
        })?;
        let mut spots = HashMap::new();
        let mut regions: Vec<Vec<(Arc<DeviceBlock>, u64)>> = Vec::new();
        let mut filled = u64::MAX;
        for (block, &size) in blocks.iter().zip(&sizes) {
            if size > cut.largest {
                let own = block.brought(device)?;
                spots.insert(key(block), BlockSpot::Stays(Arc::new(own)));
                continue;
            }
            if filled.saturating_add(size) > cut.slot_bytes {
                regions.push(Vec::new());
                filled = 0;
            }
            spots.insert(key(block), BlockSpot::Region(regions.len() - 1, filled));
            if let Some(region) = regions.last_mut() {
                region.push((Arc::clone(block), filled));
            }
            filled += size;
        }
        Ok(Self { blocks, spots, regions, cut })
    }

    /// Returns whether all these blocks have a place.
    pub(super) fn has(&self, blocks: &[Arc<DeviceBlock>]) -> bool {
        blocks.iter().all(|block| self.spots.contains_key(&key(block)))
    }

    pub(super) fn blocks(&self) -> Vec<Arc<DeviceBlock>> {
        self.blocks.clone()
    }

    /// Returns the place of a block.
    pub(super) fn spot(&self, block: &Arc<DeviceBlock>) -> Option<&BlockSpot> {
        self.spots.get(&key(block))
    }

    /// The regions of these blocks.
    pub(crate) fn regions_of<'a>(
        &self,
        blocks: impl Iterator<Item = &'a Arc<DeviceBlock>>,
    ) -> Vec<usize> {
        let mut regions = Vec::new();
        for block in blocks {
            if let Some(BlockSpot::Region(region, _)) = self.spot(block)
                && !regions.contains(region)
            {
                regions.push(*region);
            }
        }
        regions
    }

    pub(super) fn region(&self, region: usize) -> &[(Arc<DeviceBlock>, u64)] {
        self.regions.get(region).map_or(&[], Vec::as_slice)
    }

    pub(super) fn region_count(&self) -> usize {
        self.regions.len()
    }

    pub(super) fn slot_bytes(&self) -> u64 {
        self.cut.slot_bytes
    }

    /// Returns the number of slots that there is room for.
    pub(super) fn slots(&self) -> usize {
        let slots = usize::try_from(self.cut.slots).unwrap_or(usize::MAX);
        slots.min(self.regions.len()).max(1)
    }

    pub(super) fn streamed_bytes(&self) -> u64 {
        self.regions.iter().flatten().map(|(block, _)| block.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_among_many_small_ones_stays() {
        let mut sizes = vec![1024; 40];
        sizes.push(20_480);
        let found = cut(&sizes, 32_768);
        assert_eq!(found, Ok(SlotShares { largest: 1024, slot_bytes: 1024, slots: 12 }));
        // Without room for it beside three others it takes turns with them.
        let found = cut(&sizes, 21_504);
        assert_eq!(found, Ok(SlotShares { largest: 1024, slot_bytes: 1024, slots: 1 }));
    }

    #[test]
    fn many_tiny_blocks_share_regions() {
        let found = cut(&[256; 4096], 1 << 19);
        assert_eq!(found, Ok(SlotShares { largest: 256, slot_bytes: 4096, slots: 128 }));
    }

    #[test]
    fn too_little_room_is_told_with_what_is_needed() {
        assert_eq!(cut(&[4096, 8192, 4096], 8000), Err(8192));
        assert_eq!(cut(&[512, 8192], 8000), Err(8192));
    }

    #[test]
    fn one_slot_is_enough() {
        let found = cut(&[512, 8192], 8600);
        assert_eq!(found, Ok(SlotShares { largest: 8192, slot_bytes: 8192, slots: 1 }));
    }
}

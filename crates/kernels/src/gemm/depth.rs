//! Blocks of depth: how the sums of a product are cut.

use super::micro::K_BLOCK;

/// A block of depth: some adjacent terms of all sums.
#[derive(Clone, Copy)]
pub(crate) struct DepthBlock {
    /// Its number.
    pub(crate) index: usize,
    /// The first term.
    pub(crate) start: usize,
    pub(crate) terms: usize,
    /// True for the first block of a product.
    pub(crate) is_first: bool,
    /// True for the last block of a product.
    pub(crate) is_last: bool,
}

/// Blocks of depth, whole groups of four terms where the depth is a multiple of four. A product of
/// depth 0 has one empty block, so that its epilogue still runs.
#[inline(always)]
pub(crate) fn depth_blocks(k: usize) -> impl Iterator<Item = DepthBlock> + Clone {
    let blocks = k.div_ceil(K_BLOCK).max(1);
    let unit = if k.is_multiple_of(4) { 4 } else { 1 };
    let cut = move |i: usize| k / unit * i / blocks * unit;
    (0..blocks).map(move |i| {
        let start = cut(i);
        DepthBlock {
            index: i,
            start,
            terms: cut(i + 1) - start,
            is_first: i == 0,
            is_last: i + 1 == blocks,
        }
    })
}

//! The blocks of keys and values: who has which, what they hold, and what can be used again.
//!
//! A sequence has a table of blocks; position `p` lies in block `p / size` of it. A block whose
//! positions are all computed is known by its tokens and all tokens before them, so that another
//! sequence which begins the same way shares it (Kwon et al. 2023, arXiv 2309.06180, section 4). When
//! nobody has such a block any more it stays until its room is needed, the longest unused one first.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::num::NonZeroUsize;

use lru::LruCache;
use siphasher::sip128::{Hasher128, SipHasher13};

#[cfg(test)]
mod tests;

/// The number of a block.
pub type BlockId = usize;

/// Digest of a block: a keyed digest of its tokens and of all before them, so that nobody can make
/// two that are alike.
type BlockDigest = u128;

/// A block.
#[derive(Debug, Default)]
struct CacheBlock {
    /// Tables that have it.
    holders: usize,
    /// Digest of its content, once all its positions are computed.
    digest: Option<BlockDigest>,
}

/// The blocks of a sequence.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BlockTable {
    blocks: Vec<BlockId>,
    /// Positions that are computed.
    computed: usize,
    /// Blocks whose contents are known to others, and what these hold.
    known: usize,
    digest: BlockDigest,
}

impl BlockTable {
    /// The blocks in the order of their positions.
    #[must_use]
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Positions whose keys and values are there.
    #[must_use]
    pub fn computed(&self) -> usize {
        self.computed
    }
}

/// How many blocks are in which state, and how often prefixes were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Blocks that sequences have.
    pub active: usize,
    /// Blocks that nobody has, whose contents may be used again.
    pub cached: usize,
    /// Blocks that hold nothing.
    pub free: usize,
    /// Tokens that were looked up.
    pub looked_up: u64,
    /// Tokens that were found.
    pub found: u64,
}

/// All blocks of a model.
#[derive(Debug)]
pub struct BlockCache {
    size: usize,
    blocks: Vec<CacheBlock>,
    free: Vec<BlockId>,
    /// Blocks by what they hold.
    known: HashMap<BlockDigest, BlockId>,
    /// The key of digests.
    key: (u64, u64),
    /// Blocks that nobody has, but whose contents are known, the longest unused first.
    unused: LruCache<BlockId, ()>,
    looked_up: u64,
    found: u64,
}

/// A copy that a step must make before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// The block that is read.
    pub from: BlockId,
    /// The block that is written.
    pub to: BlockId,
}

/// A copy between a block and a place outside the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSwap {
    /// Block whose content is kept.
    Out {
        /// The block that is read.
        block: BlockId,
        /// The place that is written.
        slot: usize,
    },
    /// Kept content that goes into a block.
    In {
        /// The place that is read.
        slot: usize,
        /// The block that is written.
        block: BlockId,
    },
}

impl BlockCache {
    /// Makes so many blocks of `size` positions each.
    #[must_use]
    pub fn new(count: usize, size: NonZeroUsize) -> Self {
        Self {
            size: size.get(),
            blocks: (0..count).map(|_| CacheBlock::default()).collect(),
            // The lowest number is taken first.
            free: (0..count).rev().collect(),
            known: HashMap::new(),
            key: (random(), random()),
            unused: LruCache::unbounded(),
            looked_up: 0,
            found: 0,
        }
    }

    /// Positions of a block.
    #[must_use]
    pub fn block_size(&self) -> usize {
        self.size
    }

    /// Blocks that can be taken now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.free.len() + self.unused.len()
    }

    /// The state of all blocks.
    #[must_use]
    pub fn statistics(&self) -> CacheStatistics {
        let cached = self.unused.len();
        let free = self.free.len();
        let active = self.blocks.len() - cached - free;
        CacheStatistics { active, cached, free, looked_up: self.looked_up, found: self.found }
    }

    /// A table for a sequence that begins with these tokens, with all whole blocks of them that are
    /// there already; the last token is left to be computed, as somebody wants what follows it.
    /// Sequences with different salts share nothing: those of tenants, or of adapters.
    pub fn open(&mut self, tokens: &[u32], salt: u64) -> BlockTable {
        let mut table = BlockTable { digest: salt.into(), ..BlockTable::default() };
        let most = tokens.len().saturating_sub(1) / self.size;
        for tokens in tokens.chunks_exact(self.size).take(most) {
            let digest = self.digest(table.digest, tokens);
            let Some(&block) = self.known.get(&digest) else { break };
            self.hold(block);
            table.blocks.push(block);
            table.digest = digest;
        }
        table.known = table.blocks.len();
        table.computed = table.known * self.size;
        self.looked_up += tokens.len() as u64;
        self.found += table.computed as u64;
        table
    }

    /// How many blocks a table lacks for so many positions.
    #[must_use]
    pub fn lacking(&self, table: &BlockTable, positions: usize) -> usize {
        positions.div_ceil(self.size).saturating_sub(table.blocks.len())
    }

    /// Gives a table blocks for so many positions. Nothing happens where there are not enough.
    #[must_use]
    pub fn extend(&mut self, table: &mut BlockTable, positions: usize) -> bool {
        let lacking = self.lacking(table, positions);
        if lacking > self.available() {
            return false;
        }
        for _ in 0..lacking {
            let Some(block) = self.take() else { return false };
            table.blocks.push(block);
        }
        true
    }

    /// Notes that the positions of all these tokens, from the first of the sequence on, are computed.
    /// Whole blocks can be shared from now on.
    pub fn computed(&mut self, table: &mut BlockTable, tokens: &[u32]) {
        table.computed = tokens.len().min(table.blocks.len() * self.size);
        while (table.known + 1) * self.size <= table.computed {
            let tokens = &tokens[table.known * self.size..][..self.size];
            table.digest = self.digest(table.digest, tokens);
            let block = table.blocks[table.known];
            // Where another block holds the same, that one stays known.
            self.known.entry(table.digest).or_insert(block);
            self.blocks[block].digest = Some(table.digest);
            table.known += 1;
        }
    }

    /// Forgets what is computed behind so many positions, such as drafts that were refused. Blocks
    /// that others know keep what they hold, so they cannot be given back in part.
    pub fn truncate(&mut self, table: &mut BlockTable, positions: usize) {
        let keep = positions.max(table.known * self.size).min(table.computed);
        table.computed = keep;
        let blocks = keep.div_ceil(self.size);
        for block in table.blocks.split_off(blocks.min(table.blocks.len())).into_iter().rev() {
            self.release(block);
        }
    }

    /// A second sequence with the same past. The block that both would go on writing is copied;
    /// `None` where there is no block for that.
    pub fn fork(&mut self, table: &BlockTable) -> Option<(BlockTable, Option<BlockCopy>)> {
        let whole = table.computed / self.size;
        let partial = !table.computed.is_multiple_of(self.size);
        let copy = match partial {
            true => Some(BlockCopy { from: table.blocks[whole], to: self.take()? }),
            false => None,
        };
        let mut blocks = table.blocks[..whole].to_vec();
        for &block in &blocks {
            self.hold(block);
        }
        blocks.extend(copy.map(|copy| copy.to));
        let computed = table.computed;
        let known = table.known;
        let digest = table.digest;
        Some((BlockTable { blocks, computed, known, digest }, copy))
    }

    /// Gives all blocks of a table back.
    pub fn close(&mut self, table: BlockTable) {
        // The last ones are taken again first: what follows the beginning is wanted more seldom.
        for block in table.blocks.into_iter().rev() {
            self.release(block);
        }
    }

    /// Forgets everything that nobody has.
    pub fn clear(&mut self) {
        while let Some((block, ())) = self.unused.pop_lru() {
            self.forget(block);
            self.free.push(block);
        }
    }

    fn hold(&mut self, block: BlockId) {
        self.blocks[block].holders += 1;
        self.unused.pop(&block);
    }

    /// A block for one holder.
    fn take(&mut self) -> Option<BlockId> {
        let block = match self.free.pop() {
            Some(block) => block,
            None => {
                let (block, ()) = self.unused.pop_lru()?;
                self.forget(block);
                block
            }
        };
        self.blocks[block].holders = 1;
        Some(block)
    }

    fn release(&mut self, block: BlockId) {
        let state = &mut self.blocks[block];
        state.holders -= 1;
        if state.holders > 0 {
            return;
        }
        if state.digest.is_some_and(|digest| self.known.get(&digest) == Some(&block)) {
            self.unused.push(block, ());
        } else {
            self.forget(block);
            self.free.push(block);
        }
    }

    /// Nobody finds the block any more.
    fn forget(&mut self, block: BlockId) {
        if let Some(digest) = self.blocks[block].digest.take()
            && self.known.get(&digest) == Some(&block)
        {
            self.known.remove(&digest);
        }
    }

    fn digest(&self, before: BlockDigest, tokens: &[u32]) -> BlockDigest {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write_u128(before);
        for &token in tokens {
            hasher.write_u32(token);
        }
        hasher.finish128().as_u128()
    }
}

/// A number that nobody outside knows.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

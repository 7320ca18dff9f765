//! Memory that a worker shares: the page of flags, the server's blocks and the worker's.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use galatea_tensor::{Allocation, SharedBlock, SharedRegion};

use super::wire::OpenedBlock;

/// Bytes of the page of flags: one for each block of the server's, from [`OWN`] on one for each of the worker's, from
/// [`SLOTS`] on one for each request.
const FLAGS_BYTES: usize = 65536;
const OWN: usize = 1024;
const SLOTS: usize = 2048;
/// Blocks of one side.
const MAX_BLOCKS: u32 = 1024;
/// Slot of a request that has none: so many others are under way.
const NO_SLOT: u32 = u32::MAX;
/// Blocks of the server's that nobody uses are kept up to so many.
const MAX_FREE: usize = 2;

/// The page on which both sides say who has a block and whose client has gone. Setting a flag is the last that a side
/// does with a block.
#[derive(Debug)]
pub(super) struct SharedFlagPage {
    region: SharedRegion,
    /// Slots that are free again, and the first that was never used.
    slots: Mutex<(Vec<u32>, u32)>,
}

impl SharedFlagPage {
    /// Makes the page. Its name stays until [`SharedBlock::unlink`].
    ///
    /// # Errors
    /// When there is no shared memory.
    pub(super) fn create(name: &str) -> io::Result<Arc<Self>> {
        let made = SharedBlock::create(name, FLAGS_BYTES, 0)?;
        let len = u64::try_from(FLAGS_BYTES).unwrap_or(0);
        let region = SharedRegion::open(name, 0, len).map_err(|error| {
            SharedBlock::unlink(name);
            io::Error::other(format!("{error:?}"))
        })?;
        drop(made);
        Ok(Arc::new(Self { region, slots: Mutex::default() }))
    }

    fn set(&self, at: usize, value: u8) {
        // All places are inside the page.
        let _ = self.region.write(at, &[value]);
    }

    fn is_set(&self, at: usize) -> bool {
        self.region.read(at, 1).is_ok_and(|bytes| bytes != [0])
    }

    /// A place where the worker is told that a client has gone.
    pub(super) fn slot(self: &Arc<Self>) -> Arc<FlagSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let number = slots.0.pop().unwrap_or_else(|| {
            let next = slots.1;
            let place = usize::try_from(next).ok().and_then(|next| SLOTS.checked_add(next));
            if place.is_none_or(|place| place >= FLAGS_BYTES) {
                return NO_SLOT;
            }
            slots.1 += 1;
            next
        });
        Arc::new(FlagSlot { flags: Arc::clone(self), number })
    }
}

/// A request's place on the page.
#[derive(Debug)]
pub(super) struct FlagSlot {
    flags: Arc<SharedFlagPage>,
    pub(super) number: u32,
}

impl FlagSlot {
    fn place(&self) -> Option<usize> {
        let number = usize::try_from(self.number).ok().filter(|_| self.number != NO_SLOT)?;
        Some(SLOTS + number)
    }

    /// The client has gone.
    pub(super) fn cancel(&self) {
        if let Some(place) = self.place() {
            self.flags.set(place, 1);
        }
    }
}

impl Drop for FlagSlot {
    fn drop(&mut self) {
        if let Some(place) = self.place() {
            self.flags.set(place, 0);
            let mut slots = self.flags.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.0.push(self.number);
        }
    }
}

/// The server's blocks, into which it writes inputs.
#[derive(Debug)]
pub(super) struct ServerBlocks {
    flags: Arc<SharedFlagPage>,
    prefix: String,
    least: usize,
    blocks: HashMap<u32, Arc<SharedBlock>>,
    made: u64,
    /// Names of blocks that the worker may not have opened yet.
    named: Vec<String>,
}

/// A block for one execution.
#[derive(Debug)]
pub(super) struct BlockLease {
    pub(super) number: u32,
    /// Size and name, where the worker does not know the block yet.
    pub(super) new: Option<(usize, String)>,
    /// Blocks that go.
    pub(super) closed: Vec<u32>,
    /// The block. It stays leased as long as somebody has it, whatever the worker says.
    pub(super) block: Arc<SharedBlock>,
}

impl ServerBlocks {
    pub(super) fn new(flags: &Arc<SharedFlagPage>, prefix: &str, least: usize) -> Self {
        let flags = Arc::clone(flags);
        let prefix = prefix.to_owned();
        Self { flags, prefix, least, blocks: HashMap::new(), made: 0, named: Vec::new() }
    }

    fn is_free(&self, number: u32, block: &Arc<SharedBlock>) -> bool {
        let place = usize::try_from(number).unwrap_or(0);
        Arc::strong_count(block) == 1 && !self.flags.is_set(place)
    }

    /// A block that neither side uses, with room for `size` bytes, which `fill` writes.
    ///
    /// # Errors
    /// When there is no shared memory, or too many blocks wait for the model to let go of them.
    pub(super) fn lease(
        &mut self,
        size: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<BlockLease> {
        let mut free: Vec<(usize, u32)> = self
            .blocks
            .iter()
            .filter(|(number, block)| self.is_free(**number, block))
            .map(|(number, block)| (block.len_bytes(), *number))
            .collect();
        free.sort_unstable();
        if let Some(&(_, number)) = free.iter().find(|(len, _)| *len >= size) {
            let block = self.fill(number, fill)?;
            return Ok(BlockLease { number, new: None, closed: Vec::new(), block });
        }
        // None has room, so the small ones make room for larger ones.
        free.truncate((free.len() + 1).saturating_sub(MAX_FREE));
        let closed: Vec<u32> = free.into_iter().map(|(_, number)| number).collect();
        for number in &closed {
            self.blocks.remove(number);
        }
        let number = (1..MAX_BLOCKS).find(|number| !self.blocks.contains_key(number));
        let number = number.ok_or_else(|| {
            io::Error::other(format!("the model holds inputs in {MAX_BLOCKS} blocks of memory"))
        })?;
        self.made += 1;
        let name = format!("{}i{:x}", self.prefix, self.made);
        let len = rounded(size.max(self.least));
        let block = SharedBlock::create(&name, len, u64::from(number))?;
        self.blocks.insert(number, Arc::new(block));
        self.named.push(name.clone());
        let block = self.fill(number, fill)?;
        Ok(BlockLease { number, new: Some((len, name)), closed, block })
    }

    fn fill(&mut self, number: u32, fill: impl FnOnce(&mut [u8])) -> io::Result<Arc<SharedBlock>> {
        let block = self.blocks.get_mut(&number);
        let block = block.ok_or_else(|| io::Error::other("a block is not there"))?;
        // A free block has one owner.
        let bytes = Arc::get_mut(block).ok_or_else(|| io::Error::other("a block is in use"))?;
        fill(bytes.as_bytes_mut());
        self.flags.set(usize::try_from(number).unwrap_or(0), 1);
        Ok(Arc::clone(block))
    }

    /// Takes a block back of which the worker was not told.
    pub(super) fn withdraw(&mut self, lease: &BlockLease) {
        self.flags.set(usize::try_from(lease.number).unwrap_or(0), 0);
        if let Some((_, name)) = &lease.new {
            SharedBlock::unlink(name);
            self.named.retain(|known| known != name);
            self.blocks.remove(&lease.number);
        }
    }

    /// The block of that number, to read an output from.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<SharedBlock>> {
        self.blocks.get(&number)
    }

    /// The worker has opened all blocks that it was told of.
    pub(super) fn opened(&mut self) {
        self.named.drain(..).for_each(|name| SharedBlock::unlink(&name));
    }
}

impl ServerBlocks {
    /// The worker has opened so many of the blocks that were ever made.
    pub(super) fn opened_first(&mut self, count: u64) {
        let opened = self.made.saturating_sub(count);
        let left = usize::try_from(opened).unwrap_or(usize::MAX).min(self.named.len());
        let gone = self.named.len() - left;
        self.named.drain(..gone).for_each(|name| SharedBlock::unlink(&name));
    }
}

impl Drop for ServerBlocks {
    fn drop(&mut self) {
        self.opened();
    }
}

/// The size of a block for so many bytes: up to an eighth more, so that requests of nearly one size share it.
fn rounded(size: usize) -> usize {
    let step = size.checked_ilog2().map_or(0, |bits| 1_usize << bits.saturating_sub(3));
    size.next_multiple_of(step.max(65536))
}

/// The worker's blocks, into which it writes outputs.
#[derive(Debug)]
pub(super) struct WorkerBlocks {
    flags: Arc<SharedFlagPage>,
    prefix: String,
    blocks: HashMap<u32, Arc<SharedBlock>>,
    /// Blocks that hold outputs which somebody reads.
    read: Vec<u32>,
    seen: u64,
}

impl WorkerBlocks {
    pub(super) fn new(flags: &Arc<SharedFlagPage>, prefix: &str) -> Self {
        let flags = Arc::clone(flags);
        let prefix = prefix.to_owned();
        Self { flags, prefix, blocks: HashMap::new(), read: Vec::new(), seen: 0 }
    }

    /// Takes what the worker says of its blocks.
    ///
    /// # Errors
    /// When a block is not there.
    pub(super) fn update(&mut self, closed: &[u32], opened: &[OpenedBlock]) -> io::Result<()> {
        for number in closed {
            self.blocks.remove(number);
        }
        for opened in opened {
            if !opened.name.starts_with(&self.prefix) {
                let text = format!("'{}' found as the name of a block", opened.name);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let block = SharedBlock::open(&opened.name, opened.size, u64::from(opened.number));
            SharedBlock::unlink(&opened.name);
            self.seen += 1;
            self.blocks.insert(opened.number, Arc::new(block?));
        }
        Ok(())
    }

    /// Takes note that something lies in a block, which goes back when nobody reads it, also where nobody comes to.
    pub(super) fn note(&mut self, number: u32) {
        if !self.read.contains(&number) {
            self.read.push(number);
        }
    }

    /// The block of that number, to read an output from.
    pub(super) fn get(&self, number: u32) -> Option<&Arc<SharedBlock>> {
        self.blocks.get(&number)
    }

    /// Gives blocks back whose outputs nobody reads any more.
    pub(super) fn sweep(&mut self) {
        let Self { flags, blocks, read, .. } = self;
        read.retain(|number| {
            let block = blocks.get(number);
            let still = block.is_some_and(|block| Arc::strong_count(block) > 1);
            let place = usize::try_from(*number).ok().filter(|_| *number < MAX_BLOCKS);
            if let (false, Some(place)) = (still, place) {
                flags.set(OWN + place, 0);
            }
            still
        });
    }
}

impl Drop for WorkerBlocks {
    fn drop(&mut self) {
        // A worker that was killed may have made one that it did not come to tell of.
        for number in self.seen + 1..=self.seen + 2 {
            SharedBlock::unlink(&format!("{}o{number:x}", self.prefix));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(what: &str) -> (Arc<SharedFlagPage>, String) {
        let prefix = format!("/gpt{what}{:x}", std::process::id());
        let flags = SharedFlagPage::create(&format!("{prefix}f")).unwrap();
        SharedBlock::unlink(&format!("{prefix}f"));
        (flags, prefix)
    }

    #[test]
    fn a_block_is_used_again_when_both_sides_have_let_go() {
        let (flags, prefix) = flags("a");
        let mut given = ServerBlocks::new(&flags, &prefix, 1);
        let first = given.lease(100_000, |bytes| bytes[0] = 7).unwrap();
        assert_eq!(first.new.as_ref().map(|(len, _)| *len), Some(131_072));
        let read = first.block;
        let second = given.lease(100_000, |_| ()).unwrap();
        assert_ne!(second.number, first.number);
        flags.set(usize::try_from(first.number).unwrap(), 0);
        assert_ne!(given.lease(90_000, |_| ()).unwrap().number, first.number);
        drop(read);
        let again = given.lease(90_000, |_| ()).unwrap();
        assert_eq!((again.number, again.new), (first.number, None));
    }

    #[test]
    fn blocks_that_are_too_small_go() {
        let (flags, prefix) = flags("b");
        let mut given = ServerBlocks::new(&flags, &prefix, 1);
        for times in 1..20 {
            let lease = given.lease(times * 100_000, |_| ()).unwrap();
            flags.set(usize::try_from(lease.number).unwrap(), 0);
        }
        assert!(given.blocks.len() <= MAX_FREE, "{}", given.blocks.len());
    }

    #[test]
    fn slots_are_used_again_and_lose_their_flag() {
        let (flags, _) = flags("c");
        let slot = flags.slot();
        slot.cancel();
        assert!(flags.is_set(SLOTS));
        drop(slot);
        assert!(!flags.is_set(SLOTS));
        assert_eq!(flags.slot().number, 0);
    }
}

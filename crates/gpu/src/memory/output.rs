//! Outputs that are read where the device wrote them.

use std::sync::Arc;

use galatea_tensor::{Allocation, MemoryKind, TensorError};

use super::DeviceBlock;

/// Bytes of a block that a run wrote and that no run writes again while somebody has them.
#[derive(Debug)]
pub(crate) struct OutputMemory {
    block: Arc<DeviceBlock>,
    /// Guard: no run writes the block while it exists.
    _held: Arc<()>,
    start: *const u8,
    len: usize,
    kind: MemoryKind,
}

impl OutputMemory {
    /// `len` bytes from `offset` on; none where the processor does not address the block.
    ///
    /// # Safety
    /// The run that writes the block is over, and no other begins while `held` has a second owner.
    pub(crate) unsafe fn new(
        block: &Arc<DeviceBlock>,
        held: &Arc<()>,
        offset: usize,
        len: usize,
        kind: MemoryKind,
    ) -> Option<Self> {
        let start = block.host()?.address(offset, len).cast_const();
        Some(Self { block: Arc::clone(block), _held: Arc::clone(held), start, len, kind })
    }
}

// SAFETY: the bytes are plain data that nobody writes while the value lives.
unsafe impl Send for OutputMemory {}
// SAFETY: as above.
unsafe impl Sync for OutputMemory {}

// SAFETY: the block keeps its address, is held here, and is not written meanwhile (the contract of `new`).
unsafe impl Allocation for OutputMemory {
    fn kind(&self) -> MemoryKind {
        self.kind
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        debug_assert!(self.block.host().is_some(), "checked when it was made");
        Ok(self.start)
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
}

//! Buffers that the processor addresses too.

use std::fmt;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use super::resident::ResidentBuffer;

/// Owner of memory that the CPU addresses: the memory is given back when the last one is gone.
pub(super) trait MappedOwner: fmt::Debug + Send + Sync {}

/// A buffer of a device, with its address where the processor has one for it.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) host: Option<HostBytes>,
    /// Membership among what stays on the GPU, where the system has that.
    pub(crate) resident: Option<Arc<ResidentBuffer>>,
}

/// Address of a buffer's bytes for the CPU. It owns the memory with the buffer, which wgpu may destroy sooner.
#[derive(Clone, Debug)]
pub(crate) struct HostBytes {
    start: NonNull<u8>,
    len: usize,
    _owner: Arc<dyn MappedOwner>,
}

// SAFETY: the address of plain data; who reads and writes it when is for the callers of its methods to say.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Creates the address of `len` bytes.
    ///
    /// # Safety
    /// The bytes are initialised, and stay where they are as long as their owner lives.
    pub(super) unsafe fn new(start: NonNull<u8>, len: usize, owner: Arc<dyn MappedOwner>) -> Self {
        Self { start, len, _owner: owner }
    }

    /// The address of the byte at `offset`.
    ///
    /// # Panics
    /// Panics when fewer than `len` bytes follow it.
    pub(crate) fn address(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the buffer");
        self.start.as_ptr().wrapping_add(offset)
    }

    /// Writes bytes from `offset` on.
    ///
    /// # Safety
    /// Neither work that was handed over nor anybody else uses these bytes meanwhile.
    pub(crate) unsafe fn put(&self, offset: usize, bytes: &[u8]) {
        let to = self.address(offset, bytes.len());
        // SAFETY: the bytes are inside the buffer, and the caller has them alone.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// The bytes from `offset` on.
    ///
    /// # Safety
    /// Nobody may write to these bytes while the slice is used.
    pub(crate) unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let from = self.address(offset, len);
        // SAFETY: the bytes are inside the buffer, initialised when it was made, and not written meanwhile.
        unsafe { slice::from_raw_parts(from, len) }
    }
}

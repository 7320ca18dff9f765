//! Allocations: bytes with a known place, alignment and set of readers.

use std::alloc::{Layout as AllocLayout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::slice;
use std::sync::{Arc, OnceLock};

use crate::error::{TensorError, TensorErrorKind};
use crate::parts::OwnedParts;

mod advice;
mod host_parts;

pub use advice::{AccessAdvice, advise};

/// Every allocation made here starts at a multiple of this many bytes: a cache line, and the width
/// of the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Which compute units can address an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// The CPU only.
    Host,
    /// CPU and GPU, page-aligned.
    Unified,
    /// CPU, GPU and Neural Engine.
    Surface,
    /// The GPU only; whoever asks for the address gets a copy in host memory.
    Device,
}

/// Shared, immutable bytes.
///
/// # Safety
/// For as long as the value lives, the address that `as_ptr` gave must stay the same, be valid for reads of
/// `len_bytes` bytes, and nobody may write to them.
pub unsafe trait Allocation: Send + Sync + fmt::Debug {
    /// Devices that can address the bytes.
    fn kind(&self) -> MemoryKind;
    /// Start of the bytes.
    ///
    /// # Errors
    /// When they lie elsewhere and cannot be brought here, such as those on a device that was lost.
    fn as_ptr(&self) -> Result<*const u8, TensorError>;
    /// How many bytes there are.
    fn len_bytes(&self) -> usize;
    /// Start of the same bytes where they lie without any effort, at any alignment; valid as
    /// `as_ptr` is.
    ///
    /// # Errors
    /// As `as_ptr`.
    fn as_unaligned_ptr(&self) -> Result<*const u8, TensorError> {
        self.as_ptr()
    }
    /// The same as memory of a single owner, for whoever is the only one to know it.
    fn as_host_mut(&mut self) -> Option<&mut HostBuffer> {
        None
    }
    /// The same as memory whose parts are read and written, wherever it lies.
    fn as_parts_mut(&mut self) -> Option<&mut dyn OwnedParts> {
        None
    }
    /// Whether the bytes are those of a mapped file: the system reads them when they are needed,
    /// shares them between processes and drops them when it needs the memory.
    fn is_mapped(&self) -> bool {
        false
    }
    /// The allocation itself, for the provider that made it and knows more of it.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// Initialised host memory, aligned to [`ALIGNMENT`], owned by one writer until it is shared.
pub struct HostBuffer {
    /// Memory that the system gave; `start` lies less than [`ALIGNMENT`] bytes behind it.
    block: NonNull<u8>,
    start: NonNull<u8>,
    len: usize,
    /// How many bytes there are; all of them are initialised.
    capacity: usize,
}

// SAFETY: the buffer owns its bytes; they are plain data.
unsafe impl Send for HostBuffer {}
// SAFETY: shared access is read-only.
unsafe impl Sync for HostBuffer {}

/// From this many bytes on a buffer of zeros has large pages.
const LARGE: usize = 8 << 20;

/// The alignment that every system's allocator gives by itself.
const BLOCK_ALIGNMENT: usize = 16;

impl HostBuffer {
    /// Room to align by hand: asked for a larger alignment, the allocator cannot hand out pages that the system has
    /// cleared already, and clears large blocks a second time.
    fn layout(len: usize) -> Option<AllocLayout> {
        AllocLayout::from_size_align(len.checked_add(ALIGNMENT)?, BLOCK_ALIGNMENT).ok()
    }

    fn in_block(block: *mut u8, len: usize) -> Option<Self> {
        let block = NonNull::new(block)?;
        let behind = block.as_ptr().align_offset(ALIGNMENT);
        // SAFETY: the block has `ALIGNMENT` bytes more than `len`, and `behind` is less than that.
        let start = unsafe { block.add(behind) };
        Some(Self { block, start, len, capacity: len })
    }

    /// No bytes.
    pub(crate) fn empty() -> Self {
        let start = NonNull::<AlignedByte>::dangling().cast();
        Self { block: start, start, len: 0, capacity: 0 }
    }

    /// Memory of `len` zero bytes.
    ///
    /// # Errors
    /// When `len` is more than an allocation can hold or the system has no memory for it.
    pub fn try_zeroed(len: usize) -> Result<Self, TensorError> {
        let too_large = || TensorError::from(TensorErrorKind::TooLarge(vec![len]));
        let layout = Self::layout(len).ok_or_else(too_large)?;
        if len == 0 {
            return Ok(Self::empty());
        }
        // SAFETY: the size is not zero.
        let block = unsafe { alloc_zeroed(layout) };
        let buffer = Self::in_block(block, len).ok_or_else(too_large)?;
        if len >= LARGE {
            buffer.prefer_large_pages();
        }
        Ok(buffer)
    }

    /// Asks the system to map the buffer with large pages: what is read here and there, such as a
    /// cache of keys, would wait for the place of a small page each time. Without them it works as
    /// well.
    #[cfg(target_os = "linux")]
    fn prefer_large_pages(&self) {
        let page = rustix::param::page_size();
        let behind = self.start.as_ptr().align_offset(page);
        let whole = self.len.saturating_sub(behind) / page * page;
        let from = self.start.as_ptr().wrapping_add(behind);
        // SAFETY: the pages are part of this buffer; the advice changes no contents. A system that
        // has no large pages says so.
        let _ =
            unsafe { rustix::mm::madvise(from.cast(), whole, rustix::mm::Advice::LinuxHugepage) };
    }

    /// Nothing: other systems choose the size of pages by themselves.
    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::unused_self, reason = "as on Linux")]
    fn prefer_large_pages(&self) {}

    /// Memory that holds a copy of these bytes.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub fn try_copy(bytes: &[u8]) -> Result<Self, TensorError> {
        let len = bytes.len();
        let too_large = || TensorError::from(TensorErrorKind::TooLarge(vec![len]));
        let layout = Self::layout(len).ok_or_else(too_large)?;
        if len == 0 {
            return Ok(Self::empty());
        }
        // SAFETY: the size is not zero.
        let block = unsafe { alloc(layout) };
        let buffer = Self::in_block(block, len).ok_or_else(too_large)?;
        // SAFETY: `start` is valid for writes of `len` bytes, and new memory overlaps nothing. The bytes are
        // initialised from here on, before anybody can read them.
        unsafe { buffer.start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), len) }
        Ok(buffer)
    }

    /// Memory of `len` zero bytes.
    ///
    /// # Panics
    /// Aborts when the system has no memory, as `Vec` does; for sizes from outside use
    /// [`HostBuffer::try_zeroed`].
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self::try_zeroed(len).unwrap_or_else(|_| {
            handle_alloc_error(Self::layout(len).unwrap_or(AllocLayout::new::<AlignedByte>()))
        })
    }

    /// Makes the buffer shorter or longer where it has the memory, and says whether it has. What the bytes hold is
    /// whatever was written there.
    pub(crate) fn resize(&mut self, len: usize) -> bool {
        let fits = len <= self.capacity;
        if fits {
            self.len = len;
        }
        fits
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `start` is valid for `capacity` initialised bytes owned by `self`, of which there are `len`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, writable.
    #[must_use]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`, and `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[repr(align(64))]
struct AlignedByte;

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.capacity != 0
            && let Some(layout) = Self::layout(self.capacity)
        {
            // SAFETY: `block` came from the allocator with this same layout.
            unsafe { dealloc(self.block.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({} bytes)", self.len)
    }
}

// SAFETY: the memory is owned, never moves, and sharing an `Arc` of it leaves no way to write.
unsafe impl Allocation for HostBuffer {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.start.as_ptr())
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
    fn as_host_mut(&mut self) -> Option<&mut HostBuffer> {
        Some(self)
    }
    fn as_parts_mut(&mut self) -> Option<&mut dyn OwnedParts> {
        Some(self)
    }
}

/// Tells the system that bytes of a mapped file are read soon.
pub(crate) fn will_need(bytes: &[u8]) {
    #[cfg(unix)]
    {
        let page = rustix::param::page_size();
        let before = bytes.as_ptr().addr() % page;
        let from = bytes.as_ptr().wrapping_sub(before).cast_mut().cast();
        // SAFETY: the pages are those around bytes that can be read; the advice changes no contents.
        // Without the advice the bytes are only read later.
        let _ = unsafe {
            rustix::mm::madvise(from, bytes.len() + before, rustix::mm::Advice::WillNeed)
        };
    }
}

/// Reference-counted bytes from elsewhere (a network buffer, a decoded message), not copied.
#[derive(Debug)]
pub struct SharedBytes {
    bytes: bytes::Bytes,
    mapped: bool,
}

impl SharedBytes {
    /// Shares the bytes as an allocation.
    #[must_use]
    pub fn new(bytes: bytes::Bytes) -> Arc<Self> {
        Arc::new(Self { bytes, mapped: false })
    }

    /// Shares bytes that are a part of a mapped file.
    #[must_use]
    pub fn mapped(bytes: bytes::Bytes) -> Arc<Self> {
        Arc::new(Self { bytes, mapped: true })
    }
}

// SAFETY: `Bytes` are immutable and keep their address while a handle lives.
unsafe impl Allocation for SharedBytes {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.bytes.as_ptr())
    }
    fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
    fn is_mapped(&self) -> bool {
        self.mapped
    }
}

/// A part of an allocation that starts at no multiple of [`ALIGNMENT`]: copied to one that does when
/// somebody asks for its address.
pub(crate) struct RealignedPart {
    memory: Arc<dyn Allocation>,
    offset: usize,
    len: usize,
    copy: OnceLock<HostBuffer>,
}

impl RealignedPart {
    /// `len` bytes from `offset` on.
    ///
    /// # Panics
    /// When the allocation has fewer.
    pub(crate) fn new(memory: Arc<dyn Allocation>, offset: usize, len: usize) -> Self {
        assert!(offset.checked_add(len).is_some_and(|end| end <= memory.len_bytes()));
        Self { memory, offset, len, copy: OnceLock::new() }
    }

    fn start(&self) -> Result<*const u8, TensorError> {
        Ok(self.memory.as_unaligned_ptr()?.wrapping_add(self.offset))
    }

    fn copied(&self) -> Result<&HostBuffer, TensorError> {
        let start = self.start()?;
        Ok(self.copy.get_or_init(|| {
            // SAFETY: the allocation has these bytes (checked by `new`), immutable while it lives.
            let bytes = unsafe { slice::from_raw_parts(start, self.len) };
            let mut copy = HostBuffer::zeroed(self.len);
            copy.as_bytes_mut().copy_from_slice(bytes);
            copy
        }))
    }
}

impl fmt::Debug for RealignedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Realigned({} bytes)", self.len)
    }
}

// SAFETY: the copy is made once, never moves and is never written again; the bytes behind
// `as_unaligned_ptr` are those of an allocation that lives as long as this one.
unsafe impl Allocation for RealignedPart {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        self.copied()?.as_ptr()
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
    fn as_unaligned_ptr(&self) -> Result<*const u8, TensorError> {
        self.start()
    }
    fn is_mapped(&self) -> bool {
        self.copy.get().is_none() && self.memory.is_mapped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero_at_every_length() {
        for len in [0, 1, 63, 64, 65, 1 << 16] {
            let mut buffer = HostBuffer::zeroed(len);
            assert_eq!(buffer.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
            assert!(buffer.as_bytes().iter().all(|&byte| byte == 0));
            buffer.as_bytes_mut().fill(7);
            assert_eq!(buffer.as_bytes().len(), len);
        }
    }

    #[test]
    fn copies_are_aligned_and_equal_at_every_length() {
        let bytes: Vec<u8> = (0..200).collect();
        for len in [0, 1, 63, 64, 65, 199] {
            let copy = HostBuffer::try_copy(&bytes[1..=len]).unwrap();
            assert_eq!(copy.as_bytes().as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(copy.as_bytes(), &bytes[1..=len]);
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(HostBuffer::try_zeroed(usize::MAX).is_err());
    }
}

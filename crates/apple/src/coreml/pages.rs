//! Memory in whole pages, which the GPU can address where it lies.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::{CoreMlFault, CoreMlFaultKind};

/// A page of an Apple chip.
const PAGE_BYTES: usize = 16 << 10;

/// Zeroed memory of whole pages.
#[derive(Debug)]
pub(super) struct ZeroedPages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the value, and plain bytes are bound to no thread.
unsafe impl Send for ZeroedPages {}
// SAFETY: a shared value gives its address and length only.
unsafe impl Sync for ZeroedPages {}

impl ZeroedPages {
    /// At least so many bytes.
    ///
    /// # Errors
    /// Fails when the system has no memory for them.
    pub(super) fn zeroed(bytes: usize) -> Result<Self, CoreMlFault> {
        let none = || {
            let text = format!("array of {bytes} bytes: no memory for it");
            CoreMlFault::new(CoreMlFaultKind::Memory, text)
        };
        let size = bytes.max(1).checked_next_multiple_of(PAGE_BYTES).ok_or_else(none)?;
        let layout = Layout::from_size_align(size, PAGE_BYTES).map_err(|_| none())?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Ok(Self { start: NonNull::new(start).ok_or_else(none)?, layout })
    }

    /// Returns the start of the pages; valid for reads and writes of all bytes for as long as the value lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for ZeroedPages {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and nobody else frees it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_starts_at_a_page_and_is_zero() {
        let pages = ZeroedPages::zeroed(5).unwrap();
        assert_eq!((pages.start().addr().get() % PAGE_BYTES, pages.layout.size()), (0, PAGE_BYTES));
        // SAFETY: the pages are readable and nobody writes to them.
        let bytes = unsafe { std::slice::from_raw_parts(pages.start().as_ptr(), PAGE_BYTES) };
        assert!(bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn too_much_is_an_error() {
        let fault = ZeroedPages::zeroed(usize::MAX).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Memory);
        assert_eq!(ZeroedPages::zeroed(isize::MAX.unsigned_abs()).unwrap_err().kind, fault.kind);
    }
}

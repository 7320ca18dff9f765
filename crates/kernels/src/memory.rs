//! Aligned buffers, per-thread scratch, and pointers that tasks may share.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;

use galatea_tensor::{ALIGNMENT, Tensor};

/// One cache line of floats.
#[repr(C, align(64))]
struct Line(#[allow(dead_code, reason = "only its size and alignment matter")] [f32; 16]);

/// Bytes of a large page. Buffers of several are aligned to them, so that the system can map
/// them with few entries: weights that stream past once per inference otherwise miss one entry for
/// every 4 KiB.
const LARGE_PAGE: usize = 2 << 20;

/// A buffer of `f32` that starts on a cache line.
pub(crate) struct Aligned {
    lines: NonNull<Line>,
    count: usize,
}

// SAFETY: the buffer owns its memory, as a Vec does.
unsafe impl Send for Aligned {}
// SAFETY: as for Send; shared access only reads.
unsafe impl Sync for Aligned {}

impl Default for Aligned {
    fn default() -> Self {
        Self { lines: NonNull::dangling(), count: 0 }
    }
}

impl Aligned {
    /// A buffer of `len` zeros (rounded up to whole cache lines).
    pub(crate) fn zeroed(len: usize) -> Self {
        let count = len.div_ceil(16);
        let Some(layout) = Self::layout(count) else { return Self::default() };
        // SAFETY: the layout has bytes.
        let lines = NonNull::new(unsafe { alloc::alloc(layout) }.cast::<Line>());
        let Some(lines) = lines else { alloc::handle_alloc_error(layout) };
        if layout.align() == LARGE_PAGE {
            prefer_large_pages(lines.cast(), layout.size());
        }
        // SAFETY: the memory has as many lines; zero bytes are zero floats.
        unsafe { lines.write_bytes(0, count) };
        Self { lines, count }
    }

    /// The layout of some lines; `None` for no lines.
    fn layout(count: usize) -> Option<Layout> {
        let bytes = count.checked_mul(size_of::<Line>());
        assert!(bytes.is_some(), "{count} cache lines");
        let bytes = bytes.unwrap_or(0);
        let align = if bytes >= 2 * LARGE_PAGE { LARGE_PAGE } else { align_of::<Line>() };
        Layout::from_size_align(bytes, align).ok().filter(|layout| layout.size() > 0)
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.count * 16) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr().cast(), self.count * 16) }
    }

    /// The memory as bytes.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let len = self.count * size_of::<Line>();
        // SAFETY: a Line is plain floats without gaps, so the lines are one run of bytes.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr().cast(), len) }
    }

    /// Makes room for `len` floats; what the buffer held is gone where it grows.
    fn grow(&mut self, len: usize) {
        if self.count < len.div_ceil(16) {
            *self = Self::zeroed(len);
        }
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.count * 16);
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.count) {
            // SAFETY: the memory was allotted with this layout.
            unsafe { alloc::dealloc(self.lines.as_ptr().cast(), layout) };
        }
    }
}

/// Asks the system to map a buffer with large pages. Without them it works as well.
#[cfg(target_os = "linux")]
fn prefer_large_pages(start: NonNull<u8>, bytes: usize) {
    let whole = bytes / LARGE_PAGE * LARGE_PAGE;
    // SAFETY: the range is part of a buffer that this process owns; the advice changes no contents.
    unsafe { libc::madvise(start.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
}

/// Nothing: macOS chooses the size of pages by itself.
#[cfg(not(target_os = "linux"))]
fn prefer_large_pages(_start: NonNull<u8>, _bytes: usize) {}

/// Packed weights: made here, or from elsewhere, such as a file that several processes map. Clones
/// share them.
#[derive(Clone)]
pub(crate) enum Packed {
    Own(Arc<Aligned>),
    Given(Tensor),
}

impl Packed {
    pub(crate) fn own(data: Aligned) -> Self {
        Self::Own(Arc::new(data))
    }

    /// The floats `at..at + len` of a vector (`len` rounded up to whole cache lines), if it has them
    /// and they start on a cache line.
    pub(crate) fn given(all: &Tensor, at: usize, len: usize) -> Option<Self> {
        let part = all.slice_axis(0, at, len.next_multiple_of(16), 1).ok()?;
        let aligned = (part.as_slice::<f32>().ok()?.as_ptr() as usize).is_multiple_of(ALIGNMENT);
        (all.rank() == 1 && aligned).then_some(Self::Given(part))
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        match self {
            Self::Own(data) => data.as_slice(),
            // What was given was seen to be floats side by side.
            Self::Given(part) => part.as_slice().unwrap_or_default(),
        }
    }

    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Given(part) if part.is_mapped())
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<Aligned>> = const { RefCell::new(Vec::new()) };
}

/// Lends this thread's scratch of at least `len` floats, on a cache line, contents arbitrary.
/// Calls nest: each gets a buffer of its own.
pub(crate) fn with_scratch<R>(len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut buffer = SCRATCH.with(|free| free.borrow_mut().pop()).unwrap_or_default();
    buffer.grow(len);
    let result = body(&mut buffer.as_mut_slice()[..len]);
    SCRATCH.with(|free| free.borrow_mut().push(buffer));
    result
}

/// A shared pointer into a slice that tasks write disjoint parts of.
pub(crate) struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

// SAFETY: only a pointer; whoever dereferences it vouches that tasks write disjoint elements.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// A pointer that the caller will use within bounds.
    pub(crate) fn from_ptr(ptr: *mut T) -> Self {
        Self(ptr)
    }

    /// The pointer to the first element.
    pub(crate) fn ptr(self) -> *mut T {
        self.0
    }

    /// The same slice from `offset` on.
    pub(crate) fn at(self, offset: usize) -> Self {
        Self(self.0.wrapping_add(offset))
    }

    /// The elements of `range`.
    ///
    /// # Safety
    /// `range` is inside the slice, which outlives the result, and no other task holds any of it.
    pub(crate) unsafe fn range<'a>(self, range: std::ops::Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller vouches for the range and for exclusive use.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

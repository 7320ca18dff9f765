//! Aligned buffers, per-thread scratch, and pointers that tasks may share.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use galatea_tensor::{ALIGNMENT, Tensor};

/// One cache line of floats.
#[repr(C, align(64))]
struct CacheLine(#[allow(dead_code, reason = "only its size and alignment matter")] [f32; 16]);

/// Bytes of a large page. Buffers of several are aligned to them, so that the system can map
/// them with few entries: weights that stream past once per inference otherwise miss one entry for
/// every 4 KiB.
const LARGE_PAGE: usize = 2 << 20;

/// Bytes of a slab.
const SLAB: usize = 16 * LARGE_PAGE;

/// The least and the most bytes of a buffer in a slab: less would hold a slab for little, and more
/// has large pages of its own.
const IN_SLAB: std::ops::Range<usize> = 16 * 1024..2 * LARGE_PAGE;

/// The slab that buffers are taken from, with the number of lines taken already.
static OPEN_SLAB: Mutex<Option<(Arc<AlignedFloats>, usize)>> = Mutex::new(None);

/// A buffer of `f32` that starts on a cache line.
pub(crate) struct AlignedFloats {
    lines: NonNull<CacheLine>,
    count: usize,
    home: LineStorage,
}

/// Where the lines of a buffer are.
enum LineStorage {
    Nowhere,
    /// In a block of their own that starts here.
    Block(NonNull<u8>),
    /// In a buffer that others share.
    Slab(#[allow(dead_code, reason = "it only has to live")] Arc<AlignedFloats>),
}

// SAFETY: the buffer owns its memory, as a Vec does.
unsafe impl Send for AlignedFloats {}
// SAFETY: as for Send; shared access only reads.
unsafe impl Sync for AlignedFloats {}

impl Default for AlignedFloats {
    fn default() -> Self {
        Self { lines: NonNull::dangling(), count: 0, home: LineStorage::Nowhere }
    }
}

impl AlignedFloats {
    /// A buffer of `len` zeros (rounded up to whole cache lines).
    pub(crate) fn zeroed(len: usize) -> Self {
        let count = len.div_ceil(16);
        let Some(layout) = Self::layout(count) else { return Self::default() };
        // SAFETY: the layout has bytes.
        let block = NonNull::new(unsafe { alloc::alloc_zeroed(layout) });
        let Some(block) = block else { alloc::handle_alloc_error(layout) };
        let bytes = count * size_of::<CacheLine>();
        let mut lines = block.cast();
        if layout.size() > bytes {
            let behind = block.as_ptr().align_offset(LARGE_PAGE);
            // SAFETY: the block has a large page more than the lines need.
            lines = unsafe { block.add(behind) }.cast();
            prefer_large_pages(lines.cast(), bytes);
        }
        Self { lines, count, home: LineStorage::Block(block) }
    }

    /// Allocates like [`AlignedFloats::zeroed`] what is kept long: small buffers share large pages with others,
    /// and those pages are free again when all of them are.
    pub(crate) fn lasting(len: usize) -> Self {
        let count = len.div_ceil(16);
        if !IN_SLAB.contains(&count.saturating_mul(size_of::<CacheLine>())) {
            return Self::zeroed(len);
        }
        let mut open = OPEN_SLAB.lock().unwrap_or_else(PoisonError::into_inner);
        let room = |(slab, taken): &(Arc<Self>, usize)| slab.count - taken >= count;
        let (slab, taken) = open
            .take()
            .filter(room)
            .unwrap_or_else(|| (Arc::new(Self::zeroed(SLAB / size_of::<f32>())), 0));
        // SAFETY: the lines taken and these are inside the slab.
        let lines = unsafe { slab.lines.add(taken) };
        *open = Some((Arc::clone(&slab), taken + count));
        // Nobody else ever uses these lines, and the slab lives as long as the buffer.
        Self { lines, count, home: LineStorage::Slab(slab) }
    }

    /// The layout of the block for some lines; `None` for no lines. A large block has room to align
    /// by hand: asked for the alignment of a large page, the allocator cannot hand out pages that
    /// the system has cleared already, and touches them all.
    fn layout(count: usize) -> Option<Layout> {
        let bytes = count.saturating_mul(size_of::<CacheLine>());
        let layout = if bytes < IN_SLAB.end {
            Layout::from_size_align(bytes, align_of::<CacheLine>())
        } else {
            Layout::from_size_align(bytes.saturating_add(LARGE_PAGE), 16)
        };
        assert!(layout.is_ok(), "{count} cache lines");
        layout.ok().filter(|layout| layout.size() > 0)
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[f32] {
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.count * 16) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_ptr().cast(), self.count * 16) }
    }

    /// The memory as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let len = self.count * size_of::<CacheLine>();
        // SAFETY: a Line is plain floats without gaps, so the lines are one run of bytes.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), len) }
    }

    /// The memory as bytes, to be written.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let len = self.count * size_of::<CacheLine>();
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

impl Clone for AlignedFloats {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.count * 16);
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        copy
    }
}

impl Drop for AlignedFloats {
    fn drop(&mut self) {
        if let (LineStorage::Block(block), Some(layout)) = (&self.home, Self::layout(self.count)) {
            // SAFETY: the block was allotted with this layout.
            unsafe { alloc::dealloc(block.as_ptr(), layout) };
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
pub(crate) enum PackedStorage {
    Own(Arc<AlignedFloats>),
    Given(Tensor),
}

impl PackedStorage {
    pub(crate) fn own(data: AlignedFloats) -> Self {
        Self::Own(Arc::new(data))
    }

    /// The floats `at..at + len` of a vector (`len` rounded up to whole cache lines), if it has them
    /// and they start on a cache line.
    pub(crate) fn given(all: &Tensor, at: usize, len: usize) -> Option<Self> {
        let part = all.slice_axis(0, at, len.next_multiple_of(16), 1).ok()?;
        let aligned = (part.as_slice::<f32>().ok()?.as_ptr() as usize).is_multiple_of(ALIGNMENT);
        (all.rank() == 1 && aligned).then_some(Self::Given(part))
    }

    #[inline]
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
    static SCRATCH: RefCell<Vec<AlignedFloats>> = const { RefCell::new(Vec::new()) };
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
pub(crate) struct DisjointSlice<T>(*mut T);

impl<T> Clone for DisjointSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for DisjointSlice<T> {}

// SAFETY: only a pointer; whoever dereferences it vouches that tasks write disjoint elements.
unsafe impl<T: Send> Send for DisjointSlice<T> {}
// SAFETY: as for Send.
unsafe impl<T: Send> Sync for DisjointSlice<T> {}

impl<T> DisjointSlice<T> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_in_a_slab_are_apart_zero_and_outlive_each_other() {
        let lens = [1, 5_000, 16, 100_000, 70_000, 2 << 20, 300_000, 900_000];
        let mut buffers: Vec<AlignedFloats> = Vec::new();
        for round in 0..40 {
            let len = lens[round % lens.len()] + round;
            let mut buffer = AlignedFloats::lasting(len);
            assert!(buffer.as_slice().len() >= len);
            assert_eq!(buffer.as_slice().as_ptr().align_offset(64), 0);
            assert!(buffer.as_slice().iter().all(|&x| x == 0.0), "{round}");
            buffer.as_mut_slice().fill(round as f32);
            if round % 3 == 2 {
                buffers.remove(0);
            }
            buffers.push(buffer);
        }
        for buffer in &buffers {
            let first = buffer.as_slice()[0];
            assert!(buffer.as_slice().iter().all(|&x| x == first));
            assert_eq!(buffer.clone().as_slice(), buffer.as_slice());
        }
    }
}

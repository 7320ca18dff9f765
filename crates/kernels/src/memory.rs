//! Aligned buffers, per-thread scratch, and pointers that tasks may share.

use std::cell::RefCell;
use std::sync::Arc;

use galatea_tensor::{ALIGNMENT, Tensor};

/// One cache line of floats.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// A buffer of `f32` that starts on a cache line.
#[derive(Clone, Default)]
pub(crate) struct Aligned {
    lines: Vec<Line>,
}

impl Aligned {
    /// A buffer of `len` zeros (rounded up to whole cache lines).
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0.0; 16]); len.div_ceil(16)] }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 16) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        let len = self.lines.len() * 16;
        // SAFETY: a Line is exactly 16 floats, so the lines are one run of initialised floats.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), len) }
    }

    /// The memory as bytes.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let len = self.lines.len() * size_of::<Line>();
        // SAFETY: a Line is plain floats without gaps, so the lines are one run of bytes.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), len) }
    }

    fn grow(&mut self, len: usize) {
        let lines = len.div_ceil(16);
        if self.lines.len() < lines {
            self.lines.resize(lines, Line([0.0; 16]));
        }
    }
}

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

//! Arrays that go to models and come from them.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use galatea_tensor::{Allocation, MemoryKind, TensorError};

use super::check::{self, GivenArray};
use super::layout::{self, ArrayLayout};
use super::pages::ZeroedPages;
use super::system::Buffer;
use super::{ArrayDataType, CoreMlFault, CoreMlFaultKind};

/// An array of Core ML's, with one owner.
pub struct MultiArray {
    buffer: Buffer,
    data_type: ArrayDataType,
    shape: Vec<usize>,
    writable: bool,
    /// True if it lies in a surface that was made for it.
    surface: bool,
    /// Its memory, where the array was made with memory of its own.
    pages: Option<Arc<ZeroedPages>>,
}

/// Memory of a former array, which is not written to any more.
#[derive(Debug)]
struct FrozenArray {
    pages: Arc<ZeroedPages>,
    len: usize,
}

// SAFETY: the pages live and stay where they are as long as the value, they have `len` bytes, and the
// array that was written through is gone.
unsafe impl Allocation for FrozenArray {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Unified
    }

    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.pages.start().as_ptr())
    }

    fn len_bytes(&self) -> usize {
        self.len
    }
}

impl fmt::Debug for MultiArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("data_type", &self.data_type)
            .field("shape", &self.shape)
            .field("writable", &self.writable)
            .finish_non_exhaustive()
    }
}

impl MultiArray {
    /// An array of zeros in memory of its own, without gaps and from the start of a page on.
    ///
    /// # Errors
    /// `Argument` for a shape that Core ML cannot have, `Memory` when there is none, `Version` for
    /// [`ArrayDataType::Int8`] before macOS 26, and `Unavailable` off macOS.
    pub fn zeroed(data_type: ArrayDataType, shape: &[usize]) -> Result<Self, CoreMlFault> {
        let layout = ArrayLayout::contiguous(data_type, shape)?;
        let pages = Arc::new(ZeroedPages::zeroed(layout.span())?);
        let start = pages.start();
        // SAFETY: the pages have as many bytes as the layout spans, they live as long as their
        // owners, and this array alone reads and writes them.
        let buffer = unsafe { Buffer::over(Box::new(Arc::clone(&pages)), start, &layout)? };
        Ok(Self { pages: Some(pages), ..Self::of(buffer, &layout, true) })
    }

    /// A window on memory that others read too, without a copy: the first element lies `offset`
    /// bytes behind its start, and `strides` are elements from one to the next along each dimension;
    /// without them there are no gaps and the last dimension lies closest. Nobody may write to it.
    ///
    /// # Errors
    /// `Argument` when the array does not lie within the memory, its elements overlap or they lie at
    /// no multiple of their size; `Version` and `Unavailable` as [`MultiArray::zeroed`].
    pub fn from_memory(
        memory: Arc<dyn Allocation>,
        offset: usize,
        data_type: ArrayDataType,
        shape: &[usize],
        strides: Option<&[usize]>,
    ) -> Result<Self, CoreMlFault> {
        let layout = match strides {
            Some(strides) => ArrayLayout::new(data_type, shape, strides)?,
            None => ArrayLayout::contiguous(data_type, shape)?,
        };
        let address = memory.as_ptr();
        let address = address.map_err(|error| CoreMlFault::argument(error.to_string()))?;
        check::window(&layout, address.addr(), memory.len_bytes(), offset)?;
        let start = NonNull::new(address.wrapping_add(offset).cast_mut());
        let start = start.ok_or_else(|| CoreMlFault::argument("the memory has no address"))?;
        // SAFETY: the array lies within the memory, as was checked, which lives as long as its
        // owner; as the array is not writable, nothing writes through it.
        let buffer = unsafe { Buffer::over(Box::new(memory), start, &layout)? };
        Ok(Self::of(buffer, &layout, false))
    }

    /// An array in a surface, which CPU, GPU and Neural Engine share: its width is the last
    /// dimension, and its rows may have gaps behind them.
    ///
    /// # Errors
    /// `Argument` for other types than `Float16` and `Int8`, `Memory` when the system makes no such
    /// surface, `Version` and `Unavailable` as [`MultiArray::zeroed`].
    pub fn on_surface(data_type: ArrayDataType, shape: &[usize]) -> Result<Self, CoreMlFault> {
        let layout = ArrayLayout::contiguous(data_type, shape)?;
        let (width, height) = check::surface(&layout)?;
        let buffer = Buffer::surface(width, height, &layout)?;
        Ok(Self { surface: true, ..Self::of(buffer, &layout, true) })
    }

    fn of(buffer: Buffer, layout: &ArrayLayout, writable: bool) -> Self {
        let data_type = layout.data_type;
        let shape = layout.shape.clone();
        Self { buffer, data_type, shape, writable, surface: false, pages: None }
    }

    /// An array that a model made.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn returned(buffer: Buffer, data_type: ArrayDataType, shape: Vec<usize>) -> Self {
        Self { buffer, data_type, shape, writable: false, surface: false, pages: None }
    }

    /// Says that nobody else reads or writes the array's memory, whosever it is.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn become_writable(&mut self) {
        self.writable = true;
    }

    /// The type of its elements.
    #[must_use]
    pub fn data_type(&self) -> ArrayDataType {
        self.data_type
    }

    /// Returns the number of elements along each dimension.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Bytes of its elements, without gaps.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.data_type.size_bytes()
    }

    /// Returns whether it lies in a surface of its own ([`MultiArray::on_surface`]).
    #[must_use]
    pub fn is_surface(&self) -> bool {
        self.surface
    }

    /// Calls `look` with the bytes and the strides, in elements.
    ///
    /// # Errors
    /// `Memory` when Core ML gives fewer bytes than the elements take.
    pub fn read<R>(&self, look: impl FnOnce(&[u8], &[usize]) -> R) -> Result<R, CoreMlFault> {
        self.buffer.read(|bytes, strides| {
            self.covers(bytes.len(), strides)?;
            Ok(look(bytes, strides))
        })?
    }

    /// Calls `change` with the bytes and the strides, in elements; both may be others than those of
    /// an earlier call.
    ///
    /// # Errors
    /// `Argument` when the memory is read-only, `Memory` as [`MultiArray::read`].
    pub fn write<R>(
        &mut self,
        change: impl FnOnce(&mut [u8], &[usize]) -> R,
    ) -> Result<R, CoreMlFault> {
        if !self.writable {
            return Err(CoreMlFault::argument("the array's memory is read-only"));
        }
        let data_type = self.data_type;
        let shape = self.shape.clone();
        self.buffer.write(|bytes, strides| {
            covers(data_type, &shape, strides, bytes.len())?;
            Ok(change(bytes, strides))
        })?
    }

    /// Copies the elements to `to`, without gaps and in order.
    ///
    /// # Errors
    /// `Argument` when `to` has another length than [`MultiArray::len_bytes`], `Memory` as
    /// [`MultiArray::read`].
    pub fn copy_to(&self, to: &mut [u8]) -> Result<(), CoreMlFault> {
        self.holds(to.len())?;
        self.read(|bytes, strides| {
            layout::gather(self.data_type, &self.shape, bytes, strides, to);
        })
    }

    /// Copies elements without gaps and in order from `from`.
    ///
    /// # Errors
    /// `Argument` when `from` has another length than [`MultiArray::len_bytes`] or the memory is
    /// read-only, `Memory` as [`MultiArray::read`].
    pub fn copy_from(&mut self, from: &[u8]) -> Result<(), CoreMlFault> {
        self.holds(from.len())?;
        let data_type = self.data_type;
        let shape = self.shape.clone();
        self.write(|bytes, strides| layout::scatter(data_type, &shape, from, bytes, strides))
    }

    /// The memory of an array made by [`MultiArray::zeroed`], without a copy: the elements without gaps
    /// and in order. Other arrays are given back.
    ///
    /// # Errors
    /// The array itself.
    pub fn into_memory(self) -> Result<Arc<dyn Allocation>, Self> {
        let len = self.len_bytes();
        match self.pages {
            Some(pages) => Ok(Arc::new(FrozenArray { pages, len })),
            None => Err(self),
        }
    }

    fn holds(&self, found: usize) -> Result<(), CoreMlFault> {
        let expected = self.len_bytes();
        if found == expected {
            return Ok(());
        }
        let text = format!(
            "array of shape {}: found {found} bytes, expected {expected}",
            layout::shown(&self.shape)
        );
        Err(CoreMlFault::argument(text))
    }

    fn covers(&self, found: usize, strides: &[usize]) -> Result<(), CoreMlFault> {
        covers(self.data_type, &self.shape, strides, found)
    }

    /// Returns the view that checks have of it as the feature `name`.
    pub(super) fn given<'a>(&'a self, name: &'a str) -> GivenArray<'a> {
        GivenArray { name, data_type: self.data_type, shape: &self.shape, writable: self.writable }
    }

    /// Core ML's own.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// `found` bytes hold all elements at these strides.
fn covers(
    data_type: ArrayDataType,
    shape: &[usize],
    strides: &[usize],
    found: usize,
) -> Result<(), CoreMlFault> {
    let needed = layout::span_bytes(data_type, shape, strides);
    if strides.len() == shape.len() && needed.is_some_and(|needed| needed <= found) {
        return Ok(());
    }
    let shape = layout::shown(shape);
    let strides = layout::shown(strides);
    let text = format!(
        "array of {data_type}, shape {shape}, strides {strides}: Core ML gives {found} bytes of it"
    );
    Err(CoreMlFault::new(CoreMlFaultKind::Memory, text))
}

#[cfg(test)]
mod tests {
    use galatea_tensor::HostBuffer;

    use super::*;

    #[test]
    fn what_core_ml_gives_of_an_array_must_cover_it() {
        let covers = |strides: &[usize], found| {
            covers(ArrayDataType::Float16, &[2, 3], strides, found).map_err(|fault| fault.kind)
        };
        assert_eq!(covers(&[3, 1], 12), Ok(()));
        assert_eq!(covers(&[32, 1], 70), Ok(()));
        assert_eq!(covers(&[32, 1], 69), Err(CoreMlFaultKind::Memory));
        assert_eq!(covers(&[3], 12), Err(CoreMlFaultKind::Memory));
        assert_eq!(covers(&[usize::MAX, 1], 12), Err(CoreMlFaultKind::Memory));
    }

    #[test]
    fn wrong_windows_are_refused_before_core_ml_is_asked() {
        let memory: Arc<dyn Allocation> = Arc::new(HostBuffer::zeroed(64));
        let kind = |offset, shape: &[usize], strides: Option<&[usize]>| {
            let memory = Arc::clone(&memory);
            MultiArray::from_memory(memory, offset, ArrayDataType::Float32, shape, strides)
                .map_err(|fault| fault.kind)
                .err()
        };
        let argument = Some(CoreMlFaultKind::Argument);
        assert_eq!(kind(4, &[16], Some(&[1])), argument);
        assert_eq!(kind(2, &[4], None), argument);
        assert_eq!(kind(0, &[4, 4], Some(&[1, 1])), argument);
        assert_ne!(kind(0, &[16], None), argument);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_are_no_arrays() {
        let zeroed = MultiArray::zeroed(ArrayDataType::Float32, &[2]).unwrap_err();
        let surface = MultiArray::on_surface(ArrayDataType::Float16, &[2]).unwrap_err();
        assert_eq!(zeroed.kind, CoreMlFaultKind::Unavailable);
        assert_eq!(surface.kind, CoreMlFaultKind::Unavailable);
        assert!(surface.text.starts_with("Core ML is unavailable: needs macOS"));
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn arrays_keep_what_is_written_to_them() {
        let from: Vec<u8> = (0..12).collect();
        let shape = [2, 3];
        let zeroed = MultiArray::zeroed(ArrayDataType::Float16, &shape).unwrap();
        let surface = MultiArray::on_surface(ArrayDataType::Float16, &shape).unwrap();
        for mut array in [zeroed, surface] {
            array.copy_from(&from).unwrap();
            let mut to = [0; 12];
            array.copy_to(&mut to).unwrap();
            assert_eq!(to, from[..]);
        }
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn an_array_leaves_its_memory() {
        let mut array = MultiArray::zeroed(ArrayDataType::Int32, &[1]).unwrap();
        array.copy_from(&[1, 2, 3, 4]).unwrap();
        let memory = array.into_memory().unwrap();
        // SAFETY: an allocation's bytes are readable.
        let bytes =
            unsafe { std::slice::from_raw_parts(memory.as_ptr().unwrap(), memory.len_bytes()) };
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert!(
            MultiArray::on_surface(ArrayDataType::Float16, &[4]).unwrap().into_memory().is_err()
        );
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn a_window_holds_its_memory_and_is_read_only() {
        let memory: Arc<dyn Allocation> = Arc::new(HostBuffer::zeroed(64));
        let kept = Arc::clone(&memory);
        let array =
            MultiArray::from_memory(memory, 8, ArrayDataType::Int32, &[2, 2], Some(&[4, 1]));
        let mut array = array.unwrap();
        assert_eq!(Arc::strong_count(&kept), 2);
        assert_eq!(array.read(|_, strides| strides.to_vec()), Ok(vec![4, 1]));
        assert_eq!(array.write(|_, _| ()).unwrap_err().kind, CoreMlFaultKind::Argument);
        drop(array);
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}

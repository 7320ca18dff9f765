//! Shared tensors and the writer's side of one.

use std::sync::Arc;
use std::{fmt, slice};

use crate::dtype::DataType;
use crate::element::{ByteString, Element};
use crate::error::{TensorError, TensorErrorKind};
use crate::layout::{ViewLayout, checked_elements};
use crate::memory::{Allocation, HostBuffer, RealignedPart};
use crate::parts::OwnedParts;
use crate::view::{TensorMut, TensorRef, cast_slice, has_odd_bytes, size_bytes};

/// A typed, shared, immutable window on memory. Clones and views share the elements.
#[derive(Clone)]
pub struct Tensor {
    dtype: DataType,
    layout: ViewLayout,
    storage: Storage,
    /// Bytes (numeric) or elements (strings) from the start of the storage.
    offset: usize,
}

#[derive(Clone)]
enum Storage {
    Memory(Arc<dyn Allocation>),
    Strings(Arc<[ByteString]>),
}

/// Elements from the bytes of elements, at any alignment. `T` is a type of more than one byte whose
/// every pattern of bits is a value.
fn copied<T: Element>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len() / size_of::<T>();
    let mut all: Vec<T> = Vec::with_capacity(count);
    // SAFETY: the vector has room for as many bytes, new memory overlaps nothing, and bytes that lie
    // in memory are those of a numeric type: `BYTES` tensors have no memory, and types of one byte
    // are always aligned.
    unsafe {
        all.as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), count * size_of::<T>());
    }
    // SAFETY: as many elements were initialised just now.
    unsafe { all.set_len(count) }
    all
}

/// Refuses another number of elements than a shape has.
fn check_count(shape: &[usize], found: usize) -> Result<(), TensorError> {
    let expected = checked_elements(shape)?;
    if expected == found {
        return Ok(());
    }
    let shape = shape.to_vec();
    Err(TensorErrorKind::WrongSize { shape, expected, found, unit: "elements" }.into())
}

impl Tensor {
    /// A tensor of these elements in row-major order.
    ///
    /// # Errors
    /// When the count is not that of the shape.
    pub fn from_vec<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Self, TensorError> {
        check_count(shape, elements.len())?;
        if T::DTYPE == DataType::Bytes {
            let any: Box<dyn std::any::Any> = Box::new(elements);
            let strings = any.downcast::<Vec<ByteString>>().map_or_else(|_| Vec::new(), |s| *s);
            return Ok(Self {
                dtype: DataType::Bytes,
                layout: ViewLayout::contiguous(shape),
                storage: Storage::Strings(strings.into()),
                offset: 0,
            });
        }
        let len = size_of_val(elements.as_slice());
        // SAFETY: the elements of the sealed numeric types are plain initialised bytes without padding.
        let bytes = unsafe { slice::from_raw_parts(elements.as_ptr().cast::<u8>(), len) };
        Self::of_elements(T::DTYPE, shape, bytes)
    }

    /// Makes a tensor of a copy of the bytes of elements, as many as the shape has.
    fn of_elements(dtype: DataType, shape: &[usize], bytes: &[u8]) -> Result<Self, TensorError> {
        let mut buffer = HostBuffer::try_zeroed(bytes.len())?;
        buffer.as_bytes_mut().copy_from_slice(bytes);
        let storage = Storage::Memory(Arc::new(buffer));
        Ok(Self { dtype, layout: ViewLayout::contiguous(shape), storage, offset: 0 })
    }

    /// A tensor of a copy of these elements in row-major order.
    ///
    /// # Errors
    /// When the count is not that of the shape.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self, TensorError> {
        Self::from_vec(shape, elements.to_vec())
    }

    /// A tensor of rank 0.
    #[must_use]
    pub fn scalar<T: Element>(value: T) -> Self {
        Self::from_vec(&[], vec![value]).unwrap_or_else(|_| unreachable!("one element, rank 0"))
    }

    /// A tensor of rank 1.
    #[must_use]
    pub fn vector<T: Element>(values: Vec<T>) -> Self {
        let shape = [values.len()];
        Self::from_vec(&shape, values).unwrap_or_else(|_| unreachable!("the shape is the length"))
    }

    /// A tensor whose elements all equal `T::default()`: zero, false, the empty string, or
    /// the smallest value of `FLOAT8E8M0`, which has no zero.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn zeros(dtype: DataType, shape: &[usize]) -> Result<Self, TensorError> {
        if dtype == DataType::Bytes {
            return Self::from_vec(shape, vec![ByteString::default(); checked_elements(shape)?]);
        }
        Ok(OwnedTensor::zeroed(dtype, shape)?.freeze())
    }

    /// A tensor of elements that were moved as those of [`DataType::carrier`], in row-major order.
    ///
    /// # Errors
    /// When the count is not that of the shape, `T` is not the carrier of the type, or bits of an
    /// element are no value of the type.
    pub fn from_carriers<T: Element>(
        dtype: DataType,
        shape: &[usize],
        elements: Vec<T>,
    ) -> Result<Self, TensorError> {
        Self::from_vec(shape, elements)?.retyped(dtype)
    }

    /// Gives a contiguous tensor of carriers the type that its bits are of.
    fn retyped(self, dtype: DataType) -> Result<Self, TensorError> {
        let expected = dtype.carrier();
        if self.dtype != expected {
            return Err(TensorErrorKind::WrongType { found: self.dtype, expected }.into());
        }
        if dtype != DataType::Bytes {
            TensorRef::from_bytes(dtype, self.shape(), self.as_bytes()?)?;
        }
        Ok(Self { dtype, ..self })
    }

    /// A numeric tensor over shared memory, `offset_bytes` from its start, little-endian and
    /// contiguous. The bytes are shared if they are aligned for the type, else copied; `BOOL`
    /// bytes other than 0 and 1 are copied as 1, bytes of small types without what is above their bits.
    ///
    /// # Errors
    /// When the memory is too short for the shape, or the type is `BYTES`.
    pub fn from_allocation(
        dtype: DataType,
        shape: &[usize],
        memory: Arc<dyn Allocation>,
        offset_bytes: usize,
    ) -> Result<Self, TensorError> {
        let expected = size_bytes(dtype, shape)?;
        let found = memory.len_bytes().saturating_sub(offset_bytes);
        if found < expected {
            let shape = shape.to_vec();
            return Err(TensorErrorKind::WrongSize { shape, expected, found, unit: "bytes" }.into());
        }
        let layout = ViewLayout::contiguous(shape);
        let shared = Self { dtype, layout, storage: Storage::Memory(memory), offset: offset_bytes };
        let bytes = shared.memory_bytes(expected)?;
        let odd = has_odd_bytes(dtype, bytes);
        let size = dtype.size_bytes().unwrap_or(1);
        if !odd && (bytes.as_ptr() as usize).is_multiple_of(size) {
            return Ok(shared);
        }
        let mut copy = HostBuffer::try_copy(bytes)?;
        match dtype {
            DataType::Bool => {
                copy.as_bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            }
            DataType::Small(small) => {
                copy.as_bytes_mut().iter_mut().for_each(|byte| *byte &= small.mask());
            }
            _ => {}
        }
        Ok(Self { storage: Storage::Memory(Arc::new(copy)), offset: 0, ..shared })
    }

    /// Makes a tensor like [`Tensor::from_allocation`], but bytes that are not aligned for the type are copied when
    /// somebody needs them in one piece and aligned, and not before.
    ///
    /// # Errors
    /// Fails like [`Tensor::from_allocation`].
    pub fn from_allocation_lazily(
        dtype: DataType,
        shape: &[usize],
        memory: Arc<dyn Allocation>,
        offset_bytes: usize,
    ) -> Result<Self, TensorError> {
        let expected = size_bytes(dtype, shape)?;
        let size = dtype.size_bytes().unwrap_or(1);
        let start = memory.as_unaligned_ptr()?.wrapping_add(offset_bytes);
        let enough = memory.len_bytes().checked_sub(offset_bytes).is_some_and(|n| n >= expected);
        if !enough || size == 1 || (start as usize).is_multiple_of(size) {
            return Self::from_allocation(dtype, shape, memory, offset_bytes);
        }
        let storage = Storage::Memory(Arc::new(RealignedPart::new(memory, offset_bytes, expected)));
        Ok(Self { dtype, layout: ViewLayout::contiguous(shape), storage, offset: 0 })
    }

    /// A tensor over memory that is not read before somebody asks for elements, such as a GPU's.
    ///
    /// # Errors
    /// When the memory is too short for the shape, or the type is `BYTES`. Types with patterns of bits
    /// that are no value, `BOOL` and the small ones, are looked at as in [`Tensor::from_allocation`].
    pub fn from_remote(
        dtype: DataType,
        shape: &[usize],
        memory: Arc<dyn Allocation>,
    ) -> Result<Self, TensorError> {
        let expected = size_bytes(dtype, shape)?;
        let found = memory.len_bytes();
        if found < expected {
            let shape = shape.to_vec();
            return Err(TensorErrorKind::WrongSize { shape, expected, found, unit: "bytes" }.into());
        }
        if matches!(dtype, DataType::Bool | DataType::Small(_)) {
            return Self::from_allocation(dtype, shape, memory, 0);
        }
        let layout = ViewLayout::contiguous(shape);
        Ok(Self { dtype, layout, storage: Storage::Memory(memory), offset: 0 })
    }

    /// The memory of a tensor that is the whole of it in row-major order, and whether nobody else has
    /// that memory.
    #[must_use]
    pub fn whole_allocation(&self) -> Option<(&dyn Allocation, bool)> {
        let Storage::Memory(memory) = &self.storage else { return None };
        let whole = self.offset == 0
            && self.layout.is_contiguous()
            && memory.len_bytes() == self.size_bytes();
        whole.then(|| (&**memory, Arc::strong_count(memory) == 1))
    }

    /// The memory of a tensor whose elements lie in it in row-major order, and the byte that they begin at;
    /// `None` for texts, and for elements in another order.
    #[must_use]
    pub fn memory(&self) -> Option<(Arc<dyn Allocation>, usize)> {
        let Storage::Memory(memory) = &self.storage else { return None };
        self.layout.is_contiguous().then(|| (Arc::clone(memory), self.offset))
    }

    /// A numeric tensor of a copy of raw little-endian bytes.
    ///
    /// # Errors
    /// When the byte count is not that of the shape, or the type is `BYTES`.
    pub fn from_bytes(dtype: DataType, shape: &[usize], bytes: &[u8]) -> Result<Self, TensorError> {
        let expected = size_bytes(dtype, shape)?;
        if bytes.len() != expected {
            let shape = shape.to_vec();
            let found = bytes.len();
            return Err(TensorErrorKind::WrongSize { shape, expected, found, unit: "bytes" }.into());
        }
        let buffer = HostBuffer::try_copy(bytes)?;
        Self::from_allocation(dtype, shape, Arc::new(buffer), 0)
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Lengths of the axes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Shape and strides.
    #[must_use]
    pub fn layout(&self) -> &ViewLayout {
        &self.layout
    }

    /// The number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.layout.shape().len()
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.layout.elements()
    }

    /// Bytes that the elements take when contiguous; for strings the sum of their lengths.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match (&self.storage, self.dtype.size_bytes()) {
            (Storage::Strings(_), _) | (_, None) => self
                .to_vec::<ByteString>()
                .map_or(0, |all| all.iter().map(|string| string.as_bytes().len()).sum()),
            (_, Some(size)) => self.elements() * size,
        }
    }

    /// `len` bytes from this view's first element on; the caller has checked that they exist.
    fn memory_bytes(&self, len: usize) -> Result<&[u8], TensorError> {
        self.bytes_from(len, |memory| memory.as_ptr())
    }

    fn bytes_from(
        &self,
        len: usize,
        start: impl Fn(&dyn Allocation) -> Result<*const u8, TensorError>,
    ) -> Result<&[u8], TensorError> {
        let Storage::Memory(memory) = &self.storage else { return Ok(&[]) };
        assert!(self.offset.checked_add(len).is_some_and(|end| end <= memory.len_bytes()));
        if len == 0 {
            return Ok(&[]);
        }
        let start = start(&**memory)?;
        // SAFETY: inside the allocation (asserted above).
        let start = unsafe { start.add(self.offset) };
        // SAFETY: the allocation's contract: readable, initialised and never written while shared.
        Ok(unsafe { slice::from_raw_parts(start, len) })
    }

    /// The raw little-endian bytes.
    ///
    /// # Errors
    /// For string tensors, for views whose elements are not adjacent, and for elements on a device that was lost.
    pub fn as_bytes(&self) -> Result<&[u8], TensorError> {
        let len = size_bytes(self.dtype, self.shape())?;
        if !self.layout.is_contiguous() {
            return Err(TensorErrorKind::NotContiguous.into());
        }
        self.memory_bytes(len)
    }

    /// The raw little-endian bytes at whatever address they lie, which need not be aligned for the
    /// type; as [`Tensor::as_bytes`], but never copies what is in a file.
    ///
    /// # Errors
    /// For string tensors, and for views whose elements are not adjacent.
    pub fn unaligned_bytes(&self) -> Result<&[u8], TensorError> {
        let len = size_bytes(self.dtype, self.shape())?;
        if !self.layout.is_contiguous() {
            return Err(TensorErrorKind::NotContiguous.into());
        }
        self.bytes_from(len, |memory| memory.as_unaligned_ptr())
    }

    /// Whether the elements are bytes of a mapped file, which take no memory of this process alone.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(&self.storage, Storage::Memory(memory) if memory.is_mapped())
    }

    /// Tells the system that a file's part with these elements is read soon, so that it reads ahead what is
    /// not in memory. Elements elsewhere are near already, and nothing happens.
    pub fn will_need(&self) {
        if let (true, Ok(bytes)) = (self.is_mapped(), self.unaligned_bytes()) {
            crate::memory::will_need(bytes);
        }
    }

    /// The elements in row-major order, without copying.
    ///
    /// # Errors
    /// When `T` is not the element type, and for views whose elements are not adjacent.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], TensorError> {
        self.as_view()?.as_slice::<T>()
    }

    /// The tensor as a kernel reads it.
    ///
    /// # Errors
    /// For views whose elements are not adjacent; call [`Tensor::contiguous`] first.
    pub fn as_view(&self) -> Result<TensorRef<'_>, TensorError> {
        if !self.layout.is_contiguous() {
            return Err(TensorErrorKind::NotContiguous.into());
        }
        match &self.storage {
            Storage::Strings(strings) => {
                let strings = &strings[self.offset..self.offset + self.elements()];
                Ok(TensorRef::from_strings(self.shape(), strings))
            }
            Storage::Memory(_) => {
                let bytes = self.memory_bytes(size_bytes(self.dtype, self.shape())?)?;
                Ok(TensorRef::from_checked_bytes(self.dtype, self.shape(), bytes))
            }
        }
    }

    /// A copy of the elements in row-major order, for any layout.
    ///
    /// # Errors
    /// When `T` is not the element type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        if T::DTYPE != self.dtype {
            return Err(TensorErrorKind::WrongType { found: self.dtype, expected: T::DTYPE }.into());
        }
        if self.layout.is_contiguous() {
            return match self.unaligned_bytes() {
                Ok(bytes) if !(bytes.as_ptr() as usize).is_multiple_of(align_of::<T>()) => {
                    Ok(copied(bytes))
                }
                _ => Ok(self.as_slice::<T>()?.to_vec()),
            };
        }
        if self.elements() == 0 {
            // The other axes may be long.
            return Ok(Vec::new());
        }
        let (low, base) = self.base();
        let all = base.as_slice::<T>()?;
        let mut result = Vec::with_capacity(self.elements());
        let (starts, (run, step)) = self.layout.runs();
        for start in starts.offsets() {
            let first = start - low;
            match step {
                1 => result.extend_from_slice(&all[first.unsigned_abs()..][..run]),
                0 => result.resize(result.len() + run, all[first.unsigned_abs()].clone()),
                _ => {
                    let at = |at: usize| (first + at.cast_signed() * step).unsigned_abs();
                    result.extend((0..run).map(|place| all[at(place)].clone()));
                }
            }
        }
        Ok(result)
    }

    /// The adjacent elements that a view's lie among, and the offset of the lowest of them.
    fn base(&self) -> (isize, Self) {
        let (low, high) = self.reach();
        let layout = ViewLayout::contiguous(&[(high - low + 1).unsigned_abs()]);
        let storage = self.storage.clone();
        (low, Self { dtype: self.dtype, layout, storage, offset: self.shifted(low) })
    }

    /// A copy of the elements in row-major order as elements of [`DataType::carrier`], whose bits
    /// they keep: what moves elements only reads them so and ends with [`Tensor::from_carriers`].
    ///
    /// # Errors
    /// When `T` is not the element type of the carrier.
    pub fn to_carriers<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        self.carried().to_vec::<T>()
    }

    /// The same bits as elements of the carrier, each of whose patterns is a value.
    fn carried(&self) -> Self {
        Self { dtype: self.dtype.carrier(), ..self.clone() }
    }

    /// Lowest and highest element offset of a non-empty view.
    fn reach(&self) -> (isize, isize) {
        let mut reach = (0, 0);
        for (&dim, &stride) in self.shape().iter().zip(self.layout.strides()) {
            let span = stride * (dim.cast_signed() - 1);
            if span < 0 {
                reach.0 += span;
            } else {
                reach.1 += span;
            }
        }
        reach
    }

    /// The storage offset of the element `elements` away from the first one.
    fn shifted(&self, elements: isize) -> usize {
        let size = self.dtype.size_bytes().unwrap_or(1).cast_signed();
        self.offset.saturating_add_signed(elements * size)
    }

    /// The only element of a one-element tensor.
    ///
    /// # Errors
    /// When there is not exactly one element or `T` is not the element type.
    pub fn item<T: Element>(&self) -> Result<T, TensorError> {
        let mut all = self.to_vec::<T>()?;
        match (all.pop(), all.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(TensorError::shape(format!(
                "expected a tensor of one element, found shape {:?}",
                self.shape()
            ))),
        }
    }

    /// The elements of an integer tensor, widened.
    ///
    /// # Errors
    /// For other types, and for `UINT64` values beyond `i64`.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>, TensorError> {
        macro_rules! widen {
            ($($rust:ty),*) => {
                match self.dtype {
                    $(<$rust as Element>::DTYPE =>
                        self.to_vec::<$rust>()?.into_iter().map(|v| i64::try_from(v).map_err(|_| {
                            TensorError::shape(format!("{v} does not fit a 64-bit signed integer"))
                        })).collect(),)*
                    found => Err(TensorErrorKind::WrongType { found, expected: DataType::Int64 }.into()),
                }
            };
        }
        widen!(i64, i32, i16, i8, u8, u16, u32, u64)
    }

    /// The same elements in an adjacent, row-major layout: this tensor if it is so already.
    ///
    /// # Errors
    /// When there is no memory for the copy.
    pub fn contiguous(&self) -> Result<Self, TensorError> {
        if self.layout.is_contiguous() {
            return Ok(self.clone());
        }
        let bits = self.carried();
        let copy = crate::with_carrier!(self.dtype, T => {
            Self::from_vec(bits.shape(), bits.to_vec::<T>()?)
        })?;
        Ok(Self { dtype: self.dtype, ..copy })
    }

    fn with_layout(&self, layout: ViewLayout, shift: isize) -> Self {
        Self {
            dtype: self.dtype,
            layout,
            storage: self.storage.clone(),
            offset: self.shifted(shift),
        }
    }

    /// The same elements in row-major order under another shape; copies only views that are not
    /// contiguous.
    ///
    /// # Errors
    /// When the element counts differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self, TensorError> {
        let expected = checked_elements(shape)?;
        let found = self.elements();
        if expected != found {
            let shape = shape.to_vec();
            return Err(
                TensorErrorKind::WrongSize { shape, expected, found, unit: "elements" }.into()
            );
        }
        Ok(self.contiguous()?.with_layout(ViewLayout::contiguous(shape), 0))
    }

    /// A view whose axis `i` is this tensor's axis `axes[i]`.
    ///
    /// # Errors
    /// When `axes` is not a permutation of the axes.
    pub fn permute(&self, axes: &[usize]) -> Result<Self, TensorError> {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.rank()) {
            return Err(TensorError::shape(format!(
                "{axes:?} is not a permutation of the axes of shape {:?}",
                self.shape()
            )));
        }
        let shape = axes.iter().map(|&axis| self.shape()[axis]).collect();
        let strides = axes.iter().map(|&axis| self.layout.strides()[axis]).collect();
        Ok(self.with_layout(ViewLayout::with_strides(shape, strides), 0))
    }

    /// A view broadcast to a larger shape.
    ///
    /// # Errors
    /// When a dimension is neither equal nor 1.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self, TensorError> {
        let Some(missing) = shape.len().checked_sub(self.rank()) else {
            return Err(self.no_broadcast(shape));
        };
        let mut strides = vec![0; shape.len()];
        let axes = self.shape().iter().zip(self.layout.strides()).zip(&shape[missing..]);
        for (slot, ((&dim, &stride), &to)) in strides[missing..].iter_mut().zip(axes) {
            if dim != to && dim != 1 {
                return Err(self.no_broadcast(shape));
            }
            *slot = if dim == to { stride } else { 0 };
        }
        checked_elements(shape)?;
        Ok(self.with_layout(ViewLayout::with_strides(shape.to_vec(), strides), 0))
    }

    fn no_broadcast(&self, shape: &[usize]) -> TensorError {
        TensorError::shape(format!("shape {:?} does not broadcast to {shape:?}", self.shape()))
    }

    /// A view of `len` positions along `axis`, from `start` on, `step` apart (negative: backwards).
    ///
    /// # Errors
    /// When a position lies outside the axis.
    pub fn slice_axis(
        &self,
        axis: usize,
        start: usize,
        len: usize,
        step: isize,
    ) -> Result<Self, TensorError> {
        let dim = self.shape().get(axis).copied().unwrap_or(0);
        let last = i128::from(start as u64) + (len as i128 - 1) * step as i128;
        let inside = len == 0 || (start < dim && last >= 0 && last < dim as i128);
        if axis >= self.rank() || !inside {
            return Err(TensorError::shape(format!(
                "{len} positions from {start} with step {step} leave axis {axis} of shape {:?}",
                self.shape()
            )));
        }
        let mut shape = self.shape().to_vec();
        let mut strides = self.layout.strides().to_vec();
        shape[axis] = len;
        let shift = if len == 0 { 0 } else { strides[axis] * start.cast_signed() };
        strides[axis] = strides[axis].saturating_mul(step);
        Ok(self.with_layout(ViewLayout::with_strides(shape, strides), shift))
    }

    /// Whether both are the same view of the same memory.
    #[must_use]
    pub fn shares_memory_with(&self, other: &Self) -> bool {
        match (&self.storage, &other.storage) {
            (Storage::Memory(a), Storage::Memory(b)) => {
                std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
            }
            (Storage::Strings(a), Storage::Strings(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}{:?}", self.dtype, self.shape())?;
        if self.elements() <= 16 {
            crate::with_element!(self.dtype, T => {
                write!(f, " {:?}", self.to_vec::<T>().unwrap_or_default())?;
            });
        }
        f.write_str(")")
    }
}

impl PartialEq for Tensor {
    /// Same type, same shape and equal elements (so a NaN makes tensors unequal).
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.shape() == other.shape()
            && crate::with_element!(self.dtype, T => self.to_vec::<T>().ok() == other.to_vec::<T>().ok())
    }
}

impl Tensor {
    /// The bytes in row-major order, to be changed part by part where they lie. `None` where somebody
    /// else shares them, or the tensor is not the whole of its memory.
    pub fn parts_mut(&mut self) -> Option<&mut dyn OwnedParts> {
        let whole = self.whole_allocation().is_some_and(|(_, alone)| alone);
        match &mut self.storage {
            Storage::Memory(memory) if whole => Arc::get_mut(memory)?.as_parts_mut(),
            _ => None,
        }
    }

    /// The same elements to be written again, without copying.
    ///
    /// # Errors
    /// The tensor itself where somebody else shares its memory, or where it is not the whole of host
    /// memory in row-major order.
    pub fn into_owned(mut self) -> Result<OwnedTensor, Self> {
        let whole = self.offset == 0
            && self.layout.is_contiguous()
            && size_bytes(self.dtype, self.shape()).is_ok_and(|len| len == self.size_bytes());
        let len = self.size_bytes();
        if let (true, Storage::Memory(memory)) = (whole, &mut self.storage)
            && let Some(memory) = Arc::get_mut(memory)
            && let Some(buffer) = memory.as_host_mut()
            && buffer.as_bytes().len() == len
        {
            let buffer = std::mem::replace(buffer, HostBuffer::empty());
            return Ok(OwnedTensor { dtype: self.dtype, shape: self.shape().to_vec(), buffer });
        }
        Err(self)
    }
}

/// A numeric tensor with one owner, who writes it and then freezes it into a [`Tensor`].
#[derive(Debug)]
pub struct OwnedTensor {
    dtype: DataType,
    shape: Vec<usize>,
    buffer: HostBuffer,
}

impl OwnedTensor {
    /// A writable tensor of zeros.
    ///
    /// # Errors
    /// When there is no memory for it, and for string tensors.
    pub fn zeroed(dtype: DataType, shape: &[usize]) -> Result<Self, TensorError> {
        let buffer = HostBuffer::try_zeroed(size_bytes(dtype, shape)?)?;
        Ok(Self { dtype, shape: shape.to_vec(), buffer })
    }

    /// The tensor as a kernel writes it.
    ///
    /// # Errors
    /// None in practice: sizes were checked when it was made.
    pub fn as_view_mut(&mut self) -> Result<TensorMut<'_>, TensorError> {
        TensorMut::from_bytes(self.dtype, &self.shape, self.buffer.as_bytes_mut())
    }

    /// The elements, writable, in row-major order.
    ///
    /// # Errors
    /// When `T` is not the element type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        if T::DTYPE != self.dtype {
            return Err(TensorErrorKind::WrongType { found: self.dtype, expected: T::DTYPE }.into());
        }
        let len = cast_slice::<T>(self.buffer.as_bytes())?.len();
        let start = self.buffer.as_bytes_mut().as_mut_ptr();
        // SAFETY: `cast_slice` has checked alignment, length and validity of these same bytes, and
        // `&mut self` makes the access exclusive.
        Ok(unsafe { slice::from_raw_parts_mut(start.cast(), len) })
    }

    /// The same memory under another shape, to be written anew: what the elements are is not known.
    ///
    /// # Errors
    /// The tensor itself where its memory is too small for the shape.
    pub fn reused(mut self, shape: &[usize]) -> Result<Self, Self> {
        match size_bytes(self.dtype, shape) {
            Ok(len) if self.buffer.resize(len) => Ok(Self { shape: shape.to_vec(), ..self }),
            _ => Err(self),
        }
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Ends writing and shares the elements, without copying.
    #[must_use]
    pub fn freeze(self) -> Tensor {
        Tensor {
            dtype: self.dtype,
            layout: ViewLayout::contiguous(&self.shape),
            storage: Storage::Memory(Arc::new(self.buffer)),
            offset: 0,
        }
    }
}

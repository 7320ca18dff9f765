//! Borrowed contiguous tensors: what a kernel call gets to read and to write.

use std::slice;

use crate::dtype::DataType;
use crate::element::{ByteString, Element};
use crate::error::{TensorError, TensorErrorKind};
use crate::layout::checked_elements;

/// A contiguous, row-major tensor that somebody else owns.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    dtype: DataType,
    shape: &'a [usize],
    data: RefData<'a>,
}

#[derive(Clone, Copy, Debug)]
enum RefData<'a> {
    Bytes(&'a [u8]),
    Strings(&'a [ByteString]),
}

fn check_size(
    shape: &[usize],
    expected: usize,
    found: usize,
    unit: &'static str,
) -> Result<(), TensorError> {
    if expected == found {
        return Ok(());
    }
    Err(TensorErrorKind::WrongSize { shape: shape.to_vec(), expected, found, unit }.into())
}

/// Bytes that a contiguous tensor of this type and shape takes; strings have no such size.
pub(crate) fn size_bytes(dtype: DataType, shape: &[usize]) -> Result<usize, TensorError> {
    let size = dtype
        .size_bytes()
        .ok_or(TensorErrorKind::WrongType { found: dtype, expected: DataType::Uint8 })?;
    checked_elements(shape)?
        .checked_mul(size)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| TensorErrorKind::TooLarge(shape.to_vec()).into())
}

/// Whether there are bytes that no element of the type has.
pub(crate) fn has_odd_bytes(dtype: DataType, bytes: &[u8]) -> bool {
    let mask = match dtype {
        DataType::Bool => 1,
        DataType::Small(small) => small.mask(),
        _ => return false,
    };
    // Without an early end the loop is one of vectors: nearly always all bytes are looked at.
    mask != u8::MAX && bytes.iter().fold(0, |all, byte| all | byte) & !mask != 0
}

/// Views initialised bytes as elements.
///
/// # Errors
/// When the start is not aligned for `T` or the length is no multiple of its size.
pub(crate) fn cast_slice<T: Element>(bytes: &[u8]) -> Result<&[T], TensorError> {
    let size = size_of::<T>();
    if bytes.is_empty() && T::DTYPE != DataType::Bytes {
        // No bytes have no address, so none that could be misaligned.
        return Ok(&[]);
    }
    if T::DTYPE == DataType::Bytes
        || !bytes.as_ptr().cast::<T>().is_aligned()
        || !bytes.len().is_multiple_of(size)
    {
        return Err(TensorErrorKind::NotContiguous.into());
    }
    debug_assert!(T::DTYPE != DataType::Bool || bytes.iter().all(|&byte| byte <= 1));
    // SAFETY: aligned, inside the bytes, and every bit pattern is valid for the sealed numeric
    // element types; memory typed BOOL holds only 0 and 1 (all constructors see to that).
    Ok(unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size) })
}

impl<'a> TensorRef<'a> {
    /// A tensor over raw bytes in native (little-endian) order. Bytes of type `BOOL` must be 0 or
    /// 1, those of a small type one of its codes; others are refused.
    ///
    /// # Errors
    /// When the byte count is not that of the shape, or for string tensors.
    pub fn from_bytes(
        dtype: DataType,
        shape: &'a [usize],
        bytes: &'a [u8],
    ) -> Result<Self, TensorError> {
        check_size(shape, size_bytes(dtype, shape)?, bytes.len(), "bytes")?;
        if has_odd_bytes(dtype, bytes) {
            let text = match dtype {
                DataType::Bool => "a BOOL element is neither 0 nor 1".to_owned(),
                other => format!("an element of type {other} has bits that the type has not"),
            };
            return Err(TensorErrorKind::Encoding(text).into());
        }
        Ok(Self { dtype, shape, data: RefData::Bytes(bytes) })
    }

    pub(crate) fn from_strings(shape: &'a [usize], strings: &'a [ByteString]) -> Self {
        Self { dtype: DataType::Bytes, shape, data: RefData::Strings(strings) }
    }

    pub(crate) fn from_checked_bytes(dtype: DataType, shape: &'a [usize], bytes: &'a [u8]) -> Self {
        Self { dtype, shape, data: RefData::Bytes(bytes) }
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Lengths of the axes.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// When `T` is not the element type.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], TensorError> {
        if T::DTYPE != self.dtype {
            return Err(TensorErrorKind::WrongType { found: self.dtype, expected: T::DTYPE }.into());
        }
        match self.data {
            RefData::Bytes(bytes) => cast_slice(bytes),
            RefData::Strings(strings) => {
                // SAFETY: `T::DTYPE` is `Bytes`, and `ByteString` is the only element of it.
                Ok(unsafe { slice::from_raw_parts(strings.as_ptr().cast(), strings.len()) })
            }
        }
    }

    /// Returns the elements in row-major order as those of [`DataType::carrier`], or as what they are.
    ///
    /// # Errors
    /// When `T` is neither the element type nor that of its carrier.
    pub fn as_carriers<T: Element>(&self) -> Result<&'a [T], TensorError> {
        match self.data {
            RefData::Bytes(bytes) if T::DTYPE == self.dtype.carrier() => cast_slice(bytes),
            _ => self.as_slice(),
        }
    }

    /// The raw bytes; none for string tensors.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.data {
            RefData::Bytes(bytes) => Some(bytes),
            RefData::Strings(_) => None,
        }
    }
}

/// A contiguous, row-major numeric tensor that the holder may write.
#[derive(Debug)]
pub struct TensorMut<'a> {
    dtype: DataType,
    shape: &'a [usize],
    bytes: &'a mut [u8],
}

impl<'a> TensorMut<'a> {
    /// A writable tensor over raw bytes.
    ///
    /// # Errors
    /// When the byte count is not that of the shape, or for string tensors.
    pub fn from_bytes(
        dtype: DataType,
        shape: &'a [usize],
        bytes: &'a mut [u8],
    ) -> Result<Self, TensorError> {
        check_size(shape, size_bytes(dtype, shape)?, bytes.len(), "bytes")?;
        if dtype == DataType::Bool {
            // Recycled memory may hold any byte, and a BOOL is 0 or 1 from the start.
            bytes.fill(0);
        }
        Ok(Self { dtype, shape, bytes })
    }

    /// The element type.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Lengths of the axes.
    #[must_use]
    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The elements, writable, in row-major order; their initial values are unspecified.
    ///
    /// # Errors
    /// When `T` is not the element type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        if T::DTYPE != self.dtype {
            return Err(TensorErrorKind::WrongType { found: self.dtype, expected: T::DTYPE }.into());
        }
        self.cast()
    }

    /// Returns the elements, writable, like [`TensorMut::as_mut_slice`], but also as those of
    /// [`DataType::carrier`], unless some of its values are none of the type.
    ///
    /// # Errors
    /// When `T` is neither the element type nor such a carrier.
    pub fn as_mut_carriers<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        let free = !matches!(self.dtype, DataType::Bool | DataType::Small(_));
        if free && T::DTYPE == self.dtype.carrier() {
            return self.cast();
        }
        self.as_mut_slice()
    }

    /// Views the bytes as elements of a type each of whose values is one of the tensor's type.
    fn cast<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        cast_slice::<T>(self.bytes)?;
        if self.bytes.is_empty() {
            return Ok(&mut []);
        }
        let len = self.bytes.len() / size_of::<T>();
        // SAFETY: `cast_slice` has checked alignment and validity of these same bytes, and
        // `&mut self` makes the access exclusive.
        Ok(unsafe { slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast(), len) })
    }

    /// The raw bytes, writable, unless the type is `BOOL`, whose bytes are not free.
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        (self.dtype != DataType::Bool).then_some(&mut *self.bytes)
    }

    /// Copies all elements of another contiguous tensor of the same type and count.
    ///
    /// # Errors
    /// When type or element count differ.
    pub fn copy_from(&mut self, source: &TensorRef<'_>) -> Result<(), TensorError> {
        if source.dtype != self.dtype {
            return Err(
                TensorErrorKind::WrongType { found: source.dtype, expected: self.dtype }.into()
            );
        }
        let bytes = source.bytes().unwrap_or_default();
        check_size(self.shape, self.bytes.len(), bytes.len(), "bytes")?;
        self.bytes.copy_from_slice(bytes);
        Ok(())
    }
}

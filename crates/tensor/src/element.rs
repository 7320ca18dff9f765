//! Rust types that stand for tensor elements.

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};

use crate::dtype::DataType;

/// One element of a [`DataType::Bytes`] tensor: an immutable byte string, cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(Arc<[u8]>);

impl ByteString {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if the bytes are valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl Default for ByteString {
    fn default() -> Self {
        Self(Arc::from(&[][..]))
    }
}

impl From<&[u8]> for ByteString {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl From<&str> for ByteString {
    fn from(text: &str) -> Self {
        Self(Arc::from(text.as_bytes()))
    }
}

impl From<String> for ByteString {
    fn from(text: String) -> Self {
        Self(Arc::from(text.into_bytes()))
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::from(bytes))
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// A Rust type that is the element of exactly one [`DataType`].
///
/// The trait is sealed: the storage code relies on the size and validity of every implementor.
pub trait Element:
    Clone + Default + PartialEq + fmt::Debug + Send + Sync + private::Sealed + 'static
{
    /// The data type whose elements are of this Rust type.
    const DTYPE: DataType;
}

pub(crate) mod private {
    /// Seals [`super::Element`].
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl private::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DataType = DataType::$dtype;
        }
    )*};
}

elements! {
    bool => Bool, u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64,
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    f16 => Fp16, f32 => Fp32, f64 => Fp64, bf16 => Bf16, ByteString => Bytes,
}

/// Runs an expression with a type alias bound to the Rust element type of a [`DataType`].
///
/// ```
/// use galatea_tensor::{DataType, Element, with_element};
/// let size = with_element!(DataType::Fp32, T => std::mem::size_of::<T>());
/// assert_eq!(size, 4);
/// ```
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DataType::Bool => { type $T = bool; $body }
            $crate::DataType::Bytes => { type $T = $crate::ByteString; $body }
            $crate::DataType::Small(small) => $crate::with_small!(small, $T => $body),
            other => $crate::with_number!(other, $T => $body, else { unreachable!("not a number") }),
        }
    };
}

/// Like [`with_element!`], with the element type of [`crate::DataType::carrier`].
///
/// Code that only moves elements needs one instance for each width in place of one for each type.
///
/// ```
/// use galatea_tensor::{DataType, Element, with_carrier};
/// let carrier = with_carrier!(DataType::Fp32, T => T::DTYPE);
/// assert_eq!(carrier, DataType::Uint32);
/// ```
#[macro_export]
macro_rules! with_carrier {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $crate::DataType::carrier($dtype) {
            $crate::DataType::Uint8 => {
                type $T = u8;
                $body
            }
            $crate::DataType::Uint16 => {
                type $T = u16;
                $body
            }
            $crate::DataType::Uint32 => {
                type $T = u32;
                $body
            }
            $crate::DataType::Uint64 => {
                type $T = u64;
                $body
            }
            $crate::DataType::Bytes => {
                type $T = $crate::ByteString;
                $body
            }
            _ => unreachable!("no carrier"),
        }
    };
}

/// Like [`with_element!`] for a [`crate::SmallType`].
#[macro_export]
macro_rules! with_small {
    ($small:expr, $T:ident => $body:expr) => {
        match $small {
            $crate::SmallType::Float8E4M3Fn => {
                type $T = $crate::Float8E4M3Fn;
                $body
            }
            $crate::SmallType::Float8E4M3FnUz => {
                type $T = $crate::Float8E4M3FnUz;
                $body
            }
            $crate::SmallType::Float8E5M2 => {
                type $T = $crate::Float8E5M2;
                $body
            }
            $crate::SmallType::Float8E5M2FnUz => {
                type $T = $crate::Float8E5M2FnUz;
                $body
            }
            $crate::SmallType::Float8E8M0 => {
                type $T = $crate::Float8E8M0;
                $body
            }
            $crate::SmallType::Float4E2M1 => {
                type $T = $crate::Float4E2M1;
                $body
            }
            $crate::SmallType::Int4 => {
                type $T = $crate::Int4;
                $body
            }
            $crate::SmallType::Uint4 => {
                type $T = $crate::Uint4;
                $body
            }
            $crate::SmallType::Int2 => {
                type $T = $crate::Int2;
                $body
            }
            $crate::SmallType::Uint2 => {
                type $T = $crate::Uint2;
                $body
            }
        }
    };
}

/// Like [`with_element!`] for the numeric types only (every integer and float of the wire); the
/// `else` block answers for `BOOL`, `BYTES` and the small types.
#[macro_export]
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, else $other:block) => {
        match $dtype {
            $crate::DataType::Uint8 => {
                type $T = u8;
                $body
            }
            $crate::DataType::Uint16 => {
                type $T = u16;
                $body
            }
            $crate::DataType::Uint32 => {
                type $T = u32;
                $body
            }
            $crate::DataType::Uint64 => {
                type $T = u64;
                $body
            }
            $crate::DataType::Int8 => {
                type $T = i8;
                $body
            }
            $crate::DataType::Int16 => {
                type $T = i16;
                $body
            }
            $crate::DataType::Int32 => {
                type $T = i32;
                $body
            }
            $crate::DataType::Int64 => {
                type $T = i64;
                $body
            }
            $crate::DataType::Fp16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DataType::Fp32 => {
                type $T = f32;
                $body
            }
            $crate::DataType::Fp64 => {
                type $T = f64;
                $body
            }
            $crate::DataType::Bf16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DataType::Bool | $crate::DataType::Bytes | $crate::DataType::Small(_) => $other,
        }
    };
}

/// Like [`with_element!`] for the floating-point types only; the `else` block answers for all
/// others.
#[macro_export]
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr, else $other:block) => {
        match $dtype {
            $crate::DataType::Fp16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DataType::Fp32 => {
                type $T = f32;
                $body
            }
            $crate::DataType::Fp64 => {
                type $T = f64;
                $body
            }
            $crate::DataType::Bf16 => {
                type $T = $crate::bf16;
                $body
            }
            _ => $other,
        }
    };
}

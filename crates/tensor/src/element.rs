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

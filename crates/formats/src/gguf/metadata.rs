//! Values by key.

use std::fmt;

use bytes::Bytes;
use galatea_tensor::OrderedMap;

use super::cursor::GgufCursor;
use crate::checkpoint::{CheckpointError, CheckpointErrorKind};

/// The longest key that the format allows.
const MAX_KEY: usize = 65_535;
/// How deep arrays may lie in arrays.
const MAX_DEPTH: usize = 4;
/// The least bytes of an entry: the length of its key, the key, its type and a value.
const MIN_ENTRY: usize = 8 + 1 + 4 + 1;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GgufValueType {
    /// An unsigned byte.
    U8,
    /// A signed byte.
    I8,
    /// 16 bits, unsigned.
    U16,
    /// 16 bits, signed.
    I16,
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed.
    I32,
    /// A float of 32 bits.
    F32,
    /// True or false.
    Bool,
    /// Text, in UTF-8 by the specification.
    String,
    /// Values of one type.
    Array,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed.
    I64,
    /// A float of 64 bits.
    F64,
}

/// A type, its name, and the bytes of a value where all have as many.
type ValueTypeRow = (GgufValueType, &'static str, Option<usize>);

/// Types in the order of their numbers in files.
const TYPES: &[ValueTypeRow] = &[
    (GgufValueType::U8, "uint8", Some(1)),
    (GgufValueType::I8, "int8", Some(1)),
    (GgufValueType::U16, "uint16", Some(2)),
    (GgufValueType::I16, "int16", Some(2)),
    (GgufValueType::U32, "uint32", Some(4)),
    (GgufValueType::I32, "int32", Some(4)),
    (GgufValueType::F32, "float32", Some(4)),
    (GgufValueType::Bool, "bool", Some(1)),
    (GgufValueType::String, "string", None),
    (GgufValueType::Array, "array", None),
    (GgufValueType::U64, "uint64", Some(8)),
    (GgufValueType::I64, "int64", Some(8)),
    (GgufValueType::F64, "float64", Some(8)),
];

impl GgufValueType {
    fn row(self) -> Option<(usize, &'static ValueTypeRow)> {
        TYPES.iter().enumerate().find(|(_, row)| row.0 == self)
    }

    /// The number in files.
    pub(super) fn number(self) -> u32 {
        self.row().and_then(|(number, _)| u32::try_from(number).ok()).unwrap_or(u32::MAX)
    }

    /// The name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().map_or("", |(_, row)| row.1)
    }

    fn size_bytes(self) -> Option<usize> {
        self.row().and_then(|(_, row)| row.2)
    }

    fn read(cursor: &mut GgufCursor) -> Result<Self, CheckpointError> {
        let at = cursor.offset();
        let number = cursor.u32()?;
        let row = usize::try_from(number).ok().and_then(|number| TYPES.get(number));
        row.map(|row| row.0).ok_or_else(|| {
            CheckpointError::invalid(format!("there is no type {number} of values"))
                .at(format_args!("byte {at}"))
        })
    }
}

impl fmt::Display for GgufValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of `ValueType`")]
pub enum GgufValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Bytes that the specification wants to be UTF-8.
    String(Bytes),
    Array(GgufArray),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// Values of one type, as they lie in the file: nothing is decoded before it is asked for.
#[derive(Clone, PartialEq, Eq)]
pub struct GgufArray {
    pub(super) kind: GgufValueType,
    pub(super) len: usize,
    /// The values, one after the other; checked to be whole.
    pub(super) encoded: Bytes,
}

impl fmt::Debug for GgufArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} x {})", self.len, self.kind)
    }
}

impl GgufArray {
    /// The type of the values.
    #[must_use]
    pub fn value_type(&self) -> GgufValueType {
        self.kind
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values, decoded one by one.
    pub fn iter(&self) -> impl Iterator<Item = GgufValue> + '_ {
        let mut cursor = GgufCursor::new(self.encoded.clone());
        // Reading checked every value, so that none is missing.
        (0..self.len).map_while(move |_| GgufValue::read(&mut cursor, self.kind, 0).ok())
    }

    /// The strings, as bytes; nothing for other types.
    pub fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest: &[u8] = match self.kind {
            GgufValueType::String => &self.encoded,
            _ => &[],
        };
        std::iter::from_fn(move || {
            let (len, text) = rest.split_first_chunk::<8>()?;
            let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
            let (text, behind) = text.split_at_checked(len)?;
            rest = behind;
            Some(text)
        })
    }

    fn read(cursor: &mut GgufCursor, depth: usize) -> Result<Self, CheckpointError> {
        if depth >= MAX_DEPTH {
            let text = format!("arrays lie more than {MAX_DEPTH} deep in arrays");
            return Err(CheckpointError::invalid(text).at(format_args!("byte {}", cursor.offset())));
        }
        let kind = GgufValueType::read(cursor)?;
        // A string has its length at least, an array its type and its length.
        let least = match kind {
            GgufValueType::String => 8,
            GgufValueType::Array => 12,
            _ => kind.size_bytes().unwrap_or(1),
        };
        let len = cursor.count("values", least)?;
        let start = cursor.offset();
        let encoded = match kind {
            GgufValueType::String => {
                for _ in 0..len {
                    cursor.skip_string()?;
                }
                cursor.since(start)
            }
            GgufValueType::Array => {
                for _ in 0..len {
                    Self::read(cursor, depth + 1)?;
                }
                cursor.since(start)
            }
            _ => cursor.take(len.saturating_mul(least))?,
        };
        if kind == GgufValueType::Bool
            && let Some(odd) = encoded.iter().position(|&byte| byte > 1)
        {
            return Err(odd_bool(start.saturating_add(odd)));
        }
        Ok(Self { kind, len, encoded })
    }
}

fn odd_bool(at: usize) -> CheckpointError {
    CheckpointError::invalid("a bool is neither 0 nor 1").at(format_args!("byte {at}"))
}

impl GgufValue {
    /// The type.
    #[must_use]
    pub fn value_type(&self) -> GgufValueType {
        match self {
            Self::U8(_) => GgufValueType::U8,
            Self::I8(_) => GgufValueType::I8,
            Self::U16(_) => GgufValueType::U16,
            Self::I16(_) => GgufValueType::I16,
            Self::U32(_) => GgufValueType::U32,
            Self::I32(_) => GgufValueType::I32,
            Self::F32(_) => GgufValueType::F32,
            Self::Bool(_) => GgufValueType::Bool,
            Self::String(_) => GgufValueType::String,
            Self::Array(_) => GgufValueType::Array,
            Self::U64(_) => GgufValueType::U64,
            Self::I64(_) => GgufValueType::I64,
            Self::F64(_) => GgufValueType::F64,
        }
    }

    /// Returns a description of the value, for errors.
    fn described(&self) -> String {
        match self {
            Self::Array(array) => format!("an array of {} {} values", array.len, array.kind),
            other => format!("a value of type {}", other.value_type()),
        }
    }

    fn read(
        cursor: &mut GgufCursor,
        kind: GgufValueType,
        depth: usize,
    ) -> Result<Self, CheckpointError> {
        Ok(match kind {
            GgufValueType::U8 => Self::U8(cursor.u8()?),
            GgufValueType::I8 => Self::I8(cursor.i8()?),
            GgufValueType::U16 => Self::U16(cursor.u16()?),
            GgufValueType::I16 => Self::I16(cursor.i16()?),
            GgufValueType::U32 => Self::U32(cursor.u32()?),
            GgufValueType::I32 => Self::I32(cursor.i32()?),
            GgufValueType::F32 => Self::F32(cursor.f32()?),
            GgufValueType::Bool => {
                let at = cursor.offset();
                match cursor.u8()? {
                    0 => Self::Bool(false),
                    1 => Self::Bool(true),
                    _ => return Err(odd_bool(at)),
                }
            }
            GgufValueType::String => Self::String(cursor.string()?),
            GgufValueType::Array => Self::Array(GgufArray::read(cursor, depth)?),
            GgufValueType::U64 => Self::U64(cursor.u64()?),
            GgufValueType::I64 => Self::I64(cursor.i64()?),
            GgufValueType::F64 => Self::F64(cursor.f64()?),
        })
    }

    /// An integer of any width.
    fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(value) => value.into(),
            Self::I8(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::U64(value) => value.into(),
            Self::I64(value) => value.into(),
            _ => return None,
        })
    }
}

/// Type that a value can be read as: integers of any width that hold the number, floats of either
/// width.
pub trait FromValue<'a>: Sized {
    /// Description of the expected value, for errors.
    const EXPECTED: &'static str;
    /// The value in this form, if it has it.
    fn from_value(value: &'a GgufValue) -> Option<Self>;
}

macro_rules! integers {
    ($($kind:ty = $name:literal, $list:literal;)*) => {$(
        impl FromValue<'_> for $kind {
            const EXPECTED: &'static str = $name;
            fn from_value(value: &GgufValue) -> Option<Self> {
                value.integer().and_then(|value| value.try_into().ok())
            }
        }
        impl FromValue<'_> for Vec<$kind> {
            const EXPECTED: &'static str = $list;
            fn from_value(value: &GgufValue) -> Option<Self> {
                let GgufValue::Array(array) = value else { return None };
                array.iter().map(|value| <$kind>::from_value(&value)).collect()
            }
        }
    )*};
}

integers! {
    u32 = "an integer from 0 to 2^32 - 1", "an array of integers from 0 to 2^32 - 1";
    i32 = "an integer of 32 bits", "an array of integers of 32 bits";
    u64 = "an integer from 0 on", "an array of integers from 0 on";
    i64 = "an integer of 64 bits", "an array of integers of 64 bits";
    usize = "a count", "an array of counts";
}

impl FromValue<'_> for f64 {
    const EXPECTED: &'static str = "a float";
    fn from_value(value: &GgufValue) -> Option<Self> {
        match *value {
            GgufValue::F32(value) => Some(value.into()),
            GgufValue::F64(value) => Some(value),
            _ => None,
        }
    }
}

impl FromValue<'_> for f32 {
    const EXPECTED: &'static str = "a float";
    fn from_value(value: &GgufValue) -> Option<Self> {
        match *value {
            GgufValue::F32(value) => Some(value),
            GgufValue::F64(value) => Some(rounded(value)),
            _ => None,
        }
    }
}

/// The nearest float of 32 bits.
#[allow(
    clippy::cast_possible_truncation,
    clippy::as_conversions,
    reason = "the language has no other conversion that rounds"
)]
pub(super) fn rounded(value: f64) -> f32 {
    value as f32
}

impl FromValue<'_> for Vec<f32> {
    const EXPECTED: &'static str = "an array of floats";
    fn from_value(value: &GgufValue) -> Option<Self> {
        let GgufValue::Array(array) = value else { return None };
        array.iter().map(|value| f32::from_value(&value)).collect()
    }
}

impl FromValue<'_> for bool {
    const EXPECTED: &'static str = "a bool";
    fn from_value(value: &GgufValue) -> Option<Self> {
        match value {
            GgufValue::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl FromValue<'_> for Vec<bool> {
    const EXPECTED: &'static str = "an array of bools";
    fn from_value(value: &GgufValue) -> Option<Self> {
        let GgufValue::Array(array) = value else { return None };
        array.iter().map(|value| bool::from_value(&value)).collect()
    }
}

impl<'a> FromValue<'a> for &'a str {
    const EXPECTED: &'static str = "a string in UTF-8";
    fn from_value(value: &'a GgufValue) -> Option<Self> {
        match value {
            GgufValue::String(value) => std::str::from_utf8(value).ok(),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for Vec<&'a str> {
    const EXPECTED: &'static str = "an array of strings in UTF-8";
    fn from_value(value: &'a GgufValue) -> Option<Self> {
        let GgufValue::Array(array) = value else { return None };
        let strings = (array.kind == GgufValueType::String).then(|| array.strings())?;
        strings.map(|bytes| std::str::from_utf8(bytes).ok()).collect()
    }
}

impl<'a> FromValue<'a> for &'a GgufArray {
    const EXPECTED: &'static str = "an array";
    fn from_value(value: &'a GgufValue) -> Option<Self> {
        match value {
            GgufValue::Array(array) => Some(array),
            _ => None,
        }
    }
}

/// Values by key, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct GgufMetadata {
    entries: Vec<(String, GgufValue)>,
    places: OrderedMap<String, usize>,
}

impl GgufMetadata {
    pub(super) fn read(cursor: &mut GgufCursor, count: u64) -> Result<Self, CheckpointError> {
        let most = cursor.left().checked_div(MIN_ENTRY).unwrap_or(0);
        if usize::try_from(count).ok().is_none_or(|count| count > most) {
            let text = format!("{count} metadata entries, but {} bytes are left", cursor.left());
            return Err(CheckpointError::invalid(text));
        }
        let mut all = Self::default();
        for index in 0..count {
            let key = cursor
                .name("key", MAX_KEY)
                .map_err(|error| error.at(format_args!("metadata entry {index}")))?;
            let value = GgufValueType::read(cursor)
                .and_then(|kind| GgufValue::read(cursor, kind, 0))
                .map_err(|error| error.at(format_args!("metadata '{key}'")))?;
            if !all.insert(&key, value) {
                let text = "the key is given twice";
                return Err(CheckpointError::invalid(text).at(format_args!("metadata '{key}'")));
            }
        }
        Ok(all)
    }

    /// Adds an entry behind the others; false if there is one with this key.
    pub(super) fn insert(&mut self, key: &str, value: GgufValue) -> bool {
        if self.places.contains_key(key) {
            return false;
        }
        self.places.insert(key.to_owned(), self.entries.len());
        self.entries.push((key.to_owned(), value));
        true
    }

    /// Keys and values in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[(String, GgufValue)] {
        &self.entries
    }

    /// The value of a key as it is.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&GgufValue> {
        self.places.get(key).and_then(|&at| self.entries.get(at)).map(|entry| &entry.1)
    }

    /// The value of a key that may be absent.
    ///
    /// # Errors
    /// Fails when the value has another type, or does not fit; the error names key and types.
    pub fn find<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, CheckpointError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        T::from_value(value).map(Some).ok_or_else(|| {
            let text = format!("expected {}, found {}", T::EXPECTED, value.described());
            CheckpointError::new(CheckpointErrorKind::WrongType, text)
                .at(format_args!("metadata '{key}'"))
        })
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// Fails like [`GgufMetadata::find`], and when there is no such key.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, CheckpointError> {
        self.find(key)?.ok_or_else(|| {
            let text = format!("the key is missing, expected {}", T::EXPECTED);
            CheckpointError::missing(text).at(format_args!("metadata '{key}'"))
        })
    }
}

//! The element types: those of Triton's wire, and ONNX's small ones that graphs use inside.

use std::fmt;

use crate::small::SmallType;

/// An element type. The names are Triton's: `Display` and `FromStr` use the wire name (`FP32`,
/// `BYTES`), [`DataType::config_name`] the one of `config.pbtxt` (`TYPE_FP32`, `TYPE_STRING`).
/// The small types have neither; they go by their names in ONNX and are parsed from no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    Uint8,
    /// Unsigned 16-bit integer.
    Uint16,
    /// Unsigned 32-bit integer.
    Uint32,
    /// Unsigned 64-bit integer.
    Uint64,
    /// Signed 8-bit integer.
    Int8,
    /// Signed 16-bit integer.
    Int16,
    /// Signed 32-bit integer.
    Int32,
    /// Signed 64-bit integer.
    Int64,
    /// IEEE 754 half precision.
    Fp16,
    /// IEEE 754 single precision.
    Fp32,
    /// IEEE 754 double precision.
    Fp64,
    /// Brain floating point: the upper half of an `Fp32`.
    Bf16,
    /// Byte strings of any length.
    Bytes,
    /// One of ONNX's types of 8 and fewer bits, which Triton's wire does not have. An element takes
    /// one byte in memory.
    Small(SmallType),
}

/// `(type, wire name, config name)`.
const NAMES: &[(DataType, &str, &str)] = &[
    (DataType::Bool, "BOOL", "TYPE_BOOL"),
    (DataType::Uint8, "UINT8", "TYPE_UINT8"),
    (DataType::Uint16, "UINT16", "TYPE_UINT16"),
    (DataType::Uint32, "UINT32", "TYPE_UINT32"),
    (DataType::Uint64, "UINT64", "TYPE_UINT64"),
    (DataType::Int8, "INT8", "TYPE_INT8"),
    (DataType::Int16, "INT16", "TYPE_INT16"),
    (DataType::Int32, "INT32", "TYPE_INT32"),
    (DataType::Int64, "INT64", "TYPE_INT64"),
    (DataType::Fp16, "FP16", "TYPE_FP16"),
    (DataType::Fp32, "FP32", "TYPE_FP32"),
    (DataType::Fp64, "FP64", "TYPE_FP64"),
    (DataType::Bf16, "BF16", "TYPE_BF16"),
    (DataType::Bytes, "BYTES", "TYPE_STRING"),
];

impl DataType {
    /// Returns the type with this name on Triton's wire.
    pub(crate) fn from_wire_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Every type of Triton's wire, in declaration order; for the others see [`SmallType::ALL`].
    pub const ALL: [DataType; 14] = [
        DataType::Bool,
        DataType::Uint8,
        DataType::Uint16,
        DataType::Uint32,
        DataType::Uint64,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Fp16,
        DataType::Fp32,
        DataType::Fp64,
        DataType::Bf16,
        DataType::Bytes,
    ];

    fn row(self) -> Option<&'static (DataType, &'static str, &'static str)> {
        NAMES.iter().find(|row| row.0 == self)
    }

    /// Bytes of one element in memory; `None` for [`DataType::Bytes`], whose elements have their
    /// own lengths.
    #[must_use]
    pub fn size_bytes(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 | Self::Small(_) => Some(1),
            Self::Uint16 | Self::Int16 | Self::Fp16 | Self::Bf16 => Some(2),
            Self::Uint32 | Self::Int32 | Self::Fp32 => Some(4),
            Self::Uint64 | Self::Int64 | Self::Fp64 => Some(8),
            Self::Bytes => None,
        }
    }

    /// Returns the type that elements have while they are only moved: unsigned integers of the same
    /// width, and [`DataType::Bytes`] for itself.
    #[must_use]
    pub fn carrier(self) -> Self {
        match self.size_bytes() {
            Some(1) => Self::Uint8,
            Some(2) => Self::Uint16,
            Some(4) => Self::Uint32,
            Some(_) => Self::Uint64,
            None => Self::Bytes,
        }
    }

    /// Bits that the value of an element has: fewer than its memory for types below 8 bits.
    #[must_use]
    pub fn size_bits(self) -> Option<usize> {
        match self {
            Self::Small(small) => Some(small.bits()),
            other => other.size_bytes().map(|bytes| bytes * 8),
        }
    }

    /// Whether Triton's wire has this type.
    #[must_use]
    pub fn is_on_wire(self) -> bool {
        !matches!(self, Self::Small(_))
    }

    /// The name on Triton's wire, such as `FP32` or `BYTES`; for small types that in ONNX.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Small(small) => small.name(),
            other => other.row().map_or("", |row| row.1),
        }
    }

    /// The name in `config.pbtxt`, such as `TYPE_FP32` or `TYPE_STRING`; for small types that in
    /// ONNX.
    #[must_use]
    pub fn config_name(self) -> &'static str {
        match self {
            Self::Small(small) => small.name(),
            other => other.row().map_or("", |row| row.2),
        }
    }

    /// The type with this `config.pbtxt` name.
    #[must_use]
    pub fn from_config_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// Whether this is a floating-point type that arithmetic is done in: no small one.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::Fp16 | Self::Fp32 | Self::Fp64 | Self::Bf16)
    }

    /// Whether this is an integer type that arithmetic is done in; booleans and small types are not.
    #[must_use]
    pub fn is_integer(self) -> bool {
        self.is_signed_integer()
            || matches!(self, Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64)
    }

    /// Whether this is a signed integer type, as in [`DataType::is_integer`].
    #[must_use]
    pub fn is_signed_integer(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wire_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_declaration_order_and_names_round_trip() {
        for (index, dtype) in DataType::ALL.into_iter().enumerate() {
            assert_eq!(NAMES[index].0, dtype);
            assert_eq!(dtype.wire_name().parse::<DataType>().unwrap(), dtype);
            assert_eq!(DataType::from_config_name(dtype.config_name()), Some(dtype));
        }
    }

    #[test]
    fn small_types_have_names_to_show_and_none_to_parse() {
        for small in SmallType::ALL {
            let dtype = DataType::Small(small);
            assert_eq!(dtype.to_string(), small.name());
            assert!(small.name().parse::<DataType>().is_err());
            assert_eq!(DataType::from_config_name(dtype.config_name()), None);
            assert!(!dtype.is_on_wire() && dtype.size_bytes() == Some(1));
        }
        assert_eq!(size_of::<DataType>(), 1);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_repeats_it() {
        let error = "FP31".parse::<DataType>().unwrap_err();
        assert!(error.to_string().contains("FP31"));
    }
}

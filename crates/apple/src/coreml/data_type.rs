//! The types of elements that Core ML's arrays can have.

use std::fmt;

/// The type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayDataType {
    /// IEEE half precision.
    Float16,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Double,
    /// 32-bit integers.
    Int32,
    /// 8-bit integers; macOS 26 and later.
    Int8,
}

/// The types, their names and their numbers. Source: Apple, `MLMultiArrayDataType`.
const TYPES: [(ArrayDataType, &str, isize); 5] = [
    (ArrayDataType::Float16, "Float16", 0x1_0010),
    (ArrayDataType::Float32, "Float32", 0x1_0020),
    (ArrayDataType::Double, "Double", 0x1_0040),
    (ArrayDataType::Int32, "Int32", 0x2_0020),
    (ArrayDataType::Int8, "Int8", 0x2_0008),
];

impl ArrayDataType {
    /// Bytes of one element.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Float16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Double => 8,
        }
    }

    /// The number that Core ML knows it by.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn number(self) -> isize {
        TYPES.into_iter().find(|row| row.0 == self).map_or(0, |row| row.2)
    }

    /// The type with this number.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn of(number: isize) -> Option<Self> {
        TYPES.into_iter().find(|row| row.2 == number).map(|row| row.0)
    }
}

impl fmt::Display for ArrayDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TYPES.into_iter().find(|row| row.0 == *self).map_or("", |row| row.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_their_types_and_end_in_their_bits() {
        for (data_type, name, number) in TYPES {
            assert_eq!((data_type.number(), ArrayDataType::of(number)), (number, Some(data_type)));
            assert_eq!(data_type.size_bytes() * 8, usize::try_from(number & 0xff).unwrap());
            assert_eq!(data_type.to_string(), name);
        }
        assert_eq!(ArrayDataType::of(0), None);
    }
}

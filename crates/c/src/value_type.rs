//! Element types as C numbers them.

use galatea::DataType;

use crate::api_status::CallFailure;

/// Type of a tensor's elements. The names are Triton's.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// A type that this interface does not have.
    Other = 0,
    /// One byte, 0 or 1.
    Bool = 1,
    /// Unsigned 8-bit integer.
    Uint8 = 2,
    /// Unsigned 16-bit integer.
    Uint16 = 3,
    /// Unsigned 32-bit integer.
    Uint32 = 4,
    /// Unsigned 64-bit integer.
    Uint64 = 5,
    /// Signed 8-bit integer.
    Int8 = 6,
    /// Signed 16-bit integer.
    Int16 = 7,
    /// Signed 32-bit integer.
    Int32 = 8,
    /// Signed 64-bit integer.
    Int64 = 9,
    /// IEEE 754 half precision.
    Fp16 = 10,
    /// IEEE 754 single precision.
    Fp32 = 11,
    /// IEEE 754 double precision.
    Fp64 = 12,
    /// Brain floating point: the upper half of an FP32.
    Bf16 = 13,
    /// Byte strings of any length.
    Bytes = 14,
}

/// Types with their numbers.
const TYPES: [(ValueType, DataType); 14] = [
    (ValueType::Bool, DataType::Bool),
    (ValueType::Uint8, DataType::Uint8),
    (ValueType::Uint16, DataType::Uint16),
    (ValueType::Uint32, DataType::Uint32),
    (ValueType::Uint64, DataType::Uint64),
    (ValueType::Int8, DataType::Int8),
    (ValueType::Int16, DataType::Int16),
    (ValueType::Int32, DataType::Int32),
    (ValueType::Int64, DataType::Int64),
    (ValueType::Fp16, DataType::Fp16),
    (ValueType::Fp32, DataType::Fp32),
    (ValueType::Fp64, DataType::Fp64),
    (ValueType::Bf16, DataType::Bf16),
    (ValueType::Bytes, DataType::Bytes),
];

impl ValueType {
    pub(crate) fn of(dtype: DataType) -> Self {
        let row = TYPES.iter().find(|(_, known)| *known == dtype);
        row.map_or(Self::Other, |(value, _)| *value)
    }
}

/// Finds the type that C means by a number.
pub(crate) fn data_type(number: i32) -> Result<DataType, CallFailure> {
    let row = TYPES.iter().find(|(value, _)| *value as i32 == number);
    let text = || CallFailure::argument(format!("there is no type of elements {number}"));
    row.map(|(_, dtype)| *dtype).ok_or_else(text)
}

/// Returns the bytes of one element of a type; 0 for byte strings and for numbers that are no type.
#[unsafe(no_mangle)]
pub extern "C" fn galatea_type_size(value_type: i32) -> usize {
    data_type(value_type).ok().and_then(DataType::size_bytes).unwrap_or(0)
}

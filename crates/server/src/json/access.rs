//! Reading a value as one type, with RapidJSON's words when it is of another.

use super::{JsonKind, JsonValue};

/// What a value was to be and is not.
pub type WrongType = &'static str;

impl<'d> JsonValue<'d> {
    /// The bytes of a string.
    ///
    /// # Errors
    /// When the value is no string.
    pub fn as_string(self) -> Result<&'d [u8], WrongType> {
        match self.kind() {
            JsonKind::String(bytes) => Ok(bytes),
            _ => Err("attempt to access JSON non-string as string"),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// When the value is neither.
    pub fn as_bool(self) -> Result<bool, WrongType> {
        match self.kind() {
            JsonKind::Bool(value) => Ok(value),
            _ => Err("attempt to access JSON non-boolean as boolean"),
        }
    }

    /// A whole number of zero or more.
    ///
    /// # Errors
    /// When the value is none.
    pub fn as_unsigned(self) -> Result<u64, WrongType> {
        match self.kind() {
            JsonKind::Natural(value) => Ok(value),
            _ => Err("attempt to access JSON non-unsigned-integer as unsigned-integer"),
        }
    }

    /// How many elements an array has.
    ///
    /// # Errors
    /// When the value is no array.
    pub fn as_array(self) -> Result<usize, WrongType> {
        match self.kind() {
            JsonKind::Array(count) => Ok(count),
            _ => Err("attempt to access JSON non-array as array"),
        }
    }
}

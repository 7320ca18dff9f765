//! Reading a value as one type, with RapidJSON's words when it is of another.

use super::{JsonKind, JsonValue};

/// Name of the type that a value was expected to have.
pub type WrongType = &'static str;

impl<'d> JsonValue<'d> {
    /// The bytes of a string.
    ///
    /// # Errors
    /// Fails when the value is not a string.
    pub fn as_string(self) -> Result<&'d [u8], WrongType> {
        match self.kind() {
            JsonKind::String(bytes) => Ok(bytes),
            _ => Err("attempt to access JSON non-string as string"),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// Fails when the value is not a boolean.
    pub fn as_bool(self) -> Result<bool, WrongType> {
        match self.kind() {
            JsonKind::Bool(value) => Ok(value),
            _ => Err("attempt to access JSON non-boolean as boolean"),
        }
    }

    /// A whole number of zero or more.
    ///
    /// # Errors
    /// Fails when the value is not such a number.
    pub fn as_unsigned(self) -> Result<u64, WrongType> {
        match self.kind() {
            JsonKind::Natural(value) => Ok(value),
            _ => Err("attempt to access JSON non-unsigned-integer as unsigned-integer"),
        }
    }

    /// Returns the number of elements of an array.
    ///
    /// # Errors
    /// Fails when the value is not an array.
    pub fn as_array(self) -> Result<usize, WrongType> {
        match self.kind() {
            JsonKind::Array(count) => Ok(count),
            _ => Err("attempt to access JSON non-array as array"),
        }
    }
}

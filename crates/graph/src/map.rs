//! Maps from labels to numbers, as the operators of classical machine learning make and take.

use std::fmt;

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;

/// Type of the keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapKey {
    /// Numbers of type `INT64`.
    Integer,
    /// Texts.
    Text,
}

impl MapKey {
    /// The type of a tensor of such keys.
    #[must_use]
    pub fn dtype(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Text => DataType::Bytes,
        }
    }

    /// The keys that a tensor of this type holds; `None` for a type that no key has.
    #[must_use]
    pub fn of(dtype: DataType) -> Option<Self> {
        match dtype {
            DataType::Int64 => Some(Self::Integer),
            DataType::Bytes => Some(Self::Text),
            _ => None,
        }
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dtype().fmt(f)
    }
}

/// Keys and a value for each. Maps with the same keys share them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedMap {
    kind: MapKey,
    keys: Tensor,
    values: Tensor,
}

impl KeyedMap {
    /// A map of these keys and values: two vectors of one length. Of equal keys the last counts.
    ///
    /// # Errors
    /// Fails when the keys are neither numbers nor texts, or the lengths differ.
    pub fn new(keys: Tensor, values: Tensor) -> Result<Self, OpError> {
        let kind = MapKey::of(keys.dtype()).ok_or_else(|| {
            OpError::new(format!("keys of type {}, expected INT64 or BYTES", keys.dtype()))
        })?;
        if keys.rank() != 1 || keys.shape() != values.shape() {
            return Err(OpError::new(format!(
                "keys of shape {:?} and values of shape {:?}, expected vectors of one length",
                keys.shape(),
                values.shape()
            )));
        }
        Ok(Self { kind, keys, values })
    }

    /// Returns the type of the keys.
    #[must_use]
    pub fn kind(&self) -> MapKey {
        self.kind
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &Tensor {
        &self.keys
    }

    /// The values in the order of the keys.
    #[must_use]
    pub fn values(&self) -> &Tensor {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_go_together() {
        let keys = Tensor::vector(vec![1_i64, 2]);
        let values = Tensor::vector(vec![0.5_f32, 1.0]);
        let map = KeyedMap::new(keys.clone(), values.clone()).unwrap();
        assert_eq!((map.kind(), map.keys(), map.values()), (MapKey::Integer, &keys, &values));
        assert!(KeyedMap::new(values, keys.clone()).unwrap_err().to_string().contains("FP32"));
        let short = KeyedMap::new(keys, Tensor::vector(vec![0.5_f32])).unwrap_err().to_string();
        assert!(short.contains("[2]") && short.contains("[1]"), "{short}");
    }
}

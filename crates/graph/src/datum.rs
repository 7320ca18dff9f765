//! Values of a run: tensors, sequences of tensors, optional values, maps.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::map::KeyedMap;

/// No sequence grows longer: a loop that appends for ever must end before memory does.
const MAX_ITEMS: usize = 1 << 24;

/// A sequence of tensors of one type, whose elements are adjacent. Clones share the list; a sequence
/// with one owner is changed in place, so that a loop that appends to a sequence does not copy it
/// in each iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSequence {
    dtype: DataType,
    items: Arc<Vec<Tensor>>,
}

impl TensorSequence {
    /// A sequence without items.
    #[must_use]
    pub fn empty(dtype: DataType) -> Self {
        Self { dtype, items: Arc::default() }
    }

    /// A sequence of these tensors.
    ///
    /// # Errors
    /// Fails when one has another type, or a copy of its elements has no memory.
    pub fn new(dtype: DataType, items: Vec<Tensor>) -> Result<Self, OpError> {
        if let Some(other) = items.iter().find(|item| item.dtype() != dtype) {
            return Err(mixed(dtype, other.dtype()));
        }
        let items = collected(&mut items.iter().map(Tensor::contiguous))?;
        Ok(Self { dtype, items: Arc::new(items) })
    }

    /// The type of all items.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The items in order.
    #[must_use]
    pub fn items(&self) -> &[Tensor] {
        &self.items
    }

    /// Puts a tensor before the item at a position, or at the end.
    ///
    /// # Errors
    /// Fails when it has another type, or there is no such position.
    pub fn insert(&mut self, position: usize, item: Tensor) -> Result<(), OpError> {
        if item.dtype() != self.dtype {
            return Err(mixed(self.dtype, item.dtype()));
        }
        if position > self.items.len() {
            return Err(self.outside(position));
        }
        if self.items.len() >= MAX_ITEMS {
            return Err(OpError::new(format!("a sequence of more than {MAX_ITEMS} tensors")));
        }
        Arc::make_mut(&mut self.items).insert(position, item.contiguous()?);
        Ok(())
    }

    /// Takes the item at a position out.
    ///
    /// # Errors
    /// Fails when there is no such position.
    pub fn remove(&mut self, position: usize) -> Result<Tensor, OpError> {
        if position >= self.items.len() {
            return Err(self.outside(position));
        }
        Ok(Arc::make_mut(&mut self.items).remove(position))
    }

    fn outside(&self, position: usize) -> OpError {
        OpError::new(format!(
            "position {position} is outside a sequence of {} tensors",
            self.items.len()
        ))
    }
}

fn mixed(dtype: DataType, other: DataType) -> OpError {
    OpError::new(format!("a sequence of {dtype} cannot hold a tensor of {other}"))
}

/// Value of a graph in a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Datum {
    /// A tensor.
    Tensor(Tensor),
    /// A sequence of tensors.
    Sequence(TensorSequence),
    /// An optional value: a tensor or a sequence, or nothing.
    Optional(Option<Box<Datum>>),
    /// A map from labels to numbers.
    Map(KeyedMap),
    /// A sequence of maps, one for each example.
    Maps(Vec<KeyedMap>),
}

impl Datum {
    /// Returns the kind of the value, in words for messages.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Sequence(_) => "a sequence",
            Self::Optional(Some(_)) => "an optional value",
            Self::Optional(None) => "an empty optional value",
            Self::Map(_) => "a map",
            Self::Maps(_) => "a sequence of maps",
        }
    }

    /// The tensor, if it is one.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The tensor that it is.
    ///
    /// # Errors
    /// Fails when it is something else.
    pub fn into_tensor(self) -> Result<Tensor, OpError> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(OpError::new(format!("expected a tensor, found {}", other.describe()))),
        }
    }

    /// The sequence that it is.
    ///
    /// # Errors
    /// Fails when it is something else.
    pub fn into_sequence(self) -> Result<TensorSequence, OpError> {
        match self {
            Self::Sequence(sequence) => Ok(sequence),
            other => Err(OpError::new(format!("expected a sequence, found {}", other.describe()))),
        }
    }

    /// The map that it is.
    ///
    /// # Errors
    /// Fails when it is something else.
    pub fn into_map(self) -> Result<KeyedMap, OpError> {
        match self {
            Self::Map(map) => Ok(map),
            other => Err(OpError::new(format!("expected a map, found {}", other.describe()))),
        }
    }

    /// The same value with every tensor's elements adjacent.
    ///
    /// # Errors
    /// Fails when a copy of the elements has no memory.
    pub fn contiguous(self) -> Result<Self, OpError> {
        Ok(match self {
            Self::Tensor(tensor) => Self::Tensor(tensor.contiguous()?),
            Self::Sequence(_) | Self::Map(_) | Self::Maps(_) => self,
            Self::Optional(None) => Self::Optional(None),
            Self::Optional(Some(inner)) => Self::Optional(Some(Box::new(inner.contiguous()?))),
        })
    }

    /// Returns whether a value of this fact may be this one: its kind and its element type.
    #[must_use]
    pub fn fits(&self, fact: &Fact) -> bool {
        let alike = |map: &KeyedMap, key| map.kind() == key && map.values().dtype() == fact.dtype;
        match (self, fact.kind) {
            (Self::Tensor(tensor), FactKind::Tensor) => tensor.dtype() == fact.dtype,
            (Self::Sequence(sequence), FactKind::Sequence) => sequence.dtype == fact.dtype,
            (Self::Optional(None), FactKind::OptionalTensor | FactKind::OptionalSequence) => true,
            (
                Self::Optional(Some(inner)),
                FactKind::OptionalTensor | FactKind::OptionalSequence,
            ) => inner.fits(&fact.within(fact.kind.element())),
            (Self::Map(map), FactKind::Map(key)) => alike(map, key),
            (Self::Maps(maps), FactKind::Maps(key)) => maps.iter().all(|map| alike(map, key)),
            _ => false,
        }
    }
}

impl From<Tensor> for Datum {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<TensorSequence> for Datum {
    fn from(sequence: TensorSequence) -> Self {
        Self::Sequence(sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_with_one_owner_keeps_its_list() {
        let mut sequence = TensorSequence::empty(DataType::Int64);
        sequence.insert(0, Tensor::scalar(1_i64)).unwrap();
        Arc::get_mut(&mut sequence.items).unwrap().reserve(8);
        let before = sequence.items.as_ptr();
        sequence.insert(1, Tensor::scalar(2_i64)).unwrap();
        assert_eq!(sequence.items.as_ptr(), before);
        let kept = sequence.clone();
        assert_eq!(sequence.remove(0).unwrap(), Tensor::scalar(1_i64));
        assert_eq!(kept.items().len(), 2);
    }

    #[test]
    fn wrong_types_and_positions_are_named() {
        let mut sequence = TensorSequence::empty(DataType::Int64);
        let mixed = sequence.insert(0, Tensor::scalar(1_f32)).unwrap_err().to_string();
        assert!(mixed.contains("INT64") && mixed.contains("FP32"), "{mixed}");
        assert!(sequence.remove(0).unwrap_err().to_string().contains("of 0 tensors"));
        assert!(Datum::Sequence(sequence).into_tensor().is_err());
    }
}

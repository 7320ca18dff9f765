//! Facts: the properties of a value that are known before it is computed.

use std::fmt;
use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use crate::collect::{collected, collected_some};
use crate::error::OpError;
use crate::map::MapKey;

/// The length of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Known(usize),
    /// A name that stands for one number throughout a run, such as `batch`.
    Symbol(Arc<str>),
    /// Not known before the run.
    Unknown,
}

impl Dim {
    /// The number, if known.
    #[must_use]
    pub fn known(&self) -> Option<usize> {
        match self {
            Self::Known(len) => Some(*len),
            _ => None,
        }
    }

    /// Returns whether both are certainly the same length.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        *self != Self::Unknown && self == other
    }
}

/// An integer as a length, or as the symbol of its text where it is negative.
pub(crate) fn number(value: i64) -> Dim {
    match usize::try_from(value) {
        Ok(len) => Dim::Known(len),
        Err(_) => Dim::Symbol(value.to_string().into()),
    }
}

/// The symbol of a length that is only known to be that of one axis of one value.
pub(crate) fn unknown_length(value: &str, axis: usize) -> Dim {
    // The mark keeps it from reading as an expression, whatever the name of the value.
    Dim::Symbol(format!("{value}.{axis}?").into())
}

/// The number that a length is, or that it is the text of.
pub(crate) fn integer(dim: &Dim) -> Option<i64> {
    match dim {
        Dim::Known(len) => i64::try_from(*len).ok(),
        Dim::Symbol(name) => name.parse().ok(),
        Dim::Unknown => None,
    }
}

/// A length as it is, and unknown where it is the symbol of a negative number.
pub(crate) fn unless_negative(dim: Dim) -> Dim {
    match &dim {
        Dim::Symbol(name) if name.parse::<i64>().is_ok() => Dim::Unknown,
        _ => dim,
    }
}

impl From<usize> for Dim {
    fn from(len: usize) -> Self {
        Self::Known(len)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(len) => len.fmt(f),
            Self::Symbol(name) => name.fmt(f),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// Kind of a value: a tensor, a sequence, a map or an optional value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FactKind {
    /// One tensor.
    #[default]
    Tensor,
    /// A sequence of tensors.
    Sequence,
    /// A tensor or nothing.
    OptionalTensor,
    /// A sequence of tensors or nothing.
    OptionalSequence,
    /// A map from such keys to numbers or texts.
    Map(MapKey),
    /// A sequence of maps from such keys.
    Maps(MapKey),
}

impl FactKind {
    /// The kind of an optional value that holds this kind; `None` where it is optional already, or
    /// made of maps.
    #[must_use]
    pub fn optional(self) -> Option<Self> {
        match self {
            Self::Tensor => Some(Self::OptionalTensor),
            Self::Sequence => Some(Self::OptionalSequence),
            Self::OptionalTensor | Self::OptionalSequence | Self::Map(_) | Self::Maps(_) => None,
        }
    }

    /// Returns the kind that an optional value holds; any other kind itself.
    #[must_use]
    pub fn element(self) -> Self {
        match self {
            Self::Tensor | Self::OptionalTensor => Self::Tensor,
            Self::Sequence | Self::OptionalSequence => Self::Sequence,
            Self::Map(_) | Self::Maps(_) => self,
        }
    }
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tensor => "a tensor",
            Self::Sequence => "a sequence",
            Self::OptionalTensor => "an optional tensor",
            Self::OptionalSequence => "an optional sequence",
            Self::Map(_) => "a map",
            Self::Maps(_) => "a sequence of maps",
        })
    }
}

/// Type, shape and, where known, the value. Of a sequence or an optional value, element type and
/// axes are those that all its tensors have in common; of a map, the type is that of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The kind of the value.
    pub kind: FactKind,
    /// The element type.
    pub dtype: DataType,
    /// The axes; `None` when even their number is unknown.
    pub shape: Option<Vec<Dim>>,
    /// The whole value, when it does not depend on the run's inputs.
    pub value: Option<Tensor>,
    /// For integer scalars and vectors that describe shapes: each element as a length, so that
    /// `Shape → Gather → Concat → Reshape` chains keep symbolic lengths. A negative number, such as
    /// the -1 of a target shape, is the symbol of its text.
    pub elements: Option<Vec<Dim>>,
}

impl Fact {
    /// A value of known type and shape.
    pub fn new(dtype: DataType, shape: Vec<Dim>) -> Self {
        Self::shaped(dtype, Some(shape))
    }

    /// A value with all axes known.
    #[must_use]
    pub fn fixed(dtype: DataType, shape: &[usize]) -> Self {
        Self::new(dtype, shape.iter().map(|&len| Dim::Known(len)).collect())
    }

    /// A value of unknown rank.
    #[must_use]
    pub fn unranked(dtype: DataType) -> Self {
        Self::shaped(dtype, None)
    }

    /// A tensor of this type and, where known, shape.
    #[must_use]
    pub fn shaped(dtype: DataType, shape: Option<Vec<Dim>>) -> Self {
        Self { kind: FactKind::Tensor, dtype, shape, value: None, elements: None }
    }

    /// Tensors of this fact's type and shape in a value of another kind.
    #[must_use]
    pub fn within(&self, kind: FactKind) -> Self {
        Self { kind, ..Self::shaped(self.dtype, self.shape.clone()) }
    }

    /// Returns whether the value is one tensor.
    #[must_use]
    pub fn is_tensor(&self) -> bool {
        self.kind == FactKind::Tensor
    }

    /// Returns the fact that holds for a value that has either this fact or the other. A value that
    /// is optional in one case is optional in both.
    ///
    /// # Errors
    /// Returns an error if kinds or element types differ otherwise.
    pub fn join(&self, other: &Self) -> Result<Self, OpError> {
        if (self.kind.element(), self.dtype) != (other.kind.element(), other.dtype) {
            return Err(OpError::new(format!("a value is {self} here and {other} there")));
        }
        let shape = match (&self.shape, &other.shape) {
            (Some(a), Some(b)) if a.len() == b.len() => {
                let dim = |(a, b): (&Dim, &Dim)| if a.same(b) { a.clone() } else { Dim::Unknown };
                Some(a.iter().zip(b).map(dim).collect())
            }
            _ => None,
        };
        let kind = if other.kind.optional().is_none() { other.kind } else { self.kind };
        let joined = Self { kind, ..Self::shaped(self.dtype, shape) };
        let value = self.value.as_ref().filter(|&value| other.value.as_ref() == Some(value));
        let elements = self.elements.as_ref().filter(|&all| other.elements.as_ref() == Some(all));
        Ok(Self { value: value.cloned(), elements: elements.cloned(), ..joined })
    }

    /// A constant.
    #[must_use]
    pub fn constant(value: Tensor) -> Self {
        let fact = Self::fixed(value.dtype(), value.shape());
        Self { value: Some(value), ..fact }
    }

    /// The same fact with symbolic elements, or with the value where all of them are numbers. Only
    /// INT64 and INT32 values carry them: arithmetic of narrower types wraps at lengths that occur.
    #[must_use]
    pub fn with_elements(self, elements: Option<Vec<Dim>>) -> Self {
        let largest = match self.dtype {
            DataType::Int64 => i64::MAX.unsigned_abs(),
            DataType::Int32 => i32::MAX.unsigned_abs().into(),
            _ => return Self { elements: None, ..self },
        };
        let fits = |len: usize| u64::try_from(len).is_ok_and(|len| len <= largest);
        let dim = |dim: Dim| match dim {
            Dim::Known(len) if !fits(len) => Dim::Unknown,
            other => other,
        };
        let elements: Option<Vec<Dim>> = elements.map(|all| all.into_iter().map(dim).collect());
        let value = elements.as_deref().and_then(|all| self.constant_of(all));
        Self { value: value.or(self.value), elements, ..self }
    }

    /// The integer scalar or vector of these elements, where all are numbers.
    fn constant_of(&self, elements: &[Dim]) -> Option<Tensor> {
        let shape = self.known_shape().filter(|shape| {
            shape.len() <= 1 && shape.iter().product::<usize>() == elements.len()
        })?;
        let all: Vec<i64> = collected_some(&mut elements.iter().map(integer))?;
        match self.dtype {
            DataType::Int64 => Tensor::from_vec(&shape, all).ok(),
            DataType::Int32 => {
                let all = collected(&mut all.into_iter().map(i32::try_from)).ok()?;
                Tensor::from_vec::<i32>(&shape, all).ok()
            }
            _ => None,
        }
    }

    /// The elements of an integer scalar or vector as lengths: from the value where it is known,
    /// else the symbolic ones. Negative numbers read as unknown.
    #[must_use]
    pub fn lengths(&self) -> Option<Vec<Dim>> {
        Some(self.numbers()?.into_iter().map(unless_negative).collect())
    }

    /// Returns the numbers of [`Fact::lengths`], with negative numbers as symbols such as `-1`, for
    /// arithmetic and comparisons on the way to a shape.
    #[must_use]
    pub(crate) fn numbers(&self) -> Option<Vec<Dim>> {
        let Some(value) = &self.value else { return self.elements.clone() };
        value.to_i64_vec().ok().map(|all| all.into_iter().map(number).collect())
    }

    /// The known integers of the value, such as axes or a target shape.
    #[must_use]
    pub fn integers(&self) -> Option<Vec<i64>> {
        self.value.as_ref().and_then(|value| value.to_i64_vec().ok())
    }

    /// The number of axes, if known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// The shape, if every axis is known.
    #[must_use]
    pub fn known_shape(&self) -> Option<Vec<usize>> {
        collected_some(&mut self.shape.as_ref()?.iter().map(Dim::known))
    }

    /// The shape under ONNX multidirectional broadcasting of several operands: unknown lengths stay
    /// unknown unless the other operand decides them.
    ///
    /// # Errors
    /// Fails when two known lengths differ and neither is 1.
    pub fn broadcast(facts: &[&Self]) -> Result<Option<Vec<Dim>>, OpError> {
        let mut shape: Vec<Dim> = Vec::new();
        for fact in facts {
            let Some(other) = &fact.shape else { return Ok(None) };
            let rank = shape.len().max(other.len());
            let pad = |dims: &[Dim]| {
                let mut all = vec![Dim::Known(1); rank - dims.len()];
                all.extend_from_slice(dims);
                all
            };
            shape = collected(
                &mut pad(&shape)
                    .into_iter()
                    .zip(pad(other))
                    .map(|pair| broadcast_dim(&pair.0, &pair.1)),
            )?;
        }
        Ok(Some(shape))
    }
}

fn broadcast_dim(a: &Dim, b: &Dim) -> Result<Dim, OpError> {
    Ok(match (a, b) {
        (a, b) if a.same(b) => a.clone(),
        (Dim::Known(1), other) | (other, Dim::Known(1)) => other.clone(),
        (Dim::Known(a), Dim::Known(b)) => {
            return Err(OpError::new(format!("lengths {a} and {b} do not broadcast")));
        }
        // The unknown one is 1 or equal to the known one; both give the known length.
        (Dim::Known(len), _) | (_, Dim::Known(len)) => Dim::Known(*len),
        _ => Dim::Unknown,
    })
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FactKind::Tensor => {}
            FactKind::Sequence => f.write_str("sequence of ")?,
            FactKind::OptionalTensor => f.write_str("optional ")?,
            FactKind::OptionalSequence => f.write_str("optional sequence of ")?,
            FactKind::Map(key) => return write!(f, "map from {key} to {}", self.dtype),
            FactKind::Maps(key) => {
                return write!(f, "sequence of maps from {key} to {}", self.dtype);
            }
        }
        write!(f, "{}", self.dtype)?;
        let Some(shape) = &self.shape else { return f.write_str("[...]") };
        let dims: Vec<_> = shape.iter().map(Dim::to_string).collect();
        write!(f, "[{}]", dims.join(","))
    }
}

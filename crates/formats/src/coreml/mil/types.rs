//! Types and constants of programs.

use std::fmt;

use galatea_tensor::Tensor;

use super::MilElement;

/// The type of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MilTensorType {
    /// Its elements.
    pub element: MilElement,
    /// Its lengths; `None` is one that is known in a run only. `None` for the whole is any number of
    /// axes.
    pub shape: Option<Vec<Option<usize>>>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MilType {
    /// A tensor.
    Tensor(MilTensorType),
    /// A list of values of one type, and how many there are where that is known.
    List(Box<MilType>, Option<usize>),
    /// Values of any types.
    Tuple(Vec<MilType>),
    /// Values by keys.
    Dictionary(Box<(MilType, MilType)>),
    /// Memory that outlives a run.
    State(MilTensorType),
}

impl MilType {
    /// A tensor of known shape.
    #[must_use]
    pub fn tensor(element: MilElement, shape: &[usize]) -> Self {
        let shape = Some(shape.iter().map(|&len| Some(len)).collect());
        Self::Tensor(MilTensorType { element, shape })
    }

    /// The type of a tensor, if it is one.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&MilTensorType> {
        match self {
            Self::Tensor(found) => Some(found),
            _ => None,
        }
    }
}

impl fmt::Display for MilTensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.element.fmt(f)?;
        let Some(shape) = &self.shape else { return f.write_str("[*]") };
        let lengths: Vec<String> =
            shape.iter().map(|len| len.map_or("?".to_owned(), |len| len.to_string())).collect();
        write!(f, "[{}]", lengths.join(", "))
    }
}

impl fmt::Display for MilType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(found) => found.fmt(f),
            Self::List(item, _) => write!(f, "list of {item}"),
            Self::Tuple(items) => {
                let items: Vec<String> = items.iter().map(Self::to_string).collect();
                write!(f, "tuple of ({})", items.join(", "))
            }
            Self::Dictionary(of) => write!(f, "dictionary from {} to {}", of.0, of.1),
            Self::State(found) => write!(f, "state of {found}"),
        }
    }
}

/// A constant.
#[derive(Clone, Debug)]
pub enum MilValue {
    /// A tensor: the type that its elements have in the program, and they themselves, of
    /// [`MilElement::stored_as`].
    Tensor(MilElement, Tensor),
    /// A list.
    List(Vec<MilValue>),
    /// A tuple.
    Tuple(Vec<MilValue>),
    /// Values by keys.
    Dictionary(Vec<(MilValue, MilValue)>),
}

impl MilValue {
    /// Returns a description of the value, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Tensor(element, tensor) => format!("{element}{:?}", tensor.shape()),
            Self::List(items) => format!("a list of {} values", items.len()),
            Self::Tuple(items) => format!("a tuple of {} values", items.len()),
            Self::Dictionary(items) => format!("a dictionary of {} values", items.len()),
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        let Self::Tensor(MilElement::String, tensor) = self else { return None };
        let text = tensor.item::<galatea_tensor::ByteString>().ok()?;
        text.as_str().map(str::to_owned)
    }
}

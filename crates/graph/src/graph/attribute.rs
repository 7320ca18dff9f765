//! Attributes of a node, and a reader that notices what nobody read.

use galatea_tensor::{ByteString, OrderedMap, Tensor};

use super::Graph;
use crate::error::OpError;
use crate::fact::Fact;

/// A subgraph as an attribute gives it.
#[derive(Clone, Debug)]
pub struct SubgraphAttribute {
    /// The nodes. The inputs are the subgraph's own, followed by the values of the graphs around
    /// it that it reads, under the names that these have there.
    pub graph: Graph,
    /// How many of the inputs are values of the graphs around it.
    pub captured: usize,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AttributeValue {
    /// One float.
    Float(f32),
    /// One integer.
    Int(i64),
    /// One byte string.
    String(ByteString),
    /// A tensor.
    Tensor(Tensor),
    /// A subgraph.
    Graph(Box<SubgraphAttribute>),
    /// The type of a value.
    Type(Fact),
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Byte strings.
    Strings(Vec<ByteString>),
}

impl AttributeValue {
    fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "FLOAT",
            Self::Int(_) => "INT",
            Self::String(_) => "STRING",
            Self::Tensor(_) => "TENSOR",
            Self::Graph(_) => "GRAPH",
            Self::Type(_) => "TYPE_PROTO",
            Self::Floats(_) => "FLOATS",
            Self::Ints(_) => "INTS",
            Self::Strings(_) => "STRINGS",
        }
    }
}

/// The attributes of a node, by name.
pub type Attributes = OrderedMap<String, AttributeValue>;

/// Attributes from names and values.
pub(crate) fn named<'a>(all: impl IntoIterator<Item = (&'a str, AttributeValue)>) -> Attributes {
    // Collecting sorts first, which is much code for each type of iterator.
    let mut attributes = Attributes::new();
    for (name, value) in all {
        attributes.insert(name.to_owned(), value);
    }
    attributes
}

impl From<i64> for AttributeValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for AttributeValue {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<f32> for AttributeValue {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

impl From<&[usize]> for AttributeValue {
    /// Lengths and axes, which no model has beyond the integers that hold them.
    fn from(all: &[usize]) -> Self {
        Self::Ints(all.iter().map(|&value| i64::try_from(value).unwrap_or(i64::MAX)).collect())
    }
}

/// Reads attributes and remembers which were read, so that [`AttributeReader::finish`] can refuse
/// the ones that the operator does not know.
#[derive(Debug)]
pub struct AttributeReader<'a> {
    attributes: &'a Attributes,
    read: Vec<&'static str>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $variant:ident -> $rust:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// Fails when the attribute has another kind.
        pub fn $name(&mut self, name: &'static str) -> Result<Option<$rust>, OpError> {
            self.read.push(name);
            match self.attributes.get(name) {
                None => Ok(None),
                Some(AttributeValue::$variant(value)) => Ok(Some(value.clone())),
                Some(other) => Err(OpError::new(format!(
                    "attribute '{name}' is of kind {}, expected {}",
                    other.kind(),
                    stringify!($variant).to_uppercase(),
                ))),
            }
        }
    )*};
}

impl<'a> AttributeReader<'a> {
    /// Starts reading.
    #[must_use]
    pub fn new(attributes: &'a Attributes) -> Self {
        Self { attributes, read: Vec::new() }
    }

    /// All attributes, read or not.
    pub(crate) fn all(&self) -> &'a Attributes {
        self.attributes
    }

    getters! {
        /// An integer, if present.
        int: Int -> i64;
        /// A float, if present.
        float: Float -> f32;
        /// A list of integers, if present.
        ints: Ints -> Vec<i64>;
        /// A list of floats, if present.
        floats: Floats -> Vec<f32>;
        /// A byte string, if present.
        bytes: String -> ByteString;
        /// A list of byte strings, if present.
        strings: Strings -> Vec<ByteString>;
        /// A tensor, if present.
        tensor: Tensor -> Tensor;
        /// A subgraph, if present.
        graph: Graph -> Box<SubgraphAttribute>;
        /// A type, if present.
        value_type: Type -> Fact;
    }

    /// An integer or its default.
    ///
    /// # Errors
    /// Fails when the attribute has another kind.
    pub fn int_or(&mut self, name: &'static str, default: i64) -> Result<i64, OpError> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer that stands for a truth value (0 or not).
    ///
    /// # Errors
    /// Fails when the attribute has another kind.
    pub fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, OpError> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }

    /// A float or its default.
    ///
    /// # Errors
    /// Fails when the attribute has another kind.
    pub fn float_or(&mut self, name: &'static str, default: f32) -> Result<f32, OpError> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A text, if present.
    ///
    /// # Errors
    /// Fails when the attribute has another kind or is not UTF-8.
    pub fn string(&mut self, name: &'static str) -> Result<Option<String>, OpError> {
        self.bytes(name)?
            .map(|bytes| {
                bytes
                    .as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| OpError::new(format!("attribute '{name}' is not valid UTF-8")))
            })
            .transpose()
    }

    /// One of several keywords, as its position in `choices`; absent means `default`.
    ///
    /// # Errors
    /// Fails when the attribute is none of them.
    pub fn choice(
        &mut self,
        name: &'static str,
        choices: &[&str],
        default: usize,
    ) -> Result<usize, OpError> {
        let Some(found) = self.string(name)? else { return Ok(default) };
        choices.iter().position(|choice| *choice == found).ok_or_else(|| {
            let choices = choices.join(", ");
            OpError::new(format!("attribute '{name}' is '{found}', expected one of {choices}"))
        })
    }

    /// Declares that an attribute is known and has no effect here.
    pub fn ignore(&mut self, name: &'static str) {
        self.read.push(name);
    }

    /// Ends reading.
    ///
    /// # Errors
    /// Fails when an attribute was never read: the model says something that would be ignored.
    pub fn finish(self) -> Result<(), OpError> {
        match self.attributes.keys().find(|name| !self.read.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(OpError::new(format!("unknown attribute '{name}'"))),
        }
    }
}

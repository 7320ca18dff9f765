//! Rewritten graphs to bytes and back, so that a model need not be read and rewritten each time.
//!
//! A node is stored as its operator's name and the attributes that parse to it; large constants stay
//! in files and are stored as places there. What cannot be stored so that reading gives the same
//! graph is refused when it is written.

mod proto;
mod read;
mod write;

use std::fmt;

use galatea_graph::{Fact, FactKind, Graph, MapKey};
use galatea_tensor::{DataType, SmallType, Tensor};

pub use read::read;
pub use write::{LargeConstant, write};

/// A graph with what the model declares of its inputs and outputs, which rewriting may have changed
/// in the graph.
#[derive(Clone, Debug)]
pub struct StoredGraph {
    /// The graph, in running order.
    pub graph: Graph,
    /// Names and types of the inputs.
    pub inputs: Vec<(String, Fact)>,
    /// Names and types of the outputs.
    pub outputs: Vec<(String, Fact)>,
    /// The constants, in the order in which they were written.
    pub constants: Vec<Tensor>,
}

/// Why a graph cannot be stored, or stored bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredError(String);

impl StoredError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoredError {}

/// The kinds of values by their numbers.
const KINDS: &[FactKind] = &[
    FactKind::Tensor,
    FactKind::Sequence,
    FactKind::OptionalTensor,
    FactKind::OptionalSequence,
    FactKind::Map(MapKey::Integer),
    FactKind::Map(MapKey::Text),
    FactKind::Maps(MapKey::Integer),
    FactKind::Maps(MapKey::Text),
];

/// Deepest nesting of subgraphs, as in models.
const MAX_DEPTH: usize = 16;

/// The type with this name.
fn data_type(name: &str) -> Result<DataType, StoredError> {
    let small = SmallType::ALL.iter().map(|&small| DataType::Small(small));
    DataType::ALL
        .into_iter()
        .chain(small)
        .find(|dtype| dtype.to_string() == name)
        .ok_or_else(|| StoredError::new(format!("there is no data type '{name}'")))
}

#[cfg(test)]
mod tests;

//! Products of architectures.

use galatea_graph::{Graph, ValueId};
use galatea_tensor::Tensor;

/// Keys by which the rows of a table are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUpKey {
    /// The token of a row.
    Token,
    /// Its position.
    Position,
}

/// A matrix of which each row of a step brings one row as an input.
#[derive(Clone, Debug)]
pub struct RowTable {
    /// The input.
    pub input: String,
    /// Key that chooses the row.
    pub by: LookUpKey,
    /// The shape of a row as an input.
    pub row: Vec<usize>,
    /// The matrix, with a vector for each row.
    pub rows: Tensor,
}

/// Product of an architecture.
pub(super) struct BuiltArchitecture {
    pub(super) graph: Graph,
    pub(super) tables: Vec<RowTable>,
    pub(super) ends: Vec<ValueId>,
}

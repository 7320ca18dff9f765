//! Right-hand matrices with many zeros, packed without them.
//!
//! Two layouts are multiplied by the machine of dense products, block of depth by block of depth:
//! rows of a strip of columns that are zero as a whole are left out ([`SparseLayout::Strips`]), and
//! of four adjacent terms of a column the two that matter are kept ([`SparseLayout::TwoOfFour`]).
//! The second is the 2:4 pattern; its terms are picked out of a vector of A. The third layout
//! ([`SparseLayout::Columns`]) has a list for every column, and vectors over rows of A.

mod columns;
mod data;
mod pattern;
mod plain;
mod product;
mod tile;
mod tiling;

pub use data::PackedSparse;
pub(crate) use data::{SparseBlock, SparsePanels};
pub(crate) use pattern::promises_zeros;
pub use pattern::{SparseLayout, ZeroPattern};
pub use plain::PlainMatrix;
pub use product::gemm_sparse;
pub(crate) use product::multiply_packed_sparse;
pub(crate) use tile::{multiply_sparse, multiply_sparse_thin};

#[cfg(test)]
mod tests;

//! How matrices lie in memory.

/// Transposition of a matrix in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transposition {
    /// Not transposed.
    #[default]
    No,
    /// Transposed.
    Yes,
}

/// Floats in a cache line: packed matrices may lie behind each other, each on a line of its own.
pub(super) const LINE: usize = 16;

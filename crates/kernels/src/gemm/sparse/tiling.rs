//! How products with scattered zeros are cut into tiles.

use crate::isa::Isa;
use crate::matrix::ProductSize;

/// Most vectors of rows in a tile.
const MOST_VECTORS: usize = 8;

/// Most rows in a tile: a block of terms stays in the first-level cache beside sums.
const MOST_ROWS: usize = 64;

/// Columns whose sums stay near.
pub(super) const GROUP_COLUMNS: usize = 64;

/// Terms of a block that the lists are divided by.
pub(super) const LIST_TERMS: usize = 64;

/// Bytes of transposed rows that stay near: with fewer a column is one list.
const NEAR_BYTES: usize = 64 * 1024;

/// How the rows of a product are cut into tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnTiling {
    /// Vectors of a tile.
    pub(super) vectors: usize,
    /// Tiles.
    pub(super) tiles: usize,
    /// How often the columns of a group pass.
    pub(super) passes: usize,
}

impl ColumnTiling {
    pub(super) fn of(isa: Isa, size: ProductSize) -> Self {
        let most = (MOST_ROWS / isa.lanes()).min(MOST_VECTORS);
        let vectors = size.m.div_ceil(isa.lanes()).next_power_of_two().clamp(1, most);
        let rows = vectors * isa.lanes();
        let near = size.k * rows * size_of::<f32>() <= NEAR_BYTES;
        let passes = if near { 1 } else { size.k.div_ceil(LIST_TERMS) };
        Self { vectors, tiles: size.m.div_ceil(rows), passes }
    }
}

//! The right-hand matrix of a BF16 product, packed once.

use std::sync::Arc;

use crate::gemm::{Transposition, check_matrix};
use crate::isa::nearest;
use crate::memory::{AlignedFloats, PackedStorage};
use galatea_tensor::Tensor;

/// Terms of a step: what a tile of AMX holds of a row.
pub(crate) const STEP: usize = 32;
/// Columns of a panel: two tiles.
pub(crate) const PANEL: usize = 32;
/// Columns of a tile.
pub(crate) const TILE: usize = 16;
/// Bytes of a step of a panel.
pub(crate) const STEP_BYTES: usize = STEP * PANEL * size_of::<u16>();

/// A matrix rounded to BF16 and cut into panels of 32 columns; the same for all instructions.
///
/// A panel is a stream of steps of 32 rows. A step is two tiles of 16 columns, a tile is 16 pairs
/// of rows, and a pair holds its two values of each column side by side. Missing rows and columns
/// are zeros.
#[derive(Clone)]
pub struct PackedBf16 {
    k: usize,
    n: usize,
    data: PackedStorage,
    /// A bit for each pair of terms that products multiply, where they pass over others.
    full: Option<Arc<[u16]>>,
}

impl std::fmt::Debug for PackedBf16 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedBf16 {{ k: {}, n: {} }}", self.k, self.n)
    }
}

impl PackedBf16 {
    /// Packs a `k` x `n` matrix. With [`Transposition::No`] `b` holds `k` rows of `n`, `ldb` apart; with
    /// [`Transposition::Yes`] it holds `n` rows of `k`, `ldb` apart.
    ///
    /// # Panics
    /// Panics when `b` is shorter than the matrix, or `ldb` is less than the length of its rows.
    #[must_use]
    pub fn pack(k: usize, n: usize, b: &[f32], ldb: usize, trans: Transposition) -> Self {
        let (rows, columns) = if trans == Transposition::No { (k, n) } else { (n, k) };
        check_matrix("B", b.len(), rows, columns, ldb);
        let mut data = AlignedFloats::lasting(Self::len(k, n));
        let steps = k.div_ceil(STEP);
        let (tiles, _) = data.as_bytes_mut().as_chunks_mut::<{ STEP * TILE * 2 }>();
        for (at, tile) in tiles.iter_mut().enumerate().take(n.div_ceil(PANEL) * steps * 2) {
            let panel = at / (2 * steps);
            let step = at / 2 % steps;
            let half = at % 2;
            let column = panel * PANEL + half * TILE;
            let columns = n.saturating_sub(column).min(TILE);
            let rows = (k - step * STEP).min(STEP);
            for row in 0..rows {
                let from = step * STEP + row;
                for inside in 0..columns {
                    let value = match trans {
                        Transposition::No => b[from * ldb + column + inside],
                        Transposition::Yes => b[(column + inside) * ldb + from],
                    };
                    let to = (row / 2 * TILE + inside) * 4 + row % 2 * 2;
                    tile[to..to + 2].copy_from_slice(&nearest(value).to_ne_bytes());
                }
            }
        }
        Self { k, n, data: PackedStorage::own(data), full: None }
    }

    /// How many floats the room of a packed `k` x `n` matrix has.
    fn len(k: usize, n: usize) -> usize {
        let steps = n.div_ceil(PANEL).saturating_mul(k.div_ceil(STEP));
        steps.saturating_mul(STEP_BYTES / size_of::<f32>())
    }

    /// A matrix that was packed before: [`PackedBf16::data`] of that time, in a vector from the
    /// position `at` on. `None` where the vector ends before, or starts on no cache line there.
    #[must_use]
    pub fn from_data(k: usize, n: usize, all: &Tensor, at: usize) -> Option<Self> {
        Some(Self { k, n, data: PackedStorage::given(all, at, Self::len(k, n))?, full: None })
    }

    /// The packed matrix, two BF16 in the place of an FP32: a whole number of cache lines.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        self.data.as_slice()
    }

    /// Returns whether the packed matrix lies in a mapped file.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.data.is_mapped()
    }

    /// Rows: the length of the sums.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the product.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of_val(self.data.as_slice()) + self.full.as_deref().map_or(0, size_of_val)
    }

    /// With a bit for each pair of terms that products multiply.
    pub(super) fn with_full(self, full: Vec<u16>) -> Self {
        Self { full: Some(full.into()), ..self }
    }

    pub(crate) fn panels(&self) -> Bf16Panels {
        let full = self.full.as_ref().map_or(std::ptr::null(), |full| full.as_ptr());
        Bf16Panels { data: self.data.as_slice().as_ptr().cast(), full }
    }
}

/// The packed matrix as a task sees it.
#[derive(Clone, Copy)]
pub(crate) struct Bf16Panels {
    pub(super) data: *const u8,
    /// Bits of pairs of terms that are multiplied, for both tiles of each step; null: all are.
    pub(super) full: *const u16,
}

impl Bf16Panels {
    /// Panels that lie at `start`.
    pub(crate) fn of(start: *const u8) -> Self {
        Self { data: start, full: std::ptr::null() }
    }

    /// The bits from a step on, counted over all panels; null where all pairs are multiplied.
    #[inline(always)]
    pub(super) fn full_at(&self, step: usize) -> *const u16 {
        if self.full.is_null() { self.full } else { self.full.wrapping_add(2 * step) }
    }
}

// SAFETY: a read-only view of a packed matrix that the caller of the product holds meanwhile.
unsafe impl Send for Bf16Panels {}
// SAFETY: as for Send.
unsafe impl Sync for Bf16Panels {}

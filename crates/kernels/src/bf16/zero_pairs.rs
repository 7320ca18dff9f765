//! Pairs of terms of a BF16 matrix that are zero in 16 columns, and where products pass over them.

use super::drive::THIN_ROWS;
use super::pack::{PANEL, PackedBf16, STEP, TILE};
use crate::isa::{Bf16Instructions, Bf16Isa, Bf16Kernel, PairInstructions};
use crate::matrix::MatrixSize;
use crate::zero_groups::ZeroGroup;

/// The pairs of terms that products pass over.
pub const ZERO_PAIRS: ZeroGroup = ZeroGroup { terms: 2, columns: TILE };

/// Part of a dense product's time that each pair that is left takes, where all are left.
const PAIR_EFFORT: f64 = 1.45;

/// Share of the time of a dense product that a sparse one may be expected to take at most.
const WORTHWHILE: f64 = 0.9;

struct PairedRowsQuery;

impl Bf16Kernel for PairedRowsQuery {
    type Output = bool;
    #[inline(always)]
    fn run<D: Bf16Instructions>(self, _: D) -> bool {
        <D::Pairs as PairInstructions>::PRESENT
    }
}

/// Returns whether products of `m` rows pass over zeros.
///
/// # Errors
/// Fails with the reason where the instructions have no such kernel.
pub fn passes_over_zeros(isa: Bf16Isa, m: usize) -> Result<(), String> {
    if isa.run(PairedRowsQuery) || (isa.amx().is_some() && m > THIN_ROWS) {
        return Err(format!("{} multiplies whole tiles, zeros among them", isa.name()));
    }
    Ok(())
}

/// Returns the share of a dense product's time that one takes which passes over zeros; `None` where that
/// is not worth it. `full` is the share of pairs that hold anything else ([`ZERO_PAIRS`]).
#[must_use]
pub fn sparse_share_bf16(full: f64) -> Option<f64> {
    Some(PAIR_EFFORT * full).filter(|share| *share < WORTHWHILE)
}

/// Returns a bit for each pair of terms of a step that is not zero in the columns of a tile: those of
/// both tiles of each step, in the order in which they are packed.
fn full_pairs(size: MatrixSize, packed: &[f32]) -> Vec<u16> {
    let tile = STEP * TILE / 2;
    let tiles = size.columns.div_ceil(PANEL) * size.rows.div_ceil(STEP) * 2;
    let bits = |tile: &[f32]| {
        let pairs = tile.chunks_exact(TILE).enumerate().filter(|(_, pair)| {
            // Zeros of either sign, in both halves.
            pair.iter().any(|both| both.to_bits() & 0x7fff_7fff != 0)
        });
        pairs.fold(0_u16, |bits, (number, _)| bits | 1 << number)
    };
    packed.chunks_exact(tile).take(tiles).map(bits).collect()
}

impl PackedBf16 {
    /// Lets products pass over pairs of terms that are zero in 16 columns. Results stay the same.
    /// Without effect on tiles of AMX and on instructions that multiply pairs of rows.
    #[must_use]
    pub fn passing_over_zeros(self) -> Self {
        let size = MatrixSize { rows: self.k(), columns: self.n() };
        let full = full_pairs(size, self.data());
        self.with_full(full)
    }
}

//! Right-hand matrices of one run, packed into panels of BF16 as [`super::PackedBf16`] is.

use half::bf16;

use super::{PANEL, STEP, STEP_BYTES, TILE};
use crate::cell::{RealCell, copy_cells};
use crate::isa::{IsaKernel, Simd};
use crate::matrix::StridedMatrix;

/// Floats of a step of a panel.
const STEP_FLOATS: usize = STEP_BYTES / size_of::<f32>();

/// Pairs of terms in a step.
const PAIRS: usize = STEP / 2;

/// Floats that the panels of a `k` x `n` matrix take.
pub(super) fn panel_floats(k: usize, n: usize) -> usize {
    k.div_ceil(STEP) * n.div_ceil(PANEL) * STEP_FLOATS
}

/// Packs a matrix whose columns lie as rows: the terms of a column are adjacent.
pub(super) struct PackRows<T> {
    /// The first column; the next ones are a stride away each.
    pub(super) from: StridedMatrix<*const T>,
    pub(super) columns: usize,
    pub(super) terms: usize,
    pub(super) to: *mut f32,
}

impl<T: RealCell> IsaKernel for PackRows<T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let steps = self.terms.div_ceil(STEP);
        // Terms of 16 columns as they lie in memory, in pairs.
        let mut rows = [0.0_f32; TILE * PAIRS];
        for tile in 0..2 * self.columns.div_ceil(PANEL) {
            let panel = tile / 2;
            let half = tile % 2;
            let columns = self.columns.saturating_sub(tile * TILE).min(TILE);
            for step in 0..steps {
                let terms = STEP.min(self.terms - step * STEP);
                let from = self.from.data.wrapping_add(tile * TILE * self.from.stride);
                let to = (panel * steps + step) * STEP_FLOATS + half * TILE * PAIRS;
                if columns < TILE || terms < STEP {
                    rows.fill(0.0);
                }
                // SAFETY: whoever made this has checked the matrix; the rows and the panels have room.
                unsafe {
                    for column in 0..columns {
                        let from = from.add(column * self.from.stride + step * STEP);
                        let to = rows.as_mut_ptr().add(column * PAIRS).cast::<bf16>();
                        copy_cells(s, from, to, terms);
                    }
                    for i in (0..TILE).step_by(S::LANES) {
                        for j in (0..PAIRS).step_by(S::LANES) {
                            let from = rows.as_ptr().add(i * PAIRS + j);
                            let to = self.to.add(to + j * TILE + i);
                            s.transpose_block(from, PAIRS, to, TILE);
                        }
                    }
                }
            }
        }
    }
}

/// Packs a matrix whose rows lie as they are: those of a term are adjacent.
pub(super) struct PackColumns<T> {
    /// The row of the first term; the next ones are a stride away each.
    pub(super) from: StridedMatrix<*const T>,
    pub(super) columns: usize,
    pub(super) terms: usize,
    pub(super) to: *mut f32,
}

impl<T: RealCell> IsaKernel for PackColumns<T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.columns;
        let steps = self.terms.div_ceil(STEP);
        for pair in 0..steps * PAIRS {
            let step = pair / PAIRS;
            let inside = pair % PAIRS;
            for column in (0..n.next_multiple_of(PANEL)).step_by(TILE) {
                let columns = n.saturating_sub(column).min(TILE);
                let mut rows = [[bf16::ZERO; TILE]; 2];
                let panel = column / PANEL;
                let half = column % PANEL / TILE;
                let to =
                    (panel * steps + step) * STEP_FLOATS + half * (STEP_FLOATS / 2) + inside * TILE;
                for (row, out) in rows.iter_mut().enumerate() {
                    let term = 2 * pair + row;
                    if term < self.terms {
                        let from = self.from.data.wrapping_add(term * self.from.stride + column);
                        // SAFETY: whoever made this has checked the matrix.
                        unsafe { copy_cells(s, from, out.as_mut_ptr(), columns) };
                    }
                }
                for at in (0..TILE).step_by(S::LANES) {
                    // SAFETY: whole vectors of both rows; the panels have room.
                    unsafe {
                        let [low, high] = rows
                            .each_ref()
                            .map(|row| s.bits(bf16::load(s, row.as_ptr().add(at), None)));
                        let both = s.or_i(high, s.shift_right(low, 16));
                        s.store(self.to.add(to + at), s.of_bits(both));
                    }
                }
            }
        }
    }
}

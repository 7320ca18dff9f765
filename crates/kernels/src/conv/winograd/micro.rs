//! The products at the points of a block of tiles.
//!
//! The transformed inputs lie as the register tile reads them: for each group of rows of a
//! register tile, a cache line of channels of one row after the other, then the next line. So a
//! product reads one stream of inputs and one of weights.

use super::tiles::{LINE, TileProducts, TransformedInputs};
use crate::gemm::PackedB;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// How many rows of weights ahead of their use are asked for.
const AHEAD: usize = 12;

/// The matrix products of some columns at some points.
pub(super) struct WinogradProducts<'a> {
    /// The weights: the same number of columns for each point, in whole panels.
    pub(super) weights: &'a PackedB,
    /// All points.
    pub(super) all: usize,
    pub(super) points: std::ops::Range<usize>,
    pub(super) inputs: TransformedInputs,
    pub(super) v: DisjointSlice<f32>,
    pub(super) products: TileProducts,
    pub(super) m: DisjointSlice<f32>,
    /// First and end column.
    pub(super) columns: (usize, usize),
}

impl IsaKernel for WinogradProducts<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = S::LANES * S::TILE_VECTORS;
        let v = self.v.ptr();
        let inputs = &self.inputs;
        for point in self.points.clone() {
            let b = self.weights.as_source();
            let channels = self.weights.k();
            let first = point * (self.weights.n() / self.all);
            let mut column = self.columns.0;
            while column < self.columns.1 {
                let at = first + column;
                // SAFETY: a panel of this point; a packed B needs no scratch.
                let panel = unsafe { b.panel(s, 0, channels, at, width, std::ptr::null_mut()) };
                // The last panel is padded: only vectors with columns are worth the work.
                let vectors = width.min(self.columns.1 - column).div_ceil(S::LANES);
                let start = point * self.products.point + column - self.columns.0;
                let mut row = 0;
                while row < inputs.rows {
                    let rows = inputs.group.min(inputs.rows - row);
                    let step = WinogradStep {
                        channels,
                        a: v.wrapping_add(inputs.at(point, 0, row)),
                        a_step: inputs.group * LINE,
                        b: panel.data,
                        b_stride: panel.stride,
                        c: self.m.at(start + row * self.products.row).ptr(),
                        c_stride: self.products.row,
                    };
                    // SAFETY: the inputs and products have these rows.
                    unsafe { tile(s, &step, rows, vectors) };
                    row += rows;
                }
                column += width;
            }
        }
    }
}

/// One register tile: all channels of some rows times a panel.
#[derive(Clone, Copy)]
struct WinogradStep {
    channels: usize,
    /// Rows a cache line apart.
    a: *const f32,
    /// Distance between the lines of a row.
    a_step: usize,
    /// `channels` rows of a panel, `b_stride` apart.
    b: *const f32,
    b_stride: usize,
    /// Whole vectors.
    c: *mut f32,
    c_stride: usize,
}

struct WinogradTile<'a, const R: usize, const V: usize>(&'a WinogradStep);

impl<const R: usize, const V: usize> IsaKernel for WinogradTile<'_, R, V> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.0;
        let mut acc = [[s.splat(0.0); V]; R];
        let mut a = t.a;
        let mut b = t.b;
        let mut left = t.channels;
        while left > 0 {
            let here = left.min(LINE);
            for k in 0..here {
                // SAFETY: a line has as many channels of each row as are left; B has a row each.
                unsafe {
                    for line in (0..V * S::LANES).step_by(LINE) {
                        s.prefetch(b.wrapping_add(AHEAD * t.b_stride + line));
                    }
                    let mut row = [s.splat(0.0); V];
                    for (v, x) in row.iter_mut().enumerate() {
                        *x = s.load(b.add(v * S::LANES));
                    }
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let x = s.splat(*a.add(r * LINE + k));
                        for (acc, y) in acc.iter_mut().zip(row) {
                            *acc = s.fma(x, y, *acc);
                        }
                    }
                    b = b.add(t.b_stride);
                }
            }
            a = a.wrapping_add(t.a_step);
            left -= here;
        }
        for (r, acc) in acc.iter().enumerate() {
            for (v, &x) in acc.iter().enumerate() {
                // SAFETY: the products have this row and whole vectors of the tile width.
                unsafe { s.store(t.c.add(r * t.c_stride + v * S::LANES), x) };
            }
        }
    }
}

macro_rules! by_rows {
    ($s:ident, $step:ident, $rows:ident, $v:literal: $($r:literal)*) => {
        match $rows {
            $($r if const { $r <= S::TILE_ROWS && $v <= S::TILE_VECTORS } => $s.enter(WinogradTile::<$r, $v>($step)),)*
            _ => {}
        }
    };
}

/// Runs one tile of `rows <= TILE_ROWS` rows and `vectors <= TILE_VECTORS` vectors.
///
/// # Safety
/// The step's pointers are valid for `rows` rows and that many vectors.
#[inline(always)]
unsafe fn tile<S: Simd>(s: S, step: &WinogradStep, rows: usize, vectors: usize) {
    match vectors {
        1 => by_rows!(s, step, rows, 1: 1 2 3 4 5 6),
        2 => by_rows!(s, step, rows, 2: 1 2 3 4 5 6),
        3 => by_rows!(s, step, rows, 3: 1 2 3 4 5 6),
        4 => by_rows!(s, step, rows, 4: 1 2 3 4 5 6),
        _ => {}
    }
}

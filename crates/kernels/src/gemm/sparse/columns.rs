//! Products with scattered zeros: vectors hold a column of A, and every weight that is left is
//! multiplied with as many rows as a tile has.
//!
//! A tile of rows is transposed once. Its terms are taken in short blocks that stay in the
//! first-level cache while the lists of a group of columns pass.

use super::super::depth::depth_blocks;
use super::super::drive::GemmProduct;
use super::super::micro::{A_STRIDE, GemmStep, K_BLOCK, PrefetchStretch, late, write_tile};
use super::super::pack::RowSource;
use super::data::SparseColumns;
use super::tiling::{ColumnTiling, GROUP_COLUMNS, LIST_TERMS};
use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::matrix::ProductSize;
use crate::memory::with_scratch;

/// Computes a product.
///
/// # Safety
/// A has `m` rows of `k`, C has `m` rows of `n`, `c_stride` apart, the epilogue covers C, and nothing
/// else uses C meanwhile; `b` is the product's right-hand side.
pub(crate) unsafe fn multiply_columns<A: RowSource>(
    exec: KernelContext<'_>,
    product: &GemmProduct<A>,
    b: SparseColumns,
) {
    let GemmProduct { m, n, k, .. } = *product;
    let tiling = ColumnTiling::of(exec.isa, ProductSize { m, k, n });
    let ColumnTiling { vectors, tiles, passes } = tiling;
    let tile_rows = vectors * exec.isa.lanes();
    let groups = n.div_ceil(GROUP_COLUMNS);
    let threads = exec.pool.threads();
    // Each part of the columns transposes the rows anew.
    let parts = if tiles >= 2 * threads { 1 } else { (2 * threads).min(groups) };
    let room = k * tile_rows + GROUP_COLUMNS * tile_rows + tile_rows * A_STRIDE + 16 * 16;
    exec.pool.run(tiles * parts, |task| {
        let part = task % parts;
        let columns = groups * part / parts..groups * (part + 1) / parts;
        let row = task / parts * tile_rows;
        with_scratch(room, |scratch| {
            exec.isa.run(ColumnsPart {
                product,
                b,
                row,
                rows: tile_rows.min(m - row),
                vectors,
                passes,
                groups: columns,
                scratch: scratch.as_mut_ptr(),
            });
        });
    });
}

/// A tile of rows times some groups of columns.
struct ColumnsPart<'a, A> {
    product: &'a GemmProduct<A>,
    b: SparseColumns,
    row: usize,
    rows: usize,
    vectors: usize,
    passes: usize,
    groups: std::ops::Range<usize>,
    scratch: *mut f32,
}

impl<A: RowSource> IsaKernel for ColumnsPart<'_, A> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let p = self.product;
        let tile_rows = self.vectors * S::LANES;
        let turned = self.scratch;
        let sums = turned.wrapping_add(p.k * tile_rows);
        let block = sums.wrapping_add(GROUP_COLUMNS * tile_rows);
        // SAFETY: the scratch has room for all of it; the rows are A's.
        unsafe { self.transpose(s, turned, block) };
        let lists = p.k.div_ceil(LIST_TERMS);
        for group in self.groups.clone() {
            let first = group * GROUP_COLUMNS;
            let columns = GROUP_COLUMNS.min(p.n - first);
            for pass in 0..self.passes.max(1) {
                let range = if self.passes <= 1 { 0..lists } else { pass..pass + 1 };
                for column in 0..columns {
                    // SAFETY: the list of a column of B; the sums have room for the column.
                    unsafe {
                        let (entries, count) = self.b.entries(first + column, range.clone());
                        let sums = sums.add(column * tile_rows);
                        let is_first = pass == 0;
                        self.column(s, ColumnRun { entries, count, turned, sums, is_first });
                    }
                }
            }
            // SAFETY: the sums of these columns are there.
            unsafe { self.write(s, first, columns, sums, block) };
        }
    }
}

/// A list of weights of a column, and what it is multiplied with.
#[derive(Clone, Copy)]
struct ColumnRun {
    entries: *const f32,
    count: usize,
    turned: *const f32,
    sums: *mut f32,
    is_first: bool,
}

impl<A: RowSource> ColumnsPart<'_, A> {
    /// Copies the tile's rows, term after term; rows that are missing are zero.
    ///
    /// # Safety
    /// `turned` has room for all terms of the tile, `block` for a block of its rows.
    #[inline(always)]
    unsafe fn transpose<S: Simd>(&self, s: S, turned: *mut f32, block: *mut f32) {
        let p = self.product;
        let tile_rows = self.vectors * S::LANES;
        for depth in depth_blocks(p.k) {
            // SAFETY: rows of A, and as many block rows.
            unsafe { p.a.copy(s, self.row, self.rows, depth.start, depth.terms, block) };
            for row in self.rows..tile_rows {
                for term in 0..depth.terms.next_multiple_of(S::LANES) {
                    // SAFETY: a row of the block that has no row of A.
                    unsafe { *block.add(row * A_STRIDE + term) = 0.0 };
                }
            }
            debug_assert!(depth.terms <= K_BLOCK);
            let whole = depth.terms / S::LANES * S::LANES;
            for first in (0..tile_rows).step_by(S::LANES) {
                for term in (0..whole).step_by(S::LANES) {
                    // SAFETY: a square of the block and of what is turned.
                    unsafe {
                        let from = block.add(first * A_STRIDE + term);
                        let to = turned.add((depth.start + term) * tile_rows + first);
                        s.transpose_block(from, A_STRIDE, to, tile_rows);
                    }
                }
                for term in whole..depth.terms {
                    for lane in 0..S::LANES {
                        // SAFETY: one element of the block and of what is turned.
                        unsafe {
                            let x = *block.add((first + lane) * A_STRIDE + term);
                            *turned.add((depth.start + term) * tile_rows + first + lane) = x;
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// The run's pointers are valid for the tile.
    #[inline(always)]
    unsafe fn column<S: Simd>(&self, s: S, run: ColumnRun) {
        match self.vectors {
            1 => s.enter(ColumnTile::<1, 4>(run)),
            2 => s.enter(ColumnTile::<2, 4>(run)),
            4 => s.enter(ColumnTile::<4, 2>(run)),
            _ => s.enter(ColumnTile::<8, 1>(run)),
        }
    }

    /// Writes the sums of some columns to C.
    ///
    /// # Safety
    /// The sums are there; `square` has room for a square of vectors.
    #[inline(always)]
    unsafe fn write<S: Simd>(
        &self,
        s: S,
        first: usize,
        columns: usize,
        sums: *mut f32,
        square: *mut f32,
    ) {
        let p = self.product;
        let tile_rows = self.vectors * S::LANES;
        for column in (0..columns).step_by(S::LANES) {
            let here = S::LANES.min(columns - column);
            for row in (0..self.rows).step_by(S::LANES) {
                let (at_row, at_column) = (self.row + row, first + column);
                // SAFETY: columns behind the last are room of the scratch, whose values are not
                // written; C has the rows and the columns.
                unsafe {
                    s.transpose_block(
                        sums.add(column * tile_rows + row),
                        tile_rows,
                        square,
                        S::LANES,
                    );
                    let rows = S::LANES.min(self.rows - row);
                    for i in 0..rows {
                        let step = GemmStep {
                            k: 0,
                            a: std::ptr::null(),
                            a_stride: A_STRIDE,
                            b: std::ptr::null(),
                            b_stride: 0,
                            c: p.c.ptr().add((at_row + i) * p.c_stride + at_column),
                            c_stride: p.c_stride,
                            columns: here,
                            accumulate: false,
                            finish: Some(p.finish.shifted(at_row + i, at_column)),
                            ahead: PrefetchStretch::NOTHING,
                        };
                        let mut sum = [[s.load(square.add(i * S::LANES))]];
                        write_tile(s, &step, &mut sum);
                        late(s, &step, 1);
                    }
                }
            }
        }
    }
}

/// A column's sums over the rows of a tile of `V` vectors, in `U` sets: one sum per element would wait
/// for itself where there are few.
struct ColumnTile<const V: usize, const U: usize>(ColumnRun);

impl<const V: usize, const U: usize> IsaKernel for ColumnTile<V, U> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let ColumnRun { mut entries, count, turned, sums, is_first } = self.0;
        let mut sets = [[s.splat(0.0); V]; U];
        if !is_first {
            for (v, sum) in sets[0].iter_mut().enumerate() {
                // SAFETY: the caller's sums of the tile.
                *sum = unsafe { s.load(sums.add(v * S::LANES)) };
            }
        }
        let mut left = count;
        while left >= U {
            for set in &mut sets {
                // SAFETY: an entry of the list, whose term the tile has.
                unsafe { column_term(s, entries, turned, set) };
                entries = entries.wrapping_add(2);
            }
            left -= U;
        }
        for _ in 0..left {
            // SAFETY: as above.
            unsafe { column_term(s, entries, turned, &mut sets[0]) };
            entries = entries.wrapping_add(2);
        }
        for v in 0..V {
            let mut sum = sets[0][v];
            for set in &sets[1..] {
                sum = s.add(sum, set[v]);
            }
            // SAFETY: the caller's sums of the tile.
            unsafe { s.store(sums.add(v * S::LANES), sum) };
        }
    }
}

/// # Safety
/// The entry is a term of the tile and its weight.
#[inline(always)]
unsafe fn column_term<S: Simd, const V: usize>(
    s: S,
    entry: *const f32,
    turned: *const f32,
    set: &mut [S::F; V],
) {
    // SAFETY: the caller vouches for the entry.
    unsafe {
        let a = turned.add((*entry.cast::<u32>()) as usize * V * S::LANES);
        let weight = s.splat(*entry.add(1));
        for (v, sum) in set.iter_mut().enumerate() {
            *sum = s.fma(weight, s.load(a.add(v * S::LANES)), *sum);
        }
    }
}

//! Conversion of the sums that tiles leave: bytes are made two rows of two vectors at a time.

use super::ByteLimits;
use super::join::SummandJoin;
use super::micro::{Int8Output, store, whole};
use super::pack::ColumnPointers;
use crate::isa::{Amx, Avx512, DotInstructions, Simd, Vnni};
use crate::tiles::{COLUMNS, TileResults, TileSums};

type F = <Avx512 as Simd>::F;
type I = <Avx512 as Simd>::I;

/// Two rows of two vectors.
type VectorSquare = [[F; 2]; 2];

/// Where sums become results.
#[derive(Clone, Copy)]
pub(super) struct Int8ResultPlace {
    pub(super) columns: ColumnPointers,
    /// Sum of each row of A; read where the columns have zero points.
    pub(super) row_sums: *const i32,
    pub(super) out: Int8Output,
    /// Elements between rows of C.
    pub(super) c_stride: usize,
    /// Columns, at most two vectors.
    pub(super) width: usize,
    /// True if results go to memory that may be far.
    pub(super) far: bool,
}

impl TileResults<Vnni> for Int8ResultPlace {
    #[inline(always)]
    fn below(&self, rows: usize) -> Self {
        Self {
            row_sums: self.row_sums.wrapping_add(rows),
            out: self.out.at(rows * self.c_stride),
            ..*self
        }
    }

    #[inline(always)]
    fn columns(&self) -> usize {
        self.width
    }

    #[inline(always)]
    unsafe fn write(&self, d: Vnni, rows: usize, sums: TileSums) {
        // SAFETY: the caller vouches for the sums; columns are padded to whole panels.
        unsafe {
            let sums = Int8RowSums::new(d, self, sums, rows);
            match self.out {
                Int8Output::Bytes { c, limits } => sums.bytes(c.ptr(), limits),
                Int8Output::Sum { c, summand, from, joins } => {
                    let c = c.ptr();
                    let from = from.ptr().cast_const();
                    match (joins.is_quick(), joins.is_signed()) {
                        (true, true) => sums.joined::<true, true>(c, from, summand, &joins),
                        (true, false) => sums.joined::<true, false>(c, from, summand, &joins),
                        (false, true) => sums.joined::<false, true>(c, from, summand, &joins),
                        (false, false) => sums.joined::<false, false>(c, from, summand, &joins),
                    }
                }
                Int8Output::Floats(c) => sums.floats(c.ptr()),
                Int8Output::Sums(c) => sums.keep(c.ptr()),
            }
        }
    }

    #[inline(always)]
    fn fetch(&self, amx: Amx, row: usize) {
        if !self.far {
            return;
        }
        let start: *const f32 = match self.out {
            Int8Output::Floats(c) => c.ptr(),
            Int8Output::Sums(c) => c.ptr().cast(),
            Int8Output::Bytes { c, .. } => {
                let line = c.ptr().wrapping_add(row * self.c_stride);
                amx.prefetch_to_write(line.cast());
                return;
            }
            Int8Output::Sum { c, from, .. } => {
                let at = row * self.c_stride;
                amx.prefetch_to_write(c.ptr().wrapping_add(at).cast());
                amx.prefetch(from.ptr().wrapping_add(at));
                return;
            }
        };
        let start = start.wrapping_add(row * self.c_stride);
        amx.prefetch_to_write(start);
        amx.prefetch_to_write(start.wrapping_add(self.width - 1));
    }
}

/// Rows of sums, and what is known of their columns.
struct Int8RowSums<'a> {
    d: Vnni,
    place: &'a Int8ResultPlace,
    sums: TileSums,
    rows: usize,
    offsets: [I; 2],
    scales: [F; 2],
}

impl<'a> Int8RowSums<'a> {
    /// # Safety
    /// The columns are there for two vectors.
    #[inline(always)]
    unsafe fn new(d: Vnni, place: &'a Int8ResultPlace, sums: TileSums, rows: usize) -> Self {
        let s = d.simd();
        let columns = &place.columns;
        let offsets = columns.offsets.cast::<f32>();
        let scales = columns.scales;
        // SAFETY: the caller vouches for the columns.
        unsafe {
            let offsets = [s.bits(s.load(offsets)), s.bits(s.load(offsets.add(COLUMNS)))];
            let scales = [s.load(scales), s.load(scales.add(COLUMNS))];
            Self { d, place, sums, rows, offsets, scales }
        }
    }

    /// A vector of a row, without what zero points add to it.
    ///
    /// # Safety
    /// The sums have the row.
    #[inline(always)]
    unsafe fn sum(&self, row: usize, vector: usize) -> I {
        let s = self.d.simd();
        let place = self.place;
        let at = row * self.sums.stride + vector * self.sums.next;
        // SAFETY: the caller vouches for the row.
        unsafe {
            let sum = s.bits(s.load(self.sums.data.add(at)));
            let sum = s.add_i(sum, self.offsets[vector]);
            if place.columns.zeros.is_null() {
                return sum;
            }
            let zeros = s.bits(s.load(place.columns.zeros.add(vector * COLUMNS).cast()));
            let times = s.splat_i(place.row_sums.add(row).read_unaligned().wrapping_neg());
            s.add_i(sum, s.mul_i(zeros, times))
        }
    }

    /// Two rows, scaled.
    ///
    /// # Safety
    /// The same as for [`Int8RowSums::sum`].
    #[inline(always)]
    unsafe fn scaled(&self, rows: [usize; 2]) -> VectorSquare {
        let s = self.d.simd();
        let mut square = [self.scales; 2];
        for (scaled, row) in square.iter_mut().zip(rows) {
            for (vector, scaled) in scaled.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the rows.
                *scaled = s.mul(s.to_float(unsafe { self.sum(row, vector) }), *scaled);
            }
        }
        square
    }

    /// The pair of rows from one on: the last row without another is a pair with itself.
    #[inline(always)]
    fn pair(&self, row: usize) -> [usize; 2] {
        [row, (row + 1).min(self.rows - 1)]
    }

    /// Where two rows of C lie.
    #[inline(always)]
    fn lines(&self, c: *mut u8, first: usize, second: usize) -> [*mut u8; 2] {
        let stride = self.place.c_stride;
        [c.wrapping_add(first * stride), c.wrapping_add(second * stride)]
    }

    /// # Safety
    /// C has rows and columns.
    #[inline(always)]
    unsafe fn bytes(&self, c: *mut u8, limits: ByteLimits) {
        let d = self.d;
        let to = d.narrow_to(limits.zero, limits.low, limits.high);
        for row in (0..self.rows).step_by(2) {
            let rows = self.pair(row);
            // SAFETY: the caller vouches for the rows.
            unsafe {
                let bytes = d.narrow(to, self.scaled(rows));
                d.store_rows(self.lines(c, rows[0], rows[1]), bytes, self.place.width);
            }
        }
    }

    /// Bytes of sums with others. `QUICK` is what [`SummandJoin::is_quick`] says, `SIGNED` what
    /// [`SummandJoin::is_signed`] says.
    ///
    /// # Safety
    /// The same as for [`Int8RowSums::bytes`], and the other bytes lie as those of C.
    #[inline(always)]
    unsafe fn joined<const QUICK: bool, const SIGNED: bool>(
        &self,
        c: *mut u8,
        from: *const u8,
        summand: ByteLimits,
        joins: &SummandJoin,
    ) {
        let d = self.d;
        let s = self.d.simd();
        let stride = self.place.c_stride;
        let result = joins.result();
        let to = d.narrow_to(result.zero, result.low, result.high);
        let width = self.place.width;
        let counts = [width.min(COLUMNS), width.saturating_sub(COLUMNS)];
        for row in (0..self.rows).step_by(2) {
            let rows = self.pair(row);
            // SAFETY: the caller vouches for the rows.
            unsafe {
                let mut square = self.scaled(rows);
                for (sums, row) in square.iter_mut().zip(rows) {
                    for (vector, sums) in sums.iter_mut().enumerate() {
                        let at = from.wrapping_add(row * stride + vector * COLUMNS);
                        let other = d.floats_of::<SIGNED>(at, counts[vector]);
                        let own = whole(s, *sums, summand);
                        *sums = joins.sum::<_, QUICK>(s, own, other);
                    }
                }
                let bytes = d.narrow(to, square);
                d.store_rows(self.lines(c, rows[0], rows[1]), bytes, self.place.width);
            }
        }
    }

    /// # Safety
    /// C has rows and columns.
    #[inline(always)]
    unsafe fn floats(&self, c: *mut f32) {
        let s = self.d.simd();
        let place = self.place;
        // SAFETY: the caller vouches for the rows; columns are there for two vectors.
        unsafe {
            let biases = place.columns.biases;
            let biases = [s.load(biases), s.load(biases.add(COLUMNS))];
            let vectors = place.width.div_ceil(COLUMNS);
            for row in 0..self.rows {
                for (vector, &bias) in biases.iter().enumerate().take(vectors) {
                    let sum = s.to_float(self.sum(row, vector));
                    let scaled = s.fma(sum, self.scales[vector], bias);
                    self.store(c, row, vector, scaled);
                }
            }
        }
    }

    /// # Safety
    /// C has rows and columns.
    #[inline(always)]
    unsafe fn keep(&self, c: *mut i32) {
        for row in 0..self.rows {
            for vector in 0..self.place.width.div_ceil(COLUMNS) {
                // SAFETY: the caller vouches for the rows.
                unsafe {
                    let sum = self.d.simd().of_bits(self.sum(row, vector));
                    self.store(c.cast(), row, vector, sum);
                }
            }
        }
    }

    /// Stores a vector of a row.
    ///
    /// # Safety
    /// C has the row and a column of the vector.
    #[inline(always)]
    unsafe fn store(&self, c: *mut f32, row: usize, vector: usize, v: F) {
        let column = vector * COLUMNS;
        let count = (self.place.width - column).min(COLUMNS);
        // SAFETY: the caller vouches for the place.
        unsafe { store(self.d.simd(), c.add(row * self.place.c_stride + column), v, count) };
    }
}

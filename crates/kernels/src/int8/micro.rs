//! The register tile of integer products, and what becomes of its sums.

use super::ByteLimits;
use super::join::SummandJoin;
use super::pack::ColumnPointers;
use crate::isa::{DotInstructions, DotKernel, PairInstructions, Simd};
use crate::memory::DisjointSlice;

/// Where results go, and how they are made.
#[derive(Clone, Copy)]
pub(super) enum Int8Output {
    Bytes {
        c: DisjointSlice<u8>,
        limits: ByteLimits,
    },
    /// Summands within limits of their own, which join others.
    Sum {
        c: DisjointSlice<u8>,
        summand: ByteLimits,
        from: DisjointSlice<u8>,
        joins: SummandJoin,
    },
    Floats(DisjointSlice<f32>),
    Sums(DisjointSlice<i32>),
}

impl Int8Output {
    /// The same from an element on.
    #[inline(always)]
    pub(super) fn at(self, offset: usize) -> Self {
        match self {
            Self::Bytes { c, limits } => Self::Bytes { c: c.at(offset), limits },
            Self::Sum { c, summand, from, joins } => {
                Self::Sum { c: c.at(offset), summand, from: from.at(offset), joins }
            }
            Self::Floats(c) => Self::Floats(c.at(offset)),
            Self::Sums(c) => Self::Sums(c.at(offset)),
        }
    }
}

/// Some rows of A times a panel of B.
#[derive(Clone, Copy)]
pub(super) struct Int8Step {
    /// Groups of terms.
    pub(super) groups: usize,
    pub(super) a: *const u8,
    /// Bytes between rows of A.
    pub(super) a_stride: usize,
    pub(super) b: *const i8,
    pub(super) columns: ColumnPointers,
    /// Sum of each row of A; read where the columns have zero points.
    pub(super) row_sums: *const i32,
    pub(super) out: Int8Output,
    /// Elements between rows of C.
    pub(super) c_stride: usize,
    /// At most the tile width.
    pub(super) width: usize,
}

/// A tile of `R` rows and `V` vectors.
struct Int8Tile<'a, const R: usize, const V: usize>(&'a Int8Step);

impl<const R: usize, const V: usize> DotKernel for Int8Tile<'_, R, V> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let t = self.0;
        let s = d.simd();
        let mut acc = [[s.splat_i(0); V]; R];
        let mut a = t.a;
        let mut b = t.b;
        let vector = D::S::LANES * D::TERMS;
        for _ in 0..t.groups {
            // SAFETY: A has that many groups in each of R rows, B has whole panels.
            unsafe {
                let mut row = [s.splat_i(0); V];
                for (v, x) in row.iter_mut().enumerate() {
                    *x = d.load_terms(b.add(v * vector));
                }
                for (r, acc) in acc.iter_mut().enumerate() {
                    let x = s.splat_i(a.add(r * t.a_stride).cast::<i32>().read_unaligned());
                    for (acc, y) in acc.iter_mut().zip(row) {
                        *acc = d.dot(*acc, x, y);
                    }
                }
                a = a.add(size_of::<i32>());
                b = b.add(D::TILE_VECTORS * vector);
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (v, &sum) in acc.iter().enumerate() {
                // SAFETY: row r and vector v are inside the tile.
                unsafe { t.finish(d, r, v, sum) };
            }
        }
    }
}

impl Int8Step {
    /// Finishes the sums of vector `v` of row `r`.
    ///
    /// # Safety
    /// The step has the row and a column of the vector.
    #[inline(always)]
    pub(super) unsafe fn finish<D: DotInstructions>(
        &self,
        d: D,
        r: usize,
        v: usize,
        sum: <D::S as Simd>::I,
    ) {
        let column = v * D::S::LANES;
        let columns = self.columns.shifted(column);
        let here = (self.width - column).min(D::S::LANES);
        let out = self.out.at(r * self.c_stride + column);
        // SAFETY: the columns are padded to whole panels, row r has its sum, and the step's C covers
        // its rows of `width`.
        unsafe { finish(d, &columns, self.row_sums.wrapping_add(r), out, sum, here) };
    }
}

/// A tile of `P` pairs of rows and `V` vectors, which are pairs of columns here.
struct Int8PairTile<'a, const P: usize, const V: usize> {
    step: &'a Int8Step,
    /// Twice as many as pairs, or one less.
    rows: usize,
}

impl<const P: usize, const V: usize> DotKernel for Int8PairTile<'_, P, V> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let t = self.step;
        let s = d.simd();
        let Some(pairs) = d.pairs() else { return };
        let mut squares = [[[s.splat_i(0); 2]; V]; P];
        let mut rows = [[t.a; 2]; P];
        for (p, rows) in rows.iter_mut().enumerate() {
            for (r, row) in rows.iter_mut().enumerate() {
                // A last row without another is a pair with itself.
                *row = t.a.wrapping_add((2 * p + r).min(self.rows - 1) * t.a_stride);
            }
        }
        let mut b = t.b;
        let vector = 2 * D::GROUP;
        for group in 0..t.groups {
            // SAFETY: A has that many groups in each row, B has whole panels.
            unsafe {
                let mut left = [s.splat_i(0); P];
                for (left, rows) in left.iter_mut().zip(rows) {
                    let at = group * D::GROUP;
                    *left = pairs.load_rows([rows[0].wrapping_add(at), rows[1].wrapping_add(at)]);
                }
                for at in 0..2 * V {
                    let right = d.load_terms(b.add(at * vector));
                    for (squares, left) in squares.iter_mut().zip(left) {
                        let square = &mut squares[at / 2][at % 2];
                        *square = pairs.multiply(*square, left, right);
                    }
                }
                b = b.add(D::TILE_VECTORS * 2 * vector);
            }
        }
        for (p, squares) in squares.iter().enumerate() {
            for (v, &squares) in squares.iter().enumerate() {
                let [first, second] = pairs.rows(squares);
                // SAFETY: rows and vector v are inside the tile.
                unsafe {
                    t.finish(d, 2 * p, v, first);
                    if 2 * p + 1 < self.rows {
                        t.finish(d, 2 * p + 1, v, second);
                    }
                }
            }
        }
    }
}

/// Takes away what zero points add to a sum and stores `count` results.
///
/// # Safety
/// `out` is valid for `count` elements, at most a vector; the columns for a vector; `row_sum` where
/// the columns have zero points.
#[inline(always)]
pub(super) unsafe fn finish<D: DotInstructions>(
    d: D,
    columns: &ColumnPointers,
    row_sum: *const i32,
    out: Int8Output,
    mut sum: <D::S as Simd>::I,
    count: usize,
) {
    let s = d.simd();
    // SAFETY: the caller vouches for the memory.
    unsafe {
        sum = s.add_i(sum, s.bits(s.load(columns.offsets.cast())));
        if !columns.zeros.is_null() {
            let zeros = s.bits(s.load(columns.zeros.cast()));
            let row = s.splat_i(row_sum.read_unaligned().wrapping_neg());
            sum = s.add_i(sum, s.mul_i(zeros, row));
        }
        write(d, out, columns, sum, count);
    }
}

/// Added to a float of less than 2^22 in magnitude it rounds it to an integer, ties to even, whose
/// bits are the lowest of the sum.
const MAGIC: f32 = 12_582_912.0;

/// Scaled sums as bytes in the lanes: rounded, moved and limited.
#[inline(always)]
pub(super) fn narrowed<S: Simd>(s: S, scaled: S::F, limits: ByteLimits) -> S::I {
    let rounded = s.bits(shifted(s, scaled, limits));
    s.add_i(rounded, s.splat_i(limits.zero.wrapping_sub(MAGIC.to_bits().cast_signed())))
}

/// Scaled sums limited and rounded, plus [`MAGIC`].
#[inline(always)]
fn shifted<S: Simd>(s: S, scaled: S::F, limits: ByteLimits) -> S::F {
    let least = s.splat((limits.low - limits.zero) as f32);
    let most = s.splat((limits.high - limits.zero) as f32);
    // What is no number becomes the least.
    let limited = s.min(s.max(scaled, least), most);
    s.add(limited, s.splat(MAGIC))
}

/// Scaled sums limited and rounded, less what stands for zero.
#[inline(always)]
pub(super) fn whole<S: Simd>(s: S, scaled: S::F, limits: ByteLimits) -> S::F {
    s.sub(shifted(s, scaled, limits), s.splat(MAGIC))
}

/// Stores `count` sums of what scaled sums stand for as bytes and what joins them. `QUICK` is what
/// [`SummandJoin::is_quick`] says.
///
/// # Safety
/// `c` and `from` are valid for `count` bytes, at most a vector.
#[inline(always)]
unsafe fn store_joined<D: DotInstructions, const QUICK: bool>(
    d: D,
    scaled: <D::S as Simd>::F,
    c: *mut u8,
    from: *const u8,
    summand: ByteLimits,
    joins: &SummandJoin,
    count: usize,
) {
    let s = d.simd();
    let own = whole(s, scaled, summand);
    // SAFETY: the caller vouches for the memory.
    unsafe {
        let other = load_floats(d, from, joins.is_signed(), count);
        let bytes = narrowed(s, joins.sum::<_, QUICK>(s, own, other), joins.result());
        store_bytes(d, c, bytes, count);
    }
}

/// Stores `count` results.
///
/// # Safety
/// `out` is valid for `count` elements, at most a vector; the columns for a vector.
#[inline(always)]
unsafe fn write<D: DotInstructions>(
    d: D,
    out: Int8Output,
    columns: &ColumnPointers,
    sum: <D::S as Simd>::I,
    count: usize,
) {
    let s = d.simd();
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match out {
            Int8Output::Bytes { c, limits } => {
                let scaled = s.mul(s.to_float(sum), s.load(columns.scales));
                store_bytes(d, c.ptr(), narrowed(s, scaled, limits), count);
            }
            Int8Output::Sum { c, summand, from, joins } => {
                let scaled = s.mul(s.to_float(sum), s.load(columns.scales));
                let c = c.ptr();
                let from = from.ptr().cast_const();
                match joins.is_quick() {
                    true => store_joined::<D, true>(d, scaled, c, from, summand, &joins, count),
                    false => store_joined::<D, false>(d, scaled, c, from, summand, &joins, count),
                }
            }
            Int8Output::Floats(c) => {
                let scaled = s.fma(s.to_float(sum), s.load(columns.scales), s.load(columns.biases));
                store(s, c.ptr(), scaled, count);
            }
            Int8Output::Sums(c) => store(s, c.ptr().cast(), s.of_bits(sum), count),
        }
    }
}

/// # Safety
/// `p` is valid for `count` elements, at most a vector.
#[inline(always)]
pub(super) unsafe fn store<S: Simd>(s: S, p: *mut f32, v: S::F, count: usize) {
    // SAFETY: the caller vouches for the memory.
    unsafe { if count == S::LANES { s.store(p, v) } else { s.store_tail(p, s.tail(count), v) } }
}

/// # Safety
/// `p` is valid for `count` bytes, at most a vector.
#[inline(always)]
pub(super) unsafe fn load_floats<D: DotInstructions>(
    d: D,
    p: *const u8,
    signed: bool,
    count: usize,
) -> <D::S as Simd>::F {
    let s = d.simd();
    // SAFETY: the caller vouches for the memory; a vector has at most 16 lanes.
    unsafe {
        if count == D::S::LANES {
            return s.to_float(d.load_bytes(p, signed));
        }
        let mut lanes = [0_u8; 16];
        std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), count);
        s.to_float(d.load_bytes(lanes.as_ptr(), signed))
    }
}

/// # Safety
/// `p` is valid for `count` bytes, at most a vector.
#[inline(always)]
pub(super) unsafe fn store_bytes<D: DotInstructions>(
    d: D,
    p: *mut u8,
    v: <D::S as Simd>::I,
    count: usize,
) {
    // SAFETY: the caller vouches for the memory; a vector has at most 16 lanes.
    unsafe {
        if count == D::S::LANES {
            d.store_bytes(p, v);
        } else {
            d.store_some_bytes(p, v, count);
        }
    }
}

macro_rules! by_rows {
    ($d:ident, $step:ident, $rows:ident, $v:literal: $($r:literal)*) => {
        match $rows {
            $($r if const { $v <= D::TILE_VECTORS && $r <= D::TILE_ROWS[$v / 3] } => {
                $d.enter(Int8Tile::<$r, $v>($step));
            })*
            _ => {}
        }
    };
}

macro_rules! by_pairs {
    ($d:ident, $step:ident, $rows:ident, $v:literal: $($p:literal)*) => {
        match $rows.div_ceil(2) {
            $($p => $d.enter(Int8PairTile::<$p, $v> { step: $step, rows: $rows }),)*
            _ => {}
        }
    };
}

/// Runs one tile of pairs of at most as many rows as a tile of its width has.
///
/// # Safety
/// The step's pointers are valid for `rows` rows.
#[inline(always)]
unsafe fn tile_of_pairs<D: DotInstructions>(d: D, step: &Int8Step, rows: usize) {
    match step.width.div_ceil(D::S::LANES) {
        1 => by_pairs!(d, step, rows, 1: 1 2 3 4 5 6),
        2 => by_pairs!(d, step, rows, 2: 1 2 3 4 5 6),
        3 => by_pairs!(d, step, rows, 3: 1 2 3),
        4 => by_pairs!(d, step, rows, 4: 1 2 3),
        _ => {}
    }
}

/// Runs one tile of at most as many rows as a tile of its width has.
///
/// # Safety
/// The step's pointers are valid for `rows` rows.
#[inline(always)]
unsafe fn tile<D: DotInstructions>(d: D, step: &Int8Step, rows: usize) {
    if const { <D::Pairs as PairInstructions>::PRESENT } {
        // SAFETY: as this function's.
        return unsafe { tile_of_pairs(d, step, rows) };
    }
    match step.width.div_ceil(D::S::LANES) {
        1 => by_rows!(d, step, rows, 1: 1 2 3 4 5 6 7 8 9 10 11 12),
        2 => by_rows!(d, step, rows, 2: 1 2 3 4 5 6 7 8 9 10 11 12),
        3 => by_rows!(d, step, rows, 3: 1 2 3 4 5 6),
        4 => by_rows!(d, step, rows, 4: 1 2 3 4 5 6),
        _ => {}
    }
}

/// Runs a step over `rows` rows, tile by tile.
///
/// # Safety
/// The step's pointers are valid for `rows` rows.
#[inline(always)]
pub(super) unsafe fn block<D: DotInstructions>(d: D, step: &Int8Step, rows: usize) {
    let wide = step.width > 2 * D::S::LANES;
    // Tiles of nearly equal height: a thin last tile would be slow.
    let tiles = rows.div_ceil(D::TILE_ROWS[usize::from(wide)]);
    let mut start = 0;
    for i in 1..=tiles {
        let end = rows * i / tiles;
        let part = Int8Step {
            a: step.a.wrapping_add(start * step.a_stride),
            row_sums: step.row_sums.wrapping_add(start),
            out: step.out.at(start * step.c_stride),
            ..*step
        };
        // SAFETY: rows start..end of the caller's.
        unsafe { tile(d, &part, end - start) };
        start = end;
    }
}

//! From packed numbers to lanes, and to columns of FP32 and BF16.

use super::SLICE;
use super::pack::{BF16, BlockFormat, FP16, GROUP, HALF, LINE, PackedBlocks, ShiftValues, UNIT};
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Numbers of `B` bits; 16 stands for 4 bits that name entries of a table.
pub(super) struct PackedBits<S: Simd, const B: u32> {
    table: [u8; 16],
    of: std::marker::PhantomData<S>,
}

impl<S: Simd, const B: u32> PackedBits<S, B> {
    #[inline(always)]
    pub(super) fn new(_: S, format: BlockFormat) -> Self {
        let table = format.table().copied().unwrap_or_default();
        Self { table, of: std::marker::PhantomData }
    }
}

/// The bytes of a group of a unit: 4 rows of each column, for the columns from `column`.
///
/// # Safety
/// The unit is there; `column` starts a vector.
#[inline(always)]
pub(super) unsafe fn group_bytes<S: Simd, const B: u32>(
    s: S,
    bits: &PackedBits<S, B>,
    unit: *const u8,
    group: usize,
    column: usize,
) -> S::I {
    // SAFETY: a line of the unit.
    unsafe {
        match B {
            3 => joined::<S, 2, 1>(s, unit, group, column),
            5 => joined::<S, 4, 1>(s, unit, group, column),
            6 => joined::<S, 4, 2>(s, unit, group, column),
            8 => plane::<S, 8>(s, unit, group, column),
            4 => plane::<S, 4>(s, unit, group, column),
            16 => s.look_up(&bits.table, plane::<S, 4>(s, unit, group, column)),
            _ => plane::<S, 2>(s, unit, group, column),
        }
    }
}

/// # Safety
/// The same as for [`group_bytes`].
#[inline(always)]
unsafe fn joined<S: Simd, const LOW: u32, const HIGH: u32>(
    s: S,
    unit: *const u8,
    group: usize,
    column: usize,
) -> S::I {
    // SAFETY: the caller vouches for the unit, which has one plane behind the other.
    unsafe {
        let low = plane::<S, LOW>(s, unit, group, column);
        let (line, at) = line::<S, HIGH>(s, unit.add(LOW as usize * LINE), group, column);
        // One shift to where the bits belong.
        let high =
            if at < LOW { s.shift_left(line, LOW - at) } else { s.shift_right(line, at - LOW) };
        s.or_i(low, s.and_i(high, s.splat_i(bits_of_bytes(HIGH, LOW))))
    }
}

/// Some bits of every byte: so many, above so many lower ones.
#[inline(always)]
fn bits_of_bytes(count: u32, above: u32) -> i32 {
    ((u32::from(u8::MAX >> (8 - count)) << above) * 0x0101_0101).cast_signed()
}

/// The line with a group's bits, and the first of them.
///
/// # Safety
/// The same as for [`group_bytes`].
#[inline(always)]
unsafe fn line<S: Simd, const BITS: u32>(
    s: S,
    lines: *const u8,
    group: usize,
    column: usize,
) -> (S::I, u32) {
    let per_line = 8 / BITS as usize;
    // SAFETY: the caller vouches for the unit.
    let line =
        unsafe { s.bits(s.load(lines.add(group / per_line * LINE + column * GROUP).cast())) };
    #[allow(clippy::cast_possible_truncation, reason = "less than 8")]
    let first = (group % per_line) as u32 * BITS;
    (line, first)
}

/// # Safety
/// The same as for [`group_bytes`].
#[inline(always)]
unsafe fn plane<S: Simd, const BITS: u32>(
    s: S,
    lines: *const u8,
    group: usize,
    column: usize,
) -> S::I {
    // SAFETY: the caller vouches for the unit.
    let (line, first) = unsafe { line::<S, BITS>(s, lines, group, column) };
    if BITS == 8 {
        return line;
    }
    s.and_i(s.shift_right(line, first), s.splat_i(bits_of_bytes(BITS, 0)))
}

/// The number of one of the 4 rows of a group, as floats.
#[inline(always)]
pub(super) fn term<S: Simd>(s: S, bytes: S::I, row: u32) -> S::F {
    s.to_float(s.and_i(s.shift_right(bytes, 8 * row), s.splat_i(0xff)))
}

/// Floats of a row of a unit, for the columns from `column`.
///
/// # Safety
/// The slice and the unit exist, and hold floats of the kind `B`; `column` starts a vector.
#[inline(always)]
pub(super) unsafe fn float_row<S: Simd, const B: u32>(
    s: S,
    b: &PackedBlocks,
    slice: usize,
    unit: usize,
    row: usize,
    column: usize,
) -> S::F {
    let at = (unit * UNIT + row) * SLICE + column;
    let from = b.slice(slice).cast::<u16>().wrapping_add(at);
    // SAFETY: the caller vouches for the row, which has 16 columns.
    unsafe { if B == BF16 { s.load_bf16(from) } else { s.load_f16(from) } }
}

/// Form that columns are converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// Rows of FP32, `stride` apart.
    Floats,
    /// Tiles as [`crate::bf16::PackedBf16`] has them.
    Bf16,
}

/// Makes some slices whole.
pub(super) struct SliceUnpacker<'a> {
    pub(super) b: &'a PackedBlocks,
    pub(super) form: ColumnForm,
    /// The slice that becomes the first columns.
    pub(super) first: usize,
    /// Slices, counted from there.
    pub(super) slices: std::ops::Range<usize>,
    /// Columns between rows.
    pub(super) stride: usize,
    pub(super) to: DisjointSlice<u8>,
}

impl IsaKernel for SliceUnpacker<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.b.format().kind() {
            2 => self.bits::<S, 2>(s),
            3 => self.bits::<S, 3>(s),
            4 => self.bits::<S, 4>(s),
            5 => self.bits::<S, 5>(s),
            6 => self.bits::<S, 6>(s),
            16 => self.bits::<S, 16>(s),
            FP16 => self.bits::<S, FP16>(s),
            BF16 => self.bits::<S, BF16>(s),
            _ => self.bits::<S, 8>(s),
        }
    }
}

impl SliceUnpacker<'_> {
    #[inline(always)]
    fn bits<S: Simd, const B: u32>(&self, s: S) {
        let b = self.b;
        let units = self.b.units();
        for slice in self.slices.clone() {
            let from = self.first + slice;
            for unit in 0..units {
                for column in (0..SLICE).step_by(S::LANES) {
                    // SAFETY: whole units of the scratch, which no other task writes.
                    unsafe {
                        if from * SLICE >= b.n() {
                            self.nothing(s, slice, unit, column);
                        } else if const { B >= FP16 } {
                            self.floats::<S, B>(s, slice, from, unit, column);
                        } else {
                            self.unit::<S, B>(s, slice, from, unit, column);
                        }
                    }
                }
            }
        }
    }

    /// Where the row of a unit goes; for BF16 that of a pair of rows.
    #[inline(always)]
    fn place(&self, slice: usize, unit: usize, row: usize, column: usize) -> *mut f32 {
        let at = match self.form {
            ColumnForm::Floats => (unit * UNIT + row) * self.stride + slice * SLICE + column,
            ColumnForm::Bf16 => {
                let tile = (slice / 2 * self.b.units() + unit) * 2 + slice % 2;
                (tile * UNIT + row) / 2 * SLICE + column
            }
        };
        self.to.ptr().cast::<f32>().wrapping_add(at)
    }

    /// # Safety
    /// The same as for [`SliceUnpacker::unit`].
    #[inline(always)]
    unsafe fn nothing<S: Simd>(&self, s: S, slice: usize, unit: usize, column: usize) {
        let step = if self.form == ColumnForm::Floats { 1 } else { 2 };
        for row in (0..UNIT).step_by(step) {
            // SAFETY: the caller vouches for the place.
            unsafe { s.store(self.place(slice, unit, row, column), s.splat(0.0)) };
        }
    }

    /// A unit of floats.
    ///
    /// # Safety
    /// The same as for [`SliceUnpacker::unit`].
    #[inline(always)]
    unsafe fn floats<S: Simd, const B: u32>(
        &self,
        s: S,
        slice: usize,
        from: usize,
        unit: usize,
        column: usize,
    ) {
        for row in (0..UNIT).step_by(2) {
            // SAFETY: rows of the unit; the caller vouches for the places.
            unsafe {
                let [low, high] =
                    [row, row + 1].map(|row| float_row::<S, B>(s, self.b, from, unit, row, column));
                let to = self.place(slice, unit, row, column);
                match self.form {
                    ColumnForm::Floats => {
                        s.store(to, low);
                        s.store(self.place(slice, unit, row + 1, column), high);
                    }
                    ColumnForm::Bf16 => s.store(to, s.of_bits(pair(s, low, high))),
                }
            }
        }
    }

    /// # Safety
    /// The scratch has room for the unit, and no other task writes there.
    #[inline(always)]
    unsafe fn unit<S: Simd, const B: u32>(
        &self,
        s: S,
        slice: usize,
        from: usize,
        unit: usize,
        column: usize,
    ) {
        let b = self.b;
        let bits = PackedBits::<S, B>::new(s, b.format());
        let bytes = b.slice(from).wrapping_add(unit * b.format().unit_bytes());
        // SAFETY: scales and shifts of a slice are whole; the caller vouches for the rest.
        unsafe {
            let mut factors = self.factors(s, from, unit * UNIT, column);
            for group in 0..UNIT / GROUP {
                let row = unit * UNIT + group * GROUP;
                // The last unit may have one block only.
                if group * GROUP == HALF && b.format().block() == HALF && row < b.k() {
                    factors = self.factors(s, from, row, column);
                }
                let (scale, offset) = factors;
                let lanes = group_bytes(s, &bits, bytes, group, column);
                for row in (0..4_u32).step_by(2) {
                    let low = s.fma(term(s, lanes, row), scale, offset);
                    let high = s.fma(term(s, lanes, row + 1), scale, offset);
                    let at = group * GROUP + row as usize;
                    let to = self.place(slice, unit, at, column);
                    match self.form {
                        ColumnForm::Floats => {
                            s.store(to, low);
                            s.store(self.place(slice, unit, at + 1, column), high);
                        }
                        ColumnForm::Bf16 => s.store(to, s.of_bits(pair(s, low, high))),
                    }
                }
            }
        }
    }
}

impl SliceUnpacker<'_> {
    /// Returns the factors of the numbers of a row, and the summands.
    ///
    /// # Safety
    /// The row exists; `column` starts a vector.
    #[inline(always)]
    unsafe fn factors<S: Simd>(
        &self,
        s: S,
        slice: usize,
        row: usize,
        column: usize,
    ) -> (S::F, S::F) {
        let b = self.b;
        let block = row / b.format().block();
        // SAFETY: scales and shifts of a slice are whole.
        unsafe {
            let scale = b.scales.load(s, slice, block, column);
            let zero = s.splat(b.table_zero());
            let offset = match &b.shifts {
                ShiftValues::Zero(own) => s.fnma(s.add(s.splat(*own), zero), scale, s.splat(0.0)),
                ShiftValues::Zeros(all) => {
                    s.fnma(s.add(all.load(s, slice, block, column), zero), scale, s.splat(0.0))
                }
                ShiftValues::Offsets(all) => s.fnma(zero, scale, all.load(s, slice, block, column)),
            };
            (scale, offset)
        }
    }
}

/// Two numbers a lane, rounded to BF16, ties to even; the first in the lower half.
#[inline(always)]
fn pair<S: Simd>(s: S, low: S::F, high: S::F) -> S::I {
    let rounded = |x: S::F| {
        let bits = s.bits(x);
        let odd = s.and_i(s.shift_right(bits, 16), s.splat_i(1));
        s.add_i(bits, s.add_i(odd, s.splat_i(0x7fff)))
    };
    let upper = s.and_i(rounded(high), s.splat_i(-0x1_0000));
    s.or_i(s.shift_right(rounded(low), 16), upper)
}

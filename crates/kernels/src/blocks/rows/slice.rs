//! The sums of a slice: some rows times 16 columns.

use super::ready::{FIRST, SCALE, SCALED, SUM, VALUES};
use crate::blocks::SLICE;
use crate::blocks::columns::{PackedBits, float_row, group_bytes, term};
use crate::blocks::factors::FactorReader;
use crate::blocks::pack::{FP16, GROUP, HALF, PackedBlocks, ShiftValues, UNIT};
use crate::isa::{DotInstructions, DotKernel, IsaKernel, LeftTerms, Simd};

/// A slice: `R` rows times numbers of `B` bits.
pub(super) struct RowSlice<'a, const B: u32, const R: usize> {
    pub(super) b: &'a PackedBlocks,
    pub(super) slice: usize,
    /// The rows' terms, and the values of their blocks.
    pub(super) terms: *const f32,
    pub(super) values: *const f32,
    /// 16 for each row.
    pub(super) out: *mut f32,
}

/// Where blocks end in a stream of halves of units.
#[derive(Clone, Copy)]
struct BlockEnds {
    /// Halves of a block, and of the last one.
    each: usize,
    last: usize,
    /// Blocks that have not ended.
    blocks: usize,
    /// Halves until the next one ends.
    left: usize,
}

impl BlockEnds {
    #[inline(always)]
    fn of(b: &PackedBlocks) -> Self {
        let each = (b.format().block() / HALF).max(1);
        let blocks = b.blocks();
        // The last unit may have one block of a half only.
        let halves = if each == 1 { blocks } else { b.units() * 2 };
        let last = halves - blocks.saturating_sub(1) * each;
        Self { each, last, blocks, left: if blocks == 1 { last } else { each } }
    }

    /// Goes on by a half; whether a block has ended.
    #[inline(always)]
    fn half(&mut self) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.blocks -= 1;
        self.left = if self.blocks == 1 { self.last } else { self.each };
        true
    }
}

/// Reads the factors of the blocks of a slice one after the other.
struct BlockFactors<S: Simd> {
    scales: FactorReader<S>,
    shifts: Option<FactorReader<S>>,
}

impl<S: Simd> BlockFactors<S> {
    #[inline(always)]
    fn of(s: S, b: &PackedBlocks, slice: usize, column: usize) -> Self {
        let shifts = match &b.shifts {
            ShiftValues::Zero(_) => None,
            ShiftValues::Zeros(all) | ShiftValues::Offsets(all) => {
                Some(all.reader(s, slice, column))
            }
        };
        Self { scales: b.scales.reader(s, slice, column), shifts }
    }

    /// # Safety
    /// There is one more block.
    #[inline(always)]
    unsafe fn next(&mut self, s: S) -> (S::F, S::F) {
        // SAFETY: the caller vouches for the block.
        unsafe {
            let scale = self.scales.next(s);
            let shift = self.shifts.as_mut().map(|shifts| shifts.next(s));
            (scale, shift.unwrap_or_else(|| s.splat(0.0)))
        }
    }
}

impl<const B: u32, const R: usize> RowSlice<'_, B, R> {
    /// # Safety
    /// `out` has 16 columns for each row.
    #[inline(always)]
    unsafe fn store<S: Simd>(&self, s: S, column: usize, totals: &[S::F; R]) {
        for (row, &total) in totals.iter().enumerate() {
            // SAFETY: the caller vouches for the place.
            unsafe { s.store(self.out.add(row * SLICE + column), total) };
        }
    }

    /// The sums of floats, in two parts whatever the number of rows.
    #[inline(always)]
    fn halves<S: Simd>(&self, s: S) {
        for column in (0..SLICE).step_by(S::LANES) {
            let mut sums = [[s.splat(0.0); R]; 2];
            let mut terms = self.terms;
            for unit in 0..self.b.units() {
                for row in 0..UNIT {
                    // SAFETY: the unit and the rows' terms exist.
                    unsafe {
                        let number = float_row::<S, B>(s, self.b, self.slice, unit, row, column);
                        for (own, sum) in sums[row % 2].iter_mut().enumerate() {
                            *sum = s.fma(number, s.splat(*terms.add(row * R + own)), *sum);
                        }
                    }
                }
                terms = terms.wrapping_add(UNIT * R);
            }
            let [even, odd] = sums;
            let totals = std::array::from_fn(|row| s.add(even[row], odd[row]));
            // SAFETY: 16 sums for each row.
            unsafe { self.store(s, column, &totals) };
        }
    }
}

impl<const B: u32, const R: usize> IsaKernel for RowSlice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // A constant, so that the other arm is not compiled for this format.
        if const { B >= FP16 } {
            self.halves(s);
        } else {
            for column in (0..SLICE).step_by(S::LANES) {
                let totals = self.floats(s, column);
                // SAFETY: 16 sums for each row.
                unsafe { self.store(s, column, &totals) };
            }
        }
    }
}

impl<const B: u32, const R: usize> RowSlice<'_, B, R> {
    /// The sums of the columns from `column` on, as floats.
    #[inline(always)]
    fn floats<S: Simd>(&self, s: S, column: usize) -> [S::F; R] {
        let bits = PackedBits::<S, B>::new(s, self.b.format());
        let zero = s.splat(self.b.zero(false));
        let mut ends = BlockEnds::of(self.b);
        let mut terms = self.terms;
        let mut values = self.values;
        let mut factors = BlockFactors::of(s, self.b, self.slice, column);
        let mut totals = [s.splat(0.0); R];
        let mut sums = [[s.splat(0.0); R]; 2];
        let mut unit = self.b.slice(self.slice);
        while ends.blocks > 0 {
            for half in 0..2 {
                for group in half * 4..half * 4 + 4 {
                    // SAFETY: the unit and the rows' terms exist.
                    unsafe {
                        let bytes = group_bytes(s, &bits, unit, group, column);
                        for i in 0..4_u32 {
                            let number = term(s, bytes, i);
                            let at = (group * GROUP + i as usize) * R;
                            for (row, sum) in sums[i as usize % 2].iter_mut().enumerate() {
                                *sum = s.fma(number, s.splat(*terms.add(at + row)), *sum);
                            }
                        }
                    }
                }
                if ends.half() {
                    // SAFETY: the block exists.
                    unsafe { self.end_floats(s, &mut factors, zero, values, &sums, &mut totals) };
                    sums = [[s.splat(0.0); R]; 2];
                    values = values.wrapping_add(VALUES * R);
                    if ends.blocks == 0 {
                        break;
                    }
                }
            }
            unit = unit.wrapping_add(self.b.format().unit_bytes());
            terms = terms.wrapping_add(UNIT * R);
        }
        totals
    }

    /// Adds sums of floats of a block to the totals.
    ///
    /// # Safety
    /// There is one more block, whose values these are.
    #[inline(always)]
    unsafe fn end_floats<S: Simd>(
        &self,
        s: S,
        factors: &mut BlockFactors<S>,
        zero: S::F,
        values: *const f32,
        sums: &[[S::F; R]; 2],
        totals: &mut [S::F; R],
    ) {
        // SAFETY: the caller vouches for the block, which has a sum for each row.
        unsafe {
            let (scale, shift) = factors.next(s);
            // What is added to a sum for each of its terms, before the scale and after.
            let (zero, offset) = match &self.b.shifts {
                ShiftValues::Zeros(_) => (s.add(shift, zero), s.splat(0.0)),
                ShiftValues::Zero(_) | ShiftValues::Offsets(_) => (zero, shift),
            };
            for (row, total) in totals.iter_mut().enumerate() {
                let terms = s.splat(*values.add(SUM * R + row));
                let sum = s.add(sums[0][row], sums[1][row]);
                *total = s.fma(s.fnma(zero, terms, sum), scale, *total);
                *total = s.fma(offset, terms, *total);
            }
        }
    }
}

impl<const B: u32, const R: usize> DotKernel for RowSlice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let s = d.simd();
        for column in (0..SLICE).step_by(D::S::LANES) {
            let totals = self.bytes(d, column);
            // SAFETY: 16 sums for each row.
            unsafe { self.store(s, column, &totals) };
        }
    }
}

impl<const B: u32, const R: usize> RowSlice<'_, B, R> {
    /// The sums of the columns from `column` on, as bytes.
    #[inline(always)]
    fn bytes<D: DotInstructions>(&self, d: D, column: usize) -> [<D::S as Simd>::F; R] {
        let s = d.simd();
        let bits = PackedBits::<D::S, B>::new(s, self.b.format());
        // Numbers of 8 bits are signed bytes only after 128 is taken away.
        let signed = D::FORM == LeftTerms::Signed && (B == 8 || B == 16);
        let flip = s.splat_i(0x8080_8080_u32.cast_signed());
        let mut ends = BlockEnds::of(self.b);
        let mut terms = self.terms;
        let mut values = self.values;
        let mut factors = BlockFactors::of(s, self.b, self.slice, column);
        let mut totals = [s.splat(0.0); R];
        let mut sums = Self::firsts(s, values);
        let mut unit = self.b.slice(self.slice);
        while ends.blocks > 0 {
            for half in 0..2 {
                for group in half * 4..half * 4 + 4 {
                    // SAFETY: the unit and the rows' terms exist.
                    unsafe {
                        let mut bytes = group_bytes(s, &bits, unit, group, column);
                        if signed {
                            bytes = s.xor_i(bytes, flip);
                        }
                        for (row, sum) in sums.iter_mut().enumerate() {
                            let four = (*terms.add(group * R + row)).to_bits();
                            *sum = d.dot(*sum, bytes, s.splat_i(four.cast_signed()));
                        }
                    }
                }
                if ends.half() {
                    // SAFETY: the block exists.
                    unsafe { self.end_bytes(s, &mut factors, values, &sums, &mut totals) };
                    values = values.wrapping_add(VALUES * R);
                    sums = Self::firsts(s, values);
                    if ends.blocks == 0 {
                        break;
                    }
                }
            }
            unit = unit.wrapping_add(self.b.format().unit_bytes());
            terms = terms.wrapping_add(UNIT / GROUP * R);
        }
        totals
    }

    /// Returns the initial values of the sums of a block; arbitrary numbers behind the last block.
    #[inline(always)]
    fn firsts<S: Simd>(s: S, values: *const f32) -> [S::I; R] {
        std::array::from_fn(|row| {
            // SAFETY: there are values for each block of each row, and room for those of one more.
            s.splat_i(unsafe { *values.cast::<i32>().add(FIRST * R + row) })
        })
    }

    /// Adds sums of bytes of a block to the totals.
    ///
    /// # Safety
    /// There is one more block, whose values these are.
    #[inline(always)]
    unsafe fn end_bytes<S: Simd>(
        &self,
        s: S,
        factors: &mut BlockFactors<S>,
        values: *const f32,
        sums: &[S::I; R],
        totals: &mut [S::F; R],
    ) {
        // SAFETY: the caller vouches for the block, which has values for each row.
        unsafe {
            let (scale, shift) = factors.next(s);
            let value = |kind, row| s.splat(*values.add(kind * R + row));
            for (row, total) in totals.iter_mut().enumerate() {
                let mut sum = s.to_float(sums[row]);
                if let ShiftValues::Zeros(_) = self.b.shifts {
                    sum = s.fnma(shift, value(SUM, row), sum);
                }
                *total = s.fma(sum, s.mul(scale, value(SCALE, row)), *total);
                if let ShiftValues::Offsets(_) = self.b.shifts {
                    *total = s.fma(shift, value(SCALED, row), *total);
                }
            }
        }
    }
}

//! Weights of few bits, packed once.

use std::sync::{Mutex, PoisonError};

use super::SLICE;
use super::factors::{BlockFactorTable, FactorForm, FactorWriter};
use crate::ThreadPool;
use crate::matrix::MatrixSize;
use crate::memory::{AlignedFloats, DisjointSlice};

/// Rows of a unit: the terms that planes hold together.
pub(super) const UNIT: usize = 32;
/// The least block: half a unit.
pub(super) const HALF: usize = UNIT / 2;
/// Terms of a group: what a lane of 32 bits holds as bytes.
pub(super) const GROUP: usize = 4;
/// Groups of a unit.
const GROUPS: usize = UNIT / GROUP;
/// Bytes of a line: a group of every column of a slice.
pub(super) const LINE: usize = SLICE * GROUP;
/// The kinds of floats.
pub(super) const FP16: u32 = 17;
pub(super) const BF16: u32 = 18;
/// Number added to the entries of a table, so that they are no less than 0.
const TABLE_ZERO: u8 = 128;

/// Number of bits that a number has, how many numbers of a column share a scale, and whether
/// numbers name entries of a table or are floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    bits: u32,
    block: usize,
    table: Option<[u8; 16]>,
    half: Option<HalfKind>,
}

impl BlockFormat {
    /// A format; `None` unless `bits` is 2, 3, 4, 5, 6 or 8 and `block` is 16 or a multiple of 32.
    #[must_use]
    pub fn new(bits: u32, block: usize) -> Option<Self> {
        let blocks = block == HALF || block >= UNIT && block.is_multiple_of(UNIT);
        let known = matches!(bits, 2..=6 | 8) && blocks;
        known.then_some(Self { bits, block, table: None, half: None })
    }

    /// Floats of 16 bits, which have no scales: their block is 0.
    #[must_use]
    pub fn halves(half: HalfKind) -> Self {
        Self { bits: 16, block: 0, table: None, half: Some(half) }
    }

    /// The floats that numbers are, where they are floats.
    #[must_use]
    #[inline]
    pub fn half(self) -> Option<HalfKind> {
        self.half
    }

    /// Bytes of a number while a column is filled.
    #[must_use]
    pub fn number_bytes(self) -> usize {
        if self.half.is_some() { 2 } else { 1 }
    }

    /// Blocks of a column of `k` numbers.
    #[inline(always)]
    pub(super) fn blocks(self, k: usize) -> usize {
        if self.block == 0 { 0 } else { k.div_ceil(self.block) }
    }

    /// Numbers of 4 bits that name entries of a table; as for [`BlockFormat::new`].
    #[must_use]
    pub fn with_table(table: [i8; 16], block: usize) -> Option<Self> {
        let table = table.map(|entry| entry.cast_unsigned().wrapping_add(TABLE_ZERO));
        Some(Self { table: Some(table), ..Self::new(4, block)? })
    }

    /// Bits of a number.
    #[must_use]
    #[inline]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Numbers of a block; 0 where there are no scales.
    #[must_use]
    #[inline]
    pub fn block(self) -> usize {
        self.block
    }

    /// The bits of a number; 16 where these name entries of a table, [`FP16`] or [`BF16`] for floats.
    #[inline]
    pub(super) fn kind(self) -> u32 {
        match self.half {
            Some(HalfKind::Fp16) => FP16,
            Some(HalfKind::Bf16) => BF16,
            None if self.table.is_some() => 16,
            None => self.bits,
        }
    }

    /// The table, whose entries are 128 more than they stand for.
    #[inline(always)]
    pub(super) fn table(&self) -> Option<&[u8; 16]> {
        self.table.as_ref()
    }

    /// The widths of the planes that a number is cut into, lowest bits first.
    #[inline]
    pub(super) fn planes(self) -> [u32; 2] {
        match self.bits {
            3 => [2, 1],
            5 => [4, 1],
            6 => [4, 2],
            bits => [bits, 0],
        }
    }

    /// Bytes of a unit of a slice.
    #[inline]
    pub(super) fn unit_bytes(self) -> usize {
        self.bits as usize * LINE
    }
}

/// Zero points or offsets of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoredShift {
    /// `(number - zero) * scale`, with one zero for all.
    Zero(f32),
    /// `(number - zero) * scale`, with a zero for each block.
    Zeros,
    /// `number * scale + offset`, with an offset for each block, stored as scales are.
    Offsets,
}

/// The numbers that stand for zero.
#[derive(Clone, Copy, Debug)]
pub enum StoredZeros<'a> {
    /// One for all.
    One(f32),
    /// One for each block, in the order of the scales.
    Each(&'a [f32]),
}

/// Floats of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfKind {
    /// FP16.
    Fp16,
    /// BF16.
    Bf16,
}

/// How weights are packed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockStorage {
    /// The numbers.
    pub format: BlockFormat,
    /// The scales.
    pub factors: FactorForm,
    /// The zero points or offsets.
    pub shift: StoredShift,
}

/// A column that is to be filled: its numbers and what they are multiplied by. All are zeros before.
#[derive(Debug)]
pub struct BlockColumn<'a> {
    /// A number for each row; of floats two bytes, the lower one first.
    pub numbers: &'a mut [u8],
    /// A scale for each block.
    pub scales: &'a mut [f32],
    /// A zero or an offset for each block, where these differ.
    pub shifts: &'a mut [f32],
    /// For [`FactorForm::Nested`], the value of each superblock whose multiples are the scales.
    pub super_scales: &'a mut [f32],
    /// The same for offsets.
    pub super_shifts: &'a mut [f32],
}

/// Zero points or offsets of numbers, with their values.
pub(super) enum ShiftValues {
    Zero(f32),
    Zeros(BlockFactorTable),
    Offsets(BlockFactorTable),
}

/// A matrix in blocks, cut into slices of 16 columns.
///
/// A slice is a stream of units of 32 rows. A unit has a plane or two, which hold 8, 4, 2 or 1 bits
/// of each number; a byte of a line holds bits of rows that are 4 apart, so that a shift and a mask
/// of a line leave 4 adjacent rows of each column as bytes. A unit of floats has its rows one after
/// the other. Missing rows and columns are zeros.
pub struct PackedBlocks {
    format: BlockFormat,
    k: usize,
    n: usize,
    data: AlignedFloats,
    pub(super) scales: BlockFactorTable,
    pub(super) shifts: ShiftValues,
}

impl std::fmt::Debug for PackedBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { format, k, n, .. } = self;
        write!(f, "PackedBlocks {{ k: {k}, n: {n}, {format:?} }}")
    }
}

impl PackedBlocks {
    /// Packs a matrix whose number in row `i` and column `j` is `number(i, j)`. Scales are in the
    /// order column, block.
    ///
    /// # Panics
    /// Panics when there is not one scale, or not one zero point where these differ, for each block
    /// of each column.
    #[must_use]
    pub fn pack(
        pool: &ThreadPool,
        format: BlockFormat,
        size: MatrixSize,
        number: impl Fn(usize, usize) -> u8 + Sync,
        scales: &[f32],
        zeros: StoredZeros<'_>,
    ) -> Self {
        let MatrixSize { rows: k, columns: n } = size;
        let blocks = format.blocks(k);
        assert!(scales.len() == n * blocks, "{} scales for {n} x {blocks}", scales.len());
        let shift = match zeros {
            StoredZeros::One(zero) => StoredShift::Zero(zero),
            StoredZeros::Each(all) => {
                assert!(all.len() == scales.len(), "{} zero points", all.len());
                StoredShift::Zeros
            }
        };
        let storage = BlockStorage { format, factors: FactorForm::Fp32, shift };
        let packed: Result<Self, std::convert::Infallible> =
            Self::pack_columns(pool, storage, k, n, |column, to| {
                let at = column * blocks..(column + 1) * blocks;
                to.scales.copy_from_slice(&scales[at.clone()]);
                if let StoredZeros::Each(all) = zeros {
                    to.shifts.copy_from_slice(&all[at]);
                }
                for (row, to) in to.numbers.iter_mut().enumerate() {
                    *to = number(row, column);
                }
                Ok(())
            });
        match packed {
            Ok(packed) => packed,
            Err(never) => match never {},
        }
    }

    /// Packs a `k` x `n` matrix whose columns `fill` writes, some at a time by several threads.
    ///
    /// # Errors
    /// Returns the error of `fill`; if several columns fail, that of the first.
    pub fn pack_columns<E: Send>(
        pool: &ThreadPool,
        storage: BlockStorage,
        k: usize,
        n: usize,
        fill: impl Fn(usize, BlockColumn<'_>) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let BlockStorage { format, factors, shift } = storage;
        let blocks = format.blocks(k);
        let slices = n.div_ceil(SLICE);
        let units = k.div_ceil(UNIT);
        let mut data = AlignedFloats::lasting((slices * units * format.unit_bytes()).div_ceil(4));
        let mut scales = BlockFactorTable::new(factors, slices, blocks, format.block);
        let mut shifts = match shift {
            StoredShift::Zero(zero) => ShiftValues::Zero(zero),
            StoredShift::Zeros => ShiftValues::Zeros(BlockFactorTable::new(
                FactorForm::Fp32,
                slices,
                blocks,
                format.block,
            )),
            StoredShift::Offsets => {
                ShiftValues::Offsets(BlockFactorTable::new(factors, slices, blocks, format.block))
            }
        };
        let task = SlicePacking {
            format,
            sizes: (k, n),
            supers: scales.supers(),
            data: DisjointSlice::from_ptr(data.as_bytes_mut().as_mut_ptr()),
            scales: scales.writer(),
            shifts: match &mut shifts {
                ShiftValues::Zero(_) => None,
                ShiftValues::Zeros(all) | ShiftValues::Offsets(all) => Some(all.writer()),
            },
        };
        let failure = Mutex::new(None);
        pool.run_ranges(slices, 1, |range| {
            if let Err(failed) = task.run(range, &fill) {
                let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
                let earlier = first.as_ref().is_some_and(|(at, _)| *at <= failed.0);
                *first = if earlier { first.take() } else { Some(failed) };
            }
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => Ok(Self { format, k, n, data, scales, shifts }),
        }
    }

    /// Rows: the length of the sums.
    #[must_use]
    #[inline]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns of the product.
    #[must_use]
    #[inline]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The format.
    #[must_use]
    #[inline]
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let shifts = match &self.shifts {
            ShiftValues::Zero(_) => 0,
            ShiftValues::Zeros(all) | ShiftValues::Offsets(all) => all.size_bytes(),
        };
        size_of_val(self.data.as_slice()) + self.scales.size_bytes() + shifts
    }

    #[inline]
    pub(super) fn blocks(&self) -> usize {
        self.format.blocks(self.k)
    }

    #[inline]
    pub(super) fn units(&self) -> usize {
        self.k.div_ceil(UNIT)
    }

    #[inline]
    pub(super) fn slices(&self) -> usize {
        self.n.div_ceil(SLICE)
    }

    /// The first unit of a slice.
    #[inline(always)]
    pub(super) fn slice(&self, slice: usize) -> *const u8 {
        let start = slice * self.units() * self.format.unit_bytes();
        self.data.as_slice().as_ptr().cast::<u8>().wrapping_add(start)
    }

    /// Returns the number that was added to table entries; 0 for other formats.
    #[inline]
    pub(super) fn table_zero(&self) -> f32 {
        if self.format.table.is_some() { TABLE_ZERO.into() } else { 0.0 }
    }

    /// Returns the number to subtract from every code, if `signed` takes 128 from codes of a whole
    /// byte.
    #[inline]
    pub(super) fn zero(&self, signed: bool) -> f32 {
        let own = if let ShiftValues::Zero(zero) = self.shifts { zero } else { 0.0 };
        let whole = self.format.kind() >= 8;
        own + self.table_zero() - if signed && whole { f32::from(TABLE_ZERO) } else { 0.0 }
    }
}

/// Slices that are packed.
struct SlicePacking {
    format: BlockFormat,
    sizes: (usize, usize),
    supers: usize,
    data: DisjointSlice<u8>,
    scales: FactorWriter,
    shifts: Option<FactorWriter>,
}

impl SlicePacking {
    /// Packs some slices; a failure comes with its column.
    fn run<E>(
        &self,
        slices: std::ops::Range<usize>,
        fill: &impl Fn(usize, BlockColumn<'_>) -> Result<(), E>,
    ) -> Result<(), (usize, E)> {
        let (k, n) = self.sizes;
        let units = k.div_ceil(UNIT);
        let blocks = self.format.blocks(k);
        let width = self.format.number_bytes();
        let row = units * UNIT * width;
        let mut numbers = vec![0; SLICE * row];
        let mut scales = vec![0.0; blocks];
        let mut shifts = vec![0.0; blocks];
        let mut super_scales = vec![0.0; self.supers];
        let mut super_shifts = vec![0.0; self.supers];
        let shifted = if self.shifts.is_some() { blocks } else { 0 };
        for slice in slices {
            numbers.fill(0);
            for (column, numbers) in numbers.chunks_exact_mut(row.max(1)).enumerate() {
                let at = slice * SLICE + column;
                if at >= n {
                    break;
                }
                let to = BlockColumn {
                    numbers: &mut numbers[..k * width],
                    scales: &mut scales,
                    shifts: &mut shifts[..shifted],
                    super_scales: &mut super_scales,
                    super_shifts: &mut super_shifts,
                };
                fill(at, to).map_err(|error| (at, error))?;
                // SAFETY: this task alone has the slice.
                unsafe {
                    self.scales.column(slice, column, &scales, &super_scales);
                    if let Some(writer) = self.shifts {
                        writer.column(slice, column, &shifts, &super_shifts);
                    }
                }
            }
            let size = units * self.format.unit_bytes();
            // SAFETY: this task alone has the slice, which lies in the data.
            let out = unsafe { self.data.range(slice * size..(slice + 1) * size) };
            match self.format.half {
                Some(_) => Self::float_rows(&numbers, row, out),
                None => self.lines(&numbers, row, out),
            }
        }
        Ok(())
    }

    /// Floats of 16 columns, `row` bytes apart, to rows of 16.
    fn float_rows(numbers: &[u8], row: usize, out: &mut [u8]) {
        for (at, out) in out.chunks_exact_mut(2 * SLICE).enumerate() {
            for (column, to) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                to.copy_from_slice(&numbers[column * row + 2 * at..][..2]);
            }
        }
    }

    /// Numbers of 16 columns, `row` apart, to the planes of their units.
    fn lines(&self, numbers: &[u8], row: usize, out: &mut [u8]) {
        let units = out.chunks_exact_mut(self.format.unit_bytes());
        let mut words = [[0_u32; SLICE]; GROUPS];
        for (unit, out) in units.enumerate() {
            for column in 0..SLICE {
                let from = &numbers[column * row + unit * UNIT..][..UNIT];
                for (words, four) in words.iter_mut().zip(from.as_chunks().0) {
                    words[column] = u32::from_le_bytes(*four);
                }
            }
            let mut taken = 0;
            let mut rest = out;
            for plane in self.format.planes().into_iter().filter(|&plane| plane > 0) {
                let (lines, behind) = rest.split_at_mut(plane as usize * LINE);
                rest = behind;
                let mask = u32::from(u8::MAX >> (8 - plane)) * 0x0101_0101;
                let per_line = 8 / plane as usize;
                for (words, line) in words.chunks(per_line).zip(lines.chunks_exact_mut(LINE)) {
                    let mut joined = [0_u32; SLICE];
                    for (shift, words) in (0..8).step_by(plane as usize).zip(words) {
                        for (joined, word) in joined.iter_mut().zip(words) {
                            *joined |= (word >> taken & mask) << shift;
                        }
                    }
                    for (to, word) in line.as_chunks_mut().0.iter_mut().zip(joined) {
                        *to = word.to_le_bytes();
                    }
                }
                taken += plane;
            }
        }
    }
}

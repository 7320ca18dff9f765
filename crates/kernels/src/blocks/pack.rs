//! Weights of few bits, packed once.

use crate::memory::Aligned;

/// Columns of a slice.
pub(super) const SLICE: usize = 16;
/// Rows of a unit: the terms that planes hold together.
pub(super) const UNIT: usize = 32;
/// Terms of a group: what a lane of 32 bits holds as bytes.
pub(super) const GROUP: usize = 4;
/// Bytes of a line: a group of every column of a slice.
pub(super) const LINE: usize = SLICE * GROUP;

/// How many bits a number has, and how many numbers of a column share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    bits: u32,
    block: usize,
}

impl BlockFormat {
    /// A format; `None` unless `bits` is 2, 3, 4, 5, 6 or 8 and `block` a multiple of 32.
    #[must_use]
    pub fn new(bits: u32, block: usize) -> Option<Self> {
        let known = matches!(bits, 2..=6 | 8) && block >= UNIT && block.is_multiple_of(UNIT);
        known.then_some(Self { bits, block })
    }

    /// Bits of a number.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Numbers of a block.
    #[must_use]
    pub fn block(self) -> usize {
        self.block
    }

    /// The widths of the planes that a number is cut into, lowest bits first.
    pub(super) fn planes(self) -> [u32; 2] {
        match self.bits {
            3 => [2, 1],
            5 => [4, 1],
            6 => [4, 2],
            bits => [bits, 0],
        }
    }

    /// Bytes of a unit of a slice.
    pub(super) fn unit_bytes(self) -> usize {
        self.bits as usize * LINE
    }
}

/// The numbers that stand for zero.
#[derive(Clone, Copy, Debug)]
pub enum Zeros<'a> {
    /// One for all.
    One(f32),
    /// One for each block, in the order of the scales.
    Each(&'a [f32]),
}

/// A matrix in blocks, cut into slices of 16 columns.
///
/// A slice is a stream of units of 32 rows. A unit has a plane or two, which hold 8, 4, 2 or 1 bits
/// of each number; a byte of a line holds bits of rows that are 4 apart, so that a shift and a mask
/// of a line leave 4 adjacent rows of each column as bytes. Missing rows and columns are zeros.
#[derive(Clone)]
pub struct PackedBlocks {
    format: BlockFormat,
    k: usize,
    n: usize,
    data: Aligned,
    /// For each slice and block the scales of its columns.
    scales: Aligned,
    /// As the scales; empty where one is for all.
    zeros: Aligned,
    zero: f32,
}

impl std::fmt::Debug for PackedBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { format, k, n, .. } = self;
        write!(f, "PackedBlocks {{ k: {k}, n: {n}, {format:?} }}")
    }
}

impl PackedBlocks {
    /// Packs a `k` x `n` matrix whose number in row `i` and column `j` is `number(i, j)`. Scales
    /// are in the order column, block.
    ///
    /// # Panics
    /// When there is not one scale, or not one zero point where these differ, for each block of each
    /// column.
    #[must_use]
    pub fn pack(
        format: BlockFormat,
        (k, n): (usize, usize),
        number: impl Fn(usize, usize) -> u8,
        scales: &[f32],
        zeros: Zeros<'_>,
    ) -> Self {
        let blocks = k.div_ceil(format.block);
        let (slices, units) = (n.div_ceil(SLICE), k.div_ceil(UNIT));
        assert!(scales.len() == n * blocks, "{} scales for {n} x {blocks}", scales.len());
        let unit_bytes = format.unit_bytes();
        let mut data = Aligned::lasting((slices * units * unit_bytes).div_ceil(4));
        let bytes = data.as_bytes_mut();
        let mask = u8::MAX >> (8 - format.bits);
        for column in 0..n {
            let start = column / SLICE * units * unit_bytes;
            for row in 0..k {
                let unit = &mut bytes[start + row / UNIT * unit_bytes..][..unit_bytes];
                let (group, term) = (row % UNIT / GROUP, row % GROUP);
                let (mut number, mut line) = (number(row, column) & mask, 0);
                for plane in format.planes() {
                    if plane == 0 {
                        continue;
                    }
                    let per_line = 8 / plane as usize;
                    let at = (line + group / per_line) * LINE + column % SLICE * GROUP + term;
                    let bits = number & (u8::MAX >> (8 - plane));
                    unit[at] |= bits << (group % per_line * plane as usize);
                    number = number.checked_shr(plane).unwrap_or(0);
                    line += plane as usize;
                }
            }
        }
        let spread = |values: &[f32]| {
            let mut all = Aligned::lasting(slices * blocks * SLICE);
            let out = all.as_mut_slice();
            for (at, &value) in values.iter().enumerate() {
                let (column, block) = (at / blocks, at % blocks);
                out[(column / SLICE * blocks + block) * SLICE + column % SLICE] = value;
            }
            all
        };
        let (zeros, zero) = match zeros {
            Zeros::One(zero) => (Aligned::default(), zero),
            Zeros::Each(all) => {
                assert!(all.len() == scales.len(), "{} zero points", all.len());
                (spread(all), 0.0)
            }
        };
        Self { format, k, n, data, scales: spread(scales), zeros, zero }
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

    /// The format.
    #[must_use]
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        [&self.data, &self.scales, &self.zeros]
            .map(|part| size_of_val(part.as_slice()))
            .iter()
            .sum()
    }

    pub(super) fn blocks(&self) -> usize {
        self.k.div_ceil(self.format.block)
    }

    pub(super) fn units(&self) -> usize {
        self.k.div_ceil(UNIT)
    }

    /// The first unit of a slice.
    #[inline(always)]
    pub(super) fn slice(&self, slice: usize) -> *const u8 {
        let start = slice * self.units() * self.format.unit_bytes();
        self.data.as_slice().as_ptr().cast::<u8>().wrapping_add(start)
    }

    /// Scales of the columns of a slice in a block.
    #[inline(always)]
    pub(super) fn scales(&self, slice: usize, block: usize) -> *const f32 {
        self.scales.as_slice().as_ptr().wrapping_add((slice * self.blocks() + block) * SLICE)
    }

    /// Zero points likewise; null where one is for all.
    #[inline(always)]
    pub(super) fn zeros(&self, slice: usize, block: usize) -> *const f32 {
        if self.zeros.as_slice().is_empty() {
            return std::ptr::null();
        }
        self.zeros.as_slice().as_ptr().wrapping_add((slice * self.blocks() + block) * SLICE)
    }

    /// The zero point of all, where one is.
    pub(super) fn zero(&self) -> f32 {
        self.zero
    }
}

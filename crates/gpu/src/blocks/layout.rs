//! How a matrix of few bits lies on the device.
//!
//! The numbers of a row lie in units of up to 32. A unit's codes are cut into planes: four bits and what is
//! above them, or two. A plane's words hold a group of four neighbouring numbers in the four bytes, so
//! that one mask gives four numbers. Each plane has its units row by row: neighbouring lanes read neighbouring
//! vectors. A row's scales and offsets lie together, as small as the source has them.

use galatea_graph::blocks::{BlockWeights, CodeFormat, Meaning};
use galatea_tensor::DataType;

/// What is taken from or added to a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shift {
    /// One zero for all.
    Zero(f32),
    /// A zero for each block.
    Zeros,
    /// An offset for each block, added to the scaled code.
    Offsets,
    /// The code names an entry.
    Table(&'static [f32; 16]),
    /// The code is a float of this type.
    Float(DataType),
}

/// How scales, zeros and offsets lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Factors {
    /// There are none.
    Nothing,
    /// Floats of this type: FP32, FP16 or BF16.
    Floats(DataType),
    /// A byte for each block, which multiplies an FP16 of its superblock of so many numbers.
    Nested(usize),
}

/// A format of codes as it lies on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    /// Bits of a code.
    pub(crate) bits: u32,
    /// Numbers that share a scale; 0 where there are none.
    pub(crate) block: usize,
    pub(crate) shift: Shift,
    pub(crate) factors: Factors,
}

impl Layout {
    /// The layout of a checkpoint's matrix.
    ///
    /// # Errors
    /// When kernels do not know the format.
    pub(crate) fn of(weights: &dyn BlockWeights) -> Result<Self, String> {
        let of: CodeFormat = weights.format();
        let (bits, block) = (of.bits(), of.block());
        let shift = match of.meaning() {
            Meaning::Zero(zero) => Shift::Zero(zero),
            Meaning::Offset => Shift::Offsets,
            Meaning::Table(table) => Shift::Table(table),
            Meaning::Float(dtype) => Shift::Float(dtype),
        };
        let factors = match (shift, weights.superblock(), weights.factors()) {
            (Shift::Float(_), ..) => Factors::Nothing,
            (_, Some(superblock), _) => Factors::Nested(superblock),
            (_, None, dtype @ (DataType::Fp16 | DataType::Bf16)) => Factors::Floats(dtype),
            _ => Factors::Floats(DataType::Fp32),
        };
        Self { bits, block, shift, factors }.checked()
    }

    /// The layout itself, if kernels know it.
    ///
    /// # Errors
    /// Says what they do not know.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let Self { bits, block, .. } = self;
        if let Shift::Float(dtype) = self.shift {
            return match dtype {
                DataType::Fp32 | DataType::Fp16 | DataType::Bf16 => Ok(self),
                other => Err(format!("floats of {other}")),
            };
        }
        let table = !matches!(self.shift, Shift::Table(_)) || bits == 4;
        let superblocks = match self.factors {
            Factors::Nested(numbers) => numbers.is_power_of_two() && numbers >= block,
            Factors::Floats(_) => true,
            Factors::Nothing => false,
        };
        let known = matches!(bits, 2..=6 | 8) && block.is_power_of_two() && block >= 16;
        if known && table && superblocks {
            return Ok(self);
        }
        Err(format!("{bits} bits in blocks of {block}"))
    }

    /// Whether the codes are floats.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.shift, Shift::Float(_))
    }

    /// Whether FP16 has the range of the numbers.
    pub(crate) fn fits_halves(&self) -> bool {
        !matches!(self.shift, Shift::Float(DataType::Fp32 | DataType::Bf16))
    }

    /// Whether codes are integers that fit signed bytes, eight bits after 128 is taken away.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.is_float() && !matches!(self.shift, Shift::Table(_))
    }

    /// What is taken from such bytes before they are scaled.
    pub(crate) fn byte_zero(&self) -> f32 {
        let zero = if let Shift::Zero(zero) = self.shift { zero } else { 0.0 };
        if self.bits == 8 { zero - 128.0 } else { zero }
    }

    /// Whether a block has a second factor.
    pub(crate) fn pairs(&self) -> bool {
        matches!(self.shift, Shift::Zeros | Shift::Offsets)
    }

    /// Bits of the lower and of the upper plane.
    pub(crate) fn planes(&self) -> [u32; 2] {
        match self.bits {
            3 => [2, 1],
            5 => [4, 1],
            6 => [4, 2],
            bits => [bits, 0],
        }
    }

    /// Numbers of a unit: 16 bytes of the lower plane, or 8.
    pub(crate) fn unit(&self) -> usize {
        match self.planes()[0] {
            2 | 4 => 32,
            8 => 16,
            16 => 8,
            _ => 4,
        }
    }

    /// Groups of four numbers in a unit.
    pub(crate) fn groups(&self) -> usize {
        self.unit() / 4
    }

    /// Words of a unit in each plane.
    pub(crate) fn words(&self) -> [usize; 2] {
        self.planes().map(|bits| self.unit() * bits as usize / 32)
    }

    /// Parts of a unit that have scales of their own.
    pub(crate) fn parts(&self) -> usize {
        self.unit().checked_div(self.block).unwrap_or(1).max(1)
    }

    /// Units of a row.
    pub(crate) fn units(&self, columns: usize) -> usize {
        columns.div_ceil(self.unit())
    }

    /// Blocks of a row, those that only round a unit up included.
    pub(crate) fn blocks(&self, columns: usize) -> usize {
        if self.block == 0 { 0 } else { (self.units(columns) * self.unit()).div_ceil(self.block) }
    }

    /// Words of a row's factors: those of blocks, and those of superblocks behind them.
    pub(crate) fn factor_words(&self, columns: usize) -> [usize; 2] {
        let (blocks, times) = (self.blocks(columns), if self.pairs() { 2 } else { 1 });
        match self.factors {
            Factors::Nothing => [0, 0],
            Factors::Floats(DataType::Fp32) => [blocks * times, 0],
            Factors::Floats(_) => [(blocks * times).div_ceil(2), 0],
            Factors::Nested(numbers) => {
                let supers = (blocks * self.block).div_ceil(numbers);
                [(blocks * times).div_ceil(4), (supers * times).div_ceil(2)]
            }
        }
    }

    /// The name of the format in those of kernels.
    pub(crate) fn name(&self) -> String {
        let (bits, block) = (self.bits, self.block);
        match (self.shift, self.factors) {
            (Shift::Float(DataType::Fp16), _) => "f16".into(),
            (Shift::Float(DataType::Bf16), _) => "bf16".into(),
            (Shift::Float(_), _) => "f32".into(),
            (Shift::Table(_), _) => format!("t{bits}x{block}"),
            (_, Factors::Nested(_)) => format!("n{bits}x{block}"),
            _ => format!("q{bits}x{block}"),
        }
    }
}

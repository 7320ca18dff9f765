//! Layout of a quantized matrix on the device.
//!
//! The numbers of a row are stored in units of up to 32. A unit's codes are cut into planes: one of four bits
//! and one of the bits above them, or one of two bits. Each byte of a plane's word holds one of four
//! neighbouring numbers, which lets one mask extract all four. Each plane has its units row by row:
//! neighbouring lanes read neighbouring vectors. A row's scales and offsets are stored together, in the narrow
//! type of the source.

use galatea_graph::blocks::{BlockWeights, CodeFormat, CodeMeaning};
use galatea_tensor::DataType;

/// Value that is subtracted from or added to a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CodeShift {
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

/// Layout of scales, zeros and offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactorLayout {
    /// There are none.
    Nothing,
    /// Floats of this type: FP32, FP16 or BF16.
    Floats(DataType),
    /// A byte for each block, which multiplies an FP16 of its superblock of so many numbers.
    Nested(usize),
}

/// A format of codes as it lies on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CodeLayout {
    /// Bits of a code.
    pub(crate) bits: u32,
    /// Numbers that share a scale; 0 where there are none.
    pub(crate) block: usize,
    pub(crate) shift: CodeShift,
    pub(crate) factors: FactorLayout,
}

impl CodeLayout {
    /// The layout of a checkpoint's matrix.
    ///
    /// # Errors
    /// Fails when kernels do not know the format.
    pub(crate) fn of(weights: &dyn BlockWeights) -> Result<Self, String> {
        let of: CodeFormat = weights.format();
        let bits = of.bits();
        let block = of.block();
        let shift = match of.meaning() {
            CodeMeaning::Zero(zero) => CodeShift::Zero(zero),
            CodeMeaning::Offset => CodeShift::Offsets,
            CodeMeaning::Table(table) => CodeShift::Table(table),
            CodeMeaning::Float(dtype) => CodeShift::Float(dtype),
        };
        let factors = match (shift, weights.superblock(), weights.factors()) {
            (CodeShift::Float(_), ..) => FactorLayout::Nothing,
            (_, Some(superblock), _) => FactorLayout::Nested(superblock),
            (_, None, dtype @ (DataType::Fp16 | DataType::Bf16)) => FactorLayout::Floats(dtype),
            _ => FactorLayout::Floats(DataType::Fp32),
        };
        Self { bits, block, shift, factors }.checked()
    }

    /// The layout itself, if kernels know it.
    ///
    /// # Errors
    /// Says what they do not know.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let Self { bits, block, .. } = self;
        if let CodeShift::Float(dtype) = self.shift {
            return match dtype {
                DataType::Fp32 | DataType::Fp16 | DataType::Bf16 => Ok(self),
                other => Err(format!("floats of {other}")),
            };
        }
        let table = !matches!(self.shift, CodeShift::Table(_)) || bits == 4;
        let superblocks = match self.factors {
            FactorLayout::Nested(numbers) => numbers.is_power_of_two() && numbers >= block,
            FactorLayout::Floats(_) => true,
            FactorLayout::Nothing => false,
        };
        let known = matches!(bits, 2..=6 | 8) && block.is_power_of_two() && block >= 16;
        if known && table && superblocks {
            return Ok(self);
        }
        Err(format!("{bits} bits in blocks of {block}"))
    }

    /// Returns whether the codes are floats.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.shift, CodeShift::Float(_))
    }

    /// Returns whether the numbers fit the range of FP16.
    pub(crate) fn fits_halves(&self) -> bool {
        !matches!(self.shift, CodeShift::Float(DataType::Fp32 | DataType::Bf16))
    }

    /// Returns whether codes are integers that fit signed bytes; 8-bit codes do after 128 is subtracted.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.is_float() && !matches!(self.shift, CodeShift::Table(_))
    }

    /// Returns the value that is subtracted from such bytes before they are scaled.
    pub(crate) fn byte_zero(&self) -> f32 {
        let zero = if let CodeShift::Zero(zero) = self.shift { zero } else { 0.0 };
        if self.bits == 8 { zero - 128.0 } else { zero }
    }

    /// Returns whether a block has a second factor.
    pub(crate) fn pairs(&self) -> bool {
        matches!(self.shift, CodeShift::Zeros | CodeShift::Offsets)
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
        let blocks = self.blocks(columns);
        let times = if self.pairs() { 2 } else { 1 };
        match self.factors {
            FactorLayout::Nothing => [0, 0],
            FactorLayout::Floats(DataType::Fp32) => [blocks * times, 0],
            FactorLayout::Floats(_) => [(blocks * times).div_ceil(2), 0],
            FactorLayout::Nested(numbers) => {
                let supers = (blocks * self.block).div_ceil(numbers);
                [(blocks * times).div_ceil(4), (supers * times).div_ceil(2)]
            }
        }
    }

    /// The name of the format in those of kernels.
    pub(crate) fn name(&self) -> String {
        let bits = self.bits;
        let block = self.block;
        match (self.shift, self.factors) {
            (CodeShift::Float(DataType::Fp16), _) => "f16".into(),
            (CodeShift::Float(DataType::Bf16), _) => "bf16".into(),
            (CodeShift::Float(_), _) => "f32".into(),
            (CodeShift::Table(_), _) => format!("t{bits}x{block}"),
            (_, FactorLayout::Nested(_)) => format!("n{bits}x{block}"),
            _ => format!("q{bits}x{block}"),
        }
    }
}

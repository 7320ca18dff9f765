//! Quantized weights, as operators hold them: codes in blocks that share a scale, or floats that
//! are smaller than FP32.
//!
//! A [`CodeFormat`] says which number a code stands for. A [`BlockWeights`] hides where the codes
//! come from, so that the bytes of a checkpoint stay in place until a row is asked for.

use std::fmt;

use galatea_tensor::DataType;

use crate::error::OpError;

/// Number that a code stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodeMeaning {
    /// `scale * (code - zero)`, with one zero for all.
    Zero(f32),
    /// `scale * code + offset`, with an offset for each block.
    Offset,
    /// `scale * table[code]`.
    Table(&'static [f32; 16]),
    /// The number itself: the bytes of a code are a float of this type, the lower ones first.
    Float(DataType),
}

/// The bits of a code, how many numbers of a row share a scale, and what a code means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeFormat {
    bits: u32,
    block: usize,
    meaning: CodeMeaning,
}

impl CodeFormat {
    /// Codes of so many bits, `block` of which share a scale.
    #[must_use]
    pub const fn new(bits: u32, block: usize, meaning: CodeMeaning) -> Self {
        Self { bits, block, meaning }
    }

    /// Floats of a type, which have no scales: their block is 0.
    #[must_use]
    pub fn floats(dtype: DataType) -> Self {
        let bytes = dtype.size_bytes().unwrap_or(1);
        let bits = u32::try_from(8 * bytes).unwrap_or(u32::MAX);
        Self { bits, block: 0, meaning: CodeMeaning::Float(dtype) }
    }

    /// Bytes of a code where a row is taken apart.
    #[must_use]
    pub fn code_bytes(self) -> usize {
        match self.meaning {
            CodeMeaning::Float(dtype) => dtype.size_bytes().unwrap_or(1),
            _ => 1,
        }
    }

    /// Bits of a code.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// How many adjacent numbers of a row share a scale; 0 where there are no scales.
    #[must_use]
    pub fn block(self) -> usize {
        self.block
    }

    /// Returns the number that a code stands for.
    #[must_use]
    pub fn meaning(self) -> CodeMeaning {
        self.meaning
    }

    /// Scales of a row of so many numbers.
    #[must_use]
    pub fn blocks(self, columns: usize) -> usize {
        columns.checked_div(self.block).unwrap_or(0)
    }

    /// Offsets of a row: one for each of its blocks, or none where the format has no offsets.
    #[must_use]
    pub fn offsets(self, columns: usize) -> usize {
        match self.meaning {
            CodeMeaning::Offset => self.blocks(columns),
            _ => 0,
        }
    }
}

/// A row taken apart: what its numbers are made of.
#[derive(Debug)]
pub struct BlockRow<'a> {
    /// A code for each number, of [`CodeFormat::code_bytes`].
    pub codes: &'a mut [u8],
    /// A scale for each block.
    pub scales: &'a mut [f32],
    /// An offset for each block where the meaning is [`CodeMeaning::Offset`], else empty.
    pub offsets: &'a mut [f32],
}

/// Values of a row whose multiples are the scales of its blocks.
#[derive(Debug)]
pub struct SuperScales<'a> {
    /// A value for each superblock; its blocks' scales are whole multiples of it from -128 to 127.
    pub scales: &'a mut [f32],
    /// The same for offsets.
    pub offsets: &'a mut [f32],
}

/// Matrix of quantized weights or of floats, `rows` outputs by `columns` inputs.
pub trait BlockWeights: fmt::Debug + Send + Sync {
    /// Rows.
    fn rows(&self) -> usize;

    /// Numbers of a row.
    fn columns(&self) -> usize;

    /// Returns the format of the codes.
    fn format(&self) -> CodeFormat;

    /// Bytes that the matrix takes where it comes from.
    fn size_bytes(&self) -> usize;

    /// The address and the length of the bytes that the matrix shows, row by row as its format says. Of two
    /// matrices alive at once that say the same, and have the same sizes and format, either stands for both.
    /// `None` where the bytes do not say all, as of rows in another order: such a matrix is like no other.
    fn source(&self) -> Option<(usize, usize)> {
        None
    }

    /// The type that holds scales and offsets exactly.
    fn factors(&self) -> DataType {
        DataType::Fp32
    }

    /// Takes a row apart.
    ///
    /// # Errors
    /// Fails when there is no such row, or a slice has another length than [`CodeFormat`] says.
    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> Result<(), OpError>;

    /// How many numbers have scales that are small multiples of one value, where the format is made so.
    fn superblock(&self) -> Option<usize> {
        None
    }

    /// Writes the values of a row whose multiples are its scales, one for each superblock.
    ///
    /// # Errors
    /// Returns an error if there is no such row, a slice has another length, or the format has no
    /// superblocks.
    fn super_scales(&self, _row: usize, _to: SuperScales<'_>) -> Result<(), OpError> {
        Err(OpError::new("the format has no superblocks"))
    }

    /// The numbers of a row.
    ///
    /// # Errors
    /// Fails when there is no such row, or the slice has another length.
    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), OpError>;
}

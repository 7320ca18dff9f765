//! Weights of few bits: codes in blocks that share a scale.
//!
//! A [`BlockMatrix`] is a window on the bytes of a checkpoint, whoever wrote it (ggml, MLX). It gives
//! rows either as floats or as codes with scales and offsets, which a kernel packs in its own way;
//! [`CodeFormat`] says how a code stands for a number. Nothing is decoded before a row is asked for,
//! and rows may be asked for by several threads.

#![deny(clippy::indexing_slicing, clippy::as_conversions)]

mod bit_stream;
mod ggml;
mod ggml_grids;
mod ggml_k;
mod ggml_legacy;
mod ggml_small;
mod row;

use bytes::Bytes;
use galatea_tensor::{Tensor, checked_elements};

pub(crate) use bit_stream::GroupRows;
use ggml::GgmlRows;
use row::check_lengths;

use crate::checkpoint::CheckpointError;
use crate::gguf::GgmlType;

/// What a code stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Meaning {
    /// `scale * (code - zero)`, with one zero for all.
    Zero(f32),
    /// `scale * code + offset`, with an offset for each block.
    Offset,
    /// `scale * table[code]`.
    Table(&'static [f32; 16]),
}

/// The bits of a code, how many numbers of a row share a scale, and what a code means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeFormat {
    bits: u32,
    block: usize,
    meaning: Meaning,
}

impl CodeFormat {
    pub(crate) const fn new(bits: u32, block: usize, meaning: Meaning) -> Self {
        Self { bits, block, meaning }
    }

    /// Bits of a code.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// How many adjacent numbers of a row share a scale.
    #[must_use]
    pub fn block(self) -> usize {
        self.block
    }

    /// What a code stands for.
    #[must_use]
    pub fn meaning(self) -> Meaning {
        self.meaning
    }

    /// Offsets of a row for each of its blocks, or none where the format has no offsets.
    fn offsets(self, columns: usize) -> usize {
        match self.meaning {
            Meaning::Offset => columns.checked_div(self.block).unwrap_or(0),
            _ => 0,
        }
    }

    /// Turns offsets into zero points, for kernels that compute `scale * (code - zero)`: afterwards
    /// `offsets` holds the zeros. The zero `-offset / scale` is rounded. Blocks with a scale of 0, whose
    /// numbers all equal their offset, get codes of 0, the zero 1 and the scale `-offset`, which is exact.
    ///
    /// Shapes: as for [`BlockMatrix::unpack_row`].
    pub fn zero_points(self, codes: &mut [u8], scales: &mut [f32], offsets: &mut [f32]) {
        let blocks = codes.chunks_exact_mut(self.block.max(1));
        for ((codes, scale), offset) in blocks.zip(scales).zip(offsets) {
            if *scale == 0.0 {
                codes.fill(0);
                (*scale, *offset) = (-*offset, 1.0);
            } else {
                *offset = -*offset / *scale;
            }
        }
    }
}

/// A matrix of weights of few bits, in the bytes of a checkpoint.
#[derive(Clone, Debug)]
pub struct BlockMatrix {
    shape: Vec<usize>,
    rows: usize,
    columns: usize,
    format: CodeFormat,
    codes: Codes,
}

#[derive(Clone, Debug)]
enum Codes {
    Ggml(GgmlRows),
    Groups(Box<GroupRows>),
}

impl BlockMatrix {
    /// The bytes of a tensor of ggml, whose length is that of the shape.
    pub(crate) fn of_ggml(
        kind: GgmlType,
        shape: &[usize],
        bytes: Bytes,
    ) -> Result<Self, CheckpointError> {
        let format = kind.code_format().ok_or_else(|| {
            let what =
                if kind.data_type().is_some() { "single elements" } else { "no known codes" };
            CheckpointError::unsupported(format!(
                "type {kind} has {what}, expected blocks of codes"
            ))
        })?;
        let row_bytes = shape.last().and_then(|&columns| kind.row_bytes(columns));
        let rows = GgmlRows { kind, row_bytes: row_bytes.unwrap_or(0), bytes };
        Self::new(shape, format, Codes::Ggml(rows))
    }

    /// Groups of codes as MLX stores them.
    pub(crate) fn of_groups(
        shape: &[usize],
        format: CodeFormat,
        groups: GroupRows,
    ) -> Result<Self, CheckpointError> {
        Self::new(shape, format, Codes::Groups(Box::new(groups)))
    }

    fn new(shape: &[usize], format: CodeFormat, codes: Codes) -> Result<Self, CheckpointError> {
        let wrong =
            |error: galatea_tensor::TensorError| CheckpointError::invalid(error.to_string());
        let Some((&columns, leading)) = shape.split_last() else {
            return Err(CheckpointError::invalid("a tensor without axes has no rows"));
        };
        checked_elements(shape).map_err(wrong)?;
        let rows = checked_elements(leading).map_err(wrong)?;
        Ok(Self { shape: shape.to_vec(), rows, columns, format, codes })
    }

    /// Lengths of the axes in row-major order; a linear layer has `[outputs, inputs]`.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many rows there are: the product of all axes but the last.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What the codes are.
    #[must_use]
    pub fn format(&self) -> CodeFormat {
        self.format
    }

    /// Scales of a row.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.columns.checked_div(self.format.block).unwrap_or(0)
    }

    /// Bytes that the matrix takes in the checkpoint.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.codes {
            Codes::Ggml(rows) => rows.bytes.len(),
            Codes::Groups(rows) => rows.size_bytes(),
        }
    }

    /// Takes a row apart.
    ///
    /// Shapes: `codes` has [`BlockMatrix::columns`] elements, `scales` [`BlockMatrix::blocks`], and
    /// `offsets` as many where the meaning is [`Meaning::Offset`], else none.
    ///
    /// # Errors
    /// When there is no such row, or a slice has another length.
    pub fn unpack_row(
        &self,
        row: usize,
        codes: &mut [u8],
        scales: &mut [f32],
        offsets: &mut [f32],
    ) -> Result<(), CheckpointError> {
        self.check_row(row)?;
        let wanted = self.format.offsets(self.columns);
        check_lengths("codes", codes.len(), self.columns)?;
        check_lengths("scales", scales.len(), self.blocks())?;
        check_lengths("offsets", offsets.len(), wanted)?;
        match &self.codes {
            Codes::Ggml(rows) => rows.unpack(row, codes, scales, offsets),
            Codes::Groups(rows) => rows.unpack(row, codes, scales, offsets),
        }
    }

    /// Computes the numbers of a row, exactly as ggml's and MLX's own definitions do in FP32.
    ///
    /// Shapes: `out` has [`BlockMatrix::columns`] elements.
    ///
    /// # Errors
    /// When there is no such row, or the slice has another length.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), CheckpointError> {
        self.check_row(row)?;
        check_lengths("floats", out.len(), self.columns)?;
        match &self.codes {
            Codes::Ggml(rows) => rows.dequantize(row, out),
            Codes::Groups(rows) => rows.dequantize(row, out),
        }
    }

    /// The whole matrix as FP32.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn dequantize(&self) -> Result<Tensor, CheckpointError> {
        let wrong =
            |error: galatea_tensor::TensorError| CheckpointError::invalid(error.to_string());
        let mut owned =
            galatea_tensor::OwnedTensor::zeroed(galatea_tensor::DataType::Fp32, &self.shape)
                .map_err(wrong)?;
        let out = owned.as_mut_slice::<f32>().map_err(wrong)?;
        for (row, out) in out.chunks_exact_mut(self.columns.max(1)).enumerate() {
            self.dequantize_row(row, out)?;
        }
        Ok(owned.freeze())
    }

    fn check_row(&self, row: usize) -> Result<(), CheckpointError> {
        if row < self.rows {
            return Ok(());
        }
        Err(CheckpointError::missing(format!(
            "there is no row {row}, the matrix has {}",
            self.rows
        )))
    }
}

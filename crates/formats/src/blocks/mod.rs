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

use std::fmt;

use bytes::Bytes;
use galatea_graph::OpError;
use galatea_graph::blocks::{BlockRow, BlockWeights, SuperScales};
pub use galatea_graph::blocks::{CodeFormat, CodeMeaning};
use galatea_tensor::{DataType, Tensor, checked_elements};

pub(crate) use bit_stream::GroupRows;
use ggml::GgmlRows;
use row::check_lengths;

use crate::checkpoint::CheckpointError;
use crate::ggml_type::GgmlType;

/// A matrix of weights of few bits, in the bytes of a checkpoint.
#[derive(Clone)]
pub struct BlockMatrix {
    shape: Vec<usize>,
    rows: usize,
    columns: usize,
    format: CodeFormat,
    codes: BlockCodes,
}

impl fmt::Debug for BlockMatrix {
    /// Where the matrix is instead of what it holds: no other one is there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, format, codes, .. } = self;
        write!(f, "BlockMatrix {{ shape: {shape:?}, {format:?}, at: {:?} }}", codes.place())
    }
}

#[derive(Clone)]
enum BlockCodes {
    Ggml(GgmlRows),
    Groups(Box<GroupRows>),
}

impl BlockCodes {
    fn place(&self) -> *const u8 {
        match self {
            Self::Ggml(rows) => rows.bytes.as_ptr(),
            Self::Groups(rows) => rows.place(),
        }
    }
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
        Self::new(shape, format, BlockCodes::Ggml(rows))
    }

    /// Groups of codes as MLX stores them.
    pub(crate) fn of_groups(
        shape: &[usize],
        format: CodeFormat,
        groups: GroupRows,
    ) -> Result<Self, CheckpointError> {
        Self::new(shape, format, BlockCodes::Groups(Box::new(groups)))
    }

    fn new(
        shape: &[usize],
        format: CodeFormat,
        codes: BlockCodes,
    ) -> Result<Self, CheckpointError> {
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

    /// Returns the number of rows: the product of all axes but the last.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the format of the codes.
    #[must_use]
    pub fn format(&self) -> CodeFormat {
        self.format
    }

    /// Scales of a row.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.format.blocks(self.columns)
    }

    /// Bytes that the matrix takes in the checkpoint.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match &self.codes {
            BlockCodes::Ggml(rows) => rows.bytes.len(),
            BlockCodes::Groups(rows) => rows.size_bytes(),
        }
    }

    /// Takes a row apart.
    ///
    /// Shapes: `codes` has [`BlockMatrix::columns`] elements, `scales` [`BlockMatrix::blocks`], and
    /// `offsets` as many where the meaning is [`CodeMeaning::Offset`], else none.
    ///
    /// # Errors
    /// Fails when there is no such row, or a slice has another length.
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
            BlockCodes::Ggml(rows) => rows.unpack(row, codes, scales, offsets),
            BlockCodes::Groups(rows) => rows.unpack(row, codes, scales, offsets),
        }
    }

    /// Computes the numbers of a row, exactly as ggml's and MLX's own definitions do in FP32.
    ///
    /// Shapes: `out` has [`BlockMatrix::columns`] elements.
    ///
    /// # Errors
    /// Fails when there is no such row, or the slice has another length.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), CheckpointError> {
        self.check_row(row)?;
        check_lengths("floats", out.len(), self.columns)?;
        match &self.codes {
            BlockCodes::Ggml(rows) => rows.dequantize(row, out),
            BlockCodes::Groups(rows) => rows.dequantize(row, out),
        }
    }

    /// The whole matrix as FP32.
    ///
    /// # Errors
    /// Fails when there is no memory for it.
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

impl BlockWeights for BlockMatrix {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn format(&self) -> CodeFormat {
        self.format
    }

    fn size_bytes(&self) -> usize {
        Self::size_bytes(self)
    }

    fn source(&self) -> Option<(usize, usize)> {
        let at = self.codes.place();
        (!at.is_null()).then(|| (at.addr(), Self::size_bytes(self)))
    }

    fn factors(&self) -> DataType {
        match &self.codes {
            BlockCodes::Ggml(rows) if rows.kind.has_half_scales() => DataType::Fp16,
            BlockCodes::Ggml(_) => DataType::Fp32,
            BlockCodes::Groups(rows) => rows.factors(),
        }
    }

    fn unpack_row(&self, row: usize, to: BlockRow<'_>) -> Result<(), OpError> {
        Self::unpack_row(self, row, to.codes, to.scales, to.offsets).map_err(failed)
    }

    fn superblock(&self) -> Option<usize> {
        match &self.codes {
            BlockCodes::Ggml(rows) => rows.kind.super_scales().map(|_| rows.kind.block()),
            BlockCodes::Groups(_) => None,
        }
    }

    fn super_scales(&self, row: usize, to: SuperScales<'_>) -> Result<(), OpError> {
        match &self.codes {
            BlockCodes::Ggml(rows) => rows.super_scales(row, to.scales, to.offsets).map_err(failed),
            BlockCodes::Groups(_) => Err(OpError::new("groups of MLX have no superblocks")),
        }
    }

    fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), OpError> {
        Self::dequantize_row(self, row, out).map_err(failed)
    }
}

fn failed(error: CheckpointError) -> OpError {
    OpError::new(error.to_string())
}

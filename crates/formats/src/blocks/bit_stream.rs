//! Rows whose codes are one stream of bits, the lowest first, with scales and offsets beside them: what
//! MLX writes.

use galatea_tensor::{DataType, Tensor, bf16, f16};

use super::CodeMeaning;
use super::row::{BlockRowCodes, numbers};
use crate::checkpoint::CheckpointError;

/// Codes, scales and offsets in tensors of their own, row by row.
#[derive(Clone)]
pub(crate) struct GroupRows {
    /// Bits of a code.
    pub(crate) bits: u32,
    /// Codes that share a scale and an offset.
    pub(crate) group: usize,
    /// Words of 32 bits.
    pub(crate) words: Tensor,
    pub(crate) scales: Tensor,
    pub(crate) offsets: Tensor,
    /// Codes of a row. Whoever makes the rows has checked types and shapes.
    pub(crate) columns: usize,
}

/// Codes that are taken apart at a time: of any width they fill whole bytes, and any group is made of
/// them.
const STEP: usize = 32;

impl GroupRows {
    pub(super) fn size_bytes(&self) -> usize {
        self.words.size_bytes() + self.scales.size_bytes() + self.offsets.size_bytes()
    }

    /// Where the codes are.
    pub(super) fn place(&self) -> *const u8 {
        self.words.unaligned_bytes().map_or(std::ptr::null(), <[u8]>::as_ptr)
    }

    /// The type that holds scales and offsets.
    pub(super) fn factors(&self) -> DataType {
        let scales = self.scales.dtype();
        let offsets = self.offsets.dtype();
        if scales == offsets { scales } else { DataType::Fp32 }
    }

    /// The bytes of a row of one of the tensors.
    fn row<'a>(&self, tensor: &'a Tensor, row: usize) -> Result<&'a [u8], CheckpointError> {
        let wrong = |text: String| CheckpointError::invalid(text);
        let columns = tensor.shape().last().copied().unwrap_or(0);
        let size = tensor.dtype().size_bytes().unwrap_or(1);
        let row_bytes = columns.saturating_mul(size);
        let all = tensor.unaligned_bytes().map_err(|error| wrong(error.to_string()))?;
        let found = row.checked_mul(row_bytes).and_then(|start| all.get(start..)?.get(..row_bytes));
        found.ok_or_else(|| wrong(format!("row {row} of {row_bytes} bytes leaves the data")))
    }

    fn codes(&self, row: usize, codes: &mut [u8]) -> Result<(), CheckpointError> {
        let bytes = self.row(&self.words, row)?;
        match self.bits {
            2 => apart::<8>(bytes, codes, 2),
            3 => apart::<12>(bytes, codes, 3),
            4 => apart::<16>(bytes, codes, 4),
            5 => apart::<20>(bytes, codes, 5),
            6 => apart::<24>(bytes, codes, 6),
            8 => codes.iter_mut().zip(bytes).for_each(|(code, byte)| *code = *byte),
            bits => return Err(CheckpointError::unsupported(format!("codes of {bits} bits"))),
        }
        Ok(())
    }

    pub(super) fn unpack(
        &self,
        row: usize,
        codes: &mut [u8],
        scales: &mut [f32],
        offsets: &mut [f32],
    ) -> Result<(), CheckpointError> {
        self.codes(row, codes)?;
        floats(self.scales.dtype(), self.row(&self.scales, row)?, scales);
        floats(self.offsets.dtype(), self.row(&self.offsets, row)?, offsets);
        Ok(())
    }

    pub(super) fn dequantize(&self, row: usize, out: &mut [f32]) -> Result<(), CheckpointError> {
        let groups = self.columns.checked_div(self.group).unwrap_or(0);
        let mut codes = vec![0; self.columns];
        let mut scales = vec![0.0; groups];
        let mut offsets = scales.clone();
        self.unpack(row, &mut codes, &mut scales, &mut offsets)?;
        numbers(
            CodeMeaning::Offset,
            self.group,
            BlockRowCodes { codes: &codes, scales: &scales, offsets: &offsets },
            out,
        );
        Ok(())
    }
}

/// Takes codes apart, 32 of which lie in `B` bytes.
fn apart<const B: usize>(bytes: &[u8], codes: &mut [u8], bits: usize) {
    let mask = u8::MAX >> (8 - bits);
    let (chunks, _) = bytes.as_chunks::<B>();
    for (chunk, codes) in chunks.iter().zip(codes.chunks_exact_mut(STEP)) {
        for (at, code) in codes.iter_mut().enumerate() {
            let bit = at * bits;
            let low = chunk.get(bit / 8).copied().unwrap_or(0);
            let high = chunk.get(bit / 8 + 1).copied().unwrap_or(0);
            let [found, _] = (u16::from_le_bytes([low, high]) >> (bit % 8)).to_le_bytes();
            *code = found & mask;
        }
    }
}

/// Floats of any width, little end first; the types are checked before.
fn floats(dtype: DataType, bytes: &[u8], out: &mut [f32]) {
    match dtype {
        DataType::Fp16 => {
            for (out, &half) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = f16::from_le_bytes(half).to_f32();
            }
        }
        DataType::Bf16 => {
            for (out, &half) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = bf16::from_le_bytes(half).to_f32();
            }
        }
        _ => {
            for (out, &whole) in out.iter_mut().zip(bytes.as_chunks().0) {
                *out = f32::from_le_bytes(whole);
            }
        }
    }
}

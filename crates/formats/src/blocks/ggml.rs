//! Rows of ggml's types: which function takes a block apart.

use bytes::Bytes;

use super::row::{BlockRowCodes, numbers};
use super::{CodeMeaning, ggml_grids, ggml_k, ggml_legacy, ggml_small};
use crate::checkpoint::CheckpointError;
use crate::ggml_type::GgmlType;

/// The bytes of rows, one after the other.
#[derive(Clone)]
pub(super) struct GgmlRows {
    pub(super) kind: GgmlType,
    pub(super) row_bytes: usize,
    pub(super) bytes: Bytes,
}

/// Visitor of the blocks of a row. A block has `B` bytes, `L` codes and `S` scales; `apart` takes
/// it apart into codes, scales and offsets, and does not write the offsets of a type that has none.
trait BlockVisitor {
    fn walk<const B: usize, const L: usize, const S: usize>(self, apart: BlockSplitter<B, L, S>);
}

/// Takes a block apart.
type BlockSplitter<const B: usize, const L: usize, const S: usize> =
    fn(&[u8; B], &mut [u8; L], &mut [f32; S], &mut [f32; S]);

impl GgmlRows {
    fn row(&self, row: usize) -> Result<&[u8], CheckpointError> {
        let start = row.checked_mul(self.row_bytes);
        let found = start.and_then(|start| self.bytes.get(start..)?.get(..self.row_bytes));
        found.ok_or_else(|| {
            let text = format!("row {row} of {} bytes leaves the data", self.row_bytes);
            CheckpointError::invalid(text)
        })
    }

    pub(super) fn unpack(
        &self,
        row: usize,
        codes: &mut [u8],
        scales: &mut [f32],
        offsets: &mut [f32],
    ) -> Result<(), CheckpointError> {
        let bytes = self.row(row)?;
        walk(self.kind, UnpackVisitor { bytes, codes, scales, offsets })
    }

    pub(super) fn dequantize(&self, row: usize, out: &mut [f32]) -> Result<(), CheckpointError> {
        let bytes = self.row(row)?;
        let meaning =
            self.kind.code_format().map_or(CodeMeaning::Offset, |format| format.meaning());
        walk(self.kind, DequantizeVisitor { meaning, bytes, out })
    }
}

impl GgmlRows {
    /// Reads the values whose multiples are the scales and offsets of each block.
    pub(super) fn super_scales(
        &self,
        row: usize,
        scales: &mut [f32],
        offsets: &mut [f32],
    ) -> Result<(), CheckpointError> {
        let Some(places) = self.kind.super_scales() else {
            let text = format!("scales of type {} are no multiples of others", self.kind);
            return Err(CheckpointError::unsupported(text));
        };
        let bytes = self.row(row)?;
        let read = |at: Option<usize>, out: &mut [f32]| {
            let blocks = bytes.chunks_exact(self.kind.block_bytes());
            for (out, block) in out.iter_mut().zip(blocks) {
                let half = at.and_then(|at| block.get(at..)?.first_chunk::<2>());
                *out = half.map_or(0.0, |&[low, high]| ggml_legacy::half(low, high));
            }
        };
        read(Some(places.scale), scales);
        read(places.minimum, offsets);
        Ok(())
    }
}

struct UnpackVisitor<'a> {
    bytes: &'a [u8],
    codes: &'a mut [u8],
    scales: &'a mut [f32],
    offsets: &'a mut [f32],
}

impl BlockVisitor for UnpackVisitor<'_> {
    fn walk<const B: usize, const L: usize, const S: usize>(self, apart: BlockSplitter<B, L, S>) {
        let (blocks, _) = self.bytes.as_chunks::<B>();
        let (codes, _) = self.codes.as_chunks_mut::<L>();
        let (scales, _) = self.scales.as_chunks_mut::<S>();
        let (offsets, _) = self.offsets.as_chunks_mut::<S>();
        let mut offsets = offsets.iter_mut();
        let mut none = [0.0; S];
        for ((block, codes), scales) in blocks.iter().zip(codes).zip(scales) {
            apart(block, codes, scales, offsets.next().unwrap_or(&mut none));
        }
    }
}

struct DequantizeVisitor<'a> {
    meaning: CodeMeaning,
    bytes: &'a [u8],
    out: &'a mut [f32],
}

/// Codes that become floats at a time: those of the largest blocks, and of several small ones.
const STEP: usize = 256;
/// Scales of as many codes.
const SCALES: usize = STEP / 16;

impl BlockVisitor for DequantizeVisitor<'_> {
    fn walk<const B: usize, const L: usize, const S: usize>(self, apart: BlockSplitter<B, L, S>) {
        let (blocks, _) = self.bytes.as_chunks::<B>();
        let mut codes = [0; STEP];
        let mut scales = [0.0; SCALES];
        let mut offsets = [0.0; SCALES];
        for (blocks, out) in blocks.chunks(STEP / L).zip(self.out.chunks_mut(STEP)) {
            let codes_of = codes.as_chunks_mut::<L>().0.iter_mut();
            let scales_of = scales.as_chunks_mut::<S>().0.iter_mut();
            let offsets_of = offsets.as_chunks_mut::<S>().0.iter_mut();
            let parts = codes_of.zip(scales_of).zip(offsets_of);
            for (block, ((codes, scales), offsets)) in blocks.iter().zip(parts) {
                apart(block, codes, scales, offsets);
            }
            numbers(
                self.meaning,
                L / S,
                BlockRowCodes { codes: &codes, scales: &scales, offsets: &offsets },
                out,
            );
        }
    }
}

fn walk(kind: GgmlType, walk: impl BlockVisitor) -> Result<(), CheckpointError> {
    match kind {
        GgmlType::Q4_0 => walk.walk(ggml_legacy::q4_0),
        GgmlType::Q4_1 => walk.walk(ggml_legacy::q4_1),
        GgmlType::Q5_0 => walk.walk(ggml_legacy::q5_0),
        GgmlType::Q5_1 => walk.walk(ggml_legacy::q5_1),
        GgmlType::Q8_0 => walk.walk(ggml_legacy::q8_0),
        GgmlType::Q8_1 => walk.walk(ggml_legacy::q8_1),
        GgmlType::Q2K => walk.walk(ggml_k::q2_k),
        GgmlType::Q3K => walk.walk(ggml_k::q3_k),
        GgmlType::Q4K => walk.walk(ggml_k::q4_k),
        GgmlType::Q5K => walk.walk(ggml_k::q5_k),
        GgmlType::Q6K => walk.walk(ggml_k::q6_k),
        GgmlType::Q8K => walk.walk(ggml_k::q8_k),
        GgmlType::Iq1S => walk.walk(ggml_grids::iq1_s),
        GgmlType::Iq1M => walk.walk(ggml_grids::iq1_m),
        GgmlType::Iq2Xxs => walk.walk(ggml_grids::iq2_xxs),
        GgmlType::Iq2Xs => walk.walk(ggml_grids::iq2_xs),
        GgmlType::Iq2S => walk.walk(ggml_grids::iq2_s),
        GgmlType::Iq3Xxs => walk.walk(ggml_grids::iq3_xxs),
        GgmlType::Iq3S => walk.walk(ggml_grids::iq3_s),
        GgmlType::Iq4Nl => walk.walk(ggml_small::iq4_nl),
        GgmlType::Iq4Xs => walk.walk(ggml_small::iq4_xs),
        GgmlType::Tq1_0 => walk.walk(ggml_small::tq1_0),
        GgmlType::Tq2_0 => walk.walk(ggml_small::tq2_0),
        GgmlType::Mxfp4 => walk.walk(ggml_small::mxfp4),
        GgmlType::Nvfp4 => walk.walk(ggml_small::nvfp4),
        other => {
            let text = format!("blocks of type {other} cannot be taken apart");
            return Err(CheckpointError::unsupported(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl BlockVisitor for Nothing {
        fn walk<const B: usize, const L: usize, const S: usize>(self, _: BlockSplitter<B, L, S>) {}
    }

    struct Check(GgmlType);

    impl BlockVisitor for Check {
        fn walk<const B: usize, const L: usize, const S: usize>(self, _: BlockSplitter<B, L, S>) {
            let kind = self.0;
            let format = kind.code_format().unwrap();
            assert_eq!((kind.block_bytes(), kind.block()), (B, L), "{kind}");
            assert_eq!(format.block() * S, L, "{kind}");
            assert!(STEP.is_multiple_of(L) && STEP / L * S <= SCALES, "{kind}");
        }
    }

    #[test]
    fn every_type_with_codes_is_taken_apart_as_its_row_says() {
        for kind in GgmlType::all() {
            match kind.code_format() {
                Some(_) => walk(kind, Check(kind)).unwrap(),
                None => assert!(walk(kind, Nothing).is_err(), "{kind}"),
            }
        }
    }
}

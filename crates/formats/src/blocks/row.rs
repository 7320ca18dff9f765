//! Codes of a row to numbers.

use super::CodeMeaning;
use crate::checkpoint::CheckpointError;

pub(super) fn check_lengths(
    what: &str,
    found: usize,
    expected: usize,
) -> Result<(), CheckpointError> {
    if found == expected {
        return Ok(());
    }
    Err(CheckpointError::invalid(format!("room for {found} {what}, the row has {expected}")))
}

/// Codes of a row with the scales and offsets of their parts.
pub(super) struct BlockRowCodes<'a> {
    pub(super) codes: &'a [u8],
    pub(super) scales: &'a [f32],
    pub(super) offsets: &'a [f32],
}

/// The numbers of codes, `block` of which share a scale and an offset.
///
/// Codes become floats in a loop of their own, over all blocks: compilers make vector instructions of
/// that, and of none of the loops over a block that do both.
#[inline(always)]
pub(super) fn numbers(
    meaning: CodeMeaning,
    block: usize,
    BlockRowCodes { codes, scales, offsets }: BlockRowCodes<'_>,
    out: &mut [f32],
) {
    match meaning {
        CodeMeaning::Zero(zero) => {
            widen(codes, out, |code| f32::from(code) - zero);
            for (out, &scale) in out.chunks_exact_mut(block).zip(scales) {
                out.iter_mut().for_each(|number| *number *= scale);
            }
        }
        CodeMeaning::Offset => {
            widen(codes, out, f32::from);
            for ((out, &scale), &offset) in out.chunks_exact_mut(block).zip(scales).zip(offsets) {
                out.iter_mut().for_each(|number| *number = *number * scale + offset);
            }
        }
        CodeMeaning::Table(table) => {
            widen(codes, out, |code| table.get(usize::from(code & 15)).copied().unwrap_or(0.0));
            for (out, &scale) in out.chunks_exact_mut(block).zip(scales) {
                out.iter_mut().for_each(|number| *number *= scale);
            }
        }
        // No matrix of blocks has floats as its codes.
        CodeMeaning::Float(_) => out.fill(f32::NAN),
    }
}

#[inline(always)]
fn widen(codes: &[u8], out: &mut [f32], number: impl Fn(u8) -> f32) {
    for (out, &code) in out.iter_mut().zip(codes) {
        *out = number(code);
    }
}

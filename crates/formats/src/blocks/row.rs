//! Codes of a row to numbers.

use super::Meaning;
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

/// The numbers of codes, `block` of which share a scale and an offset.
#[inline(always)]
pub(super) fn numbers(
    meaning: Meaning,
    block: usize,
    (codes, scales, offsets): (&[u8], &[f32], &[f32]),
    out: &mut [f32],
) {
    let blocks = out.chunks_exact_mut(block).zip(codes.chunks_exact(block)).zip(scales);
    match meaning {
        Meaning::Zero(zero) => {
            for ((out, codes), &scale) in blocks {
                for (out, &code) in out.iter_mut().zip(codes) {
                    *out = scale * (f32::from(code) - zero);
                }
            }
        }
        Meaning::Offset => {
            for (((out, codes), &scale), &offset) in blocks.zip(offsets) {
                for (out, &code) in out.iter_mut().zip(codes) {
                    *out = scale * f32::from(code) + offset;
                }
            }
        }
        Meaning::Table(table) => {
            for ((out, codes), &scale) in blocks {
                for (out, &code) in out.iter_mut().zip(codes) {
                    *out = scale * table.get(usize::from(code & 15)).copied().unwrap_or(0.0);
                }
            }
        }
    }
}

//! Constants of FP32 as the FP16 that a program holds.

use std::num::NonZero;
use std::ops::Range;
use std::thread;

use half::slice::HalfFloatSliceExt;

use galatea_tensor::{DataType, Tensor, TensorError, f16};

/// Constants of fewer elements are not worth a thread.
const GRAIN: usize = 1 << 18;
/// Elements that are converted together: they stay in the nearest cache.
const TILE: usize = 1024;
/// Lengths of the tiles that a matrix is turned by.
const BAND: usize = 16;
const DEPTH: usize = 64;

/// The bits of FP16 but the sign.
const MAGNITUDE: u16 = 0x7fff;
/// Bits of an infinity.
const INFINITE: u16 = 0x7c00;
/// Bits of the largest number.
const LARGEST: u16 = 0x7bff;

/// Rounds to nearest; what is beyond FP16, such as the -3.4e38 of a mask, becomes the largest number of
/// FP16, as sums with infinities end in numbers that are none.
fn narrow(from: &[f32], to: &mut [f16]) {
    to.convert_from_f32_slice(from);
    for half in to {
        let bits = half.to_bits();
        if bits & MAGNITUDE == INFINITE {
            *half = f16::from_bits(bits & !MAGNITUDE | LARGEST);
        }
    }
}

/// Calls `fill` with parts of the elements and what to write there, on as many threads as it is worth.
/// Parts are whole rows of `row` elements.
fn in_parts(all: &mut [f16], row: usize, fill: impl Fn(Range<usize>, &mut [f16]) + Sync) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let parts = threads.min(all.len().div_ceil(GRAIN)).max(1);
    let rows = all.len() / row.max(1);
    let each = rows.div_ceil(parts).max(1) * row.max(1);
    let fill = &fill;
    thread::scope(|scope| {
        let mut rest = all.chunks_mut(each).enumerate();
        let first = rest.next();
        for (at, part) in rest {
            scope.spawn(move || fill(at * each..at * each + part.len(), part));
        }
        if let Some((_, part)) = first {
            fill(0..part.len(), part);
        }
    });
}

/// The numbers of FP32 that lie at any address.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes))
}

/// The bytes of a constant of FP32, which may be in a mapped file; none of other types and of views.
fn bytes(tensor: &Tensor) -> Option<&[u8]> {
    (tensor.dtype() == DataType::Fp32).then(|| tensor.unaligned_bytes().ok()).flatten()
}

/// A constant of FP32 in FP16; none of other types and of views.
///
/// # Errors
/// Fails when there is no memory for it.
pub(super) fn narrowed(tensor: &Tensor) -> Option<Result<Tensor, TensorError>> {
    let bytes = bytes(tensor)?;
    let mut all = vec![f16::ZERO; tensor.elements()];
    in_parts(&mut all, 1, |range, part| {
        let bytes = &bytes[4 * range.start..4 * range.end];
        for (bytes, part) in bytes.chunks(4 * TILE).zip(part.chunks_mut(TILE)) {
            let mut tile = [0.0; TILE];
            tile.iter_mut().zip(numbers(bytes)).for_each(|(to, from)| *to = from);
            narrow(&tile[..part.len()], part);
        }
    });
    Some(Tensor::from_vec(tensor.shape(), all))
}

/// A matrix of FP32 in FP16 with its axes swapped; none of other types and of views.
///
/// # Errors
/// Fails when there is no memory for it.
pub(super) fn turned(tensor: &Tensor) -> Option<Result<Tensor, TensorError>> {
    let bytes = bytes(tensor)?;
    let &[rows, columns] = tensor.shape() else { return None };
    let mut all = vec![f16::ZERO; tensor.elements()];
    if all.is_empty() {
        return Some(Tensor::from_vec(&[columns, rows], all));
    }
    in_parts(&mut all, rows, |range, part| {
        let first = range.start / rows;
        for (band, lines) in part.chunks_mut(BAND * rows).enumerate() {
            let column = first + band * BAND;
            let width = lines.len() / rows;
            for row in (0..rows).step_by(DEPTH) {
                let depth = DEPTH.min(rows - row);
                let mut tile = [[0.0_f32; DEPTH]; BAND];
                for below in 0..depth {
                    let at = 4 * ((row + below) * columns + column);
                    let line = numbers(&bytes[at..at + 4 * width]);
                    tile.iter_mut().zip(line).for_each(|(to, from)| to[below] = from);
                }
                for (line, from) in lines.chunks_mut(rows).zip(&tile) {
                    narrow(&from[..depth], &mut line[row..row + depth]);
                }
            }
        }
    });
    Some(Tensor::from_vec(&[columns, rows], all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers_of(len: usize) -> Vec<f32> {
        let special =
            [1e9, -3.4e38, f32::INFINITY, f32::NEG_INFINITY, 65_519.0, 65_520.0, 1e-9, -0.0];
        let plain =
            |at: usize| f32::from_bits(u32::try_from(at).unwrap().wrapping_mul(0x9e37_79b9) >> 2);
        (0..len).map(|at| special.get(at).copied().unwrap_or_else(|| plain(at))).collect()
    }

    fn expected(value: f32) -> u16 {
        f16::from_f32(value.clamp(-65_504.0, 65_504.0)).to_bits()
    }

    #[test]
    fn every_element_is_rounded_and_kept_within_what_fp16_holds() {
        for len in [0, 1, 5, 1023, 3 * TILE + 7, 3 * GRAIN + 11] {
            let wide = numbers_of(len);
            let tensor = Tensor::from_vec(&[len], wide.clone()).unwrap();
            let found = narrowed(&tensor).unwrap().unwrap().to_vec::<f16>().unwrap();
            let found: Vec<u16> = found.iter().map(|half| half.to_bits()).collect();
            assert!(found == wide.iter().copied().map(expected).collect::<Vec<_>>(), "{len}");
        }
    }

    #[test]
    fn a_matrix_of_any_lengths_is_turned() {
        for [rows, columns] in [[1, 1], [3, 70], [65, 17], [64, 16], [700, 801], [0, 4]] {
            let wide = numbers_of(rows * columns);
            let tensor = Tensor::from_vec(&[rows, columns], wide.clone()).unwrap();
            let found = turned(&tensor).unwrap().unwrap();
            assert_eq!(found.shape(), [columns, rows]);
            let found = found.to_vec::<f16>().unwrap();
            for row in 0..rows {
                for column in 0..columns {
                    let one = found[column * rows + row];
                    let other = wide[row * columns + column];
                    assert_eq!(one.to_bits(), expected(other), "{rows} {columns} {row} {column}");
                }
            }
        }
    }
}

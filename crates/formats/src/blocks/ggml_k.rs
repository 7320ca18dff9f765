//! Blocks of 256 numbers whose parts have scales of few bits: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K.
//!
//! Source: `ggml-common.h` and `ggml-quants.c` of ggml, and the package `gguf` 0.19.

use super::ggml_legacy::{half, nibbles, signed};

/// Two bits of each of 256 numbers: each half of the block has 32 bytes, whose pairs of bits belong to
/// its four quarters in turn.
#[inline(always)]
pub(super) fn pairs(packed: &[u8], codes: &mut [u8; 256]) {
    let halves = packed.chunks_exact(32).zip(codes.chunks_exact_mut(128));
    for (packed, codes) in halves {
        for (shift, codes) in [0, 2, 4, 6].into_iter().zip(codes.chunks_exact_mut(32)) {
            for (code, byte) in codes.iter_mut().zip(packed) {
                *code = (byte >> shift) & 3;
            }
        }
    }
}

/// Eight scales and eight minima of 6 bits, in 12 bytes: the first four of each have a byte whose
/// two upper bits belong to the fifth to eighth, as do the last four bytes.
#[inline(always)]
fn scales_and_minima(packed: &[u8]) -> ([u8; 8], [u8; 8]) {
    let mut scales = [0; 8];
    let mut minima = [0; 8];
    let (first_scales, rest) = packed.split_at(4);
    let (first_minima, both) = rest.split_at(4);
    let (low, high) = scales.split_at_mut(4);
    for (((low, high), first), both) in low.iter_mut().zip(high).zip(first_scales).zip(both) {
        *low = first & 63;
        *high = (both & 15) | ((first >> 2) & 48);
    }
    let (low, high) = minima.split_at_mut(4);
    for (((low, high), first), both) in low.iter_mut().zip(high).zip(first_minima).zip(both) {
        *low = first & 63;
        *high = (both >> 4) | ((first >> 2) & 48);
    }
    (scales, minima)
}

/// Four bits of each of 256 numbers: 32 bytes have the low bits of one part and the high ones of the
/// next.
#[inline(always)]
fn quads(packed: &[u8], codes: &mut [u8; 256]) {
    for (packed, codes) in packed.chunks_exact(32).zip(codes.chunks_exact_mut(64)) {
        let (low, high) = codes.split_at_mut(32);
        nibbles(packed, low, high);
    }
}

pub(super) fn q2_k(
    block: &[u8; 84],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    offsets: &mut [f32; 16],
) {
    let [block @ .., a, b, c, d] = block;
    let scale = half(*a, *b);
    let minimum = half(*c, *d);
    let (small, packed) = block.split_at(16);
    for ((&small, to), offset) in small.iter().zip(scales).zip(offsets) {
        *to = scale * f32::from(small & 15);
        *offset = -(minimum * f32::from(small >> 4));
    }
    pairs(packed, codes);
}

pub(super) fn q3_k(
    block: &[u8; 110],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    _: &mut [f32; 16],
) {
    let [block @ .., a, b] = block;
    let (upper, rest) = block.split_at(32);
    let (packed, small) = rest.split_at(64);
    let (low, high) = small.split_at(8);
    let scale = half(*a, *b);
    // Scale `i` has its four low bits in byte `i % 8`, its two high ones in byte `i % 4` of the others.
    let lows =
        [0, 4].into_iter().flat_map(|shift| low.iter().map(move |byte| (byte >> shift) & 15));
    let highs =
        [0, 2, 4, 6].into_iter().flat_map(|shift| high.iter().map(move |byte| (byte >> shift) & 3));
    for ((to, low), high) in scales.iter_mut().zip(lows).zip(highs) {
        *to = scale * (f32::from(low | (high << 4)) - 32.0);
    }
    pairs(packed, codes);
    for (bit, codes) in (0..8).zip(codes.chunks_exact_mut(32)) {
        for (code, byte) in codes.iter_mut().zip(upper) {
            *code |= ((byte >> bit) & 1) << 2;
        }
    }
}

/// The scales and offsets of Q4_K and Q5_K.
#[inline(always)]
fn eight_parts(halves: [u8; 4], small: &[u8], scales: &mut [f32; 8], offsets: &mut [f32; 8]) {
    let [a, b, c, d] = halves;
    let scale = half(a, b);
    let minimum = half(c, d);
    let (small, minima) = scales_and_minima(small);
    for (((to, offset), small), least) in scales.iter_mut().zip(offsets).zip(small).zip(minima) {
        *to = scale * f32::from(small);
        *offset = -(minimum * f32::from(least));
    }
}

pub(super) fn q4_k(
    block: &[u8; 144],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    offsets: &mut [f32; 8],
) {
    let [a, b, c, d, block @ ..] = block;
    let (small, packed) = block.split_at(12);
    eight_parts([*a, *b, *c, *d], small, scales, offsets);
    quads(packed, codes);
}

pub(super) fn q5_k(
    block: &[u8; 176],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    offsets: &mut [f32; 8],
) {
    let [a, b, c, d, block @ ..] = block;
    let (small, rest) = block.split_at(12);
    let (upper, packed) = rest.split_at(32);
    eight_parts([*a, *b, *c, *d], small, scales, offsets);
    quads(packed, codes);
    for (bit, codes) in (0..8).zip(codes.chunks_exact_mut(32)) {
        for (code, byte) in codes.iter_mut().zip(upper) {
            *code |= ((byte >> bit) & 1) << 4;
        }
    }
}

pub(super) fn q6_k(
    block: &[u8; 210],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    _: &mut [f32; 16],
) {
    let [block @ .., a, b] = block;
    let (lower, rest) = block.split_at(128);
    let (upper, small) = rest.split_at(64);
    let scale = half(*a, *b);
    for (to, small) in scales.iter_mut().zip(small) {
        *to = scale * f32::from(small.cast_signed());
    }
    pairs(upper, codes);
    for (lower, codes) in lower.chunks_exact(64).zip(codes.chunks_exact_mut(128)) {
        let (first, second) = codes.split_at_mut(64);
        for ((byte, first), second) in lower.iter().zip(first).zip(second) {
            *first = (*first << 4) | (byte & 15);
            *second = (*second << 4) | (byte >> 4);
        }
    }
}

/// Behind the numbers lie sums of 16 each, which follow from them.
pub(super) fn q8_k(
    block: &[u8; 292],
    codes: &mut [u8; 256],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [a, b, c, d, block @ ..] = block;
    *scale = f32::from_le_bytes([*a, *b, *c, *d]);
    signed(block, codes);
}

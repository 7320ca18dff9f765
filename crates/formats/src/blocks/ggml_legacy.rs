//! Blocks of 32 numbers with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1.
//!
//! Source: `ggml-common.h` and `ggml-quants.c` of ggml, and the package `gguf` 0.19.

use galatea_tensor::f16;

/// A float of 16 bits.
#[inline(always)]
pub(super) fn half(low: u8, high: u8) -> f32 {
    f16::from_le_bytes([low, high]).to_f32()
}

/// The low and the high four bits of each byte.
#[inline(always)]
pub(super) fn nibbles(packed: &[u8], low: &mut [u8], high: &mut [u8]) {
    for ((byte, low), high) in packed.iter().zip(low).zip(high) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// Four bits of each of 32 numbers: the low ones are the first half.
#[inline(always)]
pub(super) fn halves(packed: &[u8; 16], codes: &mut [u8; 32]) {
    let (low, high) = codes.split_at_mut(16);
    nibbles(packed, low, high);
}

/// Adds a fifth bit to each code, which lie in 32 bits.
#[inline(always)]
fn add_fifth(bits: [u8; 4], codes: &mut [u8; 32]) {
    let bits = u32::from_le_bytes(bits);
    for (at, code) in codes.iter_mut().enumerate() {
        *code |= u8::from((bits >> at) & 1 == 1) << 4;
    }
}

/// Bytes with a sign as codes with the zero 128.
#[inline(always)]
pub(super) fn signed(bytes: &[u8], codes: &mut [u8]) {
    for (byte, code) in bytes.iter().zip(codes) {
        *code = byte ^ 0x80;
    }
}

pub(super) fn q4_0(
    block: &[u8; 18],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [a, b, packed @ ..] = block;
    *scale = half(*a, *b);
    halves(packed, codes);
}

pub(super) fn q4_1(
    block: &[u8; 20],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    offsets: &mut [f32; 1],
) {
    let [scale] = scales;
    let [offset] = offsets;
    let [a, b, c, d, packed @ ..] = block;
    (*scale, *offset) = (half(*a, *b), half(*c, *d));
    halves(packed, codes);
}

pub(super) fn q5_0(
    block: &[u8; 22],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [a, b, h0, h1, h2, h3, packed @ ..] = block;
    *scale = half(*a, *b);
    halves(packed, codes);
    add_fifth([*h0, *h1, *h2, *h3], codes);
}

pub(super) fn q5_1(
    block: &[u8; 24],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    offsets: &mut [f32; 1],
) {
    let [scale] = scales;
    let [offset] = offsets;
    let [a, b, c, d, h0, h1, h2, h3, packed @ ..] = block;
    (*scale, *offset) = (half(*a, *b), half(*c, *d));
    halves(packed, codes);
    add_fifth([*h0, *h1, *h2, *h3], codes);
}

pub(super) fn q8_0(
    block: &[u8; 34],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [a, b, bytes @ ..] = block;
    *scale = half(*a, *b);
    signed(bytes, codes);
}

/// Behind the scale lies the sum of the numbers, which follows from them.
pub(super) fn q8_1(
    block: &[u8; 36],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [a, b, _, _, bytes @ ..] = block;
    *scale = half(*a, *b);
    signed(bytes, codes);
}

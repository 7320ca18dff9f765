//! Codes that index a table (IQ4_NL, IQ4_XS, MXFP4, NVFP4), and those of three values (TQ1_0, TQ2_0).
//!
//! Source: `ggml-common.h` and `ggml-quants.c` of ggml, and the package `gguf` 0.19.

use super::ggml_k::pairs;
use super::ggml_legacy::{half, halves, nibbles};

pub(super) fn iq4_nl(
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

pub(super) fn iq4_xs(
    block: &[u8; 136],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    _: &mut [f32; 8],
) {
    let [a, b, c, d, block @ ..] = block;
    let scale = half(*a, *b);
    let high = u16::from_le_bytes([*c, *d]);
    let (low, packed) = block.split_at(4);
    // Scale `i` has four low bits in half a byte and two high ones in the 16 bits.
    let lows = low.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    for ((to, low), part) in scales.iter_mut().zip(lows).zip(0..) {
        let [high, _] = ((high >> (2 * part)) & 3).to_le_bytes();
        *to = scale * (f32::from(low | (high << 4)) - 32.0);
    }
    for (packed, codes) in packed.chunks_exact(16).zip(codes.chunks_exact_mut(32)) {
        let (low, high) = codes.split_at_mut(16);
        nibbles(packed, low, high);
    }
}

/// Half of the power of two that an exponent of 8 bits (E8M0) stands for.
fn half_power(exponent: u8) -> f32 {
    match exponent {
        // Below the normal numbers.
        0 | 1 => f32::from_bits(0x0020_0000 << exponent),
        _ => f32::from_bits((u32::from(exponent) - 1) << 23),
    }
}

pub(super) fn mxfp4(
    block: &[u8; 17],
    codes: &mut [u8; 32],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [exponent, packed @ ..] = block;
    *scale = half_power(*exponent);
    halves(packed, codes);
}

/// Half of a float of 8 bits without a sign (4 of exponent, 3 of mantissa); 127 stands for no number
/// and is read as 0.
fn half_of_e4m3(bits: u8) -> f32 {
    let exponent = i32::from((bits >> 3) & 15);
    let mantissa = f32::from(bits & 7);
    match (bits, exponent) {
        (0 | 0x7F, _) => 0.0,
        (_, 0) => mantissa * 2_f32.powi(-10),
        _ => (1.0 + mantissa / 8.0) * 2_f32.powi(exponent - 8),
    }
}

pub(super) fn nvfp4(
    block: &[u8; 36],
    codes: &mut [u8; 64],
    scales: &mut [f32; 4],
    _: &mut [f32; 4],
) {
    let (small, packed) = block.split_at(4);
    for (scale, &bits) in scales.iter_mut().zip(small) {
        *scale = half_of_e4m3(bits);
    }
    for (packed, codes) in packed.chunks_exact(8).zip(codes.chunks_exact_mut(16)) {
        let (low, high) = codes.split_at_mut(8);
        nibbles(packed, low, high);
    }
}

/// Digits of base 3: a byte holds up to five as a fraction of 256, the first digit first.
fn digits(packed: &[u8], codes: &mut [u8]) {
    for (power, codes) in [1_u8, 3, 9, 27, 81].into_iter().zip(codes.chunks_mut(packed.len())) {
        for (code, byte) in codes.iter_mut().zip(packed) {
            let [_, digit] = (u16::from(byte.wrapping_mul(power)) * 3).to_le_bytes();
            *code = digit;
        }
    }
}

pub(super) fn tq1_0(
    block: &[u8; 54],
    codes: &mut [u8; 256],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [block @ .., a, b] = block;
    *scale = half(*a, *b);
    let (first, rest) = block.split_at(32);
    let (second, last) = rest.split_at(16);
    let (to_first, to_rest) = codes.split_at_mut(160);
    let (to_second, to_last) = to_rest.split_at_mut(80);
    digits(first, to_first);
    digits(second, to_second);
    digits(last, to_last);
}

pub(super) fn tq2_0(
    block: &[u8; 66],
    codes: &mut [u8; 256],
    scales: &mut [f32; 1],
    _: &mut [f32; 1],
) {
    let [scale] = scales;
    let [packed @ .., a, b] = block;
    *scale = half(*a, *b);
    pairs(packed, codes);
}

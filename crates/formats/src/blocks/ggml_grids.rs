//! Groups of 8 or 4 numbers that are entries of a grid: IQ1, IQ2 and IQ3.
//!
//! A code is the number's place among those of the type, and 8 more where it is negative (in IQ1:
//! where it is shifted down), so that a table gives it. The grids are in `grids.bin`, which
//! `python/gguf_grids.py` makes from the package `gguf` 0.19. Source: `ggml-common.h` and
//! `ggml-quants.c` of ggml, and that package.

use super::ggml_legacy::half;

const GRIDS: &[u8; 33_792] = include_bytes!("grids.bin");
const IQ2_XXS: &[[u8; 8]] = GRIDS.split_at(2048).0.as_chunks().0;
const IQ2_XS: &[[u8; 8]] = GRIDS.split_at(2048).1.split_at(4096).0.as_chunks().0;
const IQ2_S: &[[u8; 8]] = GRIDS.split_at(6144).1.split_at(8192).0.as_chunks().0;
const IQ3_XXS: &[[u8; 4]] = GRIDS.split_at(14_336).1.split_at(1024).0.as_chunks().0;
const IQ3_S: &[[u8; 4]] = GRIDS.split_at(15_360).1.split_at(2048).0.as_chunks().0;
const IQ1: &[[u8; 8]] = GRIDS.split_at(17_408).1.as_chunks().0;

/// An entry of a grid, whose number of entries is that of the indices that the bits allow.
#[inline(always)]
fn entry<const N: usize>(grid: &[[u8; N]], index: u16) -> [u8; N] {
    grid.get(usize::from(index)).copied().unwrap_or([0; N])
}

/// The codes of an entry: a bit for each number says whether it is negative.
#[inline(always)]
fn put(codes: &mut [u8], places: &[u8], negative: u8) {
    for ((code, place), bit) in codes.iter_mut().zip(places).zip(0..8) {
        *code = place | (((negative >> bit) & 1) << 3);
    }
}

/// Seven signs, and the eighth that makes the number of negative ones even.
#[inline(always)]
fn even(signs: u8) -> u8 {
    let signs = signs & 127;
    signs | (u8::from(signs.count_ones() % 2 == 1) << 7)
}

/// The low four bits of each byte, then the high ones.
fn each_nibble(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().flat_map(|byte| [byte & 15, byte >> 4])
}

/// The scales of IQ2: a small number and a half, times a quarter.
fn put_quarters(scale: f32, small: &[u8], scales: &mut [f32]) {
    for (to, small) in scales.iter_mut().zip(each_nibble(small)) {
        *to = scale * (0.5 + f32::from(small)) * 0.25;
    }
}

/// Signs of four groups of eight, and a scale, in 32 bits.
fn signs_and_scale(bits: [u8; 4]) -> ([u8; 4], u8) {
    let all = u32::from_le_bytes(bits);
    let signs = [0, 7, 14, 21].map(|shift| {
        let [signs, ..] = (all >> shift).to_le_bytes();
        even(signs)
    });
    let [.., last] = bits;
    (signs, last >> 4)
}

pub(super) fn iq2_xxs(
    block: &[u8; 66],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    _: &mut [f32; 8],
) {
    let [a, b, block @ ..] = block;
    let scale = half(*a, *b);
    let parts = block.as_chunks::<8>().0.iter().zip(codes.chunks_exact_mut(32)).zip(scales);
    for (([i0, i1, i2, i3, bits @ ..], codes), to) in parts {
        let (signs, small) = signs_and_scale(*bits);
        *to = scale * (0.5 + f32::from(small)) * 0.25;
        let groups = [i0, i1, i2, i3].into_iter().zip(signs).zip(codes.chunks_exact_mut(8));
        for ((&index, signs), codes) in groups {
            put(codes, &entry(IQ2_XXS, index.into()), signs);
        }
    }
}

pub(super) fn iq2_xs(
    block: &[u8; 74],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    _: &mut [f32; 16],
) {
    let [a, b, block @ ..] = block;
    let (indices, small) = block.split_at(64);
    put_quarters(half(*a, *b), small, scales);
    for (&index, codes) in indices.as_chunks::<2>().0.iter().zip(codes.chunks_exact_mut(8)) {
        let [_, high] = index;
        put(codes, &entry(IQ2_XS, u16::from_le_bytes(index) & 511), even(high >> 1));
    }
}

pub(super) fn iq2_s(
    block: &[u8; 82],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    _: &mut [f32; 16],
) {
    let [a, b, block @ ..] = block;
    let (indices, rest) = block.split_at(32);
    let (signs, rest) = rest.split_at(32);
    let (high, small) = rest.split_at(8);
    put_quarters(half(*a, *b), small, scales);
    let highs = high.iter().flat_map(|byte| [0, 2, 4, 6].map(|shift| (byte >> shift) & 3));
    let groups = indices.iter().zip(highs).zip(signs).zip(codes.chunks_exact_mut(8));
    for (((&low, high), &signs), codes) in groups {
        put(codes, &entry(IQ2_S, u16::from_le_bytes([low, high])), signs);
    }
}

pub(super) fn iq3_xxs(
    block: &[u8; 98],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    _: &mut [f32; 8],
) {
    let [a, b, block @ ..] = block;
    let scale = half(*a, *b);
    let (indices, bits) = block.split_at(64);
    let parts = indices.chunks_exact(8).zip(bits.as_chunks::<4>().0);
    for (((indices, &bits), codes), to) in parts.zip(codes.chunks_exact_mut(32)).zip(scales) {
        let (signs, small) = signs_and_scale(bits);
        *to = scale * (0.5 + f32::from(small)) * 0.5;
        let signs = signs.into_iter().flat_map(|signs| [signs, signs >> 4]);
        for ((&index, signs), codes) in indices.iter().zip(signs).zip(codes.chunks_exact_mut(4)) {
            put(codes, &entry(IQ3_XXS, index.into()), signs);
        }
    }
}

pub(super) fn iq3_s(
    block: &[u8; 110],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    _: &mut [f32; 8],
) {
    let [a, b, block @ ..] = block;
    let scale = half(*a, *b);
    let (indices, rest) = block.split_at(64);
    let (high, rest) = rest.split_at(8);
    let (signs, small) = rest.split_at(32);
    for (to, small) in scales.iter_mut().zip(each_nibble(small)) {
        *to = scale * (1.0 + 2.0 * f32::from(small));
    }
    let highs = high.iter().flat_map(|byte| (0..8).map(move |bit| (byte >> bit) & 1));
    let signs = signs.iter().flat_map(|&signs| [signs, signs >> 4]);
    let groups = indices.iter().zip(highs).zip(signs).zip(codes.chunks_exact_mut(4));
    for (((&low, high), signs), codes) in groups {
        put(codes, &entry(IQ3_S, u16::from_le_bytes([low, high])), signs);
    }
}

/// Codes of a group of IQ1, all of which are shifted down or up by an eighth.
#[inline(always)]
fn put_shifted(codes: &mut [u8], low: u8, high: u8, down: bool) {
    put(codes, &entry(IQ1, u16::from_le_bytes([low, high & 7])), if down { 255 } else { 0 });
}

pub(super) fn iq1_s(
    block: &[u8; 50],
    codes: &mut [u8; 256],
    scales: &mut [f32; 8],
    _: &mut [f32; 8],
) {
    let [a, b, block @ ..] = block;
    let scale = half(*a, *b);
    let (indices, high) = block.split_at(32);
    let parts = indices.chunks_exact(4).zip(high.as_chunks::<2>().0);
    for (((indices, &bits), codes), to) in parts.zip(codes.chunks_exact_mut(32)).zip(scales) {
        let [_, upper] = bits;
        *to = scale * f32::from(2 * ((upper >> 4) & 7) + 1);
        let highs = [0, 3, 6, 9].map(|shift| {
            let [high, _] = (u16::from_le_bytes(bits) >> shift).to_le_bytes();
            high
        });
        for ((&low, high), codes) in indices.iter().zip(highs).zip(codes.chunks_exact_mut(8)) {
            put_shifted(codes, low, high, upper >> 7 == 1);
        }
    }
}

/// The scale's 16 bits are the upper four of four words; below them are four small scales each.
pub(super) fn iq1_m(
    block: &[u8; 56],
    codes: &mut [u8; 256],
    scales: &mut [f32; 16],
    _: &mut [f32; 16],
) {
    let (indices, rest) = block.split_at(32);
    let (high, words) = rest.split_at(16);
    let words = words.as_chunks::<2>().0.iter().map(|&word| u16::from_le_bytes(word));
    let bits = words
        .clone()
        .zip([12, 8, 4, 0])
        .fold(0, |all, (word, shift)| all | ((word & 0xF000) >> shift));
    let [low, upper] = bits.to_le_bytes();
    let scale = half(low, upper);
    let small = words.flat_map(|word| [0, 3, 6, 9].map(|shift| (word >> shift) & 7));
    for (to, small) in scales.iter_mut().zip(small) {
        *to = scale * f32::from(2 * small + 1);
    }
    let groups = indices.iter().zip(each_nibble(high)).zip(codes.chunks_exact_mut(8));
    for ((&low, high), codes) in groups {
        put_shifted(codes, low, high, high >> 3 == 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_an_entry_for_every_index_and_no_other_places_than_their_tables() {
        let places = |all: &[u8]| all.iter().copied().max().unwrap();
        for (grid, entries) in [(IQ2_XXS, 256), (IQ2_XS, 512), (IQ2_S, 1024), (IQ1, 2048)] {
            assert_eq!((grid.len(), places(grid.as_flattened())), (entries, 2));
        }
        for (grid, entries) in [(IQ3_XXS, 256), (IQ3_S, 512)] {
            assert_eq!((grid.len(), places(grid.as_flattened())), (entries, 7));
        }
        assert!((0..128).all(|signs| even(signs).count_ones().is_multiple_of(2)));
    }
}

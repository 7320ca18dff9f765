//! TIFF: greys, colours and CMYK of 1 to 16 bits, and colours of 32-bit floats. The library reads no palettes.
//!
//! Source: TIFF, revision 6.0.

use std::io::Cursor;

use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};

use super::{DecodedSamples, MAX_PICTURE_BYTES, picture_bytes};

/// Returns whether a file begins like a TIFF, or like one of 64-bit offsets.
pub(super) fn is_tagged_file(bytes: &[u8]) -> bool {
    let starts = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];
    starts.iter().any(|start| bytes.starts_with(*start))
}

/// Decodes the first picture of a TIFF; none where it is damaged or larger than the limit.
pub(super) fn tagged_file(bytes: &[u8]) -> Option<DecodedSamples> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = usize::try_from(MAX_PICTURE_BYTES).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?.with_limits(limits);
    let (width, height) = decoder.dimensions().ok()?;
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let colours = decoder.colortype().ok()?;
    let stored = match colours {
        ColorType::Gray(_) => 1,
        ColorType::GrayA(_) => 2,
        ColorType::RGB(_) => 3,
        ColorType::RGBA(_) | ColorType::CMYK(_) => 4,
        _ => return None,
    };
    picture_bytes([width, height], stored)?;
    let mut buffer = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut buffer).ok()?;
    let row_samples = if layout.planes > 1 { width } else { width * stored };
    let mut samples = eight_bits(buffer, colours.bit_depth(), row_samples)?;
    if layout.planes > 1 {
        samples = interleaved(&samples, width * height, stored)?;
    }
    if samples.len() != width * height * stored {
        return None;
    }
    if matches!(colours, ColorType::CMYK(_)) {
        let samples = samples.chunks_exact(4).flat_map(ink_colour).collect();
        return Some(DecodedSamples { width, height, channels: 3, samples });
    }
    Some(DecodedSamples { width, height, channels: stored, samples })
}

/// Returns samples as the nearest of 256 steps.
fn eight_bits(buffer: DecodingResult, bits: u8, row_samples: usize) -> Option<Vec<u8>> {
    match buffer {
        DecodingResult::U8(bytes) if bits == 8 => Some(bytes),
        DecodingResult::U8(bytes) if matches!(bits, 1 | 2 | 4) => {
            Some(unpacked(&bytes, bits, row_samples))
        }
        DecodingResult::U16(words) if bits == 16 => {
            let nearest = |word: u16| u8::try_from((u32::from(word) + 128) / 257).ok();
            words.into_iter().map(nearest).collect()
        }
        DecodingResult::F32(floats) => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
            let nearest = |value: f32| (value.clamp(0.0, 1.0) * 255.0).round() as u8;
            Some(floats.into_iter().map(nearest).collect())
        }
        _ => None,
    }
}

/// Returns samples of less than a byte, which begin each row in a byte of its own.
fn unpacked(bytes: &[u8], bits: u8, row_samples: usize) -> Vec<u8> {
    let per_byte = usize::from(8 / bits);
    let brightest = 0xff_u8 >> (8 - bits);
    let sample = |row: &[u8], at: usize| {
        let shift = 8 - usize::from(bits) * (at % per_byte + 1);
        row.get(at / per_byte).map_or(0, |byte| byte >> shift & brightest) * (255 / brightest)
    };
    bytes
        .chunks(row_samples.div_ceil(per_byte).max(1))
        .flat_map(|row| (0..row_samples).map(move |at| sample(row, at)))
        .collect()
}

fn interleaved(planes: &[u8], pixels: usize, channels: usize) -> Option<Vec<u8>> {
    (planes.len() == pixels * channels).then(|| {
        let at = |index: usize| planes[index % channels * pixels + index / channels];
        (0..planes.len()).map(at).collect()
    })
}

/// Returns the colour of cyan, magenta, yellow and black inks.
fn ink_colour(inks: &[u8]) -> [u8; 3] {
    let left = |ink: u8| u16::from(255 - ink);
    [0, 1, 2]
        .map(|at| u8::try_from((left(inks[at]) * left(inks[3]) + 127) / 255).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use tiff::encoder::{TiffEncoder, colortype};

    use super::*;

    /// A TIFF of one strip of bits: three columns, two rows.
    fn bits(photometric: u32) -> Vec<u8> {
        let mut file = b"II*\0\x08\0\0\0\x08\0".to_vec();
        let fields: [[u32; 2]; 8] = [
            [256, 3],
            [257, 2],
            [258, 1],
            [259, 1],
            [262, photometric],
            [273, 8 + 2 + 8 * 12 + 4],
            [277, 1],
            [279, 2],
        ];
        for [tag, value] in fields {
            // The type 4 is a number of 32 bits.
            file.extend(
                [&tag.to_le_bytes()[..2], &[4, 0, 1, 0, 0, 0], &value.to_le_bytes()].concat(),
            );
        }
        file.extend([0, 0, 0, 0, 0b1010_0000, 0b0110_0000]);
        file
    }

    fn encoded<C: colortype::ColorType>(width: u32, samples: &[C::Inner]) -> Vec<u8>
    where
        [C::Inner]: tiff::encoder::TiffValue,
    {
        let mut file = Cursor::new(Vec::new());
        let mut encoder = TiffEncoder::new(&mut file).unwrap();
        encoder.write_image::<C>(width, 1, samples).unwrap();
        file.into_inner()
    }

    fn decoded(file: &[u8]) -> Option<(usize, Vec<u8>)> {
        tagged_file(file).map(|picture| (picture.channels, picture.samples))
    }

    #[test]
    fn samples_of_every_kind_become_bytes() {
        let grey = encoded::<colortype::Gray8>(2, &[1, 200]);
        assert_eq!(decoded(&grey), Some((1, vec![1, 200])));
        let wide = encoded::<colortype::RGB16>(1, &[128, 129, 65_535]);
        assert_eq!(decoded(&wide), Some((3, vec![0, 1, 255])));
        let float = encoded::<colortype::RGB32Float>(1, &[0.5, -1.0, 2.0]);
        assert_eq!(decoded(&float), Some((3, vec![128, 0, 255])));
        let inks = encoded::<colortype::CMYK8>(1, &[255, 0, 0, 0]);
        assert_eq!(decoded(&inks), Some((3, vec![0, 255, 255])));
        let with_opacity = encoded::<colortype::RGBA8>(1, &[1, 2, 3, 4]);
        assert_eq!(decoded(&with_opacity), Some((4, vec![1, 2, 3, 4])));
    }

    #[test]
    fn bits_begin_each_row_anew() {
        assert_eq!(decoded(&bits(1)), Some((1, vec![255, 0, 255, 0, 255, 255])));
        assert_eq!(decoded(&bits(0)), Some((1, vec![0, 255, 0, 255, 0, 0])));
    }

    #[test]
    fn a_damaged_file_is_no_picture() {
        let whole = encoded::<colortype::RGB8>(100, &[1; 300]);
        assert!(decoded(&whole).is_some());
        for length in 0..whole.len() - 1 {
            let cut = whole.get(..length).unwrap();
            assert!(decoded(cut).is_none_or(|(_, samples)| samples.len() == 300));
        }
    }
}

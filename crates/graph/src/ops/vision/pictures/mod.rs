//! Pictures of the usual formats as red, green and blue.
//!
//! The decoders are called themselves: a library of many formats also compiles its filters for every type of pixel.

mod portable_map;
mod tagged_file;

use std::io::Cursor;

use image_webp::WebPDecoder;
use png::{BitDepth, Transformations};
use zune_bmp::BmpDecoder;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Most pixels of a picture: a small file may claim any size.
pub(super) const MAX_PIXELS: u64 = 1 << 27;

/// Most bytes of a decoder's buffer: four for each pixel.
pub(super) const MAX_PICTURE_BYTES: u64 = MAX_PIXELS * 4;

/// Formats that this module decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureFormat {
    Bmp,
    Jpeg,
    Jpeg2000,
    Png,
    /// PBM, PGM, PPM and PAM.
    PortableMap,
    Tiff,
    Webp,
}

/// Pixels of red, green and blue.
pub(super) struct DecodedImage {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) rgb: Vec<u8>,
}

/// Samples of 8 bits as a decoder gives them.
struct DecodedSamples {
    width: usize,
    height: usize,
    /// 1 is brightness, 3 are colours; 2 and 4 have the opacity behind them.
    channels: usize,
    samples: Vec<u8>,
}

impl PictureFormat {
    /// Returns the format of a file that begins with these bytes; none where it is none of these.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
            Some(Self::Jpeg)
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else if bytes.starts_with(b"BM") {
            Some(Self::Bmp)
        } else if bytes.starts_with(&[0, 0, 0, 12, b'j', b'P', b' ', b' '])
            || bytes.starts_with(&[0xff, 0x4f, 0xff, 0x51])
        {
            Some(Self::Jpeg2000)
        } else if tagged_file::is_tagged_file(bytes) {
            Some(Self::Tiff)
        } else {
            portable_map::is_portable_map(bytes).then_some(Self::PortableMap)
        }
    }

    /// Returns the picture in a file; none where it is damaged or larger than the limit.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<DecodedImage> {
        let decoded = match self {
            Self::Bmp => bmp(bytes),
            Self::Jpeg => jpeg(bytes),
            Self::Jpeg2000 => jpeg_2000(bytes),
            Self::Png => png(bytes),
            Self::PortableMap => portable_map::portable_map(bytes),
            Self::Tiff => tagged_file::tagged_file(bytes),
            Self::Webp => webp(bytes),
        }?;
        let DecodedSamples { width, height, channels, samples } = decoded;
        let rgb: Vec<u8> = match channels {
            0 => return None,
            1 | 2 => samples.chunks_exact(channels).flat_map(|pixel| [pixel[0]; 3]).collect(),
            3 => samples,
            _ => samples.chunks_exact(channels).flat_map(|pixel| &pixel[..3]).copied().collect(),
        };
        (rgb.len() == width * height * 3).then_some(DecodedImage { width, height, rgb })
    }
}

/// Returns the number of bytes of a picture, within the limit.
fn picture_bytes(pixels: [usize; 2], pixel_bytes: usize) -> Option<usize> {
    let bytes = pixels.into_iter().try_fold(pixel_bytes, usize::checked_mul)?;
    (u64::try_from(bytes).ok()? <= MAX_PICTURE_BYTES).then_some(bytes)
}

fn bmp(bytes: &[u8]) -> Option<DecodedSamples> {
    let options = DecoderOptions::default().set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = BmpDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    let channels = decoder.colorspace()?.num_components();
    let mut samples = vec![0; picture_bytes([width, height], channels)?];
    decoder.decode_into(&mut samples).ok()?;
    Some(DecodedSamples { width, height, channels, samples })
}

fn jpeg(bytes: &[u8]) -> Option<DecodedSamples> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut header = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    header.decode_headers().ok()?;
    let (width, height) = header.dimensions()?;
    let (colours, channels) = match header.input_colorspace()? {
        ColorSpace::Luma => (ColorSpace::Luma, 1),
        ColorSpace::LumaA => (ColorSpace::LumaA, 2),
        ColorSpace::RGBA => (ColorSpace::RGBA, 4),
        _ => (ColorSpace::RGB, 3),
    };
    let mut samples = vec![0; picture_bytes([width, height], channels)?];
    let options = options.jpeg_set_out_colorspace(colours);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_into(&mut samples).ok()?;
    Some(DecodedSamples { width, height, channels, samples })
}

fn jpeg_2000(bytes: &[u8]) -> Option<DecodedSamples> {
    use hayro_jpeg2000::{DecodeSettings, Image};
    let image = Image::new(bytes, &DecodeSettings::default()).ok()?;
    let (width, height) = (image.width(), image.height());
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let channels = usize::from(image.color_space().num_channels()) + usize::from(image.has_alpha());
    picture_bytes([width, height], channels)?;
    Some(DecodedSamples { width, height, channels, samples: image.decode().ok()? })
}

fn png(bytes: &[u8]) -> Option<DecodedSamples> {
    let limits = png::Limits { bytes: usize::try_from(MAX_PICTURE_BYTES).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    // Bits and palettes become bytes; 16 bits stay, and are rounded below.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = reader.info().size();
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let (colours, depth) = reader.output_color_type();
    let channels = colours.samples();
    let sample_bytes = match depth {
        BitDepth::Eight => 1,
        BitDepth::Sixteen => 2,
        BitDepth::One | BitDepth::Two | BitDepth::Four => return None,
    };
    let mut samples = vec![0; picture_bytes([width, height], channels * sample_bytes)?];
    reader.next_frame(&mut samples).ok()?;
    if sample_bytes == 2 {
        samples = samples.chunks_exact(2).map(|pair| rounded([pair[0], pair[1]])).collect();
    }
    Some(DecodedSamples { width, height, channels, samples })
}

/// A sample of 16 bits, most significant byte first, to the nearest one of 8.
fn rounded(sample: [u8; 2]) -> u8 {
    u8::try_from((u32::from(u16::from_be_bytes(sample)) + 128) / 257).unwrap_or(u8::MAX)
}

fn webp(bytes: &[u8]) -> Option<DecodedSamples> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).ok()?;
    let (width, height) = decoder.dimensions();
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut samples = vec![0; picture_bytes([width, height], channels)?];
    decoder.read_image(&mut samples).ok()?;
    Some(DecodedSamples { width, height, channels, samples })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG of one row.
    fn row(colours: png::ColorType, depth: BitDepth, samples: &[u8]) -> Vec<u8> {
        let bits = samples.len() * 8 / colours.samples() / depth as usize;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, u32::try_from(bits).unwrap(), 1);
        encoder.set_color(colours);
        encoder.set_depth(depth);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(samples).unwrap();
        writer.finish().unwrap();
        file
    }

    fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
        PictureFormat::of(bytes)?.decode(bytes).map(|picture| picture.rgb)
    }

    #[test]
    fn samples_of_every_kind_become_red_green_and_blue() {
        use png::ColorType::{Grayscale, GrayscaleAlpha, Rgb, Rgba};
        let eight = |colours, samples: &[u8]| decoded(&row(colours, BitDepth::Eight, samples));
        assert_eq!(eight(Rgb, &[1, 2, 3, 4, 5, 6]).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(eight(Rgba, &[1, 2, 3, 9, 4, 5, 6, 9]).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(eight(Grayscale, &[7, 8]).unwrap(), [7, 7, 7, 8, 8, 8]);
        assert_eq!(eight(GrayscaleAlpha, &[7, 9, 8, 9]).unwrap(), [7, 7, 7, 8, 8, 8]);
        let bits = decoded(&row(Grayscale, BitDepth::One, &[0b0100_0000])).unwrap();
        assert_eq!(bits.get(..9).unwrap(), [0, 0, 0, 255, 255, 255, 0, 0, 0]);
        let sixteen = decoded(&row(Rgb, BitDepth::Sixteen, &[0, 128, 0, 129, 255, 255])).unwrap();
        assert_eq!(sixteen, [0, 1, 255]);
    }

    #[test]
    fn a_damaged_file_is_no_picture() {
        let whole = row(png::ColorType::Rgb, BitDepth::Eight, &[1; 300]);
        assert!(decoded(&whole).is_some());
        assert_eq!(decoded(whole.get(..whole.len() / 2).unwrap()), None);
        for start in [&b"\x89PNG\r\n\x1a\n"[..], &[0xff, 0xd8, 0xff], b"RIFF\0\0\0\0WEBP"] {
            assert_eq!(decoded(start), None);
        }
    }

    #[test]
    fn a_picture_beyond_the_limit_takes_no_memory() {
        assert_eq!(picture_bytes([1 << 14, 1 << 13], 4), Some(1 << 29));
        assert_eq!(picture_bytes([1 << 14, 1 << 13], 8), None);
        assert_eq!(picture_bytes([usize::MAX, 2], 1), None);
    }
}

//! `ImageDecoder`: the picture in the bytes of a file.

use galatea_tensor::{DataType, Tensor};

use super::pictures::PictureFormat;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::expect_type;

/// The order of colours in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelFormat {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// One channel of brightness.
    Grayscale,
}

/// ONNX `ImageDecoder` of BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP.
///
/// Input: the bytes `[length]`. Output: `[height, width, channels]` of `UINT8`, empty where the
/// bytes are no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageDecoder {
    /// The order of colours.
    pub pixel_format: PixelFormat,
}

impl ImageDecoder {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let choice = context.attributes.choice("pixel_format", &["RGB", "BGR", "Grayscale"], 0)?;
        let formats = [PixelFormat::Rgb, PixelFormat::Bgr, PixelFormat::Grayscale];
        Ok(Box::new(Self { pixel_format: formats[choice] }))
    }

    fn channels(self) -> usize {
        if self.pixel_format == PixelFormat::Grayscale { 1 } else { 3 }
    }

    fn pixels(self, rgb: Vec<u8>) -> Vec<u8> {
        match self.pixel_format {
            PixelFormat::Rgb => rgb,
            PixelFormat::Bgr => {
                rgb.chunks(3).flat_map(|pixel| pixel.iter().rev()).copied().collect()
            }
            PixelFormat::Grayscale => rgb.chunks(3).map(brightness).collect(),
        }
    }
}

/// Source of the weights: ITU-R BT.601, as 16-bit fractions.
#[allow(clippy::cast_possible_truncation, reason = "the weights sum to 2^16")]
fn brightness(pixel: &[u8]) -> u8 {
    let weighed = pixel.iter().zip([19_595_u32, 38_470, 7_471]).map(|(c, w)| u32::from(*c) * w);
    ((weighed.sum::<u32>() + 0x8000) >> 16) as u8
}

impl Operator for ImageDecoder {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the stream", x.dtype, |dtype| dtype == DataType::Uint8, "UINT8")?;
        // The channels are known only of what is a picture.
        Ok(vec![Fact::new(DataType::Uint8, vec![Dim::Unknown; 3])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let bytes = inputs.required(0)?.to_vec::<u8>()?;
        let picture = PictureFormat::of(&bytes).and_then(|format| format.decode(&bytes));
        let Some(picture) = picture else {
            return Ok(vec![Tensor::zeros(DataType::Uint8, &[0, 0, 0])?]);
        };
        let shape = [picture.height, picture.width, self.channels()];
        bounded(DataType::Uint8, &shape)?;
        Ok(vec![Tensor::from_vec(&shape, self.pixels(picture.rgb))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, tensor, text};

    #[test]
    fn colours_come_in_the_order_that_is_asked_for() {
        let file = Tensor::vector(b"P6 2 1 255\n\x01\x02\x03\xff\xff\xff".to_vec());
        let of = |format| {
            one("ImageDecoder", 20, &attributes([("pixel_format", text(format))]), &[&file])
        };
        assert_eq!(of("RGB"), tensor(&[1, 2, 3], &[1_u8, 2, 3, 255, 255, 255]));
        assert_eq!(of("BGR"), tensor(&[1, 2, 3], &[3_u8, 2, 1, 255, 255, 255]));
        assert_eq!(of("Grayscale"), tensor(&[1, 2, 1], &[2_u8, 255]));
    }

    #[test]
    fn bytes_that_are_no_picture_give_an_empty_one() {
        for bytes in [&b"P6 99999999 99999999 255\n"[..], b"nothing", b"\xff\x4f\xff\x51\x00", b""]
        {
            let file = Tensor::vector(bytes.to_vec());
            assert_eq!(one("ImageDecoder", 20, &attributes([]), &[&file]).shape(), [0, 0, 0]);
        }
    }
}

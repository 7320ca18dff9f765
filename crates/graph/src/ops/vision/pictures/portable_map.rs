//! Portable maps: bits, greys and colours as text or bytes (`P1` to `P6`), and any of them (`P7`).
//!
//! Source: the pages pbm, pgm, ppm and pam of Netpbm.

use super::{DecodedSamples, picture_bytes};

/// How the samples stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleForm {
    /// Digits `0` and `1`, where 1 is black.
    BitDigits,
    /// Eight bits of a row in a byte, where 1 is black.
    PackedBits,
    /// Decimal numbers.
    Decimals,
    /// Bytes, or pairs of bytes with the most significant one first.
    Bytes,
}

/// Fields that stand before the samples.
struct MapHeader {
    form: SampleForm,
    width: usize,
    height: usize,
    channels: usize,
    /// The sample of full brightness, at most 65,535.
    brightest: u32,
}

/// Reads the header and the samples of text forms.
struct MapReader<'a> {
    rest: &'a [u8],
}

/// Returns whether a file begins like a portable map.
pub(super) fn is_portable_map(bytes: &[u8]) -> bool {
    matches!(bytes, [b'P', b'1'..=b'7', ..])
}

/// Decodes a portable map; none where it is damaged or larger than the limit.
pub(super) fn portable_map(bytes: &[u8]) -> Option<DecodedSamples> {
    let mut reader = MapReader { rest: bytes.get(2..)? };
    let header = match bytes.get(1)? {
        b'7' => reader.named_header()?,
        digit => reader.header(*digit)?,
    };
    let samples = reader.samples(&header)?;
    let MapHeader { width, height, channels, .. } = header;
    Some(DecodedSamples { width, height, channels, samples })
}

impl MapHeader {
    fn row_samples(&self) -> usize {
        self.width * self.channels
    }

    /// A sample as one of 256 steps, to the nearest one.
    fn scaled(&self, sample: u32) -> Option<u8> {
        let brightest = self.brightest;
        (sample <= brightest).then(|| (sample * 255 + brightest / 2) / brightest)?.try_into().ok()
    }
}

impl<'a> MapReader<'a> {
    fn header(&mut self, digit: u8) -> Option<MapHeader> {
        let (form, channels) = match digit {
            b'1' => (SampleForm::BitDigits, 1),
            b'2' => (SampleForm::Decimals, 1),
            b'3' => (SampleForm::Decimals, 3),
            b'4' => (SampleForm::PackedBits, 1),
            b'5' => (SampleForm::Bytes, 1),
            _ => (SampleForm::Bytes, 3),
        };
        let width = usize::try_from(self.number()?).ok()?;
        let height = usize::try_from(self.number()?).ok()?;
        let bits = matches!(form, SampleForm::BitDigits | SampleForm::PackedBits);
        let brightest = if bits { 1 } else { self.number()? };
        if matches!(form, SampleForm::Bytes | SampleForm::PackedBits) {
            // One blank ends the header; what follows may look like one.
            self.rest = self.rest.split_first().filter(|(first, _)| first.is_ascii_whitespace())?.1;
        }
        bounded_header(MapHeader { form, width, height, channels, brightest })
    }

    /// The header of `P7`: a name and a value on each line.
    fn named_header(&mut self) -> Option<MapHeader> {
        let mut header =
            MapHeader { form: SampleForm::Bytes, width: 0, height: 0, channels: 0, brightest: 0 };
        loop {
            let end = self.rest.iter().position(|byte| *byte == b'\n')?;
            let (line, rest) = self.rest.split_at(end);
            self.rest = rest.get(1..)?;
            let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
            let (name, value) = (words.next(), words.next());
            match name {
                Some("ENDHDR") => return bounded_header(header),
                Some("WIDTH") => header.width = value?.parse().ok()?,
                Some("HEIGHT") => header.height = value?.parse().ok()?,
                Some("DEPTH") => header.channels = value?.parse().ok()?,
                Some("MAXVAL") => header.brightest = value?.parse().ok()?,
                // A kind of tuple says what the channels mean, which their number says, too.
                _ => {}
            }
        }
    }

    /// Leaves blanks out, and comments from `#` to the end of a line.
    fn skip_blanks(&mut self) {
        while let Some((first, rest)) = self.rest.split_first() {
            if *first == b'#' {
                let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                self.rest = rest.get(end.unwrap_or(rest.len())..).unwrap_or_default();
            } else if first.is_ascii_whitespace() {
                self.rest = rest;
            } else {
                return;
            }
        }
    }

    fn number(&mut self) -> Option<u32> {
        self.skip_blanks();
        let other = self.rest.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(other.unwrap_or(self.rest.len()));
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn bit(&mut self) -> Option<u32> {
        self.skip_blanks();
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        matches!(first, b'0' | b'1').then(|| u32::from(*first == b'0'))
    }

    fn samples(&mut self, header: &MapHeader) -> Option<Vec<u8>> {
        let count = header.height * header.row_samples();
        match header.form {
            SampleForm::BitDigits => (0..count).map(|_| header.scaled(self.bit()?)).collect(),
            SampleForm::Decimals => (0..count).map(|_| header.scaled(self.number()?)).collect(),
            SampleForm::PackedBits => packed_bits(self.rest, header),
            SampleForm::Bytes if header.brightest > 255 => {
                let pairs = self.rest.get(..count * 2)?.chunks_exact(2);
                let sample = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair[1]);
                pairs.map(|pair| header.scaled(sample(pair))).collect()
            }
            SampleForm::Bytes => {
                self.rest.get(..count)?.iter().map(|byte| header.scaled(u32::from(*byte))).collect()
            }
        }
    }
}

/// Returns the header where its picture has pixels, within the limit of memory.
fn bounded_header(header: MapHeader) -> Option<MapHeader> {
    let allowed = (1..=4).contains(&header.channels) && (1..=65_535).contains(&header.brightest);
    let pixels = [header.width, header.height];
    (allowed && picture_bytes(pixels, header.channels)? > 0).then_some(header)
}

fn packed_bits(bytes: &[u8], header: &MapHeader) -> Option<Vec<u8>> {
    let row_bytes = header.width.div_ceil(8);
    let rows = bytes.get(..header.height * row_bytes)?.chunks_exact(row_bytes);
    let black = |row: &[u8], column: usize| row[column / 8] >> (7 - column % 8) & 1 == 1;
    Some(
        rows.flat_map(|row| (0..header.width).map(move |column| black(row, column)))
            .map(|is_black| if is_black { 0 } else { 255 })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(file: &[u8]) -> Option<(usize, Vec<u8>)> {
        portable_map(file).map(|map| (map.channels, map.samples))
    }

    #[test]
    fn every_form_gives_its_samples() {
        assert_eq!(decoded(b"P1 # bits\n3 2 1 0\n1\n001"), Some((1, vec![0, 255, 0, 255, 255, 0])));
        assert_eq!(decoded(b"P2\n2 1\n3\n1 3\n"), Some((1, vec![85, 255])));
        assert_eq!(decoded(b"P3\n1 1 255 9 8 7"), Some((3, vec![9, 8, 7])));
        let packed = [&b"P4 9 1\n"[..], &[0b0100_0000, 0x80]].concat();
        assert_eq!(decoded(&packed), Some((1, vec![255, 0, 255, 255, 255, 255, 255, 255, 0])));
        assert_eq!(decoded(b"P5 2 1 255\n# "), Some((1, vec![b'#', b' '])));
        let wide = [&b"P6 1 1 65535\n"[..], &[0, 128, 0, 129, 255, 255]].concat();
        assert_eq!(decoded(&wide), Some((3, vec![0, 1, 255])));
        let named = b"P7\n# any\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n\x01\x02\x03\x04";
        assert_eq!(decoded(named), Some((4, vec![1, 2, 3, 4])));
    }

    #[test]
    fn a_damaged_map_is_no_picture() {
        let damaged: [&[u8]; 9] = [
            b"P5 2 1 255\n\x01",
            b"P5 2 1 0\n\x01\x02",
            b"P5 2 1 65536\n\x01\x02",
            b"P2 1 1 3\n4",
            b"P1 1 1 2",
            b"P5 0 1 255\n",
            b"P6 4294967295 4294967295 255\n",
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 9\nMAXVAL 255\nENDHDR\n123456789",
            b"P7\nWIDTH 1",
        ];
        for file in damaged {
            assert_eq!(decoded(file), None, "{:?}", String::from_utf8_lossy(file));
        }
    }
}

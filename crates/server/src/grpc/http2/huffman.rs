//! The Huffman code of header fields (RFC 7541, appendix B). It is canonical: the lengths of the codes, with the
//! symbols of one length in order, say all of it.

use std::sync::LazyLock;

/// Bits of each byte's code; the last is the mark of the end, which may not occur.
#[rustfmt::skip]
const BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6,
    6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6,
    6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23,
    22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22,
    23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22,
    25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const LONGEST: usize = 30;

/// The codes of one length: they count up from the first.
#[derive(Clone, Copy, Default)]
struct HuffmanRow {
    first: u32,
    count: u32,
    at: u32,
}

struct HuffmanCode {
    rows: [HuffmanRow; LONGEST + 1],
    symbols: Vec<u16>,
}

static CODE: LazyLock<HuffmanCode> = LazyLock::new(|| {
    let mut code = HuffmanCode {
        rows: [HuffmanRow::default(); LONGEST + 1],
        symbols: Vec::with_capacity(257),
    };
    let mut next = 0;
    for (bits, row) in (0_u8..).zip(&mut code.rows) {
        next <<= 1;
        let at = u32::try_from(code.symbols.len()).unwrap_or(0);
        let symbols = (0_u16..).zip(BITS).filter(|&(_, length)| bits > 0 && length == bits);
        code.symbols.extend(symbols.map(|(symbol, _)| symbol));
        let count = u32::try_from(code.symbols.len()).unwrap_or(0) - at;
        *row = HuffmanRow { first: next, count, at };
        next += count;
    }
    code
});

/// The bytes behind a code; none where the code is not one, or is padded otherwise than it must be.
pub(super) fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(coded.len() * 8 / 5);
    let mut value = 0_u32;
    let mut length = 0_usize;
    for byte in coded {
        for place in (0..8).rev() {
            value = value << 1 | u32::from(byte >> place & 1);
            length += 1;
            let row = CODE.rows.get(length)?;
            let Some(index) = value.checked_sub(row.first).filter(|index| *index < row.count)
            else {
                continue;
            };
            let symbol = CODE.symbols.get(usize::try_from(row.at + index).ok()?)?;
            bytes.push(u8::try_from(*symbol).ok()?);
            (value, length) = (0, 0);
        }
    }
    // What is left of the last byte is the beginning of the end mark: ones.
    let padded = length < 8 && value == (1 << length) - 1;
    padded.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 7541, appendix C.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        for (coded, text) in [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f], "custom-key"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], "custom-value"),
            (&[0x64, 0x02], "302"),
            (&[], ""),
        ] {
            assert_eq!(decode(coded).as_deref(), Some(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn every_code_is_read_and_the_end_mark_and_wrong_padding_are_not() {
        for (symbol, bits) in (0_u16..).zip(BITS) {
            let row = CODE.rows[usize::from(bits)];
            let place = CODE.symbols.iter().position(|other| *other == symbol).unwrap();
            let value = u64::from(row.first) + place as u64 - u64::from(row.at);
            let shift = 40 - u32::from(bits);
            let ones = (1_u64 << shift) - 1;
            let bytes = (value << shift | ones).to_be_bytes();
            let coded = &bytes[3..3 + usize::from(bits).div_ceil(8)];
            assert_eq!(decode(coded), u8::try_from(symbol).ok().map(|byte| vec![byte]));
        }
        assert_eq!(decode(&[0x64, 0x02, 0x00]), None);
        assert_eq!(decode(&[0xff]), None);
    }
}

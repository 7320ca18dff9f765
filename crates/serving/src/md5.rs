//! The MD5 message digest, for checksums that users have; it keeps no secret.
//!
//! Source: RFC 1321.

/// Bytes of a block.
const BLOCK: usize = 64;

/// Rotations of the steps, by round and step modulo 4.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// A digest under way.
#[derive(Clone, Debug)]
pub(crate) struct Md5Digest {
    state: [u32; 4],
    rest: Vec<u8>,
    bytes: u64,
    /// Constants of the steps: the sines of 1 to 64.
    sines: [u32; BLOCK],
}

impl Default for Md5Digest {
    fn default() -> Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
        let sine = |step: u32| (f64::from(step + 1).sin().abs() * 4_294_967_296.0) as u32;
        let mut sines = [0; BLOCK];
        sines.iter_mut().zip(0..).for_each(|(slot, step)| *slot = sine(step));
        let state = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
        Self { state, rest: Vec::with_capacity(BLOCK), bytes: 0, sines }
    }
}

impl Md5Digest {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.wrapping_add(bytes.len() as u64);
        let (begin, bytes) = match self.rest.len() {
            0 => (&[][..], bytes),
            had => bytes.split_at(bytes.len().min(BLOCK - had)),
        };
        self.rest.extend_from_slice(begin);
        if self.rest.len() == BLOCK {
            let block = std::mem::take(&mut self.rest);
            self.block(&block);
        }
        let blocks = bytes.chunks_exact(BLOCK);
        self.rest.extend_from_slice(blocks.remainder());
        blocks.for_each(|block| self.block(block));
    }

    /// The digest in hexadecimal digits.
    pub(crate) fn finish(mut self) -> String {
        let bits = self.bytes.wrapping_mul(8);
        let zeros = (BLOCK * 2 - 9 - self.rest.len()) % BLOCK;
        let mut end = vec![0x80];
        end.resize(1 + zeros, 0);
        end.extend_from_slice(&bits.to_le_bytes());
        self.update(&end);
        self.state.iter().flat_map(|word| word.to_le_bytes()).fold(
            String::with_capacity(32),
            |mut text, byte| {
                for digit in [byte >> 4, byte & 15] {
                    text.extend(char::from_digit(digit.into(), 16));
                }
                text
            },
        )
    }

    fn block(&mut self, block: &[u8]) {
        let mut words = [0_u32; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u32::from(byte));
        }
        let [mut a, mut b, mut c, mut d] = self.state;
        for (step, sine) in self.sines.iter().enumerate() {
            let (mix, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            let sum = mix.wrapping_add(a).wrapping_add(*sine).wrapping_add(words[word]);
            let turned = sum.rotate_left(SHIFTS[step / 16][step % 4]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
        }
        for (word, add) in self.state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(add);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard_in_pieces_of_any_size() {
        let digits = "1234567890".repeat(8);
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (&digits, "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            for piece in [1, 3, 55, 64, 100] {
                let mut md5 = Md5Digest::default();
                text.as_bytes().chunks(piece).for_each(|bytes| md5.update(bytes));
                assert_eq!(md5.finish(), digest, "{text} by {piece}");
            }
        }
    }
}

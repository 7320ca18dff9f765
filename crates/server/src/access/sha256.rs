//! The SHA-256 message digest, by which keys are kept and found.
//!
//! The cryptography of TLS needs a processor with instructions for it; keys work on every processor. Source: FIPS
//! 180-4.

/// Bytes of a block.
const BLOCK: usize = 64;

/// A digest.
pub(super) type KeyDigest = [u8; 32];

/// Fractions of the square roots of the first eight primes.
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Fractions of the cube roots of the first 64 primes.
const ROUNDS: [u32; BLOCK] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Computes the digest of a text.
pub(super) fn sha256(bytes: &[u8]) -> KeyDigest {
    let mut state = START;
    let mut blocks = bytes.chunks_exact(BLOCK);
    for block in &mut blocks {
        add_block(&mut state, block);
    }
    // A one, zeros, and the number of bits at the end of the last block.
    let rest = blocks.remainder();
    let mut last = [0; 2 * BLOCK];
    let length = if rest.len() < BLOCK - 8 { BLOCK } else { 2 * BLOCK };
    let bits = (bytes.len() as u64).wrapping_mul(8).to_be_bytes();
    let tail = rest.iter().chain(&[0x80]);
    last.iter_mut().zip(tail).for_each(|(slot, byte)| *slot = *byte);
    let end = last.iter_mut().skip(length - bits.len());
    end.zip(bits).for_each(|(slot, byte)| *slot = byte);
    for block in last.chunks_exact(BLOCK).take(length / BLOCK) {
        add_block(&mut state, block);
    }
    let mut digest = KeyDigest::default();
    let words = state.into_iter().flat_map(u32::to_be_bytes);
    digest.iter_mut().zip(words).for_each(|(slot, byte)| *slot = byte);
    digest
}

fn add_block(state: &mut [u32; 8], block: &[u8]) {
    // The last 16 words of the schedule, in turn.
    let mut words = [0_u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for constant in ROUNDS {
        let [word, next, _, _, _, _, _, _, _, tenth, ..] = words;
        let choice = (e & f) ^ (!e & g);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let low = (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            .wrapping_add(h)
            .wrapping_add(choice)
            .wrapping_add(constant)
            .wrapping_add(word);
        let high =
            (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(low));
        (d, c, b, a) = (c, b, a, low.wrapping_add(high));
        let [.., before, _] = words;
        let following = (next.rotate_right(7) ^ next.rotate_right(18) ^ (next >> 3))
            .wrapping_add(before.rotate_right(17) ^ before.rotate_right(19) ^ (before >> 10))
            .wrapping_add(word)
            .wrapping_add(tenth);
        words.rotate_left(1);
        let [.., last] = &mut words;
        *last = following;
    }
    for (slot, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *slot = slot.wrapping_add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: KeyDigest) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
            ),
        ] {
            assert_eq!(hex(sha256(text.as_bytes())), digest, "{text}");
        }
        let million = vec![b'a'; 1_000_000];
        let digest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(hex(sha256(&million)), digest);
    }

    #[test]
    fn every_length_around_a_block_has_its_own_digest() {
        let digests: std::collections::HashSet<KeyDigest> =
            (0..200).map(|length| sha256(&vec![b'a'; length])).collect();
        assert_eq!(digests.len(), 200);
    }
}

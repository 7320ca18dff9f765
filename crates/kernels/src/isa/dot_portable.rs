//! Sums of products of bytes in plain Rust.

use super::dot::{DotInstructions, DotKernel, LeftTerms};
use super::{NoPairs, Portable};

#[inline(never)]
fn enter_portable<K: DotKernel>(d: Portable, kernel: K) -> K::Output {
    kernel.run(d)
}

/// Two 16-bit halves of a word.
#[inline(always)]
fn halves(word: i32) -> [i32; 2] {
    [(word << 16) >> 16, word >> 16]
}

impl DotInstructions for Portable {
    type S = Self;
    type Pairs = NoPairs<[i32; 4], [i32; 4]>;
    const TERMS: usize = 2;
    const FORM: LeftTerms = LeftTerms::Wide;
    const TILE_VECTORS: usize = 2;
    const TILE_ROWS: [usize; 2] = [4, 4];

    #[inline(always)]
    fn simd(self) -> Self {
        self
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        enter_portable(self, kernel)
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> [i32; 4] {
        std::array::from_fn(|lane| {
            // SAFETY: the caller vouches for two bytes of each lane.
            let [low, high] = unsafe { *p.add(2 * lane).cast::<[i8; 2]>() };
            (i32::from(low) & 0xffff) | (i32::from(high) << 16)
        })
    }
    #[inline(always)]
    fn dot(self, sum: [i32; 4], a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let ([a0, a1], [b0, b1]) = (halves(a[lane]), halves(b[lane]));
            sum[lane].wrapping_add(a0 * b0).wrapping_add(a1 * b1)
        })
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> [i32; 4] {
        // SAFETY: the caller vouches for four bytes.
        let bytes = unsafe { *p.cast::<[u8; 4]>() };
        bytes.map(|byte| if signed { byte.cast_signed().into() } else { byte.into() })
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the lowest byte")]
    unsafe fn store_bytes(self, p: *mut u8, v: [i32; 4]) {
        // SAFETY: the caller vouches for four bytes.
        unsafe { *p.cast::<[u8; 4]>() = v.map(|lane| lane as u8) };
    }
}

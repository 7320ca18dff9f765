//! BF16 products of x86: AVX-512 with BF16.

use super::{Avx512, Bf16Instructions, Bf16Kernel, NoPairs};
use std::arch::x86_64::*;

/// AVX-512 with BF16. Numbers below the smallest normal one count as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512Bf16(Avx512);

impl Avx512Bf16 {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512bf16");
        Avx512::new().filter(|_| found).map(Self)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
#[inline(never)]
fn enter<K: Bf16Kernel>(d: Avx512Bf16, kernel: K) -> K::Output {
    kernel.run(d)
}

impl Bf16Instructions for Avx512Bf16 {
    type S = Avx512;
    type Pairs = NoPairs<__m512, __m512i>;
    const TILE_ROWS: usize = 12;
    const TILE_COLUMNS: usize = 32;

    #[inline(always)]
    fn simd(self) -> Avx512 {
        self.0
    }
    #[inline(always)]
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter(self, kernel) }
    }
    #[inline(always)]
    fn dot(self, sum: __m512, a: __m512i, b: __m512i) -> __m512 {
        // SAFETY: the token proves the instruction set; the casts change no bits.
        unsafe {
            let pairs = |x| std::mem::transmute::<__m512i, __m512bh>(x);
            _mm512_dpbf16_ps(sum, pairs(a), pairs(b))
        }
    }
    #[inline(always)]
    unsafe fn narrow(self, x: *const f32, y: *mut u16) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe {
            let pairs = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x.add(16)), _mm512_loadu_ps(x));
            _mm512_storeu_si512(y.cast(), std::mem::transmute::<__m512bh, __m512i>(pairs));
        }
    }
}

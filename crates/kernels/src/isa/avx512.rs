//! AVX-512: 16 lanes of `f32`, 32 registers, masks.

use super::{IsaKernel, Simd};
use std::arch::asm;
use std::arch::x86_64::*;

/// AVX-512 F, BW, DQ and VL with AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

type F = __m512;
type I = __m512i;
type M = __mmask16;

impl Avx512 {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
#[inline(never)]
fn enter<K: IsaKernel>(s: Avx512, kernel: K) -> K::Output {
    kernel.run(s)
}

impl Simd for Avx512 {
    const LANES: usize = 16;
    // Wide and low: a core that shares its caches with another thread reads few streams best.
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 4;
    const TILE_ROWS_BY_VECTORS: [usize; 4] = [14, 14, 8, Self::TILE_ROWS];
    type F = F;
    type I = I;
    type M = M;

    #[inline(always)]
    fn enter<K: IsaKernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter(self, kernel) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn tail(self, n: usize) -> M {
        if n >= 16 { 0xffff } else { (1u16 << n) - 1 }
    }
    #[inline(always)]
    unsafe fn load_tail(self, p: *const f32, m: M) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_maskz_loadu_ps(m, p) }
    }
    #[inline(always)]
    unsafe fn store_tail(self, p: *mut f32, m: M, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_mask_storeu_ps(p, m, v) }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn fnma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_roundscale_ps::<0x08>(a) }
    }
    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
    }
    #[inline(always)]
    fn any(self, m: M) -> bool {
        m != 0
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_mask_blend_ps(m, b, a) }
    }
    #[inline(always)]
    fn scale_pow2(self, v: F, n: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_scalef_ps(v, n) }
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_castps_si512(a) }
    }
    #[inline(always)]
    fn of_bits(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_castsi512_ps(a) }
    }
    #[inline(always)]
    fn splat_i(self, value: i32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_set1_epi32(value) }
    }
    #[inline(always)]
    fn add_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    fn mul_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    fn and_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn or_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn xor_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    fn shift_right(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits.cast_signed())) }
    }
    #[inline(always)]
    fn shift_left(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits.cast_signed())) }
    }
    #[inline(always)]
    fn shr23(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_srai_epi32::<23>(a) }
    }
    #[inline(always)]
    fn shl16(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_slli_epi32::<16>(a) }
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    unsafe fn load_four(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_broadcast_f32x4(_mm_loadu_ps(p)) }
    }
    #[inline(always)]
    fn pick(self, four: F, picks: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_permutevar_ps(four, picks) }
    }
    #[inline(always)]
    fn reduce_add(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_reduce_add_ps(a) }
    }
    #[inline(always)]
    fn reduce_max(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_reduce_max_ps(a) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const u16) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { widened(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
    }
    #[inline(always)]
    fn look_up(self, table: &[u8; 16], indices: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, indices)
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const u16) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_bf16(self, p: *mut u16, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(rounded(v))) }
    }
    #[inline(always)]
    unsafe fn load_bf16_tail(self, p: *const u16, m: M) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { widened(_mm256_maskz_loadu_epi16(m, p.cast())) }
    }
    #[inline(always)]
    unsafe fn store_bf16_tail(self, p: *mut u16, m: M, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_mask_storeu_epi16(p.cast(), m, _mm512_cvtepi32_epi16(rounded(v))) }
    }
    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        // SAFETY: the token proves the instruction set; a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    #[inline(always)]
    fn prefetch_to_write(self, p: *const f32) {
        // SAFETY: a prefetch of any address is harmless, and every processor with AVX-512 has it.
        unsafe {
            asm!("prefetchw [{p}]", p = in(reg) p, options(nostack, preserves_flags, readonly));
        }
    }
    #[inline(always)]
    unsafe fn transpose_block(self, src: *const f32, ss: usize, dst: *mut f32, ds: usize) {
        // SAFETY: the token proves the instruction set; the caller vouches for 16 rows of 16.
        unsafe {
            // Loops, not closures: these must be inlined to have the target features.
            let mut r = [_mm512_setzero_ps(); 16];
            for (i, r) in r.iter_mut().enumerate() {
                *r = _mm512_loadu_ps(src.add(i * ss));
            }
            // Pairs, then quads: t[4q + c] holds column c of each 128-bit lane of rows 4q..4q+4.
            let mut t = r;
            for (i, t) in t.iter_mut().enumerate() {
                let q = i / 4 * 4;
                let c = i % 4;
                let (lo, hi) = if c < 2 {
                    (_mm512_unpacklo_ps(r[q], r[q + 1]), _mm512_unpacklo_ps(r[q + 2], r[q + 3]))
                } else {
                    (_mm512_unpackhi_ps(r[q], r[q + 1]), _mm512_unpackhi_ps(r[q + 2], r[q + 3]))
                };
                let lo = _mm512_castps_pd(lo);
                let hi = _mm512_castps_pd(hi);
                *t = _mm512_castpd_ps(if c % 2 == 0 {
                    _mm512_unpacklo_pd(lo, hi)
                } else {
                    _mm512_unpackhi_pd(lo, hi)
                });
            }
            for c in 0..4 {
                // 4 x 4 transpose of 128-bit lanes.
                let a = _mm512_shuffle_f32x4::<0x88>(t[c], t[4 + c]);
                let b = _mm512_shuffle_f32x4::<0x88>(t[8 + c], t[12 + c]);
                let d = _mm512_shuffle_f32x4::<0xdd>(t[c], t[4 + c]);
                let e = _mm512_shuffle_f32x4::<0xdd>(t[8 + c], t[12 + c]);
                _mm512_storeu_ps(dst.add(c * ds), _mm512_shuffle_f32x4::<0x88>(a, b));
                _mm512_storeu_ps(dst.add((8 + c) * ds), _mm512_shuffle_f32x4::<0xdd>(a, b));
                _mm512_storeu_ps(dst.add((4 + c) * ds), _mm512_shuffle_f32x4::<0x88>(d, e));
                _mm512_storeu_ps(dst.add((12 + c) * ds), _mm512_shuffle_f32x4::<0xdd>(d, e));
            }
        }
    }
}

/// 16 BF16 as FP32.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn widened(x: __m256i) -> F {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(x))) }
}

/// The nearest BF16 of each lane, ties to even, in its lower half.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn rounded(x: F) -> I {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let bits = _mm512_castps_si512(x);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let quiet = _mm512_set1_epi32(0x40_0000);
        _mm512_srli_epi32::<16>(_mm512_mask_or_epi32(up, is_nan, bits, quiet))
    }
}

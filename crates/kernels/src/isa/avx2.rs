//! AVX2 with FMA: 8 lanes of `f32`, 16 registers.

use super::{IsaKernel, Simd};
use std::arch::x86_64::*;

/// AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

type F = __m256;
type I = __m256i;
type M = __m256i;

impl Avx2 {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
fn enter<K: IsaKernel>(s: Avx2, kernel: K) -> K::Output {
    kernel.run(s)
}

impl Simd for Avx2 {
    const LANES: usize = 8;
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 2;
    const TILE_ROWS_BY_VECTORS: [usize; 4] = [Self::TILE_ROWS, Self::TILE_ROWS, 0, 0];
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
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn tail(self, n: usize) -> M {
        #[allow(clippy::cast_possible_truncation, reason = "at most 8")]
        let n = n.min(8) as i32;
        // SAFETY: the token proves the instruction set.
        unsafe {
            _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
        }
    }
    #[inline(always)]
    unsafe fn load_tail(self, p: *const f32, m: M) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_maskload_ps(p, m) }
    }
    #[inline(always)]
    unsafe fn store_tail(self, p: *mut f32, m: M, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_maskstore_ps(p, m, v) }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn fnma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_fnmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_sqrt_ps(a) }
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_round_ps::<0x08>(a) }
    }
    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) }
    }
    #[inline(always)]
    fn any(self, m: M) -> bool {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(m)) != 0 }
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)) }
    }
    #[inline(always)]
    fn scale_pow2(self, v: F, n: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe {
            // Two factors keep each a normal number.
            let n = _mm256_cvtps_epi32(n);
            let half = _mm256_srai_epi32::<1>(n);
            let bias = _mm256_set1_epi32(127);
            let first = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
            let rest = _mm256_sub_epi32(n, half);
            let second = _mm256_slli_epi32::<23>(_mm256_add_epi32(rest, bias));
            let v = _mm256_mul_ps(v, _mm256_castsi256_ps(first));
            _mm256_mul_ps(v, _mm256_castsi256_ps(second))
        }
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_castps_si256(a) }
    }
    #[inline(always)]
    fn of_bits(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_castsi256_ps(a) }
    }
    #[inline(always)]
    fn splat_i(self, value: i32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_set1_epi32(value) }
    }
    #[inline(always)]
    fn add_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    fn mul_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_mullo_epi32(a, b) }
    }
    #[inline(always)]
    fn and_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    fn or_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_or_si256(a, b) }
    }
    #[inline(always)]
    fn xor_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    fn shift_right(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits.cast_signed())) }
    }
    #[inline(always)]
    fn shift_left(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits.cast_signed())) }
    }
    #[inline(always)]
    fn shr23(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_srai_epi32::<23>(a) }
    }
    #[inline(always)]
    fn shl16(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_slli_epi32::<16>(a) }
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_cvtepi32_ps(a) }
    }
    #[inline(always)]
    unsafe fn load_four(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe {
            let four = _mm_loadu_ps(p);
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(four), four)
        }
    }
    #[inline(always)]
    fn pick(self, four: F, picks: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_permutevar_ps(four, picks) }
    }
    #[inline(always)]
    fn reduce_add(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let h = _mm_add_ps(h, _mm_movehl_ps(h, h));
            _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)))
        }
    }
    #[inline(always)]
    fn reduce_max(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let h = _mm_max_ps(h, _mm_movehl_ps(h, h));
            _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)))
        }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const u16) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(self, p: *const i8) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))) }
    }
    #[inline(always)]
    fn look_up(self, table: &[u8; 16], indices: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            _mm256_shuffle_epi8(table, indices)
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const u16) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    fn prefetch(self, p: *const f32) {
        // SAFETY: the token proves the instruction set; a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
    #[inline(always)]
    unsafe fn transpose_block(self, src: *const f32, ss: usize, dst: *mut f32, ds: usize) {
        // SAFETY: the token proves the instruction set; the caller vouches for 8 rows of 8.
        unsafe {
            // Loops, not closures: these must be inlined to have the target features.
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, r) in r.iter_mut().enumerate() {
                *r = _mm256_loadu_ps(src.add(i * ss));
            }
            // Pairs, then quads: t[4q + c] holds column c of both 128-bit lanes of rows 4q..4q+4.
            let mut t = r;
            for (i, t) in t.iter_mut().enumerate() {
                let q = i / 4 * 4;
                let c = i % 4;
                let (lo, hi) = if c < 2 {
                    (_mm256_unpacklo_ps(r[q], r[q + 1]), _mm256_unpacklo_ps(r[q + 2], r[q + 3]))
                } else {
                    (_mm256_unpackhi_ps(r[q], r[q + 1]), _mm256_unpackhi_ps(r[q + 2], r[q + 3]))
                };
                *t = if c % 2 == 0 {
                    _mm256_shuffle_ps::<0x44>(lo, hi)
                } else {
                    _mm256_shuffle_ps::<0xee>(lo, hi)
                };
            }
            for c in 0..4 {
                let low = _mm256_permute2f128_ps::<0x20>(t[c], t[4 + c]);
                let high = _mm256_permute2f128_ps::<0x31>(t[c], t[4 + c]);
                _mm256_storeu_ps(dst.add(c * ds), low);
                _mm256_storeu_ps(dst.add((4 + c) * ds), high);
            }
        }
    }
}

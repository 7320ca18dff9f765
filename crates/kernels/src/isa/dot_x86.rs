//! Integer products of x86: VNNI, and AVX2 without it.

use super::{Avx2, Avx512, DotInstructions, DotKernel, LeftTerms, NoPairs, Simd};
use std::arch::x86_64::*;

/// AVX-512 with VNNI: unsigned by signed bytes, four at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnni(Avx512);

impl Vnni {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512vnni");
        Avx512::new().filter(|_| found).map(Self)
    }
}

/// How floats become bytes that saturate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaturatingNarrow {
    most: __m512,
    /// Numbers of 16 bits: moved by what stands for zero, and so that they are not signed.
    zero: __m512i,
    least: __m512i,
    flip: __m512i,
}

impl Vnni {
    /// Rounds to even, adds `zero` and limits to `low..=high`, of which `low` is negative for signed
    /// bytes only.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "bytes, and sums of two of them")]
    pub(crate) fn narrow_to(self, zero: i32, low: i32, high: i32) -> SaturatingNarrow {
        let half = if low < 0 { 128 } else { 0 };
        // SAFETY: the token proves the instruction set.
        unsafe {
            SaturatingNarrow {
                most: _mm512_set1_ps((high - zero) as f32),
                zero: _mm512_set1_epi16((zero + half) as i16),
                least: _mm512_set1_epi8((low + half) as i8),
                flip: _mm512_set1_epi8(half as i8),
            }
        }
    }

    /// Two vectors as numbers of 16 bits, four of each in turn.
    #[inline(always)]
    fn halves(self, to: SaturatingNarrow, low: __m512, high: __m512) -> __m512i {
        // SAFETY: the token proves the instruction set.
        unsafe {
            // The least of the two, or the second where that is no number, which becomes the least of
            // all 32-bit numbers.
            let low = _mm512_cvtps_epi32(_mm512_min_ps(to.most, low));
            let high = _mm512_cvtps_epi32(_mm512_min_ps(to.most, high));
            _mm512_adds_epi16(_mm512_packs_epi32(low, high), to.zero)
        }
    }

    /// The bytes of two rows of two vectors, row after row.
    #[inline(always)]
    pub(crate) fn narrow(self, to: SaturatingNarrow, rows: [[__m512; 2]; 2]) -> __m512i {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let halves =
                [self.halves(to, rows[0][0], rows[0][1]), self.halves(to, rows[1][0], rows[1][1])];
            let bytes = _mm512_max_epu8(_mm512_packus_epi16(halves[0], halves[1]), to.least);
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_permutexvar_epi32(order, _mm512_xor_si512(bytes, to.flip))
        }
    }

    /// Stores the first `columns` bytes of each of two rows, at most 32.
    ///
    /// # Safety
    /// The pointers are valid for as many bytes.
    #[inline(always)]
    pub(crate) unsafe fn store_rows(self, to: [*mut u8; 2], bytes: __m512i, columns: usize) {
        let mask = u32::MAX >> (32 - columns.min(32));
        // SAFETY: the token proves the instruction set; the caller vouches for the bytes.
        unsafe {
            _mm256_mask_storeu_epi8(to[0].cast(), mask, _mm512_castsi512_si256(bytes));
            _mm256_mask_storeu_epi8(to[1].cast(), mask, _mm512_extracti64x4_epi64(bytes, 1));
        }
    }

    /// The first `count` bytes as floats, at most a vector of them; zeros in the other lanes.
    ///
    /// # Safety
    /// The pointer is valid for as many bytes.
    #[inline(always)]
    pub(crate) unsafe fn floats_of<const SIGNED: bool>(self, p: *const u8, count: usize) -> __m512 {
        // SAFETY: the token proves the instruction set; the caller vouches for the bytes.
        unsafe {
            let bytes = _mm_maskz_loadu_epi8(self.0.tail(count), p.cast());
            _mm512_cvtepi32_ps(match SIGNED {
                true => _mm512_cvtepi8_epi32(bytes),
                false => _mm512_cvtepu8_epi32(bytes),
            })
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
#[inline(never)]
fn enter_vnni<K: DotKernel>(d: Vnni, kernel: K) -> K::Output {
    kernel.run(d)
}

impl DotInstructions for Vnni {
    type S = Avx512;
    type Pairs = NoPairs<__m512i, __m512i>;
    const TERMS: usize = 4;
    const FORM: LeftTerms = LeftTerms::Unsigned;
    const TILE_VECTORS: usize = 4;
    const TILE_ROWS: [usize; 2] = [12, 6];

    #[inline(always)]
    fn simd(self) -> Avx512 {
        self.0
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter_vnni(self, kernel) }
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> __m512i {
        // SAFETY: the token proves the instruction set; the caller vouches for 64 bytes.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    fn dot(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm512_dpbusd_epi32(sum, a, b) }
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> __m512i {
        // SAFETY: the token proves the instruction set; the caller vouches for 16 bytes.
        unsafe {
            let bytes = _mm_loadu_si128(p.cast());
            if signed { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) }
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, p: *mut u8, v: __m512i) {
        // SAFETY: the token proves the instruction set; the caller vouches for 16 bytes.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(v)) }
    }
    #[inline(always)]
    unsafe fn store_some_bytes(self, p: *mut u8, v: __m512i, count: usize) {
        let mask = self.0.tail(count);
        // SAFETY: the token proves the instruction set; the caller vouches for `count` bytes.
        unsafe { _mm_mask_storeu_epi8(p.cast(), mask, _mm512_cvtepi32_epi8(v)) }
    }
}

/// AVX2: 16-bit terms, two at a time. The instruction for bytes saturates its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2Dot(Avx2);

impl Avx2Dot {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        Avx2::new().map(Self)
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
fn enter_avx2<K: DotKernel>(d: Avx2Dot, kernel: K) -> K::Output {
    kernel.run(d)
}

impl DotInstructions for Avx2Dot {
    type S = Avx2;
    type Pairs = NoPairs<__m256i, __m256i>;
    const TERMS: usize = 2;
    const FORM: LeftTerms = LeftTerms::Wide;
    const TILE_VECTORS: usize = 2;
    const TILE_ROWS: [usize; 2] = [6, 6];

    #[inline(always)]
    fn simd(self) -> Avx2 {
        self.0
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter_avx2(self, kernel) }
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> __m256i {
        // SAFETY: the token proves the instruction set; the caller vouches for 16 bytes.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(p.cast())) }
    }
    #[inline(always)]
    fn dot(self, sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token proves the instruction set.
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)) }
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> __m256i {
        // SAFETY: the token proves the instruction set; the caller vouches for 8 bytes.
        unsafe {
            let bytes = _mm_loadl_epi64(p.cast());
            if signed { _mm256_cvtepi8_epi32(bytes) } else { _mm256_cvtepu8_epi32(bytes) }
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, p: *mut u8, v: __m256i) {
        // SAFETY: the token proves the instruction set; the caller vouches for 8 bytes.
        unsafe {
            let last = -1;
            let low = _mm256_setr_epi8(
                0, 4, 8, 12, last, last, last, last, last, last, last, last, last, last, last,
                last, 0, 4, 8, 12, last, last, last, last, last, last, last, last, last, last,
                last, last,
            );
            let bytes = _mm256_shuffle_epi8(v, low);
            let both = _mm_unpacklo_epi32(
                _mm256_castsi256_si128(bytes),
                _mm256_extracti128_si256(bytes, 1),
            );
            _mm_storel_epi64(p.cast(), both);
        }
    }
}

const _: () = assert!(Avx512::LANES == 16 && Avx2::LANES == 8);

//! Advanced SIMD (NEON): 4 lanes of `f32`, 32 registers.

use super::{IsaKernel, Simd};
use std::arch::aarch64::*;

/// Advanced SIMD, which every 64-bit Arm processor that this crate meets has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

type F = float32x4_t;
type I = int32x4_t;
type M = uint32x4_t;

impl Neon {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

#[target_feature(enable = "neon")]
#[inline(never)]
fn enter<K: IsaKernel>(s: Neon, kernel: K) -> K::Output {
    kernel.run(s)
}

impl Simd for Neon {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 4;
    const TILE_ROWS_BY_VECTORS: [usize; 4] = [12, 12, 8, Self::TILE_ROWS];
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
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { vld1q_f32(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { vst1q_f32(p, v) }
    }
    #[inline(always)]
    fn tail(self, n: usize) -> M {
        let lanes: [u32; 4] = std::array::from_fn(|i| if i < n { u32::MAX } else { 0 });
        // SAFETY: the token proves the instruction set; the array has four lanes.
        unsafe { vld1q_u32(lanes.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn load_tail(self, p: *const f32, m: M) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the chosen lanes.
        unsafe {
            let mut lanes = [0.0f32; 4];
            let mut chosen = [0u32; 4];
            vst1q_u32(chosen.as_mut_ptr(), m);
            for i in 0..4 {
                if chosen[i] != 0 {
                    lanes[i] = *p.add(i);
                }
            }
            vld1q_f32(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_tail(self, p: *mut f32, m: M, v: F) {
        // SAFETY: the token proves the instruction set; the caller vouches for the chosen lanes.
        unsafe {
            let mut lanes = [0.0f32; 4];
            let mut chosen = [0u32; 4];
            vst1q_f32(lanes.as_mut_ptr(), v);
            vst1q_u32(chosen.as_mut_ptr(), m);
            for i in 0..4 {
                if chosen[i] != 0 {
                    *p.add(i) = lanes[i];
                }
            }
        }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vsubq_f32(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vdivq_f32(a, b) }
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vbslq_f32(vcltq_f32(a, b), a, b) }
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    fn fnma(self, a: F, b: F, c: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vfmsq_f32(c, a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vsqrtq_f32(a) }
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vrndnq_f32(a) }
    }
    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        // SAFETY: the token proves the instruction set.
        unsafe { vcltq_f32(a, b) }
    }
    #[inline(always)]
    fn any(self, m: M) -> bool {
        // SAFETY: the token proves the instruction set.
        unsafe { vmaxvq_u32(m) != 0 }
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vbslq_f32(m, a, b) }
    }
    #[inline(always)]
    fn scale_pow2(self, v: F, n: F) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe {
            // Two factors keep each a normal number.
            let n = vcvtnq_s32_f32(n);
            let half = vshrq_n_s32::<1>(n);
            let bias = vdupq_n_s32(127);
            let first = vshlq_n_s32::<23>(vaddq_s32(half, bias));
            let second = vshlq_n_s32::<23>(vaddq_s32(vsubq_s32(n, half), bias));
            let v = vmulq_f32(v, vreinterpretq_f32_s32(first));
            vmulq_f32(v, vreinterpretq_f32_s32(second))
        }
    }
    #[inline(always)]
    fn bits(self, a: F) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vreinterpretq_s32_f32(a) }
    }
    #[inline(always)]
    fn of_bits(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vreinterpretq_f32_s32(a) }
    }
    #[inline(always)]
    fn splat_i(self, value: i32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vdupq_n_s32(value) }
    }
    #[inline(always)]
    fn add_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vaddq_s32(a, b) }
    }
    #[inline(always)]
    fn mul_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vmulq_s32(a, b) }
    }
    #[inline(always)]
    fn and_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vandq_s32(a, b) }
    }
    #[inline(always)]
    fn or_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vorrq_s32(a, b) }
    }
    #[inline(always)]
    fn xor_i(self, a: I, b: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { veorq_s32(a, b) }
    }
    #[inline(always)]
    fn shift_right(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let by = vdupq_n_s32(bits.cast_signed().wrapping_neg());
            vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), by))
        }
    }
    #[inline(always)]
    fn shift_left(self, a: I, bits: u32) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vshlq_s32(a, vdupq_n_s32(bits.cast_signed())) }
    }
    #[inline(always)]
    fn shr23(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vshrq_n_s32::<23>(a) }
    }
    #[inline(always)]
    fn shl16(self, a: I) -> I {
        // SAFETY: the token proves the instruction set.
        unsafe { vshlq_n_s32::<16>(a) }
    }
    #[inline(always)]
    fn to_float(self, a: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe { vcvtq_f32_s32(a) }
    }
    #[inline(always)]
    unsafe fn load_four(self, p: *const f32) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { vld1q_f32(p) }
    }
    #[inline(always)]
    fn picks(self, bits: I) -> I {
        let low = self.and_i(bits, self.splat_i(3));
        // Four bytes of each value.
        self.add_i(self.mul_i(low, self.splat_i(0x0404_0404)), self.splat_i(0x0302_0100))
    }
    #[inline(always)]
    fn pick(self, four: F, picks: I) -> F {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let bytes = vqtbl1q_u8(vreinterpretq_u8_f32(four), vreinterpretq_u8_s32(picks));
            vreinterpretq_f32_u8(bytes)
        }
    }
    #[inline(always)]
    fn reduce_add(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe { vaddvq_f32(a) }
    }
    #[inline(always)]
    fn reduce_max(self, a: F) -> f32 {
        // SAFETY: the token proves the instruction set.
        unsafe { vmaxvq_f32(a) }
    }
    #[inline(always)]
    unsafe fn load_bf16(self, p: *const u16) -> F {
        // SAFETY: the token proves the instruction set; the caller vouches for the memory.
        unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(p))) }
    }
    #[inline(always)]
    fn look_up(self, table: &[u8; 16], indices: I) -> I {
        // SAFETY: the token proves the instruction set; the table has 16 bytes.
        unsafe {
            vreinterpretq_s32_u8(vqtbl1q_u8(
                vld1q_u8(table.as_ptr()),
                vreinterpretq_u8_s32(indices),
            ))
        }
    }
    #[inline(always)]
    unsafe fn load_f16(self, p: *const u16) -> F {
        let wide: F;
        // The intrinsic is not stable yet.
        // SAFETY: the token proves the instruction set, which has this conversion from its start; the
        // caller vouches for the memory.
        unsafe {
            std::arch::asm!(
                "fcvtl {wide:v}.4s, {half:v}.4h",
                wide = out(vreg) wide,
                half = in(vreg) vld1_u16(p),
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        wide
    }
    #[inline(always)]
    unsafe fn transpose_block(self, src: *const f32, ss: usize, dst: *mut f32, ds: usize) {
        // SAFETY: the token proves the instruction set; the caller vouches for 4 rows of 4.
        unsafe {
            let r0 = vld1q_f32(src);
            let r1 = vld1q_f32(src.add(ss));
            let r2 = vld1q_f32(src.add(2 * ss));
            let r3 = vld1q_f32(src.add(3 * ss));
            let a = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1));
            let b = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1));
            let c = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3));
            let d = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
            vst1q_f32(dst, vreinterpretq_f32_f64(vtrn1q_f64(a, c)));
            vst1q_f32(dst.add(ds), vreinterpretq_f32_f64(vtrn1q_f64(b, d)));
            vst1q_f32(dst.add(2 * ds), vreinterpretq_f32_f64(vtrn2q_f64(a, c)));
            vst1q_f32(dst.add(3 * ds), vreinterpretq_f32_f64(vtrn2q_f64(b, d)));
        }
    }
}

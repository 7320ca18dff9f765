//! BF16 products of Advanced SIMD: `BFDOT`, which Apple chips have from the M2 on.

use super::{Bf16Instructions, Bf16Kernel, Neon, NoPairs};
use std::arch::aarch64::*;
use std::arch::asm;

/// Advanced SIMD with BF16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeonBf16(Neon);

impl NeonBf16 {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = std::arch::is_aarch64_feature_detected!("bf16");
        Neon::new().filter(|_| found).map(Self)
    }
}

#[target_feature(enable = "neon,bf16")]
#[inline(never)]
fn enter<K: Bf16Kernel>(d: NeonBf16, kernel: K) -> K::Output {
    kernel.run(d)
}

impl Bf16Instructions for NeonBf16 {
    type S = Neon;
    type Pairs = NoPairs<float32x4_t, int32x4_t>;
    const TILE_ROWS: usize = 4;
    const TILE_COLUMNS: usize = 16;

    #[inline(always)]
    fn simd(self) -> Neon {
        self.0
    }
    #[inline(always)]
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter(self, kernel) }
    }
    #[inline(always)]
    fn dot(self, sum: float32x4_t, a: int32x4_t, b: int32x4_t) -> float32x4_t {
        let mut sum = sum;
        // The intrinsic is not stable yet.
        // SAFETY: the token proves the instruction, which only writes its first register.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfdot {sum:v}.4s, {a:v}.8h, {b:v}.8h",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
    #[inline(always)]
    unsafe fn narrow(self, x: *const f32, y: *mut u16) {
        for i in (0..32).step_by(8) {
            // SAFETY: the token proves the instructions; the caller vouches for the memory.
            unsafe {
                let low = vld1q_f32(x.add(i));
                let high = vld1q_f32(x.add(i + 4));
                let both: uint16x8_t;
                asm!(
                    ".arch_extension bf16",
                    "bfcvtn {y:v}.4h, {low:v}.4s",
                    "bfcvtn2 {y:v}.8h, {high:v}.4s",
                    y = out(vreg) both,
                    low = in(vreg) low,
                    high = in(vreg) high,
                    options(pure, nomem, nostack, preserves_flags),
                );
                vst1q_u16(y.add(i), both);
            }
        }
    }
}

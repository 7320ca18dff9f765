//! Integer products of Advanced SIMD: the dot-product extension, which every Apple chip has.

use super::{DotInstructions, DotKernel, LeftTerms, Neon, NoPairs};
use std::arch::aarch64::*;
use std::arch::asm;

/// Advanced SIMD with `SDOT`: signed bytes, four at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeonDot(Neon);

impl NeonDot {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = std::arch::is_aarch64_feature_detected!("dotprod");
        Neon::new().filter(|_| found).map(Self)
    }
}

#[target_feature(enable = "neon,dotprod")]
#[inline(never)]
fn enter<K: DotKernel>(d: NeonDot, kernel: K) -> K::Output {
    kernel.run(d)
}

impl DotInstructions for NeonDot {
    type S = Neon;
    type Pairs = NoPairs<int32x4_t, int32x4_t>;
    const TERMS: usize = 4;
    const FORM: LeftTerms = LeftTerms::Signed;
    const TILE_VECTORS: usize = 4;
    const TILE_ROWS: [usize; 2] = [12, 6];

    #[inline(always)]
    fn simd(self) -> Neon {
        self.0
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter(self, kernel) }
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> int32x4_t {
        // SAFETY: the token proves the instruction set; the caller vouches for 16 bytes.
        unsafe { vreinterpretq_s32_s8(vld1q_s8(p)) }
    }
    #[inline(always)]
    fn dot(self, sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        let mut sum = sum;
        // The intrinsic is not stable yet.
        // SAFETY: the token proves the instruction, which only writes its first register.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                sum = inout(vreg) sum,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> int32x4_t {
        // SAFETY: the token proves the instruction set; the caller vouches for 4 bytes.
        unsafe {
            let word = vdup_n_u32(p.cast::<u32>().read_unaligned());
            if signed {
                vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(word))))
            } else {
                let wide = vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(word))));
                vreinterpretq_s32_u32(wide)
            }
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, p: *mut u8, v: int32x4_t) {
        // SAFETY: the token proves the instruction set; the caller vouches for 4 bytes.
        unsafe {
            let narrow = vmovn_s32(v);
            let bytes = vmovn_s16(vcombine_s16(narrow, narrow));
            p.cast::<u32>().write_unaligned(vget_lane_u32::<0>(vreinterpret_u32_s8(bytes)));
        }
    }
}

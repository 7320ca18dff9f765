//! Matrix products of Advanced SIMD: `SMMLA` and `BFMMLA`, which Apple chips have from the M2 on.
//!
//! Source: Arm Architecture Reference Manual for A-profile, SMMLA (vector) and BFMMLA.

use super::{
    Bf16Instructions, Bf16Kernel, DotInstructions, DotKernel, LeftTerms, Neon, NeonBf16, NeonDot,
    PairInstructions,
};
use std::arch::aarch64::*;
use std::arch::asm;

/// Two rows of 8 bytes.
///
/// # Safety
/// The processor has Advanced SIMD; the rows are valid for 8 bytes each.
#[inline(always)]
unsafe fn load_rows(rows: [*const u8; 2]) -> int32x4_t {
    // SAFETY: the caller vouches for both.
    unsafe { vreinterpretq_s32_u8(vcombine_u8(vld1_u8(rows[0]), vld1_u8(rows[1]))) }
}

/// Lane beside lane.
///
/// # Safety
/// The processor has Advanced SIMD.
#[inline(always)]
unsafe fn side_by_side(x: int32x4_t, y: int32x4_t) -> [int32x4_t; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe { [vzip1q_s32(x, y), vzip2q_s32(x, y)] }
}

/// Advanced SIMD with `SMMLA`: signed bytes, two rows by two columns of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct I8mm(NeonDot);

impl I8mm {
    /// The token, where the processor has these instructions.
    #[must_use]
    pub fn new() -> Option<Self> {
        let found = std::arch::is_aarch64_feature_detected!("i8mm");
        NeonDot::new().filter(|_| found).map(Self)
    }
}

#[target_feature(enable = "neon,dotprod,i8mm")]
#[inline(never)]
fn enter_i8mm<K: DotKernel>(d: I8mm, kernel: K) -> K::Output {
    kernel.run(d)
}

impl DotInstructions for I8mm {
    type S = Neon;
    type Pairs = Self;
    const TERMS: usize = NeonDot::TERMS;
    const GROUP: usize = 8;
    const FORM: LeftTerms = LeftTerms::Signed;
    const TILE_VECTORS: usize = 4;
    const TILE_ROWS: [usize; 2] = [12, 6];

    #[inline(always)]
    fn simd(self) -> Neon {
        self.0.simd()
    }
    #[inline(always)]
    fn pairs(self) -> Option<Self> {
        Some(self)
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter_i8mm(self, kernel) }
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> int32x4_t {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.0.load_terms(p) }
    }
    #[inline(always)]
    fn dot(self, sum: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        self.0.dot(sum, a, b)
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> int32x4_t {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.0.load_bytes(p, signed) }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, p: *mut u8, v: int32x4_t) {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.0.store_bytes(p, v) }
    }
}

impl PairInstructions for I8mm {
    type Sum = int32x4_t;
    type Terms = int32x4_t;

    #[inline(always)]
    unsafe fn load_rows(self, rows: [*const u8; 2]) -> int32x4_t {
        // SAFETY: the token proves the instruction set; the caller vouches for the rows.
        unsafe { load_rows(rows) }
    }
    #[inline(always)]
    fn side_by_side(self, x: int32x4_t, y: int32x4_t) -> [int32x4_t; 2] {
        // SAFETY: the token proves the instruction set.
        unsafe { side_by_side(x, y) }
    }
    #[inline(always)]
    fn multiply(self, sum: int32x4_t, rows: int32x4_t, columns: int32x4_t) -> int32x4_t {
        let mut sum = sum;
        // The intrinsic is not stable yet.
        // SAFETY: the token proves the instruction, which only writes its first register.
        unsafe {
            asm!(
                ".arch_extension i8mm",
                "smmla {sum:v}.4s, {rows:v}.16b, {columns:v}.16b",
                sum = inout(vreg) sum,
                rows = in(vreg) rows,
                columns = in(vreg) columns,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
    #[inline(always)]
    fn rows(self, squares: [int32x4_t; 2]) -> [int32x4_t; 2] {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let [x, y] = squares.map(|square| vreinterpretq_s64_s32(square));
            [vzip1q_s64(x, y), vzip2q_s64(x, y)].map(|row| vreinterpretq_s32_s64(row))
        }
    }
}

/// Advanced SIMD with `BFMMLA`: BF16, two rows by two columns of 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bfmmla(NeonBf16);

impl Bfmmla {
    /// The token, where the processor has these instructions: they come with [`NeonBf16`].
    #[must_use]
    pub fn new() -> Option<Self> {
        NeonBf16::new().map(Self)
    }

    /// The instructions on single rows.
    #[must_use]
    pub fn vectors(self) -> NeonBf16 {
        self.0
    }
}

#[target_feature(enable = "neon,bf16")]
#[inline(never)]
fn enter_bfmmla<K: Bf16Kernel>(d: Bfmmla, kernel: K) -> K::Output {
    kernel.run(d)
}

impl Bf16Instructions for Bfmmla {
    type S = Neon;
    type Pairs = Self;
    const TILE_ROWS: usize = 12;
    const TILE_COLUMNS: usize = 8;

    #[inline(always)]
    fn simd(self) -> Neon {
        self.0.simd()
    }
    #[inline(always)]
    fn pairs(self) -> Option<Self> {
        Some(self)
    }
    #[inline(always)]
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: the token proves that the processor has the features.
        unsafe { enter_bfmmla(self, kernel) }
    }
    #[inline(always)]
    fn dot(self, sum: float32x4_t, a: int32x4_t, b: int32x4_t) -> float32x4_t {
        self.0.dot(sum, a, b)
    }
    #[inline(always)]
    unsafe fn narrow(self, x: *const f32, y: *mut u16) {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.0.narrow(x, y) }
    }
}

impl PairInstructions for Bfmmla {
    type Sum = float32x4_t;
    type Terms = int32x4_t;

    #[inline(always)]
    unsafe fn load_rows(self, rows: [*const u8; 2]) -> int32x4_t {
        // SAFETY: the token proves the instruction set; the caller vouches for the rows.
        unsafe { load_rows(rows) }
    }
    #[inline(always)]
    fn side_by_side(self, x: int32x4_t, y: int32x4_t) -> [int32x4_t; 2] {
        // SAFETY: the token proves the instruction set.
        unsafe { side_by_side(x, y) }
    }
    #[inline(always)]
    fn multiply(self, sum: float32x4_t, rows: int32x4_t, columns: int32x4_t) -> float32x4_t {
        let mut sum = sum;
        // The intrinsic is not stable yet.
        // SAFETY: the token proves the instruction, which only writes its first register.
        unsafe {
            asm!(
                ".arch_extension bf16",
                "bfmmla {sum:v}.4s, {rows:v}.8h, {columns:v}.8h",
                sum = inout(vreg) sum,
                rows = in(vreg) rows,
                columns = in(vreg) columns,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }
    #[inline(always)]
    fn rows(self, squares: [float32x4_t; 2]) -> [float32x4_t; 2] {
        // SAFETY: the token proves the instruction set.
        unsafe {
            let [x, y] = squares.map(|square| vreinterpretq_f64_f32(square));
            [vzip1q_f64(x, y), vzip2q_f64(x, y)].map(|row| vreinterpretq_f32_f64(row))
        }
    }
}

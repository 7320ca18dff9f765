//! Sums of products of BF16: the instructions that such matrix products are made of.

use std::fmt::Debug;

use super::amx::Amx;
use super::{Isa, NoPairs, PairInstructions, Simd};

#[cfg(target_arch = "aarch64")]
use super::bf16_neon::NeonBf16;
#[cfg(target_arch = "x86_64")]
use super::bf16_x86::Avx512Bf16;
#[cfg(target_arch = "aarch64")]
use super::pairs_neon::Bfmmla;

/// Algorithm to be compiled for each set of BF16 instructions; like [`super::IsaKernel`].
pub trait Bf16Kernel {
    /// The result of the algorithm.
    type Output;
    /// The algorithm, in terms of `D`.
    fn run<D: Bf16Instructions>(self, d: D) -> Self::Output;
}

/// A set of instructions on pairs of BF16, as a token.
pub trait Bf16Instructions: Copy + Send + Sync + Debug + 'static {
    /// The vectors around the products.
    type S: Simd;
    /// Products of a pair of rows by a pair of columns, where there are such instructions.
    type Pairs: PairInstructions<Sum = <Self::S as Simd>::F, Terms = <Self::S as Simd>::I>;
    /// Rows of the register tile.
    const TILE_ROWS: usize;
    /// Columns of the register tile: 8, 16 or 32.
    const TILE_COLUMNS: usize;

    /// The vectors.
    fn simd(self) -> Self::S;

    /// Products of pairs of rows and columns: matrix products are made of them where there are any.
    #[inline(always)]
    fn pairs(self) -> Option<Self::Pairs> {
        None
    }

    /// Runs `kernel` as a function of its own, compiled with these instructions.
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output;

    /// `sum + a0 b0 + a1 b1`, where each lane of `a` and `b` holds a pair.
    fn dot(
        self,
        sum: <Self::S as Simd>::F,
        a: <Self::S as Simd>::I,
        b: <Self::S as Simd>::I,
    ) -> <Self::S as Simd>::F;

    /// Converts 32 values to the nearest BF16, ties to even.
    ///
    /// # Safety
    /// `x` is valid for reading 32 values, `y` for writing as many.
    unsafe fn narrow(self, x: *const f32, y: *mut u16);
}

/// A set of BF16 instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bf16Isa {
    /// Tiles of AMX for many rows, AVX-512 with BF16 for few and around them.
    #[cfg(target_arch = "x86_64")]
    Amx(Amx, Avx512Bf16),
    /// AVX-512 with BF16: 32 products an instruction.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512Bf16),
    /// Advanced SIMD with matrix products of BF16: 16 products an instruction.
    #[cfg(target_arch = "aarch64")]
    Bfmmla(Bfmmla),
    /// Advanced SIMD with BF16: 8 products an instruction.
    #[cfg(target_arch = "aarch64")]
    Neon(NeonBf16),
    /// Products of FP32 after widening.
    Widened(Isa),
}

impl Bf16Isa {
    /// The best BF16 instructions of this processor that are no newer than `isa`.
    #[must_use]
    pub fn of(isa: Isa) -> Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => match (Amx::new(), Avx512Bf16::new()) {
                (Some(amx), Some(vectors)) => Self::Amx(amx, vectors),
                (None, Some(vectors)) => Self::Avx512(vectors),
                _ => Self::Widened(isa),
            },
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => Bfmmla::new().map_or(Self::Widened(isa), Self::Bfmmla),
            _ => Self::Widened(isa),
        }
    }

    /// Every set of this processor, best first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        for isa in Isa::available() {
            let best = Self::of(isa);
            #[cfg(target_arch = "x86_64")]
            if let Self::Amx(_, vectors) = best {
                found.extend([best, Self::Avx512(vectors)]);
            }
            #[cfg(target_arch = "aarch64")]
            if let Self::Bfmmla(pairs) = best {
                found.extend([best, Self::Neon(pairs.vectors())]);
            }
            found.extend([best, Self::Widened(isa)]);
        }
        found.dedup();
        found
    }

    /// A short name for traces and bench output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx(..) => "amx-bf16",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512-bf16",
            #[cfg(target_arch = "aarch64")]
            Self::Bfmmla(_) => "neon-bfmmla",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon-bf16",
            Self::Widened(isa) => isa.name(),
        }
    }

    /// Returns whether the processor multiplies BF16 as they are.
    #[must_use]
    pub fn has_products(self) -> bool {
        !matches!(self, Self::Widened(_))
    }

    /// The tiles of AMX, where these instructions have them.
    pub(crate) fn amx(self) -> Option<Amx> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx(amx, _) => Some(amx),
            _ => None,
        }
    }

    /// Runs `kernel` compiled for these instructions.
    #[inline]
    pub fn run<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx(_, d) | Self::Avx512(d) => d.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Bfmmla(d) => d.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(d) => d.enter(kernel),
            Self::Widened(isa) => isa.run(WideningKernel(kernel)),
        }
    }
}

/// Products of FP32 in place of those of BF16.
#[derive(Clone, Copy, Debug)]
pub struct WidenedBf16<S>(S);

/// A BF16 algorithm for instruction sets that have none.
struct WideningKernel<K>(K);

impl<K: Bf16Kernel> super::IsaKernel for WideningKernel<K> {
    type Output = K::Output;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> K::Output {
        self.0.run(WidenedBf16(s))
    }
}

/// The nearest BF16, ties to even; a NaN stays one.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "the upper half")]
pub(crate) fn nearest(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    if x.is_nan() { (bits >> 16) as u16 | 0x40 } else { (rounded >> 16) as u16 }
}

impl<S: Simd> Bf16Instructions for WidenedBf16<S> {
    type S = S;
    type Pairs = NoPairs<S::F, S::I>;
    const TILE_ROWS: usize = 4;
    const TILE_COLUMNS: usize = 16;

    #[inline(always)]
    fn simd(self) -> S {
        self.0
    }
    #[inline(always)]
    fn enter<K: Bf16Kernel>(self, kernel: K) -> K::Output {
        self.0.enter(WideningKernel(kernel))
    }
    #[inline(always)]
    fn dot(self, sum: S::F, a: S::I, b: S::I) -> S::F {
        let s = self.0;
        let upper = s.splat_i(-0x1_0000);
        let low = |x| s.of_bits(s.shl16(x));
        let high = |x| s.of_bits(s.and_i(x, upper));
        s.fma(high(a), high(b), s.fma(low(a), low(b), sum))
    }
    #[inline(always)]
    unsafe fn narrow(self, x: *const f32, y: *mut u16) {
        // SAFETY: the caller vouches for both; arrays of numbers align as these.
        let (x, y) = unsafe { (&*x.cast::<[f32; 32]>(), &mut *y.cast::<[u16; 32]>()) };
        for (y, &x) in y.iter_mut().zip(x) {
            *y = nearest(x);
        }
    }
}

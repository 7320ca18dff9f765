//! Sets of BF16 instructions that this processor has.

use super::Isa;
use super::amx::Amx;
use super::bf16::{Bf16Instructions, Bf16Kernel};
use super::bf16_widened::WideningKernel;

#[cfg(target_arch = "aarch64")]
use super::bf16_neon::NeonBf16;
#[cfg(target_arch = "x86_64")]
use super::bf16_x86::Avx512Bf16;
#[cfg(target_arch = "aarch64")]
use super::pairs_neon::Bfmmla;

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

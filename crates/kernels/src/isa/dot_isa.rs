//! Sets of integer instructions that this processor has.

use super::dot::{DotInstructions, DotKernel};
use super::{Isa, Portable};

#[cfg(target_arch = "x86_64")]
use super::amx::Amx;
#[cfg(target_arch = "aarch64")]
use super::dot_neon::NeonDot;
#[cfg(target_arch = "x86_64")]
use super::dot_x86::{Avx2Dot, Vnni};
#[cfg(target_arch = "aarch64")]
use super::pairs_neon::I8mm;

/// A set of integer instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DotIsa {
    /// Tiles of AMX for many rows, VNNI for few and around them.
    #[cfg(target_arch = "x86_64")]
    Amx(Amx, Vnni),
    /// AVX-512 with VNNI: 64 products an instruction.
    #[cfg(target_arch = "x86_64")]
    Vnni(Vnni),
    /// AVX2: 16 products an instruction.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2Dot),
    /// Advanced SIMD with 8-bit matrix products: 32 products an instruction.
    #[cfg(target_arch = "aarch64")]
    I8mm(I8mm),
    /// Advanced SIMD with dot products: 16 products an instruction.
    #[cfg(target_arch = "aarch64")]
    Neon(NeonDot),
    /// Plain Rust.
    Portable(Portable),
}

impl DotIsa {
    /// The integer instructions that go with an instruction set: the best of this processor that
    /// are no newer.
    #[must_use]
    pub fn of(isa: Isa) -> Self {
        let found = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => match (Amx::new(), Vnni::new()) {
                (Some(amx), Some(vectors)) => Some(Self::Amx(amx, vectors)),
                (None, Some(vectors)) => Some(Self::Vnni(vectors)),
                _ => Avx2Dot::new().map(Self::Avx2),
            },
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => Avx2Dot::new().map(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => I8mm::new().map(Self::I8mm).or_else(|| NeonDot::new().map(Self::Neon)),
            Isa::Portable(_) => None,
        };
        found.unwrap_or(Self::Portable(Portable))
    }

    /// Every set of this processor, best first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        for isa in Isa::available() {
            let best = Self::of(isa);
            found.push(best);
            #[cfg(target_arch = "x86_64")]
            if let Self::Amx(_, vectors) = best {
                found.push(Self::Vnni(vectors));
            }
            #[cfg(target_arch = "aarch64")]
            if matches!(best, Self::I8mm(_)) {
                found.extend(NeonDot::new().map(Self::Neon));
            }
        }
        found.dedup();
        found
    }

    /// A short name for traces and bench output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx(..) => "amx-int8",
            #[cfg(target_arch = "x86_64")]
            Self::Vnni(_) => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::I8mm(_) => "neon-i8mm",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon-dot",
            Self::Portable(_) => "portable",
        }
    }

    /// Runs `kernel` compiled for these instructions.
    #[inline]
    pub fn run<K: DotKernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Amx(_, d) | Self::Vnni(d) => d.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(d) => d.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::I8mm(d) => d.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(d) => d.enter(kernel),
            Self::Portable(d) => DotInstructions::enter(d, kernel),
        }
    }
}

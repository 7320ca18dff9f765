//! Instruction sets proved by type: a token exists only on a processor that has it.

mod amx;
mod bf16;
mod bf16_isa;
mod bf16_widened;
mod dot;
mod dot_isa;
mod dot_portable;
mod pairs;
mod portable;
mod simd;

#[cfg(target_arch = "aarch64")]
mod bf16_neon;
#[cfg(target_arch = "x86_64")]
mod bf16_x86;
#[cfg(target_arch = "aarch64")]
mod dot_neon;
#[cfg(target_arch = "x86_64")]
mod dot_x86;
#[cfg(target_arch = "aarch64")]
mod pairs_neon;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

pub use amx::Amx;
pub(crate) use amx::{TILE_BYTES, TILE_ROWS as AMX_ROWS, TileBlock, TileExtent, TileTerms};
#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use bf16::{Bf16Instructions, Bf16Kernel};
pub use bf16_isa::Bf16Isa;
#[cfg(target_arch = "aarch64")]
pub use bf16_neon::NeonBf16;
pub use bf16_widened::WidenedBf16;
#[cfg(target_arch = "x86_64")]
pub use bf16_x86::Avx512Bf16;
pub use dot::{DotInstructions, DotKernel, LeftTerms};
pub use dot_isa::DotIsa;
#[cfg(target_arch = "aarch64")]
pub use dot_neon::NeonDot;
#[cfg(target_arch = "x86_64")]
pub use dot_x86::{Avx2Dot, Vnni};
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use pairs::{NoPairs, PairInstructions};
#[cfg(target_arch = "aarch64")]
pub use pairs_neon::{Bfmmla, I8mm};
pub use portable::Portable;
pub use simd::Simd;
pub(crate) use simd::nearest;

/// An algorithm to be compiled for each instruction set.
///
/// `run` must be `#[inline(always)]`, as must what it calls down to the vector operations:
/// only then does its code get the target features of [`Isa::run`].
pub trait IsaKernel {
    /// The result of the algorithm.
    type Output;
    /// The algorithm, in terms of `S`.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// AVX-512 (F, BW, DQ, VL): 16 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// AVX2 with FMA and F16C: 8 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Advanced SIMD: 4 lanes.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    /// Plain Rust that the compiler vectorises for the baseline: 4 lanes.
    Portable(Portable),
}

impl Isa {
    /// The best instruction set of this processor.
    #[must_use]
    pub fn detect() -> Self {
        Self::available().first().copied().unwrap_or(Self::Portable(Portable))
    }

    /// Every instruction set of this processor, best first; the last is always `Portable`.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            found.extend(Avx512::new().map(Self::Avx512));
            found.extend(Avx2::new().map(Self::Avx2));
        }
        #[cfg(target_arch = "aarch64")]
        found.extend(Neon::new().map(Self::Neon));
        found.push(Self::Portable(Portable));
        found
    }

    /// A short name for traces and bench output: `avx512`, `avx2`, `neon` or `portable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
            Self::Portable(_) => "portable",
        }
    }

    /// Number of `f32` lanes in a vector.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Avx512::LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Avx2::LANES,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Neon::LANES,
            Self::Portable(_) => Portable::LANES,
        }
    }

    /// Width in columns of the matrix-product register tile, which packed weights are cut into.
    #[must_use]
    pub fn tile_columns(self) -> usize {
        fn width<S: Simd>(_: S) -> usize {
            S::LANES * S::TILE_VECTORS
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(s) => width(s),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(s) => width(s),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(s) => width(s),
            Self::Portable(s) => width(s),
        }
    }

    /// Rows of the matrix-product register tile.
    #[must_use]
    pub fn tile_rows(self) -> usize {
        fn rows<S: Simd>(_: S) -> usize {
            S::TILE_ROWS
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(s) => rows(s),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(s) => rows(s),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(s) => rows(s),
            Self::Portable(s) => rows(s),
        }
    }

    /// Runs `kernel` compiled for this instruction set.
    #[inline]
    pub fn run<K: IsaKernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(s) => s.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(s) => s.enter(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(s) => s.enter(kernel),
            Self::Portable(s) => Simd::enter(s, kernel),
        }
    }
}

#[cfg(test)]
mod tests;

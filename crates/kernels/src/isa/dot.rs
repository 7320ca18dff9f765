//! Sums of products of bytes: the instructions that integer matrix products are made of.

use std::fmt::Debug;

use super::{Isa, NoPairs, PairInstructions, Portable, Simd};

#[cfg(target_arch = "x86_64")]
use super::amx::Amx;
#[cfg(target_arch = "aarch64")]
use super::dot_neon::NeonDot;
#[cfg(target_arch = "x86_64")]
use super::dot_x86::{Avx2Dot, Vnni};
#[cfg(target_arch = "aarch64")]
use super::pairs_neon::I8mm;

/// Algorithm to be compiled for each set of integer instructions; like [`super::Kernel`].
pub trait DotKernel {
    /// The result of the algorithm.
    type Output;
    /// The algorithm, in terms of `D`.
    fn run<D: DotInstructions>(self, d: D) -> Self::Output;
}

/// Form of the left-hand terms that the instructions take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftTerms {
    /// Bytes from 0 to 255.
    Unsigned,
    /// Bytes from -128 to 127.
    Signed,
    /// Two bytes for each term, which hold either.
    Wide,
}

/// A set of integer instructions, as a token. The right-hand terms are always signed bytes.
pub trait DotInstructions: Copy + Send + Sync + Debug + 'static {
    /// The vectors around the products.
    type S: Simd;
    /// Products of a pair of rows by a pair of columns, where there are such instructions.
    type Pairs: PairInstructions<Sum = <Self::S as Simd>::I, Terms = <Self::S as Simd>::I>;
    /// Products that a lane adds up at once.
    const TERMS: usize;
    /// Terms of a column that lie together in a packed panel.
    const GROUP: usize = Self::TERMS;
    /// The left-hand terms: a lane takes [`DotInstructions::TERMS`] of them, 32 bits.
    const FORM: LeftTerms;
    /// Vectors in a row of the register tile.
    const TILE_VECTORS: usize;
    /// Rows of the register tile that is one or two vectors wide, and of wider ones.
    const TILE_ROWS: [usize; 2];

    /// The vectors.
    fn simd(self) -> Self::S;

    /// Products of pairs of rows and columns: matrix products are made of them where there are any.
    #[inline(always)]
    fn pairs(self) -> Option<Self::Pairs> {
        None
    }

    /// Runs `kernel` as a function of its own, compiled with these instructions.
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output;

    /// Loads right-hand terms: [`DotInstructions::TERMS`] adjacent bytes for each lane.
    ///
    /// # Safety
    /// `p` is valid for reading them.
    unsafe fn load_terms(self, p: *const i8) -> <Self::S as Simd>::I;

    /// Adds the products of the terms of each lane to it, wrapping.
    fn dot(
        self,
        sum: <Self::S as Simd>::I,
        a: <Self::S as Simd>::I,
        b: <Self::S as Simd>::I,
    ) -> <Self::S as Simd>::I;

    /// Loads a byte for each lane.
    ///
    /// # Safety
    /// `p` is valid for reading them.
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> <Self::S as Simd>::I;

    /// Stores the lowest byte of each lane.
    ///
    /// # Safety
    /// `p` is valid for writing them.
    unsafe fn store_bytes(self, p: *mut u8, v: <Self::S as Simd>::I);

    /// Stores the lowest byte of each of the first `count` lanes, fewer than a vector has.
    ///
    /// # Safety
    /// `p` is valid for writing them.
    #[inline(always)]
    unsafe fn store_some_bytes(self, p: *mut u8, v: <Self::S as Simd>::I, count: usize) {
        let mut lanes = [0_u8; 16];
        // SAFETY: a vector has at most 16 lanes; the caller vouches for `count` bytes.
        unsafe {
            self.store_bytes(lanes.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, count);
        }
    }
}

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

#[inline(never)]
fn enter_portable<K: DotKernel>(d: Portable, kernel: K) -> K::Output {
    kernel.run(d)
}

/// Two 16-bit halves of a word.
#[inline(always)]
fn halves(word: i32) -> [i32; 2] {
    [(word << 16) >> 16, word >> 16]
}

impl DotInstructions for Portable {
    type S = Self;
    type Pairs = NoPairs<[i32; 4], [i32; 4]>;
    const TERMS: usize = 2;
    const FORM: LeftTerms = LeftTerms::Wide;
    const TILE_VECTORS: usize = 2;
    const TILE_ROWS: [usize; 2] = [4, 4];

    #[inline(always)]
    fn simd(self) -> Self {
        self
    }
    #[inline(always)]
    fn enter<K: DotKernel>(self, kernel: K) -> K::Output {
        enter_portable(self, kernel)
    }
    #[inline(always)]
    unsafe fn load_terms(self, p: *const i8) -> [i32; 4] {
        std::array::from_fn(|lane| {
            // SAFETY: the caller vouches for two bytes of each lane.
            let [low, high] = unsafe { *p.add(2 * lane).cast::<[i8; 2]>() };
            (i32::from(low) & 0xffff) | (i32::from(high) << 16)
        })
    }
    #[inline(always)]
    fn dot(self, sum: [i32; 4], a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let ([a0, a1], [b0, b1]) = (halves(a[lane]), halves(b[lane]));
            sum[lane].wrapping_add(a0 * b0).wrapping_add(a1 * b1)
        })
    }
    #[inline(always)]
    unsafe fn load_bytes(self, p: *const u8, signed: bool) -> [i32; 4] {
        // SAFETY: the caller vouches for four bytes.
        let bytes = unsafe { *p.cast::<[u8; 4]>() };
        bytes.map(|byte| if signed { byte.cast_signed().into() } else { byte.into() })
    }
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the lowest byte")]
    unsafe fn store_bytes(self, p: *mut u8, v: [i32; 4]) {
        // SAFETY: the caller vouches for four bytes.
        unsafe { *p.cast::<[u8; 4]>() = v.map(|lane| lane as u8) };
    }
}

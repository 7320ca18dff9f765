//! Sums of products of BF16: the instructions that such matrix products are made of.

use std::fmt::Debug;

use super::{PairInstructions, Simd};

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

//! Sums of products of bytes: the instructions that integer matrix products are made of.

use std::fmt::Debug;

use super::{PairInstructions, Simd};

/// Algorithm to be compiled for each set of integer instructions; like [`super::IsaKernel`].
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

//! Products of a pair of rows by a pair of columns: what matrix instructions on vectors compute.

use std::convert::Infallible;
use std::marker::PhantomData;

/// Instructions that multiply a pair of rows by a pair of columns, as a token.
///
/// A vector of terms holds 8 bytes of the first and 8 of the second of a pair; a vector of sums holds
/// a square of four: those of the first row, then those of the second.
pub trait PairInstructions: Copy {
    /// True if there are such instructions. Tiles for those that are absent are not compiled.
    const PRESENT: bool = true;

    /// A square of sums.
    type Sum: Copy;
    /// The terms of a pair.
    type Terms: Copy;

    /// Loads the terms of two rows, 8 bytes of each.
    ///
    /// # Safety
    /// Both are valid for reading them.
    unsafe fn load_rows(self, rows: [*const u8; 2]) -> Self::Terms;

    /// Puts the lanes of two vectors side by side: each lane of the first with that of the second.
    fn side_by_side(self, x: Self::Terms, y: Self::Terms) -> [Self::Terms; 2];

    /// Adds the products of each row by each column to a square.
    fn multiply(self, sum: Self::Sum, rows: Self::Terms, columns: Self::Terms) -> Self::Sum;

    /// The two rows of adjacent squares.
    fn rows(self, squares: [Self::Sum; 2]) -> [Self::Sum; 2];
}

/// The token of no instructions: there is none of this type.
#[derive(Clone, Copy, Debug)]
pub struct NoPairs<S, T>(Infallible, PhantomData<(S, T)>);

impl<S: Copy, T: Copy> PairInstructions for NoPairs<S, T> {
    const PRESENT: bool = false;
    type Sum = S;
    type Terms = T;

    #[inline(always)]
    unsafe fn load_rows(self, _: [*const u8; 2]) -> T {
        match self.0 {}
    }
    #[inline(always)]
    fn side_by_side(self, _: T, _: T) -> [T; 2] {
        match self.0 {}
    }
    #[inline(always)]
    fn multiply(self, _: S, _: T, _: T) -> S {
        match self.0 {}
    }
    #[inline(always)]
    fn rows(self, _: [S; 2]) -> [S; 2] {
        match self.0 {}
    }
}

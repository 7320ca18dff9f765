//! Products of matrices of FP64 and of integers, which wrap where they overflow.
//!
//! A panel of columns of B is copied so that its rows follow each other; groups of rows of A are multiplied with it.
//! The compiler makes vectors of the inner loops for each instruction set.

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::matrix::ProductSize;
use crate::memory::DisjointSlice;

/// Element of a plain product.
pub trait PlainElement: Copy + Default + Send + Sync {
    /// `sum + a b`.
    fn multiply_add(self, a: Self, b: Self) -> Self;
}

impl PlainElement for f64 {
    #[inline(always)]
    fn multiply_add(self, a: Self, b: Self) -> Self {
        self + a * b
    }
}

macro_rules! wrapping {
    ($($T:ty),*) => {$(
        impl PlainElement for $T {
            #[inline(always)]
            fn multiply_add(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}

wrapping!(i32, i64, u32, u64);

/// Columns of a panel, and rows that are multiplied with it at once.
const COLUMNS: usize = 16;
const ROWS: usize = 4;

/// Fewest rows of a piece: the copy of a panel is worth that many.
const PIECE_ROWS: usize = 64;

/// `y = a b` for row-major matrices: `m` × `k`, `k` × `n`, `m` × `n`.
///
/// # Panics
/// Panics when a slice has another length than its matrix.
pub fn multiply_plain<T: PlainElement>(
    exec: KernelContext<'_>,
    size: ProductSize,
    a: &[T],
    b: &[T],
    y: &mut [T],
) {
    let ProductSize { m, k, n } = size;
    assert!(
        a.len() == m * k && b.len() == k * n && y.len() == m * n,
        "product of {size:?}: {}, {} and {} elements",
        a.len(),
        b.len(),
        y.len()
    );
    if y.is_empty() {
        return;
    }
    let panels = n.div_ceil(COLUMNS);
    // Few panels are shared by rows too.
    let bands = (2 * exec.pool.threads()).div_ceil(panels).min(m.div_ceil(PIECE_ROWS)).max(1);
    let band = m.div_ceil(bands).next_multiple_of(ROWS);
    let y = DisjointSlice::new(y);
    let work = COLUMNS * k.max(1) * band;
    exec.pool.run_ranges(panels * bands, 32_768usize.div_ceil(work), |range| {
        let mut panel = vec![T::default(); k * COLUMNS];
        let mut packed = None;
        for task in range {
            let (column, first) = (task / bands * COLUMNS, (task % bands * band).min(m));
            let columns = COLUMNS.min(n - column);
            if packed != Some(column) {
                for (to, row) in panel.chunks_exact_mut(COLUMNS).zip(b.chunks_exact(n)) {
                    to[..columns].copy_from_slice(&row[column..column + columns]);
                }
                packed = Some(column);
            }
            let rows = first..(first + band).min(m);
            exec.isa.run(PanelProduct { a, k, panel: &panel, rows, n, column, columns, y });
        }
    });
}

/// Some rows of A times a panel.
struct PanelProduct<'a, T> {
    a: &'a [T],
    k: usize,
    panel: &'a [T],
    rows: std::ops::Range<usize>,
    n: usize,
    column: usize,
    columns: usize,
    y: DisjointSlice<T>,
}

impl<T: PlainElement> PanelProduct<'_, T> {
    /// Multiplies `R` rows from one on.
    #[inline(always)]
    fn multiply<const R: usize>(&self, first: usize) {
        let mut sums = [[T::default(); COLUMNS]; R];
        let rows: [&[T]; R] =
            std::array::from_fn(|r| &self.a[(first + r) * self.k..(first + r + 1) * self.k]);
        for (term, b) in self.panel.chunks_exact(COLUMNS).enumerate() {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let a = row[term];
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = sum.multiply_add(a, b);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let start = (first + r) * self.n + self.column;
            // SAFETY: rows and columns are inside y, and no other piece has them.
            let y = unsafe { self.y.range(start..start + self.columns) };
            y.copy_from_slice(&sums[..self.columns]);
        }
    }
}

impl<T: PlainElement> IsaKernel for PanelProduct<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let mut row = self.rows.start;
        while row + ROWS <= self.rows.end {
            self.multiply::<ROWS>(row);
            row += ROWS;
        }
        for row in row..self.rows.end {
            self.multiply::<1>(row);
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests {
    use super::*;
    use crate::{Isa, ThreadPool};

    fn check<T: PlainElement + PartialEq + std::fmt::Debug>(from: impl Fn(i64) -> T) {
        let pool = ThreadPool::new(2);
        for isa in Isa::available() {
            for (m, k, n) in [(1, 1, 1), (5, 7, 19), (130, 40, 16), (3, 300, 70), (4, 0, 5)] {
                let of = |count: usize, seed: usize| -> Vec<T> {
                    (0..count).map(|at| from(((at * 37 + seed) % 23) as i64 - 11)).collect()
                };
                let (a, b) = (of(m * k, 1), of(k * n, 5));
                let mut y = vec![from(99); m * n];
                let exec = KernelContext { pool: &pool, isa };
                multiply_plain(exec, ProductSize { m, k, n }, &a, &b, &mut y);
                for (at, y) in y.iter().enumerate() {
                    let terms = (0..k).map(|t| (a[at / n * k + t], b[t * n + at % n]));
                    let want = terms.fold(T::default(), |sum, (a, b)| sum.multiply_add(a, b));
                    assert_eq!(*y, want, "{m} {k} {n} {}", isa.name());
                }
            }
        }
    }

    #[test]
    fn products_equal_plain_loops_on_every_isa() {
        check(|x| x as f64 / 4.0);
        check(|x| (x as i32).wrapping_mul(0x1000_0001));
        check(|x| x.wrapping_mul(0x1000_0000_0000_0001));
        check(|x| x as u32);
        check(|x| x as u64);
    }
}

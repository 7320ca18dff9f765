//! Triangles of matrices.

use super::share_runs;
use crate::KernelContext;

/// Part of a matrix that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixTriangle {
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix.
    pub columns: usize,
    /// The diagonal that belongs to it: 0 is the main one, above it are positive ones.
    pub diagonal: i64,
    /// True for what lies on the diagonal and above, false for what lies on it and below.
    pub upper: bool,
}

impl MatrixTriangle {
    /// The columns of a row that stay.
    fn kept(self, row: usize) -> std::ops::Range<usize> {
        let on = i64::try_from(row).unwrap_or(i64::MAX).saturating_add(self.diagonal);
        let bounded = |at: i64| usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(self.columns);
        match self.upper {
            true => bounded(on)..self.columns,
            false => 0..bounded(on.saturating_add(1)),
        }
    }
}

/// Copies a triangle of each matrix of `x`, and makes everything else `zero`.
///
/// # Panics
/// Panics when the lengths differ, or are no whole number of matrices.
pub fn keep_triangle<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    x: &[T],
    triangle: MatrixTriangle,
    zero: T,
    y: &mut [T],
) {
    assert!(x.len() == y.len(), "triangle: {} elements into {}", x.len(), y.len());
    let MatrixTriangle { rows, columns, .. } = triangle;
    share_runs(exec, y, columns.max(1), |range, y| {
        let x = &x[range.start * columns..range.end * columns];
        let both = x.chunks_exact(columns).zip(y.chunks_exact_mut(columns));
        for (row, (x, y)) in range.zip(both) {
            let kept = triangle.kept(row % rows.max(1));
            y[..kept.start].fill(zero);
            y[kept.end.max(kept.start)..].fill(zero);
            if !kept.is_empty() {
                y[kept.clone()].copy_from_slice(&x[kept]);
            }
        }
    });
}

//! Rows chosen by number: embeddings.

use crate::KernelContext;
use crate::memory::DisjointSlice;

/// `y[i] = table[indices[i]]` for rows of `row_len` elements of any plain type.
///
/// # Panics
/// Panics when an index is not below the number of rows of `table`, `table` is not whole rows, or
/// `y` has not one row per index.
pub fn gather_rows<T: Copy + Send + Sync>(
    exec: KernelContext<'_>,
    table: &[T],
    row_len: usize,
    indices: &[usize],
    y: &mut [T],
) {
    let rows = table.len().checked_div(row_len).unwrap_or(0);
    assert!(rows * row_len == table.len(), "gather: {} in rows of {row_len}", table.len());
    assert!(
        indices.len().checked_mul(row_len) == Some(y.len()),
        "gather: {} rows of {row_len} into {}",
        indices.len(),
        y.len()
    );
    if row_len == 0 {
        return;
    }
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(indices.len(), 32_768usize.div_ceil(row_len), |range| {
        // SAFETY: ranges are disjoint.
        let y = unsafe { y.range(range.start * row_len..range.end * row_len) };
        for (&index, y) in indices[range].iter().zip(y.chunks_exact_mut(row_len)) {
            assert!(index < rows, "gather: row {index} of {rows}");
            y.copy_from_slice(&table[index * row_len..(index + 1) * row_len]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;

    #[test]
    fn rows_are_copied_in_the_order_of_the_indices() {
        let pool = ThreadPool::new(2);
        let table: Vec<u16> = (0..40).collect();
        let mut y = [0; 12];
        gather_rows(KernelContext::new(&pool), &table, 4, &[9, 0, 9], &mut y);
        assert_eq!(y, [36, 37, 38, 39, 0, 1, 2, 3, 36, 37, 38, 39]);
    }

    #[test]
    #[should_panic(expected = "gather: row 10 of 10")]
    fn a_row_beyond_the_table_is_refused() {
        let pool = ThreadPool::new(1);
        gather_rows(KernelContext::new(&pool), &[0u8; 10], 1, &[10], &mut [0]);
    }
}

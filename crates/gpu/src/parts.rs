//! Constants that are larger than what a device shows a kernel at once, and are read in parts.

use crate::kernel::GpuNodeView;

/// Rows in a part are a multiple of this: a part starts where bindings may start, and with a whole vector, whatever
/// the elements are.
const ROWS: usize = 128;

/// Returns the first row and the number of rows of each part of a matrix with rows of so many bytes.
///
/// # Errors
/// Fails when a device shows a kernel too few rows.
pub(crate) fn cut(
    rows: usize,
    row_bytes: usize,
    limit: u64,
) -> Result<Vec<(usize, usize)>, String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let each = limit / row_bytes.max(1) / ROWS * ROWS;
    if each == 0 {
        return Err(format!("{ROWS} of its rows have {} bytes", row_bytes.saturating_mul(ROWS)));
    }
    Ok((0..rows).step_by(each).map(|first| (first, each.min(rows - first))).collect())
}

/// The rows of a constant and the bytes of each.
///
/// # Errors
/// Fails when it is not a constant, or not a matrix.
pub(crate) fn rows(view: &GpuNodeView<'_>, input: usize) -> Result<(usize, usize), String> {
    let value = view.constant(input).ok_or("it is no constant")?;
    let (&rows, rest) = value.shape().split_first().ok_or("it is a scalar")?;
    let dtype = view.input(input).map_or(value.dtype(), |fact| fact.dtype);
    let element = dtype.size_bytes().ok_or("it has no size")?;
    Ok((rows, rest.iter().product::<usize>() * element))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_rows_and_start_at_whole_vectors() {
        assert_eq!(cut(300, 4, 1024).unwrap(), [(0, 256), (256, 44)]);
        assert_eq!(cut(128, 4, 1024).unwrap(), [(0, 128)]);
        assert!(cut(300, 16, 1024).unwrap_err().contains("2048 bytes"));
    }
}

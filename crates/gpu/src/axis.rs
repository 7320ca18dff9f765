//! Axes of shapes.

/// Returns the position of an axis that may count from the end.
///
/// # Errors
/// Fails when there is no such axis.
pub(crate) fn position(axis: i64, rank: usize) -> Result<usize, String> {
    let from_end = i64::try_from(rank).unwrap_or(i64::MAX);
    let axis = if axis < 0 { axis + from_end } else { axis };
    let found = usize::try_from(axis).ok().filter(|&axis| axis < rank);
    found.ok_or_else(|| format!("there is no axis {axis} of {rank}"))
}

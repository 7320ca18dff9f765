//! Indices of operators that read and write elements at places which the run brings.

use galatea_graph::OpError;
use galatea_tensor::DataType;

use super::movement::not_strings;
use crate::cpu::{CpuNodeView, StepCall};

/// Refuses strings, and indices of other types than ONNX's.
pub(super) fn with_indices(view: &CpuNodeView<'_>) -> Result<(), String> {
    not_strings(view)?;
    match view.input(1).map(|fact| fact.dtype) {
        Some(DataType::Int64 | DataType::Int32) => Ok(()),
        other => Err(format!("indices of type {other:?}")),
    }
}

/// Indices of a run: as they lie, or made longer.
pub(super) fn run_indices<'a>(
    call: &StepCall<'a>,
    wide: &'a mut Vec<i64>,
) -> Result<&'a [i64], OpError> {
    if let Ok(all) = call.input::<i64>(1) {
        return Ok(all);
    }
    wide.extend(call.input::<i32>(1)?.iter().map(|&index| i64::from(index)));
    Ok(wide)
}

/// Refuses indices with an axis that is longer than that of the data, but for the one whose places they name.
pub(super) fn check_inside(data: &[usize], indices: &[usize], axis: usize) -> Result<(), String> {
    let mut others = data.iter().zip(indices).enumerate().filter(|(at, _)| *at != axis);
    if data.len() != indices.len() || others.any(|(_, (data, index))| index > data) {
        return Err(format!("indices of shape {indices:?} for data of shape {data:?}"));
    }
    Ok(())
}

/// Which of the rows behind some axes a place along each of them is; negative ones count from the end.
pub(super) fn row_at(pick: &[i64], lengths: &[usize]) -> Result<usize, OpError> {
    pick.iter().zip(lengths).try_fold(0, |row, (&place, &len)| {
        let signed = i64::try_from(len).unwrap_or(i64::MAX);
        let shifted = if place < 0 { place.saturating_add(signed) } else { place };
        let found = usize::try_from(shifted).ok().filter(|&at| at < len);
        let outside = || OpError::new(format!("index {place} is outside an axis of length {len}"));
        Ok(row * len + found.ok_or_else(outside)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_over_all_axes_and_from_either_end() {
        assert_eq!(row_at(&[1, 2], &[2, 3]).unwrap(), 5);
        assert_eq!(row_at(&[-2, -1], &[2, 3]).unwrap(), 2);
        assert!(row_at(&[0, 3], &[2, 3]).unwrap_err().to_string().contains("index 3"));
        assert!(row_at(&[-3, 0], &[2, 3]).is_err());
    }
}

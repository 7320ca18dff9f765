//! Rows of a tensor that are written over.

use galatea_graph::ops::index::{ScatterND, ScatterReduction};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_tensor::DataType;

use super::movement::{not_strings, with_plain};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "scatter-nd-any",
    domain: ONNX_DOMAIN,
    ops: &["ScatterND"],
    supports: replaces,
    build: |view| Ok(Box::new(view.operator::<ScatterND>()?.clone())),
}];

fn replaces(view: &CpuNodeView<'_>) -> Result<(), String> {
    not_strings(view)?;
    match view.operator::<ScatterND>()?.reduction {
        ScatterReduction::None => Ok(()),
        other => Err(format!("updates that combine by {other:?}")),
    }
}

impl CpuKernel for ScatterND {
    /// Writes where the data lies, if nobody else needs that: a cache stays where it is.
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let data = shapes.input(0)?.to_vec();
        let indices = shapes.input(1)?;
        let (&tuple, outer) = indices.split_last().ok_or("there are no indices")?;
        let (places, rest) = data.split_at_checked(tuple).ok_or("more indices than axes")?;
        if shapes.input(2)? != [outer, rest].concat() {
            return Err(format!("updates of shape {:?}", shapes.input(2)?));
        }
        let row: usize = rest.iter().product();
        if tuple == 0 || row == 0 {
            return Err("rows without elements".into());
        }
        let places = places.to_vec();
        let dtype = shapes.dtype(0)?;
        let step = with_plain!(dtype, T => CpuStep::new(move |call| {
            let picks = call.input::<i64>(1)?;
            let updates = call.carriers::<T>(2)?;
            let data = if call.is_in_place(0) { None } else { Some(call.carriers::<T>(0)?) };
            let mut y = call.output_carriers::<T>(0)?;
            let y = y.slice();
            if let Some(data) = data {
                y.copy_from_slice(data);
            }
            for (pick, update) in picks.chunks_exact(tuple).zip(updates.chunks_exact(row)) {
                let at = row_at(pick, &places)? * row;
                y[at..at + row].copy_from_slice(update);
            }
            Ok(())
        }));
        // What a step writes of truth values is cleared first: other bytes would be none.
        Ok(if dtype == DataType::Bool { step } else { step.in_place(0, 0) })
    }
}

/// Which of the rows behind some axes a place along each of them is; negative ones count from the end.
fn row_at(pick: &[i64], lengths: &[usize]) -> Result<usize, OpError> {
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

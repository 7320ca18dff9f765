//! Elements picked by number.

use galatea_graph::ops::index::Gather;
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::gather::gather_rows;
use galatea_tensor::DataType;

use super::movement::{not_strings, with_plain};
use super::rowwise::resolve_axis;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes, StepCall};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "gather-any",
    domain: ONNX_DOMAIN,
    ops: &["Gather"],
    supports: not_strings,
    build: |view| Ok(Box::new(view.operator::<Gather>()?.clone())),
}];

impl CpuKernel for Gather {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let outer: usize = shape[..axis].iter().product();
        let rows = shape[axis];
        let row_len: usize = shape[axis + 1..].iter().product();
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let indices = positions(call, rows)?;
            let x = call.carriers::<T>(0)?;
            let mut y = call.output_carriers::<T>(0)?;
            let y = y.slice();
            let block = indices.len() * row_len;
            for at in 0..outer {
                let table = &x[at * rows * row_len..(at + 1) * rows * row_len];
                let y = &mut y[at * block..(at + 1) * block];
                gather_rows(call.exec, table, row_len, &indices, y);
            }
            Ok(())
        })))
    }
}

/// Input 1 as positions below `rows`.
fn positions(call: &StepCall<'_>, rows: usize) -> Result<Vec<usize>, OpError> {
    let wide: Vec<i64> = match call.input::<i64>(1) {
        Ok(all) => all.to_vec(),
        Err(_) => call.input::<i32>(1)?.iter().map(|&index| i64::from(index)).collect(),
    };
    let count = i64::try_from(rows).unwrap_or(i64::MAX);
    wide.into_iter()
        .map(|index| {
            let shifted = if index < 0 { index.saturating_add(count) } else { index };
            usize::try_from(shifted).ok().filter(|&at| at < rows).ok_or_else(|| {
                OpError::new(format!("index {index} is outside an axis of length {rows}"))
            })
        })
        .collect()
}

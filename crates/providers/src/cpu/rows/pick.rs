//! Operators that read elements and slices at indices: any type but strings.

use galatea_graph::ops::index::{GatherElements, GatherND};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::moves::{ElementPicks, pick_elements, pick_runs};
use galatea_tensor::{DataType, contiguous_strides};

use super::indices::{check_inside, row_at, run_indices, with_indices};
use super::movement::with_plain;
use super::rowwise::resolve_axis;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "gather_elements-any",
        domain: ONNX_DOMAIN,
        ops: &["GatherElements"],
        supports: with_indices,
        build: |view| Ok(Box::new(view.operator::<GatherElements>()?.clone())),
    },
    CpuKernelRow {
        name: "gather_nd-any",
        domain: ONNX_DOMAIN,
        ops: &["GatherND"],
        supports: with_indices,
        build: |view| Ok(Box::new(view.operator::<GatherND>()?.clone())),
    },
];

impl CpuKernel for GatherElements {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (data, indices) = (shapes.input(0)?.to_vec(), shapes.input(1)?.to_vec());
        let axis = resolve_axis(self.axis, data.len())?;
        check_inside(&data, &indices, axis)?;
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let picks = ElementPicks { data: &data, indices: &indices, axis };
            let mut wide = Vec::new();
            let at = run_indices(call, &mut wide)?;
            let x = call.carriers::<T>(0)?;
            let mut y = call.output_carriers::<T>(0)?;
            let done = pick_elements(call.exec, x, at, &picks, y.slice());
            done.map_err(|wrong| OpError::new(wrong.to_string()))
        })))
    }
}

impl CpuKernel for GatherND {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (data, indices) = (shapes.input(0)?, shapes.input(1)?);
        let (&tuple, outer) = indices.split_last().ok_or("there are no indices")?;
        let batch = self.batch_dims;
        if batch > outer.len() || batch + tuple > data.len() || data[..batch] != outer[..batch] {
            return Err(format!("indices of shape {indices:?} for data of shape {data:?}"));
        }
        if tuple == 0 {
            return Err("indices without places".into());
        }
        let run: usize = data[batch + tuple..].iter().product();
        let places = data[batch..batch + tuple].to_vec();
        // Tuples that share a row of the batch.
        let tuples: usize = outer[batch..].iter().product();
        let whole = contiguous_strides(data);
        let step = if batch == 0 { 0 } else { whole[batch - 1].unsigned_abs() };
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let mut wide = Vec::new();
            let at = run_indices(call, &mut wide)?;
            let start = |(index, pick): (usize, &[i64])| -> Result<usize, OpError> {
                Ok(row_at(pick, &places)? * run + index / tuples * step)
            };
            let starts: Vec<usize> =
                at.chunks_exact(tuple).enumerate().map(start).collect::<Result<_, _>>()?;
            let x = call.carriers::<T>(0)?;
            let mut y = call.output_carriers::<T>(0)?;
            pick_runs(call.exec, x, &starts, run, y.slice());
            Ok(())
        })))
    }
}

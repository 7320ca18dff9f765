//! Rows of a tensor that are written over.

use galatea_graph::ops::index::{ScatterElements, ScatterND, ScatterReduction};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::moves::{ElementWrites, write_elements};
use galatea_tensor::{DataType, Element};

use super::indices::{check_inside, row_at, run_indices, with_indices};
use super::movement::{not_strings, with_plain};
use super::rowwise::resolve_axis;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "scatter-nd-any",
        domain: ONNX_DOMAIN,
        ops: &["ScatterND"],
        supports: replaces,
        build: |view| Ok(Box::new(view.operator::<ScatterND>()?.clone())),
    },
    CpuKernelRow {
        name: "scatter_elements-any",
        domain: ONNX_DOMAIN,
        ops: &["Scatter", "ScatterElements"],
        supports: combines,
        build: |view| Ok(Box::new(view.operator::<ScatterElements>()?.clone())),
    },
];

/// Refuses types whose updates no kernel combines.
fn combines(view: &CpuNodeView<'_>) -> Result<(), String> {
    with_indices(view)?;
    let dtype = view.input(0).map(|fact| fact.dtype);
    match (view.operator::<ScatterElements>()?.reduction, dtype) {
        (ScatterReduction::None, _) => Ok(()),
        (_, Some(DataType::Fp32 | DataType::Int64 | DataType::Int32)) => Ok(()),
        (other, dtype) => Err(format!("updates of type {dtype:?} that combine by {other:?}")),
    }
}

impl CpuKernel for ScatterElements {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (data, indices) = (shapes.input(0)?, shapes.input(1)?);
        let axis = resolve_axis(self.axis, data.len())?;
        check_inside(data, indices, axis)?;
        if shapes.input(2)? != indices || shapes.dtype(2)? != shapes.dtype(0)? {
            return Err(format!("updates of shape {:?}", shapes.input(2)?));
        }
        let places = WrittenPlaces { data: data.to_vec(), indices: indices.to_vec(), axis };
        let dtype = shapes.dtype(0)?;
        let step = match (self.reduction, dtype) {
            (ScatterReduction::None, _) => {
                with_plain!(dtype, T => places.step(|_, new: T| new))
            }
            (kind, DataType::Fp32) => places.combining::<f32>(kind, |a, b| a + b, |a, b| a * b),
            (kind, DataType::Int64) => places.combining(kind, i64::wrapping_add, i64::wrapping_mul),
            (kind, _) => places.combining(kind, i32::wrapping_add, i32::wrapping_mul),
        };
        Ok(if dtype == DataType::Bool { step } else { step.in_place(0, 0) })
    }
}

/// Shapes of `ScatterElements`.
struct WrittenPlaces {
    data: Vec<usize>,
    indices: Vec<usize>,
    axis: usize,
}

impl WrittenPlaces {
    /// A step whose updates combine with what is there.
    fn combining<T: Element + Copy + PartialOrd>(
        self,
        kind: ScatterReduction,
        add: fn(T, T) -> T,
        multiply: fn(T, T) -> T,
    ) -> CpuStep {
        match kind {
            ScatterReduction::None => self.step(|_, new: T| new),
            ScatterReduction::Add => self.step(add),
            ScatterReduction::Mul => self.step(multiply),
            ScatterReduction::Max => self.step(|old, new: T| if new > old { new } else { old }),
            ScatterReduction::Min => self.step(|old, new: T| if new < old { new } else { old }),
        }
    }

    fn step<T: Element + Copy>(self, f: fn(T, T) -> T) -> CpuStep {
        CpuStep::new(move |call| {
            let mut wide = Vec::new();
            let at = run_indices(call, &mut wide)?;
            let updates = call.carriers::<T>(2)?;
            let data = if call.is_in_place(0) { None } else { Some(call.carriers::<T>(0)?) };
            let mut y = call.output_carriers::<T>(0)?;
            let y = y.slice();
            if let Some(data) = data {
                y.copy_from_slice(data);
            }
            let Self { data, indices, axis } = &self;
            let writes = ElementWrites { data, indices, axis: *axis };
            let done = write_elements(call.exec, at, updates, &writes, f, y);
            done.map_err(|wrong| OpError::new(wrong.to_string()))
        })
    }
}

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

//! Operators that move elements without computing: any type but strings.

use galatea_graph::ops::shape::{Concat, Slice, Split, Transpose};
use galatea_graph::{ONNX_DOMAIN, OpError, OperatorInputs};
use galatea_kernels::moves::{StridedAxis, copy_strided};
use galatea_kernels::permute::{MAX_RANK, permute, transpose};
use galatea_tensor::{DataType, contiguous_strides};

use super::rowwise::resolve_axis;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes, StepCall};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "transpose-any",
        domain: ONNX_DOMAIN,
        ops: &["Transpose"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Transpose>()?.clone())),
    },
    CpuKernelRow {
        name: "concat-any",
        domain: ONNX_DOMAIN,
        ops: &["Concat"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Concat>()?.clone())),
    },
    CpuKernelRow {
        name: "split-any",
        domain: ONNX_DOMAIN,
        ops: &["Split"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Split>()?.clone())),
    },
    CpuKernelRow {
        name: "slice-any",
        domain: ONNX_DOMAIN,
        ops: &["Slice"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Slice>()?.clone())),
    },
    CpuKernelRow {
        name: "expand-any",
        domain: ONNX_DOMAIN,
        ops: &["Expand"],
        supports: not_strings,
        build: |_| Ok(Box::new(ExpandKernel)),
    },
];

/// Refuses nodes over string tensors, whose elements are not plain bytes, and over small types,
/// which are too rare in flight to be worth a copy of each kernel.
pub(super) fn not_strings(view: &CpuNodeView<'_>) -> Result<(), String> {
    match view.input(0) {
        Some(fact) if fact.dtype == DataType::Bytes => Err("strings are not plain bytes".into()),
        Some(fact) if !fact.dtype.is_on_wire() => Err("a type that few graphs move".into()),
        Some(_) => Ok(()),
        None => Err("nothing is known about input 0".into()),
    }
}

/// Runs a generic function that only moves elements with the Rust type of a data type's carrier, or
/// with `bool`, not all of whose bytes are values; strings and small types are refused.
macro_rules! with_plain {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DataType::Bool => {
                type $T = bool;
                $body
            }
            dtype if !dtype.is_on_wire() => {
                return Err("the elements are neither truth values nor numbers".into());
            }
            dtype => match dtype.carrier() {
                DataType::Uint8 => {
                    type $T = u8;
                    $body
                }
                DataType::Uint16 => {
                    type $T = u16;
                    $body
                }
                DataType::Uint32 => {
                    type $T = u32;
                    $body
                }
                DataType::Uint64 => {
                    type $T = u64;
                    $body
                }
                _ => return Err("the elements are neither truth values nor numbers".into()),
            },
        }
    };
}
pub(super) use with_plain;

impl CpuKernel for Transpose {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?.to_vec();
        let order = self.permutation(shape.len()).map_err(|error| error.to_string())?;
        if shape.len() > MAX_RANK {
            return Err(format!("rank {}", shape.len()));
        }
        let dtype = shapes.dtype(0)?;
        if let (DataType::Fp32, Some((batch, rows, columns))) = (dtype, matrices(&shape, &order)) {
            return Ok(CpuStep::new(move |call| {
                let x = call.input::<f32>(0)?;
                let mut y = call.output::<f32>(0)?;
                transpose(call.exec, x, batch, rows, columns, y.slice());
                Ok(())
            }));
        }
        Ok(with_plain!(dtype, T => CpuStep::new(move |call| {
            let x = call.carriers::<T>(0)?;
            let mut y = call.output_carriers::<T>(0)?;
            permute(call.exec, x, &shape, &order, y.slice());
            Ok(())
        })))
    }
}

/// Returns whether the order swaps two ranges of axes behind equal leading ones: (batch, rows,
/// columns).
fn matrices(shape: &[usize], order: &[usize]) -> Option<(usize, usize, usize)> {
    let lead = order.iter().enumerate().take_while(|&(at, &axis)| at == axis).count();
    let first = *order.get(lead)?;
    let swapped = (first..shape.len()).chain(lead..first);
    if !order[lead..].iter().copied().eq(swapped) {
        return None;
    }
    let product = |range: std::ops::Range<usize>| shape[range].iter().product();
    Some((product(0..lead), product(lead..first), product(first..shape.len())))
}

impl CpuKernel for Concat {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let out = shapes.output(0)?;
        let axis = resolve_axis(self.axis, out.len())?;
        let outer: usize = out[..axis].iter().product();
        let total: usize = out[axis..].iter().product();
        let chunks: Vec<usize> = (0..shapes.inputs.len())
            .map(|index| Ok(shapes.input(index)?[axis..].iter().product()))
            .collect::<Result<_, String>>()?;
        if chunks.iter().sum::<usize>() != total {
            return Err("the inputs do not add up to the output".into());
        }
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let mut y = call.output_carriers::<T>(0)?;
            let y = y.slice();
            let mut start = 0;
            for (index, &chunk) in chunks.iter().enumerate() {
                let x = call.carriers::<T>(index)?;
                for at in 0..outer {
                    let to = at * total + start;
                    y[to..to + chunk].copy_from_slice(&x[at * chunk..(at + 1) * chunk]);
                }
                start += chunk;
            }
            Ok(())
        })))
    }
}

impl CpuKernel for Split {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let outer: usize = shape[..axis].iter().product();
        let inner: usize = shape[axis + 1..].iter().product();
        let total = shape[axis] * inner;
        let given = shapes.integers(1);
        if shapes.inputs.len() > 1 && given.is_none() {
            return Err("the lengths are not known before the run".into());
        }
        let lengths = self.lengths(shape[axis], given.as_deref()).map_err(|e| e.to_string())?;
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let x = call.carriers::<T>(0)?;
            let mut start = 0;
            for (index, &length) in lengths.iter().enumerate() {
                let chunk = length * inner;
                if matches!(call.outputs.get(index), Some(Some(_))) {
                    let mut y = call.output_carriers::<T>(index)?;
                    let y = y.slice();
                    for at in 0..outer {
                        let from = at * total + start;
                        y[at * chunk..(at + 1) * chunk].copy_from_slice(&x[from..from + chunk]);
                    }
                }
                start += chunk;
            }
            Ok(())
        })))
    }
}

/// A step that copies elements which lie at strides, from `start` on: those of a result of this shape have these
/// distances.
pub(super) fn copy_step(
    dtype: DataType,
    shape: &[usize],
    strides: &[isize],
    start: usize,
) -> Result<CpuStep, String> {
    let axes = shape.iter().zip(strides);
    let axes: Vec<StridedAxis> = axes.map(|(&len, &stride)| StridedAxis { len, stride }).collect();
    Ok(with_plain!(dtype, T => CpuStep::new(move |call: &mut StepCall<'_>| -> Result<(), OpError> {
        let x = call.carriers::<T>(0)?;
        let mut y = call.output_carriers::<T>(0)?;
        copy_strided(call.exec, x, start, &axes, y.slice());
        Ok(())
    })))
}

impl CpuKernel for Slice {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let given: Vec<Option<&galatea_tensor::Tensor>> =
            shapes.constants.iter().map(Option::as_ref).collect();
        let known = |index: usize| shapes.inputs[index].is_none() || given[index].is_some();
        if !(1..shapes.inputs.len()).all(known) {
            return Err("the range is not known before the run".into());
        }
        let ranges =
            self.ranges(shape, OperatorInputs::new(&given)).map_err(|error| error.to_string())?;
        let mut lengths = shape.to_vec();
        let mut strides = contiguous_strides(shape);
        let mut start = 0;
        for range in ranges {
            start += range.start * strides[range.axis].unsigned_abs();
            strides[range.axis] = strides[range.axis].saturating_mul(range.step);
            lengths[range.axis] = range.len;
        }
        if lengths != shapes.output(0)? {
            return Err("the range does not give the inferred shape".into());
        }
        copy_step(shapes.dtype(0)?, &lengths, &strides, start)
    }
}

/// `Expand`.
struct ExpandKernel;

impl CpuKernel for ExpandKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let out = shapes.output(0)?;
        let missing = out.len().checked_sub(shape.len()).ok_or("the rank falls")?;
        let own = contiguous_strides(shape);
        let stride = |(axis, &len): (usize, &usize)| match axis.checked_sub(missing) {
            Some(axis) if shape[axis] == len => own[axis],
            _ => 0,
        };
        let strides: Vec<isize> = out.iter().enumerate().map(stride).collect();
        copy_step(shapes.dtype(0)?, out, &strides, 0)
    }
}

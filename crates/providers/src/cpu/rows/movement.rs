//! Operators that move elements without computing: any type but strings.

use galatea_graph::ops::shape::{Concat, Slice, Split, Transpose};
use galatea_graph::{ONNX_DOMAIN, OpError, OperatorInputs};
use galatea_kernels::permute::{MAX_RANK, permute, transpose};
use galatea_tensor::{DataType, Element, contiguous_strides};

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

/// A copy of elements that lie at strides: the lengths of the result's axes, each with the
/// distance in the source.
struct StridedWalk {
    axes: Vec<(usize, isize)>,
    start: usize,
}

impl StridedWalk {
    /// A walk over a shape with these distances; neighbouring axes that are one are joined.
    fn new(shape: &[usize], strides: &[isize], start: usize) -> Self {
        let mut axes: Vec<(usize, isize)> = Vec::new();
        for (&len, &stride) in shape.iter().zip(strides).filter(|(len, _)| **len != 1) {
            match axes.last_mut() {
                Some(last) if last.1 == stride * len.cast_signed() => {
                    *last = (last.0 * len, stride);
                }
                _ => axes.push((len, stride)),
            }
        }
        Self { axes, start }
    }

    fn copy<T: Element + Copy>(&self, x: &[T], y: &mut [T]) {
        if y.is_empty() {
            return;
        }
        let Some((&(run, step), outer)) = self.axes.split_last() else {
            y[0] = x[self.start];
            return;
        };
        let mut index = vec![0; outer.len()];
        let mut from = self.start.cast_signed();
        for y in y.chunks_exact_mut(run) {
            let start = from.cast_unsigned();
            match step {
                1 => y.copy_from_slice(&x[start..start + run]),
                0 => y.fill(x[start]),
                _ => {
                    for (at, y) in y.iter_mut().enumerate() {
                        *y = x[(from + at.cast_signed() * step).cast_unsigned()];
                    }
                }
            }
            for (at, &(len, stride)) in index.iter_mut().zip(outer).rev() {
                *at += 1;
                from += stride;
                if *at < len {
                    break;
                }
                from -= stride * len.cast_signed();
                *at = 0;
            }
        }
    }
}

fn copy_step<T: Element + Copy>(walk: StridedWalk) -> CpuStep {
    CpuStep::new(move |call: &mut StepCall<'_>| -> Result<(), OpError> {
        let x = call.carriers::<T>(0)?;
        let mut y = call.output_carriers::<T>(0)?;
        walk.copy(x, y.slice());
        Ok(())
    })
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
        let walk = StridedWalk::new(&lengths, &strides, start);
        Ok(with_plain!(shapes.dtype(0)?, T => copy_step::<T>(walk)))
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
        let walk = StridedWalk::new(out, &strides, 0);
        Ok(with_plain!(shapes.dtype(0)?, T => copy_step::<T>(walk)))
    }
}

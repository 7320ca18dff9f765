//! Operators that repeat, frame, fold and cut tensors: any type but strings.

use galatea_graph::ops::shape::{DepthToSpace, Pad, SpaceToDepth, Trilu};
use galatea_graph::{ONNX_DOMAIN, OperatorInputs};
use galatea_kernels::moves::{FrameAxis, FrameRow, MatrixTriangle, frame, keep_triangle};
use galatea_kernels::permute::permute;
use galatea_tensor::{DataType, Element, Tensor, TensorError, contiguous_strides};

use super::CONTRIB_DOMAIN;
use super::movement::{copy_step, not_strings, with_plain};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "tile-any",
        domain: ONNX_DOMAIN,
        ops: &["Tile"],
        supports: not_strings,
        build: |_| Ok(Box::new(TileKernel)),
    },
    CpuKernelRow {
        name: "pad-any",
        domain: ONNX_DOMAIN,
        ops: &["Pad"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Pad>()?.clone())),
    },
    CpuKernelRow {
        name: "pad-any",
        domain: CONTRIB_DOMAIN,
        ops: &["Pad"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Pad>()?.clone())),
    },
    CpuKernelRow {
        name: "trilu-any",
        domain: ONNX_DOMAIN,
        ops: &["Trilu"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<Trilu>()?.clone())),
    },
    CpuKernelRow {
        name: "depth_to_space-any",
        domain: ONNX_DOMAIN,
        ops: &["DepthToSpace"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<DepthToSpace>()?.clone())),
    },
    CpuKernelRow {
        name: "space_to_depth-any",
        domain: ONNX_DOMAIN,
        ops: &["SpaceToDepth"],
        supports: not_strings,
        build: |view| Ok(Box::new(view.operator::<SpaceToDepth>()?.clone())),
    },
];

/// `Tile`: how often each axis is repeated follows from both shapes.
struct TileKernel;

impl CpuKernel for TileKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (own, out) = (shapes.input(0)?, shapes.output(0)?);
        if own.len() != out.len() {
            return Err(format!("{own:?} is repeated to {out:?}"));
        }
        // Before each axis stands one that reads it again.
        let (mut lengths, mut strides) = (Vec::new(), Vec::new());
        for ((&len, &total), stride) in own.iter().zip(out).zip(contiguous_strides(own)) {
            lengths.extend([total.checked_div(len).unwrap_or(0), len]);
            strides.extend([0, stride]);
        }
        copy_step(shapes.dtype(0)?, &lengths, &strides, 0)
    }
}

/// Frames and fillings of one value.
impl CpuKernel for Pad {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let sources = sources(self, shapes)?;
        if sources.iter().map(Vec::len).ne(shapes.output(0)?.iter().copied()) {
            return Err("the frame does not give the inferred shape".into());
        }
        let dtype = shapes.dtype(0)?;
        let fill_input = (self.pads.is_none() && shapes.has(2)).then_some(2);
        if let Some(at) = fill_input
            && (shapes.dtype(at)? != dtype || shapes.input(at)?.iter().product::<usize>() != 1)
        {
            return Err("a filling that is no element of the same type".into());
        }
        let filling = match fill_input {
            Some(_) => None,
            None => Some(self.filling(dtype).map_err(|error| error.to_string())?),
        };
        let (outer, row) = axes(shape, sources);
        Ok(with_plain!(dtype, T => {
            let own = match &filling {
                Some(tensor) => first_element::<T>(tensor).map_err(|error| error.to_string())?,
                None => None,
            };
            CpuStep::new(move |call| {
                let given = own.or(call.carriers::<T>(2).ok().and_then(|all| all.first().copied()));
                let x = call.carriers::<T>(0)?;
                let mut y = call.output_carriers::<T>(0)?;
                frame(call.exec, x, &outer, &row, given.unwrap_or_default(), y.slice());
                Ok(())
            })
        }))
    }
}

fn first_element<T: Element + Copy>(tensor: &Tensor) -> Result<Option<T>, TensorError> {
    Ok(tensor.as_view()?.as_carriers::<T>()?.first().copied())
}

/// Returns the place in the input that each place of the result reads, axis by axis.
fn sources(op: &Pad, shapes: &NodeShapes) -> Result<Vec<Vec<Option<usize>>>, String> {
    let given: Vec<Option<&Tensor>> = shapes.constants.iter().map(Option::as_ref).collect();
    let known = |index: usize| !shapes.has(index) || given[index].is_some();
    if ![1, 3].into_iter().all(known) {
        return Err("the frame is not known before the run".into());
    }
    let sources = op.axis_sources(shapes.input(0)?, OperatorInputs::new(&given));
    sources.map_err(|error| error.to_string())
}

/// Divides axes into those before the last framed one, and that one with what lies behind it.
fn axes(shape: &[usize], mut sources: Vec<Vec<Option<usize>>>) -> (Vec<FrameAxis>, FrameRow) {
    let plain = |axis: usize| sources[axis].iter().copied().eq((0..shape[axis]).map(Some));
    let behind = (0..shape.len()).rev().take_while(|&axis| axis > 0 && plain(axis)).count();
    let last = shape.len().saturating_sub(behind + 1);
    let unit = shape.iter().skip(last + 1).product();
    sources.truncate(last + 1);
    // A tensor without axes is one place.
    let row = FrameRow { sources: sources.pop().unwrap_or_else(|| vec![Some(0)]), unit };
    let step = |axis: usize| shape[axis + 1..].iter().product();
    let outer = sources.into_iter().enumerate();
    (outer.map(|(axis, sources)| FrameAxis { sources, step: step(axis) }).collect(), row)
}

impl CpuKernel for Trilu {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let &[.., rows, columns] = shapes.input(0)? else {
            return Err("there is no matrix".into());
        };
        let is_shifted = shapes.has(1);
        if is_shifted && shapes.input(1)?.iter().product::<usize>() != 1 {
            return Err("a diagonal that is no number".into());
        }
        let upper = self.upper;
        Ok(with_plain!(shapes.dtype(0)?, T => CpuStep::new(move |call| {
            let diagonal = if is_shifted { call.input::<i64>(1)?[0] } else { 0 };
            let triangle = MatrixTriangle { rows, columns, diagonal, upper };
            let x = call.carriers::<T>(0)?;
            let mut y = call.output_carriers::<T>(0)?;
            keep_triangle(call.exec, x, triangle, T::default(), y.slice());
            Ok(())
        })))
    }
}

/// A step that gives the axes of an image, taken apart into six, another order.
fn turned(dtype: DataType, apart: [usize; 6], order: [usize; 6]) -> Result<CpuStep, String> {
    Ok(with_plain!(dtype, T => CpuStep::new(move |call| {
        let x = call.carriers::<T>(0)?;
        let mut y = call.output_carriers::<T>(0)?;
        permute(call.exec, x, &apart, &order, y.slice());
        Ok(())
    })))
}

impl CpuKernel for DepthToSpace {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let &[n, _, h, w] = shapes.input(0)? else { return Err("no image".into()) };
        let &[_, depth, ..] = shapes.output(0)? else { return Err("no image".into()) };
        let b = self.block_size;
        match self.column_row_depth {
            true => turned(shapes.dtype(0)?, [n, depth, b, b, h, w], [0, 1, 4, 2, 5, 3]),
            false => turned(shapes.dtype(0)?, [n, b, b, depth, h, w], [0, 3, 4, 1, 5, 2]),
        }
    }
}

impl CpuKernel for SpaceToDepth {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let &[n, c, ..] = shapes.input(0)? else { return Err("no image".into()) };
        let &[_, _, h, w] = shapes.output(0)? else { return Err("no image".into()) };
        let b = self.block_size;
        let order = match self.column_row_depth {
            true => [0, 1, 3, 5, 2, 4],
            false => [0, 3, 5, 1, 2, 4],
        };
        turned(shapes.dtype(0)?, [n, c, h, b, w, b], order)
    }
}

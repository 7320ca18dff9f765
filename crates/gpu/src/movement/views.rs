//! Operators whose result is the source at other steps.

use galatea_graph::OperatorInputs;
use galatea_graph::ops::shape::{
    DepthToSpace, Expand, Slice, SpaceToDepth, Split, Tile, Transpose,
};
use galatea_tensor::Tensor;

use super::strided::{StridedPlaces, copy};
use crate::axis::position;
use crate::cell::ElementCell;
use crate::elementwise::broadcast::steps;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use galatea_runtime::{NodeShapes, ValueShape};

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "move",
    domain: "",
    ops: &["DepthToSpace", "Expand", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose"],
    supports,
    build,
};

/// Operator whose result is a strided view of its input.
enum StridedView {
    Transpose(Transpose),
    Expand,
    Tile,
    Slice(Slice),
    Split(i64),
    ToSpace(DepthToSpace),
    ToDepth(SpaceToDepth),
}

fn view_of(view: &GpuNodeView<'_>) -> Result<StridedView, String> {
    let node = view.node;
    if let Some(op) = node.operator::<Transpose>() {
        return Ok(StridedView::Transpose(op.clone()));
    }
    if node.operator::<Expand>().is_some() {
        return Ok(StridedView::Expand);
    }
    if node.operator::<Tile>().is_some() {
        return Ok(StridedView::Tile);
    }
    if let Some(op) = node.operator::<Slice>() {
        return Ok(StridedView::Slice(op.clone()));
    }
    if let Some(op) = node.operator::<Split>() {
        return Ok(StridedView::Split(op.axis));
    }
    if let Some(op) = node.operator::<DepthToSpace>() {
        return Ok(StridedView::ToSpace(op.clone()));
    }
    if let Some(op) = node.operator::<SpaceToDepth>() {
        return Ok(StridedView::ToDepth(op.clone()));
    }
    Err("the operator is of another version".into())
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let data = view.input(0).ok_or("the input is missing")?;
    ElementCell::supports(view, data.dtype)?;
    if matches!(view_of(view)?, StridedView::Split(_)) && view.node.outputs.contains(&None) {
        return Err("a piece that nobody wants has no length".into());
    }
    for index in 1..view.node.inputs.len() {
        if !view.is_known(index) {
            return Err(format!("input {index} is known only in a run"));
        }
    }
    Ok(())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    Ok(Box::new(StridedCopyKernel(view_of(view)?)))
}

struct StridedCopyKernel(StridedView);

/// A slice as a slice of tensors wants its inputs.
fn slice(op: &Slice, shapes: &NodeShapes, shape: &[usize]) -> Result<StridedPlaces, String> {
    let known: Vec<Option<&Tensor>> = shapes.constants.iter().map(Option::as_ref).collect();
    if (1..shapes.inputs.len()).any(|index| shapes.has(index) && known[index].is_none()) {
        return Err("a range is not known".into());
    }
    let ranges =
        op.ranges(shape, OperatorInputs::new(&known)).map_err(|error| error.to_string())?;
    let mut places = StridedPlaces::all(shape);
    for range in ranges {
        let step = places.steps[range.axis];
        places.offset += range.start * step.unsigned_abs();
        places.lengths[range.axis] = range.len;
        // One place alone has no step.
        places.steps[range.axis] = if range.len > 1 { step * range.step } else { 0 };
    }
    Ok(places)
}

fn places(view: &StridedView, shapes: &NodeShapes) -> Result<StridedPlaces, String> {
    let shape = shapes.input(0)?;
    let result = shapes.output(0)?;
    let all = StridedPlaces::all(shape);
    Ok(match view {
        StridedView::Transpose(op) => {
            let order = op.permutation(shape.len()).map_err(|error| error.to_string())?;
            all.permuted(&order)
        }
        StridedView::Expand => {
            let by = steps(shape, result);
            let steps = by.into_iter().map(usize::cast_signed).collect();
            StridedPlaces { lengths: result.to_vec(), steps, offset: 0 }
        }
        StridedView::Tile => {
            let times = result.iter().zip(shape).map(|(all, &one)| all / one.max(1));
            all.repeated(&times.collect::<Vec<_>>())
        }
        StridedView::Slice(op) => slice(op, shapes, shape)?,
        StridedView::ToSpace(op) => {
            let &[n, c, h, w] = shape else { return Err("the input is no image".into()) };
            let b = op.block_size;
            let inner = c / (op.block_size * op.block_size);
            match op.column_row_depth {
                true => StridedPlaces::all(&[n, inner, b, b, h, w]).permuted(&[0, 1, 4, 2, 5, 3]),
                false => StridedPlaces::all(&[n, b, b, inner, h, w]).permuted(&[0, 3, 4, 1, 5, 2]),
            }
        }
        StridedView::ToDepth(op) => {
            let &[n, c, h, w] = shape else { return Err("the input is no image".into()) };
            let b = op.block_size;
            let order = if op.column_row_depth { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
            StridedPlaces::all(&[n, c, h / b, b, w / b, b]).permuted(&order)
        }
        StridedView::Split(_) => all,
    })
}

impl GpuKernel for StridedCopyKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let from = (ShaderBinding::Input(0), shapes.dtype(0)?);
        if let StridedView::Split(axis) = self.0 {
            return split(axis, shapes, step);
        }
        if shapes.output(0)?.contains(&0) {
            return Ok(());
        }
        let to = (ShaderBinding::Output(0), shapes.output_dtype(0)?);
        copy(&places(&self.0, shapes)?, from, to, step)
    }
}

/// Each piece is a slice.
fn split(axis: i64, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
    let shape = shapes.input(0)?;
    let axis = position(axis, shape.len())?;
    let mut before = 0;
    for (index, output) in shapes.outputs.iter().enumerate() {
        let Some(ValueShape { dtype, shape: lengths }) = output else {
            return Err("a piece that nobody wants has no length".into());
        };
        let mut places = StridedPlaces::all(shape);
        places.offset = before * places.steps[axis].unsigned_abs();
        places.lengths.clone_from(lengths);
        before += lengths[axis];
        let from = (ShaderBinding::Input(0), shapes.dtype(0)?);
        copy(&places, from, (ShaderBinding::Output(index), *dtype), step)?;
    }
    Ok(())
}

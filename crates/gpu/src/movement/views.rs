//! Operators whose result is the source at other steps.

use galatea_graph::Inputs;
use galatea_graph::ops::shape::{
    DepthToSpace, Expand, Slice, SpaceToDepth, Split, Tile, Transpose,
};
use galatea_tensor::Tensor;

use super::strided::{Places, copy};
use crate::cell::Cell;
use crate::elementwise::broadcast::steps;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step};

pub(super) const ROW: KernelRow = KernelRow {
    name: "move",
    domain: "",
    ops: &["DepthToSpace", "Expand", "Slice", "SpaceToDepth", "Split", "Tile", "Transpose"],
    supports,
    build,
};

/// What the operator does to places.
enum View {
    Transpose(Transpose),
    Expand,
    Tile,
    Slice(Slice),
    Split(i64),
    ToSpace(DepthToSpace),
    ToDepth(SpaceToDepth),
}

fn view_of(view: &NodeView<'_>) -> Result<View, String> {
    let node = view.node;
    if let Some(op) = node.operator::<Transpose>() {
        return Ok(View::Transpose(op.clone()));
    }
    if node.operator::<Expand>().is_some() {
        return Ok(View::Expand);
    }
    if node.operator::<Tile>().is_some() {
        return Ok(View::Tile);
    }
    if let Some(op) = node.operator::<Slice>() {
        return Ok(View::Slice(op.clone()));
    }
    if let Some(op) = node.operator::<Split>() {
        return Ok(View::Split(op.axis));
    }
    if let Some(op) = node.operator::<DepthToSpace>() {
        return Ok(View::ToSpace(op.clone()));
    }
    if let Some(op) = node.operator::<SpaceToDepth>() {
        return Ok(View::ToDepth(op.clone()));
    }
    Err("the operator is of another version".into())
}

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    let data = view.input(0).ok_or("the input is missing")?;
    Cell::supports(view, data.dtype)?;
    if matches!(view_of(view)?, View::Split(_)) && view.node.outputs.contains(&None) {
        return Err("a piece that nobody wants has no length".into());
    }
    for index in 1..view.node.inputs.len() {
        if !view.is_known(index) {
            return Err(format!("input {index} is known only in a run"));
        }
    }
    Ok(())
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    Ok(Box::new(Moved(view_of(view)?)))
}

struct Moved(View);

/// A slice as a slice of tensors wants its inputs.
fn slice(op: &Slice, shapes: &Shapes, shape: &[usize]) -> Result<Places, String> {
    let known: Vec<Option<&Tensor>> = shapes.constants.iter().map(Option::as_ref).collect();
    if (1..shapes.inputs.len()).any(|index| shapes.has(index) && known[index].is_none()) {
        return Err("a range is not known".into());
    }
    let ranges = op.ranges(shape, Inputs::new(&known)).map_err(|error| error.to_string())?;
    let mut places = Places::all(shape);
    for range in ranges {
        let step = places.steps[range.axis];
        places.offset += range.start * step.unsigned_abs();
        places.lengths[range.axis] = range.len;
        // One place alone has no step.
        places.steps[range.axis] = if range.len > 1 { step * range.step } else { 0 };
    }
    Ok(places)
}

fn places(view: &View, shapes: &Shapes) -> Result<Places, String> {
    let (shape, result) = (shapes.input(0)?, shapes.output(0)?);
    let all = Places::all(shape);
    Ok(match view {
        View::Transpose(op) => {
            let order = op.permutation(shape.len()).map_err(|error| error.to_string())?;
            all.permuted(&order)
        }
        View::Expand => {
            let by = steps(shape, result);
            let steps = by.into_iter().map(usize::cast_signed).collect();
            Places { lengths: result.to_vec(), steps, offset: 0 }
        }
        View::Tile => {
            let times = result.iter().zip(shape).map(|(all, &one)| all / one.max(1));
            all.repeated(&times.collect::<Vec<_>>())
        }
        View::Slice(op) => slice(op, shapes, shape)?,
        View::ToSpace(op) => {
            let &[n, c, h, w] = shape else { return Err("the input is no image".into()) };
            let (b, inner) = (op.block_size, c / (op.block_size * op.block_size));
            match op.column_row_depth {
                true => Places::all(&[n, inner, b, b, h, w]).permuted(&[0, 1, 4, 2, 5, 3]),
                false => Places::all(&[n, b, b, inner, h, w]).permuted(&[0, 3, 4, 1, 5, 2]),
            }
        }
        View::ToDepth(op) => {
            let &[n, c, h, w] = shape else { return Err("the input is no image".into()) };
            let b = op.block_size;
            let order = if op.column_row_depth { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
            Places::all(&[n, c, h / b, b, w / b, b]).permuted(&order)
        }
        View::Split(_) => all,
    })
}

impl Kernel for Moved {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let from = (Binding::Input(0), shapes.dtype(0)?);
        if let View::Split(axis) = self.0 {
            return split(axis, shapes, step);
        }
        if shapes.output(0)?.contains(&0) {
            return Ok(());
        }
        let to = (Binding::Output(0), shapes.output_dtype(0)?);
        copy(&places(&self.0, shapes)?, from, to, step)
    }
}

/// Each piece is a slice.
fn split(axis: i64, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
    let shape = shapes.input(0)?;
    let axis = super::position(axis, shape.len())?;
    let mut before = 0;
    for (index, output) in shapes.outputs.iter().enumerate() {
        let Some((dtype, lengths)) = output else {
            return Err("a piece that nobody wants has no length".into());
        };
        let mut places = Places::all(shape);
        places.offset = before * places.steps[axis].unsigned_abs();
        places.lengths.clone_from(lengths);
        before += lengths[axis];
        let from = (Binding::Input(0), shapes.dtype(0)?);
        copy(&places, from, (Binding::Output(index), *dtype), step)?;
    }
    Ok(())
}

//! Values that lengths decide: computed beforehand, copied in the run.

use std::sync::Arc;

use galatea_graph::ops::generate::EyeLike;
use galatea_graph::ops::shape::{Shape, Size};
use galatea_graph::{Inputs, Operator};
use galatea_tensor::Tensor;

use super::strided::{Places, copy};
use crate::cell::Cell;
use crate::device::Device;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step};
use crate::memory::Block;

pub(super) const ROW: KernelRow = KernelRow {
    name: "known",
    domain: "",
    ops: &["ConstantOfShape", "EyeLike", "Range", "Shape", "Size"],
    supports,
    build,
};

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    let dtype = view.output(0).ok_or("the output is not wanted")?.dtype;
    Cell::supports(view, dtype)?;
    let node = view.node;
    let by_shape = node.operator::<EyeLike>().is_some()
        || node.operator::<Shape>().is_some()
        || node.operator::<Size>().is_some();
    if !by_shape && !(0..view.node.inputs.len()).all(|index| view.is_known(index)) {
        return Err("what it is made of is known only in a run".into());
    }
    Ok(())
}

fn build(view: &NodeView<'_>) -> Result<Box<dyn Kernel>, String> {
    let operator = Arc::clone(&view.node.operator);
    Ok(Box::new(Known { operator, device: Arc::clone(view.device) }))
}

struct Known {
    operator: Arc<dyn Operator>,
    device: Arc<Device>,
}

impl Kernel for Known {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let mut inputs = Vec::new();
        for (index, known) in shapes.constants.iter().enumerate() {
            inputs.push(match (known, shapes.inputs.get(index)) {
                (Some(tensor), _) => Some(tensor.clone()),
                // Only its shape counts.
                (None, Some(Some((dtype, shape)))) => {
                    Some(Tensor::zeros(*dtype, shape).map_err(|error| failed(&error))?)
                }
                (None, _) => None,
            });
        }
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let found =
            self.operator.reference(Inputs::new(&inputs)).map_err(|error| failed(&error))?;
        let found = found.into_iter().next().ok_or("there is no result")?;
        let found = found.contiguous().map_err(|error| failed(&error))?;
        let bytes = found.as_bytes().map_err(|error| failed(&error))?;
        let block = Block::with(&self.device, bytes).map_err(|error| failed(&error))?;
        let from = (Binding::Weights(block), found.dtype());
        let to = (Binding::Output(0), shapes.output_dtype(0)?);
        copy(&Places::all(shapes.output(0)?), from, to, step)
    }
}

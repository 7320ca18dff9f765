//! Values that lengths decide: computed beforehand, copied in the run.

use std::sync::Arc;

use galatea_graph::ops::generate::EyeLike;
use galatea_graph::ops::shape::{Shape, Size};
use galatea_graph::{Operator, OperatorInputs};
use galatea_tensor::Tensor;

use super::strided::{StridedPlaces, copy};
use crate::cell::ElementCell;
use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use crate::memory::DeviceBlock;
use galatea_runtime::{NodeShapes, ValueShape};

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "known",
    domain: "",
    ops: &["ConstantOfShape", "EyeLike", "Range", "Shape", "Size"],
    supports,
    build,
};

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let dtype = view.output(0).ok_or("the output is not wanted")?.dtype;
    ElementCell::supports(view, dtype)?;
    let node = view.node;
    let by_shape = node.operator::<EyeLike>().is_some()
        || node.operator::<Shape>().is_some()
        || node.operator::<Size>().is_some();
    if !by_shape && !(0..view.node.inputs.len()).all(|index| view.is_known(index)) {
        return Err("what it is made of is known only in a run".into());
    }
    Ok(())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let operator = Arc::clone(&view.node.operator);
    Ok(Box::new(KnownValueKernel { operator, device: Arc::clone(view.device) }))
}

struct KnownValueKernel {
    operator: Arc<dyn Operator>,
    device: Arc<GpuDevice>,
}

impl GpuKernel for KnownValueKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let mut inputs = Vec::new();
        for (index, known) in shapes.constants.iter().enumerate() {
            inputs.push(match (known, shapes.inputs.get(index)) {
                (Some(tensor), _) => Some(tensor.clone()),
                // Only its shape counts.
                (None, Some(Some(ValueShape { dtype, shape }))) => {
                    Some(Tensor::zeros(*dtype, shape).map_err(|error| failed(&error))?)
                }
                (None, _) => None,
            });
        }
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let found = self
            .operator
            .reference(OperatorInputs::new(&inputs))
            .map_err(|error| failed(&error))?;
        let found = found.into_iter().next().ok_or("there is no result")?;
        let found = found.contiguous().map_err(|error| failed(&error))?;
        let bytes = found.as_bytes().map_err(|error| failed(&error))?;
        let block = DeviceBlock::with(&self.device, bytes).map_err(|error| failed(&error))?;
        let from = (ShaderBinding::Weights(block), found.dtype());
        let to = (ShaderBinding::Output(0), shapes.output_dtype(0)?);
        copy(&StridedPlaces::all(shapes.output(0)?), from, to, step)
    }
}

//! Functions of rows: softmax, reductions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::activation::{LogSoftmax, Softmax};
use galatea_kernels::softmax::{Form, softmax, softmax_inplace};

use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[KernelRow {
    name: "softmax-f32",
    domain: ONNX_DOMAIN,
    ops: &["Softmax", "LogSoftmax"],
    supports: |view| view.floats(&[0]),
    build: |view| Ok(Box::new(softmax_kernel(view)?)),
}];

struct SoftmaxKernel {
    form: Form,
    axis: i64,
    flatten: bool,
}

fn softmax_kernel(view: &NodeView<'_>) -> Result<SoftmaxKernel, String> {
    if let Ok(op) = view.operator::<LogSoftmax>() {
        return Ok(SoftmaxKernel { form: Form::LogSoftmax, axis: op.axis, flatten: op.flatten });
    }
    let op = view.operator::<Softmax>()?;
    Ok(SoftmaxKernel { form: Form::Softmax, axis: op.axis, flatten: op.flatten })
}

impl Kernel for SoftmaxKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let inner: usize = shape[axis + 1..].iter().product();
        if !self.flatten && inner != 1 {
            return Err(format!("axis {axis} of {shape:?} is not the last one"));
        }
        let columns = shape[axis] * inner;
        let form = self.form;
        let step = Step::new(move |call| {
            let mut y = call.output::<f32>(0)?;
            match call.optional::<f32>(0)? {
                Some(x) => softmax(call.exec, form, x, columns, y.slice()),
                None => softmax_inplace(call.exec, form, y.slice(), columns, None),
            }
            Ok(())
        });
        Ok(step.in_place(0, 0))
    }
}

/// The axis that a possibly negative number means.
pub(super) fn resolve_axis(axis: i64, rank: usize) -> Result<usize, String> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let shifted = if axis < 0 { axis.saturating_add(signed) } else { axis };
    usize::try_from(shifted)
        .ok()
        .filter(|&found| found < rank)
        .ok_or_else(|| format!("axis {axis} is outside a tensor of rank {rank}"))
}

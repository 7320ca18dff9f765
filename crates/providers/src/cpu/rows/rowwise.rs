//! Functions of rows: softmax, reductions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::activation::{LogSoftmax, Softmax};
use galatea_graph::ops::reduce::{Reduce as ReduceOp, ReduceKind};
use galatea_kernels::reduce::{Reduce, reduce_last};
use galatea_kernels::softmax::{Form, softmax, softmax_inplace};

use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[
    KernelRow {
        name: "softmax-f32",
        domain: ONNX_DOMAIN,
        ops: &["Softmax", "LogSoftmax"],
        supports: |view| view.floats(&[0]),
        build: |view| Ok(Box::new(softmax_kernel(view)?)),
    },
    KernelRow {
        name: "reduce-f32",
        domain: ONNX_DOMAIN,
        ops: &["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare"],
        supports: |view| view.floats(&[0]).and_then(|()| reduction(view).map(drop)),
        build: |view| Ok(Box::new(reduction(view)?)),
    },
];

struct Reduction {
    function: Reduce,
    op: ReduceOp,
}

fn reduction(view: &NodeView<'_>) -> Result<Reduction, String> {
    let op = view.operator::<ReduceOp>()?.clone();
    let function = match op.kind {
        ReduceKind::Sum => Reduce::Sum,
        ReduceKind::Mean => Reduce::Mean,
        ReduceKind::Max => Reduce::Max,
        ReduceKind::Min => Reduce::Min,
        ReduceKind::SumSquare => Reduce::SumSquares,
        other => return Err(format!("no vector form of {other:?}")),
    };
    if view.has(1) && view.constant(1).is_none() {
        return Err("the axes are not known before the run".into());
    }
    Ok(Reduction { function, op })
}

impl Reduction {
    /// The reduced axes as one range: elements before, in and behind it.
    fn range(&self, shapes: &Shapes) -> Result<(usize, usize, usize), String> {
        let shape = shapes.input(0)?;
        let given = shapes.integers(1).or_else(|| self.op.axes.clone()).unwrap_or_default();
        let mut axes: Vec<usize> = given
            .iter()
            .map(|&axis| resolve_axis(axis, shape.len()))
            .collect::<Result<_, String>>()?;
        axes.sort_unstable();
        axes.dedup();
        if axes.is_empty() {
            if self.op.noop_with_empty_axes {
                return Err("nothing is reduced".into());
            }
            axes = (0..shape.len()).collect();
        }
        let (Some(&first), Some(&last)) = (axes.first(), axes.last()) else {
            return Ok((1, 1, 1));
        };
        if last - first + 1 != axes.len() {
            return Err(format!("axes {axes:?} are no range"));
        }
        let product = |range: &[usize]| range.iter().product::<usize>();
        Ok((product(&shape[..first]), product(&shape[first..=last]), product(&shape[last + 1..])))
    }
}

impl Kernel for Reduction {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let (outer, len, inner) = self.range(shapes)?;
        let function = self.function;
        if outer * len * inner == 0 {
            return Err("there is nothing to reduce".into());
        }
        if inner == 1 {
            return Ok(Step::new(move |call| {
                let x = call.input::<f32>(0)?;
                let mut y = call.output::<f32>(0)?;
                reduce_last(call.exec, function, x, len, y.slice());
                Ok(())
            }));
        }
        // The terms of neighbouring results are neighbours: row by row onto the results.
        Ok(Step::new(move |call| {
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<f32>(0)?;
            let blocks = x.chunks_exact(len * inner).zip(y.slice().chunks_exact_mut(inner));
            for (block, y) in blocks {
                reduce_rows(function, block, len, y);
            }
            Ok(())
        }))
    }
}

/// Reduces `len` rows as long as `y` into it.
#[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
fn reduce_rows(function: Reduce, rows: &[f32], len: usize, y: &mut [f32]) {
    let start = match function {
        Reduce::Max => f32::NEG_INFINITY,
        Reduce::Min => f32::INFINITY,
        _ => 0.0,
    };
    y.fill(start);
    for row in rows.chunks_exact(y.len()) {
        let pairs = y.iter_mut().zip(row);
        match function {
            Reduce::SumSquares => pairs.for_each(|(y, x)| *y += x * x),
            // A NaN wins, as it does in a comparison that is false.
            Reduce::Max => {
                pairs.for_each(|(y, &x)| *y = if *y >= x || y.is_nan() { *y } else { x })
            }
            Reduce::Min => {
                pairs.for_each(|(y, &x)| *y = if *y <= x || y.is_nan() { *y } else { x })
            }
            _ => pairs.for_each(|(y, x)| *y += x),
        }
    }
    if function == Reduce::Mean {
        y.iter_mut().for_each(|y| *y /= len as f32);
    }
}

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

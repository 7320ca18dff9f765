//! Functions of rows: softmax, reductions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::activation::{LogSoftmax, Softmax};
use galatea_graph::ops::reduce::{Reduce as ReduceOp, ReduceKind};
use galatea_kernels::KernelContext;
use galatea_kernels::elementwise::{ScalarFunction, unary_inplace};
use galatea_kernels::reduce::{ReducedAxis, RowReduce, reduce_last, reduce_middle};
use galatea_kernels::softmax::{SoftmaxForm, softmax, softmax_inplace};

use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "softmax-f32",
        domain: ONNX_DOMAIN,
        ops: &["Softmax", "LogSoftmax"],
        supports: |view| view.floats(&[0]),
        build: |view| Ok(Box::new(softmax_kernel(view)?)),
    },
    CpuKernelRow {
        name: "reduce-f32",
        domain: ONNX_DOMAIN,
        ops: &[
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceSumSquare",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
        ],
        supports: |view| view.floats(&[0]).and_then(|()| reduction(view).map(drop)),
        build: |view| Ok(Box::new(reduction(view)?)),
    },
];

struct RowReduction {
    function: RowReduce,
    /// Function of what a row was reduced to.
    last: Option<ScalarFunction>,
    op: ReduceOp,
}

fn reduction(view: &CpuNodeView<'_>) -> Result<RowReduction, String> {
    let op = view.operator::<ReduceOp>()?.clone();
    let function = match op.kind {
        ReduceKind::Sum => RowReduce::Sum,
        ReduceKind::Mean => RowReduce::Mean,
        ReduceKind::Max => RowReduce::Max,
        ReduceKind::Min => RowReduce::Min,
        ReduceKind::SumSquare | ReduceKind::L2 => RowReduce::SumSquares,
        ReduceKind::L1 => RowReduce::SumAbs,
        ReduceKind::Prod => RowReduce::Product,
        ReduceKind::LogSum => RowReduce::Sum,
        other @ ReduceKind::LogSumExp => return Err(format!("no vector form of {other:?}")),
    };
    let last = match op.kind {
        ReduceKind::L2 => Some(ScalarFunction::Sqrt),
        ReduceKind::LogSum => Some(ScalarFunction::Log),
        _ => None,
    };
    if view.has(1) && view.constant(1).is_none() {
        return Err("the axes are not known before the run".into());
    }
    Ok(RowReduction { function, last, op })
}

impl RowReduction {
    /// The reduced axes as one range: elements before, in and behind it.
    fn range(&self, shapes: &NodeShapes) -> Result<(usize, usize, usize), String> {
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

impl CpuKernel for RowReduction {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (outer, len, inner) = self.range(shapes)?;
        let function = self.function;
        if outer * len * inner == 0 {
            return Err("there is nothing to reduce".into());
        }
        let last = self.last;
        let finish = move |exec: KernelContext<'_>, y: &mut [f32]| {
            if let Some(function) = last {
                unary_inplace(exec, function, y);
            }
        };
        if inner == 1 {
            return Ok(CpuStep::new(move |call| {
                let x = call.input::<f32>(0)?;
                let mut y = call.output::<f32>(0)?;
                reduce_last(call.exec, function, x, len, y.slice());
                finish(call.exec, y.slice());
                Ok(())
            }));
        }
        let axis = ReducedAxis { len, inner };
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<f32>(0)?;
            reduce_middle(call.exec, function, x, axis, y.slice());
            finish(call.exec, y.slice());
            Ok(())
        }))
    }
}

struct SoftmaxKernel {
    form: SoftmaxForm,
    axis: i64,
    flatten: bool,
}

fn softmax_kernel(view: &CpuNodeView<'_>) -> Result<SoftmaxKernel, String> {
    if let Ok(op) = view.operator::<LogSoftmax>() {
        return Ok(SoftmaxKernel {
            form: SoftmaxForm::LogSoftmax,
            axis: op.axis,
            flatten: op.flatten,
        });
    }
    let op = view.operator::<Softmax>()?;
    Ok(SoftmaxKernel { form: SoftmaxForm::Softmax, axis: op.axis, flatten: op.flatten })
}

impl CpuKernel for SoftmaxKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let shape = shapes.input(0)?;
        let axis = resolve_axis(self.axis, shape.len())?;
        let inner: usize = shape[axis + 1..].iter().product();
        if !self.flatten && inner != 1 {
            return Err(format!("axis {axis} of {shape:?} is not the last one"));
        }
        let columns = shape[axis] * inner;
        let form = self.form;
        let step = CpuStep::new(move |call| {
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

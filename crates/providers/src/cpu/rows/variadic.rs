//! Sums, means, largest and smallest elements of any number of FP32 tensors, with broadcasting.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::math::{Variadic, VariadicKind};
use galatea_kernels::KernelContext;
use galatea_kernels::elementwise::{BinaryFunction, OperandBroadcast, binary, binary_inplace};

use super::elementwise::{OperandSpread, spread};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] =
    &[row(ONNX_DOMAIN, &["Max", "Mean", "Min", "Sum"]), row("com.microsoft", &["BiasAdd"])];

const fn row(domain: &'static str, ops: &'static [&'static str]) -> CpuKernelRow {
    CpuKernelRow { name: "variadic-f32", domain, ops, supports, build }
}

fn supports(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.operator::<Variadic>()?;
    let inputs: Vec<usize> = (0..view.node.inputs.len()).collect();
    view.floats(&inputs)
}

fn build(view: &CpuNodeView<'_>) -> Result<Box<dyn CpuKernel>, String> {
    let kind = view.operator::<Variadic>()?.kind;
    Ok(Box::new(VariadicKernel { kind, inputs: view.node.inputs.len() }))
}

struct VariadicKernel {
    kind: VariadicKind,
    inputs: usize,
}

/// An operand that is joined to the result, and the way it is spread over it.
struct JoinedOperand {
    input: usize,
    spread: OperandSpread,
}

impl VariadicKernel {
    fn function(&self) -> BinaryFunction {
        match self.kind {
            VariadicKind::Max => BinaryFunction::Max,
            VariadicKind::Min => BinaryFunction::Min,
            VariadicKind::Sum | VariadicKind::Mean => BinaryFunction::Add,
        }
    }

    /// Returns the element that the function leaves every other one as it is with.
    fn identity(&self) -> f32 {
        match self.kind {
            VariadicKind::Max => f32::NEG_INFINITY,
            VariadicKind::Min => f32::INFINITY,
            // The sum of -0 and 0 is 0.
            VariadicKind::Sum | VariadicKind::Mean => -0.0,
        }
    }
}

impl CpuKernel for VariadicKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let y = shapes.output(0)?;
        let elements: usize = y.iter().product();
        let mut whole = None;
        let mut joined = Vec::with_capacity(self.inputs);
        for input in 0..self.inputs {
            let shape = shapes.input(input)?;
            if whole.is_none() && shape.iter().product::<usize>() == elements {
                whole = Some(input);
                continue;
            }
            let spread = spread(shape, y).ok_or("the shapes do not broadcast")?;
            if spread.starts.len() > 4096 {
                return Err("the operands are spread over too many blocks".into());
            }
            joined.push(JoinedOperand { input, spread });
        }
        let function = self.function();
        let identity = self.identity();
        #[allow(clippy::cast_precision_loss, reason = "a node has few inputs")]
        let divisor = (self.kind == VariadicKind::Mean).then_some([self.inputs as f32]);
        let step = CpuStep::new(move |call| {
            let mut y = call.output::<f32>(0)?;
            let y = y.slice();
            if y.is_empty() {
                return Ok(());
            }
            let mut first = match whole {
                Some(whole) => call.optional::<f32>(whole)?,
                None => {
                    y.fill(identity);
                    None
                }
            };
            for operand in &joined {
                let b = call.input::<f32>(operand.input)?;
                operand.join(call.exec, function, first.take(), b, y);
            }
            if let Some(a) = first {
                y.copy_from_slice(a);
            }
            if let Some(divisor) = &divisor {
                let all = OperandBroadcast::Scalar;
                binary_inplace(call.exec, BinaryFunction::Div, y, divisor, all);
            }
            Ok(())
        });
        Ok(match whole {
            Some(whole) => step.in_place(whole, 0),
            None => step,
        })
    }
}

impl JoinedOperand {
    /// Joins an operand `b` to `a`, or to the result where that has `a` already.
    fn join(
        &self,
        exec: KernelContext<'_>,
        function: BinaryFunction,
        a: Option<&[f32]>,
        b: &[f32],
        y: &mut [f32],
    ) {
        let OperandSpread { inner, block, operand_block, starts } = &self.spread;
        for (y, (index, &start)) in y.chunks_mut(*block).zip(starts.iter().enumerate()) {
            let b = &b[start..start + operand_block];
            match a {
                Some(a) => {
                    let a = &a[index * block..(index + 1) * block];
                    binary(exec, function, a, b, *inner, y);
                }
                None => binary_inplace(exec, function, y, b, *inner),
            }
        }
    }
}

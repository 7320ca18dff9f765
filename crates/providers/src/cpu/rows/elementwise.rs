//! Functions of single elements, and of pairs of elements.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::activation::{Activation as ActivationOp, ActivationKind, PRelu};
use galatea_graph::ops::fused::FusedActivation;
use galatea_graph::ops::math::{
    Binary as BinaryOp, BinaryKind, Clip, Unary as UnaryOp, UnaryKind, Variadic, VariadicKind,
};
use galatea_kernels::ActivationFunction;
use galatea_kernels::elementwise::{
    BinaryFunction, OperandBroadcast, ScalarFunction, binary, binary_inplace, unary, unary_inplace,
};
use galatea_tensor::DataType;

use super::spread::map_pairs;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "unary-f32",
        domain: ONNX_DOMAIN,
        ops: &[
            "Relu",
            "LeakyRelu",
            "Elu",
            "Sigmoid",
            "HardSigmoid",
            "HardSwish",
            "Tanh",
            "Softplus",
            "Softsign",
            "Gelu",
            "Mish",
            "Swish",
            "Clip",
            "Neg",
            "Abs",
            "Sqrt",
            "Exp",
            "Log",
            "Erf",
            "Reciprocal",
            "Floor",
            "Ceil",
            "Round",
            "Sign",
            "Sin",
            "Cos",
            "Tan",
            "Atan",
        ],
        supports: |view| view.floats(&[0]).and_then(|()| unary_function(view).map(drop)),
        build: |view| Ok(Box::new(UnaryKernel(unary_function(view)?))),
    },
    CpuKernelRow {
        name: "binary-f32",
        domain: ONNX_DOMAIN,
        ops: &["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "PRelu"],
        supports: |view| view.floats(&[0, 1]).and_then(|()| binary_function(view).map(drop)),
        build: |view| Ok(Box::new(BinaryKernel(binary_function(view)?))),
    },
    CpuKernelRow {
        name: "binary-integer",
        domain: ONNX_DOMAIN,
        ops: &["Add", "Sub", "Mul"],
        supports: |view| match view.input(0) {
            Some(fact) if fact.dtype.is_integer() => integer_function(view).map(drop),
            _ => Err("the kernel takes integers".into()),
        },
        build: |view| Ok(Box::new(IntegerKernel(integer_function(view)?))),
    },
];

/// The functions that wrap where they overflow, as every integer type of ONNX does.
#[derive(Clone, Copy)]
enum WrappingFunction {
    Add,
    Sub,
    Mul,
}

fn integer_function(view: &CpuNodeView<'_>) -> Result<WrappingFunction, String> {
    match view.operator::<BinaryOp>()?.kind {
        BinaryKind::Add => Ok(WrappingFunction::Add),
        BinaryKind::Sub => Ok(WrappingFunction::Sub),
        BinaryKind::Mul => Ok(WrappingFunction::Mul),
        other => Err(format!("no kernel for {other:?}")),
    }
}

/// A function of two integers.
struct IntegerKernel(WrappingFunction);

impl CpuKernel for IntegerKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        macro_rules! bind {
            ($($dtype:ident: $T:ty),*) => {
                match shapes.dtype(0)? {
                    $(DataType::$dtype => match self.0 {
                        WrappingFunction::Add => map_pairs::<$T, $T>(shapes, <$T>::wrapping_add),
                        WrappingFunction::Sub => map_pairs::<$T, $T>(shapes, <$T>::wrapping_sub),
                        WrappingFunction::Mul => map_pairs::<$T, $T>(shapes, <$T>::wrapping_mul),
                    },)*
                    dtype => Err(format!("{dtype} is no integer type")),
                }
            };
        }
        bind!(Int8: i8, Int16: i16, Int32: i32, Int64: i64, Uint8: u8, Uint16: u16, Uint32: u32,
              Uint64: u64)
    }
}

/// The kernels' form of a fused operator's activation.
pub(super) fn fused(activation: FusedActivation) -> ActivationFunction {
    match activation {
        FusedActivation::None => ActivationFunction::None,
        FusedActivation::Relu => ActivationFunction::Relu,
        FusedActivation::Clip { min, max } => ActivationFunction::Clip { min, max },
        FusedActivation::LeakyRelu { alpha } => ActivationFunction::LeakyRelu { alpha },
        FusedActivation::Sigmoid => ActivationFunction::Sigmoid,
        FusedActivation::Tanh => ActivationFunction::Tanh,
        FusedActivation::HardSwish => ActivationFunction::HardSwish,
        FusedActivation::Silu => ActivationFunction::Silu,
        FusedActivation::Gelu => ActivationFunction::Gelu,
        FusedActivation::GeluTanh => ActivationFunction::GeluTanh,
    }
}

fn unary_function(view: &CpuNodeView<'_>) -> Result<ScalarFunction, String> {
    if let Ok(op) = view.operator::<ActivationOp>() {
        return activation(op.kind);
    }
    if let Ok(op) = view.operator::<Clip>() {
        return clip(view, op).map(ScalarFunction::Activation);
    }
    unary_kind(view.operator::<UnaryOp>()?.kind)
}

/// The kernels' form of a function of mathematics.
pub(super) fn unary_kind(kind: UnaryKind) -> Result<ScalarFunction, String> {
    Ok(match kind {
        UnaryKind::Neg => ScalarFunction::Neg,
        UnaryKind::Abs => ScalarFunction::Abs,
        UnaryKind::Sqrt => ScalarFunction::Sqrt,
        UnaryKind::Exp => ScalarFunction::Exp,
        UnaryKind::Log => ScalarFunction::Log,
        UnaryKind::Erf => ScalarFunction::Erf,
        UnaryKind::Reciprocal => ScalarFunction::Reciprocal,
        UnaryKind::Floor => ScalarFunction::Floor,
        UnaryKind::Ceil => ScalarFunction::Ceil,
        UnaryKind::Round => ScalarFunction::Round,
        UnaryKind::Sign => ScalarFunction::Sign,
        UnaryKind::Sin => ScalarFunction::Sin,
        UnaryKind::Cos => ScalarFunction::Cos,
        UnaryKind::Tan => ScalarFunction::Tan,
        UnaryKind::Atan => ScalarFunction::Atan,
        other => return Err(format!("no vector form of {other:?}")),
    })
}

/// The kernels' form of an activation.
pub(super) fn activation(kind: ActivationKind) -> Result<ScalarFunction, String> {
    Ok(ScalarFunction::Activation(match kind {
        ActivationKind::Relu => ActivationFunction::Relu,
        ActivationKind::LeakyRelu { alpha } => ActivationFunction::LeakyRelu { alpha },
        ActivationKind::Sigmoid => ActivationFunction::Sigmoid,
        ActivationKind::HardSigmoid { alpha, beta } => {
            ActivationFunction::HardSigmoid { alpha, beta }
        }
        ActivationKind::HardSwish => ActivationFunction::HardSwish,
        ActivationKind::Tanh => ActivationFunction::Tanh,
        ActivationKind::Gelu { tanh: false } => ActivationFunction::Gelu,
        ActivationKind::Gelu { tanh: true } => ActivationFunction::GeluTanh,
        ActivationKind::Swish { alpha } if (alpha - 1.0).abs() < f32::EPSILON => {
            ActivationFunction::Silu
        }
        ActivationKind::Swish { alpha } => return Ok(ScalarFunction::Swish { alpha }),
        ActivationKind::Elu { alpha } => return Ok(ScalarFunction::Elu { alpha }),
        ActivationKind::Softplus => return Ok(ScalarFunction::Softplus),
        ActivationKind::Softsign => return Ok(ScalarFunction::Softsign),
        ActivationKind::Mish => return Ok(ScalarFunction::Mish),
        other => return Err(format!("no vector form of {other:?}")),
    }))
}

/// The bounds of a `Clip`, if they are known.
fn clip(view: &CpuNodeView<'_>, op: &Clip) -> Result<ActivationFunction, String> {
    let bound = |index: usize, attribute: Option<f32>, none: f32| -> Result<f32, String> {
        if !view.has(index) {
            return Ok(attribute.unwrap_or(none));
        }
        match view.constant_floats(index)?.as_slice() {
            &[bound] => Ok(bound),
            other => Err(format!("a bound of {} elements", other.len())),
        }
    };
    let min = bound(1, op.min, f32::MIN)?;
    let max = bound(2, op.max, f32::MAX)?;
    if min > max || min.is_nan() || max.is_nan() {
        return Err(format!("bounds {min} and {max}"));
    }
    Ok(ActivationFunction::Clip { min, max })
}

struct UnaryKernel(ScalarFunction);

impl CpuKernel for UnaryKernel {
    fn bind(&self, _shapes: &NodeShapes) -> Result<CpuStep, String> {
        let function = self.0;
        let step = CpuStep::new(move |call| {
            let mut y = call.output::<f32>(0)?;
            match call.optional::<f32>(0)? {
                Some(x) => unary(call.exec, function, x, y.slice()),
                None => unary_inplace(call.exec, function, y.slice()),
            }
            Ok(())
        });
        Ok(step.in_place(0, 0))
    }
}

fn binary_function(view: &CpuNodeView<'_>) -> Result<BinaryFunction, String> {
    if view.node.inputs.len() != 2 {
        return Err(format!("{} inputs, the kernel takes two", view.node.inputs.len()));
    }
    let kind = view.node.operator::<BinaryOp>().map(|op| op.kind);
    let variadic = view.node.operator::<Variadic>().map(|op| op.kind);
    Ok(match (kind, variadic, view.node.op_type.as_str()) {
        (Some(BinaryKind::Add), ..) | (_, Some(VariadicKind::Sum), _) => BinaryFunction::Add,
        (Some(BinaryKind::Sub), ..) => BinaryFunction::Sub,
        (Some(BinaryKind::Mul), ..) => BinaryFunction::Mul,
        (Some(BinaryKind::Div), ..) => BinaryFunction::Div,
        (_, Some(VariadicKind::Max), _) => BinaryFunction::Max,
        (_, Some(VariadicKind::Min), _) => BinaryFunction::Min,
        (_, _, "Pow") => BinaryFunction::Pow,
        _ if view.node.operator::<PRelu>().is_some() => BinaryFunction::Prelu,
        _ => return Err("no vector form".into()),
    })
}

/// The same function with the operands exchanged.
fn reversed(function: BinaryFunction) -> Option<BinaryFunction> {
    Some(match function {
        BinaryFunction::Sub => BinaryFunction::ReverseSub,
        BinaryFunction::Div => BinaryFunction::ReverseDiv,
        BinaryFunction::Pow => BinaryFunction::ReversePow,
        BinaryFunction::Add | BinaryFunction::Mul | BinaryFunction::Max | BinaryFunction::Min => {
            function
        }
        _ => return None,
    })
}

/// Layout of an operand that is spread over a result: blocks of the result in each of which a
/// [`OperandBroadcast`] holds.
#[derive(Debug, PartialEq)]
pub(super) struct OperandSpread {
    pub(super) inner: OperandBroadcast,
    /// Elements of the result per block.
    pub(super) block: usize,
    /// Elements of the operand per block.
    pub(super) operand_block: usize,
    /// For each block, where the operand's elements start.
    pub(super) starts: Vec<usize>,
}

/// Returns the layout of `operand` when it is spread over `result`, whose axes it broadcasts to.
pub(super) fn spread(operand: &[usize], result: &[usize]) -> Option<OperandSpread> {
    let missing = result.len().checked_sub(operand.len())?;
    // Neighbouring axes that are both spread or both not count as one.
    let mut axes: Vec<(usize, bool)> = Vec::new();
    for (axis, &len) in result.iter().enumerate().filter(|&(_, &len)| len != 1) {
        let own = axis.checked_sub(missing).map_or(1, |axis| operand[axis]);
        if own != len && own != 1 {
            return None;
        }
        match axes.last_mut() {
            Some((total, full)) if *full == (own == len) => *total *= len,
            _ => axes.push((len, own == len)),
        }
    }
    let take = match axes.as_slice() {
        [.., (_, true), (_, false)] | [.., (_, false), (_, true)] => 2,
        [_] => 1,
        _ => 0,
    };
    let outer = axes.split_off(axes.len() - take);
    let (outer, inner) = (axes, outer);
    let block: usize = inner.iter().map(|(len, _)| len).product();
    let operand_block = inner.iter().filter(|axis| axis.1).map(|(len, _)| len).product();
    let broadcast = match *inner.as_slice() {
        [(_, false), (columns, true)] => OperandBroadcast::Row { columns },
        [(_, true), (columns, false)] => OperandBroadcast::Column { columns },
        [(_, false)] => OperandBroadcast::Scalar,
        _ => OperandBroadcast::Same,
    };
    let mut starts = vec![0];
    let mut operand_step = operand_block;
    for &(len, full) in outer.iter().rev() {
        let step = if full { operand_step } else { 0 };
        starts =
            (0..len).flat_map(|at| starts.iter().map(move |start| at * step + start)).collect();
        if full {
            operand_step *= len;
        }
    }
    Some(OperandSpread { inner: broadcast, block, operand_block, starts })
}

/// A step whose operands are both shorter than the result.
fn both_spread(function: BinaryFunction, shapes: &NodeShapes) -> Result<CpuStep, String> {
    match function {
        BinaryFunction::Add => map_pairs::<f32, f32>(shapes, |a, b| a + b),
        BinaryFunction::Sub => map_pairs::<f32, f32>(shapes, |a, b| a - b),
        BinaryFunction::Mul => map_pairs::<f32, f32>(shapes, |a, b| a * b),
        BinaryFunction::Div => map_pairs::<f32, f32>(shapes, |a, b| a / b),
        other => Err(format!("both operands of {other:?} are spread")),
    }
}

struct BinaryKernel(BinaryFunction);

impl CpuKernel for BinaryKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let a = shapes.input(0)?;
        let b = shapes.input(1)?;
        let y = shapes.output(0)?;
        let full = |shape: &[usize]| shape.iter().product::<usize>() == y.iter().product::<usize>();
        let (whole, part, function) = if full(a) {
            (0, 1, self.0)
        } else if full(b) {
            (1, 0, reversed(self.0).ok_or("the operands cannot be exchanged")?)
        } else {
            return both_spread(self.0, shapes);
        };
        let part_shape = if part == 1 { b } else { a };
        let spread = spread(part_shape, y).ok_or("the shapes do not broadcast")?;
        if spread.starts.len() > 4096 {
            return Err("the operands are spread over too many blocks".into());
        }
        let step = CpuStep::new(move |call| {
            let b = call.input::<f32>(part)?;
            let mut y = call.output::<f32>(0)?;
            let y = y.slice();
            let a = call.optional::<f32>(whole)?;
            if y.is_empty() {
                return Ok(());
            }
            for (index, &start) in spread.starts.iter().enumerate() {
                let range = index * spread.block..(index + 1) * spread.block;
                let b = &b[start..start + spread.operand_block];
                match a {
                    Some(a) => {
                        let a = &a[range.clone()];
                        binary(call.exec, function, a, b, spread.inner, &mut y[range]);
                    }
                    None => binary_inplace(call.exec, function, &mut y[range], b, spread.inner),
                }
            }
            Ok(())
        });
        Ok(step.in_place(whole, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_spread_in_the_fewest_blocks() {
        let found = |operand: &[usize], result: &[usize]| {
            let spread = spread(operand, result).unwrap();
            (spread.inner, spread.block, spread.starts)
        };
        let row = |columns| OperandBroadcast::Row { columns };
        let column = |columns| OperandBroadcast::Column { columns };
        assert_eq!(found(&[2, 3], &[2, 3]), (OperandBroadcast::Same, 6, vec![0]));
        assert_eq!(found(&[], &[2, 3]), (OperandBroadcast::Scalar, 6, vec![0]));
        assert_eq!(found(&[3], &[4, 2, 3]), (row(3), 24, vec![0]));
        assert_eq!(found(&[5, 1, 1], &[2, 5, 3, 3]), (column(9), 45, vec![0, 0]));
        assert_eq!(found(&[2, 1, 1, 7], &[2, 3, 5, 7]), (row(7), 105, vec![0, 7]));
        assert_eq!(found(&[2, 1, 4, 1], &[2, 3, 4, 5]), (column(5), 20, vec![0, 0, 0, 4, 4, 4]));
        assert_eq!(found(&[1], &[1, 1]), (OperandBroadcast::Same, 1, vec![0]));
        assert_eq!(spread(&[2], &[3]), None);
    }
}

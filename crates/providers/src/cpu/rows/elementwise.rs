//! Functions of single elements, and of pairs of elements.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::activation::{Activation as ActivationOp, ActivationKind};
use galatea_graph::ops::fused::FusedActivation;
use galatea_graph::ops::math::{
    Binary as BinaryOp, BinaryKind, Clip, Unary as UnaryOp, UnaryKind, Variadic, VariadicKind,
};
use galatea_kernels::Activation;
use galatea_kernels::elementwise::{
    Binary, Broadcast, Unary, binary, binary_inplace, unary, unary_inplace,
};
use galatea_tensor::DataType;

use super::spread::map_pairs;
use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[
    KernelRow {
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
    KernelRow {
        name: "binary-f32",
        domain: ONNX_DOMAIN,
        ops: &["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum"],
        supports: |view| view.floats(&[0, 1]).and_then(|()| binary_function(view).map(drop)),
        build: |view| Ok(Box::new(BinaryKernel(binary_function(view)?))),
    },
    KernelRow {
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
enum Wrapping {
    Add,
    Sub,
    Mul,
}

fn integer_function(view: &NodeView<'_>) -> Result<Wrapping, String> {
    match view.operator::<BinaryOp>()?.kind {
        BinaryKind::Add => Ok(Wrapping::Add),
        BinaryKind::Sub => Ok(Wrapping::Sub),
        BinaryKind::Mul => Ok(Wrapping::Mul),
        other => Err(format!("no kernel for {other:?}")),
    }
}

/// A function of two integers.
struct IntegerKernel(Wrapping);

impl Kernel for IntegerKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        macro_rules! bind {
            ($($dtype:ident: $T:ty),*) => {
                match shapes.dtype(0)? {
                    $(DataType::$dtype => match self.0 {
                        Wrapping::Add => map_pairs::<$T, $T>(shapes, <$T>::wrapping_add),
                        Wrapping::Sub => map_pairs::<$T, $T>(shapes, <$T>::wrapping_sub),
                        Wrapping::Mul => map_pairs::<$T, $T>(shapes, <$T>::wrapping_mul),
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
pub(super) fn fused(activation: FusedActivation) -> Activation {
    match activation {
        FusedActivation::None => Activation::None,
        FusedActivation::Relu => Activation::Relu,
        FusedActivation::Clip { min, max } => Activation::Clip { min, max },
        FusedActivation::LeakyRelu { alpha } => Activation::LeakyRelu { alpha },
        FusedActivation::Sigmoid => Activation::Sigmoid,
        FusedActivation::Tanh => Activation::Tanh,
        FusedActivation::HardSwish => Activation::HardSwish,
        FusedActivation::Silu => Activation::Silu,
        FusedActivation::Gelu => Activation::Gelu,
        FusedActivation::GeluTanh => Activation::GeluTanh,
    }
}

fn unary_function(view: &NodeView<'_>) -> Result<Unary, String> {
    if let Ok(op) = view.operator::<ActivationOp>() {
        return activation(op.kind);
    }
    if let Ok(op) = view.operator::<Clip>() {
        return clip(view, op).map(Unary::Activation);
    }
    unary_kind(view.operator::<UnaryOp>()?.kind)
}

/// The kernels' form of a function of mathematics.
pub(super) fn unary_kind(kind: UnaryKind) -> Result<Unary, String> {
    Ok(match kind {
        UnaryKind::Neg => Unary::Neg,
        UnaryKind::Abs => Unary::Abs,
        UnaryKind::Sqrt => Unary::Sqrt,
        UnaryKind::Exp => Unary::Exp,
        UnaryKind::Log => Unary::Log,
        UnaryKind::Erf => Unary::Erf,
        UnaryKind::Reciprocal => Unary::Reciprocal,
        UnaryKind::Floor => Unary::Floor,
        UnaryKind::Ceil => Unary::Ceil,
        UnaryKind::Round => Unary::Round,
        UnaryKind::Sign => Unary::Sign,
        UnaryKind::Sin => Unary::Sin,
        UnaryKind::Cos => Unary::Cos,
        UnaryKind::Tan => Unary::Tan,
        UnaryKind::Atan => Unary::Atan,
        other => return Err(format!("no vector form of {other:?}")),
    })
}

/// The kernels' form of an activation.
pub(super) fn activation(kind: ActivationKind) -> Result<Unary, String> {
    Ok(Unary::Activation(match kind {
        ActivationKind::Relu => Activation::Relu,
        ActivationKind::LeakyRelu { alpha } => Activation::LeakyRelu { alpha },
        ActivationKind::Sigmoid => Activation::Sigmoid,
        ActivationKind::HardSigmoid { alpha, beta } => Activation::HardSigmoid { alpha, beta },
        ActivationKind::HardSwish => Activation::HardSwish,
        ActivationKind::Tanh => Activation::Tanh,
        ActivationKind::Gelu { tanh: false } => Activation::Gelu,
        ActivationKind::Gelu { tanh: true } => Activation::GeluTanh,
        ActivationKind::Swish { alpha } if (alpha - 1.0).abs() < f32::EPSILON => Activation::Silu,
        ActivationKind::Elu { alpha } => return Ok(Unary::Elu { alpha }),
        ActivationKind::Softplus => return Ok(Unary::Softplus),
        ActivationKind::Softsign => return Ok(Unary::Softsign),
        ActivationKind::Mish => return Ok(Unary::Mish),
        other => return Err(format!("no vector form of {other:?}")),
    }))
}

/// The bounds of a `Clip`, if they are known.
fn clip(view: &NodeView<'_>, op: &Clip) -> Result<Activation, String> {
    let bound = |index: usize, attribute: Option<f32>, none: f32| -> Result<f32, String> {
        if !view.has(index) {
            return Ok(attribute.unwrap_or(none));
        }
        match view.constant_floats(index)?.as_slice() {
            &[bound] => Ok(bound),
            other => Err(format!("a bound of {} elements", other.len())),
        }
    };
    let min = bound(1, op.min, f32::NEG_INFINITY)?;
    let max = bound(2, op.max, f32::INFINITY)?;
    if min > max || min.is_nan() || max.is_nan() {
        return Err(format!("bounds {min} and {max}"));
    }
    Ok(Activation::Clip { min, max })
}

struct UnaryKernel(Unary);

impl Kernel for UnaryKernel {
    fn bind(&self, _shapes: &Shapes) -> Result<Step, String> {
        let function = self.0;
        let step = Step::new(move |call| {
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

fn binary_function(view: &NodeView<'_>) -> Result<Binary, String> {
    if view.node.inputs.len() != 2 {
        return Err(format!("{} inputs, the kernel takes two", view.node.inputs.len()));
    }
    let kind = view.node.operator::<BinaryOp>().map(|op| op.kind);
    let variadic = view.node.operator::<Variadic>().map(|op| op.kind);
    Ok(match (kind, variadic, view.node.op_type.as_str()) {
        (Some(BinaryKind::Add), ..) | (_, Some(VariadicKind::Sum), _) => Binary::Add,
        (Some(BinaryKind::Sub), ..) => Binary::Sub,
        (Some(BinaryKind::Mul), ..) => Binary::Mul,
        (Some(BinaryKind::Div), ..) => Binary::Div,
        (_, Some(VariadicKind::Max), _) => Binary::Max,
        (_, Some(VariadicKind::Min), _) => Binary::Min,
        (_, _, "Pow") => Binary::Pow,
        _ => return Err("no vector form".into()),
    })
}

/// The same function with the operands exchanged.
fn reversed(function: Binary) -> Option<Binary> {
    Some(match function {
        Binary::Sub => Binary::ReverseSub,
        Binary::Div => Binary::ReverseDiv,
        Binary::Pow => Binary::ReversePow,
        Binary::Add | Binary::Mul | Binary::Max | Binary::Min => function,
        _ => return None,
    })
}

/// How one operand is spread over a result: blocks of the result in each of which a
/// [`Broadcast`] holds.
#[derive(Debug, PartialEq)]
struct Spread {
    inner: Broadcast,
    /// Elements of the result per block.
    block: usize,
    /// Elements of the operand per block.
    operand_block: usize,
    /// For each block, where the operand's elements start.
    starts: Vec<usize>,
}

/// How `operand` is spread over `result`, whose axes it broadcasts to.
fn spread(operand: &[usize], result: &[usize]) -> Option<Spread> {
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
        [(_, false), (columns, true)] => Broadcast::Row { columns },
        [(_, true), (columns, false)] => Broadcast::Column { columns },
        [(_, false)] => Broadcast::Scalar,
        _ => Broadcast::Same,
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
    Some(Spread { inner: broadcast, block, operand_block, starts })
}

/// A step whose operands are both shorter than the result.
fn both_spread(function: Binary, shapes: &Shapes) -> Result<Step, String> {
    match function {
        Binary::Add => map_pairs::<f32, f32>(shapes, |a, b| a + b),
        Binary::Sub => map_pairs::<f32, f32>(shapes, |a, b| a - b),
        Binary::Mul => map_pairs::<f32, f32>(shapes, |a, b| a * b),
        Binary::Div => map_pairs::<f32, f32>(shapes, |a, b| a / b),
        other => Err(format!("both operands of {other:?} are spread")),
    }
}

struct BinaryKernel(Binary);

impl Kernel for BinaryKernel {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let (a, b, y) = (shapes.input(0)?, shapes.input(1)?, shapes.output(0)?);
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
        let step = Step::new(move |call| {
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
        let row = |columns| Broadcast::Row { columns };
        let column = |columns| Broadcast::Column { columns };
        assert_eq!(found(&[2, 3], &[2, 3]), (Broadcast::Same, 6, vec![0]));
        assert_eq!(found(&[], &[2, 3]), (Broadcast::Scalar, 6, vec![0]));
        assert_eq!(found(&[3], &[4, 2, 3]), (row(3), 24, vec![0]));
        assert_eq!(found(&[5, 1, 1], &[2, 5, 3, 3]), (column(9), 45, vec![0, 0]));
        assert_eq!(found(&[2, 1, 1, 7], &[2, 3, 5, 7]), (row(7), 105, vec![0, 7]));
        assert_eq!(found(&[2, 1, 4, 1], &[2, 3, 4, 5]), (column(5), 20, vec![0, 0, 0, 4, 4, 4]));
        assert_eq!(found(&[1], &[1, 1]), (Broadcast::Same, 1, vec![0]));
        assert_eq!(spread(&[2], &[3]), None);
    }
}

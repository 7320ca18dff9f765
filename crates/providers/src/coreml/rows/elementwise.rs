//! Operators on elements.

use galatea_formats::coreml::mil::{Arg, Element, Var};
use galatea_graph::Node;
use galatea_graph::ops::cast::Cast;
use galatea_graph::ops::math::{Binary, BinaryKind, Clip};
use galatea_graph::ops::shape::{Dropout, Training};
use galatea_tensor::DataType;

use super::Row;
use crate::coreml::emit::{Emit, Refused, Result, form_of, refuse};

pub(super) const ROWS: &[Row] = &[
    Row::onnx("Add", |emit, node| binary(emit, node, "add")),
    Row::onnx("Sub", |emit, node| binary(emit, node, "sub")),
    Row::onnx("Mul", |emit, node| binary(emit, node, "mul")),
    Row::onnx("Div", divide),
    Row::onnx("Mod", modulo),
    Row::onnx("Pow", power),
    Row::onnx("Max", |emit, node| variadic(emit, node, "maximum")),
    Row::onnx("Min", |emit, node| variadic(emit, node, "minimum")),
    Row::onnx("Sum", |emit, node| variadic(emit, node, "add")),
    Row::onnx("Mean", mean),
    Row::onnx("Equal", |emit, node| binary(emit, node, "equal")),
    Row::onnx("Greater", |emit, node| binary(emit, node, "greater")),
    Row::onnx("GreaterOrEqual", |emit, node| binary(emit, node, "greater_equal")),
    Row::onnx("Less", |emit, node| binary(emit, node, "less")),
    Row::onnx("LessOrEqual", |emit, node| binary(emit, node, "less_equal")),
    Row::onnx("And", |emit, node| binary(emit, node, "logical_and")),
    Row::onnx("Or", |emit, node| binary(emit, node, "logical_or")),
    Row::onnx("Xor", |emit, node| binary(emit, node, "logical_xor")),
    Row::onnx("Not", |emit, node| unary(emit, node, "logical_not")),
    Row::onnx("Neg", negate),
    Row::onnx("Abs", |emit, node| unary(emit, node, "abs")),
    Row::onnx("Sqrt", |emit, node| unary(emit, node, "sqrt")),
    Row::onnx("Exp", |emit, node| unary(emit, node, "exp")),
    Row::onnx("Log", |emit, node| with_epsilon(emit, node, "log")),
    Row::onnx("Reciprocal", |emit, node| with_epsilon(emit, node, "inverse")),
    Row::onnx("Erf", |emit, node| unary(emit, node, "erf")),
    Row::onnx("Floor", |emit, node| unary(emit, node, "floor")),
    Row::onnx("Ceil", |emit, node| unary(emit, node, "ceil")),
    Row::onnx("Round", |emit, node| unary(emit, node, "round")),
    Row::onnx("Sign", |emit, node| unary(emit, node, "sign")),
    Row::onnx("Sin", |emit, node| unary(emit, node, "sin")),
    Row::onnx("Cos", |emit, node| unary(emit, node, "cos")),
    Row::onnx("Tan", |emit, node| unary(emit, node, "tan")),
    Row::onnx("Asin", |emit, node| unary(emit, node, "asin")),
    Row::onnx("Acos", |emit, node| unary(emit, node, "acos")),
    Row::onnx("Atan", |emit, node| unary(emit, node, "atan")),
    Row::onnx("Sinh", |emit, node| unary(emit, node, "sinh")),
    Row::onnx("Cosh", |emit, node| unary(emit, node, "cosh")),
    Row::onnx("Atanh", |emit, node| unary(emit, node, "atanh")),
    Row::onnx("Clip", clip),
    Row::onnx("Where", select),
    Row::onnx("Cast", cast),
    Row::onnx("CastLike", cast),
    Row::onnx("Identity", identity),
    Row::onnx("Dropout", identity),
];

/// Integers that programs compute in 32 bits: those that wrap at fewer bits or are unsigned would
/// differ.
pub(super) fn plain_integer(emit: &Emit<'_>, node: &Node) -> Result<()> {
    match emit.dtype(emit.input(node, 0)?)? {
        dtype @ (DataType::Uint8
        | DataType::Int8
        | DataType::Uint16
        | DataType::Int16
        | DataType::Uint32
        | DataType::Uint64) => refuse(format!("{dtype} wraps around where INT32 does not")),
        _ => Ok(()),
    }
}

fn binary(emit: &mut Emit<'_>, node: &Node, operator: &str) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let (mut x, mut y) = (emit.var(node, 0)?, emit.var(node, 1)?);
    // Powers may have exponents of another type.
    let (of_x, of_y) = (emit.element_of(&x)?, emit.element_of(&y)?);
    if of_x != of_y {
        y = emit.cast(&y, of_x)?;
    }
    // Comparisons take numbers only.
    let truths = of_x == Element::Bool && !operator.starts_with("logical");
    if truths {
        (x, y) = (emit.cast(&x, Element::Int32)?, emit.cast(&y, Element::Int32)?);
    }
    Ok(vec![emit.op(operator, vec![("x", Arg::Var(x)), ("y", Arg::Var(y))])?])
}

/// Squares, cubes and roots have operations which the Neural Engine takes; other powers it does not.
fn power(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let of_exponent = emit.input(node, 1).and_then(|id| emit.rank(id));
    let of_base = emit.input(node, 0).and_then(|id| emit.rank(id));
    let exponent = emit.number(node, 1).ok().filter(|_| of_exponent.ok() <= of_base.ok());
    let real = emit.dtype(emit.input(node, 0)?)?.is_float();
    match exponent.filter(|_| real) {
        Some(2.0) => unary(emit, node, "square"),
        Some(0.5) => unary(emit, node, "sqrt"),
        Some(3.0) => {
            let (x, square) = (emit.var(node, 0)?, unary(emit, node, "square")?);
            let square = square.into_iter().next();
            let square = square.ok_or_else(|| Refused("no square".to_owned()))?;
            Ok(vec![emit.op("mul", vec![("x", Arg::Var(square)), ("y", Arg::Var(x))])?])
        }
        _ => binary(emit, node, "pow"),
    }
}

fn unary(emit: &mut Emit<'_>, node: &Node, operator: &str) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    Ok(vec![emit.op(operator, vec![("x", Arg::Var(x))])?])
}

/// Functions that add a small number to their input unless they are told not to.
fn with_epsilon(emit: &mut Emit<'_>, node: &Node, operator: &str) -> Result<Vec<Var>> {
    let x = emit.var(node, 0)?;
    let epsilon = emit.float(0.0);
    Ok(vec![emit.op(operator, vec![("x", Arg::Var(x)), ("epsilon", epsilon)])?])
}

/// Quotients of integers are rounded towards zero by ONNX, and down by `floor_div`: they are the same
/// where nothing is negative, which nobody knows.
fn divide(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let dtype = emit.dtype(emit.input(node, 0)?)?;
    if !dtype.is_integer() {
        return binary(emit, node, "real_div");
    }
    plain_integer(emit, node)?;
    let (x, y) = (emit.var(node, 0)?, emit.var(node, 1)?);
    let each =
        |emit: &mut Emit<'_>, operator: &str, x: &Var| emit.op(operator, vec![("x", x.into())]);
    // |x| / |y| rounded down, with the sign of the quotient.
    let (size_x, size_y) = (each(emit, "abs", &x)?, each(emit, "abs", &y)?);
    let size = emit.op("floor_div", vec![("x", Arg::Var(size_x)), ("y", Arg::Var(size_y))])?;
    let (sign_x, sign_y) = (each(emit, "sign", &x)?, each(emit, "sign", &y)?);
    let sign = emit.op("mul", vec![("x", Arg::Var(sign_x)), ("y", Arg::Var(sign_y))])?;
    Ok(vec![emit.op("mul", vec![("x", Arg::Var(size)), ("y", Arg::Var(sign))])?])
}

fn modulo(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    match node.operator::<Binary>().map(|operator| operator.kind) {
        Some(BinaryKind::Mod { fmod: false }) => binary(emit, node, "mod"),
        _ => refuse("a remainder with the sign of the dividend"),
    }
}

fn variadic(emit: &mut Emit<'_>, node: &Node, operator: &str) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let mut result = emit.var(node, 0)?;
    for at in 1..node.inputs.len() {
        let next = emit.var(node, at)?;
        result = emit.op(operator, vec![("x", Arg::Var(result)), ("y", Arg::Var(next))])?;
    }
    Ok(vec![result])
}

#[allow(clippy::cast_precision_loss, reason = "nodes have few inputs")]
fn mean(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let sum = variadic(emit, node, "add")?;
    let share = emit.float(1.0 / node.inputs.len() as f32);
    let sum =
        sum.into_iter().map(|sum| emit.op("mul", vec![("x", Arg::Var(sum)), ("y", share.clone())]));
    sum.collect()
}

fn negate(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    let minus = match emit.element_of(&x)? {
        Element::Int32 => Arg::Int(-1),
        _ => emit.float(-1.0),
    };
    Ok(vec![emit.op("mul", vec![("x", Arg::Var(x)), ("y", minus)])?])
}

fn clip(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let x = emit.var(node, 0)?;
    if emit.element_of(&x)? == Element::Int32 {
        plain_integer(emit, node)?;
        let mut result = x;
        for (at, operator) in [(1, "maximum"), (2, "minimum")] {
            let Some(limit) = emit.optional(node, at)? else { continue };
            result = emit.op(operator, vec![("x", Arg::Var(result)), ("y", Arg::Var(limit))])?;
        }
        return Ok(vec![result]);
    }
    let (lowest, highest) = match node.operator::<Clip>() {
        Some(operator) => (operator.min, operator.max),
        None => return refuse("limits of another kind"),
    };
    let limit = |emit: &Emit<'_>, at: usize, none: f32| match node.input(at) {
        Some(_) => emit.number(node, at),
        None => Ok(none),
    };
    let low = limit(emit, 1, lowest.unwrap_or(f32::NEG_INFINITY))?;
    let high = limit(emit, 2, highest.unwrap_or(f32::INFINITY))?;
    if low > high {
        return refuse(format!("a clip to at least {low} and at most {high}"));
    }
    let (low, high) = (emit.float(low), emit.float(high));
    Ok(vec![emit.op("clip", vec![("x", Arg::Var(x)), ("alpha", low), ("beta", high)])?])
}

fn select(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let (condition, a, b) = (emit.var(node, 0)?, emit.var(node, 1)?, emit.var(node, 2)?);
    Ok(vec![emit.select(&condition, Arg::Var(a), Arg::Var(b))?])
}

/// Casts between integers of 64 and 32 bits are none in a program; one to fewer bits would have to wrap
/// around.
fn cast(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let from = emit.dtype(emit.input(node, 0)?)?;
    let to = match node.operator::<Cast>() {
        Some(operator) => operator.to,
        // The type of another value.
        None => emit.dtype(emit.input(node, 1)?)?,
    };
    let narrow = !matches!(to, DataType::Int64 | DataType::Int32 | DataType::Bool);
    if to.is_integer() && narrow && from != to {
        return refuse(format!("a cast from {from} to {to}"));
    }
    let Some(element) = form_of(to, emit.float_element()) else {
        return refuse(format!("a cast to {to}"));
    };
    let x = emit.var(node, 0)?;
    // Every number but zero is true.
    if element == Element::Bool && emit.element_of(&x)? != Element::Bool {
        let zero = match emit.element_of(&x)? {
            Element::Int32 => Arg::Int(0),
            _ => emit.float(0.0),
        };
        return Ok(vec![emit.op("not_equal", vec![("x", Arg::Var(x)), ("y", zero)])?]);
    }
    Ok(vec![emit.cast(&x, element)?])
}

/// A dropout is one where it leaves nothing out: as models are when they are not trained.
fn identity(emit: &mut Emit<'_>, node: &Node) -> Result<Vec<Var>> {
    let trains = match node.operator::<Dropout>().map(|operator| operator.training) {
        None | Some(Training::Never) => false,
        Some(Training::Always(share)) => share != 0.0,
        Some(Training::ByInput) => {
            let trains = emit.known(node, 2).and_then(|found| found.to_vec::<bool>().ok());
            let share = node.input(1).and_then(|_| emit.number(node, 1).ok());
            node.input(2).is_some() && trains != Some(vec![false]) && share != Some(0.0)
        }
    };
    if trains {
        return refuse("elements that are left out by chance, as in training");
    }
    if node.outputs.iter().skip(1).any(Option::is_some) {
        return refuse("the mask of a dropout");
    }
    Ok(vec![emit.var(node, 0)?])
}

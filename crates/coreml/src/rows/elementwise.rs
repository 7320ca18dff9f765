//! Operators on elements.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::cast::Cast;
use galatea_graph::ops::math::{Binary, BinaryKind, Clip};
use galatea_graph::ops::shape::{Dropout, DropoutMode};
use galatea_tensor::DataType;

use super::EmitRow;
use crate::emit::{ProgramEmitter, form_of};
use crate::unwritable::{Result, UnwritableNode, refuse};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("Add", |emit, node| binary(emit, node, "add")),
    EmitRow::onnx("Sub", |emit, node| binary(emit, node, "sub")),
    EmitRow::onnx("Mul", |emit, node| binary(emit, node, "mul")),
    EmitRow::onnx("Div", divide),
    EmitRow::onnx("Mod", modulo).wide("FP16 has too few digits for quotients"),
    EmitRow::onnx("Pow", power),
    EmitRow::onnx("Max", |emit, node| variadic(emit, node, "maximum")),
    EmitRow::onnx("Min", |emit, node| variadic(emit, node, "minimum")),
    EmitRow::onnx("Sum", |emit, node| variadic(emit, node, "add")),
    EmitRow::onnx("BiasAdd", |emit, node| variadic(emit, node, "add")).of("com.microsoft"),
    EmitRow::onnx("Mean", mean),
    EmitRow::onnx("Equal", |emit, node| binary(emit, node, "equal")),
    EmitRow::onnx("Greater", |emit, node| binary(emit, node, "greater")),
    EmitRow::onnx("GreaterOrEqual", |emit, node| binary(emit, node, "greater_equal")),
    EmitRow::onnx("Less", |emit, node| binary(emit, node, "less")),
    EmitRow::onnx("LessOrEqual", |emit, node| binary(emit, node, "less_equal")),
    EmitRow::onnx("And", |emit, node| binary(emit, node, "logical_and")),
    EmitRow::onnx("Or", |emit, node| binary(emit, node, "logical_or")),
    EmitRow::onnx("Xor", |emit, node| binary(emit, node, "logical_xor")),
    EmitRow::onnx("Not", |emit, node| unary(emit, node, "logical_not")),
    EmitRow::onnx("Neg", negate),
    EmitRow::onnx("Abs", |emit, node| unary(emit, node, "abs")),
    EmitRow::onnx("Sqrt", |emit, node| unary(emit, node, "sqrt")),
    EmitRow::onnx("Exp", |emit, node| unary(emit, node, "exp")),
    EmitRow::onnx("Log", |emit, node| with_epsilon(emit, node, "log")),
    EmitRow::onnx("Reciprocal", |emit, node| with_epsilon(emit, node, "inverse")),
    EmitRow::onnx("Erf", |emit, node| unary(emit, node, "erf")),
    EmitRow::onnx("Floor", |emit, node| unary(emit, node, "floor")),
    EmitRow::onnx("Ceil", |emit, node| unary(emit, node, "ceil")),
    EmitRow::onnx("Round", |emit, node| unary(emit, node, "round")),
    EmitRow::onnx("Sign", |emit, node| unary(emit, node, "sign")),
    EmitRow::onnx("Sin", |emit, node| unary(emit, node, "sin")),
    EmitRow::onnx("Cos", |emit, node| unary(emit, node, "cos")),
    EmitRow::onnx("Tan", |emit, node| unary(emit, node, "tan")),
    EmitRow::onnx("Asin", |emit, node| unary(emit, node, "asin")),
    EmitRow::onnx("Acos", |emit, node| unary(emit, node, "acos")),
    EmitRow::onnx("Atan", |emit, node| unary(emit, node, "atan")),
    EmitRow::onnx("Sinh", |emit, node| unary(emit, node, "sinh")),
    EmitRow::onnx("Cosh", |emit, node| unary(emit, node, "cosh")),
    EmitRow::onnx("Atanh", |emit, node| unary(emit, node, "atanh")),
    EmitRow::onnx("Clip", clip),
    EmitRow::onnx("Where", select),
    EmitRow::onnx("Cast", cast),
    EmitRow::onnx("CastLike", cast),
    EmitRow::onnx("Identity", identity),
    EmitRow::onnx("Dropout", identity),
];

/// Integers that programs compute in 32 bits: those that wrap at fewer bits or are unsigned would
/// differ.
pub(super) fn plain_integer(emit: &ProgramEmitter<'_>, node: &Node) -> Result<()> {
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

fn binary(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &str) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let mut x = emit.var(node, 0)?;
    let mut y = emit.var(node, 1)?;
    // Powers may have exponents of another type.
    let of_x = emit.element_of(&x)?;
    let of_y = emit.element_of(&y)?;
    if of_x != of_y {
        y = emit.cast(&y, of_x)?;
    }
    // Comparisons take numbers only.
    let truths = of_x == MilElement::Bool && !operator.starts_with("logical");
    if truths {
        (x, y) = (emit.cast(&x, MilElement::Int32)?, emit.cast(&y, MilElement::Int32)?);
    }
    Ok(vec![emit.op(operator, vec![("x", MilArg::Var(x)), ("y", MilArg::Var(y))])?])
}

/// Squares, cubes and roots have operations which the Neural Engine takes; other powers it does not.
fn power(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let of_exponent = emit.input(node, 1).and_then(|id| emit.rank(id));
    let of_base = emit.input(node, 0).and_then(|id| emit.rank(id));
    let exponent = emit.number(node, 1).ok().filter(|_| of_exponent.ok() <= of_base.ok());
    let real = emit.dtype(emit.input(node, 0)?)?.is_float();
    match exponent.filter(|_| real) {
        Some(2.0) => unary(emit, node, "square"),
        Some(0.5) => unary(emit, node, "sqrt"),
        Some(3.0) => {
            let x = emit.var(node, 0)?;
            let square = unary(emit, node, "square")?;
            let square = square.into_iter().next();
            let square = square.ok_or_else(|| UnwritableNode("no square".to_owned()))?;
            Ok(vec![emit.op("mul", vec![("x", MilArg::Var(square)), ("y", MilArg::Var(x))])?])
        }
        _ => binary(emit, node, "pow"),
    }
}

fn unary(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &str) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    Ok(vec![emit.op(operator, vec![("x", MilArg::Var(x))])?])
}

/// Functions that add a small number to their input unless they are told not to.
fn with_epsilon(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &str) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    let epsilon = emit.float(0.0);
    Ok(vec![emit.op(operator, vec![("x", MilArg::Var(x)), ("epsilon", epsilon)])?])
}

/// Quotients of integers are rounded towards zero by ONNX, and down by `floor_div`: they are the same
/// where nothing is negative, which nobody knows.
fn divide(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let dtype = emit.dtype(emit.input(node, 0)?)?;
    if !dtype.is_integer() {
        return binary(emit, node, "real_div");
    }
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    let y = emit.var(node, 1)?;
    let each = |emit: &mut ProgramEmitter<'_>, operator: &str, x: &MilVar| {
        emit.op(operator, vec![("x", x.into())])
    };
    // |x| / |y| rounded down, with the sign of the quotient.
    let size_x = each(emit, "abs", &x)?;
    let size_y = each(emit, "abs", &y)?;
    let size =
        emit.op("floor_div", vec![("x", MilArg::Var(size_x)), ("y", MilArg::Var(size_y))])?;
    let sign_x = each(emit, "sign", &x)?;
    let sign_y = each(emit, "sign", &y)?;
    let sign = emit.op("mul", vec![("x", MilArg::Var(sign_x)), ("y", MilArg::Var(sign_y))])?;
    Ok(vec![emit.op("mul", vec![("x", MilArg::Var(size)), ("y", MilArg::Var(sign))])?])
}

fn modulo(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    match node.operator::<Binary>().map(|operator| operator.kind) {
        Some(BinaryKind::Mod { fmod: false }) => binary(emit, node, "mod"),
        _ if emit.dtype(emit.input(node, 0)?)?.is_integer() => remainder_of_dividend(emit, node),
        _ => remainder_of_floats(emit, node),
    }
}

/// Remainders of floats with the sign of the dividend, exact where the quotient is below 2^24.
///
/// The quotient may be rounded up to the next whole number. Then the rest is negative, which shows since the product
/// is taken off with its rounding error.
fn remainder_of_floats(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    let y = emit.var(node, 1)?;
    let size_x = emit.op("abs", vec![("x", (&x).into())])?;
    let size_y = emit.op("abs", vec![("x", MilArg::Var(y))])?;
    let quotient = emit.pair("real_div", &size_x, &size_y)?;
    let quotient = emit.op("floor", vec![("x", MilArg::Var(quotient))])?;
    let product = emit.pair("mul", &size_y, &quotient)?;
    let excess = product_excess(emit, &size_y, &quotient, &product)?;
    let rest = emit.pair("sub", &size_x, &product)?;
    let rest = emit.pair("add", &rest, &excess)?;
    let zero = emit.float(0.0);
    let negative = emit.pair("less", &rest, zero)?;
    let back = emit.pair("add", &rest, &size_y)?;
    let rest = emit.select(&negative, MilArg::Var(back), MilArg::Var(rest))?;
    // A divisor may be infinite.
    let less = emit.pair("less", &size_x, &size_y)?;
    let rest = emit.select(&less, MilArg::Var(size_x), MilArg::Var(rest))?;
    let sign = emit.op("sign", vec![("x", MilArg::Var(x))])?;
    Ok(vec![emit.pair("mul", &rest, &sign)?])
}

/// By how much a product in FP32 is rounded up, from halves of both factors.
///
/// Source: Dekker 1971, "A floating-point technique for extending the available precision".
fn product_excess(
    emit: &mut ProgramEmitter<'_>,
    a: &MilVar,
    b: &MilVar,
    product: &MilVar,
) -> Result<MilVar> {
    let mut halves = |x: &MilVar| -> Result<[MilVar; 2]> {
        let factor = emit.float(4097.0);
        let large = emit.pair("mul", x, factor)?;
        let rest = emit.pair("sub", &large, x)?;
        let high = emit.pair("sub", &large, &rest)?;
        let low = emit.pair("sub", x, &high)?;
        Ok([high, low])
    };
    let [high_a, low_a] = halves(a)?;
    let [high_b, low_b] = halves(b)?;
    let mut sum = emit.pair("mul", &high_a, &high_b)?;
    sum = emit.pair("sub", product, &sum)?;
    for (a, b) in [(&low_a, &high_b), (&high_a, &low_b)] {
        let part = emit.pair("mul", a, b)?;
        sum = emit.pair("sub", &sum, &part)?;
    }
    let part = emit.pair("mul", &low_a, &low_b)?;
    emit.pair("sub", &sum, &part)
}

/// Remainders of integers with the sign of the dividend. `mod` gives the sign of the divisor: where the signs
/// differ, its result is one divisor too far, unless it is 0.
fn remainder_of_dividend(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    let y = emit.var(node, 1)?;
    let zero = || MilArg::Int(0);
    let remainder = emit.op("mod", vec![("x", (&x).into()), ("y", (&y).into())])?;
    let minus_x = emit.op("less", vec![("x", MilArg::Var(x)), ("y", zero())])?;
    let minus_y = emit.op("less", vec![("x", (&y).into()), ("y", zero())])?;
    let differ = vec![("x", MilArg::Var(minus_x)), ("y", MilArg::Var(minus_y))];
    let differ = emit.op("logical_xor", differ)?;
    let some = emit.op("not_equal", vec![("x", (&remainder).into()), ("y", zero())])?;
    let beyond =
        emit.op("logical_and", vec![("x", MilArg::Var(some)), ("y", MilArg::Var(differ))])?;
    let back = emit.op("sub", vec![("x", (&remainder).into()), ("y", MilArg::Var(y))])?;
    Ok(vec![emit.select(&beyond, MilArg::Var(back), MilArg::Var(remainder))?])
}

fn variadic(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &str) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let mut result = emit.var(node, 0)?;
    for at in 1..node.inputs.len() {
        let next = emit.var(node, at)?;
        result = emit.op(operator, vec![("x", MilArg::Var(result)), ("y", MilArg::Var(next))])?;
    }
    Ok(vec![result])
}

/// Each value is divided before it is added, where sums would exceed FP16.
#[allow(clippy::cast_precision_loss, reason = "nodes have few inputs")]
fn mean(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let share = 1.0 / node.inputs.len() as f32;
    let early = emit.keeps_to_half();
    let mut result = None;
    for at in 0..node.inputs.len() {
        let mut next = emit.var(node, at)?;
        if early {
            let share = emit.float(share);
            next = emit.pair("mul", &next, share)?;
        }
        result = Some(match result {
            None => next,
            Some(sum) => emit.pair("add", &sum, &next)?,
        });
    }
    let Some(sum) = result else { return refuse("a mean of nothing") };
    if early {
        return Ok(vec![sum]);
    }
    let share = emit.float(share);
    Ok(vec![emit.pair("mul", &sum, share)?])
}

fn negate(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let x = emit.var(node, 0)?;
    let minus = match emit.element_of(&x)? {
        MilElement::Int32 => MilArg::Int(-1),
        _ => emit.float(-1.0),
    };
    Ok(vec![emit.op("mul", vec![("x", MilArg::Var(x)), ("y", minus)])?])
}

fn clip(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    if emit.element_of(&x)? == MilElement::Int32 {
        plain_integer(emit, node)?;
        let mut result = x;
        for (at, operator) in [(1, "maximum"), (2, "minimum")] {
            let Some(limit) = emit.optional(node, at)? else { continue };
            result =
                emit.op(operator, vec![("x", MilArg::Var(result)), ("y", MilArg::Var(limit))])?;
        }
        return Ok(vec![result]);
    }
    let (lowest, highest) = match node.operator::<Clip>() {
        Some(operator) => (operator.min, operator.max),
        None => return refuse("limits of another kind"),
    };
    let limit = |emit: &ProgramEmitter<'_>, at: usize, none: f32| match node.input(at) {
        Some(_) => emit.number(node, at),
        None => Ok(none),
    };
    let low = limit(emit, 1, lowest.unwrap_or(f32::NEG_INFINITY))?;
    let high = limit(emit, 2, highest.unwrap_or(f32::INFINITY))?;
    if low > high {
        return refuse(format!("a clip to at least {low} and at most {high}"));
    }
    let low = emit.float(low);
    let high = emit.float(high);
    Ok(vec![emit.op("clip", vec![("x", MilArg::Var(x)), ("alpha", low), ("beta", high)])?])
}

fn select(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let condition = emit.var(node, 0)?;
    let a = emit.var(node, 1)?;
    let b = emit.var(node, 2)?;
    Ok(vec![emit.select(&condition, MilArg::Var(a), MilArg::Var(b))?])
}

/// Casts between integers of 64 and 32 bits are none in a program; one to fewer bits would have to wrap
/// around.
fn cast(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
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
    if element == MilElement::Bool && emit.element_of(&x)? != MilElement::Bool {
        let zero = match emit.element_of(&x)? {
            MilElement::Int32 => MilArg::Int(0),
            _ => emit.float(0.0),
        };
        return Ok(vec![emit.op("not_equal", vec![("x", MilArg::Var(x)), ("y", zero)])?]);
    }
    Ok(vec![emit.cast(&x, element)?])
}

/// A dropout is one where it leaves nothing out: as models are when they are not trained.
fn identity(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let trains = match node.operator::<Dropout>().map(|operator| operator.training) {
        None | Some(DropoutMode::Never) => false,
        Some(DropoutMode::Always(share)) => share != 0.0,
        Some(DropoutMode::ByInput) => {
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

//! Arithmetic, element by element.

mod binary;
mod clip;
mod cumulative;
mod pow;
mod unary;
mod variadic;

pub use binary::{Binary, BinaryKind};
pub use clip::Clip;
pub use cumulative::{Cumulative, CumulativeKind};
pub use pow::Pow;
pub use unary::{Unary, UnaryKind};
pub use variadic::{Variadic, VariadicKind};

use crate::operator::{Arity, OpDef};
use crate::ops::legacy::AlongAxis;

const fn unary(name: &'static str, since: i64, parse: crate::ops::AttributeParser) -> OpDef {
    OpDef::onnx(name, since, Arity::exactly(1), Arity::exactly(1), parse)
}

const fn binary(name: &'static str, since: i64, parse: crate::ops::AttributeParser) -> OpDef {
    OpDef::onnx(name, since, Arity::exactly(2), Arity::exactly(1), parse)
}

const fn variadic(name: &'static str, parse: crate::ops::AttributeParser) -> OpDef {
    // Broadcasting came with version 8; before, operands of one shape give the same result.
    OpDef::onnx(name, 1, Arity::at_least(1), Arity::exactly(1), parse)
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    binary("Add", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Add))),
    binary("Add", 7, |_| Binary::boxed(BinaryKind::Add)),
    binary("Sub", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Sub))),
    binary("Sub", 7, |_| Binary::boxed(BinaryKind::Sub)),
    binary("Mul", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Mul))),
    binary("Mul", 7, |_| Binary::boxed(BinaryKind::Mul)),
    binary("Div", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Div))),
    binary("Div", 7, |_| Binary::boxed(BinaryKind::Div)),
    binary("Mod", 10, |context| {
        Binary::boxed(BinaryKind::Mod { fmod: context.attributes.flag("fmod", false)? })
    }),
    binary("BitShift", 11, |context| {
        let choice = context.attributes.choice("direction", &["LEFT", "RIGHT"], usize::MAX)?;
        if choice == usize::MAX {
            return Err(crate::OpError::new("attribute 'direction' is missing"));
        }
        Binary::boxed(BinaryKind::BitShift { left: choice == 0 })
    }),
    binary("BitwiseAnd", 18, |_| Binary::boxed(BinaryKind::BitwiseAnd)),
    binary("BitwiseOr", 18, |_| Binary::boxed(BinaryKind::BitwiseOr)),
    binary("BitwiseXor", 18, |_| Binary::boxed(BinaryKind::BitwiseXor)),
    binary("Pow", 1, |c| AlongAxis::parse(c, Ok(Box::new(Pow)))),
    binary("Pow", 7, |_| Ok(Box::new(Pow))),
    unary("Neg", 1, |_| Unary::boxed(UnaryKind::Neg)),
    unary("Abs", 1, |_| Unary::boxed(UnaryKind::Abs)),
    unary("Sqrt", 1, |_| Unary::boxed(UnaryKind::Sqrt)),
    unary("Exp", 1, |_| Unary::boxed(UnaryKind::Exp)),
    unary("Log", 1, |_| Unary::boxed(UnaryKind::Log)),
    unary("Erf", 9, |_| Unary::boxed(UnaryKind::Erf)),
    unary("Reciprocal", 1, |_| Unary::boxed(UnaryKind::Reciprocal)),
    unary("Floor", 1, |_| Unary::boxed(UnaryKind::Floor)),
    unary("Ceil", 1, |_| Unary::boxed(UnaryKind::Ceil)),
    unary("Round", 11, |_| Unary::boxed(UnaryKind::Round)),
    unary("Sign", 9, |_| Unary::boxed(UnaryKind::Sign)),
    unary("Sin", 7, |_| Unary::boxed(UnaryKind::Sin)),
    unary("Cos", 7, |_| Unary::boxed(UnaryKind::Cos)),
    unary("Tan", 7, |_| Unary::boxed(UnaryKind::Tan)),
    unary("Asin", 7, |_| Unary::boxed(UnaryKind::Asin)),
    unary("Acos", 7, |_| Unary::boxed(UnaryKind::Acos)),
    unary("Atan", 7, |_| Unary::boxed(UnaryKind::Atan)),
    unary("Sinh", 9, |_| Unary::boxed(UnaryKind::Sinh)),
    unary("Cosh", 9, |_| Unary::boxed(UnaryKind::Cosh)),
    unary("Asinh", 9, |_| Unary::boxed(UnaryKind::Asinh)),
    unary("Acosh", 9, |_| Unary::boxed(UnaryKind::Acosh)),
    unary("Atanh", 9, |_| Unary::boxed(UnaryKind::Atanh)),
    unary("BitwiseNot", 18, |_| Unary::boxed(UnaryKind::BitwiseNot)),
    variadic("Min", |_| Variadic::boxed(VariadicKind::Min)),
    variadic("Max", |_| Variadic::boxed(VariadicKind::Max)),
    variadic("Sum", |_| Variadic::boxed(VariadicKind::Sum)),
    variadic("Mean", |_| Variadic::boxed(VariadicKind::Mean)),
    binary("CumSum", 11, |context| Cumulative::parse(CumulativeKind::Sum, context)),
    binary("CumProd", 26, |context| Cumulative::parse(CumulativeKind::Product, context)),
    OpDef::onnx("Clip", 1, Arity::exactly(1), Arity::exactly(1), Clip::parse_attributes),
    OpDef::onnx("Clip", 11, Arity::between(1, 3), Arity::exactly(1), Clip::parse_inputs),
];

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
    binary("Add", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Add)))
        .elementwise()
        .on_lengths(),
    binary("Add", 7, |_| Binary::boxed(BinaryKind::Add)).elementwise().on_lengths(),
    binary("Sub", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Sub)))
        .elementwise()
        .on_lengths(),
    binary("Sub", 7, |_| Binary::boxed(BinaryKind::Sub)).elementwise().on_lengths(),
    binary("Mul", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Mul)))
        .elementwise()
        .on_lengths(),
    binary("Mul", 7, |_| Binary::boxed(BinaryKind::Mul)).elementwise().on_lengths(),
    binary("Div", 1, |c| AlongAxis::parse(c, Binary::boxed(BinaryKind::Div)))
        .elementwise()
        .on_lengths()
        .transcendental(),
    binary("Div", 7, |_| Binary::boxed(BinaryKind::Div))
        .elementwise()
        .on_lengths()
        .transcendental(),
    binary("Mod", 10, |context| {
        Binary::boxed(BinaryKind::Mod { fmod: context.attributes.flag("fmod", false)? })
    })
    .elementwise(),
    binary("BitShift", 11, |context| {
        let choice = context.attributes.choice("direction", &["LEFT", "RIGHT"], usize::MAX)?;
        if choice == usize::MAX {
            return Err(crate::OpError::new("attribute 'direction' is missing"));
        }
        Binary::boxed(BinaryKind::BitShift { left: choice == 0 })
    })
    .elementwise(),
    binary("BitwiseAnd", 18, |_| Binary::boxed(BinaryKind::BitwiseAnd)).elementwise(),
    binary("BitwiseOr", 18, |_| Binary::boxed(BinaryKind::BitwiseOr)).elementwise(),
    binary("BitwiseXor", 18, |_| Binary::boxed(BinaryKind::BitwiseXor)).elementwise(),
    binary("Pow", 1, |c| AlongAxis::parse(c, Ok(Box::new(Pow)))).elementwise().transcendental(),
    binary("Pow", 7, |_| Ok(Box::new(Pow))).elementwise().transcendental(),
    unary("Neg", 1, |_| Unary::boxed(UnaryKind::Neg)).elementwise_of_first(),
    unary("Abs", 1, |_| Unary::boxed(UnaryKind::Abs)).elementwise_of_first(),
    unary("Sqrt", 1, |_| Unary::boxed(UnaryKind::Sqrt)).elementwise_of_first().transcendental(),
    unary("Exp", 1, |_| Unary::boxed(UnaryKind::Exp)).elementwise_of_first().transcendental(),
    unary("Log", 1, |_| Unary::boxed(UnaryKind::Log)).elementwise_of_first().transcendental(),
    unary("Erf", 9, |_| Unary::boxed(UnaryKind::Erf)).elementwise_of_first().transcendental(),
    unary("Reciprocal", 1, |_| Unary::boxed(UnaryKind::Reciprocal))
        .elementwise_of_first()
        .transcendental(),
    unary("Floor", 1, |_| Unary::boxed(UnaryKind::Floor)).elementwise_of_first(),
    unary("Ceil", 1, |_| Unary::boxed(UnaryKind::Ceil)).elementwise_of_first(),
    unary("Round", 11, |_| Unary::boxed(UnaryKind::Round)).elementwise_of_first(),
    unary("Sign", 9, |_| Unary::boxed(UnaryKind::Sign)).elementwise_of_first(),
    unary("Sin", 7, |_| Unary::boxed(UnaryKind::Sin)).elementwise_of_first().transcendental(),
    unary("Cos", 7, |_| Unary::boxed(UnaryKind::Cos)).elementwise_of_first().transcendental(),
    unary("Tan", 7, |_| Unary::boxed(UnaryKind::Tan)).elementwise_of_first().transcendental(),
    unary("Asin", 7, |_| Unary::boxed(UnaryKind::Asin)).elementwise_of_first().transcendental(),
    unary("Acos", 7, |_| Unary::boxed(UnaryKind::Acos)).elementwise_of_first().transcendental(),
    unary("Atan", 7, |_| Unary::boxed(UnaryKind::Atan)).elementwise_of_first().transcendental(),
    unary("Sinh", 9, |_| Unary::boxed(UnaryKind::Sinh)).elementwise_of_first().transcendental(),
    unary("Cosh", 9, |_| Unary::boxed(UnaryKind::Cosh)).elementwise_of_first().transcendental(),
    unary("Asinh", 9, |_| Unary::boxed(UnaryKind::Asinh)).elementwise_of_first().transcendental(),
    unary("Acosh", 9, |_| Unary::boxed(UnaryKind::Acosh)).elementwise_of_first().transcendental(),
    unary("Atanh", 9, |_| Unary::boxed(UnaryKind::Atanh)).elementwise_of_first().transcendental(),
    unary("BitwiseNot", 18, |_| Unary::boxed(UnaryKind::BitwiseNot)).elementwise_of_first(),
    variadic("Min", |_| Variadic::boxed(VariadicKind::Min)).elementwise().on_lengths(),
    variadic("Max", |_| Variadic::boxed(VariadicKind::Max)).elementwise().on_lengths(),
    variadic("Sum", |_| Variadic::boxed(VariadicKind::Sum)).elementwise(),
    variadic("Mean", |_| Variadic::boxed(VariadicKind::Mean)).elementwise().transcendental(),
    binary("CumSum", 11, |context| Cumulative::parse(CumulativeKind::Sum, context)).accumulating(),
    binary("CumProd", 26, |context| Cumulative::parse(CumulativeKind::Product, context))
        .accumulating(),
    OpDef::onnx("Clip", 1, Arity::exactly(1), Arity::exactly(1), Clip::parse_attributes)
        .elementwise_of_first(),
    OpDef::onnx("Clip", 11, Arity::between(1, 3), Arity::exactly(1), Clip::parse_inputs)
        .elementwise_of_first(),
];

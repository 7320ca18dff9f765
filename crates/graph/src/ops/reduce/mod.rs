//! Functions of all elements along axes.

mod arg_reduce;
mod reduction;
mod top_k;

pub use arg_reduce::{ArgReduce, ArgReduceKind};
pub use reduction::{Reduce, ReduceKind};
pub use top_k::TopK;

use crate::error::OpError;
use crate::operator::{Arity, OpDef, Operator, ParseContext};

const ONE: Arity = Arity::exactly(1);

type ParsedReduction = Result<Box<dyn Operator>, OpError>;

/// A row whose axes are an attribute.
const fn by_attribute(name: &'static str, parse: crate::ops::AttributeParser) -> OpDef {
    OpDef::onnx(name, 1, ONE, ONE, parse)
}

/// A row whose axes are an optional second input.
const fn by_input(name: &'static str, since: i64, parse: crate::ops::AttributeParser) -> OpDef {
    OpDef::onnx(name, since, Arity::between(1, 2), ONE, parse)
}

fn attribute(kind: ReduceKind, context: &mut ParseContext<'_>) -> ParsedReduction {
    let axes = context.attributes.ints("axes")?;
    let keepdims = context.attributes.flag("keepdims", true)?;
    Ok(Box::new(Reduce { kind, axes, keepdims, noop_with_empty_axes: false }))
}

fn input(kind: ReduceKind, context: &mut ParseContext<'_>) -> ParsedReduction {
    let keepdims = context.attributes.flag("keepdims", true)?;
    let noop_with_empty_axes = context.attributes.flag("noop_with_empty_axes", false)?;
    Ok(Box::new(Reduce { kind, axes: None, keepdims, noop_with_empty_axes }))
}

fn arg(kind: ArgReduceKind, context: &mut ParseContext<'_>) -> ParsedReduction {
    let axis = context.attributes.int_or("axis", 0)?;
    let keepdims = context.attributes.flag("keepdims", true)?;
    let select_last_index =
        context.opset >= 12 && context.attributes.flag("select_last_index", false)?;
    Ok(Box::new(ArgReduce { kind, axis, keepdims, select_last_index }))
}

/// The family's rows.
pub const OPS: &[OpDef] = &[
    by_attribute("ReduceSum", |c| attribute(ReduceKind::Sum, c)).rows_apart().accumulating(),
    by_input("ReduceSum", 13, |c| input(ReduceKind::Sum, c)).rows_apart().accumulating(),
    by_attribute("ReduceMean", |c| attribute(ReduceKind::Mean, c)).rows_apart().accumulating(),
    by_input("ReduceMean", 18, |c| input(ReduceKind::Mean, c)).rows_apart().accumulating(),
    by_attribute("ReduceMax", |c| attribute(ReduceKind::Max, c)).rows_apart(),
    by_input("ReduceMax", 18, |c| input(ReduceKind::Max, c)).rows_apart(),
    by_attribute("ReduceMin", |c| attribute(ReduceKind::Min, c)).rows_apart(),
    by_input("ReduceMin", 18, |c| input(ReduceKind::Min, c)).rows_apart(),
    by_attribute("ReduceProd", |c| attribute(ReduceKind::Prod, c)).rows_apart().accumulating(),
    by_input("ReduceProd", 18, |c| input(ReduceKind::Prod, c)).rows_apart().accumulating(),
    by_attribute("ReduceL1", |c| attribute(ReduceKind::L1, c)).rows_apart().accumulating(),
    by_input("ReduceL1", 18, |c| input(ReduceKind::L1, c)).rows_apart().accumulating(),
    by_attribute("ReduceL2", |c| attribute(ReduceKind::L2, c)).rows_apart().accumulating(),
    by_input("ReduceL2", 18, |c| input(ReduceKind::L2, c)).rows_apart().accumulating(),
    by_attribute("ReduceLogSum", |c| attribute(ReduceKind::LogSum, c)).rows_apart().accumulating(),
    by_input("ReduceLogSum", 18, |c| input(ReduceKind::LogSum, c)).rows_apart().accumulating(),
    by_attribute("ReduceLogSumExp", |c| attribute(ReduceKind::LogSumExp, c))
        .rows_apart()
        .accumulating(),
    by_input("ReduceLogSumExp", 18, |c| input(ReduceKind::LogSumExp, c))
        .rows_apart()
        .accumulating(),
    by_attribute("ReduceSumSquare", |c| attribute(ReduceKind::SumSquare, c))
        .rows_apart()
        .accumulating(),
    by_input("ReduceSumSquare", 18, |c| input(ReduceKind::SumSquare, c))
        .rows_apart()
        .accumulating(),
    OpDef::onnx("ArgMax", 1, ONE, ONE, |c| arg(ArgReduceKind::Max, c)),
    OpDef::onnx("ArgMin", 1, ONE, ONE, |c| arg(ArgReduceKind::Min, c)),
    OpDef::onnx("TopK", 1, ONE, Arity::exactly(2), TopK::parse_attribute),
    OpDef::onnx("TopK", 10, Arity::exactly(2), Arity::exactly(2), TopK::parse_input),
];

//! Operators that make one element of many, and those that put elements in order.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::math::{Cumulative, CumulativeKind};
use galatea_graph::ops::reduce::{ArgReduce, ArgReduceKind, Reduce, ReduceKind, TopK};

use super::EmitRow;
use super::elementwise::plain_integer;
use crate::emit::ProgramEmitter;
use crate::lengths::{LengthElement, SliceTake};
use crate::unwritable::{Result, refuse, small, small_all};

const SQUARES: &str = "squares exceed FP16 where the result does not";
const SUMS: &str = "sums exceed FP16 where their logarithms do not";

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("ReduceSum", reduce),
    EmitRow::onnx("ReduceMean", reduce),
    EmitRow::onnx("ReduceMax", reduce),
    EmitRow::onnx("ReduceMin", reduce),
    EmitRow::onnx("ReduceProd", reduce).wide("products lose digits"),
    EmitRow::onnx("ReduceL1", reduce),
    EmitRow::onnx("ReduceL2", reduce).wide(SQUARES),
    EmitRow::onnx("ReduceSumSquare", reduce).wide(SQUARES),
    EmitRow::onnx("ReduceLogSum", reduce).wide(SUMS),
    EmitRow::onnx("ReduceLogSumExp", reduce).wide(SUMS),
    EmitRow::onnx("ArgMax", arg_reduce),
    EmitRow::onnx("ArgMin", arg_reduce),
    EmitRow::onnx("TopK", top_k),
    EmitRow::onnx("CumSum", cumulative).wide("running sums lose digits"),
];

fn name_of(kind: ReduceKind) -> &'static str {
    match kind {
        ReduceKind::Sum => "reduce_sum",
        ReduceKind::Mean => "reduce_mean",
        ReduceKind::Max => "reduce_max",
        ReduceKind::Min => "reduce_min",
        ReduceKind::Prod => "reduce_prod",
        ReduceKind::L1 => "reduce_l1_norm",
        ReduceKind::L2 => "reduce_l2_norm",
        ReduceKind::LogSum => "reduce_log_sum",
        ReduceKind::LogSumExp => "reduce_log_sum_exp",
        ReduceKind::SumSquare => "reduce_sum_square",
    }
}

fn reduce(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Reduce>() else { return refuse("another kind") };
    let kind = operator.kind;
    let keeps = operator.keepdims;
    let id = emit.input(node, 0)?;
    let dtype = emit.dtype(id)?;
    let rank = emit.rank(id)?;
    let ordered = matches!(kind, ReduceKind::Max | ReduceKind::Min);
    if !ordered {
        plain_integer(emit, node)?;
    }
    let computed = matches!(
        kind,
        ReduceKind::Mean | ReduceKind::L2 | ReduceKind::LogSum | ReduceKind::LogSumExp
    );
    if computed && !dtype.is_float() {
        return refuse(format!("{} of {dtype}, which is rounded", node.op_type));
    }
    let given = match (&operator.axes, node.input(1)) {
        (Some(axes), _) => axes.clone(),
        (None, Some(_)) => emit.integers(node, 1)?,
        (None, None) => Vec::new(),
    };
    let noop = operator.noop_with_empty_axes;
    let axes = match given.is_empty() {
        true if noop => Vec::new(),
        true => (0..rank).collect(),
        false => given.iter().map(|&axis| emit.axis(axis, rank)).collect::<Result<Vec<_>>>()?,
    };
    let x = emit.var(node, 0)?;
    let operation = name_of(kind);
    let result = emit.as_numbers(&x, |emit, x| match axes.is_empty() {
        // The function of each element alone: of a new axis.
        true => {
            let alone = emit.unsqueeze(x, &[rank])?;
            reduced(emit, operation, &alone, &[rank], false)
        }
        false => reduced(emit, operation, x, &axes, keeps),
    })?;
    Ok(vec![result])
}

fn reduced(
    emit: &mut ProgramEmitter<'_>,
    operation: &str,
    x: &MilVar,
    axes: &[usize],
    keeps: bool,
) -> Result<MilVar> {
    let axes = MilArg::Ints(small_all(axes)?);
    emit.op(operation, vec![("x", x.into()), ("axes", axes), ("keep_dims", MilArg::Bool(keeps))])
}

/// Emits the position of an extreme. The operator takes the first of equal elements: the last one
/// is the first from the end.
fn arg_reduce(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ArgReduce>() else { return refuse("another kind") };
    let kind = operator.kind;
    let keeps = operator.keepdims;
    let last = operator.select_last_index;
    let dims = emit.dims(emit.input(node, 0)?)?;
    let axis = emit.axis(operator.axis, dims.len())?;
    let at = small(axis)?;
    let x = emit.var(node, 0)?;
    let turned = match last {
        true => emit.op("reverse", vec![("x", (&x).into()), ("axes", MilArg::Ints(vec![at]))])?,
        false => x.clone(),
    };
    let operation = match kind {
        ArgReduceKind::Max => "reduce_argmax",
        ArgReduceKind::Min => "reduce_argmin",
    };
    let mut inputs = vec![
        ("x", MilArg::Var(turned)),
        ("axis", MilArg::Int(at)),
        ("keep_dims", MilArg::Bool(keeps)),
    ];
    if emit.opset() >= 7 {
        inputs.push(("output_dtype", MilArg::Text("int32")));
    }
    let found = emit.op(operation, inputs)?;
    if !last {
        return Ok(vec![found]);
    }
    let end = match emit.length(&x, axis, &dims[axis])? {
        LengthElement::Known(len) => MilArg::Int(len - 1),
        LengthElement::Found(len) => {
            let len = emit.scalar(&len)?;
            MilArg::Var(emit.pair("sub", MilArg::Var(len), MilArg::Int(1))?)
        }
    };
    Ok(vec![emit.pair("sub", end, MilArg::Var(found))?])
}

/// A number that only a run knows cuts what is sorted as a whole.
fn top_k(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<TopK>() else { return refuse("another kind") };
    let largest = operator.largest;
    let sorted = operator.sorted;
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axis = emit.axis(operator.axis, rank)?;
    let known = match operator.k {
        Some(k) => Some(k),
        None => emit.integers(node, 1).ok().and_then(|all| all.first().copied()),
    };
    let x = emit.var(node, 0)?;
    let place = MilArg::Int(small(axis)?);
    let ascending = MilArg::Bool(!largest);
    let Some(count) = known else {
        let inputs = vec![("x", (&x).into()), ("axis", place.clone()), ("ascending", ascending)];
        let order = emit.op("argsort", inputs)?;
        let count = emit.var(node, 1)?;
        let mut cut = SliceTake::whole(rank);
        cut.end[axis] = LengthElement::Found(count);
        cut.to_last[axis] = false;
        let order = emit.cut(&order, cut)?;
        let values = super::take::gather_elements_of(emit, &x, &order, axis)?;
        return Ok(vec![values, order]);
    };
    let Ok(count) = i32::try_from(count) else { return refuse(format!("{count} elements")) };
    let mut inputs = vec![
        ("x", MilArg::Var(x)),
        ("k", MilArg::Int(count)),
        ("axis", place),
        ("ascending", ascending),
    ];
    if emit.opset() >= 6 {
        inputs.push(("sort", MilArg::Bool(sorted)));
        inputs.push(("return_indices", MilArg::Bool(true)));
    }
    if emit.opset() >= 7 {
        inputs.push(("output_indices_dtype", MilArg::Text("int32")));
    }
    emit.op_of("topk", inputs, 2)
}

fn cumulative(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<Cumulative>() else { return refuse("another kind") };
    if operator.kind != CumulativeKind::Sum {
        return refuse("running products");
    }
    plain_integer(emit, node)?;
    let exclusive = operator.exclusive;
    let reverse = operator.reverse;
    let rank = emit.rank(emit.input(node, 0)?)?;
    let axis = match emit.integers(node, 1)?.as_slice() {
        &[axis] => emit.axis(axis, rank)?,
        other => return refuse(format!("{} axes", other.len())),
    };
    let x = emit.var(node, 0)?;
    debug_assert_ne!(emit.element_of(&x).ok(), Some(MilElement::Bool));
    let inputs = vec![
        ("x", MilArg::Var(x)),
        ("axis", MilArg::Int(small(axis)?)),
        ("exclusive", MilArg::Bool(exclusive)),
        ("reverse", MilArg::Bool(reverse)),
    ];
    Ok(vec![emit.op("cumsum", inputs)?])
}

//! Operators that make values, and questions about numbers.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::generate::{ConstantOfShape, EyeLike};
use galatea_graph::ops::logic::IsInf;
use galatea_tensor::{DataType, Tensor};

use super::EmitRow;
use crate::emit::{ProgramEmitter, form_of};
use crate::unwritable::{Result, refuse, small_all};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("ConstantOfShape", constant_of_shape),
    EmitRow::onnx("Range", range).wide("positions beyond 2048 have no place in FP16"),
    EmitRow::onnx("EyeLike", eye_like),
    EmitRow::onnx("IsNaN", is_nan),
    EmitRow::onnx("IsInf", is_inf),
];

/// The one element of a tensor as a parameter.
fn literal(emit: &ProgramEmitter<'_>, value: &Tensor) -> Result<MilArg> {
    let Some(element) = form_of(value.dtype(), emit.float_element()) else {
        return refuse(format!("a fill of {}", value.dtype()));
    };
    let wrong = || refuse(format!("a fill of {value:?}"));
    Ok(match element {
        MilElement::Bool => match value.to_vec::<bool>().as_deref() {
            Ok([one]) => MilArg::Bool(*one),
            _ => return wrong(),
        },
        MilElement::Int32 => match value.to_i64_vec().as_deref() {
            Ok([one]) => match i32::try_from(*one) {
                Ok(one) => MilArg::Int(one),
                Err(_) => return refuse(format!("{one} is beyond 32 bits")),
            },
            _ => return wrong(),
        },
        _ => {
            let wide = galatea_graph::converted(value, DataType::Fp32).ok();
            match wide.and_then(|wide| wide.to_vec::<f32>().ok()).as_deref() {
                Some([one]) => emit.float(*one),
                _ => return wrong(),
            }
        }
    })
}

fn constant_of_shape(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<ConstantOfShape>() else { return refuse("another kind") };
    let value = literal(emit, &operator.value)?;
    let shape = match emit.output_shape(node) {
        Ok(shape) if shape.is_empty() => {
            let one = emit.fill(MilArg::Ints(vec![1]), value)?;
            return Ok(vec![emit.scalar(&one)?]);
        }
        Ok(shape) => MilArg::Ints(small_all(&shape)?),
        Err(_) => MilArg::Var(emit.var(node, 0)?),
    };
    Ok(vec![emit.fill(shape, value)?])
}

fn range(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let mut bounds = Vec::with_capacity(3);
    for (at, name) in ["start", "end", "step"].into_iter().enumerate() {
        let bound = emit.var(node, at)?;
        bounds.push((name, MilArg::Var(emit.scalar(&bound)?)));
    }
    Ok(vec![emit.op("range_1d", bounds)?])
}

fn eye_like(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<EyeLike>() else { return refuse("another kind") };
    let shape = emit.output_shape(node)?;
    let &[rows, columns] = shape.as_slice() else {
        return refuse(format!("{} axes", shape.len()));
    };
    let signed = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    let on = |at: usize| i32::from(signed(at % columns) - signed(at / columns) == operator.k);
    let table = emit.table(&shape, (0..rows * columns).map(on).collect())?;
    let dtype = emit.dtype(node.output(0).map_or_else(|| emit.input(node, 0), Ok)?)?;
    match form_of(dtype, emit.float_element()) {
        Some(element) => Ok(vec![emit.cast(&table, element)?]),
        None => refuse(format!("a value of {dtype}")),
    }
}

/// Only what is no number differs from itself.
fn is_nan(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let x = emit.var(node, 0)?;
    Ok(vec![emit.pair("not_equal", &x, &x)?])
}

/// Only infinities exceed the largest number.
fn is_inf(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<IsInf>() else { return refuse("another kind") };
    let negative = operator.detect_negative;
    let positive = operator.detect_positive;
    let x = emit.var(node, 0)?;
    let largest = match emit.element_of(&x)? {
        MilElement::Fp16 => 65504.0,
        _ => f32::MAX,
    };
    let high = emit.float(largest);
    let low = emit.float(-largest);
    Ok(vec![match (negative, positive) {
        (true, true) => {
            let size = emit.op("abs", vec![("x", MilArg::Var(x))])?;
            emit.pair("greater", MilArg::Var(size), high)?
        }
        (false, true) => emit.pair("greater", MilArg::Var(x), high)?,
        (true, false) => emit.pair("less", MilArg::Var(x), low)?,
        (false, false) => {
            let never = emit.pair("not_equal", &x, &x)?;
            let ever = emit.op("logical_not", vec![("x", (&never).into())])?;
            emit.pair("logical_and", MilArg::Var(never), MilArg::Var(ever))?
        }
    }])
}

//! Matrix products.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};
use galatea_graph::ops::contrib::{FusedGemm, OperandTransposition, TurnedMatMul};
use galatea_graph::ops::fused::FusedMatMul;
use galatea_graph::ops::matrix::Gemm;
use galatea_graph::{Node, ValueId};

use super::EmitRow;
use super::activation::{apply, fused};
use super::elementwise::plain_integer;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small_all};

/// The smallest factor that comes before a product: smaller ones may leave too few digits of what they scale.
const MIN_EARLY: f32 = 1.0 / 1024.0;

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("MatMul", mat_mul),
    EmitRow::onnx("Gemm", gemm),
    EmitRow::onnx("FusedMatMul", fused_mat_mul).of("ai.galatea"),
    EmitRow::onnx("FusedMatMul", turned_mat_mul).of("com.microsoft"),
    EmitRow::onnx("TransposeMatMul", turned_mat_mul).of("com.microsoft"),
    EmitRow::onnx("FusedGemm", fused_gemm).of("com.microsoft"),
];

/// `x · y`, each turned before where it says so.
pub(super) fn product(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    y: &MilVar,
    turn_x: bool,
    turn_y: bool,
) -> Result<MilVar> {
    let inputs = vec![
        ("x", x.into()),
        ("y", y.into()),
        ("transpose_x", MilArg::Bool(turn_x)),
        ("transpose_y", MilArg::Bool(turn_y)),
    ];
    emit.op("matmul", inputs)
}

/// `x · weight + bias` with a constant matrix, `[outputs, inputs]` where it is `turned`; none where
/// `linear` does not take it. It is the form that Core ML compiles best.
fn linear(
    emit: &mut ProgramEmitter<'_>,
    x: &MilVar,
    rank: usize,
    weight: ValueId,
    turned: bool,
    bias: Option<ValueId>,
) -> Result<Option<MilVar>> {
    let fits = (1..=3).contains(&rank) && emit.rank(weight)? == 2;
    let fits = fits && (emit.is_constant(weight) || turned && emit.is_fixed(weight));
    if !fits || emit.element_of(x)? == MilElement::Int32 {
        return Ok(None);
    }
    let columns = emit.known_length(weight, usize::from(!turned))?;
    let bias = match bias {
        None => emit.zeros(columns)?,
        Some(id) if emit.is_fixed(id) && emit.shape(id)? == [columns] => emit.value(id)?,
        Some(_) => return Ok(None),
    };
    let weight = if turned { emit.value(weight)? } else { emit.turned(weight)? };
    let inputs =
        vec![("x", x.into()), ("weight", MilArg::Var(weight)), ("bias", MilArg::Var(bias))];
    emit.op("linear", inputs).map(Some)
}

fn mat_mul(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let a = emit.input(node, 0)?;
    let b = emit.input(node, 1)?;
    Ok(vec![mat_mul_of(emit, a, b, false, None)?])
}

/// The product of two values of the graph, and a bias.
fn mat_mul_of(
    emit: &mut ProgramEmitter<'_>,
    a: ValueId,
    b: ValueId,
    turn_b: bool,
    bias: Option<ValueId>,
) -> Result<MilVar> {
    let rank_a = emit.rank(a)?;
    let rank_b = emit.rank(b)?;
    let mut x = emit.value(a)?;
    if let Some(found) = linear(emit, &x, rank_a, b, turn_b, bias)? {
        return Ok(found);
    }
    let mut y = emit.value(b)?;
    // Vectors are matrices of one row or one column.
    let axes = |axis: i32| ("axes", MilArg::Ints(vec![axis]));
    if rank_a == 1 {
        x = emit.op("expand_dims", vec![("x", MilArg::Var(x)), axes(0)])?;
    }
    if rank_b == 1 {
        y = emit.op("expand_dims", vec![("x", MilArg::Var(y)), axes(1)])?;
    }
    let mut result = product(emit, &x, &y, false, turn_b)?;
    let mut lost = Vec::new();
    if rank_a == 1 {
        lost.push(-2);
    }
    if rank_b == 1 {
        lost.push(-1);
    }
    if !lost.is_empty() {
        let inputs = vec![("x", MilArg::Var(result)), ("axes", MilArg::Ints(lost))];
        result = emit.op("squeeze", inputs)?;
    }
    match bias {
        None => Ok(result),
        Some(id) => {
            let bias = emit.value(id)?;
            emit.pair("add", &result, &bias)
        }
    }
}

fn gemm(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    match node.operator::<Gemm>() {
        Some(operator) => Ok(vec![gemm_of(emit, node, operator)?]),
        None => refuse("a product of another kind"),
    }
}

fn gemm_of(emit: &mut ProgramEmitter<'_>, node: &Node, operator: &Gemm) -> Result<MilVar> {
    plain_integer(emit, node)?;
    let b = emit.input(node, 1)?;
    let x = emit.var(node, 0)?;
    let one = operator.alpha == 1.0 && (operator.beta == 1.0 || node.input(2).is_none());
    if one
        && !operator.trans_a
        && let Some(found) = linear(emit, &x, 2, b, operator.trans_b, node.input(2))?
    {
        return Ok(found);
    }
    let integers = emit.element_of(&x)? == MilElement::Int32;
    if integers && !one {
        return refuse("integers times a factor");
    }
    let y = emit.value(b)?;
    // What makes sums smaller comes first, so that FP16 holds them.
    let early = (MIN_EARLY..1.0).contains(&operator.alpha.abs());
    let x = match early {
        true => {
            let alpha = emit.float(operator.alpha);
            emit.pair("mul", &x, alpha)?
        }
        false => x,
    };
    let mut result = product(emit, &x, &y, operator.trans_a, operator.trans_b)?;
    if operator.alpha != 1.0 && !early {
        let alpha = emit.float(operator.alpha);
        result = emit.pair("mul", &result, alpha)?;
    }
    if let Some(mut bias) = emit.optional(node, 2)? {
        if operator.beta != 1.0 {
            let beta = emit.float(operator.beta);
            bias = emit.pair("mul", &bias, beta)?;
        }
        result = emit.pair("add", &result, &bias)?;
    }
    Ok(result)
}

fn fused_gemm(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<FusedGemm>() else {
        return refuse("a product of another kind");
    };
    let result = gemm_of(emit, node, &operator.gemm)?;
    match operator.activation {
        None => Ok(vec![result]),
        Some(kind) => Ok(vec![apply(emit, kind, &result)?]),
    }
}

fn fused_mat_mul(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<FusedMatMul>() else {
        return refuse("a product of another kind");
    };
    let a = emit.input(node, 0)?;
    let b = emit.input(node, 1)?;
    let mut result = mat_mul_of(emit, a, b, operator.trans_b, node.input(2))?;
    if let Some(residual) = emit.optional(node, 3)? {
        result = emit.pair(if operator.gated { "mul" } else { "add" }, &result, &residual)?;
    }
    Ok(vec![fused(emit, operator.activation, &result)?])
}

/// An operand whose first axis may come behind the others but the last.
fn brought(
    emit: &mut ProgramEmitter<'_>,
    node: &Node,
    at: usize,
    turn: OperandTransposition,
) -> Result<MilVar> {
    let rank = emit.rank(emit.input(node, at)?)?;
    let x = emit.var(node, at)?;
    if !turn.batch || rank <= 2 {
        return Ok(x);
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order[..rank - 1].rotate_left(1);
    let perm = MilArg::Ints(small_all(&order)?);
    emit.op("transpose", vec![("x", MilArg::Var(x)), ("perm", perm)])
}

fn turned_mat_mul(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<TurnedMatMul>() else {
        return refuse("a product of another kind");
    };
    for at in 0..2 {
        if emit.rank(emit.input(node, at)?)? < 2 {
            return refuse("a product of vectors");
        }
    }
    let x = brought(emit, node, 0, operator.a)?;
    let y = brought(emit, node, 1, operator.b)?;
    // The factor comes first, so that sums stay small.
    let x = match operator.alpha {
        1.0 => x,
        alpha => {
            let alpha = emit.float(alpha);
            emit.pair("mul", &x, alpha)?
        }
    };
    Ok(vec![product(emit, &x, &y, operator.a.matrix, operator.b.matrix)?])
}

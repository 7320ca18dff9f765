//! Weights of few bits as `com.microsoft` packs them: they stay codes with a scale for each block in the
//! package.

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ops::contrib::{GatherBlockQuantized, MatMulNBits};
use galatea_graph::ops::quantize::{DequantizeLinear, ScaleGrouping};
use galatea_graph::{Dim, Node, Operator, OperatorInputs, ValueId, converted};
use galatea_tensor::{DataType, SmallType, Tensor};

use super::EmitRow;
use super::parts::DecomposedNode;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse};

pub(super) const ROWS: &[EmitRow] = &[
    EmitRow::onnx("MatMulNBits", mat_mul).of("com.microsoft"),
    EmitRow::onnx("GatherBlockQuantized", gather).of("com.microsoft"),
];

fn failed(error: &dyn std::fmt::Display) -> UnwritableNode {
    UnwritableNode(error.to_string())
}

/// Bytes of an input that must be known before a run.
fn bytes(emit: &ProgramEmitter<'_>, node: &Node, at: usize) -> Result<Vec<u8>> {
    let known = emit.known(node, at).ok_or_else(|| {
        UnwritableNode(format!("weights of few bits (input {at}) that are known in a run only"))
    })?;
    known.to_vec::<u8>().map_err(|error| failed(&error))
}

/// The first `count` numbers of each row of packed bytes, from the low bits of a byte up.
fn unpacked(all: &[u8], bits: u32, rows: usize, count: usize) -> Result<Vec<u8>> {
    if rows == 0 || !all.len().is_multiple_of(rows) || bits == 0 || bits > 8 {
        return refuse(format!("{} bytes of {bits} bits in {rows} rows", all.len()));
    }
    let width = all.len() / rows;
    let mask = u8::MAX >> (8 - bits);
    let mut numbers = Vec::with_capacity(rows * count);
    for row in all.chunks(width.max(1)) {
        let each = row.iter().flat_map(|&byte| {
            (0..8).step_by(bits as usize).map(move |shift| (byte >> shift) & mask)
        });
        let before = numbers.len();
        numbers.extend(each.take(count));
        if numbers.len() - before != count {
            return refuse(format!("{width} bytes in a row for {count} numbers of {bits} bits"));
        }
    }
    Ok(numbers)
}

/// Codes as programs have them: 4 bits hold those of 2.
fn codes(shape: &[usize], all: Vec<u8>, bits: u32) -> Result<Tensor> {
    let tensor = Tensor::from_vec(shape, all).map_err(|error| failed(&error))?;
    match bits {
        8 => Ok(tensor),
        _ => {
            let four = DataType::Small(SmallType::Uint4);
            converted(&tensor, four).map_err(|error| failed(&error))
        }
    }
}

/// Adds weights of codes, their scales and zero points, as a value of the parts.
fn weights(
    parts: &mut DecomposedNode,
    codes: &Tensor,
    scale: &Tensor,
    zero: &Tensor,
    block: usize,
    axis: i64,
) -> Result<ValueId> {
    let codes = parts.constant(codes)?;
    let scale = parts.constant(scale)?;
    let zero = parts.constant(zero)?;
    let block = i64::try_from(block).map_err(|error| failed(&error))?;
    let attributes = [("axis", axis.into()), ("block_size", block.into())];
    parts.op("DequantizeLinear", &attributes, &[codes, scale, zero])
}

/// The weights `[N, K]` of a product as a value of the parts.
fn matrix(
    parts: &mut DecomposedNode,
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &MatMulNBits,
) -> Result<ValueId> {
    let &MatMulNBits { k, n, bits, block_size } = operator;
    let blocks = k.div_ceil(block_size);
    let all = unpacked(&bytes(emit, node, 1)?, bits, n, blocks * block_size)?;
    let scale = emit.known(node, 2).ok_or_else(|| {
        UnwritableNode("scales of weights (input 2) that are known in a run only".to_owned())
    })?;
    let scale = scale.reshape(&[n, blocks]).map_err(|error| failed(&error))?;
    let given = emit.known(node, 3);
    let floats = given.as_ref().is_some_and(|zero| zero.dtype().is_float());
    if floats || node.input(4).is_some() || blocks * block_size != k {
        return plain(parts, emit, node, operator);
    }
    let zero = match node.input(3) {
        None => vec![1 << (bits - 1); n * blocks],
        Some(_) => unpacked(&bytes(emit, node, 3)?, bits, n, blocks)?,
    };
    let all = codes(&[n, k], all, bits)?;
    let zero = codes(&[n, blocks], zero, bits)?;
    weights(parts, &all, &scale, &zero, block_size, 1)
}

/// The weights as floats, where no blocks of codes say them: what the product gives for the unit vectors.
fn plain(
    parts: &mut DecomposedNode,
    emit: &ProgramEmitter<'_>,
    node: &Node,
    operator: &MatMulNBits,
) -> Result<ValueId> {
    let k = operator.k;
    let mut unit = vec![0.0_f32; k * k];
    unit.iter_mut().step_by(k + 1).for_each(|one| *one = 1.0);
    let unit = Tensor::from_vec(&[k, k], unit).map_err(|error| failed(&error))?;
    let held: Vec<Option<Tensor>> = (1..5).map(|at| emit.known(node, at)).collect();
    if (1..5).zip(&held).any(|(at, held)| node.input(at).is_some() && held.is_none()) {
        return refuse("weights of few bits that are known in a run only");
    }
    let inputs: Vec<Option<&Tensor>> =
        [Some(&unit)].into_iter().chain(held.iter().map(Option::as_ref)).collect();
    let made = operator.reference(OperatorInputs::new(&inputs)).map_err(|error| failed(&error))?;
    let Some(turned) = made.first() else { return refuse("a product without a result") };
    let turned = turned.permute(&[1, 0]).and_then(|turned| turned.contiguous());
    parts.constant(&turned.map_err(|error| failed(&error))?)
}

/// A product with weights that stay codes.
fn mat_mul(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<MatMulNBits>() else {
        return refuse("a product of another kind");
    };
    if emit.is_probing() {
        // Nobody wants the weights: only whether they are known.
        bytes_known(emit, node)?;
        let dims = emit.output_dims(node, 0)?;
        let shape: Vec<Option<usize>> = dims.iter().map(Dim::known).collect();
        return Ok(vec![emit.stand_in(&shape)?]);
    }
    let mut parts = DecomposedNode::new();
    let x = parts.input(emit, node, 0)?;
    let weights = matrix(&mut parts, emit, node, operator)?;
    let mut inputs = vec![x, weights];
    inputs.extend(parts.optional(emit, node, 5)?);
    let name = ("ai.galatea", "FusedMatMul");
    let all = parts.ops(name, &[("trans_b", true.into())], &inputs, 1)?;
    parts.write(emit, &all)
}

fn bytes_known(emit: &ProgramEmitter<'_>, node: &Node) -> Result<()> {
    match (1..5).find(|&at| node.input(at).is_some() && emit.known(node, at).is_none()) {
        None => Ok(()),
        Some(at) => {
            refuse(format!("weights of few bits (input {at}) that are known in a run only"))
        }
    }
}

/// Rows of a table of codes.
fn gather(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    let Some(operator) = node.operator::<GatherBlockQuantized>() else {
        return refuse("a table of another kind");
    };
    let bits = operator.bits;
    let missing =
        |what: &str| UnwritableNode(format!("{what} of a table that are known in a run only"));
    let table = emit.known(node, 0).ok_or_else(|| missing("codes"))?;
    let scale = emit.known(node, 2).ok_or_else(|| missing("scales"))?;
    let mut shape = table.shape().to_vec();
    let width = shape.last().copied().unwrap_or(0) * 8 / bits as usize;
    if let Some(last) = shape.last_mut() {
        *last = width;
    }
    let axis = emit.axis(operator.quantize_axis, shape.len())?;
    let outer: usize = shape[..shape.len() - 1].iter().product();
    let all = unpacked(&bytes(emit, node, 0)?, bits, outer, width)?;
    let points = scale.shape().to_vec();
    let across: usize = points[..points.len().saturating_sub(1)].iter().product();
    let zero = match node.input(3) {
        None => vec![1 << (bits - 1); scale.elements()],
        Some(_) => {
            let last = points.last().copied().unwrap_or(0);
            unpacked(&bytes(emit, node, 3)?, bits, across, last)?
        }
    };
    let all = codes(&shape, all, bits)?;
    let zero = codes(&points, zero, bits)?;
    let block = operator.block_size.min(shape[axis]);
    let mut parts = DecomposedNode::new();
    // Blocks that do not fill the axis are no blocks of programs.
    let table = match shape[axis].is_multiple_of(block) {
        true => weights(&mut parts, &all, &scale, &zero, block, operator.quantize_axis)?,
        false => {
            let grouping = ScaleGrouping { axis: operator.quantize_axis, block_size: block };
            let wide = DequantizeLinear { grouping, output_dtype: None };
            let inputs = [Some(&all), Some(&scale), Some(&zero)];
            let made =
                wide.reference(OperatorInputs::new(&inputs)).map_err(|error| failed(&error))?;
            let Some(made) = made.first() else { return refuse("a table without numbers") };
            parts.constant(made)?
        }
    };
    let picks = parts.input(emit, node, 1)?;
    let rows = parts.op("Gather", &[("axis", 0_i64.into())], &[table, picks])?;
    parts.write(emit, &[rows])
}

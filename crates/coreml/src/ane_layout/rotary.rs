//! Heads that turn by their positions.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::fused::FusedRotary;
use galatea_graph::{Node, ValueId};
use galatea_tensor::Tensor;

use super::attention::stored;
use crate::ane_values::{CHANNELS, LayoutAxes};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode};

/// Lengths of heads that turn.
#[derive(Clone, Copy)]
struct RotaryExtent {
    batch: usize,
    /// Heads of each position.
    heads: usize,
    /// Positions that the angles are of.
    positions: usize,
    /// Elements of a head.
    width: usize,
}

/// `x · cos + turned(x) · sin`, where `turned` swaps the halves of each head and negates the first one: a
/// convolution of one pixel in as many groups as heads, whose weights are 0, 1 and -1, so that nothing is
/// cut. Cosines and sines are repeated for the heads.
pub(super) fn rotary(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<FusedRotary>() else { return Ok(false) };
    let id = emit.input(node, 0)?;
    let Some(shape) = emit.fixed_floats(id).filter(|shape| shape.len() == 4) else {
        return Ok(false);
    };
    let axes = stored(&shape, operator.perm);
    let [batch, heads, positions, width] = operator.perm.map(|axis| shape[axis]);
    let extent = RotaryExtent { batch, heads, positions, width };
    let formed = emit.formed(id).is_some_and(|form| form.axes == axes);
    let wanted = node.output(0).is_some_and(|id| emit.is_wanted(id));
    let angles = [emit.input(node, 1)?, emit.input(node, 2)?];
    let fits = angles.iter().all(|&id| angle(emit, id, extent).is_some());
    if !(formed || wanted) || !fits || width % 2 != 0 {
        return Ok(false);
    }
    let x = emit.form_in(id, &axes)?;
    let cos = repeated(emit, angles[0], extent)?;
    let sin = repeated(emit, angles[1], extent)?;
    let turned = turned(emit, &x, heads, width)?;
    let a = emit.pair("mul", &x, &cos)?;
    let b = emit.pair("mul", &turned, &sin)?;
    let result = emit.pair("add", &a, &b)?;
    let out = emit.shape(node.output(0).unwrap_or(id))?;
    emit.end_formed(node, result, stored(&out, [0, 1, 2, 3]))
}

/// The shape of cosines or sines, the same for all heads, with as many elements as a vector or half of
/// one.
fn angle(emit: &ProgramEmitter<'_>, id: ValueId, extent: RotaryExtent) -> Option<[usize; 4]> {
    let own = emit.fixed_floats(id).filter(|own| (1..=4).contains(&own.len()))?;
    let mut shape = [1; 4];
    shape[4 - own.len()..].copy_from_slice(&own);
    let [of_batch, heads, of_positions, count] = shape;
    let broadcasts = |own: usize, whole: usize| own == 1 || own == whole;
    let fits = heads == 1
        && broadcasts(of_batch, extent.batch)
        && broadcasts(of_positions, extent.positions)
        && (count == extent.width || count * 2 == extent.width);
    fits.then_some(shape)
}

/// Cosines or sines for every channel.
fn repeated(emit: &mut ProgramEmitter<'_>, id: ValueId, extent: RotaryExtent) -> Result<MilVar> {
    let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
    let Some(shape) = angle(emit, id, extent) else {
        return Err(UnwritableNode("no angles".to_owned()));
    };
    let [batch, _, positions, count] = shape;
    let times = extent.heads * extent.width / count;
    if let Some(tensor) = emit.constant_tensor(id) {
        let known = emit.favoured.as_ref().and_then(|all| all.repeated.get(&(id, times)));
        if let Some(var) = known {
            return Ok(var.clone());
        }
        let apart = tensor.contiguous().and_then(|all| all.reshape(&shape)).map_err(failed)?;
        let all = apart.broadcast_to(&[batch, times, positions, count]).map_err(failed)?;
        let turned = all.permute(&[0, 1, 3, 2]).and_then(|all| all.contiguous()).map_err(failed)?;
        let formed = turned.reshape(&[batch, times * count, 1, positions]).map_err(failed)?;
        let var = emit.tensor(&formed)?;
        keep(emit, (id, times), &var);
        return Ok(var);
    }
    if let Some(var) = emit.favoured.as_ref().and_then(|all| all.repeated.get(&(id, times))) {
        return Ok(var.clone());
    }
    let own = emit.shape(id)?;
    let rank = own.len();
    let first = if rank == 4 { vec![0] } else { Vec::new() };
    let row = rank.checked_sub(2).map_or(Vec::new(), |axis| vec![axis]);
    let axes = LayoutAxes::new(&own, [&first, &[rank - 1], &row]);
    let one = emit.form_in(id, &axes)?;
    let var = emit.concat(vec![one; times], CHANNELS)?;
    keep(emit, (id, times), &var);
    Ok(var)
}

fn keep(emit: &mut ProgramEmitter<'_>, key: (ValueId, usize), var: &MilVar) {
    if let Some(favoured) = &mut emit.favoured {
        favoured.repeated.insert(key, var.clone());
    }
}

/// Turns each head `[a, b]` into the head `[-b, a]`.
fn turned(emit: &mut ProgramEmitter<'_>, x: &MilVar, heads: usize, width: usize) -> Result<MilVar> {
    let half = width / 2;
    let row = |row: usize| {
        (0..width).map(move |column| match row < half {
            true if column == row + half => -1.0,
            false if column + half == row => 1.0,
            _ => 0.0,
        })
    };
    let all: Vec<f32> = (0..heads).flat_map(|_| (0..width).flat_map(row)).collect();
    let weight = Tensor::from_vec(&[heads * width, width, 1, 1], all);
    let weight = weight.map_err(|error| UnwritableNode(error.to_string()))?;
    let weight = emit.tensor(&weight)?;
    let groups = MilArg::Int(crate::unwritable::small(heads)?);
    emit.op("conv", super::linear::one_pixel(x, weight, groups))
}

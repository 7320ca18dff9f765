//! Codes of 8 bits, and products of them.

use galatea_graph::ValueId;
use galatea_tensor::Tensor;

use super::grower::{FloatValue, Grower};

/// Codes of a value, and the product of its codes with a matrix of codes, as floats.
pub(super) fn dynamic(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let made = grower.nodes("DynamicQuantizeLinear", &[], &[x.id], 3)?;
    let signed = grower.noise.once_in(2);
    let weights = grower.codes(&[x.last(), 5], signed);
    let mut inputs = vec![made[0], weights, made[2]];
    if grower.noise.once_in(2) {
        inputs.push(match signed {
            true => grower.constant(Tensor::scalar(3_i8)),
            false => grower.constant(Tensor::scalar(120_u8)),
        });
    }
    let sums = grower.op("MatMulInteger", &inputs)?;
    unscaled(grower, sums, made[1], &[5])
}

fn unscaled(
    grower: &mut Grower,
    sums: ValueId,
    scale: ValueId,
    channels: &[usize],
) -> Option<ValueId> {
    let sums = grower.node("Cast", &[("to", 1_i64.into())], &[sums])?;
    let reach = grower.power(-5.0, -1.0);
    let shape = if grower.noise.once_in(2) { channels.to_vec() } else { vec![] };
    let unit = grower.floats(&shape, reach / 2.0, reach);
    let unit = grower.constant(unit);
    match grower.noise.once_in(2) {
        true => {
            let both = grower.op("Mul", &[scale, unit])?;
            grower.op("Mul", &[sums, both])
        }
        false => {
            let once = grower.op("Mul", &[sums, scale])?;
            grower.op("Mul", &[once, unit])
        }
    }
}

pub(super) fn dynamic_convolution(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let channels = *x.shape.get(1).filter(|_| x.rank() == 4)?;
    let made = grower.nodes("DynamicQuantizeLinear", &[], &[x.id], 3)?;
    let weights = grower.codes(&[5, channels, 3, 3], false);
    let sums = grower.op("ConvInteger", &[made[0], weights, made[2]])?;
    unscaled(grower, sums, made[1], &[1, 5, 1, 1])
}

pub(super) fn dynamic_contrib(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    let weights = grower.codes(&[x.last(), 4], true);
    let unit = grower.power(-5.0, -1.0);
    let unit = grower.number(unit);
    match grower.noise.once_in(2) {
        true => grower.op("ms:DynamicQuantizeMatMul", &[x.id, weights, unit]),
        false => {
            let made = grower.nodes("DynamicQuantizeLinear", &[], &[x.id], 3)?;
            let inputs = [made[0], weights, made[1], unit, made[2]];
            grower.op("ms:MatMulIntegerToFloat", &inputs)
        }
    }
}

pub(super) fn codes_and_back(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let scale = grower.power(-6.0, 3.0);
    let scale = grower.number(scale);
    let zero = grower.constant(Tensor::scalar(7_i8));
    let codes = grower.op("QuantizeLinear", &[x.id, scale, zero])?;
    grower.op("DequantizeLinear", &[codes, scale, zero])
}

pub(super) fn quantized_linear(grower: &mut Grower, x: &FloatValue) -> Option<ValueId> {
    grower.jumps = true;
    let scale = grower.power(-4.0, 2.0);
    let scale = grower.number(scale);
    let zero = grower.constant(Tensor::scalar(3_i8));
    let codes = grower.op("QuantizeLinear", &[x.id, scale, zero])?;
    let of_result = grower.power(-4.0, 3.0);
    let of_result = grower.number(of_result);
    let result = match grower.noise.below(3) {
        0 => {
            let weights = grower.codes(&[x.last(), 3], true);
            let unit = grower.power(-4.0, -1.0);
            let unit = grower.number(unit);
            let inputs = [codes, scale, zero, weights, unit, zero, of_result, zero];
            grower.op("QLinearMatMul", &inputs)?
        }
        1 => {
            let name = grower.one_of(&["ms:QLinearAdd", "ms:QLinearMul"]);
            let inputs = [codes, scale, zero, codes, scale, zero, of_result, zero];
            grower.op(name, &inputs)?
        }
        _ => {
            let name = grower.one_of(&["ms:QLinearSigmoid", "ms:QLinearLeakyRelu"]);
            grower.op(name, &[codes, scale, zero, of_result, zero])?
        }
    };
    grower.op("DequantizeLinear", &[result, of_result, zero])
}

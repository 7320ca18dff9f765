//! Convolutions along one axis, as those of images of one line.

use galatea_formats::coreml::mil::Arg;
use galatea_graph::Node;
use galatea_graph::ops::convolution::{Conv, Padding};

use super::form::Axes;
use super::linear::MOST_POSITIONS;
use crate::coreml::emit::{Emit, Refused, Result, small};

/// `[B, C, S]` as (B, C, 1, S).
pub(super) fn conv(emit: &mut Emit<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Conv>() else { return Ok(false) };
    let (x, weight) = (emit.input(node, 0)?, emit.input(node, 1)?);
    let Some(shape) = emit.fixed_floats(x).filter(|shape| shape.len() == 3) else {
        return Ok(false);
    };
    let Some(out) = node.output(0).and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let Some(tensor) = emit.graph().constant(weight).filter(|tensor| tensor.rank() == 3).cloned()
    else {
        return Ok(false);
    };
    let pads = match &operator.pads {
        Padding::Explicit(pads) => [0, 1].map(|at| pads.get(at).copied().unwrap_or(0)),
        Padding::Valid => [0, 0],
        Padding::SameUpper | Padding::SameLower => return Ok(false),
    };
    let plain = !operator.channels_last
        && node.op_type == "Conv"
        && node.input(2).is_none_or(|id| emit.constant_tensor(id).is_some())
        && shape[2].max(out[2]) <= MOST_POSITIONS;
    if !plain {
        return Ok(false);
    }
    let image = |shape: &[usize]| Axes::new(shape, [&[0], &[1], &[2]]);
    let x = emit.form_in(x, &image(&shape))?;
    let failed = |error: galatea_tensor::TensorError| Refused(error.to_string());
    let &[outputs, inputs, kernel] = tensor.shape() else { return Ok(false) };
    let lines = tensor.contiguous().and_then(|all| all.reshape(&[outputs, inputs, 1, kernel]));
    let lines = emit.weight(weight, &lines.map_err(failed)?)?;
    let step = |all: &[usize]| small(all.first().copied().unwrap_or(1));
    let mut inputs = vec![
        ("x", Arg::Var(x)),
        ("weight", Arg::Var(lines)),
        ("strides", Arg::Ints(vec![1, step(&operator.strides)?])),
        ("pad_type", Arg::Text("custom")),
        ("pad", Arg::Ints(vec![0, 0, small(pads[0])?, small(pads[1])?])),
        ("dilations", Arg::Ints(vec![1, step(&operator.dilations)?])),
        ("groups", Arg::Int(small(operator.group)?)),
    ];
    if let Some(bias) = emit.optional(node, 2)? {
        inputs.push(("bias", Arg::Var(bias)));
    }
    let result = emit.op("conv", inputs)?;
    emit.end_formed(node, result, image(&out))
}

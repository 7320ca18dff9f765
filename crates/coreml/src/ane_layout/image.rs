//! Convolutions along one axis, as those of images of one line.

use galatea_formats::coreml::mil::MilArg;
use galatea_graph::Node;
use galatea_graph::ops::convolution::{Conv, WindowPadding};

use super::linear::MAX_POSITIONS;
use crate::ane_values::LayoutAxes;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, small};

/// `[B, C, S]` as (B, C, 1, S).
pub(super) fn conv(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Conv>() else { return Ok(false) };
    let x = emit.input(node, 0)?;
    let weight = emit.input(node, 1)?;
    let Some(shape) = emit.fixed_floats(x).filter(|shape| shape.len() == 3) else {
        return Ok(false);
    };
    let Some(out) = node.output(0).and_then(|id| emit.fixed_floats(id)) else { return Ok(false) };
    let Some(tensor) = emit.graph().constant(weight).filter(|tensor| tensor.rank() == 3).cloned()
    else {
        return Ok(false);
    };
    let pads = match &operator.pads {
        WindowPadding::Explicit(pads) => [0, 1].map(|at| pads.get(at).copied().unwrap_or(0)),
        WindowPadding::Valid => [0, 0],
        WindowPadding::SameUpper | WindowPadding::SameLower => return Ok(false),
    };
    let plain = !operator.channels_last
        && node.op_type == "Conv"
        && node.input(2).is_none_or(|id| emit.constant_tensor(id).is_some())
        && shape[2].max(out[2]) <= MAX_POSITIONS;
    if !plain {
        return Ok(false);
    }
    let image = |shape: &[usize]| LayoutAxes::new(shape, [&[0], &[1], &[2]]);
    let x = emit.form_in(x, &image(&shape))?;
    let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
    let &[outputs, inputs, kernel] = tensor.shape() else { return Ok(false) };
    let lines = tensor.contiguous().and_then(|all| all.reshape(&[outputs, inputs, 1, kernel]));
    let lines = emit.weight(weight, &lines.map_err(failed)?)?;
    let step = |all: &[usize]| small(all.first().copied().unwrap_or(1));
    let mut inputs = vec![
        ("x", MilArg::Var(x)),
        ("weight", MilArg::Var(lines)),
        ("strides", MilArg::Ints(vec![1, step(&operator.strides)?])),
        ("pad_type", MilArg::Text("custom")),
        ("pad", MilArg::Ints(vec![0, 0, small(pads[0])?, small(pads[1])?])),
        ("dilations", MilArg::Ints(vec![1, step(&operator.dilations)?])),
        ("groups", MilArg::Int(small(operator.group)?)),
    ];
    if let Some(bias) = emit.optional(node, 2)? {
        inputs.push(("bias", MilArg::Var(bias)));
    }
    let result = emit.op("conv", inputs)?;
    emit.end_formed(node, result, image(&out))
}

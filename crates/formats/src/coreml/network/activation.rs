//! Activations, as layers of their own.

use galatea_graph::{AttributeValue, ValueId};

use super::lower::{Blob, Call, Lowered, Lowering};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{Choice, GeluMode};
use crate::coreml::proto::network::{Activation, ActivationKind, AlphaBeta, Weights};

/// `activation`.
pub(super) fn activation(cx: &mut Lowering, call: &Call) -> Lowered {
    let params: Activation = call.read()?;
    let blob = call.input(0)?;
    let x = blob.id;
    let pair = |p: AlphaBeta| [("alpha", p.alpha.into()), ("beta", p.beta.into())];
    let alpha = |p: AlphaBeta| [("alpha", AttributeValue::Float(p.alpha))];
    let missing = || CoreMlError::invalid("it does not say which activation");
    let id = match params.kind.ok_or_else(missing)? {
        ActivationKind::Linear(p) => linear(cx, x, p.alpha, p.beta)?,
        ActivationKind::Relu(_) => cx.node("Relu", &[x], &[])?,
        ActivationKind::LeakyRelu(p) => cx.node("LeakyRelu", &[x], &alpha(p))?,
        ActivationKind::ThresholdedRelu(p) => {
            // ONNX's operator gives 0 at the threshold itself, this one the input.
            let (limit, zero) = (cx.scalar(p.alpha), cx.scalar(0.0));
            let keep = cx.node("GreaterOrEqual", &[x, limit], &[])?;
            cx.node("Where", &[keep, x, zero], &[])?
        }
        ActivationKind::Prelu(p) => {
            let slope = by_channel(cx, blob, p.alpha.as_ref(), "alpha")?;
            cx.node("PRelu", &[x, slope], &[])?
        }
        ActivationKind::Tanh(_) => cx.node("Tanh", &[x], &[])?,
        ActivationKind::ScaledTanh(p) => {
            let inner = linear(cx, x, p.beta, 0.0)?;
            let inner = cx.node("Tanh", &[inner], &[])?;
            linear(cx, inner, p.alpha, 0.0)?
        }
        ActivationKind::Sigmoid(_) => cx.node("Sigmoid", &[x], &[])?,
        ActivationKind::SigmoidHard(p) => cx.node("HardSigmoid", &[x], &pair(p))?,
        ActivationKind::Elu(p) => cx.node("Elu", &[x], &alpha(p))?,
        ActivationKind::Softsign(_) => cx.node("Softsign", &[x], &[])?,
        ActivationKind::Softplus(_) => cx.node("Softplus", &[x], &[])?,
        ActivationKind::ParametricSoftplus(p) => {
            let outer = by_channel(cx, blob, p.alpha.as_ref(), "alpha")?;
            let inner = by_channel(cx, blob, p.beta.as_ref(), "beta")?;
            let scaled = cx.node("Mul", &[x, inner], &[])?;
            let soft = cx.node("Softplus", &[scaled], &[])?;
            cx.node("Mul", &[soft, outer], &[])?
        }
    };
    Ok(vec![Blob { id, ..blob }])
}

/// `scale · x + shift`, without what changes nothing.
pub(super) fn linear(
    cx: &mut Lowering,
    x: ValueId,
    scale: f32,
    shift: f32,
) -> Result<ValueId, CoreMlError> {
    let mut id = x;
    if scale.to_bits() != 1.0_f32.to_bits() {
        let scale = cx.scalar(scale);
        id = cx.node("Mul", &[id, scale], &[])?;
    }
    if shift.abs() > 0.0 || shift.is_nan() {
        let shift = cx.scalar(shift);
        id = cx.node("Add", &[id, shift], &[])?;
    }
    Ok(id)
}

/// Constants for all channels, or one for each, against the third axis from the end.
fn by_channel(
    cx: &mut Lowering,
    blob: Blob,
    found: Option<&Weights>,
    what: &str,
) -> Result<ValueId, CoreMlError> {
    let channels = cx.dim(blob.id, -3)?;
    let shape = match (weights::count(found), channels) {
        (Some(1), _) => vec![1],
        (None, None) => {
            return Err(CoreMlError::unsupported("the number of channels is not known"));
        }
        (found, channels) => vec![channels.or(found).unwrap_or(1), 1, 1],
    };
    let tensor = weights::tensor(found, what, &shape)?;
    Ok(cx.constant(tensor))
}

/// `gelu`.
pub(super) fn gelu(cx: &mut Lowering, call: &Call) -> Lowered {
    let params: Choice = call.read()?;
    let blob = call.input(0)?;
    let id = match super::lower::choice(params.mode, "mode of GELU")? {
        GeluMode::Exact => cx.node("Gelu", &[blob.id], &[])?,
        GeluMode::TanhApproximation => {
            let mode = super::lower::text("tanh");
            cx.node("Gelu", &[blob.id], &[("approximate", mode)])?
        }
        GeluMode::SigmoidApproximation => {
            let inner = linear(cx, blob.id, 1.702, 0.0)?;
            let gate = cx.node("Sigmoid", &[inner], &[])?;
            cx.node("Mul", &[blob.id, gate], &[])?
        }
    };
    Ok(vec![Blob { id, ..blob }])
}

/// `clampedReLU`: `min(beta, x)` where positive, `min(beta, alpha · x)` elsewhere.
pub(super) fn clamped_relu(cx: &mut Lowering, call: &Call) -> Lowered {
    let params: AlphaBeta = call.read()?;
    let blob = call.input(0)?;
    let leaky = cx.node("LeakyRelu", &[blob.id], &[("alpha", params.alpha.into())])?;
    let limit = cx.scalar(params.beta);
    Ok(vec![Blob { id: cx.node("Min", &[leaky, limit], &[])?, ..blob }])
}

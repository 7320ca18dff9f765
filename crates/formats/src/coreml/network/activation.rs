//! Activations, as layers of their own.

use galatea_graph::{AttributeValue, ValueId};

use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{ChoiceLayerProto, GeluMode};
use crate::coreml::proto::network::{
    AlphaBeta, NetworkActivationKindProto, NetworkActivationProto, NetworkWeightsProto,
};

/// `activation`.
pub(super) fn activation(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: NetworkActivationProto = call.read()?;
    let blob = call.input(0)?;
    let x = blob.id;
    let pair = |p: AlphaBeta| [("alpha", p.alpha.into()), ("beta", p.beta.into())];
    let alpha = |p: AlphaBeta| [("alpha", AttributeValue::Float(p.alpha))];
    let missing = || CoreMlError::invalid("it does not say which activation");
    let id = match params.kind.ok_or_else(missing)? {
        NetworkActivationKindProto::Linear(p) => linear(cx, x, p.alpha, p.beta)?,
        NetworkActivationKindProto::Relu(_) => cx.node("Relu", &[x], &[])?,
        NetworkActivationKindProto::LeakyRelu(p) => cx.node("LeakyRelu", &[x], &alpha(p))?,
        NetworkActivationKindProto::ThresholdedRelu(p) => {
            // ONNX's operator gives 0 at the threshold itself, this one the input.
            let limit = cx.scalar(p.alpha);
            let zero = cx.scalar(0.0);
            let keep = cx.node("GreaterOrEqual", &[x, limit], &[])?;
            cx.node("Where", &[keep, x, zero], &[])?
        }
        NetworkActivationKindProto::Prelu(p) => {
            let slope = by_channel(cx, blob, p.alpha.as_ref(), "alpha")?;
            cx.node("PRelu", &[x, slope], &[])?
        }
        NetworkActivationKindProto::Tanh(_) => cx.node("Tanh", &[x], &[])?,
        NetworkActivationKindProto::ScaledTanh(p) => {
            let inner = linear(cx, x, p.beta, 0.0)?;
            let inner = cx.node("Tanh", &[inner], &[])?;
            linear(cx, inner, p.alpha, 0.0)?
        }
        NetworkActivationKindProto::Sigmoid(_) => cx.node("Sigmoid", &[x], &[])?,
        NetworkActivationKindProto::SigmoidHard(p) => cx.node("HardSigmoid", &[x], &pair(p))?,
        NetworkActivationKindProto::Elu(p) => cx.node("Elu", &[x], &alpha(p))?,
        NetworkActivationKindProto::Softsign(_) => cx.node("Softsign", &[x], &[])?,
        NetworkActivationKindProto::Softplus(_) => cx.node("Softplus", &[x], &[])?,
        NetworkActivationKindProto::ParametricSoftplus(p) => {
            let outer = by_channel(cx, blob, p.alpha.as_ref(), "alpha")?;
            let inner = by_channel(cx, blob, p.beta.as_ref(), "beta")?;
            let scaled = cx.node("Mul", &[x, inner], &[])?;
            let soft = cx.node("Softplus", &[scaled], &[])?;
            cx.node("Mul", &[soft, outer], &[])?
        }
    };
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `scale · x + shift`, without what changes nothing.
pub(super) fn linear(
    cx: &mut NetworkLowering,
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
    cx: &mut NetworkLowering,
    blob: ScopeBlob,
    found: Option<&NetworkWeightsProto>,
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
pub(super) fn gelu(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ChoiceLayerProto = call.read()?;
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
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `clampedReLU`: `min(beta, x)` where positive, `min(beta, alpha · x)` elsewhere.
pub(super) fn clamped_relu(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AlphaBeta = call.read()?;
    let blob = call.input(0)?;
    let leaky = cx.node("LeakyRelu", &[blob.id], &[("alpha", params.alpha.into())])?;
    let limit = cx.scalar(params.beta);
    Ok(vec![ScopeBlob { id: cx.node("Min", &[leaky, limit], &[])?, ..blob }])
}

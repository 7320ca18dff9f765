//! Layers that compute every element by itself.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::activation::linear;
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, choice, ints, sizes};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    ComparisonLayerProto, ConstantLayerProto, ScaleLayerProto, UnaryFunction, UnaryLayerProto,
};
use crate::coreml::proto::network::{AlphaBeta, NetworkWeightsProto};

/// Value of an epsilon that is not set.
const EPSILON: f32 = 1e-6;

/// A layer that is an operator of ONNX with one input.
pub(super) fn unary(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let blob = call.input(0)?;
    Ok(vec![ScopeBlob { id: cx.node(operator, &[blob.id], &[])?, ..blob }])
}

/// A number that is 0 where it is not set, and then this.
pub(super) fn or_default(found: f32, default: f32) -> f32 {
    if found.abs() > 0.0 || found.is_nan() { found } else { default }
}

/// `unary`.
pub(super) fn function(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: UnaryLayerProto = call.read()?;
    let blob = call.input(0)?;
    let x = linear(cx, blob.id, or_default(params.scale, 1.0), params.shift)?;
    let epsilon = or_default(params.epsilon, EPSILON);
    let id = match choice(params.r#type, "unary function")? {
        UnaryFunction::Sqrt => cx.node("Sqrt", &[x], &[])?,
        UnaryFunction::Rsqrt => {
            let inner = linear(cx, x, 1.0, epsilon)?;
            let root = cx.node("Sqrt", &[inner], &[])?;
            cx.node("Reciprocal", &[root], &[])?
        }
        UnaryFunction::Inverse => {
            let inner = linear(cx, x, 1.0, epsilon)?;
            cx.node("Reciprocal", &[inner], &[])?
        }
        UnaryFunction::Power => {
            let exponent = cx.scalar(params.alpha);
            cx.node("Pow", &[x, exponent], &[])?
        }
        UnaryFunction::Exp => cx.node("Exp", &[x], &[])?,
        UnaryFunction::Log => cx.node("Log", &[x], &[])?,
        UnaryFunction::Abs => cx.node("Abs", &[x], &[])?,
        UnaryFunction::Threshold => {
            let limit = cx.scalar(params.alpha);
            cx.node("Max", &[x, limit], &[])?
        }
    };
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `exp2`.
pub(super) fn exp2(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let blob = call.input(0)?;
    let base = cx.scalar(2.0);
    Ok(vec![ScopeBlob { id: cx.node("Pow", &[base, blob.id], &[])?, ..blob }])
}

/// `clip`.
pub(super) fn clip(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AlphaBeta = call.read()?;
    let blob = call.input(0)?;
    let low = cx.scalar(params.alpha);
    let high = cx.scalar(params.beta);
    Ok(vec![ScopeBlob { id: cx.node("Clip", &[blob.id, low, high], &[])?, ..blob }])
}

/// `add`, `multiply`: all inputs, or one and a number.
pub(super) fn accumulate(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    operator: &str,
) -> LayerOutputs {
    if let [blob] = call.inputs[..] {
        let params: AlphaBeta = call.read()?;
        let number = cx.scalar(params.alpha);
        return Ok(vec![ScopeBlob { id: cx.node(operator, &[blob.id, number], &[])?, ..blob }]);
    }
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let mut ids = ids.into_iter();
    let mut id = ids.next().ok_or_else(|| CoreMlError::invalid("it has no input"))?;
    for next in ids {
        id = cx.node(operator, &[id, next], &[])?;
    }
    Ok(vec![ScopeBlob { id, hidden }])
}

/// `average`, `max`, `min`: an operator of ONNX with any number of inputs.
pub(super) fn variadic(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    Ok(vec![ScopeBlob { id: cx.node(operator, &ids, &[])?, hidden }])
}

/// A layer that is an operator of ONNX with two inputs, which are broadcast.
pub(super) fn binary(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    Ok(vec![ScopeBlob { id: cx.node(operator, &ids, &[])?, hidden }])
}

fn pair(ids: &[ValueId]) -> Result<(ValueId, ValueId), CoreMlError> {
    match *ids {
        [a, b] => Ok((a, b)),
        _ => Err(CoreMlError::invalid("it needs two inputs")),
    }
}

/// `floorDivBroadcastable`.
pub(super) fn floor_div(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let quotient = cx.node("Div", &ids, &[])?;
    Ok(vec![ScopeBlob { id: cx.node("Floor", &[quotient], &[])?, hidden }])
}

/// `modBroadcastable`: what is left has the sign of the divisor.
pub(super) fn modulo(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let (a, b) = pair(&ids)?;
    let quotient = cx.node("Div", &ids, &[])?;
    let whole = cx.node("Floor", &[quotient], &[])?;
    let product = cx.node("Mul", &[whole, b], &[])?;
    Ok(vec![ScopeBlob { id: cx.node("Sub", &[a, product], &[])?, hidden }])
}

/// `equal` and the other comparisons, of two inputs or with a number. The number is the first field
/// of `equal` and `notEqual`, the second of the others.
pub(super) fn compare(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let (ids, hidden) = if let [blob] = call.inputs[..] {
        let first: AlphaBeta = call.read()?;
        let second: ComparisonLayerProto = call.read()?;
        let number = if operator == "Equal" { first.alpha } else { second.alpha };
        (vec![blob.id, cx.scalar(number)], blob.hidden)
    } else {
        cx.broadcast(&call.inputs)?
    };
    let holds = cx.node(operator, &ids, &[])?;
    Ok(vec![ScopeBlob { id: cx.cast(holds, DataType::Fp32)?, hidden }])
}

/// `notEqual`.
pub(super) fn not_equal(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let equal = compare(cx, call, "Equal")?;
    negated(cx, &equal)
}

fn negated(cx: &mut NetworkLowering, blobs: &[ScopeBlob]) -> LayerOutputs {
    let one = |&blob: &ScopeBlob| {
        let holds = cx.cast(blob.id, DataType::Bool)?;
        let not = cx.node("Not", &[holds], &[])?;
        Ok(ScopeBlob { id: cx.cast(not, DataType::Fp32)?, ..blob })
    };
    blobs.iter().map(one).collect()
}

/// `logicalNot`.
pub(super) fn not(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    negated(cx, &call.inputs)
}

/// `logicalAnd`, `logicalOr`, `logicalXor`: what is not 0 holds.
pub(super) fn logical(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let holds = ids.iter().map(|&id| cx.cast(id, DataType::Bool)).collect::<Result<Vec<_>, _>>()?;
    let result = cx.node(operator, &holds, &[])?;
    Ok(vec![ScopeBlob { id: cx.cast(result, DataType::Fp32)?, hidden }])
}

/// `whereBroadcastable`.
pub(super) fn select(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let &[condition, then, other] = &ids[..] else {
        return Err(CoreMlError::invalid("it needs three inputs"));
    };
    let condition = cx.cast(condition, DataType::Bool)?;
    Ok(vec![ScopeBlob { id: cx.node("Where", &[condition, then, other], &[])?, hidden }])
}

/// A constant of shape `[1]`, `[C]`, `[1, H, W]` or `[C, H, W]`, to be broadcast to images.
fn over_channels(
    cx: &mut NetworkLowering,
    shape: &[u64],
    found: Option<&NetworkWeightsProto>,
    what: &str,
) -> Result<ValueId, CoreMlError> {
    let mut shape = sizes(shape)?;
    if let [channels] = shape[..]
        && channels != 1
    {
        shape = vec![channels, 1, 1];
    }
    let tensor = weights::tensor(found, what, &shape)?;
    Ok(cx.constant(tensor))
}

/// `bias`.
pub(super) fn bias(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConstantLayerProto = call.read()?;
    let blob = call.input(0)?;
    let bias = over_channels(cx, &params.shape, params.data.as_ref(), "bias")?;
    Ok(vec![ScopeBlob { id: cx.node("Add", &[blob.id, bias], &[])?, ..blob }])
}

/// `scale`.
pub(super) fn scale(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ScaleLayerProto = call.read()?;
    let blob = call.input(0)?;
    let scale = over_channels(cx, &params.shape_scale, params.scale.as_ref(), "scale")?;
    let mut id = cx.node("Mul", &[blob.id, scale], &[])?;
    if params.has_bias {
        let bias = over_channels(cx, &params.shape_bias, params.bias.as_ref(), "bias")?;
        id = cx.node("Add", &[id, bias], &[])?;
    }
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `loadConstant`, of shape `[C, H, W]`: a blob of rank 5.
pub(super) fn load_constant(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConstantLayerProto = call.read()?;
    let mut shape = sizes(&params.shape)?;
    if shape.len() != 3 {
        return Err(CoreMlError::invalid(format!("its shape is {shape:?}, expected 3 lengths")));
    }
    shape.insert(0, 1);
    let tensor = weights::tensor(params.data.as_ref(), "data", &shape)?;
    Ok(vec![ScopeBlob { id: cx.constant(tensor), hidden: true }])
}

/// `loadConstantND`.
pub(super) fn load_constant_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConstantLayerProto = call.read()?;
    let tensor = weights::tensor(params.data.as_ref(), "data", &sizes(&params.shape)?)?;
    Ok(vec![ScopeBlob::exact(cx.constant(tensor))])
}

/// Lengths that must be there.
pub(super) fn lengths(found: &[u64]) -> Result<Vec<i64>, CoreMlError> {
    Ok(ints(&sizes(found)?))
}

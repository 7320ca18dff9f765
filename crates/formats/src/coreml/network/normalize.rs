//! Normalisation.

use galatea_graph::{AttributeValue, ValueId};

use super::elementwise::or_default;
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, int, size};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    AxisLayerProto, BatchNormLayerProto, LayerNormalizationLayerProto, LrnLayerProto, MeanVariance,
};
use crate::coreml::proto::network::{AlphaBeta, NetworkWeightsProto};

fn keep() -> [(&'static str, AttributeValue); 1] {
    [("keepdims", true.into())]
}

/// `batchnorm`: with constants, or with the moments of one input or of the batch.
pub(super) fn batch_norm(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: BatchNormLayerProto = call.read()?;
    let channels = size(params.channels)?;
    let epsilon = or_default(params.epsilon, 1e-5);
    let (image, form) = cx.image(call.input(0)?)?;
    let constant = |cx: &mut NetworkLowering, found: Option<&NetworkWeightsProto>, what| {
        let tensor = weights::tensor(found, what, &[channels])?;
        Ok::<_, CoreMlError>(cx.constant(tensor))
    };
    let gamma = constant(cx, params.gamma.as_ref(), "gamma")?;
    let beta = constant(cx, params.beta.as_ref(), "beta")?;
    let attributes = [("epsilon", AttributeValue::Float(epsilon))];
    let id = if !params.compute_mean_var {
        let mean = constant(cx, params.mean.as_ref(), "mean")?;
        let variance = constant(cx, params.variance.as_ref(), "variance")?;
        let inputs = [image, gamma, beta, mean, variance];
        cx.node("BatchNormalization", &inputs, &attributes)?
    } else if params.instance_normalization {
        cx.node("InstanceNormalization", &[image, gamma, beta], &attributes)?
    } else {
        let normal = moments(cx, image, &[0, 2, 3], Some(epsilon))?;
        let gamma = cx.unsqueeze(gamma, &[1, 2])?;
        let beta = cx.unsqueeze(beta, &[1, 2])?;
        let scaled = cx.node("Mul", &[normal, gamma], &[])?;
        cx.node("Add", &[scaled, beta], &[])?
    };
    Ok(vec![cx.unbatched(id, form)?])
}

/// `x - mean`, divided by the deviation where an epsilon is given.
fn moments(
    cx: &mut NetworkLowering,
    x: ValueId,
    axes: &[i64],
    epsilon: Option<f32>,
) -> Result<ValueId, CoreMlError> {
    let axes = cx.longs(axes);
    let mean = cx.node("ReduceMean", &[x, axes], &keep())?;
    let centred = cx.node("Sub", &[x, mean], &[])?;
    let Some(epsilon) = epsilon else { return Ok(centred) };
    let squares = cx.node("Mul", &[centred, centred], &[])?;
    let variance = cx.node("ReduceMean", &[squares, axes], &keep())?;
    divided_by_root(cx, centred, variance, epsilon)
}

fn divided_by_root(
    cx: &mut NetworkLowering,
    x: ValueId,
    square: ValueId,
    epsilon: f32,
) -> Result<ValueId, CoreMlError> {
    let epsilon = cx.scalar(epsilon);
    let sum = cx.node("Add", &[square, epsilon], &[])?;
    let root = cx.node("Sqrt", &[sum], &[])?;
    cx.node("Div", &[x, root], &[])
}

/// `mvn`: over the last two axes, or the last three.
pub(super) fn mean_variance(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: MeanVariance = call.read()?;
    let blob = call.input(0)?;
    let axes: &[i64] = if params.across_channels { &[-3, -2, -1] } else { &[-2, -1] };
    let epsilon = params.normalize_variance.then(|| or_default(params.epsilon, 1e-6));
    Ok(vec![ScopeBlob { id: moments(cx, blob.id, axes, epsilon)?, ..blob }])
}

/// `l2normalize`: divided by the root of the sum of squares over the last three axes.
pub(super) fn l2_normalize(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AlphaBeta = call.read()?;
    let blob = call.input(0)?;
    let axes = cx.longs(&[-3, -2, -1]);
    let sum = cx.node("ReduceSumSquare", &[blob.id, axes], &keep())?;
    let id = divided_by_root(cx, blob.id, sum, or_default(params.alpha, 1e-6))?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `softmax`, over the third axis from the end.
pub(super) fn softmax(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let blob = call.input(0)?;
    let id = cx.node("Softmax", &[blob.id], &[("axis", (-3_i64).into())])?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `softmaxND`.
pub(super) fn softmax_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AxisLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(cx.node("Softmax", &[exact], &[("axis", params.axis.into())])?)])
}

/// `lrn`.
pub(super) fn lrn(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: LrnLayerProto = call.read()?;
    let (image, form) = cx.image(call.input(0)?)?;
    let attributes = [
        ("alpha", params.alpha.into()),
        ("beta", params.beta.into()),
        ("bias", or_default(params.k, 1.0).into()),
        ("size", int(size(params.local_size)?).into()),
    ];
    let id = cx.node("LRN", &[image], &attributes)?;
    Ok(vec![cx.unbatched(id, form)?])
}

/// `layerNormalization`, over the last axes, whose lengths it says.
pub(super) fn layer_normalization(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: LayerNormalizationLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let length = |&found: &i64| {
        usize::try_from(found).map_err(|_| CoreMlError::invalid(format!("{found} is no length")))
    };
    let shape: Vec<usize> = params.normalized_shape.iter().map(length).collect::<Result<_, _>>()?;
    let dims = cx.dims(exact)?;
    let fits = |(found, stated): (&Option<usize>, &usize)| found.is_none_or(|it| it == *stated);
    let same = dims.iter().rev().zip(shape.iter().rev()).all(fits);
    if shape.is_empty() || shape.len() > dims.len() || !same {
        let text = format!("it normalises {shape:?}, the last lengths of the blob are {dims:?}");
        return Err(CoreMlError::invalid(text));
    }
    let gamma = weights::tensor(params.gamma.as_ref(), "gamma", &shape)?;
    let beta = weights::tensor(params.beta.as_ref(), "beta", &shape)?;
    let inputs = [exact, cx.constant(gamma), cx.constant(beta)];
    let attributes =
        [("axis", (-int(shape.len())).into()), ("epsilon", AttributeValue::Float(params.eps))];
    Ok(vec![ScopeBlob::exact(cx.node("LayerNormalization", &inputs, &attributes)?)])
}

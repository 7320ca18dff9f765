//! Generalised linear models.

use bytes::Bytes;
use galatea_graph::ValueId;
use galatea_tensor::Tensor;

use super::activation::linear;
use super::lower::NetworkLowering;
use super::simple_step::{ClassifierNames, SimpleModelStep, floats, softmax_with_zero, two_labels};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::GlmProto;

/// `W · x + offset`: a vector of as many numbers as there are rows of weights.
fn product(
    cx: &mut NetworkLowering,
    step: &SimpleModelStep<'_>,
    params: &GlmProto,
) -> Result<ValueId, CoreMlError> {
    let rows = params.weights.len();
    let columns = params.weights.first().map_or(0, |row| row.vector.len());
    let mut values = Vec::new();
    for row in &params.weights {
        values.extend(floats(&row.vector));
    }
    if rows == 0 || params.offset.len() != rows {
        let text = format!("{rows} rows of weights and {} offsets", params.offset.len());
        return Err(CoreMlError::invalid(text));
    }
    let matrix = Tensor::from_vec(&[rows, columns], values)?;
    let matrix = cx.constant(matrix);
    let x = step.columns(cx)?;
    let found = cx.node("MatMul", &[matrix, x], &[])?;
    let offset = cx.constant(Tensor::vector(floats(&params.offset)));
    cx.node("Add", &[found, offset], &[])
}

/// The distribution function of the normal distribution.
fn probit(cx: &mut NetworkLowering, x: ValueId) -> Result<ValueId, CoreMlError> {
    let scaled = linear(cx, x, std::f32::consts::FRAC_1_SQRT_2, 0.0)?;
    let found = cx.node("Erf", &[scaled], &[])?;
    linear(cx, found, 0.5, 0.5)
}

/// `glmRegressor`.
pub(super) fn regressor(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: GlmProto = decode(Bytes::clone(step.message))?;
    let x = product(cx, step, &params)?;
    let id = match params.post_evaluation_transform {
        0 => x,
        1 => cx.node("Sigmoid", &[x], &[])?,
        2 => probit(cx, x)?,
        other => return Err(CoreMlError::invalid(format!("there is no transform {other}"))),
    };
    step.give(id)
}

/// `glmClassifier`: the first label is the reference of the others, or each stands against the rest.
pub(super) fn classifier(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let params: GlmProto = decode(Bytes::clone(step.message))?;
    let x = product(cx, step, &params)?;
    let each = match params.post_evaluation_transform {
        0 => cx.node("Sigmoid", &[x], &[])?,
        1 => probit(cx, x)?,
        other => return Err(CoreMlError::invalid(format!("there is no transform {other}"))),
    };
    let probabilities = match (params.class_encoding, params.weights.len()) {
        (_, 1) => two_labels(cx, each)?,
        (0, _) if params.post_evaluation_transform == 0 => softmax_with_zero(cx, x)?,
        (1, _) => {
            let sum = cx.node("ReduceSum", &[each], &[("keepdims", true.into())])?;
            cx.node("Div", &[each, sum], &[])?
        }
        (encoding, rows) => {
            let text = format!("{rows} rows of weights with the encoding {encoding} of classes");
            return Err(CoreMlError::unsupported(text));
        }
    };
    step.classify(cx, probabilities, params.class_labels.as_ref())
}

//! Layers that make values: filled, counted and random ones.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::activation::linear;
use super::elementwise::{lengths, or_default};
use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, int};
use super::slice::shape_attribute;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    CategoricalLayerProto, FillLayerProto, RandomBernoulli, RandomPair, RangeLayerProto,
};

/// Where a layer has the shape of its output from.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShapeFrom {
    /// From a blob of that shape.
    Like,
    /// From its message.
    Static,
    /// From a blob that is the shape.
    Dynamic,
}

/// The shape of the output.
fn shape_of(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    from: ShapeFrom,
    stated: &[u64],
) -> Result<ValueId, CoreMlError> {
    match from {
        ShapeFrom::Like => {
            let exact = cx.exact(call.input(0)?)?;
            cx.shape(exact)
        }
        ShapeFrom::Static => Ok(cx.longs(&lengths(stated)?)),
        ShapeFrom::Dynamic => cx.whole_vector(call.input(0)?),
    }
}

fn filled(cx: &mut NetworkLowering, shape: ValueId, value: f32) -> Result<ValueId, CoreMlError> {
    let value = AttributeValue::Tensor(Tensor::vector(vec![value]));
    cx.node("ConstantOfShape", &[shape], &[("value", value)])
}

/// `fillLike`, `fillStatic` and `fillDynamic`.
pub(super) fn fill(cx: &mut NetworkLowering, call: &LayerCall, from: ShapeFrom) -> LayerOutputs {
    let params: FillLayerProto = call.read()?;
    let shape = shape_of(cx, call, from, &params.target_shape)?;
    Ok(vec![ScopeBlob::exact(filled(cx, shape, params.value)?)])
}

/// `rangeStatic` and `rangeDynamic`: end, begin and step, of which the later ones may be fields.
pub(super) fn range(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: RangeLayerProto = call.read()?;
    let fields = [params.end_value, params.start_value, params.step_size_value];
    let mut numbers = Vec::with_capacity(fields.len());
    for (at, field) in fields.into_iter().enumerate() {
        numbers.push(match call.inputs.get(at) {
            Some(&blob) => {
                let exact = cx.exact(blob)?;
                cx.reshape(exact, &[])?
            }
            None => cx.scalar(field),
        });
    }
    let &[end, begin, step] = &numbers[..] else {
        return Err(CoreMlError::invalid("a range of more than three numbers"));
    };
    Ok(vec![ScopeBlob::exact(cx.node("Range", &[begin, end, step], &[])?)])
}

/// A seed as ONNX has it; -1 is none.
fn seeded(
    mut attributes: Vec<(&'static str, AttributeValue)>,
    seed: i64,
) -> Vec<(&'static str, AttributeValue)> {
    // ONNX has seeds as floats: of a large one only the leading digits count.
    #[allow(clippy::cast_precision_loss, reason = "a seed that is rounded is a seed as well")]
    let number = seed as f32;
    if seed >= 0 {
        attributes.push(("seed", number.into()));
    }
    attributes
}

/// `randomNormal…` and `randomUniform…`.
pub(super) fn random(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    from: ShapeFrom,
    normal: bool,
) -> LayerOutputs {
    let params: RandomPair = call.read()?;
    let (operator, names) = if normal {
        ("RandomNormal", ["mean", "scale"])
    } else {
        ("RandomUniform", ["low", "high"])
    };
    let [first, second] = names;
    let mut attributes =
        seeded(vec![(first, params.first.into()), (second, params.second.into())], params.seed);
    if matches!(from, ShapeFrom::Static) {
        attributes.push(("shape", shape_attribute(&params.output_shape)?));
        return Ok(vec![ScopeBlob::exact(cx.node(operator, &[], &attributes)?)]);
    }
    let shape = shape_of(cx, call, from, &[])?;
    let like = filled(cx, shape, 0.0)?;
    Ok(vec![ScopeBlob::exact(cx.node(&format!("{operator}Like"), &[like], &attributes)?)])
}

/// `randomBernoulli…`.
pub(super) fn bernoulli(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    from: ShapeFrom,
) -> LayerOutputs {
    let params: RandomBernoulli = call.read()?;
    let shape = shape_of(cx, call, from, &params.output_shape)?;
    let chances = filled(cx, shape, params.prob)?;
    let attributes = seeded(Vec::new(), params.seed);
    Ok(vec![ScopeBlob::exact(cx.node("Bernoulli", &[chances], &attributes)?)])
}

/// `categoricalDistribution`: numbers of classes, drawn by the last axis.
pub(super) fn categorical(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CategoricalLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let logits = if params.is_logits {
        let temperature = or_default(params.temperature, 1.0);
        linear(cx, exact, 1.0 / temperature, 0.0)?
    } else {
        let shifted = linear(cx, exact, 1.0, or_default(params.eps, 1e-10))?;
        cx.node("Log", &[shifted], &[])?
    };
    let rank = cx.rank(exact)?;
    let last = cx.length(exact, -1)?;
    let any = cx.longs(&[-1]);
    let rows = cx.node("Concat", &[any, last], &[("axis", 0_i64.into())])?;
    let rows = cx.node("Reshape", &[logits, rows], &[])?;
    let attributes = seeded(vec![("sample_size", params.num_samples.into())], params.seed);
    let drawn = cx.node("Multinomial", &[rows], &attributes)?;
    let shape = cx.shape(exact)?;
    let leading = cx.part(shape, 0, int(rank) - 1)?;
    let count = cx.longs(&[params.num_samples]);
    let shape = cx.node("Concat", &[leading, count], &[("axis", 0_i64.into())])?;
    let drawn = cx.node("Reshape", &[drawn, shape], &[])?;
    Ok(vec![ScopeBlob::exact(cx.cast(drawn, DataType::Fp32)?)])
}

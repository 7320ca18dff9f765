//! Layers that read or write at positions.

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::lower::{
    LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, axis_of, choice, int, size, text,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    AxisLayerProto, MatrixBandPart, OneHotLayerProto, ScatterLayerProto, ScatterMode, ScatterNd,
};

/// `gather` and `gatherAlongAxis`.
pub(super) fn gather(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let params: AxisLayerProto = call.read()?;
    let data = cx.exact(call.input(0)?)?;
    let positions = cx.whole(call.input(1)?)?;
    let id = cx.node(operator, &[data, positions], &[("axis", params.axis.into())])?;
    Ok(vec![ScopeBlob::exact(id)])
}

/// `gatherND`.
pub(super) fn gather_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let data = cx.exact(call.input(0)?)?;
    let positions = cx.whole(call.input(1)?)?;
    let id = cx.node("GatherND", &[data, positions], &[])?;
    // What is a scalar elsewhere is a blob of one element here.
    let id = if cx.rank(id)? == 0 { cx.reshape(id, &[1])? } else { id };
    Ok(vec![ScopeBlob::exact(id)])
}

/// Updates as ONNX adds or multiplies them, and the name of what it does.
fn reduction(
    cx: &mut NetworkLowering,
    updates: ValueId,
    mode: i32,
) -> Result<(ValueId, &'static str), CoreMlError> {
    Ok(match choice(mode, "mode of scattering")? {
        ScatterMode::Update => (updates, "none"),
        ScatterMode::Add => (updates, "add"),
        ScatterMode::Sub => (cx.node("Neg", &[updates], &[])?, "add"),
        ScatterMode::Mul => (updates, "mul"),
        ScatterMode::Div => (cx.node("Reciprocal", &[updates], &[])?, "mul"),
        ScatterMode::Max => (updates, "max"),
        ScatterMode::Min => (updates, "min"),
    })
}

/// `scatter`: slices along an axis at positions of rank 1.
pub(super) fn scatter(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ScatterLayerProto = call.read()?;
    let data = cx.exact(call.input(0)?)?;
    let positions = cx.whole_vector(call.input(1)?)?;
    let updates = cx.exact(call.input(2)?)?;
    let rank = cx.rank(data)?;
    if cx.rank(updates)? != rank {
        let text = format!("updates of another rank than the {rank} axes of the container");
        return Err(CoreMlError::invalid(text));
    }
    let at = axis_of(params.axis, rank)?;
    let shape: Vec<i64> = (0..rank).map(|axis| if axis == at { -1 } else { 1 }).collect();
    let positions = cx.reshape(positions, &shape)?;
    let wanted = cx.shape(updates)?;
    let positions = cx.node("Expand", &[positions, wanted], &[])?;
    scattered(cx, data, positions, updates, params)
}

/// `scatterAlongAxis`.
pub(super) fn scatter_along_axis(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ScatterLayerProto = call.read()?;
    let data = cx.exact(call.input(0)?)?;
    let positions = cx.whole(call.input(1)?)?;
    let updates = cx.exact(call.input(2)?)?;
    scattered(cx, data, positions, updates, params)
}

fn scattered(
    cx: &mut NetworkLowering,
    data: ValueId,
    positions: ValueId,
    updates: ValueId,
    params: ScatterLayerProto,
) -> LayerOutputs {
    let (updates, name) = reduction(cx, updates, params.mode)?;
    let attributes = [("axis", params.axis.into()), ("reduction", text(name))];
    let id = cx.node("ScatterElements", &[data, positions, updates], &attributes)?;
    Ok(vec![ScopeBlob::exact(id)])
}

/// `scatterND`.
pub(super) fn scatter_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ScatterNd = call.read()?;
    let data = cx.exact(call.input(0)?)?;
    let positions = cx.whole(call.input(1)?)?;
    let updates = cx.exact(call.input(2)?)?;
    let (updates, name) = reduction(cx, updates, params.mode)?;
    let inputs = [data, positions, updates];
    Ok(vec![ScopeBlob::exact(cx.node("ScatterND", &inputs, &[("reduction", text(name))])?)])
}

/// `oneHot`; the length of the vectors may be an input.
pub(super) fn one_hot(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: OneHotLayerProto = call.read()?;
    let positions = cx.whole(call.input(0)?)?;
    let depth = match call.inputs.get(1) {
        Some(&depth) => {
            let depth = cx.whole(depth)?;
            cx.reshape(depth, &[])?
        }
        None => {
            let depth = int(size(params.one_hot_vector_size)?);
            cx.constant(Tensor::scalar(depth))
        }
    };
    let values = cx.constant(Tensor::vector(vec![params.off_value, params.on_value]));
    let axis = [("axis", params.axis.into())];
    Ok(vec![ScopeBlob::exact(cx.node("OneHot", &[positions, depth, values], &axis)?)])
}

/// `whereNonZero`: a row of positions for every element that is not 0.
pub(super) fn where_non_zero(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let exact = cx.exact(call.input(0)?)?;
    let found = cx.node("NonZero", &[exact], &[])?;
    let rows = cx.transpose(found, &[1, 0])?;
    Ok(vec![ScopeBlob::exact(cx.cast(rows, DataType::Fp32)?)])
}

fn triangle(
    cx: &mut NetworkLowering,
    id: ValueId,
    upper: bool,
    diagonal: i64,
) -> Result<ValueId, CoreMlError> {
    let diagonal = cx.constant(Tensor::scalar(diagonal));
    cx.node("Trilu", &[id, diagonal], &[("upper", upper.into())])
}

/// `lowerTriangular` and `upperTriangular`.
pub(super) fn triangular(cx: &mut NetworkLowering, call: &LayerCall, upper: bool) -> LayerOutputs {
    let params: AxisLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(triangle(cx, exact, upper, params.axis)?)])
}

/// `matrixBandPart`: a negative number of diagonals is all of them.
pub(super) fn matrix_band_part(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: MatrixBandPart = call.read()?;
    let mut id = cx.exact(call.input(0)?)?;
    if params.num_upper >= 0 {
        id = triangle(cx, id, false, params.num_upper)?;
    }
    if params.num_lower >= 0 {
        id = triangle(cx, id, true, -params.num_lower)?;
    }
    Ok(vec![ScopeBlob::exact(id)])
}

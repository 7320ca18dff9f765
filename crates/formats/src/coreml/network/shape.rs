//! Layers that only arrange elements.

use galatea_graph::{AttributeValue, ValueId};

use super::convolution::two;
use super::elementwise::lengths;
use super::lower::{
    LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, axis_of, choice, int, ints, size, sizes,
    text,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    AxisLayerProto, ChoiceLayerProto, ConcatLayerProto, ConcatNd, CountLayerProto, IntsLayerProto,
    OrderProto, ReorganizationProto, ReorganizeData, ReshapeLayerProto, SizesLayerProto, SplitNd,
    SqueezeLayerProto,
};

fn axis(axis: i64) -> [(&'static str, AttributeValue); 1] {
    [("axis", axis.into())]
}

/// The three last axes in another order.
fn last_three(
    cx: &mut NetworkLowering,
    id: ValueId,
    order: [usize; 3],
) -> Result<ValueId, CoreMlError> {
    let rank = cx.rank(id)?;
    let leading = rank.checked_sub(3);
    let leading = leading.ok_or_else(|| CoreMlError::invalid("a blob of less than 3 axes"))?;
    let order: Vec<usize> = (0..leading).chain(order.into_iter().map(|at| leading + at)).collect();
    cx.transpose(id, &order)
}

/// The batch, and the sequence where it is not hidden, kept, and these lengths behind.
fn kept_and(cx: &mut NetworkLowering, id: ValueId, rest: &[i64]) -> Result<ValueId, CoreMlError> {
    let rank = cx.rank(id)?;
    let kept = rank.checked_sub(3);
    let kept = kept.ok_or_else(|| CoreMlError::invalid("a blob of less than 3 axes"))?;
    let mut shape = vec![0; kept];
    shape.extend_from_slice(rest);
    cx.reshape(id, &shape)
}

/// `flatten`: all into the channels.
pub(super) fn flatten(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ChoiceLayerProto = call.read()?;
    let blob = call.input(0)?;
    let id = match choice(params.mode, "order")? {
        OrderProto::ChannelFirst => blob.id,
        OrderProto::ChannelLast => last_three(cx, blob.id, [1, 2, 0])?,
    };
    Ok(vec![ScopeBlob { id: kept_and(cx, id, &[-1, 1, 1])?, ..blob }])
}

/// `reshape`, to `[C, H, W]` or `[sequence, C, H, W]`.
pub(super) fn reshape(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ReshapeLayerProto = call.read()?;
    let order: OrderProto = choice(params.mode, "order")?;
    let wrong = || {
        let shape = &params.target_shape;
        CoreMlError::invalid(format!("its shape is {shape:?}, expected 3 or 4 lengths"))
    };
    let (sequence, image) = match params.target_shape[..] {
        [c, h, w] => (None, [c, h, w]),
        [sequence, c, h, w] => (Some(sequence), [c, h, w]),
        _ => return Err(wrong()),
    };
    if image.iter().chain(&sequence).any(|&length| length == 0 || length < -1) {
        return Err(wrong());
    }
    let blob = call.input(0)?;
    let mut id = blob.id;
    if order == OrderProto::ChannelLast {
        id = last_three(cx, id, [1, 2, 0])?;
    }
    let [c, h, w] = image;
    let rest = if order == OrderProto::ChannelLast { [h, w, c] } else { image };
    let mut result = match sequence {
        None => ScopeBlob { id: kept_and(cx, id, &rest)?, ..blob },
        // The sequence lies before the batch, but what moves between it and the image does not
        // pass the batch.
        Some(sequence) => {
            let exact = cx.exact(ScopeBlob { id, ..blob })?;
            if cx.rank(exact)? != 5 {
                return Err(CoreMlError::invalid("its input is no blob of rank 5"));
            }
            let batch_first = cx.transpose(exact, &[1, 0, 2, 3, 4])?;
            let [x, y, z] = rest;
            let shaped = cx.reshape(batch_first, &[0, sequence, x, y, z])?;
            ScopeBlob::exact(cx.transpose(shaped, &[1, 0, 2, 3, 4])?)
        }
    };
    if order == OrderProto::ChannelLast {
        result.id = last_three(cx, result.id, [2, 0, 1])?;
    }
    Ok(vec![result])
}

/// `permute`: of sequence, channels, height and width; the batch stays.
pub(super) fn permute(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SizesLayerProto = call.read()?;
    let order = sizes(&params.sizes)?;
    let blob = call.input(0)?;
    if order.is_empty() {
        return Ok(vec![blob]);
    }
    let mut seen = order.clone();
    seen.sort_unstable();
    if seen != [0, 1, 2, 3] {
        let text = format!("the order is {order:?}, expected one of 0, 1, 2 and 3");
        return Err(CoreMlError::invalid(text));
    }
    if blob.hidden && order.first() == Some(&0) {
        return Ok(vec![ScopeBlob { id: cx.transpose(blob.id, &order)?, ..blob }]);
    }
    let exact = cx.exact(blob)?;
    if cx.rank(exact)? != 5 {
        return Err(CoreMlError::invalid("its input is no blob of rank 5"));
    }
    let mut order: Vec<usize> =
        order.into_iter().map(|at| if at == 0 { 0 } else { at + 1 }).collect();
    order.insert(1, 1);
    Ok(vec![ScopeBlob::exact(cx.transpose(exact, &order)?)])
}

/// `transpose`.
pub(super) fn transpose(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SizesLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(cx.transpose(exact, &sizes(&params.sizes)?)?)])
}

/// `concat`: of channels, or of sequences.
pub(super) fn concat(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConcatLayerProto = call.read()?;
    if params.sequence_concat {
        let exact: Vec<ValueId> =
            call.inputs.iter().map(|&blob| cx.exact(blob)).collect::<Result<_, _>>()?;
        return Ok(vec![ScopeBlob::exact(cx.node("Concat", &exact, &axis(-5))?)]);
    }
    let (ids, hidden) = cx.alike(&call.inputs)?;
    Ok(vec![ScopeBlob { id: cx.node("Concat", &ids, &axis(-3))?, hidden }])
}

/// `concatND`, one input behind the other or their elements in turn.
pub(super) fn concat_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConcatNd = call.read()?;
    let exact: Vec<ValueId> =
        call.inputs.iter().map(|&blob| cx.exact(blob)).collect::<Result<_, _>>()?;
    let first = call.input(0)?;
    let rank = cx.seen_rank(first)?;
    if !params.interleave {
        return Ok(vec![ScopeBlob::exact(cx.node("Concat", &exact, &axis(params.axis))?)]);
    }
    let at = axis_of(params.axis, rank)?;
    let apart: Vec<ValueId> =
        exact.iter().map(|&id| cx.unsqueeze(id, &[int(at) + 1])).collect::<Result<_, _>>()?;
    let together = cx.node("Concat", &apart, &axis(int(at) + 1))?;
    let shape = cx.shape(together)?;
    let before = cx.part(shape, 0, int(at))?;
    let merged = cx.longs(&[-1]);
    let after = cx.part(shape, int(at) + 2, int(rank) + 1)?;
    let target = cx.node("Concat", &[before, merged, after], &axis(0))?;
    Ok(vec![ScopeBlob::exact(cx.node("Reshape", &[together, target], &[])?)])
}

/// `stack`.
pub(super) fn stack(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AxisLayerProto = call.read()?;
    let mut apart = Vec::with_capacity(call.inputs.len());
    for &blob in &call.inputs {
        let exact = cx.exact(blob)?;
        apart.push(cx.unsqueeze(exact, &[params.axis])?);
    }
    Ok(vec![ScopeBlob::exact(cx.node("Concat", &apart, &axis(params.axis))?)])
}

/// `split`, of channels into equal parts.
pub(super) fn split(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CountLayerProto = call.read()?;
    let blob = call.input(0)?;
    let count = size(params.count)?;
    if count != call.outputs {
        let text = format!("it says {count} parts and has {} outputs", call.outputs);
        return Err(CoreMlError::invalid(text));
    }
    let channels = cx.dim(blob.id, -3)?;
    equal_parts(channels, count)?;
    let attributes = [("axis", (-3_i64).into()), ("num_outputs", int(count).into())];
    let ids = cx.nodes("Split", vec![Some(blob.id)], &attributes, count)?;
    Ok(ids.into_iter().map(|id| ScopeBlob { id, ..blob }).collect())
}

fn equal_parts(length: Option<usize>, count: usize) -> Result<(), CoreMlError> {
    match length {
        Some(length) if !length.is_multiple_of(count) => {
            Err(CoreMlError::invalid(format!("{length} is not split into {count} equal parts")))
        }
        _ => Ok(()),
    }
}

/// `splitND`.
pub(super) fn split_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SplitNd = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let mut inputs = vec![Some(exact)];
    let mut attributes = vec![("axis", AttributeValue::Int(params.axis))];
    if params.split_sizes.is_empty() {
        let length = cx.dim(exact, params.axis)?;
        equal_parts(length, call.outputs)?;
        attributes.push(("num_outputs", int(call.outputs).into()));
    } else {
        inputs.push(Some(cx.longs(&lengths(&params.split_sizes)?)));
    }
    let ids = cx.nodes("Split", inputs, &attributes, call.outputs)?;
    Ok(ids.into_iter().map(ScopeBlob::exact).collect())
}

/// `sequenceRepeat`.
pub(super) fn sequence_repeat(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CountLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    let at = axis_of(-5, rank)?;
    let times = int(size(params.count)?.max(1));
    let repeats: Vec<i64> = (0..rank).map(|axis| if axis == at { times } else { 1 }).collect();
    let repeats = cx.longs(&repeats);
    Ok(vec![ScopeBlob::exact(cx.node("Tile", &[exact, repeats], &[])?)])
}

/// `tile`.
pub(super) fn tile(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SizesLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let repeats = match call.inputs.get(1) {
        Some(&repeats) => cx.whole_vector(repeats)?,
        None => {
            let rank = cx.rank(exact)?;
            let mut repeats = lengths(&params.sizes)?;
            while repeats.len() < rank {
                repeats.insert(0, 1);
            }
            cx.longs(&repeats)
        }
    };
    Ok(vec![ScopeBlob::exact(cx.node("Tile", &[exact, repeats], &[])?)])
}

/// `reorganizeData`.
pub(super) fn reorganize(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ReorganizeData = call.read()?;
    let block = ("blocksize", AttributeValue::Int(int(size(params.block_size)?)));
    let (image, form) = cx.image(call.input(0)?)?;
    let id = match choice(params.mode, "reorganization")? {
        ReorganizationProto::SpaceToDepth => cx.node("SpaceToDepth", &[image], &[block])?,
        ReorganizationProto::DepthToSpace => cx.node("DepthToSpace", &[image], &[block])?,
        ReorganizationProto::PixelShuffle => {
            cx.node("DepthToSpace", &[image], &[block, ("mode", text("CRD"))])?
        }
    };
    Ok(vec![cx.unbatched(id, form)?])
}

/// `expandDims`.
pub(super) fn expand_dims(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: IntsLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(cx.unsqueeze(exact, &params.values)?)])
}

/// `squeeze`. A blob has at least one axis.
pub(super) fn squeeze(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SqueezeLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let dims = cx.dims(exact)?;
    let mut axes: Vec<usize> = match params.squeeze_all {
        true => (0..dims.len()).filter(|&at| dims.get(at) == Some(&Some(1))).collect(),
        false => {
            let axis = |&axis: &i64| axis_of(axis, dims.len());
            params.axes.iter().map(axis).collect::<Result<_, _>>()?
        }
    };
    axes.sort_unstable();
    axes.dedup();
    if axes.len() == dims.len() {
        return Ok(vec![ScopeBlob::exact(cx.reshape(exact, &[1])?)]);
    }
    Ok(vec![ScopeBlob::exact(cx.squeeze(exact, &ints(&axes))?)])
}

/// `flattenTo2D`.
pub(super) fn flatten_to_2d(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: AxisLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(cx.node("Flatten", &[exact], &axis(params.axis))?)])
}

/// `reshapeStatic` and `rankPreservingReshape`: 0 keeps a length, -1 is what is left.
pub(super) fn reshape_static(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: IntsLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    Ok(vec![ScopeBlob::exact(cx.reshape(exact, &params.values)?)])
}

/// An operator on a blob and the shape of another: `reshapeLike`, `broadcastToLike`.
pub(super) fn like(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let exact = cx.exact(call.input(0)?)?;
    let other = cx.exact(call.input(1)?)?;
    let shape = cx.shape(other)?;
    Ok(vec![ScopeBlob::exact(cx.node(operator, &[exact, shape], &[])?)])
}

/// An operator on a blob and a shape that is an input: `reshapeDynamic`, `broadcastToDynamic`.
pub(super) fn dynamic(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let exact = cx.exact(call.input(0)?)?;
    let shape = cx.whole_vector(call.input(1)?)?;
    Ok(vec![ScopeBlob::exact(cx.node(operator, &[exact, shape], &[])?)])
}

/// `broadcastToStatic`.
pub(super) fn broadcast_static(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SizesLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let shape = cx.longs(&lengths(&params.sizes)?);
    Ok(vec![ScopeBlob::exact(cx.node("Expand", &[exact, shape], &[])?)])
}

/// `getShape`.
pub(super) fn get_shape(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let exact = cx.exact(call.input(0)?)?;
    let shape = cx.shape(exact)?;
    Ok(vec![cx.floats(shape)?])
}

/// Height and width, where they are not set 1.
pub(super) fn target(found: &[u64]) -> Result<Vec<usize>, CoreMlError> {
    two(found, 1, "targetSize")
}

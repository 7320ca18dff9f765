//! Layers that cut and pad.

use galatea_graph::ValueId;
use galatea_tensor::DataType;

use super::convolution::borders;
use super::elementwise::lengths;
use super::lower::{
    LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, axis_of, choice, int, ints, list, size,
    sizes, text,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    ConstantPadding, CropLayerProto, PaddingKind, PaddingLayer, ReverseLayerProto,
    ReverseSequenceLayerProto, SliceAxis, SliceBySize, SliceLayerProto, SliceNd, SlidingWindows,
};

/// Beyond the end of every axis.
const END: i64 = i64::MAX;
/// Before the begin of every axis.
const BEGIN: i64 = i64::MIN;

/// `slice`, of one axis of images.
pub(super) fn slice(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SliceLayerProto = call.read()?;
    let axis = match choice(params.axis, "axis")? {
        SliceAxis::Channel => -3,
        SliceAxis::Height => -2,
        SliceAxis::Width => -1,
    };
    let step = int(size(params.stride)?.max(1));
    let blob = call.input(0)?;
    let id = cx.slice(blob.id, &[(axis, params.start_index, params.end_index, step)])?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// A flag that is not set is false.
fn mask(masks: &[bool], at: usize) -> bool {
    masks.get(at).copied().unwrap_or(false)
}

/// `sliceStatic`.
pub(super) fn slice_static(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SliceNd = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    let mut parts = Vec::with_capacity(rank);
    let mut squeezed = Vec::new();
    for at in 0..rank {
        let wrong = |what| {
            CoreMlError::invalid(format!("fewer '{what}' than the {rank} axes of its input"))
        };
        let begin = *params.begin_ids.get(at).ok_or_else(|| wrong("beginIds"))?;
        if mask(&params.squeeze_masks, at) {
            squeezed.push(int(at));
            parts.push((int(at), begin, if begin == -1 { END } else { begin + 1 }, 1));
            continue;
        }
        let end = *params.end_ids.get(at).ok_or_else(|| wrong("endIds"))?;
        let step = *params.strides.get(at).ok_or_else(|| wrong("strides"))?;
        let (first, last) = if step < 0 { (END, BEGIN) } else { (0, END) };
        let begin = if mask(&params.begin_masks, at) { first } else { begin };
        let end = if mask(&params.end_masks, at) { last } else { end };
        parts.push((int(at), begin, end, step));
    }
    let id = cx.slice(exact, &parts)?;
    Ok(vec![without(cx, id, &squeezed, rank)?])
}

/// Without axes of length 1; the last axis of a blob stays.
fn without(
    cx: &mut NetworkLowering,
    id: ValueId,
    axes: &[i64],
    rank: usize,
) -> Result<ScopeBlob, CoreMlError> {
    Ok(ScopeBlob::exact(match axes.len() {
        0 => id,
        all if all == rank => cx.reshape(id, &[1])?,
        _ => cx.squeeze(id, axes)?,
    }))
}

/// An input of integers, or the field that stands for it.
fn given(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    at: usize,
    field: &[i64],
) -> Result<ValueId, CoreMlError> {
    match call.inputs.get(at) {
        Some(&blob) => cx.whole_vector(blob),
        None => Ok(cx.longs(field)),
    }
}

/// Reads flags like [`given`]; flags that are not set are false.
fn given_mask(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    at: usize,
    field: &[bool],
    rank: usize,
) -> Result<ValueId, CoreMlError> {
    let all: Vec<i64> = (0..rank).map(|at| i64::from(mask(field, at))).collect();
    given(cx, call, at, &all)
}

/// `sliceDynamic`: begins are an input, the others are inputs or fields.
pub(super) fn slice_dynamic(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SliceNd = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    call.input(1)?;
    let begin = given(cx, call, 1, &[])?;
    let end = given(cx, call, 2, &params.end_ids)?;
    let step = given(cx, call, 3, &params.strides)?;
    let begin_mask = given_mask(cx, call, 4, &params.begin_masks, rank)?;
    let end_mask = given_mask(cx, call, 5, &params.end_masks, rank)?;
    let squeeze = given_mask(cx, call, 6, &params.squeeze_masks, rank)?;
    let unknown = || CoreMlError::unsupported("which axes it removes is only known in a run");
    let squeezed = cx.fact(squeeze)?.integers().ok_or_else(unknown)?;

    let choose = |cx: &mut NetworkLowering, condition: ValueId, then: ValueId, other: ValueId| {
        let holds = cx.cast(condition, DataType::Bool)?;
        cx.node("Where", &[holds, then, other], &[])
    };
    let zero = cx.longs(&[0]);
    let one = cx.longs(&[1]);
    let minus = cx.longs(&[-1]);
    let low = cx.longs(&[BEGIN]);
    let high = cx.longs(&[END]);
    let backwards = cx.node("Less", &[step, zero], &[])?;
    let first = choose(cx, backwards, high, zero)?;
    let last = choose(cx, backwards, low, high)?;
    let next = cx.node("Add", &[begin, one], &[])?;
    let at_end = cx.node("Equal", &[begin, minus], &[])?;
    let next = choose(cx, at_end, high, next)?;
    let from = choose(cx, begin_mask, first, begin)?;
    let from = choose(cx, squeeze, begin, from)?;
    let to = choose(cx, end_mask, last, end)?;
    let to = choose(cx, squeeze, next, to)?;
    let step = choose(cx, squeeze, one, step)?;
    let axes: Vec<i64> = (0..rank).map(int).collect();
    let axes = cx.longs(&axes);
    let id = cx.node("Slice", &[exact, from, to, axes, step], &[])?;
    let squeezed: Vec<i64> =
        (0..rank).filter(|&at| squeezed.get(at).is_some_and(|&it| it != 0)).map(int).collect();
    Ok(vec![without(cx, id, &squeezed, rank)?])
}

/// `sliceBySize`: the begin is an input.
pub(super) fn slice_by_size(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SliceBySize = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let begin = cx.whole_vector(call.input(1)?)?;
    let length = cx.longs(&[params.size]);
    let end = cx.node("Add", &[begin, length], &[])?;
    let axis = cx.longs(&[params.axis]);
    Ok(vec![ScopeBlob::exact(cx.node("Slice", &[exact, begin, end, axis], &[])?)])
}

/// `crop`: by amounts, or to the size of another blob.
pub(super) fn crop(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CropLayerProto = call.read()?;
    let blob = call.input(0)?;
    let axes = cx.longs(&[-2, -1]);
    let (from, to) = if call.inputs.len() > 1 {
        let other = call.input(1)?.id;
        let offset = match sizes(&params.offset)?[..] {
            [] => vec![0, 0],
            [height, width] => vec![int(height), int(width)],
            _ => return Err(CoreMlError::invalid("'offset' has not 2 numbers")),
        };
        let from = cx.longs(&offset);
        let shape = cx.shape(other)?;
        let wanted = cx.part(shape, -2, END)?;
        (from, cx.node("Add", &[from, wanted], &[])?)
    } else {
        let amounts = borders(params.crop_amounts.as_ref())?;
        let (begin, end) = amounts.split_at(2);
        let from = cx.longs(begin);
        let amount = cx.longs(end);
        let shape = cx.shape(blob.id)?;
        let found = cx.part(shape, -2, END)?;
        (from, cx.node("Sub", &[found, amount], &[])?)
    };
    Ok(vec![ScopeBlob { id: cx.node("Slice", &[blob.id, from, to, axes], &[])?, ..blob }])
}

/// `padding`, of height and width.
pub(super) fn padding(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: PaddingLayer = call.read()?;
    let blob = call.input(0)?;
    let pads = cx.longs(&borders(params.padding_amounts.as_ref())?);
    let axes = cx.longs(&[-2, -1]);
    let (mode, value) = match params.kind {
        None => ("constant", 0.0),
        Some(PaddingKind::Constant(found)) => ("constant", found.value),
        Some(PaddingKind::Reflection(_)) => ("reflect", 0.0),
        Some(PaddingKind::Replication(_)) => ("edge", 0.0),
    };
    let value = cx.scalar(value);
    let id = cx.node("Pad", &[blob.id, pads, value, axes], &[("mode", text(mode))])?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `constantPad`: by amounts, or up to lengths.
pub(super) fn constant_pad(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ConstantPadding = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    let pairs = match call.inputs.get(1) {
        Some(&amounts) => cx.whole_vector(amounts)?,
        None => {
            let amounts = lengths(&params.pad_amounts)?;
            if amounts.len() != 2 * rank {
                let text = format!("{} amounts for {rank} axes, expected two each", amounts.len());
                return Err(CoreMlError::invalid(text));
            }
            cx.longs(&amounts)
        }
    };
    let pairs = cx.reshape(pairs, &[int(rank), 2])?;
    let mut pads = cx.transpose(pairs, &[1, 0])?;
    if params.pad_to_given_output_size_mode {
        let shape = cx.shape(exact)?;
        let missing = cx.node("Sub", &[pads, shape], &[])?;
        let zero = cx.longs(&[0]);
        pads = cx.node("Max", &[missing, zero], &[])?;
    }
    let pads = cx.reshape(pads, &[-1])?;
    let value = cx.scalar(params.value);
    Ok(vec![ScopeBlob::exact(cx.node("Pad", &[exact, pads, value], &[])?)])
}

/// Numbers from 0 on, as many as a vector of one integer says.
fn counted(cx: &mut NetworkLowering, count: ValueId) -> Result<ValueId, CoreMlError> {
    let zero = cx.constant(galatea_tensor::Tensor::scalar(0_i64));
    let one = cx.constant(galatea_tensor::Tensor::scalar(1_i64));
    let count = cx.reshape(count, &[])?;
    cx.node("Range", &[zero, count, one], &[])
}

/// `slidingWindows`: an axis becomes windows and what is in them.
pub(super) fn sliding_windows(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: SlidingWindows = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let at = int(axis_of(params.axis, cx.rank(exact)?)?);
    let width = int(size(params.window_size)?);
    let step = int(size(params.step)?);
    if width == 0 || step == 0 {
        return Err(CoreMlError::invalid(format!("windows of {width} every {step}")));
    }
    let length = cx.length(exact, at)?;
    let width = cx.longs(&[width]);
    let step = cx.longs(&[step]);
    let one = cx.longs(&[1]);
    let room = cx.node("Sub", &[length, width], &[])?;
    let steps = cx.node("Div", &[room, step], &[])?;
    let windows = cx.node("Add", &[steps, one], &[])?;
    let starts = counted(cx, windows)?;
    let starts = cx.node("Mul", &[starts, step], &[])?;
    let starts = cx.unsqueeze(starts, &[1])?;
    let inside = counted(cx, width)?;
    let positions = cx.node("Add", &[starts, inside], &[])?;
    Ok(vec![ScopeBlob::exact(cx.node("Gather", &[exact, positions], &[("axis", at.into())])?)])
}

/// `reverse`.
pub(super) fn reverse(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ReverseLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    if params.reverse_dim.len() != rank {
        let text = format!("{} flags for {rank} axes", params.reverse_dim.len());
        return Err(CoreMlError::invalid(text));
    }
    let parts: Vec<(i64, i64, i64, i64)> = (0..rank)
        .filter(|&at| mask(&params.reverse_dim, at))
        .map(|at| (int(at), END, BEGIN, -1))
        .collect();
    match parts.is_empty() {
        true => Ok(vec![ScopeBlob::exact(exact)]),
        false => Ok(vec![ScopeBlob::exact(cx.slice(exact, &parts)?)]),
    }
}

/// `reverseSeq`: parts of sequences, whose lengths are the second input.
pub(super) fn reverse_sequence(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ReverseSequenceLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let lengths = cx.whole_vector(call.input(1)?)?;
    let rank = cx.rank(exact)?;
    let batch = axis_of(params.batch_axis, rank)?;
    let sequence = axis_of(params.sequence_axis, rank)?;
    if batch == sequence {
        return Err(CoreMlError::invalid(format!("batch and sequence are both axis {batch}")));
    }
    let mut order = vec![batch, sequence];
    order.extend((0..rank).filter(|&at| at != batch && at != sequence));
    let mut back: Vec<(usize, usize)> = order.iter().copied().zip(0..).collect();
    back.sort_unstable();
    let back: Vec<usize> = back.into_iter().map(|(_, from)| from).collect();
    let id = cx.transpose(exact, &order)?;
    let attributes = [("batch_axis", 0_i64.into()), ("time_axis", 1_i64.into())];
    let id = cx.node("ReverseSequence", &[id, lengths], &attributes)?;
    Ok(vec![ScopeBlob::exact(cx.transpose(id, &back)?)])
}

/// The amounts of an axis as a list of one attribute.
pub(super) fn shape_attribute(found: &[u64]) -> Result<galatea_graph::AttributeValue, CoreMlError> {
    Ok(list(ints(&sizes(found)?)))
}

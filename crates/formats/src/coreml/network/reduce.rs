//! Reductions, positions of extremes, sorting and running sums.

use galatea_graph::{AttributeValue, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::activation::linear;
use super::elementwise::or_default;
use super::lower::{
    LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, axis_of, choice, int, size,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{
    ArgAxis, CumSum, ReduceAxes, ReduceAxis, ReduceLayerProto, ReduceOperation, TopKLayerProto,
};

/// `reduce`: over channels, height or width, which stay with length 1.
pub(super) fn reduce(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ReduceLayerProto = call.read()?;
    let blob = call.input(0)?;
    let axes: &[i64] = match choice(params.axis, "axis of reduction")? {
        ReduceAxis::Chw => &[-3, -2, -1],
        ReduceAxis::Hw => &[-2, -1],
        ReduceAxis::C => &[-3],
        ReduceAxis::H => &[-2],
        ReduceAxis::W => &[-1],
    };
    let mut x = blob.id;
    let operator = match choice(params.mode, "reduction")? {
        ReduceOperation::Sum => "ReduceSum",
        ReduceOperation::Avg => "ReduceMean",
        ReduceOperation::Prod => "ReduceProd",
        ReduceOperation::LogSum => {
            let shifted = linear(cx, x, 1.0, or_default(params.epsilon, 1e-6))?;
            x = cx.node("Log", &[shifted], &[])?;
            "ReduceSum"
        }
        ReduceOperation::SumSquare => "ReduceSumSquare",
        ReduceOperation::L1 => "ReduceL1",
        ReduceOperation::L2 => "ReduceL2",
        ReduceOperation::Max => "ReduceMax",
        ReduceOperation::Min => "ReduceMin",
        ReduceOperation::ArgMax => {
            let &[axis] = axes else {
                return Err(CoreMlError::invalid("the position of a maximum on several axes"));
            };
            let id = cx.node("ArgMax", &[x], &[("axis", axis.into())])?;
            return Ok(vec![ScopeBlob { id: cx.cast(id, DataType::Fp32)?, ..blob }]);
        }
    };
    let axes = cx.longs(axes);
    let id = cx.node(operator, &[x, axes], &[("keepdims", true.into())])?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// `reduceSum` and the other reductions over any axes. A blob has at least one axis.
pub(super) fn reduce_axes(
    cx: &mut NetworkLowering,
    call: &LayerCall,
    operator: &str,
) -> LayerOutputs {
    let params: ReduceAxes = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let rank = cx.rank(exact)?;
    let mut axes: Vec<usize> = match params.reduce_all || params.axes.is_empty() {
        true => (0..rank).collect(),
        false => params.axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<_, _>>()?,
    };
    axes.sort_unstable();
    axes.dedup();
    let none_left = axes.len() == rank && !params.keep_dims;
    let axes = cx.longs(&super::lower::ints(&axes));
    let keep = params.keep_dims || none_left;
    let mut id = cx.node(operator, &[exact, axes], &[("keepdims", keep.into())])?;
    if none_left {
        id = cx.reshape(id, &[1])?;
    }
    Ok(vec![ScopeBlob::exact(id)])
}

/// `argMax` and `argMin`. A blob has at least one axis.
pub(super) fn arg(cx: &mut NetworkLowering, call: &LayerCall, operator: &str) -> LayerOutputs {
    let params: ArgAxis = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let keep = !params.flag || cx.rank(exact)? == 1;
    let attributes = [("axis", params.axis.into()), ("keepdims", keep.into())];
    let id = cx.node(operator, &[exact], &attributes)?;
    Ok(vec![cx.floats(id)?])
}

fn sorted(
    cx: &mut NetworkLowering,
    x: ValueId,
    count: ValueId,
    axis: i64,
    largest: bool,
) -> Result<Vec<ValueId>, CoreMlError> {
    let attributes: [(&str, AttributeValue); 2] =
        [("axis", axis.into()), ("largest", largest.into())];
    cx.nodes("TopK", vec![Some(x), Some(count)], &attributes, 2)
}

/// `topK`: values and positions.
pub(super) fn top_k(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: TopKLayerProto = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let count = match call.inputs.get(1) {
        Some(&count) => cx.whole_vector(count)?,
        None => cx.longs(&[int(size(params.k)?)]),
    };
    let found = sorted(cx, exact, count, params.axis, !params.use_bottom_k)?;
    found.into_iter().map(|id| cx.floats(id)).collect()
}

/// `argSort`.
pub(super) fn arg_sort(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: ArgAxis = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let count = cx.length(exact, params.axis)?;
    let found = sorted(cx, exact, count, params.axis, params.flag)?;
    found.into_iter().skip(1).map(|id| cx.floats(id)).collect()
}

/// `cumSum`; the axis may be an input.
pub(super) fn cum_sum(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: CumSum = call.read()?;
    let exact = cx.exact(call.input(0)?)?;
    let axis = match call.inputs.get(1) {
        Some(&axis) => {
            let axis = cx.whole(axis)?;
            cx.reshape(axis, &[])?
        }
        None => cx.constant(Tensor::scalar(params.axis)),
    };
    let attributes =
        [("exclusive", params.exclude_final_sum.into()), ("reverse", params.reverse.into())];
    Ok(vec![ScopeBlob::exact(cx.node("CumSum", &[exact, axis], &attributes)?)])
}

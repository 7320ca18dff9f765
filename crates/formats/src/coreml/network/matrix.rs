//! Products of matrices, and tables that are looked up.

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::lower::{LayerCall, LayerOutputs, NetworkLowering, ScopeBlob, int, size};
use super::weights;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::NetworkWeightsProto;
use crate::coreml::proto::network::layers::{
    BatchedMatMul, EmbeddingLayerProto, EmbeddingNd, InnerProduct,
};

/// A matrix of `[rows, columns]` in the file, as a constant of `[columns, rows]`.
fn transposed(
    cx: &mut NetworkLowering,
    found: Option<&NetworkWeightsProto>,
    rows: usize,
    columns: usize,
) -> Result<ValueId, CoreMlError> {
    let tensor = weights::tensor(found, "weights", &[rows, columns])?;
    let values = tensor.permute(&[1, 0])?.to_vec::<f32>()?;
    let tensor = Tensor::from_vec(&[columns, rows], values)?;
    Ok(cx.constant(tensor))
}

/// `innerProduct`. The weights of `int8DynamicQuantize` are signed codes with a scale; the input is
/// not rounded to 8 bits, which is what that flag permits.
pub(super) fn inner_product(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: InnerProduct = call.read()?;
    let input = size(params.input_channels)?;
    let output = size(params.output_channels)?;
    let blob = call.input(0)?;
    let rank = cx.rank(blob.id)?;
    let wide = int(output);
    let bias = match params.has_bias {
        true => Some(weights::tensor(params.bias.as_ref(), "bias", &[output])?),
        false => None,
    };
    if rank == 3 && !blob.hidden {
        let matrix = transposed(cx, params.weights.as_ref(), output, input)?;
        let mut id = cx.node("MatMul", &[blob.id, matrix], &[])?;
        if let Some(bias) = bias {
            let bias = cx.constant(bias);
            id = cx.node("Add", &[id, bias], &[])?;
        }
        return Ok(vec![ScopeBlob::exact(id)]);
    }
    let matrix = weights::tensor(params.weights.as_ref(), "weights", &[output, input])?;
    let rows = match rank {
        1 => cx.unsqueeze(blob.id, &[0])?,
        2 => blob.id,
        4 => cx.node("Flatten", &[blob.id], &[("axis", 1_i64.into())])?,
        5 => cx.node("Flatten", &[blob.id], &[("axis", 2_i64.into())])?,
        _ => return Err(CoreMlError::invalid(format!("a blob of rank {rank}, expected 1 to 5"))),
    };
    let mut inputs = vec![rows, cx.constant(matrix)];
    if let Some(bias) = bias {
        inputs.push(cx.constant(bias));
    }
    let id = cx.node("Gemm", &inputs, &[("transB", true.into())])?;
    let id = match rank {
        1 => cx.squeeze(id, &[0])?,
        4 => cx.unsqueeze(id, &[2, 3])?,
        5 => {
            let shape = cx.shape(blob.id)?;
            let leading = cx.part(shape, 0, 2)?;
            let rest = cx.longs(&[wide, 1, 1]);
            let shape = cx.node("Concat", &[leading, rest], &[("axis", 0_i64.into())])?;
            cx.node("Reshape", &[id, shape], &[])?
        }
        _ => id,
    };
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// Table of an embedding and the bias of its rows.
struct EmbeddingWeights<'a> {
    found: Option<&'a NetworkWeightsProto>,
    bias: Option<&'a NetworkWeightsProto>,
}

/// Rows of a table by numbers, and a bias.
fn look_up(
    cx: &mut NetworkLowering,
    positions: ValueId,
    EmbeddingWeights { found, bias }: EmbeddingWeights<'_>,
    width: usize,
    entries: usize,
    axes: &[i64],
) -> Result<ValueId, CoreMlError> {
    let table = transposed(cx, found, width, entries)?;
    let positions = cx.squeeze(positions, axes)?;
    let positions = cx.cast(positions, DataType::Int64)?;
    let mut id = cx.node("Gather", &[table, positions], &[])?;
    if bias.is_some() {
        let bias = weights::tensor(bias, "bias", &[width])?;
        let bias = cx.constant(bias);
        id = cx.node("Add", &[id, bias], &[])?;
    }
    Ok(id)
}

fn optional(
    has: bool,
    bias: Option<&NetworkWeightsProto>,
) -> Result<Option<&NetworkWeightsProto>, CoreMlError> {
    match (has, bias) {
        (true, None) => Err(CoreMlError::invalid("'bias': it is missing")),
        (true, found) => Ok(found),
        (false, _) => Ok(None),
    }
}

/// `embedding`: the last three axes have length 1.
pub(super) fn embedding(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: EmbeddingLayerProto = call.read()?;
    let blob = call.input(0)?;
    let bias = optional(params.has_bias, params.bias.as_ref())?;
    let width = size(params.output_channels)?;
    let entries = size(params.input_dim)?;
    let id = look_up(
        cx,
        blob.id,
        EmbeddingWeights { found: params.weights.as_ref(), bias },
        width,
        entries,
        &[-3, -2, -1],
    )?;
    Ok(vec![ScopeBlob { id: cx.unsqueeze(id, &[-2, -1])?, ..blob }])
}

/// `embeddingND`: the last axis has length 1.
pub(super) fn embedding_nd(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: EmbeddingNd = call.read()?;
    let blob = call.input(0)?;
    let bias = optional(params.has_bias, params.bias.as_ref())?;
    let width = size(params.embedding_size)?;
    let entries = size(params.vocab_size)?;
    let id = look_up(
        cx,
        blob.id,
        EmbeddingWeights { found: params.weights.as_ref(), bias },
        width,
        entries,
        &[-1],
    )?;
    Ok(vec![ScopeBlob { id, ..blob }])
}

/// The last two axes changed for each other.
fn swapped(cx: &mut NetworkLowering, id: ValueId) -> Result<ValueId, CoreMlError> {
    let rank = cx.rank(id)?;
    let mut order: Vec<usize> = (0..rank).collect();
    if rank >= 2 {
        order.swap(rank - 1, rank - 2);
    }
    cx.transpose(id, &order)
}

/// `batchedMatmul`: of two inputs, or of one and a constant matrix.
pub(super) fn batched_mat_mul(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: BatchedMatMul = call.read()?;
    if let [blob] = call.inputs[..] {
        let rows = size(params.weight_matrix_first_dimension)?;
        let columns = size(params.weight_matrix_second_dimension)?;
        // The file has columns one after the other.
        let matrix = transposed(cx, params.weights.as_ref(), columns, rows)?;
        let mut id = cx.node("MatMul", &[blob.id, matrix], &[])?;
        if params.has_bias {
            let bias = weights::tensor(params.bias.as_ref(), "bias", &[columns])?;
            let bias = cx.constant(bias);
            id = cx.node("Add", &[id, bias], &[])?;
        }
        return Ok(vec![ScopeBlob { id, ..blob }]);
    }
    let mut a = cx.exact(call.input(0)?)?;
    let mut b = cx.exact(call.input(1)?)?;
    if cx.rank(a)? == 1 {
        a = cx.unsqueeze(a, &[0])?;
    }
    if cx.rank(b)? == 1 {
        b = cx.unsqueeze(b, &[1])?;
    }
    if params.transpose_a {
        a = swapped(cx, a)?;
    }
    if params.transpose_b {
        b = swapped(cx, b)?;
    }
    Ok(vec![ScopeBlob::exact(cx.node("MatMul", &[a, b], &[])?)])
}

/// `dot`: of vectors on the third axis from the end, divided by their lengths where wanted.
pub(super) fn dot(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: crate::coreml::proto::network::layers::DotLayerProto = call.read()?;
    let (ids, hidden) = cx.broadcast(&call.inputs)?;
    let sum = |cx: &mut NetworkLowering, a: ValueId, b: ValueId| {
        let product = cx.node("Mul", &[a, b], &[])?;
        let axes = cx.longs(&[-3]);
        cx.node("ReduceSum", &[product, axes], &[("keepdims", true.into())])
    };
    let &[a, b] = &ids[..] else { return Err(CoreMlError::invalid("it needs two inputs")) };
    let mut id = sum(cx, a, b)?;
    if params.cosine_similarity {
        let first = sum(cx, a, a)?;
        let second = sum(cx, b, b)?;
        let squares = cx.node("Mul", &[first, second], &[])?;
        let norm = cx.node("Sqrt", &[squares], &[])?;
        id = cx.node("Div", &[id, norm], &[])?;
    }
    Ok(vec![ScopeBlob { id, hidden }])
}

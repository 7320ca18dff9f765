//! The kinds of layers: one row each.

use super::lower::{LayerCall, LayerOutputs, NetworkLowering};
use super::{
    activation, control, convolution, elementwise, generate, index, matrix, nms, normalize,
    pooling, recurrent, reduce, resize, shape, slice,
};
use generate::ShapeFrom;

/// How a layer is lowered.
pub(super) type LayerLowering = fn(&mut NetworkLowering, &LayerCall) -> LayerOutputs;

/// A kind of layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerRow {
    /// The number of the field that its message is.
    pub(super) tag: u32,
    /// The name of that field.
    pub(super) name: &'static str,
    /// The least and the most inputs.
    pub(super) inputs: (usize, usize),
    /// The least and the most outputs.
    pub(super) outputs: (usize, usize),
    /// Makes nodes of it.
    pub(super) lower: LayerLowering,
}

/// Any number from one on.
const SOME: (usize, usize) = (1, usize::MAX);
const NONE: (usize, usize) = (0, 0);
const ONE: (usize, usize) = (1, 1);
const TWO: (usize, usize) = (2, 2);

const fn row(
    tag: u32,
    name: &'static str,
    inputs: (usize, usize),
    outputs: (usize, usize),
    lower: LayerLowering,
) -> LayerRow {
    LayerRow { tag, name, inputs, outputs, lower }
}

/// A layer with one input and one output.
const fn one(tag: u32, name: &'static str, lower: LayerLowering) -> LayerRow {
    row(tag, name, ONE, ONE, lower)
}

/// A layer with two inputs and one output.
const fn two(tag: u32, name: &'static str, lower: LayerLowering) -> LayerRow {
    row(tag, name, TWO, ONE, lower)
}

/// All kinds of layers, in the order of their numbers. `custom` is code that the file does not hold.
pub(super) const ROWS: &[LayerRow] = &[
    row(100, "convolution", (1, 3), ONE, convolution::convolution),
    one(120, "pooling", pooling::pooling),
    one(130, "activation", activation::activation),
    one(140, "innerProduct", matrix::inner_product),
    one(150, "embedding", matrix::embedding),
    one(160, "batchnorm", normalize::batch_norm),
    one(165, "mvn", normalize::mean_variance),
    one(170, "l2normalize", normalize::l2_normalize),
    one(175, "softmax", normalize::softmax),
    one(180, "lrn", normalize::lrn),
    row(190, "crop", (1, 2), ONE, slice::crop),
    one(200, "padding", slice::padding),
    one(210, "upsample", resize::upsample),
    one(211, "resizeBilinear", resize::resize_bilinear),
    two(212, "cropResize", resize::crop_resize),
    one(220, "unary", elementwise::function),
    row(230, "add", SOME, ONE, |cx, call| elementwise::accumulate(cx, call, "Add")),
    row(231, "multiply", SOME, ONE, |cx, call| elementwise::accumulate(cx, call, "Mul")),
    row(240, "average", SOME, ONE, |cx, call| elementwise::variadic(cx, call, "Mean")),
    one(245, "scale", elementwise::scale),
    one(250, "bias", elementwise::bias),
    row(260, "max", SOME, ONE, |cx, call| elementwise::variadic(cx, call, "Max")),
    row(261, "min", SOME, ONE, |cx, call| elementwise::variadic(cx, call, "Min")),
    two(270, "dot", matrix::dot),
    one(280, "reduce", reduce::reduce),
    row(290, "loadConstant", NONE, ONE, elementwise::load_constant),
    one(300, "reshape", shape::reshape),
    one(301, "flatten", shape::flatten),
    one(310, "permute", shape::permute),
    row(320, "concat", SOME, ONE, shape::concat),
    row(330, "split", ONE, SOME, shape::split),
    one(340, "sequenceRepeat", shape::sequence_repeat),
    one(345, "reorganizeData", shape::reorganize),
    one(350, "slice", slice::slice),
    row(400, "simpleRecurrent", (1, 2), (1, 2), recurrent::simple),
    row(410, "gru", (1, 2), (1, 2), recurrent::gru),
    row(420, "uniDirectionalLSTM", (1, 3), (1, 3), recurrent::uni_lstm),
    row(430, "biDirectionalLSTM", (1, 5), (1, 5), recurrent::bi_lstm),
    one(600, "copy", |_, call| Ok(call.inputs.clone())),
    row(605, "branch", ONE, NONE, control::branch),
    row(615, "loop", (0, 1), NONE, control::looped),
    row(620, "loopBreak", NONE, NONE, |cx, _| control::leave(cx, true)),
    row(625, "loopContinue", NONE, NONE, |cx, _| control::leave(cx, false)),
    row(635, "rangeStatic", (0, 3), ONE, generate::range),
    row(640, "rangeDynamic", (1, 3), ONE, generate::range),
    one(660, "clip", elementwise::clip),
    one(665, "ceil", |cx, call| elementwise::unary(cx, call, "Ceil")),
    one(670, "floor", |cx, call| elementwise::unary(cx, call, "Floor")),
    one(680, "sign", |cx, call| elementwise::unary(cx, call, "Sign")),
    one(685, "round", |cx, call| elementwise::unary(cx, call, "Round")),
    one(700, "exp2", elementwise::exp2),
    one(710, "sin", |cx, call| elementwise::unary(cx, call, "Sin")),
    one(715, "cos", |cx, call| elementwise::unary(cx, call, "Cos")),
    one(720, "tan", |cx, call| elementwise::unary(cx, call, "Tan")),
    one(730, "asin", |cx, call| elementwise::unary(cx, call, "Asin")),
    one(735, "acos", |cx, call| elementwise::unary(cx, call, "Acos")),
    one(740, "atan", |cx, call| elementwise::unary(cx, call, "Atan")),
    one(750, "sinh", |cx, call| elementwise::unary(cx, call, "Sinh")),
    one(755, "cosh", |cx, call| elementwise::unary(cx, call, "Cosh")),
    one(760, "tanh", |cx, call| elementwise::unary(cx, call, "Tanh")),
    one(770, "asinh", |cx, call| elementwise::unary(cx, call, "Asinh")),
    one(775, "acosh", |cx, call| elementwise::unary(cx, call, "Acosh")),
    one(780, "atanh", |cx, call| elementwise::unary(cx, call, "Atanh")),
    one(790, "erf", |cx, call| elementwise::unary(cx, call, "Erf")),
    one(795, "gelu", activation::gelu),
    row(815, "equal", (1, 2), ONE, |cx, call| elementwise::compare(cx, call, "Equal")),
    row(820, "notEqual", (1, 2), ONE, elementwise::not_equal),
    row(825, "lessThan", (1, 2), ONE, |cx, call| elementwise::compare(cx, call, "Less")),
    row(827, "lessEqual", (1, 2), ONE, |cx, call| elementwise::compare(cx, call, "LessOrEqual")),
    row(830, "greaterThan", (1, 2), ONE, |cx, call| elementwise::compare(cx, call, "Greater")),
    row(832, "greaterEqual", (1, 2), ONE, |cx, call| {
        elementwise::compare(cx, call, "GreaterOrEqual")
    }),
    two(840, "logicalOr", |cx, call| elementwise::logical(cx, call, "Or")),
    two(845, "logicalXor", |cx, call| elementwise::logical(cx, call, "Xor")),
    one(850, "logicalNot", elementwise::not),
    two(855, "logicalAnd", |cx, call| elementwise::logical(cx, call, "And")),
    two(865, "modBroadcastable", elementwise::modulo),
    row(870, "minBroadcastable", SOME, ONE, |cx, call| elementwise::variadic(cx, call, "Min")),
    row(875, "maxBroadcastable", SOME, ONE, |cx, call| elementwise::variadic(cx, call, "Max")),
    two(880, "addBroadcastable", |cx, call| elementwise::binary(cx, call, "Add")),
    two(885, "powBroadcastable", |cx, call| elementwise::binary(cx, call, "Pow")),
    two(890, "divideBroadcastable", |cx, call| elementwise::binary(cx, call, "Div")),
    two(895, "floorDivBroadcastable", elementwise::floor_div),
    two(900, "multiplyBroadcastable", |cx, call| elementwise::binary(cx, call, "Mul")),
    two(905, "subtractBroadcastable", |cx, call| elementwise::binary(cx, call, "Sub")),
    row(920, "tile", (1, 2), ONE, shape::tile),
    row(925, "stack", SOME, ONE, shape::stack),
    two(930, "gather", |cx, call| index::gather(cx, call, "Gather")),
    row(935, "scatter", (3, 3), ONE, index::scatter),
    two(940, "gatherND", index::gather_nd),
    row(945, "scatterND", (3, 3), ONE, index::scatter_nd),
    one(950, "softmaxND", normalize::softmax_nd),
    two(952, "gatherAlongAxis", |cx, call| index::gather(cx, call, "GatherElements")),
    row(954, "scatterAlongAxis", (3, 3), ONE, index::scatter_along_axis),
    one(960, "reverse", slice::reverse),
    two(965, "reverseSeq", slice::reverse_sequence),
    row(975, "splitND", ONE, SOME, shape::split_nd),
    row(980, "concatND", SOME, ONE, shape::concat_nd),
    one(985, "transpose", shape::transpose),
    one(995, "sliceStatic", slice::slice_static),
    row(1000, "sliceDynamic", (2, 7), ONE, slice::slice_dynamic),
    one(1005, "slidingWindows", slice::sliding_windows),
    row(1015, "topK", (1, 2), (1, 2), reduce::top_k),
    one(1020, "argMin", |cx, call| reduce::arg(cx, call, "ArgMin")),
    one(1025, "argMax", |cx, call| reduce::arg(cx, call, "ArgMax")),
    one(1040, "embeddingND", matrix::embedding_nd),
    row(1045, "batchedMatmul", (1, 2), ONE, matrix::batched_mat_mul),
    one(1065, "getShape", shape::get_shape),
    row(1070, "loadConstantND", NONE, ONE, elementwise::load_constant_nd),
    one(1080, "fillLike", |cx, call| generate::fill(cx, call, ShapeFrom::Like)),
    row(1085, "fillStatic", NONE, ONE, |cx, call| generate::fill(cx, call, ShapeFrom::Static)),
    one(1090, "fillDynamic", |cx, call| generate::fill(cx, call, ShapeFrom::Dynamic)),
    two(1100, "broadcastToLike", |cx, call| shape::like(cx, call, "Expand")),
    one(1105, "broadcastToStatic", shape::broadcast_static),
    two(1110, "broadcastToDynamic", |cx, call| shape::dynamic(cx, call, "Expand")),
    one(1120, "squeeze", shape::squeeze),
    one(1125, "expandDims", shape::expand_dims),
    one(1130, "flattenTo2D", shape::flatten_to_2d),
    two(1135, "reshapeLike", |cx, call| shape::like(cx, call, "Reshape")),
    one(1140, "reshapeStatic", shape::reshape_static),
    two(1145, "reshapeDynamic", |cx, call| shape::dynamic(cx, call, "Reshape")),
    one(1150, "rankPreservingReshape", shape::reshape_static),
    row(1155, "constantPad", (1, 2), ONE, slice::constant_pad),
    one(1170, "randomNormalLike", |cx, call| generate::random(cx, call, ShapeFrom::Like, true)),
    row(1175, "randomNormalStatic", NONE, ONE, |cx, call| {
        generate::random(cx, call, ShapeFrom::Static, true)
    }),
    one(1180, "randomNormalDynamic", |cx, call| {
        generate::random(cx, call, ShapeFrom::Dynamic, true)
    }),
    one(1190, "randomUniformLike", |cx, call| generate::random(cx, call, ShapeFrom::Like, false)),
    row(1195, "randomUniformStatic", NONE, ONE, |cx, call| {
        generate::random(cx, call, ShapeFrom::Static, false)
    }),
    one(1200, "randomUniformDynamic", |cx, call| {
        generate::random(cx, call, ShapeFrom::Dynamic, false)
    }),
    one(1210, "randomBernoulliLike", |cx, call| generate::bernoulli(cx, call, ShapeFrom::Like)),
    row(1215, "randomBernoulliStatic", NONE, ONE, |cx, call| {
        generate::bernoulli(cx, call, ShapeFrom::Static)
    }),
    one(1220, "randomBernoulliDynamic", |cx, call| {
        generate::bernoulli(cx, call, ShapeFrom::Dynamic)
    }),
    one(1230, "categoricalDistribution", generate::categorical),
    one(1250, "reduceL1", |cx, call| reduce::reduce_axes(cx, call, "ReduceL1")),
    one(1255, "reduceL2", |cx, call| reduce::reduce_axes(cx, call, "ReduceL2")),
    one(1260, "reduceMax", |cx, call| reduce::reduce_axes(cx, call, "ReduceMax")),
    one(1265, "reduceMin", |cx, call| reduce::reduce_axes(cx, call, "ReduceMin")),
    one(1270, "reduceSum", |cx, call| reduce::reduce_axes(cx, call, "ReduceSum")),
    one(1275, "reduceProd", |cx, call| reduce::reduce_axes(cx, call, "ReduceProd")),
    one(1280, "reduceMean", |cx, call| reduce::reduce_axes(cx, call, "ReduceMean")),
    one(1285, "reduceLogSum", |cx, call| reduce::reduce_axes(cx, call, "ReduceLogSum")),
    one(1290, "reduceSumSquare", |cx, call| reduce::reduce_axes(cx, call, "ReduceSumSquare")),
    one(1295, "reduceLogSumExp", |cx, call| reduce::reduce_axes(cx, call, "ReduceLogSumExp")),
    one(1313, "whereNonZero", index::where_non_zero),
    one(1315, "matrixBandPart", index::matrix_band_part),
    one(1320, "lowerTriangular", |cx, call| index::triangular(cx, call, false)),
    one(1325, "upperTriangular", |cx, call| index::triangular(cx, call, true)),
    row(1330, "whereBroadcastable", (3, 3), ONE, elementwise::select),
    one(1350, "layerNormalization", normalize::layer_normalization),
    row(1400, "NonMaximumSuppression", (2, 5), (1, 4), nms::suppression),
    row(1450, "oneHot", (1, 2), ONE, index::one_hot),
    row(1455, "cumSum", (1, 2), ONE, reduce::cum_sum),
    one(1460, "clampedReLU", activation::clamped_relu),
    one(1461, "argSort", reduce::arg_sort),
    one(1465, "pooling3d", pooling::pooling_3d),
    one(1466, "globalPooling3d", pooling::global_pooling_3d),
    two(1470, "sliceBySize", slice::slice_by_size),
    one(1471, "convolution3d", convolution::convolution_3d),
];

/// The row with this number.
pub(super) fn find(tag: u32) -> Option<&'static LayerRow> {
    ROWS.binary_search_by_key(&tag, |row| row.tag).ok().and_then(|at| ROWS.get(at))
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn rows_are_sorted_by_their_numbers() {
        assert!(ROWS.windows(2).all(|pair| pair[0].tag < pair[1].tag));
    }

    #[test]
    fn the_page_on_core_ml_lists_every_layer() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/core-ml.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("### Layers of classic networks").nth(1).unwrap();
        let listed = section.split("```").nth(1).unwrap().trim_start_matches("text");
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), names);
    }
}

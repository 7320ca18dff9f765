//! The messages of the kinds of layers.

use super::Weights;
pub use super::choices::*;

/// `convolution`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Convolution {
    #[prost(uint64, tag = "1")]
    pub output_channels: u64,
    #[prost(uint64, tag = "2")]
    pub kernel_channels: u64,
    #[prost(uint64, tag = "10")]
    pub n_groups: u64,
    #[prost(uint64, repeated, tag = "20")]
    pub kernel_size: Vec<u64>,
    #[prost(uint64, repeated, tag = "30")]
    pub stride: Vec<u64>,
    #[prost(uint64, repeated, tag = "40")]
    pub dilation_factor: Vec<u64>,
    #[prost(oneof = "Padding", tags = "50, 51")]
    pub padding: Option<Padding>,
    #[prost(bool, tag = "60")]
    pub is_deconvolution: bool,
    #[prost(bool, tag = "70")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "90")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "91")]
    pub bias: Option<Weights>,
    #[prost(uint64, repeated, tag = "100")]
    pub output_shape: Vec<u64>,
}

/// `convolution3d`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Convolution3d {
    #[prost(int32, tag = "1")]
    pub output_channels: i32,
    #[prost(int32, tag = "2")]
    pub input_channels: i32,
    #[prost(int32, tag = "10")]
    pub n_groups: i32,
    #[prost(int32, tag = "20")]
    pub kernel_depth: i32,
    #[prost(int32, tag = "21")]
    pub kernel_height: i32,
    #[prost(int32, tag = "22")]
    pub kernel_width: i32,
    #[prost(int32, tag = "31")]
    pub stride_depth: i32,
    #[prost(int32, tag = "32")]
    pub stride_height: i32,
    #[prost(int32, tag = "33")]
    pub stride_width: i32,
    #[prost(int32, tag = "40")]
    pub dilation_depth: i32,
    #[prost(int32, tag = "41")]
    pub dilation_height: i32,
    #[prost(int32, tag = "42")]
    pub dilation_width: i32,
    #[prost(bool, tag = "50")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "60")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "61")]
    pub bias: Option<Weights>,
    #[prost(enumeration = "Padding3d", tag = "70")]
    pub padding_type: i32,
    #[prost(int32, tag = "80")]
    pub custom_padding_front: i32,
    #[prost(int32, tag = "81")]
    pub custom_padding_back: i32,
    #[prost(int32, tag = "82")]
    pub custom_padding_top: i32,
    #[prost(int32, tag = "83")]
    pub custom_padding_bottom: i32,
    #[prost(int32, tag = "84")]
    pub custom_padding_left: i32,
    #[prost(int32, tag = "85")]
    pub custom_padding_right: i32,
    #[prost(bool, tag = "86")]
    pub is_deconvolution: bool,
    #[prost(uint64, repeated, tag = "87")]
    pub output_shape: Vec<u64>,
}

/// `pooling`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Pooling {
    #[prost(enumeration = "PoolingType", tag = "1")]
    pub r#type: i32,
    #[prost(uint64, repeated, tag = "10")]
    pub kernel_size: Vec<u64>,
    #[prost(uint64, repeated, tag = "20")]
    pub stride: Vec<u64>,
    #[prost(oneof = "PoolingPadding", tags = "30, 31, 32")]
    pub padding: Option<PoolingPadding>,
    #[prost(bool, tag = "50")]
    pub avg_pool_exclude_padding: bool,
    #[prost(bool, tag = "60")]
    pub global_pooling: bool,
}

/// `pooling3d`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Pooling3d {
    #[prost(enumeration = "PoolingType", tag = "1")]
    pub r#type: i32,
    #[prost(int32, tag = "2")]
    pub kernel_depth: i32,
    #[prost(int32, tag = "3")]
    pub kernel_height: i32,
    #[prost(int32, tag = "4")]
    pub kernel_width: i32,
    #[prost(int32, tag = "5")]
    pub stride_depth: i32,
    #[prost(int32, tag = "6")]
    pub stride_height: i32,
    #[prost(int32, tag = "7")]
    pub stride_width: i32,
    #[prost(int32, tag = "8")]
    pub custom_padding_front: i32,
    #[prost(int32, tag = "9")]
    pub custom_padding_back: i32,
    #[prost(int32, tag = "10")]
    pub custom_padding_top: i32,
    #[prost(int32, tag = "11")]
    pub custom_padding_bottom: i32,
    #[prost(int32, tag = "12")]
    pub custom_padding_left: i32,
    #[prost(int32, tag = "13")]
    pub custom_padding_right: i32,
    #[prost(bool, tag = "14")]
    pub count_exclude_padding: bool,
    #[prost(enumeration = "Padding3d", tag = "15")]
    pub padding_type: i32,
}

/// `globalPooling3d`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct GlobalPooling3d {
    #[prost(enumeration = "PoolingType", tag = "1")]
    pub r#type: i32,
}

/// `innerProduct`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InnerProduct {
    #[prost(uint64, tag = "1")]
    pub input_channels: u64,
    #[prost(uint64, tag = "2")]
    pub output_channels: u64,
    #[prost(bool, tag = "10")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "20")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<Weights>,
    #[prost(bool, tag = "22")]
    pub int8_dynamic_quantize: bool,
}

/// `embedding`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Embedding {
    #[prost(uint64, tag = "1")]
    pub input_dim: u64,
    #[prost(uint64, tag = "2")]
    pub output_channels: u64,
    #[prost(bool, tag = "10")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "20")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<Weights>,
}

/// `embeddingND`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EmbeddingNd {
    #[prost(uint64, tag = "1")]
    pub vocab_size: u64,
    #[prost(uint64, tag = "2")]
    pub embedding_size: u64,
    #[prost(bool, tag = "3")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "20")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<Weights>,
}

/// `batchedMatmul`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchedMatMul {
    #[prost(bool, tag = "1")]
    pub transpose_a: bool,
    #[prost(bool, tag = "2")]
    pub transpose_b: bool,
    #[prost(uint64, tag = "5")]
    pub weight_matrix_first_dimension: u64,
    #[prost(uint64, tag = "6")]
    pub weight_matrix_second_dimension: u64,
    #[prost(bool, tag = "7")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "8")]
    pub weights: Option<Weights>,
    #[prost(message, optional, tag = "9")]
    pub bias: Option<Weights>,
    #[prost(bool, tag = "10")]
    pub int8_dynamic_quantize: bool,
}

/// `batchnorm`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchNorm {
    #[prost(uint64, tag = "1")]
    pub channels: u64,
    #[prost(bool, tag = "5")]
    pub compute_mean_var: bool,
    #[prost(bool, tag = "6")]
    pub instance_normalization: bool,
    #[prost(float, tag = "10")]
    pub epsilon: f32,
    #[prost(message, optional, tag = "15")]
    pub gamma: Option<Weights>,
    #[prost(message, optional, tag = "16")]
    pub beta: Option<Weights>,
    #[prost(message, optional, tag = "17")]
    pub mean: Option<Weights>,
    #[prost(message, optional, tag = "18")]
    pub variance: Option<Weights>,
}

/// `mvn`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MeanVariance {
    #[prost(bool, tag = "1")]
    pub across_channels: bool,
    #[prost(bool, tag = "2")]
    pub normalize_variance: bool,
    #[prost(float, tag = "3")]
    pub epsilon: f32,
}

/// `lrn`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Lrn {
    #[prost(float, tag = "1")]
    pub alpha: f32,
    #[prost(float, tag = "2")]
    pub beta: f32,
    #[prost(uint64, tag = "3")]
    pub local_size: u64,
    #[prost(float, tag = "4")]
    pub k: f32,
}

/// `layerNormalization`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LayerNormalization {
    #[prost(int64, repeated, tag = "1")]
    pub normalized_shape: Vec<i64>,
    #[prost(float, tag = "2")]
    pub eps: f32,
    #[prost(message, optional, tag = "3")]
    pub gamma: Option<Weights>,
    #[prost(message, optional, tag = "4")]
    pub beta: Option<Weights>,
}

/// `crop`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Crop {
    #[prost(message, optional, tag = "1")]
    pub crop_amounts: Option<BorderAmounts>,
    #[prost(uint64, repeated, tag = "5")]
    pub offset: Vec<u64>,
}

/// `padding`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PaddingLayer {
    #[prost(oneof = "PaddingKind", tags = "1, 2, 3")]
    pub kind: Option<PaddingKind>,
    #[prost(message, optional, tag = "10")]
    pub padding_amounts: Option<BorderAmounts>,
}

/// `constantPad`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConstantPadding {
    #[prost(float, tag = "1")]
    pub value: f32,
    #[prost(uint64, repeated, tag = "2")]
    pub pad_amounts: Vec<u64>,
    #[prost(bool, tag = "3")]
    pub pad_to_given_output_size_mode: bool,
}

/// `upsample`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Upsample {
    #[prost(uint64, repeated, tag = "1")]
    pub scaling_factor: Vec<u64>,
    #[prost(enumeration = "Interpolation", tag = "5")]
    pub mode: i32,
    #[prost(enumeration = "LinearUpsample", tag = "6")]
    pub linear_upsample_mode: i32,
    #[prost(float, repeated, tag = "7")]
    pub fractional_scaling_factor: Vec<f32>,
}

/// `resizeBilinear`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResizeBilinear {
    #[prost(uint64, repeated, tag = "1")]
    pub target_size: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub mode: Option<SamplingMode>,
}

/// `cropResize`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CropResize {
    #[prost(uint64, repeated, tag = "1")]
    pub target_size: Vec<u64>,
    #[prost(bool, tag = "2")]
    pub normalized_coordinates: bool,
    #[prost(message, optional, tag = "3")]
    pub mode: Option<SamplingMode>,
    #[prost(message, optional, tag = "4")]
    pub box_indices_mode: Option<BoxMode>,
    #[prost(float, tag = "5")]
    pub spatial_scale: f32,
}

/// How positions are sampled from an interval.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SamplingMode {
    #[prost(enumeration = "SamplingMethod", tag = "1")]
    pub sampling_method: i32,
}

/// What the coordinates of a box are.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct BoxMode {
    #[prost(enumeration = "BoxCoordinates", tag = "1")]
    pub box_mode: i32,
}

/// `unary`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Unary {
    #[prost(enumeration = "UnaryFunction", tag = "1")]
    pub r#type: i32,
    #[prost(float, tag = "2")]
    pub alpha: f32,
    #[prost(float, tag = "3")]
    pub epsilon: f32,
    #[prost(float, tag = "4")]
    pub shift: f32,
    #[prost(float, tag = "5")]
    pub scale: f32,
}

/// `scale`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scale {
    #[prost(uint64, repeated, tag = "1")]
    pub shape_scale: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub scale: Option<Weights>,
    #[prost(bool, tag = "3")]
    pub has_bias: bool,
    #[prost(uint64, repeated, tag = "4")]
    pub shape_bias: Vec<u64>,
    #[prost(message, optional, tag = "5")]
    pub bias: Option<Weights>,
}

/// `bias`, `loadConstant` and `loadConstantND`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Constant {
    #[prost(uint64, repeated, tag = "1")]
    pub shape: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub data: Option<Weights>,
}

/// `dot`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Dot {
    #[prost(bool, tag = "1")]
    pub cosine_similarity: bool,
}

/// `greaterThan`, `greaterEqual`, `lessThan` and `lessEqual`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Comparison {
    #[prost(float, tag = "2")]
    pub alpha: f32,
}

/// `reduce`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Reduce {
    #[prost(enumeration = "ReduceOperation", tag = "1")]
    pub mode: i32,
    #[prost(float, tag = "2")]
    pub epsilon: f32,
    #[prost(enumeration = "ReduceAxis", tag = "3")]
    pub axis: i32,
}

/// `reduceL1` and the other reductions over axes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReduceAxes {
    #[prost(int64, repeated, tag = "1")]
    pub axes: Vec<i64>,
    #[prost(bool, tag = "2")]
    pub keep_dims: bool,
    #[prost(bool, tag = "3")]
    pub reduce_all: bool,
}

/// `reshape`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reshape {
    #[prost(int64, repeated, tag = "1")]
    pub target_shape: Vec<i64>,
    #[prost(enumeration = "Order", tag = "2")]
    pub mode: i32,
}

/// `flatten`, and others whose only field is a choice.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Choice {
    #[prost(int32, tag = "1")]
    pub mode: i32,
}

/// `permute`, `transpose`, `tile`, `broadcastToStatic`, and others that are lengths or positions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sizes {
    #[prost(uint64, repeated, tag = "1")]
    pub sizes: Vec<u64>,
}

/// `reshapeStatic`, `rankPreservingReshape` and `expandDims`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ints {
    #[prost(int64, repeated, tag = "1")]
    pub values: Vec<i64>,
}

/// `squeeze`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Squeeze {
    #[prost(int64, repeated, tag = "1")]
    pub axes: Vec<i64>,
    #[prost(bool, tag = "2")]
    pub squeeze_all: bool,
}

/// `concat`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Concat {
    #[prost(bool, tag = "100")]
    pub sequence_concat: bool,
}

/// `concatND`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ConcatNd {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(bool, tag = "2")]
    pub interleave: bool,
}

/// `split` and `sequenceRepeat`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Count {
    #[prost(uint64, tag = "1")]
    pub count: u64,
}

/// `splitND`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SplitNd {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(uint64, tag = "2")]
    pub num_splits: u64,
    #[prost(uint64, repeated, tag = "3")]
    pub split_sizes: Vec<u64>,
}

/// `reorganizeData`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ReorganizeData {
    #[prost(enumeration = "Reorganization", tag = "1")]
    pub mode: i32,
    #[prost(uint64, tag = "2")]
    pub block_size: u64,
}

/// `slice`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Slice {
    #[prost(int64, tag = "1")]
    pub start_index: i64,
    #[prost(int64, tag = "2")]
    pub end_index: i64,
    #[prost(uint64, tag = "3")]
    pub stride: u64,
    #[prost(enumeration = "SliceAxis", tag = "4")]
    pub axis: i32,
}

/// `sliceStatic` and `sliceDynamic`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SliceNd {
    #[prost(int64, repeated, tag = "1")]
    pub begin_ids: Vec<i64>,
    #[prost(bool, repeated, tag = "2")]
    pub begin_masks: Vec<bool>,
    #[prost(int64, repeated, tag = "3")]
    pub end_ids: Vec<i64>,
    #[prost(bool, repeated, tag = "4")]
    pub end_masks: Vec<bool>,
    #[prost(int64, repeated, tag = "5")]
    pub strides: Vec<i64>,
    #[prost(bool, repeated, tag = "6")]
    pub squeeze_masks: Vec<bool>,
}

/// `sliceBySize`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SliceBySize {
    #[prost(int64, tag = "2")]
    pub size: i64,
    #[prost(int64, tag = "3")]
    pub axis: i64,
}

/// `slidingWindows`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SlidingWindows {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(uint64, tag = "2")]
    pub window_size: u64,
    #[prost(uint64, tag = "3")]
    pub step: u64,
}

/// `softmaxND`, `gather`, `gatherAlongAxis`, `stack`, `flattenTo2D`, and others with one axis;
/// the diagonal of `lowerTriangular` and `upperTriangular`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Axis {
    #[prost(int64, tag = "1")]
    pub axis: i64,
}

/// `scatter` and `scatterAlongAxis`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Scatter {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(enumeration = "ScatterMode", tag = "2")]
    pub mode: i32,
}

/// `scatterND`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ScatterNd {
    #[prost(enumeration = "ScatterMode", tag = "1")]
    pub mode: i32,
}

/// `topK`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct TopK {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(uint64, tag = "2")]
    pub k: u64,
    #[prost(bool, tag = "3")]
    pub use_bottom_k: bool,
}

/// `argMax`, `argMin` and `argSort`: the axis and a choice.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ArgAxis {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(bool, tag = "2")]
    pub flag: bool,
}

/// `oneHot`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct OneHot {
    #[prost(uint64, tag = "1")]
    pub one_hot_vector_size: u64,
    #[prost(int64, tag = "2")]
    pub axis: i64,
    #[prost(float, tag = "3")]
    pub on_value: f32,
    #[prost(float, tag = "4")]
    pub off_value: f32,
}

/// `cumSum`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct CumSum {
    #[prost(int64, tag = "1")]
    pub axis: i64,
    #[prost(bool, tag = "2")]
    pub exclude_final_sum: bool,
    #[prost(bool, tag = "3")]
    pub reverse: bool,
}

/// `reverse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reverse {
    #[prost(bool, repeated, tag = "1")]
    pub reverse_dim: Vec<bool>,
}

/// `reverseSeq`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ReverseSequence {
    #[prost(int64, tag = "1")]
    pub batch_axis: i64,
    #[prost(int64, tag = "2")]
    pub sequence_axis: i64,
}

/// `matrixBandPart`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct MatrixBandPart {
    #[prost(int64, tag = "1")]
    pub num_lower: i64,
    #[prost(int64, tag = "2")]
    pub num_upper: i64,
}

/// `fillLike`, `fillStatic` and `fillDynamic`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Fill {
    #[prost(float, tag = "1")]
    pub value: f32,
    #[prost(uint64, repeated, tag = "2")]
    pub target_shape: Vec<u64>,
}

/// `rangeStatic` and `rangeDynamic`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Range {
    #[prost(float, tag = "1")]
    pub end_value: f32,
    #[prost(float, tag = "2")]
    pub start_value: f32,
    #[prost(float, tag = "3")]
    pub step_size_value: f32,
}

/// `randomNormal…` and `randomUniform…`: mean and deviation, or bounds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RandomPair {
    #[prost(int64, tag = "1")]
    pub seed: i64,
    #[prost(float, tag = "2")]
    pub first: f32,
    #[prost(float, tag = "3")]
    pub second: f32,
    #[prost(uint64, repeated, tag = "4")]
    pub output_shape: Vec<u64>,
}

/// `randomBernoulli…`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RandomBernoulli {
    #[prost(int64, tag = "1")]
    pub seed: i64,
    #[prost(float, tag = "2")]
    pub prob: f32,
    #[prost(uint64, repeated, tag = "3")]
    pub output_shape: Vec<u64>,
}

/// `categoricalDistribution`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Categorical {
    #[prost(int64, tag = "1")]
    pub seed: i64,
    #[prost(int64, tag = "2")]
    pub num_samples: i64,
    #[prost(bool, tag = "3")]
    pub is_logits: bool,
    #[prost(float, tag = "4")]
    pub eps: f32,
    #[prost(float, tag = "5")]
    pub temperature: f32,
}

/// `NonMaximumSuppression`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct NonMaximumSuppression {
    #[prost(float, tag = "1")]
    pub iou_threshold: f32,
    #[prost(float, tag = "2")]
    pub score_threshold: f32,
    #[prost(uint64, tag = "3")]
    pub max_boxes: u64,
    #[prost(bool, tag = "4")]
    pub per_class_suppression: bool,
}

/// `simpleRecurrent`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleRecurrent {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, optional, tag = "10")]
    pub activation: Option<super::Activation>,
    #[prost(bool, tag = "15")]
    pub sequence_output: bool,
    #[prost(bool, tag = "20")]
    pub has_bias_vector: bool,
    #[prost(message, optional, tag = "30")]
    pub weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "31")]
    pub recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "32")]
    pub bias_vector: Option<Weights>,
    #[prost(bool, tag = "100")]
    pub reverse_input: bool,
}

/// `gru`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Gru {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, repeated, tag = "10")]
    pub activations: Vec<super::Activation>,
    #[prost(bool, tag = "15")]
    pub sequence_output: bool,
    #[prost(bool, tag = "20")]
    pub has_bias_vectors: bool,
    #[prost(message, optional, tag = "30")]
    pub update_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "31")]
    pub reset_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "32")]
    pub output_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "50")]
    pub update_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "51")]
    pub reset_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "52")]
    pub output_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "70")]
    pub update_gate_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "71")]
    pub reset_gate_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "72")]
    pub output_gate_bias_vector: Option<Weights>,
    #[prost(bool, tag = "100")]
    pub reverse_input: bool,
}

/// What LSTMs share.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct LstmParams {
    #[prost(bool, tag = "10")]
    pub sequence_output: bool,
    #[prost(bool, tag = "20")]
    pub has_bias_vectors: bool,
    #[prost(bool, tag = "30")]
    pub forget_bias: bool,
    #[prost(bool, tag = "40")]
    pub has_peephole_vectors: bool,
    #[prost(bool, tag = "50")]
    pub coupled_input_and_forget_gate: bool,
    #[prost(float, tag = "60")]
    pub cell_clip_threshold: f32,
}

/// The constants of an LSTM.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LstmWeights {
    #[prost(message, optional, tag = "1")]
    pub input_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "2")]
    pub forget_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "3")]
    pub block_input_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "4")]
    pub output_gate_weight_matrix: Option<Weights>,
    #[prost(message, optional, tag = "20")]
    pub input_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "21")]
    pub forget_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "22")]
    pub block_input_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "23")]
    pub output_gate_recursion_matrix: Option<Weights>,
    #[prost(message, optional, tag = "40")]
    pub input_gate_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "41")]
    pub forget_gate_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "42")]
    pub block_input_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "43")]
    pub output_gate_bias_vector: Option<Weights>,
    #[prost(message, optional, tag = "60")]
    pub input_gate_peephole_vector: Option<Weights>,
    #[prost(message, optional, tag = "61")]
    pub forget_gate_peephole_vector: Option<Weights>,
    #[prost(message, optional, tag = "62")]
    pub output_gate_peephole_vector: Option<Weights>,
}

/// `uniDirectionalLSTM`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UniDirectionalLstm {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, repeated, tag = "10")]
    pub activations: Vec<super::Activation>,
    #[prost(message, optional, tag = "15")]
    pub params: Option<LstmParams>,
    #[prost(message, optional, tag = "20")]
    pub weight_params: Option<LstmWeights>,
    #[prost(bool, tag = "100")]
    pub reverse_input: bool,
}

/// `biDirectionalLSTM`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BiDirectionalLstm {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, repeated, tag = "10")]
    pub activations_forward: Vec<super::Activation>,
    #[prost(message, repeated, tag = "11")]
    pub activations_backward: Vec<super::Activation>,
    #[prost(message, optional, tag = "15")]
    pub params: Option<LstmParams>,
    #[prost(message, repeated, tag = "20")]
    pub weight_params: Vec<LstmWeights>,
}

/// `branch`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Branch {
    #[prost(message, optional, tag = "1")]
    pub if_branch: Option<super::Network>,
    #[prost(message, optional, tag = "2")]
    pub else_branch: Option<super::Network>,
}

/// `loop`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Loop {
    #[prost(uint64, tag = "1")]
    pub max_loop_iterations: u64,
    #[prost(string, tag = "2")]
    pub condition_var: String,
    #[prost(message, optional, tag = "3")]
    pub condition_network: Option<super::Network>,
    #[prost(message, optional, tag = "4")]
    pub body_network: Option<super::Network>,
}

/// `custom`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Custom {
    #[prost(string, tag = "10")]
    pub class_name: String,
}

/// Borders of height and width, in that order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BorderAmounts {
    #[prost(message, repeated, tag = "10")]
    pub border_amounts: Vec<EdgeSizes>,
}

/// Amounts at the begin and the end of an axis.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct EdgeSizes {
    #[prost(uint64, tag = "1")]
    pub start_edge_size: u64,
    #[prost(uint64, tag = "2")]
    pub end_edge_size: u64,
}

/// Padding as stated.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValidPadding {
    #[prost(message, optional, tag = "1")]
    pub padding_amounts: Option<BorderAmounts>,
}

/// Padding that keeps the length, divided by the step.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SamePadding {
    #[prost(enumeration = "SameMode", tag = "1")]
    pub asymmetry_mode: i32,
}

/// Padding of which the last application includes the last pixel.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompletePadding {
    #[prost(uint64, repeated, tag = "10")]
    pub padding_amounts: Vec<u64>,
}

/// A number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Value {
    #[prost(float, tag = "1")]
    pub value: f32,
}

//! The messages of layers on arrays, of recurrent layers, and of those that control others.

use super::NetworkWeightsProto;
use super::choices::*;

/// `reduce`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ReduceLayerProto {
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
pub struct ReshapeLayerProto {
    #[prost(int64, repeated, tag = "1")]
    pub target_shape: Vec<i64>,
    #[prost(enumeration = "OrderProto", tag = "2")]
    pub mode: i32,
}

/// `flatten`, and others whose only field is a choice.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ChoiceLayerProto {
    #[prost(int32, tag = "1")]
    pub mode: i32,
}

/// `permute`, `transpose`, `tile`, `broadcastToStatic`, and others that are lengths or positions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SizesLayerProto {
    #[prost(uint64, repeated, tag = "1")]
    pub sizes: Vec<u64>,
}

/// `reshapeStatic`, `rankPreservingReshape` and `expandDims`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct IntsLayerProto {
    #[prost(int64, repeated, tag = "1")]
    pub values: Vec<i64>,
}

/// `squeeze`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SqueezeLayerProto {
    #[prost(int64, repeated, tag = "1")]
    pub axes: Vec<i64>,
    #[prost(bool, tag = "2")]
    pub squeeze_all: bool,
}

/// `concat`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ConcatLayerProto {
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
pub struct CountLayerProto {
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
    #[prost(enumeration = "ReorganizationProto", tag = "1")]
    pub mode: i32,
    #[prost(uint64, tag = "2")]
    pub block_size: u64,
}

/// `slice`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SliceLayerProto {
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
pub struct AxisLayerProto {
    #[prost(int64, tag = "1")]
    pub axis: i64,
}

/// `scatter` and `scatterAlongAxis`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ScatterLayerProto {
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
pub struct TopKLayerProto {
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
pub struct OneHotLayerProto {
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
pub struct ReverseLayerProto {
    #[prost(bool, repeated, tag = "1")]
    pub reverse_dim: Vec<bool>,
}

/// `reverseSeq`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ReverseSequenceLayerProto {
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
pub struct FillLayerProto {
    #[prost(float, tag = "1")]
    pub value: f32,
    #[prost(uint64, repeated, tag = "2")]
    pub target_shape: Vec<u64>,
}

/// `rangeStatic` and `rangeDynamic`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct RangeLayerProto {
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
pub struct CategoricalLayerProto {
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
    pub activation: Option<super::NetworkActivationProto>,
    #[prost(bool, tag = "15")]
    pub sequence_output: bool,
    #[prost(bool, tag = "20")]
    pub has_bias_vector: bool,
    #[prost(message, optional, tag = "30")]
    pub weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "31")]
    pub recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "32")]
    pub bias_vector: Option<NetworkWeightsProto>,
    #[prost(bool, tag = "100")]
    pub reverse_input: bool,
}

/// `gru`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GruLayerProto {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, repeated, tag = "10")]
    pub activations: Vec<super::NetworkActivationProto>,
    #[prost(bool, tag = "15")]
    pub sequence_output: bool,
    #[prost(bool, tag = "20")]
    pub has_bias_vectors: bool,
    #[prost(message, optional, tag = "30")]
    pub update_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "31")]
    pub reset_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "32")]
    pub output_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "50")]
    pub update_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "51")]
    pub reset_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "52")]
    pub output_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "70")]
    pub update_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "71")]
    pub reset_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "72")]
    pub output_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(bool, tag = "100")]
    pub reverse_input: bool,
}

/// Parameters that all LSTMs share.
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
    pub input_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "2")]
    pub forget_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "3")]
    pub block_input_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "4")]
    pub output_gate_weight_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "20")]
    pub input_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "21")]
    pub forget_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "22")]
    pub block_input_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "23")]
    pub output_gate_recursion_matrix: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "40")]
    pub input_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "41")]
    pub forget_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "42")]
    pub block_input_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "43")]
    pub output_gate_bias_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "60")]
    pub input_gate_peephole_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "61")]
    pub forget_gate_peephole_vector: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "62")]
    pub output_gate_peephole_vector: Option<NetworkWeightsProto>,
}

/// `uniDirectionalLSTM`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UniDirectionalLstm {
    #[prost(uint64, tag = "1")]
    pub input_vector_size: u64,
    #[prost(uint64, tag = "2")]
    pub output_vector_size: u64,
    #[prost(message, repeated, tag = "10")]
    pub activations: Vec<super::NetworkActivationProto>,
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
    pub activations_forward: Vec<super::NetworkActivationProto>,
    #[prost(message, repeated, tag = "11")]
    pub activations_backward: Vec<super::NetworkActivationProto>,
    #[prost(message, optional, tag = "15")]
    pub params: Option<LstmParams>,
    #[prost(message, repeated, tag = "20")]
    pub weight_params: Vec<LstmWeights>,
}

/// `branch`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BranchLayerProto {
    #[prost(message, optional, tag = "1")]
    pub if_branch: Option<super::NetworkProto>,
    #[prost(message, optional, tag = "2")]
    pub else_branch: Option<super::NetworkProto>,
}

/// `loop`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LoopLayerProto {
    #[prost(uint64, tag = "1")]
    pub max_loop_iterations: u64,
    #[prost(string, tag = "2")]
    pub condition_var: String,
    #[prost(message, optional, tag = "3")]
    pub condition_network: Option<super::NetworkProto>,
    #[prost(message, optional, tag = "4")]
    pub body_network: Option<super::NetworkProto>,
}

/// `custom`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CustomLayerProto {
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
pub struct ValueLayerProto {
    #[prost(float, tag = "1")]
    pub value: f32,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum PaddingProto {
    #[prost(message, tag = "50")]
    Valid(ValidPadding),
    #[prost(message, tag = "51")]
    Same(SamePadding),
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum PoolingPadding {
    #[prost(message, tag = "30")]
    Valid(ValidPadding),
    #[prost(message, tag = "31")]
    Same(SamePadding),
    #[prost(message, tag = "32")]
    IncludeLastPixel(CompletePadding),
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum PaddingKind {
    #[prost(message, tag = "1")]
    Constant(ValueLayerProto),
    #[prost(message, tag = "2")]
    Reflection(super::super::EmptyProto),
    #[prost(message, tag = "3")]
    Replication(super::super::EmptyProto),
}

//! The messages of the kinds of layers: those of images and constants here, the others in [`super::arrays`].

use super::NetworkWeightsProto;
pub use super::arrays::*;
pub use super::choices::*;

/// `convolution`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConvolutionLayerProto {
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
    #[prost(oneof = "PaddingProto", tags = "50, 51")]
    pub padding: Option<PaddingProto>,
    #[prost(bool, tag = "60")]
    pub is_deconvolution: bool,
    #[prost(bool, tag = "70")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "90")]
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "91")]
    pub bias: Option<NetworkWeightsProto>,
    #[prost(uint64, repeated, tag = "100")]
    pub output_shape: Vec<u64>,
}

/// `convolution3d`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Convolution3dLayerProto {
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
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "61")]
    pub bias: Option<NetworkWeightsProto>,
    #[prost(enumeration = "Padding3dProto", tag = "70")]
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
pub struct PoolingLayerProto {
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
pub struct Pooling3dLayerProto {
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
    #[prost(enumeration = "Padding3dProto", tag = "15")]
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
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<NetworkWeightsProto>,
    #[prost(bool, tag = "22")]
    pub int8_dynamic_quantize: bool,
}

/// `embedding`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EmbeddingLayerProto {
    #[prost(uint64, tag = "1")]
    pub input_dim: u64,
    #[prost(uint64, tag = "2")]
    pub output_channels: u64,
    #[prost(bool, tag = "10")]
    pub has_bias: bool,
    #[prost(message, optional, tag = "20")]
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<NetworkWeightsProto>,
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
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "21")]
    pub bias: Option<NetworkWeightsProto>,
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
    pub weights: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "9")]
    pub bias: Option<NetworkWeightsProto>,
    #[prost(bool, tag = "10")]
    pub int8_dynamic_quantize: bool,
}

/// `batchnorm`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchNormLayerProto {
    #[prost(uint64, tag = "1")]
    pub channels: u64,
    #[prost(bool, tag = "5")]
    pub compute_mean_var: bool,
    #[prost(bool, tag = "6")]
    pub instance_normalization: bool,
    #[prost(float, tag = "10")]
    pub epsilon: f32,
    #[prost(message, optional, tag = "15")]
    pub gamma: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "16")]
    pub beta: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "17")]
    pub mean: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "18")]
    pub variance: Option<NetworkWeightsProto>,
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
pub struct LrnLayerProto {
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
pub struct LayerNormalizationLayerProto {
    #[prost(int64, repeated, tag = "1")]
    pub normalized_shape: Vec<i64>,
    #[prost(float, tag = "2")]
    pub eps: f32,
    #[prost(message, optional, tag = "3")]
    pub gamma: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "4")]
    pub beta: Option<NetworkWeightsProto>,
}

/// `crop`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CropLayerProto {
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
pub struct UpsampleLayerProto {
    #[prost(uint64, repeated, tag = "1")]
    pub scaling_factor: Vec<u64>,
    #[prost(enumeration = "InterpolationProto", tag = "5")]
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

/// Meaning of the coordinates of a box.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct BoxMode {
    #[prost(enumeration = "BoxCoordinates", tag = "1")]
    pub box_mode: i32,
}

/// `unary`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct UnaryLayerProto {
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
pub struct ScaleLayerProto {
    #[prost(uint64, repeated, tag = "1")]
    pub shape_scale: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub scale: Option<NetworkWeightsProto>,
    #[prost(bool, tag = "3")]
    pub has_bias: bool,
    #[prost(uint64, repeated, tag = "4")]
    pub shape_bias: Vec<u64>,
    #[prost(message, optional, tag = "5")]
    pub bias: Option<NetworkWeightsProto>,
}

/// `bias`, `loadConstant` and `loadConstantND`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConstantLayerProto {
    #[prost(uint64, repeated, tag = "1")]
    pub shape: Vec<u64>,
    #[prost(message, optional, tag = "2")]
    pub data: Option<NetworkWeightsProto>,
}

/// `dot`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct DotLayerProto {
    #[prost(bool, tag = "1")]
    pub cosine_similarity: bool,
}

/// `greaterThan`, `greaterEqual`, `lessThan` and `lessEqual`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ComparisonLayerProto {
    #[prost(float, tag = "2")]
    pub alpha: f32,
}

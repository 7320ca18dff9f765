//! The messages of the simple models that pipelines hold.
//!
//! Field numbers are those of coremltools 9.0.
#![allow(missing_docs, reason = "fields have the names of the schema, which says what they mean")]

use super::network::{Int64Vector, StringVector};

#[derive(Clone, PartialEq, prost::Message)]
pub struct ScalerProto {
    #[prost(double, repeated, tag = "1")]
    pub shift_value: Vec<f64>,
    #[prost(double, repeated, tag = "2")]
    pub scale_value: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NormalizerProto {
    #[prost(enumeration = "NormProto", tag = "1")]
    pub norm_type: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum NormProto {
    Max = 0,
    L1 = 1,
    L2 = 2,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ImputerProto {
    #[prost(oneof = "ImputedProto", tags = "1, 2, 4, 5")]
    pub imputed: Option<ImputedProto>,
    #[prost(oneof = "ReplacedProto", tags = "11, 12")]
    pub replaced: Option<ReplacedProto>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ImputedProto {
    #[prost(double, tag = "1")]
    Double(f64),
    #[prost(int64, tag = "2")]
    Int(i64),
    #[prost(message, tag = "4")]
    Doubles(DoubleVector),
    #[prost(message, tag = "5")]
    Ints(Int64Vector),
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum ReplacedProto {
    #[prost(double, tag = "11")]
    Double(f64),
    #[prost(int64, tag = "12")]
    Int(i64),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DoubleVector {
    #[prost(double, repeated, tag = "1")]
    pub vector: Vec<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct OneHotEncoderProto {
    #[prost(oneof = "CategoriesProto", tags = "1, 2")]
    pub categories: Option<CategoriesProto>,
    #[prost(bool, tag = "10")]
    pub output_sparse: bool,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CategoriesProto {
    #[prost(message, tag = "1")]
    Strings(StringVector),
    #[prost(message, tag = "2")]
    Ints(Int64Vector),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureVectorizerProto {
    #[prost(message, repeated, tag = "1")]
    pub input_list: Vec<InputColumn>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InputColumn {
    #[prost(string, tag = "1")]
    pub input_column: String,
    #[prost(uint64, tag = "2")]
    pub input_dimensions: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayFeatureExtractorProto {
    #[prost(uint64, repeated, tag = "1")]
    pub extract_index: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct GlmProto {
    #[prost(message, repeated, tag = "1")]
    pub weights: Vec<DoubleVector>,
    #[prost(double, repeated, tag = "2")]
    pub offset: Vec<f64>,
    #[prost(int32, tag = "3")]
    pub post_evaluation_transform: i32,
    #[prost(int32, tag = "4")]
    pub class_encoding: i32,
    #[prost(oneof = "super::network::ClassLabels", tags = "100, 101")]
    pub class_labels: Option<super::network::ClassLabels>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TreeEnsemble {
    #[prost(message, optional, tag = "1")]
    pub tree_ensemble: Option<TreesProto>,
    #[prost(enumeration = "TreeTransform", tag = "2")]
    pub post_evaluation_transform: i32,
    #[prost(oneof = "super::network::ClassLabels", tags = "100, 101")]
    pub class_labels: Option<super::network::ClassLabels>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum TreeTransform {
    None = 0,
    Softmax = 1,
    Logistic = 2,
    SoftmaxWithZeroReference = 3,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TreesProto {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<TreeNodeProto>,
    #[prost(uint64, tag = "2")]
    pub num_prediction_dimensions: u64,
    #[prost(double, repeated, tag = "3")]
    pub base_prediction_value: Vec<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TreeNodeProto {
    #[prost(uint64, tag = "1")]
    pub tree_id: u64,
    #[prost(uint64, tag = "2")]
    pub node_id: u64,
    #[prost(int32, tag = "3")]
    pub node_behavior: i32,
    #[prost(uint64, tag = "10")]
    pub branch_feature_index: u64,
    #[prost(double, tag = "11")]
    pub branch_feature_value: f64,
    #[prost(uint64, tag = "12")]
    pub true_child_node_id: u64,
    #[prost(uint64, tag = "13")]
    pub false_child_node_id: u64,
    #[prost(bool, tag = "14")]
    pub missing_value_tracks_true_child: bool,
    #[prost(message, repeated, tag = "20")]
    pub evaluation_info: Vec<EvaluationInfo>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct EvaluationInfo {
    #[prost(uint64, tag = "1")]
    pub evaluation_index: u64,
    #[prost(double, tag = "2")]
    pub evaluation_value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SuppressionModel {
    #[prost(message, optional, tag = "1")]
    pub pick_top: Option<PickTop>,
    #[prost(double, tag = "110")]
    pub iou_threshold: f64,
    #[prost(double, tag = "111")]
    pub confidence_threshold: f64,
    #[prost(string, tag = "200")]
    pub confidence_input: String,
    #[prost(string, tag = "201")]
    pub coordinates_input: String,
    #[prost(string, tag = "202")]
    pub iou_threshold_input: String,
    #[prost(string, tag = "203")]
    pub confidence_threshold_input: String,
    #[prost(string, tag = "210")]
    pub confidence_output: String,
    #[prost(string, tag = "211")]
    pub coordinates_output: String,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PickTop {
    #[prost(bool, tag = "1")]
    pub per_class: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CategoricalMapping {
    #[prost(oneof = "MappingProto", tags = "1, 2")]
    pub mapping: Option<MappingProto>,
    #[prost(string, tag = "101")]
    pub str_value: String,
    #[prost(int64, tag = "102")]
    pub int64_value: i64,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum MappingProto {
    #[prost(message, tag = "1")]
    ToInt(StringToInt64Map),
    #[prost(message, tag = "2")]
    ToString(Int64ToStringMap),
}

#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct StringToInt64Map {
    #[prost(btree_map = "string, int64", tag = "1")]
    pub map: galatea_tensor::OrderedMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct Int64ToStringMap {
    #[prost(btree_map = "int64, string", tag = "1")]
    pub map: galatea_tensor::OrderedMap<i64, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SupportVectorRegressor {
    #[prost(message, optional, tag = "1")]
    pub kernel: Option<KernelProto>,
    #[prost(oneof = "SupportVectors", tags = "2, 3")]
    pub support_vectors: Option<SupportVectors>,
    #[prost(message, optional, tag = "4")]
    pub coefficients: Option<DoubleVector>,
    #[prost(double, tag = "5")]
    pub rho: f64,
}

/// The first two fields of the vectors have other numbers than those of a regressor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SupportVectorClassifier {
    #[prost(message, optional, tag = "1")]
    pub kernel: Option<KernelProto>,
    #[prost(int32, repeated, tag = "2")]
    pub vectors_of_labels: Vec<i32>,
    #[prost(message, optional, tag = "3")]
    pub sparse: Option<SparseVectors>,
    #[prost(message, optional, tag = "4")]
    pub dense: Option<DenseVectors>,
    #[prost(message, repeated, tag = "5")]
    pub coefficients: Vec<DoubleVector>,
    #[prost(double, repeated, tag = "6")]
    pub rho: Vec<f64>,
    #[prost(double, repeated, tag = "7")]
    pub prob_a: Vec<f64>,
    #[prost(double, repeated, tag = "8")]
    pub prob_b: Vec<f64>,
    #[prost(oneof = "super::network::ClassLabels", tags = "100, 101")]
    pub class_labels: Option<super::network::ClassLabels>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SupportVectors {
    #[prost(message, tag = "2")]
    Sparse(SparseVectors),
    #[prost(message, tag = "3")]
    Dense(DenseVectors),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseVectors {
    #[prost(message, repeated, tag = "1")]
    pub vectors: Vec<SparseVector>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseVector {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<SparseNode>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SparseNode {
    #[prost(int32, tag = "1")]
    pub index: i32,
    #[prost(double, tag = "2")]
    pub value: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DenseVectors {
    #[prost(message, repeated, tag = "1")]
    pub vectors: Vec<DoubleVector>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct KernelProto {
    #[prost(oneof = "KernelKindProto", tags = "1, 2, 3, 4")]
    pub kind: Option<KernelKindProto>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum KernelKindProto {
    #[prost(message, tag = "1")]
    Linear(super::EmptyProto),
    #[prost(message, tag = "2")]
    Rbf(RbfKernel),
    #[prost(message, tag = "3")]
    Poly(PolyKernel),
    #[prost(message, tag = "4")]
    Sigmoid(SigmoidKernel),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct RbfKernel {
    #[prost(double, tag = "1")]
    pub gamma: f64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct PolyKernel {
    #[prost(int32, tag = "1")]
    pub degree: i32,
    #[prost(double, tag = "2")]
    pub c: f64,
    #[prost(double, tag = "3")]
    pub gamma: f64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SigmoidKernel {
    #[prost(double, tag = "1")]
    pub gamma: f64,
    #[prost(double, tag = "2")]
    pub c: f64,
}

//! The messages of `CoreMlModelProto.proto` and `FeatureTypes.proto` that a Core ML model is read from and
//! written as.
//!
//! Field numbers are those of coremltools 9.0. Model kinds that are not read are kept as bytes, so
//! that an error can name them.

pub mod mil;
pub mod network;
pub mod simple;

use galatea_tensor::OrderedMap;

use bytes::Bytes;

/// A model: the file `model.mlmodel` of a package, or a whole `.mlmodel`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CoreMlModelProto {
    /// Version of the format.
    #[prost(int32, tag = "1")]
    pub specification_version: i32,
    /// The inputs and outputs.
    #[prost(message, optional, tag = "2")]
    pub description: Option<ModelDescription>,
    /// The kind of the model.
    #[prost(
        oneof = "ModelKind",
        tags = "200, 201, 202, 300, 301, 302, 303, 304, 400, 401, 402, 403, 404, 500, 501, 502, \
                555, 556, 560, 600, 601, 602, 603, 604, 606, 607, 609, 610, 900, 2000, 2001, 2002, \
                2003, 2004, 2005, 2006, 3000"
    )]
    pub kind: Option<ModelKind>,
}

/// Kind of a model.
#[derive(Clone, PartialEq, prost::Oneof)]
#[allow(missing_docs, reason = "the names are those of the schema")]
pub enum ModelKind {
    #[prost(bytes = "bytes", tag = "200")]
    PipelineClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "201")]
    PipelineRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "202")]
    Pipeline(Bytes),
    #[prost(bytes = "bytes", tag = "300")]
    GlmRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "301")]
    SupportVectorRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "302")]
    TreeEnsembleRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "303")]
    NeuralNetworkRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "304")]
    BayesianProbitRegressor(Bytes),
    #[prost(bytes = "bytes", tag = "400")]
    GlmClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "401")]
    SupportVectorClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "402")]
    TreeEnsembleClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "403")]
    NeuralNetworkClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "404")]
    KNearestNeighborsClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "500")]
    NeuralNetwork(Bytes),
    #[prost(bytes = "bytes", tag = "501")]
    ItemSimilarityRecommender(Bytes),
    #[prost(message, tag = "502")]
    MlProgram(mil::MilProgramProto),
    #[prost(bytes = "bytes", tag = "555")]
    CustomModel(Bytes),
    #[prost(bytes = "bytes", tag = "556")]
    LinkedModel(Bytes),
    #[prost(bytes = "bytes", tag = "560")]
    ClassConfidenceThresholding(Bytes),
    #[prost(bytes = "bytes", tag = "600")]
    OneHotEncoder(Bytes),
    #[prost(bytes = "bytes", tag = "601")]
    Imputer(Bytes),
    #[prost(bytes = "bytes", tag = "602")]
    FeatureVectorizer(Bytes),
    #[prost(bytes = "bytes", tag = "603")]
    DictVectorizer(Bytes),
    #[prost(bytes = "bytes", tag = "604")]
    Scaler(Bytes),
    #[prost(bytes = "bytes", tag = "606")]
    CategoricalMapping(Bytes),
    #[prost(bytes = "bytes", tag = "607")]
    Normalizer(Bytes),
    #[prost(bytes = "bytes", tag = "609")]
    ArrayFeatureExtractor(Bytes),
    #[prost(bytes = "bytes", tag = "610")]
    NonMaximumSuppression(Bytes),
    #[prost(bytes = "bytes", tag = "900")]
    Identity(Bytes),
    #[prost(bytes = "bytes", tag = "2000")]
    TextClassifier(Bytes),
    #[prost(bytes = "bytes", tag = "2001")]
    WordTagger(Bytes),
    #[prost(bytes = "bytes", tag = "2002")]
    VisionFeaturePrint(Bytes),
    #[prost(bytes = "bytes", tag = "2003")]
    SoundAnalysisPreprocessing(Bytes),
    #[prost(bytes = "bytes", tag = "2004")]
    Gazetteer(Bytes),
    #[prost(bytes = "bytes", tag = "2005")]
    WordEmbedding(Bytes),
    #[prost(bytes = "bytes", tag = "2006")]
    AudioFeaturePrint(Bytes),
    #[prost(bytes = "bytes", tag = "3000")]
    SerializedModel(Bytes),
}

impl ModelKind {
    /// The name of the field in the schema.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::PipelineClassifier(_) => "pipelineClassifier",
            Self::PipelineRegressor(_) => "pipelineRegressor",
            Self::Pipeline(_) => "pipeline",
            Self::GlmRegressor(_) => "glmRegressor",
            Self::SupportVectorRegressor(_) => "supportVectorRegressor",
            Self::TreeEnsembleRegressor(_) => "treeEnsembleRegressor",
            Self::NeuralNetworkRegressor(_) => "neuralNetworkRegressor",
            Self::BayesianProbitRegressor(_) => "bayesianProbitRegressor",
            Self::GlmClassifier(_) => "glmClassifier",
            Self::SupportVectorClassifier(_) => "supportVectorClassifier",
            Self::TreeEnsembleClassifier(_) => "treeEnsembleClassifier",
            Self::NeuralNetworkClassifier(_) => "neuralNetworkClassifier",
            Self::KNearestNeighborsClassifier(_) => "kNearestNeighborsClassifier",
            Self::NeuralNetwork(_) => "neuralNetwork",
            Self::ItemSimilarityRecommender(_) => "itemSimilarityRecommender",
            Self::MlProgram(_) => "mlProgram",
            Self::CustomModel(_) => "customModel",
            Self::LinkedModel(_) => "linkedModel",
            Self::ClassConfidenceThresholding(_) => "classConfidenceThresholding",
            Self::OneHotEncoder(_) => "oneHotEncoder",
            Self::Imputer(_) => "imputer",
            Self::FeatureVectorizer(_) => "featureVectorizer",
            Self::DictVectorizer(_) => "dictVectorizer",
            Self::Scaler(_) => "scaler",
            Self::CategoricalMapping(_) => "categoricalMapping",
            Self::Normalizer(_) => "normalizer",
            Self::ArrayFeatureExtractor(_) => "arrayFeatureExtractor",
            Self::NonMaximumSuppression(_) => "nonMaximumSuppression",
            Self::Identity(_) => "identity",
            Self::TextClassifier(_) => "textClassifier",
            Self::WordTagger(_) => "wordTagger",
            Self::VisionFeaturePrint(_) => "visionFeaturePrint",
            Self::SoundAnalysisPreprocessing(_) => "soundAnalysisPreprocessing",
            Self::Gazetteer(_) => "gazetteer",
            Self::WordEmbedding(_) => "wordEmbedding",
            Self::AudioFeaturePrint(_) => "audioFeaturePrint",
            Self::SerializedModel(_) => "serializedModel",
        }
    }
}

/// Inputs and outputs of a model.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelDescription {
    /// Inputs; empty where there are `functions`.
    #[prost(message, repeated, tag = "1")]
    pub input: Vec<FeatureDescription>,
    /// Outputs.
    #[prost(message, repeated, tag = "10")]
    pub output: Vec<FeatureDescription>,
    /// The output that is a classifier's label.
    #[prost(string, tag = "11")]
    pub predicted_feature_name: String,
    /// The output with the probabilities of all labels.
    #[prost(string, tag = "12")]
    pub predicted_probabilities_name: String,
    /// States.
    #[prost(message, repeated, tag = "13")]
    pub state: Vec<FeatureDescription>,
    /// Functions of a model that has several.
    #[prost(message, repeated, tag = "20")]
    pub functions: Vec<FunctionDescription>,
    /// The one that is run where none is named.
    #[prost(string, tag = "21")]
    pub default_function_name: String,
    /// About the model.
    #[prost(message, optional, tag = "100")]
    pub metadata: Option<CoreMlMetadataProto>,
}

/// Inputs and outputs of a function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionDescription {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Inputs.
    #[prost(message, repeated, tag = "2")]
    pub input: Vec<FeatureDescription>,
    /// Outputs.
    #[prost(message, repeated, tag = "3")]
    pub output: Vec<FeatureDescription>,
    /// The output that is a classifier's label.
    #[prost(string, tag = "4")]
    pub predicted_feature_name: String,
    /// The output with the probabilities of all labels.
    #[prost(string, tag = "5")]
    pub predicted_probabilities_name: String,
    /// States.
    #[prost(message, repeated, tag = "6")]
    pub state: Vec<FeatureDescription>,
}

/// About a model.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct CoreMlMetadataProto {
    /// Its purpose.
    #[prost(string, tag = "1")]
    pub short_description: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version_string: String,
    /// Its author.
    #[prost(string, tag = "3")]
    pub author: String,
    /// Its licence.
    #[prost(string, tag = "4")]
    pub license: String,
    /// Free text by key.
    #[prost(btree_map = "string, string", tag = "100")]
    pub user_defined: OrderedMap<String, String>,
}

/// An input, an output or a state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureDescription {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its description.
    #[prost(string, tag = "2")]
    pub short_description: String,
    /// Its type.
    #[prost(message, optional, tag = "3")]
    pub r#type: Option<CoreMlFeatureTypeProto>,
}

/// The type of a feature.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CoreMlFeatureTypeProto {
    /// Which one.
    #[prost(oneof = "CoreMlFeatureKindProto", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub kind: Option<CoreMlFeatureKindProto>,
    /// True if it may be left out.
    #[prost(bool, tag = "1000")]
    pub is_optional: bool,
}

/// The kinds of features.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CoreMlFeatureKindProto {
    /// A 64-bit integer.
    #[prost(message, tag = "1")]
    Int64(EmptyProto),
    /// A double.
    #[prost(message, tag = "2")]
    Double(EmptyProto),
    /// A text.
    #[prost(message, tag = "3")]
    String(EmptyProto),
    /// A picture.
    #[prost(message, tag = "4")]
    Image(ImageFeatureType),
    /// An array.
    #[prost(message, tag = "5")]
    MultiArray(ArrayFeatureType),
    /// Numbers by key.
    #[prost(message, tag = "6")]
    Dictionary(DictionaryFeatureType),
    /// A list.
    #[prost(message, tag = "7")]
    Sequence(EmptyProto),
    /// A state.
    #[prost(message, tag = "8")]
    State(StateFeatureType),
}

/// A message without fields of interest.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct EmptyProto {}

/// An array.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayFeatureType {
    /// Its default shape.
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
    /// An [`CoreMlArrayDataTypeProto`].
    #[prost(enumeration = "CoreMlArrayDataTypeProto", tag = "2")]
    pub data_type: i32,
    /// Other shapes that it may have.
    #[prost(oneof = "ShapeFlexibility", tags = "21, 31")]
    pub flexibility: Option<ShapeFlexibility>,
    /// The value of all elements where the feature is left out.
    #[prost(oneof = "DefaultValue", tags = "41, 51, 61")]
    pub default_value: Option<DefaultValue>,
}

/// Element types of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CoreMlArrayDataTypeProto {
    /// None.
    Invalid = 0,
    /// FP16.
    Float16 = 65552,
    /// FP32.
    Float32 = 65568,
    /// FP64.
    Double = 65600,
    /// INT8.
    Int8 = 131_080,
    /// INT32.
    Int32 = 131_104,
}

/// Shapes that an array may have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ShapeFlexibility {
    /// One of a list.
    #[prost(message, tag = "21")]
    Enumerated(EnumeratedShapes),
    /// Lengths within bounds.
    #[prost(message, tag = "31")]
    Range(ShapeRange),
}

/// The value of all elements of an array that is left out.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum DefaultValue {
    /// An integer.
    #[prost(int32, tag = "41")]
    Int(i32),
    /// A float.
    #[prost(float, tag = "51")]
    Float(f32),
    /// A double.
    #[prost(double, tag = "61")]
    Double(f64),
}

/// A list of shapes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EnumeratedShapes {
    /// The shapes.
    #[prost(message, repeated, tag = "1")]
    pub shapes: Vec<CoreMlShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CoreMlShapeProto {
    /// Its lengths.
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
}

/// Bounds of all lengths.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ShapeRange {
    /// By axis.
    #[prost(message, repeated, tag = "1")]
    pub size_ranges: Vec<SizeRange>,
}

/// Bounds of a length.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct SizeRange {
    /// The least.
    #[prost(uint64, tag = "1")]
    pub lower_bound: u64,
    /// The most; negative for none.
    #[prost(int64, tag = "2")]
    pub upper_bound: i64,
}

/// A picture.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageFeatureType {
    /// Its width.
    #[prost(int64, tag = "1")]
    pub width: i64,
    /// Its height.
    #[prost(int64, tag = "2")]
    pub height: i64,
    /// A [`ColorSpace`].
    #[prost(enumeration = "ColorSpace", tag = "3")]
    pub color_space: i32,
    /// Other sizes that it may have.
    #[prost(oneof = "SizeFlexibility", tags = "21, 31")]
    pub flexibility: Option<SizeFlexibility>,
}

/// Colours of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ColorSpace {
    /// None.
    Invalid = 0,
    /// One channel of 8 bits.
    Grayscale = 10,
    /// Red, green, blue.
    Rgb = 20,
    /// Blue, green, red.
    Bgr = 30,
    /// One channel of FP16.
    GrayscaleFloat16 = 40,
}

/// Sizes that a picture may have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SizeFlexibility {
    /// One of a list.
    #[prost(message, tag = "21")]
    Enumerated(EnumeratedImageSizes),
    /// Within bounds.
    #[prost(message, tag = "31")]
    Range(ImageSizeRange),
}

/// A list of sizes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EnumeratedImageSizes {
    /// The sizes.
    #[prost(message, repeated, tag = "1")]
    pub sizes: Vec<ImageSize>,
}

/// The size of a picture.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ImageSize {
    /// Its width.
    #[prost(uint64, tag = "1")]
    pub width: u64,
    /// Its height.
    #[prost(uint64, tag = "2")]
    pub height: u64,
}

/// Bounds of a picture's size.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ImageSizeRange {
    /// Range of the width.
    #[prost(message, optional, tag = "1")]
    pub width_range: Option<SizeRange>,
    /// Range of the height.
    #[prost(message, optional, tag = "2")]
    pub height_range: Option<SizeRange>,
}

/// Numbers by key.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct DictionaryFeatureType {
    /// The type of the keys.
    #[prost(oneof = "KeyType", tags = "1, 2")]
    pub key: Option<KeyType>,
}

/// Types of keys.
#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub enum KeyType {
    /// 64-bit integers.
    #[prost(message, tag = "1")]
    Int64(EmptyProto),
    /// Texts.
    #[prost(message, tag = "2")]
    String(EmptyProto),
}

/// A state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StateFeatureType {
    /// Type of its value.
    #[prost(message, optional, tag = "1")]
    pub array_type: Option<ArrayFeatureType>,
}

/// Models that are run one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CoreMlPipelineProto {
    /// The models.
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<CoreMlModelProto>,
    /// Their names.
    #[prost(string, repeated, tag = "2")]
    pub names: Vec<String>,
}

/// A pipeline that ends in a classifier, or in a regressor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PipelineOf {
    /// The pipeline.
    #[prost(message, optional, tag = "1")]
    pub pipeline: Option<CoreMlPipelineProto>,
}

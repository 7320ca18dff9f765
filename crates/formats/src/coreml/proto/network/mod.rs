//! The messages of `NeuralNetwork.proto` that a classic network is read from.
//!
//! Field numbers are those of coremltools 9.0. A layer's own message stays bytes until the layer is
//! lowered, so that a layer is one row of one table. Layers whose messages are alike on the wire
//! share one here.
#![allow(missing_docs, reason = "fields have the names of the schema, which says what they mean")]

mod arrays;
mod choices;
pub mod layers;

use bytes::{Buf, BufMut, Bytes};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};

/// A network: plain, classifier or regressor, which only differ in the labels of a classifier.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkProto {
    #[prost(message, repeated, tag = "1")]
    pub layers: Vec<NetworkLayerProto>,
    #[prost(message, repeated, tag = "2")]
    pub preprocessing: Vec<NetworkPreprocessingProto>,
    #[prost(enumeration = "ArrayMapping", tag = "5")]
    pub array_input_shape_mapping: i32,
    #[prost(enumeration = "ImageMapping", tag = "6")]
    pub image_input_shape_mapping: i32,
    #[prost(oneof = "ClassLabels", tags = "100, 101")]
    pub class_labels: Option<ClassLabels>,
    #[prost(string, tag = "200")]
    pub label_probability_layer_name: String,
}

/// How arrays become blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ArrayMapping {
    Rank5 = 0,
    Exact = 1,
}

/// How images become blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ImageMapping {
    Rank5 = 0,
    Rank4 = 1,
}

/// Labels of a classifier.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ClassLabels {
    #[prost(message, tag = "100")]
    Strings(StringVector),
    #[prost(message, tag = "101")]
    Ints(Int64Vector),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct StringVector {
    #[prost(string, repeated, tag = "1")]
    pub vector: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Int64Vector {
    #[prost(int64, repeated, tag = "1")]
    pub vector: Vec<i64>,
}

/// Preprocessing of an image before the first layer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkPreprocessingProto {
    #[prost(string, tag = "1")]
    pub feature_name: String,
    #[prost(oneof = "NetworkPreprocessorProto", tags = "10, 11")]
    pub preprocessor: Option<NetworkPreprocessorProto>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum NetworkPreprocessorProto {
    #[prost(message, tag = "10")]
    Scaler(ImageScaler),
    #[prost(message, tag = "11")]
    MeanImage(MeanImage),
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ImageScaler {
    #[prost(float, tag = "10")]
    pub channel_scale: f32,
    #[prost(float, tag = "20")]
    pub blue_bias: f32,
    #[prost(float, tag = "21")]
    pub green_bias: f32,
    #[prost(float, tag = "22")]
    pub red_bias: f32,
    #[prost(float, tag = "30")]
    pub gray_bias: f32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct MeanImage {
    #[prost(float, repeated, tag = "1")]
    pub mean_image: Vec<f32>,
}

/// A layer: names, and the message of its kind as bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkLayerProto {
    pub name: String,
    pub input: Vec<String>,
    pub output: Vec<String>,
    /// The number of the field that the layer's message is, and its bytes.
    pub kind: Option<(u32, Bytes)>,
}

/// The first number of a field that is a layer's message.
const FIRST_KIND: u32 = 100;

impl Message for NetworkLayerProto {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        encoding::string::encode(1, &self.name, buf);
        encoding::string::encode_repeated(2, &self.input, buf);
        encoding::string::encode_repeated(3, &self.output, buf);
        if let Some((tag, bytes)) = &self.kind {
            encoding::bytes::encode(*tag, bytes, buf);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => encoding::string::merge(wire_type, &mut self.name, buf, ctx),
            2 => encoding::string::merge_repeated(wire_type, &mut self.input, buf, ctx),
            3 => encoding::string::merge_repeated(wire_type, &mut self.output, buf, ctx),
            FIRST_KIND.. => {
                let mut bytes = Bytes::new();
                encoding::bytes::merge(wire_type, &mut bytes, buf, ctx)?;
                self.kind = Some((tag, bytes));
                Ok(())
            }
            _ => encoding::skip_field(wire_type, tag, buf, ctx),
        }
    }

    fn encoded_len(&self) -> usize {
        let kind = |(tag, bytes): &(u32, Bytes)| encoding::bytes::encoded_len(*tag, bytes);
        encoding::string::encoded_len(1, &self.name)
            + encoding::string::encoded_len_repeated(2, &self.input)
            + encoding::string::encoded_len_repeated(3, &self.output)
            + self.kind.as_ref().map_or(0, kind)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Constants of a layer, in one of several forms.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkWeightsProto {
    #[prost(float, repeated, tag = "1")]
    pub float_value: Vec<f32>,
    #[prost(bytes = "bytes", tag = "2")]
    pub float16_value: Bytes,
    #[prost(bytes = "bytes", tag = "30")]
    pub raw_value: Bytes,
    #[prost(bytes = "bytes", tag = "31")]
    pub int8_raw_value: Bytes,
    #[prost(message, optional, tag = "40")]
    pub quantization: Option<NetworkQuantizationProto>,
}

/// Meaning of the codes of quantised constants.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkQuantizationProto {
    #[prost(uint64, tag = "1")]
    pub number_of_bits: u64,
    #[prost(oneof = "QuantizationKind", tags = "101, 102")]
    pub kind: Option<QuantizationKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum QuantizationKind {
    #[prost(message, tag = "101")]
    Linear(LinearQuantization),
    #[prost(message, tag = "102")]
    LookupTable(LookupTable),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LinearQuantization {
    #[prost(float, repeated, tag = "1")]
    pub scale: Vec<f32>,
    #[prost(float, repeated, tag = "2")]
    pub bias: Vec<f32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct LookupTable {
    #[prost(float, repeated, tag = "1")]
    pub float_value: Vec<f32>,
}

/// An activation, as a layer of its own or inside a recurrent one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NetworkActivationProto {
    #[prost(
        oneof = "NetworkActivationKindProto",
        tags = "5, 10, 15, 20, 25, 30, 31, 40, 41, 50, 60, 70, 71"
    )]
    pub kind: Option<NetworkActivationKindProto>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum NetworkActivationKindProto {
    #[prost(message, tag = "5")]
    Linear(AlphaBeta),
    #[prost(message, tag = "10")]
    Relu(super::EmptyProto),
    #[prost(message, tag = "15")]
    LeakyRelu(AlphaBeta),
    #[prost(message, tag = "20")]
    ThresholdedRelu(AlphaBeta),
    #[prost(message, tag = "25")]
    Prelu(WeightedActivation),
    #[prost(message, tag = "30")]
    Tanh(super::EmptyProto),
    #[prost(message, tag = "31")]
    ScaledTanh(AlphaBeta),
    #[prost(message, tag = "40")]
    Sigmoid(super::EmptyProto),
    #[prost(message, tag = "41")]
    SigmoidHard(AlphaBeta),
    #[prost(message, tag = "50")]
    Elu(AlphaBeta),
    #[prost(message, tag = "60")]
    Softsign(super::EmptyProto),
    #[prost(message, tag = "70")]
    Softplus(super::EmptyProto),
    #[prost(message, tag = "71")]
    ParametricSoftplus(WeightedActivation),
}

/// One or two numbers: of activations, `add`, `multiply`, `equal`, `clip`, `clampedReLU`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct AlphaBeta {
    #[prost(float, tag = "1")]
    pub alpha: f32,
    #[prost(float, tag = "2")]
    pub beta: f32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct WeightedActivation {
    #[prost(message, optional, tag = "1")]
    pub alpha: Option<NetworkWeightsProto>,
    #[prost(message, optional, tag = "2")]
    pub beta: Option<NetworkWeightsProto>,
}

//! The messages that a stored graph is made of. They are private to one version of the program:
//! whoever keeps such bytes keeps the version beside them.

use prost::Oneof;

/// Everything but the elements of large constants.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredModel {
    #[prost(message, optional, tag = "1")]
    pub(super) graph: Option<StoredGraphProto>,
    #[prost(message, repeated, tag = "2")]
    pub(super) inputs: Vec<StoredPort>,
    #[prost(message, repeated, tag = "3")]
    pub(super) outputs: Vec<StoredPort>,
    #[prost(message, repeated, tag = "4")]
    pub(super) constants: Vec<StoredConstant>,
}

/// An input or output of the model.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredPort {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) fact: Option<StoredFact>,
}

/// Stored fact of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredFact {
    /// Position in the table of kinds.
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    #[prost(string, tag = "2")]
    pub(super) dtype: String,
    #[prost(message, optional, tag = "3")]
    pub(super) shape: Option<StoredDims>,
    #[prost(message, optional, tag = "4")]
    pub(super) elements: Option<StoredDims>,
}

/// Lengths.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredDims {
    #[prost(message, repeated, tag = "1")]
    pub(super) dims: Vec<StoredDim>,
}

/// A length; nothing where it is unknown.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredDim {
    #[prost(oneof = "DimKind", tags = "1, 2")]
    pub(super) kind: Option<DimKind>,
}

/// A length that is known, as a number or by name.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum DimKind {
    #[prost(uint64, tag = "1")]
    Known(u64),
    #[prost(string, tag = "2")]
    Symbol(String),
}

/// A constant: strings, a few bytes, or a place in a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredConstant {
    #[prost(string, tag = "1")]
    pub(super) dtype: String,
    #[prost(uint64, repeated, tag = "2")]
    pub(super) dims: Vec<u64>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(super) strings: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) bytes: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub(super) place: Option<StoredPlace>,
}

/// A place in a file.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct StoredPlace {
    #[prost(uint32, tag = "1")]
    pub(super) file: u32,
    #[prost(uint64, tag = "2")]
    pub(super) offset: u64,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub(super) struct StoredGraphProto {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(btree_map = "string, int64", tag = "2")]
    pub(super) opsets: galatea_tensor::OrderedMap<String, i64>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) inputs: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) outputs: Vec<u32>,
    #[prost(message, repeated, tag = "5")]
    pub(super) values: Vec<StoredValue>,
    #[prost(message, repeated, tag = "6")]
    pub(super) nodes: Vec<StoredNode>,
}

/// A value of a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredValue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) declared: Option<StoredFact>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) constant: Option<u32>,
}

/// A node. In the lists of values 0 is an absent one and every other number one more than the
/// position of the value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredNode {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) domain: String,
    #[prost(string, tag = "3")]
    pub(super) op_type: String,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) inputs: Vec<u32>,
    #[prost(uint32, repeated, tag = "5")]
    pub(super) outputs: Vec<u32>,
    #[prost(int64, optional, tag = "6")]
    pub(super) opset: Option<i64>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<StoredAttribute>,
    #[prost(message, repeated, tag = "8")]
    pub(super) bodies: Vec<StoredBody>,
}

/// A subgraph of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredBody {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) graph: Option<StoredGraphProto>,
    /// Positions of the captured values among the inputs of the node.
    #[prost(uint32, repeated, tag = "3")]
    pub(super) captures: Vec<u32>,
}

/// An attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredAttribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "AttributeKind", tags = "2, 3, 4, 5, 6, 7, 8, 9")]
    pub(super) value: Option<AttributeKind>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AttributeKind {
    #[prost(float, tag = "2")]
    Float(f32),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(bytes = "vec", tag = "4")]
    Text(Vec<u8>),
    /// Position among the constants.
    #[prost(uint32, tag = "5")]
    Tensor(u32),
    #[prost(message, tag = "6")]
    Type(StoredFact),
    #[prost(message, tag = "7")]
    Floats(StoredFloats),
    #[prost(message, tag = "8")]
    Ints(StoredInts),
    #[prost(message, tag = "9")]
    Texts(StoredTexts),
}

/// Floats.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredFloats {
    #[prost(float, repeated, tag = "1")]
    pub(super) all: Vec<f32>,
}

/// Integers.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredInts {
    #[prost(int64, repeated, tag = "1")]
    pub(super) all: Vec<i64>,
}

/// Byte strings.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredTexts {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) all: Vec<Vec<u8>>,
}

//! The messages of `onnx.proto` that a model is read from.
//!
//! Field numbers are those of the ONNX 1.23 schema. Fields that say nothing about the computation
//! (documentation, training, device hints) are not declared: decoding skips them. Byte fields share
//! the memory of the decoded buffer.

use bytes::Bytes;

/// A model file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// Version of the format itself.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The program that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The model's name space.
    #[prost(string, tag = "4")]
    pub domain: String,
    /// The model's own version.
    #[prost(int64, tag = "5")]
    pub model_version: i64,
    /// The computation.
    #[prost(message, optional, boxed, tag = "7")]
    pub graph: Option<Box<GraphProto>>,
    /// Versions of the operator domains in use.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Free text by key.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Operators that the model defines itself.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// The version of one operator domain.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetIdProto {
    /// The domain; empty (or `ai.onnx`) for the default one.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A key with its value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A computation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// The nodes, in topological order by contract.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The graph's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs; in old files also those that are initializers.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Types and shapes of other values.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
    /// Constants that are mostly zero.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
}

/// One application of an operator.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// Names of the values it reads; empty for an absent one.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the values it writes; empty for one that nobody wants.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The node's name; may be empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator's domain.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which of several functions with this name.
    #[prost(string, tag = "8")]
    pub overload: String,
}

/// `AttributeProto.AttributeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// Not said; early files leave it to the field that is set.
    Undefined = 0,
    /// One float.
    Float = 1,
    /// One integer.
    Int = 2,
    /// One byte string.
    String = 3,
    /// One tensor.
    Tensor = 4,
    /// One subgraph.
    Graph = 5,
    /// Floats.
    Floats = 6,
    /// Integers.
    Ints = 7,
    /// Byte strings.
    Strings = 8,
    /// Tensors.
    Tensors = 9,
    /// Subgraphs.
    Graphs = 10,
    /// One sparse tensor.
    SparseTensor = 11,
    /// Sparse tensors.
    SparseTensors = 12,
    /// One type.
    TypeProto = 13,
    /// Types.
    TypeProtos = 14,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeProto {
    /// The attribute's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value of kind `FLOAT`.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// The value of kind `INT`.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// The value of kind `STRING`.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// The value of kind `TENSOR`.
    #[prost(message, optional, boxed, tag = "5")]
    pub t: Option<Box<TensorProto>>,
    /// The value of kind `GRAPH`.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<GraphProto>>,
    /// The value of kind `FLOATS`.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// The value of kind `INTS`.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// The value of kind `STRINGS`.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// The value of kind `TYPE_PROTO`.
    #[prost(message, optional, boxed, tag = "14")]
    pub tp: Option<Box<TypeProto>>,
    /// The kind.
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
    /// In a function: the attribute of the calling node that gives the value.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// The value of kind `SPARSE_TENSOR`.
    #[prost(message, optional, boxed, tag = "22")]
    pub sparse_tensor: Option<Box<SparseTensorProto>>,
}

/// Where the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DataLocation {
    /// In the message.
    Default = 0,
    /// In another file.
    External = 1,
}

/// A constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// Lengths of the axes.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The element type: a number of `TensorProto.DataType`.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements of `FLOAT`.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of the integer types up to 32 bits, of `BOOL`, and the bits of 16-bit floats.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements of `STRING`.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements of `INT64`.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The value's name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements of any fixed-size type, little-endian.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Elements of `DOUBLE`.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements of `UINT32` and `UINT64`.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// `location`, `offset` and `length` of elements in another file.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// Where the elements are.
    #[prost(enumeration = "DataLocation", tag = "14")]
    pub data_location: i32,
}

/// A constant that is mostly zero.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseTensorProto {
    /// The elements that are not zero, a vector; its name is the name of the constant.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// Their positions: linear, or one row of coordinates each.
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// Lengths of the axes.
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
}

/// A value's name and type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// Which kind of type.
    #[prost(oneof = "type_proto::Value", tags = "1, 4, 5, 8, 9")]
    pub value: Option<type_proto::Value>,
}

/// Parts of [`TypeProto`].
pub mod type_proto {
    /// The kinds of types. Sparse tensors are read as the dense ones that they stand for.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// A tensor.
        #[prost(message, tag = "1")]
        Tensor(Tensor),
        /// A sequence.
        #[prost(message, tag = "4")]
        Sequence(ElementType),
        /// A map.
        #[prost(message, tag = "5")]
        Map(MapType),
        /// A sparse tensor, whose type has the fields of a tensor's.
        #[prost(message, tag = "8")]
        Sparse(Tensor),
        /// An optional value.
        #[prost(message, tag = "9")]
        Optional(ElementType),
    }

    /// The type of a sequence or of an optional value.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ElementType {
        /// Type of its elements.
        #[prost(message, optional, boxed, tag = "1")]
        pub elem_type: Option<Box<super::TypeProto>>,
    }

    /// The type of a map.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct MapType {
        /// The type of the keys: a number of `TensorProto.DataType`.
        #[prost(int32, tag = "1")]
        pub key_type: i32,
        /// The type of the values.
        #[prost(message, optional, boxed, tag = "2")]
        pub value_type: Option<Box<super::TypeProto>>,
    }

    /// The type of a tensor.
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Tensor {
        /// The element type: a number of `TensorProto.DataType`.
        #[prost(int32, tag = "1")]
        pub elem_type: i32,
        /// The shape, if the rank is known.
        #[prost(message, optional, tag = "2")]
        pub shape: Option<super::TensorShapeProto>,
    }
}

/// A shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// The axes.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// The length of an axis.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dimension {
    /// The length, if anything is known about it.
    #[prost(oneof = "dimension::Value", tags = "1, 2")]
    pub value: Option<dimension::Value>,
}

/// Parts of [`Dimension`].
pub mod dimension {
    /// A length as a number or a name.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// The length.
        #[prost(int64, tag = "1")]
        DimValue(i64),
        /// A name that stands for one length throughout a run.
        #[prost(string, tag = "2")]
        DimParam(String),
    }
}

/// An operator that the model defines by a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionProto {
    /// The operator's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of the inputs inside the function.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of the outputs inside the function.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The body.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Versions of the operator domains that the body uses.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The operator's domain.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Types and shapes of values of the body.
    #[prost(message, repeated, tag = "12")]
    pub value_info: Vec<ValueInfoProto>,
    /// Which of several functions with this name.
    #[prost(string, tag = "13")]
    pub overload: String,
}

/// A sequence of values, as in files of test data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SequenceProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The kind of the items: a number of `SequenceProto.DataType`, of which 1 is a tensor.
    #[prost(int32, tag = "2")]
    pub elem_type: i32,
    /// Items that are tensors.
    #[prost(message, repeated, tag = "3")]
    pub tensor_values: Vec<TensorProto>,
}

/// An optional value, as in files of test data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OptionalProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The kind of the value: a number of `OptionalProto.DataType`; 0 where there is none, 1 for a
    /// tensor, 3 for a sequence.
    #[prost(int32, tag = "2")]
    pub elem_type: i32,
    /// A value that is a tensor.
    #[prost(message, optional, tag = "3")]
    pub tensor_value: Option<TensorProto>,
    /// A value that is a sequence.
    #[prost(message, optional, tag = "5")]
    pub sequence_value: Option<SequenceProto>,
}

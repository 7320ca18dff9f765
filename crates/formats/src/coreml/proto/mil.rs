//! The messages of `MIL.proto`: programs of the Model Intermediate Language.
//!
//! Field numbers are those of coremltools 9.0.

use galatea_tensor::OrderedMap;

use bytes::Bytes;

/// Element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are those of the schema")]
pub enum MilDataTypeProto {
    Unused = 0,
    Bool = 1,
    String = 2,
    Float16 = 10,
    Float32 = 11,
    Float64 = 12,
    Bfloat16 = 13,
    Int8 = 21,
    Int16 = 22,
    Int32 = 23,
    Int64 = 24,
    Int4 = 25,
    Uint8 = 31,
    Uint16 = 32,
    Uint32 = 33,
    Uint64 = 34,
    Uint4 = 35,
    Uint2 = 36,
    Uint1 = 37,
    Uint6 = 38,
    Uint3 = 39,
    Float8e4m3fn = 40,
    Float8e5m2 = 41,
}

/// A program: functions by name.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct MilProgramProto {
    /// Version of the language; 1.
    #[prost(int64, tag = "1")]
    pub version: i64,
    /// The functions.
    #[prost(btree_map = "string, message", tag = "2")]
    pub functions: OrderedMap<String, MilFunctionProto>,
    /// About the program.
    #[prost(string, tag = "3")]
    pub doc_string: String,
    /// The producer's attributes of the program.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: OrderedMap<String, MilValueProto>,
}

/// A function: a block for each set of operators that it was written in.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct MilFunctionProto {
    /// Its inputs, states included.
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    /// The set of operators that holds.
    #[prost(string, tag = "2")]
    pub opset: String,
    /// Blocks by set of operators.
    #[prost(btree_map = "string, message", tag = "3")]
    pub block_specializations: OrderedMap<String, MilBlockProto>,
    /// The producer's attributes of the function.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: OrderedMap<String, MilValueProto>,
}

/// Operations in order.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct MilBlockProto {
    /// Values that the operation around the block gives.
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    /// Names of the values that the block gives.
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    /// The operations.
    #[prost(message, repeated, tag = "3")]
    pub operations: Vec<MilOperationProto>,
    /// The producer's attributes of the block.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: OrderedMap<String, MilValueProto>,
}

/// Bindings of an input: several where an operator takes any number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilArgumentProto {
    /// The bindings.
    #[prost(message, repeated, tag = "1")]
    pub arguments: Vec<MilBindingProto>,
}

/// A name or a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilBindingProto {
    /// Which one.
    #[prost(oneof = "BindingKind", tags = "1, 2")]
    pub binding: Option<BindingKind>,
}

/// Value to which an input is bound.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum BindingKind {
    /// A value of the program.
    #[prost(string, tag = "1")]
    Name(String),
    /// A constant.
    #[prost(message, tag = "2")]
    Value(MilValueProto),
}

/// One application of an operator.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct MilOperationProto {
    /// The operator.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// The bindings of its inputs.
    #[prost(btree_map = "string, message", tag = "2")]
    pub inputs: OrderedMap<String, MilArgumentProto>,
    /// Its outputs.
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<NamedValueType>,
    /// Blocks that it runs.
    #[prost(message, repeated, tag = "4")]
    pub blocks: Vec<MilBlockProto>,
    /// Its attributes.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attributes: OrderedMap<String, MilValueProto>,
}

/// A value's name and type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedValueType {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<MilValueTypeProto>,
}

/// The type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilValueTypeProto {
    /// Which one.
    #[prost(oneof = "TypeKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<TypeKind>,
}

/// Kinds of types.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeKind {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(MilTensorTypeProto),
    /// A list of values of one type.
    #[prost(message, boxed, tag = "2")]
    List(Box<ListType>),
    /// Values of any types.
    #[prost(message, tag = "3")]
    Tuple(TupleType),
    /// Values by keys.
    #[prost(message, boxed, tag = "4")]
    Dictionary(Box<DictionaryType>),
    /// Memory that outlives a run.
    #[prost(message, boxed, tag = "5")]
    State(Box<StateType>),
}

/// The type of a tensor.
#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "crate::map_fields")]
pub struct MilTensorTypeProto {
    /// A [`MilDataTypeProto`].
    #[prost(enumeration = "MilDataTypeProto", tag = "1")]
    pub data_type: i32,
    /// Number of axes; negative for any.
    #[prost(int64, tag = "2")]
    pub rank: i64,
    /// Their lengths.
    #[prost(message, repeated, tag = "3")]
    pub dimensions: Vec<MilDimensionProto>,
    /// The producer's attributes of the type.
    #[prost(btree_map = "string, message", tag = "4")]
    pub attributes: OrderedMap<String, MilValueProto>,
}

/// A length.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilDimensionProto {
    /// Which one.
    #[prost(oneof = "DimensionKind", tags = "1, 2")]
    pub kind: Option<DimensionKind>,
}

/// Kinds of lengths.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionKind {
    /// A number.
    #[prost(message, tag = "1")]
    Constant(ConstantDimension),
    /// Not known before the run.
    #[prost(message, tag = "2")]
    Unknown(UnknownDimension),
}

/// A length that is known.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConstantDimension {
    /// The number.
    #[prost(uint64, tag = "1")]
    pub size: u64,
}

/// A length that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UnknownDimension {
    /// True if it stands for any number of axes.
    #[prost(bool, tag = "1")]
    pub variadic: bool,
}

/// The type of a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListType {
    /// Type of its items.
    #[prost(message, optional, boxed, tag = "1")]
    pub r#type: Option<Box<MilValueTypeProto>>,
    /// Their number.
    #[prost(message, optional, tag = "2")]
    pub length: Option<MilDimensionProto>,
}

/// The type of a tuple.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TupleType {
    /// Types of its items.
    #[prost(message, repeated, tag = "1")]
    pub types: Vec<MilValueTypeProto>,
}

/// The type of a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DictionaryType {
    /// Type of its keys.
    #[prost(message, optional, boxed, tag = "1")]
    pub key_type: Option<Box<MilValueTypeProto>>,
    /// Type of its values.
    #[prost(message, optional, boxed, tag = "2")]
    pub value_type: Option<Box<MilValueTypeProto>>,
}

/// The type of a state.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StateType {
    /// Type of its value.
    #[prost(message, optional, boxed, tag = "1")]
    pub wrapped_type: Option<Box<MilValueTypeProto>>,
}

/// A constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilValueProto {
    /// About it.
    #[prost(string, tag = "1")]
    pub doc_string: String,
    /// Its type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<MilValueTypeProto>,
    /// Where it is.
    #[prost(oneof = "MilValueKindProto", tags = "3, 5")]
    pub value: Option<MilValueKindProto>,
}

/// Where a constant is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum MilValueKindProto {
    /// Here.
    #[prost(message, tag = "3")]
    Immediate(ImmediateValue),
    /// In the file of weights.
    #[prost(message, tag = "5")]
    BlobFile(BlobFileValue),
}

/// A constant that is here.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImmediateValue {
    /// Which one.
    #[prost(oneof = "ImmediateKind", tags = "1, 2, 3, 4")]
    pub kind: Option<ImmediateKind>,
}

/// Kinds of constants.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ImmediateKind {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorValue),
    /// A tuple.
    #[prost(message, tag = "2")]
    Tuple(MilValuesProto),
    /// A list.
    #[prost(message, tag = "3")]
    List(MilValuesProto),
    /// A dictionary.
    #[prost(message, tag = "4")]
    Dictionary(DictionaryValue),
}

/// A constant in the file of weights.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BlobFileValue {
    /// The file; `@model_path` is the folder of the model.
    #[prost(string, tag = "1")]
    pub file_name: String,
    /// Where the description of the bytes starts.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

/// Elements of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorValue {
    /// In the form that their type has.
    #[prost(oneof = "MilElementsProto", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub value: Option<MilElementsProto>,
}

/// Forms of elements.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum MilElementsProto {
    /// FP32.
    #[prost(message, tag = "1")]
    Floats(RepeatedFloats),
    /// INT32 and 16-bit integers.
    #[prost(message, tag = "2")]
    Ints(RepeatedInts),
    /// BOOL.
    #[prost(message, tag = "3")]
    Bools(RepeatedBools),
    /// Texts.
    #[prost(message, tag = "4")]
    Strings(RepeatedStrings),
    /// 64-bit integers.
    #[prost(message, tag = "5")]
    LongInts(RepeatedLongInts),
    /// FP64.
    #[prost(message, tag = "6")]
    Doubles(RepeatedDoubles),
    /// The others, as they lie in memory.
    #[prost(message, tag = "7")]
    Bytes(RepeatedBytes),
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedFloats {
    /// In row-major order.
    #[prost(float, repeated, tag = "1")]
    pub values: Vec<f32>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedInts {
    /// In row-major order.
    #[prost(int32, repeated, tag = "1")]
    pub values: Vec<i32>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedBools {
    /// In row-major order.
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedStrings {
    /// In row-major order.
    #[prost(string, repeated, tag = "1")]
    pub values: Vec<String>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedLongInts {
    /// In row-major order.
    #[prost(int64, repeated, tag = "1")]
    pub values: Vec<i64>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedDoubles {
    /// In row-major order.
    #[prost(double, repeated, tag = "1")]
    pub values: Vec<f64>,
}

/// Elements.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RepeatedBytes {
    /// In row-major order, little-endian; narrow ones lie bit by bit from the lowest.
    #[prost(bytes = "bytes", tag = "1")]
    pub values: Bytes,
}

/// Constants in order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MilValuesProto {
    /// The constants.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<MilValueProto>,
}

/// Constants by key.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DictionaryValue {
    /// The pairs.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<KeyValuePair>,
}

/// A key and its constant.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValuePair {
    /// The key.
    #[prost(message, optional, tag = "1")]
    pub key: Option<MilValueProto>,
    /// The constant.
    #[prost(message, optional, tag = "2")]
    pub value: Option<MilValueProto>,
}

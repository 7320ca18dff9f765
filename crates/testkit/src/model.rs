//! Small ONNX models for tests, as bytes.

use galatea_formats::onnx::proto::{
    AttributeProto, AttributeType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, dimension,
    type_proto,
};
use prost::Message;

/// The number of `FLOAT` in `TensorProto.DataType`.
pub const FLOAT: i32 = 1;
/// The number of `INT32`.
pub const INT32: i32 = 6;
/// The number of `INT64`.
pub const INT64: i32 = 7;
/// The number of `STRING`.
pub const STRING: i32 = 8;

/// A model with this graph at an opset, as a message that can be changed before it is encoded.
#[must_use]
pub fn model(graph: GraphProto, opset: i64) -> ModelProto {
    ModelProto {
        ir_version: 10,
        producer_name: "testkit".to_owned(),
        graph: Some(Box::new(graph)),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: opset }],
        ..ModelProto::default()
    }
}

/// The bytes of a model file.
#[must_use]
pub fn encode(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}

/// A node of the default domain; an empty name is an absent input or output.
#[must_use]
pub fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: op_type.to_owned(),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: outputs.iter().map(|&name| name.to_owned()).collect(),
        ..NodeProto::default()
    }
}

/// An integer attribute.
#[must_use]
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: value, ..attribute(name, AttributeType::Int) }
}

/// An attribute of integers.
#[must_use]
pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// A float attribute.
#[must_use]
pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: value, ..attribute(name, AttributeType::Float) }
}

/// A tensor attribute.
#[must_use]
pub fn tensor(name: &str, value: TensorProto) -> AttributeProto {
    AttributeProto { t: Some(Box::new(value)), ..attribute(name, AttributeType::Tensor) }
}

/// A subgraph attribute.
#[must_use]
pub fn graph(name: &str, value: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(Box::new(value)), ..attribute(name, AttributeType::Graph) }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type: kind.into(), ..AttributeProto::default() }
}

/// A constant of floats.
#[must_use]
pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: FLOAT,
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// A constant of 64-bit integers.
#[must_use]
pub fn int64s(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: INT64,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// A declared tensor: `2` is a length, `batch` a symbol, `?` an unknown length.
#[must_use]
pub fn value(name: &str, elem_type: i32, dims: &[&str]) -> ValueInfoProto {
    let dim = |&text: &&str| Dimension {
        value: match (text, text.parse()) {
            ("?", _) => None,
            (_, Ok(len)) => Some(dimension::Value::DimValue(len)),
            (symbol, Err(_)) => Some(dimension::Value::DimParam(symbol.to_owned())),
        },
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type, shape };
    let r#type = Some(TypeProto { value: Some(type_proto::Value::Tensor(tensor)) });
    ValueInfoProto { name: name.to_owned(), r#type }
}

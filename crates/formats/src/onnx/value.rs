//! Declared types and attribute values.

use bytes::Bytes;
use galatea_graph::{AttributeValue, Dim, Fact};
use galatea_tensor::ByteString;

use super::error::{OnnxError, Place};
use super::external::ExternalData;
use super::proto::{AttributeProto, AttributeType, TypeProto, dimension, type_proto};
use super::tensor;

/// The fact that a type declares; `None` for a type without a tensor form, or none at all.
pub(super) fn declared(
    proto: Option<&TypeProto>,
    place: &Place<'_>,
) -> Result<Option<Fact>, OnnxError> {
    let Some(type_proto::Value::Tensor(found)) = proto.and_then(|proto| proto.value.as_ref())
    else {
        return Ok(None);
    };
    let place = place.field("type");
    let dtype = tensor::data_type(found.elem_type, &place.field("elem_type"))?;
    let Some(shape) = &found.shape else { return Ok(Some(Fact::unranked(dtype))) };
    let dims = shape.dim.iter().map(|dim| match &dim.value {
        Some(dimension::Value::DimValue(len)) => {
            usize::try_from(*len).map_or(Dim::Unknown, Dim::Known)
        }
        Some(dimension::Value::DimParam(name)) if !name.is_empty() => Dim::symbol(name),
        _ => Dim::Unknown,
    });
    Ok(Some(Fact::new(dtype, dims.collect())))
}

/// What a type without a tensor form is called.
pub(super) fn type_name(proto: Option<&TypeProto>) -> &'static str {
    match proto.and_then(|proto| proto.value.as_ref()) {
        Some(type_proto::Value::Tensor(_)) => "a tensor",
        Some(type_proto::Value::Sequence(_)) => "a sequence",
        Some(type_proto::Value::Map(_)) => "a map",
        Some(type_proto::Value::Sparse(_)) => "a sparse tensor",
        Some(type_proto::Value::Optional(_)) => "an optional value",
        None => "of no type",
    }
}

/// The kind of an attribute: as stated, else that of the field which is set.
fn kind(proto: &AttributeProto, place: &Place<'_>) -> Result<AttributeType, OnnxError> {
    let stated = AttributeType::try_from(proto.r#type).map_err(|_| {
        OnnxError::unsupported(place, format!("attribute kind {} does not exist", proto.r#type))
    })?;
    if stated != AttributeType::Undefined {
        return Ok(stated);
    }
    let found = [
        (proto.s.is_some(), AttributeType::String),
        (proto.t.is_some(), AttributeType::Tensor),
        (proto.g.is_some(), AttributeType::Graph),
        (proto.sparse_tensor.is_some(), AttributeType::SparseTensor),
        (!proto.floats.is_empty(), AttributeType::Floats),
        (!proto.ints.is_empty(), AttributeType::Ints),
        (!proto.strings.is_empty(), AttributeType::Strings),
        (proto.f != 0.0, AttributeType::Float),
        (proto.i != 0, AttributeType::Int),
    ];
    found.into_iter().find_map(|(set, kind)| set.then_some(kind)).ok_or_else(|| {
        OnnxError::invalid(place, format!("attribute '{}' has neither kind nor value", proto.name))
    })
}

/// The value of an attribute that is no subgraph; `None` for a subgraph.
pub(super) fn attribute(
    proto: &AttributeProto,
    external: &mut ExternalData<'_>,
    place: &Place<'_>,
) -> Result<Option<AttributeValue>, OnnxError> {
    let text = |bytes: &Bytes| ByteString::from(&bytes[..]);
    let missing = |field: &'static str| {
        let place = place.field(field);
        OnnxError::invalid(&place, format!("attribute '{}' has no value", proto.name))
    };
    Ok(Some(match kind(proto, place)? {
        AttributeType::Float => AttributeValue::Float(proto.f),
        AttributeType::Int => AttributeValue::Int(proto.i),
        AttributeType::String => {
            AttributeValue::String(proto.s.as_ref().map(text).unwrap_or_default())
        }
        AttributeType::Floats => AttributeValue::Floats(proto.floats.clone()),
        AttributeType::Ints => AttributeValue::Ints(proto.ints.clone()),
        AttributeType::Strings => AttributeValue::Strings(proto.strings.iter().map(text).collect()),
        AttributeType::Tensor => {
            let found = proto.t.as_ref().ok_or_else(|| missing("t"))?;
            AttributeValue::Tensor(tensor::read(found, external, &place.field("t"))?)
        }
        AttributeType::SparseTensor => {
            let found = proto.sparse_tensor.as_ref().ok_or_else(|| missing("sparse_tensor"))?;
            let place = place.field("sparse_tensor");
            AttributeValue::Tensor(tensor::read_sparse(found, external, &place)?)
        }
        AttributeType::Graph => {
            proto.g.as_ref().ok_or_else(|| missing("g"))?;
            return Ok(None);
        }
        other => {
            return Err(OnnxError::unsupported(
                place,
                format!("attribute '{}' is of kind {other:?}, which is not supported", proto.name),
            ));
        }
    }))
}

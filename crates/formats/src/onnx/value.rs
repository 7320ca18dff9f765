//! Declared types and attribute values.

use bytes::Bytes;
use galatea_graph::{AttributeValue, Datum, Dim, Fact, FactKind, MapKey, TensorSequence};
use galatea_tensor::ByteString;

use super::error::{FieldPath, OnnxError};
use super::external::ExternalData;
use super::proto::{
    AttributeProto, AttributeType, OptionalProto, SequenceProto, TypeProto, dimension, type_proto,
};
use super::tensor;

/// The number of `TENSOR` in `SequenceProto.DataType`.
const TENSOR: i32 = 1;

/// The fact that a type declares; `None` for a type that no value here has, or none at all.
pub(super) fn declared(
    proto: Option<&TypeProto>,
    place: &FieldPath<'_>,
) -> Result<Option<Fact>, OnnxError> {
    use type_proto::Value;
    let place = place.field("type");
    let value = |proto: Option<&'_ TypeProto>| proto.and_then(|proto| proto.value.clone());
    let element = |held: &type_proto::ElementType| value(held.elem_type.as_deref());
    let (kind, held) = match value(proto) {
        Some(Value::Optional(held)) => match element(&held) {
            Some(Value::Sequence(inner)) => (FactKind::OptionalSequence, element(&inner)),
            other => (FactKind::OptionalTensor, other),
        },
        Some(Value::Sequence(held)) => match element(&held) {
            Some(Value::Map(map)) => return map_type(&map, FactKind::Maps, &place),
            other => (FactKind::Sequence, other),
        },
        Some(Value::Map(map)) => return map_type(&map, FactKind::Map, &place),
        other => (FactKind::Tensor, other),
    };
    let Some(Value::Tensor(tensor) | Value::Sparse(tensor)) = held else { return Ok(None) };
    tensor_type(&tensor, &place).map(|fact| Some(Fact { kind, ..fact }))
}

/// The fact of a map or a sequence of maps; `None` where the values are no tensors.
fn map_type(
    found: &type_proto::MapType,
    kind: fn(MapKey) -> FactKind,
    place: &FieldPath<'_>,
) -> Result<Option<Fact>, OnnxError> {
    let place = place.field("map_type");
    let key = tensor::data_type(found.key_type, &place.field("key_type"))?;
    let key = MapKey::of(key).ok_or_else(|| {
        let text = format!("keys of type {key}, expected INT64 or strings");
        OnnxError::unsupported(&place.field("key_type"), text)
    })?;
    let value = found.value_type.as_ref().and_then(|value| value.value.as_ref());
    let Some(type_proto::Value::Tensor(value)) = value else { return Ok(None) };
    let dtype = tensor::data_type(value.elem_type, &place.field("value_type"))?;
    Ok(Some(Fact::unranked(dtype).within(kind(key))))
}

fn tensor_type(found: &type_proto::Tensor, place: &FieldPath<'_>) -> Result<Fact, OnnxError> {
    let dtype = tensor::data_type(found.elem_type, &place.field("elem_type"))?;
    let Some(shape) = &found.shape else { return Ok(Fact::unranked(dtype)) };
    let dims = shape.dim.iter().map(|dim| match &dim.value {
        Some(dimension::Value::DimValue(len)) => {
            usize::try_from(*len).map_or(Dim::Unknown, Dim::Known)
        }
        Some(dimension::Value::DimParam(name)) if names_length(name) => Dim::symbol(name),
        _ => Dim::Unknown,
    });
    Ok(Fact::new(dtype, dims.collect()))
}

/// Returns whether the text of an axis names a length. Exporters write `?` for every axis that they
/// do not know, which does not say that such axes are equally long.
fn names_length(text: &str) -> bool {
    let unknown = ["none", "unk", "unknown", "any", "dynamic"];
    text.contains(|c: char| c.is_alphanumeric())
        && !unknown.contains(&text.trim().to_lowercase().as_str())
}

/// Returns the name of a type.
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
fn kind(proto: &AttributeProto, place: &FieldPath<'_>) -> Result<AttributeType, OnnxError> {
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
        (proto.tp.is_some(), AttributeType::TypeProto),
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
    place: &FieldPath<'_>,
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
        AttributeType::TypeProto => {
            let found = proto.tp.as_deref().ok_or_else(|| missing("tp"))?;
            let place = place.field("tp");
            let fact = declared(Some(found), &place)?.ok_or_else(|| {
                let text = format!("{} is no type of a value here", type_name(Some(found)));
                OnnxError::unsupported(&place, text)
            })?;
            AttributeValue::Type(fact)
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

/// The sequence that a message holds.
pub(super) fn sequence(
    proto: &SequenceProto,
    declared: &Fact,
    place: &FieldPath<'_>,
) -> Result<Datum, OnnxError> {
    if proto.elem_type > TENSOR || (proto.elem_type != TENSOR && !proto.tensor_values.is_empty()) {
        let text = format!("items of kind {}, expected tensors ({TENSOR})", proto.elem_type);
        return Err(OnnxError::unsupported(&place.field("elem_type"), text));
    }
    let read = |(index, item)| {
        tensor::read(item, &mut ExternalData::new(None), &place.item("tensor_values", index))
    };
    let items = proto.tensor_values.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    TensorSequence::new(declared.dtype, items)
        .map(Datum::Sequence)
        .map_err(|error| OnnxError::invalid(place, error.to_string()))
}

/// The optional value that a message holds.
pub(super) fn optional(
    proto: &OptionalProto,
    declared: &Fact,
    place: &FieldPath<'_>,
) -> Result<Datum, OnnxError> {
    let tensor =
        |found| tensor::read(found, &mut ExternalData::new(None), &place.field("tensor_value"));
    let held = match (&proto.tensor_value, &proto.sequence_value) {
        (Some(found), None) => Some(Datum::Tensor(tensor(found)?)),
        (None, Some(found)) => Some(sequence(found, declared, &place.field("sequence_value"))?),
        (None, None) if proto.elem_type <= 3 => None,
        _ => {
            return Err(OnnxError::unsupported(place, "neither a tensor nor a sequence nor empty"));
        }
    };
    Ok(Datum::Optional(held.map(Box::new)))
}

//! `TensorProto` to [`Tensor`]: every encoding of the elements.

use std::sync::Arc;

use bytes::Bytes;
use galatea_graph::onnx_data_type;
use galatea_tensor::{
    ByteString, DataType, Element, SharedBytes, SmallType, Tensor, bf16, checked_elements, f16,
};

use super::error::{FieldPath, OnnxError};
use super::external::ExternalData;
use super::proto::{DataLocation, SparseTensorProto, TensorProto};

/// Reads a constant; the elements share the message's memory (or the external file's), and are copied
/// where their alignment does not permit it and somebody needs them aligned.
pub(super) fn read(
    proto: &TensorProto,
    external: &mut ExternalData<'_>,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    let dtype = data_type(proto.data_type, &place.field("data_type"))?;
    let shape = shape(&proto.dims, place)?;
    let elements = checked_elements(&shape)
        .map_err(|error| OnnxError::tensor(&place.field("dims"), &error))?;
    if proto.data_location == i32::from(DataLocation::External) {
        return read_external(proto, dtype, &shape, elements, external, place);
    }
    if dtype == DataType::Bytes {
        let strings = proto.string_data.iter().map(|text| ByteString::from(&text[..])).collect();
        return from_vec::<ByteString>(&shape, strings, "string_data", place);
    }
    match &proto.raw_data {
        Some(raw) if !raw.is_empty() || elements == 0 => {
            let memory = if external.model_is_mapped() {
                SharedBytes::mapped(raw.clone())
            } else {
                SharedBytes::new(raw.clone())
            };
            from_raw(dtype, &shape, raw, memory, place)
        }
        _ => from_fields(proto, dtype, &shape, place),
    }
}

fn read_external(
    proto: &TensorProto,
    dtype: DataType,
    shape: &[usize],
    elements: usize,
    external: &mut ExternalData<'_>,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    if dtype == DataType::Bytes {
        return Err(OnnxError::invalid(place, "strings cannot be in an external file"));
    }
    let window = external.window(&proto.external_data, place)?;
    let expected = file_bytes(dtype, elements);
    let found = window.len_bytes;
    if expected.is_none_or(|bytes| bytes > found || (window.stated && bytes != found)) {
        return Err(wrong_size(dtype, shape, expected, found, &place.field("external_data")));
    }
    if let Some(small) = packed(dtype) {
        let memory = window.memory;
        let start = window.offset_bytes;
        let bytes = [expected.unwrap_or(0)];
        return Tensor::from_allocation(DataType::Uint8, &bytes, memory, start)
            .map_err(|error| OnnxError::tensor(place, &error))
            .and_then(|bytes| unpacked(small, shape, bytes.as_bytes().unwrap_or(&[]), place));
    }
    Tensor::from_allocation_lazily(dtype, shape, window.memory, window.offset_bytes)
        .map_err(|error| OnnxError::tensor(place, &error))
}

fn from_raw(
    dtype: DataType,
    shape: &[usize],
    raw: &Bytes,
    memory: Arc<SharedBytes>,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    let place = place.field("raw_data");
    let elements = checked_elements(shape).map_err(|error| OnnxError::tensor(&place, &error))?;
    let expected = file_bytes(dtype, elements);
    if expected != Some(raw.len()) {
        return Err(wrong_size(dtype, shape, expected, raw.len(), &place));
    }
    if let Some(small) = packed(dtype) {
        return unpacked(small, shape, raw, &place);
    }
    Tensor::from_allocation_lazily(dtype, shape, memory, 0)
        .map_err(|error| OnnxError::tensor(&place, &error))
}

/// Bytes that the elements take in a file.
fn file_bytes(dtype: DataType, elements: usize) -> Option<usize> {
    match dtype {
        DataType::Small(small) => small.packed_bytes(elements),
        other => elements.checked_mul(other.size_bytes().unwrap_or(1)),
    }
}

/// The type if a byte of a file holds several elements of it.
fn packed(dtype: DataType) -> Option<SmallType> {
    match dtype {
        DataType::Small(small) if small.bits() < 8 => Some(small),
        _ => None,
    }
}

/// A tensor of packed elements, whose bytes are as many as they take.
fn unpacked(
    small: SmallType,
    shape: &[usize],
    bytes: &[u8],
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    let elements = checked_elements(shape).map_err(|error| OnnxError::tensor(place, &error))?;
    Tensor::from_bytes(DataType::Small(small), shape, &small.unpack(bytes, elements))
        .map_err(|error| OnnxError::tensor(place, &error))
}

fn wrong_size(
    dtype: DataType,
    shape: &[usize],
    expected: Option<usize>,
    found: usize,
    place: &FieldPath<'_>,
) -> OnnxError {
    let expected = expected.map_or("more".to_owned(), |bytes| bytes.to_string());
    OnnxError::invalid(place, format!("{dtype}{shape:?} takes {expected} bytes, found {found}"))
}

/// Elements in the field that the schema assigns to the type.
fn from_fields(
    proto: &TensorProto,
    dtype: DataType,
    shape: &[usize],
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    let int32s = &proto.int32_data;
    match dtype {
        DataType::Fp32 => from_vec(shape, proto.float_data.clone(), "float_data", place),
        DataType::Fp64 => from_vec(shape, proto.double_data.clone(), "double_data", place),
        DataType::Int64 => from_vec(shape, proto.int64_data.clone(), "int64_data", place),
        DataType::Uint64 => from_vec(shape, proto.uint64_data.clone(), "uint64_data", place),
        DataType::Uint32 => narrowed::<u32, u64>(shape, &proto.uint64_data, "uint64_data", place),
        DataType::Int32 => from_vec(shape, int32s.clone(), "int32_data", place),
        DataType::Int16 => narrowed::<i16, i32>(shape, int32s, "int32_data", place),
        DataType::Int8 => narrowed::<i8, i32>(shape, int32s, "int32_data", place),
        DataType::Uint16 => narrowed::<u16, i32>(shape, int32s, "int32_data", place),
        DataType::Uint8 => narrowed::<u8, i32>(shape, int32s, "int32_data", place),
        DataType::Bool => {
            let all = int32s.iter().map(|&value| value != 0).collect();
            from_vec::<bool>(shape, all, "int32_data", place)
        }
        DataType::Fp16 => {
            let bits = narrow::<u16, i32>(int32s, "int32_data", place)?;
            let all = bits.into_iter().map(f16::from_bits).collect();
            from_vec::<f16>(shape, all, "int32_data", place)
        }
        DataType::Bf16 => {
            let bits = narrow::<u16, i32>(int32s, "int32_data", place)?;
            let all = bits.into_iter().map(bf16::from_bits).collect();
            from_vec::<bf16>(shape, all, "int32_data", place)
        }
        // The numbers are bytes, packed as in raw data.
        DataType::Small(small) => {
            let bytes = narrow::<u8, i32>(int32s, "int32_data", place)?;
            let place = place.field("int32_data");
            let elements = checked_elements(shape);
            let elements = elements.map_err(|error| OnnxError::tensor(&place, &error))?;
            let expected = small.packed_bytes(elements);
            if expected != Some(bytes.len()) {
                return Err(wrong_size(dtype, shape, expected, bytes.len(), &place));
            }
            unpacked(small, shape, &bytes, &place)
        }
        DataType::Bytes => Err(OnnxError::invalid(place, "strings have a field of their own")),
    }
}

fn from_vec<T: Element>(
    shape: &[usize],
    all: Vec<T>,
    field: &'static str,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    Tensor::from_vec(shape, all).map_err(|error| OnnxError::tensor(&place.field(field), &error))
}

fn narrowed<T, S>(
    shape: &[usize],
    all: &[S],
    field: &'static str,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError>
where
    T: Element + TryFrom<S>,
    S: Copy + std::fmt::Display,
{
    from_vec(shape, narrow::<T, S>(all, field, place)?, field, place)
}

fn narrow<T, S>(all: &[S], field: &'static str, place: &FieldPath<'_>) -> Result<Vec<T>, OnnxError>
where
    T: Element + TryFrom<S>,
    S: Copy + std::fmt::Display,
{
    let convert = |(index, &value): (usize, &S)| {
        T::try_from(value).map_err(|_| {
            let place = place.item(field, index);
            OnnxError::invalid(&place, format!("{value} does not fit the type {}", T::DTYPE))
        })
    };
    all.iter().enumerate().map(convert).collect()
}

/// The element type with this number.
pub(super) fn data_type(number: i32, place: &FieldPath<'_>) -> Result<DataType, OnnxError> {
    if number == 0 {
        return Err(OnnxError::invalid(place, "the element type is not stated"));
    }
    onnx_data_type(i64::from(number))
        .map_err(|error| OnnxError::unsupported(place, error.to_string()))
}

fn shape(dims: &[i64], place: &FieldPath<'_>) -> Result<Vec<usize>, OnnxError> {
    let dim = |(index, &dim): (usize, &i64)| {
        usize::try_from(dim).map_err(|_| {
            OnnxError::invalid(&place.item("dims", index), format!("length {dim} is negative"))
        })
    };
    dims.iter().enumerate().map(dim).collect()
}

/// Reads a sparse constant in its dense form.
pub(super) fn read_sparse(
    proto: &SparseTensorProto,
    external: &mut ExternalData<'_>,
    place: &FieldPath<'_>,
) -> Result<Tensor, OnnxError> {
    let missing = |field: &'static str| OnnxError::invalid(&place.field(field), "is missing");
    let values = proto.values.as_ref().ok_or_else(|| missing("values"))?;
    let values = read(values, external, &place.field("values"))?;
    let indices = proto.indices.as_ref().ok_or_else(|| missing("indices"))?;
    let indices = read(indices, external, &place.field("indices"))?;
    let shape = shape(&proto.dims, place)?;
    let size = values.dtype().size_bytes().unwrap_or(size_of::<ByteString>());
    let dense = checked_elements(&shape).ok();
    let given = values.elements().saturating_mul(size).saturating_add(indices.elements() * 8);
    external.take_dense(given, dense.and_then(|count| count.checked_mul(size))).map_err(
        |text| {
            let text = format!("the dense form of shape {shape:?} {text}");
            OnnxError::unsupported(&place.field("dims"), text)
        },
    )?;
    let dense = dense.unwrap_or(0);
    let positions = positions(&indices, &shape, &place.field("indices"))?;
    if positions.len() != values.elements() {
        return Err(OnnxError::invalid(
            place,
            format!("{} values have {} positions", values.elements(), positions.len()),
        ));
    }
    galatea_tensor::with_element!(values.dtype(), T => {
        let mut all = vec![T::default(); dense];
        let given = values.to_vec::<T>().map_err(|error| OnnxError::tensor(place, &error))?;
        for (position, value) in positions.into_iter().zip(given) {
            if let Some(slot) = all.get_mut(position) {
                *slot = value;
            }
        }
        from_vec::<T>(&shape, all, "values", place)
    })
}

/// Linear positions, from linear ones or from rows of coordinates.
fn positions(
    indices: &Tensor,
    shape: &[usize],
    place: &FieldPath<'_>,
) -> Result<Vec<usize>, OnnxError> {
    let all = indices.to_i64_vec().map_err(|error| OnnxError::tensor(place, &error))?;
    let outside = |index: i64| {
        OnnxError::invalid(place, format!("position {index} lies outside shape {shape:?}"))
    };
    let elements = checked_elements(shape).map_err(|error| OnnxError::tensor(place, &error))?;
    match indices.shape() {
        [_] => all
            .into_iter()
            .map(|index| {
                usize::try_from(index)
                    .ok()
                    .filter(|&at| at < elements)
                    .ok_or_else(|| outside(index))
            })
            .collect(),
        [_, rank] if *rank == shape.len() && *rank > 0 => all
            .chunks_exact(*rank)
            .map(|row| {
                row.iter().zip(shape).try_fold(0, |linear: usize, (&index, &dim)| {
                    let at = usize::try_from(index).ok().filter(|&at| at < dim);
                    let at = at.ok_or_else(|| outside(index))?;
                    Ok(linear.saturating_mul(dim).saturating_add(at))
                })
            })
            .collect(),
        other => Err(OnnxError::invalid(
            place,
            format!("positions of shape {other:?} do not fit a tensor of shape {shape:?}"),
        )),
    }
}

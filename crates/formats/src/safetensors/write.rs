//! Tensors to a safetensors file.

use std::io::Write;

use galatea_tensor::{OrderedMap, Tensor};
use serde_json::{Map, Value, json};

use super::header::type_name;
use crate::checkpoint::{CheckpointError, CheckpointErrorKind};

/// The data starts at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// Writes tensors as one safetensors file: the widest types first, so that each is aligned.
///
/// # Errors
/// Fails when writing fails, two tensors have one name, or a type has no name in the format; the
/// error names the tensor.
pub fn write<'a>(
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    metadata: &OrderedMap<String, String>,
    mut to: impl Write,
) -> Result<(), CheckpointError> {
    let mut all: Vec<(&str, &Tensor)> = tensors.into_iter().collect();
    all.sort_by_key(|(name, tensor)| {
        (std::cmp::Reverse(tensor.dtype().size_bytes()), (*name).to_owned())
    });
    let mut header = Map::new();
    if !metadata.is_empty() {
        header.insert("__metadata__".to_owned(), json!(metadata));
    }
    let mut offset = 0_usize;
    for (name, tensor) in &all {
        let refuse =
            |text: String| Err(CheckpointError::invalid(text).at(format!("tensor '{name}'")));
        let Some(dtype) = type_name(tensor.dtype()) else {
            return refuse(format!("safetensors have no type {}", tensor.dtype()));
        };
        let end = offset.saturating_add(tensor.size_bytes());
        let entry = json!({
            "dtype": dtype, "shape": tensor.shape(), "data_offsets": [offset, end],
        });
        if *name == "__metadata__" || header.insert((*name).to_owned(), entry).is_some() {
            return refuse("a second entry of this name".to_owned());
        }
        offset = end;
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize((text.len() + 8).next_multiple_of(ALIGNMENT) - 8, b' ');
    let failed = |error: std::io::Error| {
        CheckpointError::new(CheckpointErrorKind::File, format!("cannot write: {error}"))
    };
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    to.write_all(&length.to_le_bytes()).map_err(failed)?;
    to.write_all(&text).map_err(failed)?;
    for (name, tensor) in all {
        let wrong = |error: galatea_tensor::TensorError| {
            CheckpointError::invalid(error.to_string()).at(format_args!("tensor '{name}'"))
        };
        let whole = tensor.contiguous().map_err(wrong)?;
        to.write_all(whole.unaligned_bytes().map_err(wrong)?).map_err(failed)?;
    }
    to.flush().map_err(failed)
}

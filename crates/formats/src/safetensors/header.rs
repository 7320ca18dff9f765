//! The header of a safetensors file: names, types, shapes and places, as JSON.
//!
//! The `safetensors` crate reads the same header, but keeps the last of two entries with one name
//! and does not say which tensor or which numbers are wrong; so `serde_json` is used directly.

use std::fmt;
use std::ops::Range;

use galatea_tensor::{DataType, OrderedEntry, OrderedMap, checked_elements};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use crate::checkpoint::CheckpointError;

/// Bytes of the number in front of the header.
const LENGTH_BYTES: usize = 8;
/// The longest header that the format's own library reads.
const MAX_HEADER: u64 = 100_000_000;
/// The key of the free text.
const METADATA: &str = "__metadata__";

/// The types of the format that tensors here have.
const TYPES: &[(&str, DataType)] = &[
    ("BOOL", DataType::Bool),
    ("U8", DataType::Uint8),
    ("I8", DataType::Int8),
    ("U16", DataType::Uint16),
    ("I16", DataType::Int16),
    ("U32", DataType::Uint32),
    ("I32", DataType::Int32),
    ("U64", DataType::Uint64),
    ("I64", DataType::Int64),
    ("F16", DataType::Fp16),
    ("BF16", DataType::Bf16),
    ("F32", DataType::Fp32),
    ("F64", DataType::Fp64),
];

/// The format's name of a type, if it has one.
pub(super) fn type_name(dtype: DataType) -> Option<&'static str> {
    TYPES.iter().find(|row| row.1 == dtype).map(|row| row.0)
}

/// A tensor of the header, checked.
#[derive(Debug)]
pub(super) struct CheckedTensor {
    pub(super) dtype: DataType,
    pub(super) shape: Vec<usize>,
    /// In the file.
    pub(super) bytes: Range<usize>,
}

/// Content of the header.
#[derive(Debug)]
pub(super) struct SafetensorsHeader {
    pub(super) tensors: OrderedMap<String, CheckedTensor>,
    pub(super) metadata: OrderedMap<String, String>,
}

/// A tensor as the header has it.
#[derive(Deserialize)]
struct HeaderEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

#[derive(Default)]
struct HeaderEntries {
    tensors: OrderedMap<String, HeaderEntry>,
    metadata: OrderedMap<String, String>,
}

impl SafetensorsHeader {
    /// Reads the header at the start of a file and checks every place against the file's length.
    pub(super) fn parse(file: &[u8]) -> Result<Self, CheckpointError> {
        let (text, start) = text(file)?;
        let entries: HeaderEntries = serde_json::from_slice(text)
            .map_err(|error| CheckpointError::invalid(format!("the header is damaged: {error}")))?;
        let data_bytes = file.len().saturating_sub(start);
        let mut tensors = OrderedMap::new();
        for (name, entry) in entries.tensors {
            let placed = entry
                .place(start, data_bytes)
                .map_err(|error| error.at(format_args!("tensor '{name}'")))?;
            tensors.insert(name, placed);
        }
        check_cover(&tensors, start, file.len())?;
        Ok(Self { tensors, metadata: entries.metadata })
    }
}

/// The header's text, and where the data starts.
fn text(file: &[u8]) -> Result<(&[u8], usize), CheckpointError> {
    let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
        let text = format!("a file of {} bytes has no header", file.len());
        return Err(CheckpointError::invalid(text));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER {
        let text = format!(
            "the header claims {length} bytes, at most {MAX_HEADER} are possible: this is no \
             safetensors file"
        );
        return Err(CheckpointError::invalid(text));
    }
    let header = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let header = header.ok_or_else(|| {
        let text = format!("the header claims {length} bytes, the file has {} more", rest.len());
        CheckpointError::invalid(text)
    })?;
    Ok((header, LENGTH_BYTES.saturating_add(header.len())))
}

impl HeaderEntry {
    fn place(self, start: usize, data_bytes: usize) -> Result<CheckedTensor, CheckpointError> {
        let Some(&(_, dtype)) = TYPES.iter().find(|row| row.0 == self.dtype) else {
            let known: Vec<&str> = TYPES.iter().map(|row| row.0).collect();
            let text = format!("type '{}' is not supported, only {}", self.dtype, known.join(", "));
            return Err(CheckpointError::unsupported(text));
        };
        let too_large =
            |_| CheckpointError::invalid(format!("shape {:?} is too large", self.shape));
        let shape: Vec<usize> = self
            .shape
            .iter()
            .map(|&length| usize::try_from(length).map_err(too_large))
            .collect::<Result<_, _>>()?;
        let elements = checked_elements(&shape)
            .map_err(|error| CheckpointError::invalid(error.to_string()))?;
        let (from, to) = self.data_offsets;
        let window = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let window = window.filter(|&(from, to)| from <= to && to <= data_bytes);
        let (from, to) = window.ok_or_else(|| {
            let text = format!("offsets {from} to {to} are not inside {data_bytes} bytes of data");
            CheckpointError::invalid(text)
        })?;
        let expected = dtype.size_bytes().and_then(|size| elements.checked_mul(size));
        if expected != Some(to - from) {
            let expected = expected.map_or("more".to_owned(), |bytes| bytes.to_string());
            let text = format!(
                "{dtype} of shape {shape:?} takes {expected} bytes, offsets {from} to {to} are {}",
                to - from
            );
            return Err(CheckpointError::invalid(text));
        }
        // Both are at most the file's length.
        let bytes = start.saturating_add(from)..start.saturating_add(to);
        Ok(CheckedTensor { dtype, shape, bytes })
    }
}

/// The format wants every byte of the data to belong to exactly one tensor.
fn check_cover(
    tensors: &OrderedMap<String, CheckedTensor>,
    start: usize,
    end: usize,
) -> Result<(), CheckpointError> {
    let mut sorted: Vec<(&String, &CheckedTensor)> = tensors.iter().collect();
    sorted.sort_by_key(|(_, placed)| (placed.bytes.start, placed.bytes.end));
    let mut reached = start;
    let mut before = None;
    for (name, placed) in sorted {
        let from = placed.bytes.start;
        if from != reached {
            let what = match (from < reached, before) {
                (true, Some(other)) => format!("overlaps tensor '{other}'"),
                _ => format!("starts {} bytes behind the data before it", from.abs_diff(reached)),
            };
            let text = format!("{what}: it starts at byte {from} of the file, expected {reached}");
            return Err(CheckpointError::invalid(text).at(format_args!("tensor '{name}'")));
        }
        (reached, before) = (placed.bytes.end, Some(name));
    }
    if reached == end {
        return Ok(());
    }
    let text = format!("the last tensor ends at byte {reached}, the file at {end}");
    Err(CheckpointError::invalid(text))
}

impl<'de> Deserialize<'de> for HeaderEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = HeaderEntries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderEntries, A::Error> {
        let mut entries = HeaderEntries::default();
        let mut described = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                if described {
                    return Err(A::Error::custom(format!("'{METADATA}' is given twice")));
                }
                described = true;
                entries.metadata = map.next_value()?;
                continue;
            }
            match entries.tensors.entry(name) {
                OrderedEntry::Occupied(slot) => {
                    return Err(A::Error::custom(format!(
                        "tensor '{}' is given twice",
                        slot.key()
                    )));
                }
                OrderedEntry::Vacant(slot) => {
                    let entry = map.next_value_seed(NamedEntry(slot.key()))?;
                    slot.insert(entry);
                }
            }
        }
        Ok(entries)
    }
}

/// Reads an entry and names it where it is damaged.
struct NamedEntry<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for NamedEntry<'_> {
    type Value = HeaderEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<HeaderEntry, D::Error> {
        HeaderEntry::deserialize(deserializer)
            .map_err(|error| D::Error::custom(format!("tensor '{}': {error}", self.0)))
    }
}

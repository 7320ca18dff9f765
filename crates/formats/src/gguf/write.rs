//! Metadata and tensors to a GGUF file.

use std::fmt;
use std::io::{self, Write};

use bytes::Bytes;
use galatea_tensor::Tensor;

use super::metadata::{GgufArray, GgufMetadata, GgufValue, GgufValueType};
use super::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, GgmlType, MAGIC, MAX_ALIGNMENT, VERSION};
use crate::checkpoint::{CheckpointError, CheckpointErrorKind};

/// The bytes of a tensor: in memory, or made when they are written.
pub enum TensorData<'a> {
    /// Bytes that are there.
    Bytes(Bytes),
    /// Writes the bytes, so that not all tensors need be in memory at once.
    Made(Box<MakeData<'a>>),
}

/// Writes the bytes of a tensor.
pub type MakeData<'a> = dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a;

impl fmt::Debug for TensorData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Made(_) => f.write_str("Made"),
        }
    }
}

/// Collects what a file is to hold, and writes it.
#[derive(Debug, Default)]
pub struct GgufWriter<'a> {
    metadata: GgufMetadata,
    tensors: Vec<PendingTensor<'a>>,
    alignment: Option<usize>,
}

#[derive(Debug)]
struct PendingTensor<'a> {
    name: String,
    kind: GgmlType,
    shape: Vec<usize>,
    size: usize,
    data: TensorData<'a>,
}

impl<'a> GgufWriter<'a> {
    /// An empty file of version 3, whose tensors are aligned to 32 bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value behind the others.
    ///
    /// # Errors
    /// Fails when there is a value with this key, or the key is that of the alignment.
    pub fn set(
        &mut self,
        key: &str,
        value: impl Into<GgufValue>,
    ) -> Result<&mut Self, CheckpointError> {
        let refuse =
            |text: &str| Err(CheckpointError::invalid(text).at(format_args!("metadata '{key}'")));
        if key == ALIGNMENT_KEY {
            return refuse("the alignment is set with `align`");
        }
        if key.is_empty() || !self.metadata.insert(key, value.into()) {
            return refuse("a second value of this key, or an empty key");
        }
        Ok(self)
    }

    /// Aligns tensors to this many bytes, a power of two.
    ///
    /// # Errors
    /// Fails when it is none, more than 2^20, or was set before.
    pub fn align(&mut self, bytes: usize) -> Result<&mut Self, CheckpointError> {
        let stored = u32::try_from(bytes).ok();
        let stored = stored.filter(|_| bytes.is_power_of_two() && bytes <= MAX_ALIGNMENT);
        let inserted =
            stored.is_some_and(|stored| self.metadata.insert(ALIGNMENT_KEY, stored.into()));
        if !inserted {
            let text = format!("an alignment of {bytes}, expected one power of two up to 2^20");
            return Err(CheckpointError::invalid(text));
        }
        self.alignment = Some(bytes);
        Ok(self)
    }

    /// Adds a tensor behind the others. The shape is in row-major order.
    ///
    /// # Errors
    /// Fails when there is a tensor with this name, more than 4 axes, or rows that are no whole
    /// blocks.
    pub fn tensor(
        &mut self,
        name: &str,
        kind: GgmlType,
        shape: &[usize],
        data: TensorData<'a>,
    ) -> Result<&mut Self, CheckpointError> {
        let refuse =
            |text: String| Err(CheckpointError::invalid(text).at(format_args!("tensor '{name}'")));
        if name.is_empty() || self.tensors.iter().any(|tensor| tensor.name == name) {
            return refuse("a second tensor of this name, or an empty name".to_owned());
        }
        let row_bytes = kind.row_bytes(shape.last().copied().unwrap_or(1));
        let rows = shape.iter().rev().skip(1).try_fold(1_usize, |all, &len| all.checked_mul(len));
        let size = row_bytes.zip(rows).and_then(|(bytes, rows)| bytes.checked_mul(rows));
        let Some(size) = size.filter(|_| shape.len() <= 4) else {
            return refuse(format!(
                "{kind} has no tensors of shape {shape:?}: at most 4 axes, rows of whole blocks of {}",
                kind.block()
            ));
        };
        if let TensorData::Bytes(bytes) = &data
            && bytes.len() != size
        {
            let found = bytes.len();
            return refuse(format!("{kind} of shape {shape:?} takes {size} bytes, found {found}"));
        }
        let name = name.to_owned();
        let shape = shape.to_vec();
        self.tensors.push(PendingTensor { name, kind, shape, size, data });
        Ok(self)
    }

    /// Adds a tensor of single elements.
    ///
    /// # Errors
    /// Fails like [`GgufWriter::tensor`], and for element types that GGUF does not have.
    pub fn plain(&mut self, name: &str, tensor: &Tensor) -> Result<&mut Self, CheckpointError> {
        let refuse =
            |text: String| CheckpointError::invalid(text).at(format_args!("tensor '{name}'"));
        let kind = GgmlType::all().find(|kind| kind.data_type() == Some(tensor.dtype()));
        let kind = kind.ok_or_else(|| refuse(format!("GGUF has no type {}", tensor.dtype())))?;
        let whole = tensor.contiguous().map_err(|error| refuse(error.to_string()))?;
        let bytes = whole.unaligned_bytes().map_err(|error| refuse(error.to_string()))?;
        let data = TensorData::Bytes(Bytes::copy_from_slice(bytes));
        self.tensor(name, kind, tensor.shape(), data)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Fails when writing fails, or bytes that are made are not as many as the tensor takes.
    pub fn write(self, to: impl Write) -> Result<(), CheckpointError> {
        let failed = |error: io::Error| {
            CheckpointError::new(CheckpointErrorKind::File, format!("cannot write: {error}"))
        };
        let alignment = self.alignment.unwrap_or(DEFAULT_ALIGNMENT);
        let mut to = CountingSink { to, written: 0 };
        to.write_all(&self.header(alignment)).map_err(failed)?;
        for PendingTensor { name, size, data, .. } in self.tensors {
            to.pad(alignment).map_err(failed)?;
            let start = to.written;
            match data {
                TensorData::Bytes(bytes) => to.write_all(&bytes),
                TensorData::Made(make) => make(&mut to),
            }
            .map_err(|error| failed(error).at(format_args!("tensor '{name}'")))?;
            let made = to.written.saturating_sub(start);
            if made != size {
                let text = format!("{made} bytes were made, expected {size}");
                return Err(CheckpointError::invalid(text).at(format_args!("tensor '{name}'")));
            }
        }
        to.pad(alignment).map_err(failed)?;
        to.flush().map_err(failed)
    }

    /// Everything in front of the data.
    fn header(&self, alignment: usize) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(length(self.tensors.len()));
        out.extend(length(self.metadata.entries().len()));
        for (key, value) in self.metadata.entries() {
            text(&mut out, key.as_bytes());
            out.extend(value.value_type().number().to_le_bytes());
            encode(&mut out, value);
        }
        let mut offset = 0_usize;
        for tensor in &self.tensors {
            text(&mut out, tensor.name.as_bytes());
            out.extend(u32::try_from(tensor.shape.len()).unwrap_or(u32::MAX).to_le_bytes());
            tensor.shape.iter().rev().for_each(|&len| out.extend(length(len)));
            out.extend(tensor.kind.number().to_le_bytes());
            out.extend(length(offset));
            offset = offset.saturating_add(tensor.size).next_multiple_of(alignment);
        }
        out
    }
}

fn length(value: usize) -> [u8; 8] {
    u64::try_from(value).unwrap_or(u64::MAX).to_le_bytes()
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(length(bytes.len()));
    out.extend_from_slice(bytes);
}

fn encode(out: &mut Vec<u8>, value: &GgufValue) {
    match value {
        GgufValue::U8(value) => out.extend(value.to_le_bytes()),
        GgufValue::I8(value) => out.extend(value.to_le_bytes()),
        GgufValue::U16(value) => out.extend(value.to_le_bytes()),
        GgufValue::I16(value) => out.extend(value.to_le_bytes()),
        GgufValue::U32(value) => out.extend(value.to_le_bytes()),
        GgufValue::I32(value) => out.extend(value.to_le_bytes()),
        GgufValue::F32(value) => out.extend(value.to_le_bytes()),
        GgufValue::Bool(value) => out.push(u8::from(*value)),
        GgufValue::String(bytes) => text(out, bytes),
        GgufValue::Array(array) => {
            out.extend(array.kind.number().to_le_bytes());
            out.extend(length(array.len));
            out.extend_from_slice(&array.encoded);
        }
        GgufValue::U64(value) => out.extend(value.to_le_bytes()),
        GgufValue::I64(value) => out.extend(value.to_le_bytes()),
        GgufValue::F64(value) => out.extend(value.to_le_bytes()),
    }
}

/// Counts what is written.
struct CountingSink<W> {
    to: W,
    written: usize,
}

impl<W: Write> CountingSink<W> {
    fn pad(&mut self, alignment: usize) -> io::Result<()> {
        let missing = self.written.next_multiple_of(alignment).saturating_sub(self.written);
        self.write_all(&vec![0; missing])
    }
}

impl<W: Write> Write for CountingSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.to.write(bytes)?;
        self.written = self.written.saturating_add(taken);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Values from what Rust has.
macro_rules! values {
    ($($kind:ty => $variant:ident,)*) => {$(
        impl From<$kind> for GgufValue {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        }
        impl From<&[$kind]> for GgufValue {
            fn from(values: &[$kind]) -> Self {
                let encoded: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let kind = GgufValueType::$variant;
                let len = values.len();
                Self::Array(GgufArray { kind, len, encoded: encoded.into() })
            }
        }
    )*};
}

values! {
    u8 => U8,
    i8 => I8,
    u16 => U16,
    i16 => I16,
    u32 => U32,
    i32 => I32,
    f32 => F32,
    u64 => U64,
    i64 => I64,
    f64 => F64,
}

impl From<bool> for GgufValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&[bool]> for GgufValue {
    fn from(values: &[bool]) -> Self {
        let encoded: Vec<u8> = values.iter().map(|&value| u8::from(value)).collect();
        Self::Array(GgufArray {
            kind: GgufValueType::Bool,
            len: values.len(),
            encoded: encoded.into(),
        })
    }
}

impl From<&str> for GgufValue {
    fn from(value: &str) -> Self {
        Self::String(Bytes::copy_from_slice(value.as_bytes()))
    }
}

impl From<&[&str]> for GgufValue {
    fn from(values: &[&str]) -> Self {
        let mut encoded = Vec::new();
        values.iter().for_each(|value| text(&mut encoded, value.as_bytes()));
        Self::Array(GgufArray {
            kind: GgufValueType::String,
            len: values.len(),
            encoded: encoded.into(),
        })
    }
}

impl From<&[GgufArray]> for GgufValue {
    fn from(values: &[GgufArray]) -> Self {
        let mut encoded = Vec::new();
        values.iter().for_each(|value| encode(&mut encoded, &Self::Array(value.clone())));
        Self::Array(GgufArray {
            kind: GgufValueType::Array,
            len: values.len(),
            encoded: encoded.into(),
        })
    }
}

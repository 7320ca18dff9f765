//! The directory: names, types, lengths and places of tensors.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use galatea_tensor::{Allocation, DataType, Tensor, bf16, checked_elements, f16};

use super::cursor::GgufCursor;
use super::metadata::rounded;
use crate::blocks::BlockMatrix;
use crate::checkpoint::{CheckpointError, FileSource};
use crate::ggml_type::GgmlType;

/// The longest name; ggml's own limit is 64.
const MAX_NAME: usize = 1024;
/// The most axes of a tensor in ggml.
const MAX_AXES: u32 = 4;
/// The least bytes of an entry: the length of a name and the name, axes, type and place.
const MIN_ENTRY: usize = 8 + 1 + 4 + 4 + 8;

/// A tensor of a GGUF file.
#[derive(Clone, Debug)]
pub struct TensorEntry {
    name: String,
    dims: Vec<usize>,
    shape: Vec<usize>,
    kind: GgmlType,
    /// Place of its bytes in its file.
    window: Range<usize>,
    bytes: Bytes,
    memory: Arc<dyn Allocation>,
}

/// An entry before the place of the data is known.
#[derive(Debug)]
pub(super) struct ListedTensor {
    name: String,
    dims: Vec<usize>,
    kind: GgmlType,
    offset: u64,
    size: usize,
}

impl ListedTensor {
    /// Reads as many entries.
    pub(super) fn read_all(
        cursor: &mut GgufCursor,
        count: u64,
    ) -> Result<Vec<Self>, CheckpointError> {
        let most = cursor.left().checked_div(MIN_ENTRY).unwrap_or(0);
        if usize::try_from(count).ok().is_none_or(|count| count > most) {
            let text = format!("{count} tensors, but {} bytes are left", cursor.left());
            return Err(CheckpointError::invalid(text));
        }
        let mut all = Vec::new();
        for index in 0..count {
            let name = cursor
                .name("name", MAX_NAME)
                .map_err(|error| error.at(format_args!("tensor {index}")))?;
            let place = format!("tensor '{name}'");
            all.push(Self::read(cursor, name).map_err(|error| error.at(place))?);
        }
        Ok(all)
    }

    fn read(cursor: &mut GgufCursor, name: String) -> Result<Self, CheckpointError> {
        let axes = cursor.u32()?;
        if axes > MAX_AXES {
            let text = format!("{axes} axes, at most {MAX_AXES} are possible");
            return Err(CheckpointError::invalid(text));
        }
        let mut dims = Vec::new();
        for _ in 0..axes {
            let length = cursor.u64()?;
            dims.push(usize::try_from(length).map_err(|_| {
                CheckpointError::invalid(format!("an axis of length {length} is too long"))
            })?);
        }
        let number = cursor.u32()?;
        let kind = GgmlType::from_number(number).ok_or_else(|| {
            CheckpointError::unsupported(format!("there is no known type {number} of tensors"))
        })?;
        let elements =
            checked_elements(&dims).map_err(|error| CheckpointError::invalid(error.to_string()))?;
        let columns = dims.first().copied().unwrap_or(1);
        let blocks = kind.block();
        if !columns.is_multiple_of(blocks) {
            let text = format!(
                "rows of {columns} numbers ({dims:?} in ggml's order) are no whole blocks of \
                 {kind}, which have {blocks}"
            );
            return Err(CheckpointError::invalid(text));
        }
        let size = kind.row_bytes(elements);
        let size = size.filter(|&size| isize::try_from(size).is_ok()).ok_or_else(|| {
            CheckpointError::invalid(format!("{kind} of {dims:?} is larger than memory"))
        })?;
        Ok(Self { name, dims, kind, offset: cursor.u64()?, size })
    }

    /// The tensor in the data, which starts at this byte of the file.
    fn place(
        self,
        source: &FileSource,
        start: usize,
        alignment: usize,
    ) -> Result<TensorEntry, CheckpointError> {
        let Self { name, dims, kind, offset, size } = self;
        let file_bytes = source.bytes.len();
        let from = usize::try_from(offset).ok().and_then(|offset| start.checked_add(offset));
        let window = from.and_then(|from| Some(from..from.checked_add(size)?));
        let window = window.filter(|window| window.end <= file_bytes).ok_or_else(|| {
            CheckpointError::invalid(format!(
                "{size} bytes ({kind} of {dims:?}) at {offset} of the data, which starts at byte \
                 {start}, leave the file of {file_bytes} bytes"
            ))
            .at(format_args!("tensor '{name}'"))
        })?;
        if !usize::try_from(offset).is_ok_and(|offset| offset.is_multiple_of(alignment)) {
            let text = format!("its place {offset} is no multiple of the alignment {alignment}");
            return Err(CheckpointError::invalid(text).at(format_args!("tensor '{name}'")));
        }
        let shape = dims.iter().rev().copied().collect();
        let bytes = source.bytes.slice(window.clone());
        let memory = Arc::clone(&source.memory);
        Ok(TensorEntry { name, dims, shape, kind, window, bytes, memory })
    }
}

/// Places every tensor in the data and refuses those that share bytes.
pub(super) fn place_all(
    listed: Vec<ListedTensor>,
    source: &FileSource,
    start: usize,
    alignment: usize,
) -> Result<Vec<TensorEntry>, CheckpointError> {
    let all: Vec<TensorEntry> = listed
        .into_iter()
        .map(|listed| listed.place(source, start, alignment))
        .collect::<Result<_, _>>()?;
    let mut sorted: Vec<&TensorEntry> =
        all.iter().filter(|entry| !entry.window.is_empty()).collect();
    sorted.sort_by_key(|entry| entry.window.start);
    for (one, next) in sorted.iter().zip(sorted.iter().skip(1)) {
        if next.window.start < one.window.end {
            let text = format!(
                "bytes {:?} of the file overlap bytes {:?} of tensor '{}'",
                next.window, one.window, one.name
            );
            return Err(CheckpointError::invalid(text).at(format_args!("tensor '{}'", next.name)));
        }
    }
    Ok(all)
}

impl TensorEntry {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lengths of the axes in ggml's order: the axis whose elements are adjacent comes first.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Lengths of the axes in row-major order: the axis whose elements are adjacent comes last.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How the numbers are stored.
    #[must_use]
    pub fn ggml_type(&self) -> GgmlType {
        self.kind
    }

    /// The place of the bytes in the file.
    #[must_use]
    pub fn window(&self) -> Range<usize> {
        self.window.clone()
    }

    /// The bytes, not copied.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The tensor, for types whose elements have bytes of their own: F32, F16, BF16, F64, I8, I16,
    /// I32 and I64. The bytes are shared.
    ///
    /// # Errors
    /// For the other types.
    pub fn tensor(&self) -> Result<Tensor, CheckpointError> {
        let dtype = self.kind.data_type().ok_or_else(|| {
            let text = format!("type {} is no type of single elements", self.kind);
            self.blame(CheckpointError::unsupported(text))
        })?;
        self.shared(dtype, &self.shape)
    }

    /// The bytes as a tensor of `UINT8`, one row for each row of the tensor; shared.
    ///
    /// # Errors
    /// Fails when the tensor has no axis.
    pub fn raw(&self) -> Result<Tensor, CheckpointError> {
        let mut shape = self.shape.clone();
        let row_bytes = shape.last().and_then(|&columns| self.kind.row_bytes(columns));
        let (Some(last), Some(row_bytes)) = (shape.last_mut(), row_bytes) else {
            return Err(self.blame(CheckpointError::unsupported("a tensor without rows")));
        };
        *last = row_bytes;
        self.shared(DataType::Uint8, &shape)
    }

    /// Codes, scales and offsets, for types of few bits. The bytes are shared.
    ///
    /// # Errors
    /// For types of single elements, and those that are known by name only.
    pub fn blocks(&self) -> Result<BlockMatrix, CheckpointError> {
        BlockMatrix::of_ggml(self.kind, &self.shape, self.bytes.clone())
            .map_err(|error| self.blame(error))
    }

    /// Computes the numbers of a row of any type of floats or codes, exactly; F64 is rounded.
    ///
    /// Shapes: `out` has as many elements as the last axis.
    ///
    /// # Errors
    /// Fails when there is no such row, the slice has another length, or the type is one of
    /// integers or known by name only.
    pub fn dequantize_row(&self, row: usize, out: &mut [f32]) -> Result<(), CheckpointError> {
        let Some(dtype) = self.kind.data_type() else {
            let blocks = self.blocks()?;
            return blocks.dequantize_row(row, out).map_err(|error| self.blame(error));
        };
        let columns = self.shape.last().copied().unwrap_or(1);
        let row_bytes = self.kind.row_bytes(columns).filter(|_| out.len() == columns);
        let start = row_bytes.and_then(|len| row.checked_mul(len));
        let window = row_bytes.zip(start);
        let bytes = window.and_then(|(len, start)| self.bytes.get(start..)?.get(..len));
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty() || columns == 0) else {
            let text = format!("no row {row} of {} numbers in shape {:?}", out.len(), self.shape);
            return Err(self.blame(CheckpointError::missing(text)));
        };
        match dtype {
            DataType::Fp32 => convert(bytes, out, f32::from_le_bytes),
            DataType::Fp16 => convert(bytes, out, |half| f16::from_le_bytes(half).to_f32()),
            DataType::Bf16 => convert(bytes, out, |half| bf16::from_le_bytes(half).to_f32()),
            DataType::Fp64 => convert(bytes, out, |whole| rounded(f64::from_le_bytes(whole))),
            _ => {
                let text = format!("type {} is one of integers", self.kind);
                return Err(self.blame(CheckpointError::unsupported(text)));
            }
        }
        Ok(())
    }

    fn shared(&self, dtype: DataType, shape: &[usize]) -> Result<Tensor, CheckpointError> {
        let memory = Arc::clone(&self.memory);
        Tensor::from_allocation_lazily(dtype, shape, memory, self.window.start)
            .map_err(|error| self.blame(CheckpointError::invalid(error.to_string())))
    }

    fn blame(&self, error: CheckpointError) -> CheckpointError {
        error.at(format_args!("tensor '{}'", self.name))
    }
}

/// The numbers that elements of `N` bytes stand for.
fn convert<const N: usize>(bytes: &[u8], out: &mut [f32], number: impl Fn([u8; N]) -> f32) {
    for (out, &element) in out.iter_mut().zip(bytes.as_chunks().0) {
        *out = number(element);
    }
}

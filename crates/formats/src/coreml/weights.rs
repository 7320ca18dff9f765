//! The file of weights of a package: blob file format, version 2.
//!
//! A header of 64 bytes (count of blobs, version), then for each blob a description of 64 bytes at a
//! multiple of 64 (mark, type, bytes, offset of the data, bits that fill the last byte) and its data.
//! Everything is little-endian. Source: `MILBlob/Blob` of coremltools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_tensor::{Allocation, MappedFile, Tensor, checked_elements};

use super::error::CoreMlError;
use super::mil::MilElement;

/// Bytes of the header, of each description, and the alignment of all of them.
pub(super) const UNIT: usize = 64;
/// The first word of a description.
pub(super) const MARK: u32 = 0xDEAD_BEEF;
/// The version that is read and written.
pub(super) const VERSION: u32 = 2;

/// The number of each type of elements in a file.
pub(super) const TYPES: &[(u32, MilElement)] = &[
    (1, MilElement::Fp16),
    (2, MilElement::Fp32),
    (3, MilElement::Uint8),
    (4, MilElement::Int8),
    (5, MilElement::Bf16),
    (6, MilElement::Int16),
    (7, MilElement::Uint16),
    (8, MilElement::Int4),
    (9, MilElement::Uint1),
    (10, MilElement::Uint2),
    (11, MilElement::Uint4),
    (12, MilElement::Uint3),
    (13, MilElement::Uint6),
    (14, MilElement::Int32),
    (15, MilElement::Uint32),
    (16, MilElement::Float8E4M3Fn),
    (17, MilElement::Float8E5M2),
];

/// A package's files of weights, mapped when they are first needed.
#[derive(Debug)]
pub(super) struct WeightFiles {
    /// The folder that `@model_path` stands for; a model in memory has none.
    folder: Option<PathBuf>,
    files: Vec<(String, Arc<MappedFile>)>,
}

/// A blob: its type and bytes.
struct WeightBlob {
    element: MilElement,
    offset_bytes: usize,
    len_bytes: usize,
    /// Bits behind the last element.
    padding_bits: usize,
}

impl WeightFiles {
    /// Weights in files below a folder.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_owned), files: Vec::new() }
    }

    /// The mapped files and where they are.
    pub(super) fn into_files(self) -> Vec<(PathBuf, Arc<MappedFile>)> {
        let folder = self.folder.unwrap_or_default();
        self.files.into_iter().map(|(name, memory)| (folder.join(name), memory)).collect()
    }

    /// The constant whose description is at an offset of a file. Elements of whole bytes share the
    /// mapped file.
    ///
    /// # Errors
    /// Fails when there is no such file or blob, or its type or size are not those that the program
    /// says.
    pub(super) fn read(
        &mut self,
        file: &str,
        offset: u64,
        element: MilElement,
        shape: &[usize],
    ) -> Result<Tensor, CoreMlError> {
        let place = || format!("blob at {offset} of '{file}'");
        let memory = self.map(file).map_err(|error| error.at(place()))?;
        let blob = describe((*memory).as_ref(), offset).map_err(|error| error.at(place()))?;
        if blob.element != element {
            let text = format!("it holds {}, the program says {element}", blob.element);
            return Err(CoreMlError::invalid(text).at(place()));
        }
        let elements = checked_elements(shape)?;
        let bits = element.bits().saturating_mul(elements);
        let expected = bits.div_ceil(8);
        let padding = bits.next_multiple_of(8) - bits;
        if blob.len_bytes != expected || blob.padding_bits != padding {
            let text = format!(
                "{element}{shape:?} takes {expected} bytes without the last {padding} bits, found \
                 {} bytes without the last {} bits",
                blob.len_bytes, blob.padding_bits
            );
            return Err(CoreMlError::invalid(text).at(place()));
        }
        let dtype = element.stored_as();
        if element.bits() >= 8 {
            let memory: Arc<dyn Allocation> = memory;
            return Ok(Tensor::from_allocation_lazily(dtype, shape, memory, blob.offset_bytes)?);
        }
        let end = blob.offset_bytes + blob.len_bytes;
        let all: &[u8] = (*memory).as_ref();
        let bytes = all.get(blob.offset_bytes..end).unwrap_or(&[]);
        Ok(Tensor::from_bytes(dtype, shape, &element.unpack(bytes, elements))?)
    }

    fn map(&mut self, file: &str) -> Result<Arc<MappedFile>, CoreMlError> {
        // A path outside the package is none that Core ML takes.
        let name = file.strip_prefix("@model_path/").unwrap_or(file);
        let plain =
            |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
        if name.is_empty() || !Path::new(name).components().all(plain) {
            return Err(CoreMlError::invalid("the file is not below '@model_path'"));
        }
        if let Some((_, found)) = self.files.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(found));
        }
        let Some(folder) = &self.folder else {
            return Err(CoreMlError::invalid("the model has no folder with files of weights"));
        };
        let memory = map_file(&folder.join(name))?;
        self.files.push((name.to_owned(), Arc::clone(&memory)));
        Ok(memory)
    }
}

/// Maps a plain file.
pub(super) fn map_file(path: &Path) -> Result<Arc<MappedFile>, CoreMlError> {
    let shown = path.display();
    match path.metadata() {
        Err(error) => Err(CoreMlError::file(format!("{shown} cannot be read: {error}"))),
        Ok(found) if !found.is_file() => {
            Err(CoreMlError::file(format!("{shown} is not a plain file")))
        }
        Ok(_) => MappedFile::open(path)
            .map(Arc::new)
            .map_err(|error| CoreMlError::file(format!("{shown}: {error}"))),
    }
}

/// A little-endian number of `N` bytes at an offset.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads the description of a blob.
fn describe(bytes: &[u8], offset: u64) -> Result<WeightBlob, CoreMlError> {
    let total = bytes.len();
    let short =
        || CoreMlError::invalid(format!("the file ends at byte {total}, before the blob does"));
    let version = field(bytes, 4).map(u32::from_le_bytes).ok_or_else(short)?;
    if version != VERSION {
        let text = format!("the file has version {version}, expected {VERSION}");
        return Err(CoreMlError::unsupported(text));
    }
    let start = usize::try_from(offset).map_err(|_| short())?;
    if start < UNIT || !start.is_multiple_of(UNIT) {
        let text = format!("blobs are described at multiples of {UNIT} bytes behind the header");
        return Err(CoreMlError::invalid(text));
    }
    let word = |at: usize| field(bytes, start.checked_add(at)?).map(u32::from_le_bytes);
    let long = |at: usize| -> Option<usize> {
        usize::try_from(field(bytes, start.checked_add(at)?).map(u64::from_le_bytes)?).ok()
    };
    let mark = word(0).ok_or_else(short)?;
    if mark != MARK {
        let text = format!("it starts with {mark:#010x}, expected {MARK:#010x}");
        return Err(CoreMlError::invalid(text));
    }
    let number = word(4).ok_or_else(short)?;
    let Some(&(_, element)) = TYPES.iter().find(|(known, _)| *known == number) else {
        return Err(CoreMlError::invalid(format!("there is no type of elements {number}")));
    };
    let size = || Some((long(8)?, long(16)?, long(24)?));
    let (len_bytes, offset_bytes, padding_bits) = size().ok_or_else(short)?;
    match offset_bytes.checked_add(len_bytes) {
        Some(end) if end <= total => {
            Ok(WeightBlob { element, offset_bytes, len_bytes, padding_bits })
        }
        _ => Err(CoreMlError::invalid(format!(
            "{len_bytes} bytes at {offset_bytes} are beyond the file's {total}"
        ))),
    }
}

//! Archives of named arrays: ZIP files of `.npy` entries.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use galatea_tensor::Tensor;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{NpyError, NpyErrorKind, read_npy, write_npy};

/// Deflate cannot shrink data more than this; an entry that claims so is not what it says.
///
/// Source: a match of 258 bytes takes at least 2 bits.
const MAX_RATIO: u64 = 1032;
/// Room for the end of a stream in that estimate.
const RATIO_SLACK: u64 = 1 << 16;
/// From this size on an entry needs the 64-bit form.
const LARGE_BYTES: usize = 0xFFFF_0000;

/// Reads an `.npz` file: names and arrays in the archive's order.
///
/// # Errors
/// Fails when the file cannot be read or is damaged, or an array cannot be read; the error names
/// the file and the array.
pub fn read_npz(path: &Path) -> Result<Vec<(String, Tensor)>, NpyError> {
    let place = path.display().to_string();
    let read = || {
        let file = File::open(path).map_err(|error| cannot("read", &error))?;
        read_npz_from(BufReader::new(file))
    };
    read().map_err(|error| error.at(&place))
}

/// Reads an `.npz` archive from an open file or from memory.
///
/// # Errors
/// Fails like [`read_npz`].
pub fn read_npz_from(source: impl Read + Seek) -> Result<Vec<(String, Tensor)>, NpyError> {
    let mut archive = ZipArchive::new(source)
        .map_err(|error| NpyError::invalid(format!("not an .npz archive: {error}")))?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let entry = archive
            .by_index(index)
            .map_err(|error| NpyError::invalid(format!("entry {index}: {error}")))?;
        let file = entry
            .name()
            .map_err(|error| NpyError::invalid(format!("entry {index}: {error}")))?
            .into_owned();
        let Some(name) = file.strip_suffix(".npy") else {
            let text = format!("entry '{file}' is no array: its name does not end in '.npy'");
            return Err(NpyError::invalid(text));
        };
        let tensor = read_entry(entry).map_err(|error| error.at(&format!("array '{name}'")))?;
        arrays.push((name.to_owned(), tensor));
    }
    Ok(arrays)
}

fn read_entry<R: Read>(entry: zip::read::ZipFile<'_, R>) -> Result<Tensor, NpyError> {
    let size = entry.size();
    let limit = entry.compressed_size().saturating_mul(MAX_RATIO).saturating_add(RATIO_SLACK);
    let claimed = usize::try_from(size).ok().filter(|_| size <= limit).ok_or_else(|| {
        NpyError::invalid(format!(
            "{} compressed bytes cannot hold the {size} that the archive claims",
            entry.compressed_size()
        ))
    })?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(claimed)
        .map_err(|_| NpyError::invalid(format!("{claimed} bytes are more than fits in memory")))?;
    entry
        .take(size.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| NpyError::invalid(format!("the data is damaged: {error}")))?;
    if bytes.len() != claimed {
        let text = format!("the archive claims {claimed} bytes, found {}", bytes.len());
        return Err(NpyError::invalid(text));
    }
    read_npy(&bytes)
}

/// Writes an `.npz` file without compression, as `numpy.savez` does.
///
/// # Errors
/// Fails when writing fails or two arrays have one name; the error names the file and the array.
pub fn write_npz<'a>(
    path: &Path,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), NpyError> {
    let place = path.display().to_string();
    let write = || {
        let file = File::create(path).map_err(|error| cannot("write", &error))?;
        write_npz_to(BufWriter::new(file), arrays)
    };
    write().map_err(|error: NpyError| error.at(&place))
}

/// Writes an `.npz` archive to an open file or to memory.
///
/// # Errors
/// Fails like [`write_npz`].
pub fn write_npz_to<'a>(
    target: impl Write + Seek,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), NpyError> {
    let mut archive = ZipWriter::new(target);
    for (name, tensor) in arrays {
        let large = tensor.size_bytes() >= LARGE_BYTES / 4;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(large);
        let failed = |error: &dyn std::fmt::Display| cannot("write", error);
        archive
            .start_file(format!("{name}.npy"), options)
            .map_err(|error| failed(&error).at(&format!("array '{name}'")))?;
        write_npy(tensor, &mut archive).map_err(|error| error.at(&format!("array '{name}'")))?;
    }
    let mut target = archive.finish().map_err(|error| cannot("write", &error))?;
    target.flush()?;
    Ok(())
}

fn cannot(what: &str, error: &dyn std::fmt::Display) -> NpyError {
    NpyErrorKind::File(format!("cannot {what}: {error}")).into()
}

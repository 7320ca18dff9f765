//! NumPy's files: one array (`.npy`) and archives of named arrays (`.npz`).
//!
//! Every [`DataType`](galatea_tensor::DataType) has a form: `BF16` is the two-byte `V2` that
//! `ml_dtypes` writes, `BYTES` is NumPy's fixed-width text (`U`) or bytes (`S`). Reading accepts
//! either byte order, either memory order and compressed archives; memory stays proportional to the
//! file. Source: NumPy's `numpy.lib.format`, versions 1.0 to 3.0.

mod archive;
mod elements;
mod header;

use std::fmt;
use std::io::Write;

use galatea_tensor::{Tensor, TensorError, checked_elements};

pub use archive::{read_npz, read_npz_from, write_npz, write_npz_to};
use elements::NpyDescr;
use header::NpyHeader;

/// Kind of an error of an array file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NpyErrorKind {
    /// A file cannot be read or written.
    File(String),
    /// The bytes are no array or archive of NumPy.
    Invalid(String),
    /// An array of a type that has no tensor form.
    Unsupported(String),
}

/// An error of a NumPy file: what, and in which array of which file where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyError {
    kind: NpyErrorKind,
    place: Option<String>,
}

impl NpyError {
    fn invalid(text: impl Into<String>) -> Self {
        NpyErrorKind::Invalid(text.into()).into()
    }

    fn unsupported(text: impl Into<String>) -> Self {
        NpyErrorKind::Unsupported(text.into()).into()
    }

    fn at(self, place: &str) -> Self {
        let place = match self.place {
            Some(inner) => format!("{place}: {inner}"),
            None => place.to_owned(),
        };
        Self { kind: self.kind, place: Some(place) }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> &NpyErrorKind {
        &self.kind
    }
}

impl From<NpyErrorKind> for NpyError {
    fn from(kind: NpyErrorKind) -> Self {
        Self { kind, place: None }
    }
}

impl From<TensorError> for NpyError {
    fn from(error: TensorError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<std::io::Error> for NpyError {
    fn from(error: std::io::Error) -> Self {
        NpyErrorKind::File(error.to_string()).into()
    }
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match &self.kind {
            NpyErrorKind::File(text)
            | NpyErrorKind::Invalid(text)
            | NpyErrorKind::Unsupported(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for NpyError {}

/// Reads the bytes of a `.npy` file.
///
/// # Errors
/// Fails when the header is damaged, the data is shorter or longer than the shape says, or the type
/// has no tensor form (complex numbers, dates, structures, pickled objects).
pub fn read_npy(bytes: &[u8]) -> Result<Tensor, NpyError> {
    let (header, data) = NpyHeader::parse(bytes)?;
    let descr = NpyDescr::parse(&header.descr)?;
    let elements = checked_elements(&header.shape)?;
    let expected = elements.checked_mul(descr.item_bytes());
    if expected != Some(data.len()) {
        return Err(NpyError::invalid(format!(
            "an array '{}' of shape {:?} takes {} bytes, found {}",
            header.descr,
            header.shape,
            expected.map_or("more".to_owned(), |bytes| bytes.to_string()),
            data.len()
        )));
    }
    if !header.fortran_order {
        return descr.decode(&header.shape, data);
    }
    let reversed: Vec<usize> = header.shape.iter().rev().copied().collect();
    let axes: Vec<usize> = (0..reversed.len()).rev().collect();
    Ok(descr.decode(&reversed, data)?.permute(&axes)?.contiguous()?)
}

/// Writes a tensor as a `.npy` file, version 1.0.
///
/// Strings become `U` when every one is UTF-8 without a NUL at its end, else `S`; NumPy drops the
/// NULs at the end of either.
///
/// # Errors
/// Fails when writing fails, or the fixed-width form of strings is larger than memory.
pub fn write_npy(tensor: &Tensor, mut to: impl Write) -> Result<(), NpyError> {
    let (descr, data) = elements::encode(tensor)?;
    to.write_all(&header::encode(&descr, tensor.shape()))?;
    to.write_all(&data)?;
    Ok(())
}

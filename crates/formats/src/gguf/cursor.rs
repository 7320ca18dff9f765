//! Reads the fields of a file one after the other; no length is believed before it is compared with
//! what is left.

use bytes::Bytes;

use crate::checkpoint::CheckpointError;

/// A place in the bytes of a file.
#[derive(Debug)]
pub(super) struct GgufCursor {
    bytes: Bytes,
    at: usize,
}

/// A number of the file, little end first.
macro_rules! number {
    ($name:ident, $kind:ty) => {
        pub(super) fn $name(&mut self) -> Result<$kind, CheckpointError> {
            self.array().map(<$kind>::from_le_bytes)
        }
    };
}

impl GgufCursor {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far the file is read.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// The bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((found, _)) = rest.split_first_chunk::<N>() else { return Err(self.cut(N)) };
        self.at = self.at.saturating_add(N);
        Ok(*found)
    }

    number!(u8, u8);
    number!(i8, i8);
    number!(u16, u16);
    number!(i16, i16);
    number!(u32, u32);
    number!(i32, i32);
    number!(u64, u64);
    number!(i64, i64);
    number!(f32, f32);
    number!(f64, f64);

    /// A count of things that take at least `least` bytes each.
    pub(super) fn count(&mut self, what: &str, least: usize) -> Result<usize, CheckpointError> {
        let at = self.at;
        let claimed = self.u64()?;
        let most = self.left().checked_div(least.max(1)).unwrap_or(0);
        usize::try_from(claimed).ok().filter(|&count| count <= most).ok_or_else(|| {
            let left = self.left();
            CheckpointError::invalid(format!("{claimed} {what}, but {left} bytes are left"))
                .at(format_args!("byte {at}"))
        })
    }

    /// The next bytes, not copied.
    pub(super) fn take(&mut self, len: usize) -> Result<Bytes, CheckpointError> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.cut(len))?;
        let found = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(found)
    }

    /// A string: its length and its bytes.
    pub(super) fn string(&mut self) -> Result<Bytes, CheckpointError> {
        let len = self.count("bytes of a string", 1)?;
        self.take(len)
    }

    /// Passes a string.
    pub(super) fn skip_string(&mut self) -> Result<(), CheckpointError> {
        let len = self.count("bytes of a string", 1)?;
        self.at = self.at.saturating_add(len);
        Ok(())
    }

    /// A string that names something.
    pub(super) fn name(&mut self, what: &str, most: usize) -> Result<String, CheckpointError> {
        let at = self.at;
        let place = |error: CheckpointError| error.at(format_args!("byte {at}"));
        let bytes = self.string()?;
        if bytes.is_empty() || bytes.len() > most {
            let text = format!("the {what} has {} bytes, expected 1 to {most}", bytes.len());
            return Err(place(CheckpointError::invalid(text)));
        }
        String::from_utf8(bytes.into()).map_err(|error| {
            place(CheckpointError::invalid(format!("the {what} is not valid UTF-8: {error}")))
        })
    }

    /// Returns the bytes that were read since a place.
    pub(super) fn since(&self, start: usize) -> Bytes {
        self.bytes.slice(start.min(self.at)..self.at)
    }

    fn cut(&self, wanted: usize) -> CheckpointError {
        let text = format!("{wanted} bytes are expected here, {} are left", self.left());
        CheckpointError::invalid(text).at(format_args!("byte {}", self.at))
    }
}

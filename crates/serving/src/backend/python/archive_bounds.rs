//! Limits for what the archive of an environment may make of memory and disk: a few kilobytes of it can name files of
//! exabytes, or have headers that never end.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// The most bytes of one entry's headers: long names, attributes, the map of a sparse file.
pub(super) const MAX_HEADER_BYTES: u64 = 1 << 20;
/// The most bytes behind the end of an archive, which tape blocks fill up.
pub(super) const MAX_REST_BYTES: u64 = 64 << 20;
/// The most entries of an archive.
const MAX_ENTRIES: usize = 1 << 20;
/// The most bytes of all paths of folders and links, which are kept until all is unpacked.
const MAX_PATH_BYTES: usize = 64 << 20;

/// Bytes that may still be read before the next file begins or the archive ends.
#[derive(Debug, Clone)]
pub(super) struct HeaderBudget(Rc<Cell<u64>>);

impl HeaderBudget {
    /// A budget of one entry's headers.
    pub(super) fn new() -> Self {
        Self(Rc::new(Cell::new(MAX_HEADER_BYTES)))
    }

    /// Allows this many bytes from now on.
    pub(super) fn allow(&self, bytes: u64) {
        self.0.set(bytes);
    }

    /// Returns `inner` as a reader that fails beyond the budget.
    pub(super) fn bound<R: Read>(&self, inner: R) -> BoundedHeaders<R> {
        BoundedHeaders { inner, budget: self.clone() }
    }
}

/// A reader that fails beyond a budget.
#[derive(Debug)]
pub(super) struct BoundedHeaders<R> {
    inner: R,
    budget: HeaderBudget,
}

impl<R: Read> Read for BoundedHeaders<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.0.get();
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let place = buffer.get_mut(..most).unwrap_or_default();
        if place.is_empty() {
            let text = format!("an entry has headers of more than {MAX_HEADER_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let count = self.inner.read(place)?;
        self.budget.0.set(left.saturating_sub(u64::try_from(count).unwrap_or(left)));
        Ok(count)
    }
}

/// Counts of what an archive may still make.
#[derive(Debug)]
pub(super) struct ArchiveBounds {
    disk_bytes: u64,
    /// Bytes that the disk had at first.
    free_bytes: u64,
    entries: usize,
    path_bytes: usize,
}

impl ArchiveBounds {
    /// Bounds of an archive that is unpacked into `folder`: what its disk has left.
    ///
    /// # Errors
    /// Fails where the system does not say how much that is.
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let found = rustix::fs::statvfs(folder)?;
        let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
        Ok(Self { disk_bytes: free_bytes, free_bytes, entries: 0, path_bytes: 0 })
    }

    /// Counts an entry and a path that is kept.
    ///
    /// # Errors
    /// Says which limit is passed, as what follows "the archive".
    pub(super) fn take_entry(&mut self, path: &Path) -> Result<(), String> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(format!("holds more than {MAX_ENTRIES} entries"));
        }
        self.path_bytes = self.path_bytes.saturating_add(path.as_os_str().len());
        if self.path_bytes > MAX_PATH_BYTES {
            return Err(format!("holds paths of more than {MAX_PATH_BYTES} bytes"));
        }
        Ok(())
    }

    /// Counts the bytes of a file before any is written.
    ///
    /// # Errors
    /// Says that the disk has less, as what follows "the archive".
    pub(super) fn take_file(&mut self, bytes: u64) -> Result<(), String> {
        let Some(left) = self.disk_bytes.checked_sub(bytes) else {
            let more = (self.free_bytes - self.disk_bytes).saturating_add(bytes);
            let free = self.free_bytes;
            return Err(format!("holds files of {more} bytes or more, where the disk has {free}"));
        };
        self.disk_bytes = left;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_end_where_the_budget_does_and_go_on_with_a_new_one() {
        let budget = HeaderBudget::new();
        let mut reader = budget.bound(io::repeat(7));
        budget.allow(3);
        let mut read = Vec::new();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert_eq!(read, [7; 3]);
        assert!(error.to_string().contains("headers of more than 1048576 bytes"), "{error}");
        budget.allow(2);
        reader.read_exact(&mut [0; 2]).unwrap();
    }

    #[test]
    fn entries_paths_and_files_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut bounds = ArchiveBounds::of(folder.path()).unwrap();
        assert!(bounds.free_bytes > 0);
        bounds.take_file(1).unwrap();
        let error = bounds.take_file(u64::MAX).unwrap_err();
        assert!(error.contains("where the disk has"), "{error}");
        let long = "p".repeat(MAX_PATH_BYTES / 2);
        bounds.take_entry(Path::new(&long)).unwrap();
        bounds.take_entry(Path::new(&long)).unwrap();
        assert!(bounds.take_entry(Path::new("p")).unwrap_err().contains("paths of more than"));
        let mut bounds = ArchiveBounds::of(folder.path()).unwrap();
        let found = (0..=MAX_ENTRIES).try_for_each(|_| bounds.take_entry(Path::new("")));
        assert!(found.unwrap_err().contains("more than 1048576 entries"));
    }
}

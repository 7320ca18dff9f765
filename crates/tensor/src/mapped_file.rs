//! Files whose bytes are memory.

use std::cell::RefCell;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::error::{TensorError, TensorErrorKind};
use crate::memory::{Allocation, MemoryKind};
use crate::page_faults::{GuardedRange, PageAccess};

/// Files of up to so many bytes are read into pages of their own: later writes to them change nothing here.
const MAX_COPIED_BYTES: u64 = 4 << 20;
/// Attempts to read a file that is being written.
const MAX_ATTEMPTS: usize = 3;

/// Properties of a file by which a change of its content is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Device and number of the file, which another file in its place does not have.
    identity: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    /// Takes the stamp of a file from its properties.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let identity = (0, 0);
        Self { identity, len: metadata.len(), modified: metadata.modified().ok() }
    }

    /// The same without the time.
    fn timeless(self) -> Self {
        Self { modified: None, ..self }
    }
}

/// State of a file that was mapped, or read for want of a map.
#[derive(Debug)]
struct MappedFileState {
    path: PathBuf,
    stamp: FileStamp,
    times: TimeMeaning,
    /// True while its bytes are those of the file: mapped, and not dropped yet.
    is_mapped: AtomicBool,
    /// True once a page of it was missing.
    broken: Arc<AtomicBool>,
}

/// Meaning of the time at which a file was modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeMeaning {
    /// It is when the content changed.
    Content,
    /// It is when the file was used.
    Use,
}

impl MappedFileState {
    /// Returns whether a stamp is that of the file when it was opened.
    fn is_same(&self, now: FileStamp) -> bool {
        match self.times {
            TimeMeaning::Content => now == self.stamp,
            TimeMeaning::Use => now.timeless() == self.stamp.timeless(),
        }
    }

    fn failed(&self, what: &str) -> TensorError {
        let text = format!("'{}' {what} while it is in use", self.path.display());
        TensorErrorKind::File(text).into()
    }

    fn check(&self) -> Result<(), TensorError> {
        if !self.is_mapped.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.broken.load(Ordering::Acquire) {
            return Err(self.failed("became shorter or could not be read"));
        }
        // A file that is gone or replaced by another one still has its bytes for whoever has mapped it.
        match std::fs::metadata(&self.path) {
            Ok(now) => {
                let now = FileStamp::of(&now);
                match now.identity != self.stamp.identity || self.is_same(now) {
                    true => Ok(()),
                    false => Err(self.failed("was written to")),
                }
            }
            Err(_) => Ok(()),
        }
    }
}

/// Files that were opened for one purpose, such as a model. It keeps no memory.
#[derive(Clone, Debug, Default)]
pub struct MappedFileSet(Vec<Arc<MappedFileState>>);

impl MappedFileSet {
    /// Checks that all files that are mapped still have the bytes that they had when they were mapped.
    ///
    /// # Errors
    /// Names the first that was written to or became shorter.
    pub fn check(&self) -> Result<(), TensorError> {
        self.0.iter().try_for_each(|file| file.check())
    }

    /// Adds the files of another set.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the files that the calling thread has opened so far for the purpose that [`collect_mapped_files`] was
    /// called for; none where nobody collects.
    #[must_use]
    pub fn opened_so_far() -> Self {
        OPENED.with_borrow(|all| all.last().cloned()).unwrap_or_default()
    }

    /// Checks that no file was written to since it was opened, whether it is mapped still or was only read.
    ///
    /// # Errors
    /// Names the first that was written to, became shorter or went away.
    pub fn check_unwritten(&self) -> Result<(), TensorError> {
        self.0.iter().try_for_each(|file| match std::fs::metadata(&file.path) {
            // A cache may drop its files at any time, and replaces them by others as a whole.
            _ if file.times == TimeMeaning::Use => file.check(),
            Ok(now) if file.is_same(FileStamp::of(&now)) => file.check(),
            _ => Err(file.failed("was written to or replaced")),
        })
    }
}

thread_local! {
    /// Files that this thread opens, for each purpose that it collects them for.
    static OPENED: RefCell<Vec<MappedFileSet>> = const { RefCell::new(Vec::new()) };
}

/// Calls a function and returns its result with the files that it opens on this thread as [`MappedFile`]s.
pub fn collect_mapped_files<T>(open: impl FnOnce() -> T) -> (T, MappedFileSet) {
    /// Takes the set away, also where the function panics.
    struct CollectedFiles;
    impl Drop for CollectedFiles {
        fn drop(&mut self) {
            OPENED.with_borrow_mut(|all| all.pop());
        }
    }
    OPENED.with_borrow_mut(|all| all.push(MappedFileSet::default()));
    let collecting = CollectedFiles;
    let result = open();
    let files = OPENED.with_borrow_mut(|all| all.last_mut().map(std::mem::take));
    drop(collecting);
    (result, files.unwrap_or_default())
}

/// The bytes of a file.
enum FileBytes {
    /// Pages of the file. The guard goes before the map.
    Mapped { guard: GuardedRange, map: memmap2::Mmap },
    /// A copy in pages of its own.
    Copied(memmap2::Mmap),
}

/// A file as read-only memory.
///
/// Small files are copied. Others are mapped: where somebody writes into such a file, its bytes change, and where
/// somebody makes it shorter, lost bytes read as zeros. [`MappedFile::check`] tells. Files that are replaced by
/// renaming keep their bytes.
pub struct MappedFile {
    bytes: FileBytes,
    metadata: Metadata,
    state: Arc<MappedFileState>,
}

impl MappedFile {
    /// Maps the whole file, or reads it if it is small.
    ///
    /// # Errors
    /// When the file cannot be opened, mapped or read, or somebody writes to it; the message names it.
    pub fn open(path: &Path) -> Result<Self, TensorError> {
        Self::open_as(path, TimeMeaning::Content)
    }

    /// Opens like [`MappedFile::open`] a file of a cache, whose time says when it was used last. A write that keeps
    /// its length is not seen.
    ///
    /// # Errors
    /// Fails where `open` does.
    pub fn open_cached(path: &Path) -> Result<Self, TensorError> {
        Self::open_as(path, TimeMeaning::Use)
    }

    fn open_as(path: &Path, times: TimeMeaning) -> Result<Self, TensorError> {
        let failed = |error: std::io::Error| {
            TensorError::from(TensorErrorKind::File(format!(
                "cannot read '{}': {error}",
                path.display()
            )))
        };
        let file = open_plain(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let small = metadata.len() <= MAX_COPIED_BYTES;
        let (bytes, metadata, broken) = if small {
            let (map, metadata) = copied(path, file, metadata).map_err(failed)?;
            (FileBytes::Copied(map), metadata, Arc::default())
        } else {
            // SAFETY: the map is read-only. Pages that the file loses are replaced by zeros, and whoever depends on
            // the bytes asks `check` for changes.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
            let broken = Arc::<AtomicBool>::default();
            let mark = Arc::clone(&broken);
            let guard = GuardedRange::new(map.as_ptr(), map.len(), PageAccess::Read, mark);
            (FileBytes::Mapped { guard, map }, metadata, broken)
        };
        let state = Arc::new(MappedFileState {
            path: path.to_owned(),
            stamp: FileStamp::of(&metadata),
            times,
            is_mapped: AtomicBool::new(matches!(bytes, FileBytes::Mapped { .. })),
            broken,
        });
        OPENED.with_borrow_mut(|all| {
            all.iter_mut().for_each(|files| files.0.push(Arc::clone(&state)));
        });
        Ok(Self { bytes, metadata, state })
    }

    /// Checks that the file still has the bytes that it had when it was mapped.
    ///
    /// # Errors
    /// Says that it was written to or became shorter.
    pub fn check(&self) -> Result<(), TensorError> {
        self.state.check()
    }

    fn map(&self) -> &memmap2::Mmap {
        match &self.bytes {
            FileBytes::Mapped { map, .. } | FileBytes::Copied(map) => map,
        }
    }

    /// Gives the memory that holds parts of the file back to the system; whoever reads them again, reads
    /// the file. Where the system does not do that, nothing happens.
    pub fn release(&self) {
        #[cfg(unix)]
        if let FileBytes::Mapped { guard, map } = &self.bytes
            && !guard.is_broken()
        {
            // SAFETY: the map is read-only and shared with nobody's writes, so what is read after the
            // advice is what the file has, as before.
            let advised = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            // Without it the memory is only held longer.
            drop(advised);
        }
    }

    /// Properties of the file when it was mapped, as the system said.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// Reads a plain file as a whole. Anything else is refused, such as a pipe, which would wait for a writer, or a device,
/// which never ends.
///
/// # Errors
/// When the file cannot be read, is no plain one, or there is no memory for it.
pub fn read_plain_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = open_plain(path)?;
    let len = usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(std::io::Error::other)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text as [`read_plain_file`] does.
///
/// # Errors
/// Fails where `read_plain_file` does, and when the bytes are no UTF-8.
pub fn read_plain_text(path: &Path) -> std::io::Result<String> {
    let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    String::from_utf8(read_plain_file(path)?).map_err(invalid)
}

/// Opens a plain file. Anything else is refused, such as a pipe, which would wait for a writer.
fn open_plain(path: &Path) -> std::io::Result<File> {
    let check = |metadata: &Metadata| match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(std::io::Error::from(std::io::ErrorKind::IsADirectory)),
        false => Err(std::io::Error::other("it is no plain file")),
    };
    check(&std::fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // What has taken its place meanwhile does not wait either.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a small file into pages of its own, again where somebody has written to it meanwhile.
fn copied(
    path: &Path,
    mut file: File,
    mut metadata: Metadata,
) -> std::io::Result<(memmap2::Mmap, Metadata)> {
    for _ in 0..MAX_ATTEMPTS {
        let len = usize::try_from(metadata.len()).map_err(std::io::Error::other)?;
        let mut copy = memmap2::MmapMut::map_anon(len)?;
        let read = file.read_exact(&mut copy);
        let after = file.metadata()?;
        if FileStamp::of(&after) == FileStamp::of(&metadata) {
            read?;
            return Ok((copy.make_read_only()?, metadata));
        }
        file = open_plain(path)?;
        metadata = file.metadata()?;
        if metadata.len() > MAX_COPIED_BYTES {
            break;
        }
    }
    let text = "somebody writes to it at the moment";
    Err(std::io::Error::new(std::io::ErrorKind::ResourceBusy, text))
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.state.is_mapped.store(false, Ordering::Release);
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self.map()
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFile({} bytes)", self.map().len())
    }
}

// SAFETY: the mapping is read-only, stays where it is and lives as long as the value.
unsafe impl Allocation for MappedFile {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.map().as_ptr())
    }
    fn len_bytes(&self) -> usize {
        self.map().len()
    }
    fn is_mapped(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    /// Bytes of a file that is mapped.
    const LARGE: usize = (4 << 20) + 8192;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = MappedFile::open(Path::new("/nowhere/model.onnx")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/model.onnx"));
    }

    #[test]
    fn pipes_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(MappedFile::open(folder.path()).is_err());
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let error = MappedFile::open(&pipe).unwrap_err().to_string();
        assert!(error.contains("it is no plain file"), "{error}");
        assert!(read_plain_file(&pipe).is_err() && read_plain_text(&pipe).is_err());
        assert!(read_plain_file(Path::new("/dev/zero")).is_err());
        let text = folder.path().join("text");
        fs::write(&text, "abc").unwrap();
        assert_eq!(read_plain_text(&text).unwrap(), "abc");
        fs::write(&text, [0xff]).unwrap();
        assert_eq!(read_plain_text(&text).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    }

    #[test]
    fn small_files_keep_their_bytes_whatever_becomes_of_them() {
        for bytes in [&b""[..], b"abc", &[7; 100_000]] {
            let file = file(bytes);
            let mapped = MappedFile::open(file.path()).unwrap();
            fs::write(file.path(), b"other").unwrap();
            mapped.release();
            assert_eq!(mapped.as_ref(), bytes);
            mapped.check().unwrap();
        }
    }

    #[test]
    fn a_large_file_that_shrinks_is_broken_and_nothing_ends() {
        let file = file(&vec![1; LARGE]);
        let mapped = MappedFile::open(file.path()).unwrap();
        mapped.check().unwrap();
        fs::OpenOptions::new().write(true).open(file.path()).unwrap().set_len(4096).unwrap();
        let error = mapped.check().unwrap_err().to_string();
        assert!(error.contains("was written to while it is in use"), "{error}");
        let sum: usize = mapped.as_ref().iter().map(|&byte| usize::from(byte)).sum();
        assert_eq!(sum, 4096);
        let error = mapped.check().unwrap_err().to_string();
        assert!(error.contains("became shorter"), "{error}");
        mapped.release();
        assert_eq!(mapped.as_ref()[LARGE - 1], 0);
    }

    #[test]
    fn a_cached_file_may_be_marked_as_used_but_not_cut() {
        let file = file(&vec![1; LARGE]);
        let mapped = MappedFile::open_cached(file.path()).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        file.as_file().set_modified(later).unwrap();
        mapped.check().unwrap();
        file.as_file().set_len(5000).unwrap();
        assert!(mapped.check().is_err());
    }

    #[test]
    fn sets_tell_of_files_that_are_written_to_but_not_of_those_that_are_replaced_or_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        fs::write(&path, vec![1; LARGE]).unwrap();
        let (mapped, files) = collect_mapped_files(|| MappedFile::open(&path).unwrap());
        files.check().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, vec![2; LARGE]).unwrap();
        fs::rename(&other, &path).unwrap();
        files.check().unwrap();
        assert_eq!(mapped.as_ref()[LARGE - 1], 1);
        let (again, files) = collect_mapped_files(|| {
            let (mapped, inner) = collect_mapped_files(|| MappedFile::open(&path).unwrap());
            assert_eq!(inner.0.len(), 1);
            assert_eq!(MappedFileSet::opened_so_far().0.len(), 1);
            mapped
        });
        let rewritten = || {
            let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all(&[3; 4096]).unwrap();
            file.set_modified(SystemTime::now() + std::time::Duration::from_secs(1)).unwrap();
        };
        files.check_unwritten().unwrap();
        rewritten();
        assert!(files.check().is_err());
        drop(again);
        files.check().unwrap();
        assert!(files.check_unwritten().is_err());
        assert!(MappedFileSet::opened_so_far().0.is_empty());
    }
}

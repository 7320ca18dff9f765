//! Memory that other processes share by a name: POSIX shared memory.

use std::fs::File;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::Mode;
use rustix::shm::OFlags;

use crate::error::{TensorError, TensorErrorKind};
use crate::page_faults::{GuardedRange, PageAccess};

/// Longest name that macOS accepts, its slash included; longer ones cannot exist there.
#[cfg(target_os = "macos")]
const MAX_KEY_BYTES: usize = 31;
#[cfg(not(target_os = "macos"))]
const MAX_KEY_BYTES: usize = 255;

/// A part of a shared memory object that another process made.
///
/// Others may write to it at any time. So its bytes are only ever copied in and out and never borrowed; a copy that is
/// made while somebody writes holds some of the old and some of the new bytes. Once its owner makes the object shorter
/// and lost bytes are read or written, all further reads and writes of the region fail.
#[derive(Debug)]
pub struct SharedRegion {
    /// Guard of the map, which goes before it.
    guard: GuardedRange,
    map: MmapRaw,
    offset: usize,
    len: usize,
}

/// Why a region cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedRegionError {
    /// There is no object of this name that may be read and written.
    NotFound,
    /// The region is not inside the object.
    Outside,
    /// The system does not map it: it is empty, or does not begin at a page.
    NotMappable,
}

impl SharedRegion {
    /// Maps `len` bytes from `offset` on of the object called `key`.
    ///
    /// # Errors
    /// When there is no such object, the region is not inside it, is empty or does not begin at a page.
    pub fn open(key: &str, offset: u64, len: u64) -> Result<Self, SharedRegionError> {
        if key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(SharedRegionError::NotFound);
        }
        let object = rustix::shm::open(key, open_flags(), Mode::empty())
            .map_err(|_| SharedRegionError::NotFound)?;
        let object = File::from(object);
        let metadata = object.metadata().map_err(|_| SharedRegionError::NotFound)?;
        // On Linux an object is a plain file. Pipes and sockets may lie beside it.
        if cfg!(target_os = "linux") && !metadata.is_file() {
            return Err(SharedRegionError::NotFound);
        }
        let size = metadata.len();
        let end = offset.checked_add(len).filter(|&end| end <= size);
        let end = end.ok_or(SharedRegionError::Outside)?;
        let page = rustix::param::page_size() as u64;
        if len == 0 || !offset.is_multiple_of(page) {
            return Err(SharedRegionError::NotMappable);
        }
        let sizes = (usize::try_from(offset), usize::try_from(len), usize::try_from(end));
        let (Ok(offset), Ok(len), Ok(end)) = sizes else { return Err(SharedRegionError::Outside) };
        let map = MmapOptions::new()
            .len(end)
            .map_raw(&object)
            .map_err(|_| SharedRegionError::NotMappable)?;
        let guard = GuardedRange::new(map.as_ptr(), end, PageAccess::Write, Arc::default());
        Ok(Self { guard, map, offset, len })
    }

    /// Checks that the owner has not taken bytes away.
    fn check(&self) -> Result<(), TensorError> {
        if !self.guard.is_broken() {
            return Ok(());
        }
        let text = "a shared memory region became shorter while it is in use".to_owned();
        Err(TensorErrorKind::File(text).into())
    }

    /// Bytes of the region.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len
    }

    fn place(&self, at: usize, len: usize) -> Result<usize, TensorError> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(TensorErrorKind::TooLarge(vec![at, len]).into());
        }
        Ok(self.offset + at)
    }

    /// A copy of `len` bytes from `at` on.
    ///
    /// # Errors
    /// When they are not inside the region, it has lost some of its bytes, or there is no memory for the copy.
    pub fn read(&self, at: usize, len: usize) -> Result<Vec<u8>, TensorError> {
        let start = self.place(at, len)?;
        self.check()?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(len).map_err(|_| TensorErrorKind::TooLarge(vec![len]))?;
        // SAFETY: `place` has seen to it that the map is valid for reads of `len` bytes from `start` on.
        let from = unsafe { self.map.as_ptr().add(start) };
        // SAFETY: the new memory holds `len` bytes and overlaps nothing; bytes of any value are initialised. What
        // other processes write meanwhile is outside of this program and can at most mix old and new bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), len) }
        // SAFETY: `len` bytes have just been written.
        unsafe { copy.set_len(len) }
        self.check()?;
        Ok(copy)
    }

    /// Copies bytes into the region from `at` on.
    ///
    /// # Errors
    /// When they do not fit into the region, and nothing is written then; also when the region has lost some of its
    /// bytes.
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), TensorError> {
        let start = self.place(at, bytes.len())?;
        self.check()?;
        // SAFETY: `place` has seen to it that the map is valid for writes of these bytes from `start` on.
        let to = unsafe { self.map.as_mut_ptr().add(start) };
        // SAFETY: nobody in this program holds a reference into the map, so that `bytes` does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
        self.check()
    }
}

/// Flags by which objects of others are opened: for reading and writing, and on Linux not through a link that lies in
/// the folder of objects, since it may lead anywhere.
pub(crate) fn open_flags() -> OFlags {
    #[cfg(target_os = "linux")]
    return OFlags::RDWR | OFlags::from_bits_retain(rustix::fs::OFlags::NOFOLLOW.bits());
    #[cfg(not(target_os = "linux"))]
    OFlags::RDWR
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object that goes when it is dropped.
    struct Object(String);

    impl Object {
        fn new(name: &str, bytes: u64) -> Self {
            let key = format!("/gtest_{name}_{}", std::process::id() % 100_000);
            let flags = OFlags::RDWR | OFlags::CREATE;
            let file = rustix::shm::open(&*key, flags, Mode::RUSR | Mode::WUSR).unwrap();
            File::from(file).set_len(bytes).unwrap();
            Self(key)
        }
    }

    impl Drop for Object {
        fn drop(&mut self) {
            rustix::shm::unlink(&*self.0).ok();
        }
    }

    #[test]
    fn two_maps_of_an_object_see_the_same_bytes() {
        let page = rustix::param::page_size() as u64;
        let object = Object::new("same", page + 64);
        let whole = SharedRegion::open(&object.0, 0, page + 64).unwrap();
        let part = SharedRegion::open(&object.0, page, 64).unwrap();
        part.write(8, b"abc").unwrap();
        let at = usize::try_from(page).unwrap() + 8;
        assert_eq!(whole.read(at, 3).unwrap(), b"abc");
        assert!(part.read(62, 3).is_err() && part.write(64, b"x").is_err());
        assert!(part.read(usize::MAX, 2).is_err());
        assert_eq!(part.read(64, 0).unwrap(), b"");
    }

    #[test]
    fn bytes_that_the_owner_takes_away_are_errors_and_end_nothing() {
        let page = rustix::param::page_size() as u64;
        let object = Object::new("shrinks", 4 * page);
        let region = SharedRegion::open(&object.0, 0, 4 * page).unwrap();
        let written = SharedRegion::open(&object.0, 0, 4 * page).unwrap();
        let file = File::from(rustix::shm::open(&*object.0, OFlags::RDWR, Mode::empty()).unwrap());
        file.set_len(page).unwrap();
        let last = usize::try_from(3 * page).unwrap();
        let error = region.read(last, 8).unwrap_err().to_string();
        assert!(error.contains("became shorter"), "{error}");
        assert!(region.read(0, 8).is_err());
        assert!(written.write(last, b"abc").is_err());
        assert!(written.write(0, b"abc").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_and_pipes_among_the_objects_are_refused() {
        let target = tempfile::NamedTempFile::new().unwrap();
        target.as_file().set_len(64).unwrap();
        let name = format!("gtest_link_{}", std::process::id());
        let link = std::path::Path::new("/dev/shm").join(&name);
        std::os::unix::fs::symlink(target.path(), &link).unwrap();
        let opened = SharedRegion::open(&format!("/{name}"), 0, 64);
        std::fs::remove_file(&link).unwrap();
        assert_eq!(opened.unwrap_err(), SharedRegionError::NotFound);
        let made = std::process::Command::new("mkfifo").arg(&link).status().unwrap();
        let opened = SharedRegion::open(&format!("/{name}"), 0, 64);
        std::fs::remove_file(&link).unwrap();
        assert!(made.success());
        assert_eq!(opened.unwrap_err(), SharedRegionError::NotFound);
    }

    #[test]
    fn what_is_not_there_or_not_inside_is_told_apart() {
        let object = Object::new("apart", 128);
        let open = |key: &str, offset, len| SharedRegion::open(key, offset, len).unwrap_err();
        assert_eq!(open("/gtest_no_such_object", 0, 1), SharedRegionError::NotFound);
        assert_eq!(open("/a\0b", 0, 1), SharedRegionError::NotFound);
        assert_eq!(open(&object.0, 0, 1 << 30), SharedRegionError::Outside);
        assert_eq!(open(&object.0, u64::MAX, 2), SharedRegionError::Outside);
        assert_eq!(open(&object.0, 0, 0), SharedRegionError::NotMappable);
        assert_eq!(open(&object.0, 64, 8), SharedRegionError::NotMappable);
    }
}

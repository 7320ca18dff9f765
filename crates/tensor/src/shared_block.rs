//! Memory that a process shares with a child of its own program.

use std::any::Any;
use std::fs::File;
use std::io;
use std::slice;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::Mode;
use rustix::shm::OFlags;

use crate::error::TensorError;
use crate::memory::{Allocation, MemoryKind};
use crate::page_faults::{GuardedRange, PageAccess};
use crate::shared_region::open_flags;

/// A shared memory object that one process makes and another one opens.
///
/// Both must be parts of one program that agree who has the block: as long as a process reads it, nobody
/// writes to it, and whoever writes is the only one to have it. Blocks are no place for what strangers
/// write; [`crate::SharedRegion`] is.
///
/// Should the other process make the block shorter all the same, what is lost reads as zeros.
#[derive(Debug)]
pub struct SharedBlock {
    /// Guard of the map, which goes before it.
    _guard: GuardedRange,
    map: MmapRaw,
    number: u64,
}

impl SharedBlock {
    /// Makes an object of zeros under a name that is not taken yet, readable by this user only. The name
    /// begins with a slash, has at most 31 bytes and stays until [`SharedBlock::unlink`]; the memory stays
    /// until the last process that has opened it lets go. `number` is what its owner knows it by.
    ///
    /// # Errors
    /// When the name is taken, there is no room, or the system does not map it.
    pub fn create(name: &str, len: usize, number: u64) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = File::from(rustix::shm::open(name, flags, Mode::RUSR | Mode::WUSR)?);
        let made = sized(&file, len.max(1)).and_then(|()| Self::map(&file, len, number));
        if made.is_err() {
            Self::unlink(name);
        }
        made
    }

    /// Opens an object that the other process has made with `len` bytes.
    ///
    /// # Errors
    /// When there is none of that name, it has fewer bytes, or the system does not map it.
    pub fn open(name: &str, len: usize, number: u64) -> io::Result<Self> {
        let file = File::from(rustix::shm::open(name, open_flags(), Mode::empty())?);
        let found = file.metadata()?.len();
        if found < len as u64 {
            let text = format!("shared memory '{name}' has {found} bytes, expected {len}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Self::map(&file, len, number)
    }

    /// Takes the name away; whoever has the memory keeps it. A name that is not there is no error.
    pub fn unlink(name: &str) {
        // Gone is gone, whoever removed it.
        let _ = rustix::shm::unlink(name);
    }

    fn map(file: &File, len: usize, number: u64) -> io::Result<Self> {
        let map = MmapOptions::new().len(len.max(1)).map_raw(file)?;
        let access = PageAccess::Write;
        let guard = GuardedRange::new(map.as_ptr(), map.len(), access, Arc::default());
        Ok(Self { _guard: guard, map, number })
    }

    /// Name that its owner knows it by.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The bytes, writable.
    #[must_use]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the map is valid for so many bytes, all of them initialised; `&mut self` keeps this
        // process away, and the type's contract the other one.
        unsafe { slice::from_raw_parts_mut(self.map.as_mut_ptr(), self.map.len()) }
    }
}

/// Gives the object its size, and on Linux its memory: what a full file system cannot hold would end the
/// process when it is written to.
fn sized(file: &File, len: usize) -> io::Result<()> {
    file.set_len(len as u64)?;
    #[cfg(target_os = "linux")]
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len as u64)?;
    Ok(())
}

// SAFETY: the map stays where it is for as long as the value lives, and by the type's contract nobody
// writes to a block that is read; in this process that takes `&mut`.
unsafe impl Allocation for SharedBlock {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.map.as_ptr())
    }
    fn len_bytes(&self) -> usize {
        self.map.len()
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Tensor};

    fn name(what: &str) -> String {
        format!("/gtest_{what}_{}", std::process::id() % 100_000)
    }

    #[test]
    fn what_one_writes_the_other_reads_without_a_copy() {
        let name = name("block");
        let mut made = SharedBlock::create(&name, 100, 7).unwrap();
        assert_eq!(
            SharedBlock::create(&name, 1, 0).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert!(SharedBlock::open(&name, 1 << 30, 7).is_err());
        let opened: Arc<dyn Allocation> = Arc::new(SharedBlock::open(&name, 100, 7).unwrap());
        SharedBlock::unlink(&name);
        assert_eq!(SharedBlock::open(&name, 1, 7).unwrap_err().kind(), io::ErrorKind::NotFound);
        made.as_bytes_mut()[16..20].copy_from_slice(&5_i32.to_le_bytes());
        let tensor = Tensor::from_allocation(DataType::Int32, &[1], opened, 16).unwrap();
        assert_eq!(tensor.to_vec::<i32>().unwrap(), [5]);
        let (memory, offset) = tensor.memory().unwrap();
        let block = memory.as_any().and_then(|any| any.downcast_ref::<SharedBlock>()).unwrap();
        assert_eq!((block.number(), offset), (7, 16));
    }
}

//! Pools of memory that C fills and models read without a copy.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_tensor::{Allocation, MemoryKind, TensorError};

use crate::api_status::CallFailure;
use crate::caller::SizedStruct;

/// Alignment of buffers: a page of every Apple chip, so that a device may map them.
const BUFFER_ALIGNMENT: usize = 16 << 10;

/// Bytes that a pool keeps at most where nobody says otherwise.
const USUAL_KEPT_BYTES: usize = 256 << 20;

/// Statistics of an engine's pool of buffers.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolStatistics {
    /// `sizeof(galatea_pool_statistics)`, set by the caller.
    pub size: usize,
    /// Bytes of buffers that are in use.
    pub used_bytes: usize,
    /// Bytes of buffers that are kept for later ones.
    pub kept_bytes: usize,
    /// The most bytes that were in use at once.
    pub peak_bytes: usize,
    /// Buffers that were asked for.
    pub requests: u64,
    /// Number of them that found a kept one.
    pub reused: u64,
    /// The most bytes that are kept.
    pub limit_bytes: usize,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for PoolStatistics {}

/// A block of memory from the system.
#[derive(Debug)]
struct MemoryBlock {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is plain memory that it alone owns.
unsafe impl Send for MemoryBlock {}
// SAFETY: the block gives nothing but its address; who writes there is the caller's matter.
unsafe impl Sync for MemoryBlock {}

impl MemoryBlock {
    fn new(bytes: usize) -> Result<Self, CallFailure> {
        let none = || CallFailure::argument(format!("there is no memory for {bytes} bytes"));
        let layout = Layout::from_size_align(bytes, BUFFER_ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the size is not zero: classes begin with a page.
        let start = unsafe { alloc_zeroed(layout) };
        Ok(Self { start: NonNull::new(start).ok_or_else(none)?, layout })
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        // SAFETY: the block came from the allocator with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[derive(Debug, Default)]
struct CallerPoolState {
    kept: BTreeMap<usize, Vec<MemoryBlock>>,
    statistics: PoolStatistics,
}

/// Blocks of an engine, by classes of size.
#[derive(Debug)]
pub(crate) struct CallerBufferPool(Mutex<CallerPoolState>);

impl Default for CallerBufferPool {
    fn default() -> Self {
        let statistics = PoolStatistics { limit_bytes: USUAL_KEPT_BYTES, ..Default::default() };
        Self(Mutex::new(CallerPoolState { kept: BTreeMap::new(), statistics }))
    }
}

impl CallerBufferPool {
    fn state(&self) -> MutexGuard<'_, CallerPoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: usize) -> Result<MemoryBlock, CallFailure> {
        let class = bytes.max(BUFFER_ALIGNMENT).checked_next_power_of_two();
        let class =
            class.ok_or_else(|| CallFailure::argument(format!("{bytes} bytes are too many")))?;
        let mut state = self.state();
        let kept = state.kept.get_mut(&class).and_then(Vec::pop);
        state.statistics.requests += 1;
        let block = match kept {
            Some(block) => {
                state.statistics.kept_bytes -= class;
                state.statistics.reused += 1;
                block
            }
            None => MemoryBlock::new(class)?,
        };
        state.statistics.used_bytes += class;
        state.statistics.peak_bytes = state.statistics.peak_bytes.max(state.statistics.used_bytes);
        Ok(block)
    }

    fn give_back(&self, block: MemoryBlock) {
        let class = block.layout.size();
        let mut state = self.state();
        state.statistics.used_bytes -= class;
        if state.statistics.kept_bytes + class <= state.statistics.limit_bytes {
            state.statistics.kept_bytes += class;
            state.kept.entry(class).or_default().push(block);
        }
    }

    pub(crate) fn statistics(&self) -> PoolStatistics {
        self.state().statistics
    }

    /// Keeps at most so many bytes from now on.
    pub(crate) fn limit(&self, bytes: usize) {
        let mut state = self.state();
        state.statistics.limit_bytes = bytes;
        while state.statistics.kept_bytes > bytes {
            let Some(mut largest) = state.kept.last_entry() else { break };
            let class = *largest.key();
            if largest.get_mut().pop().is_some() {
                state.statistics.kept_bytes -= class;
            } else {
                largest.remove();
            }
        }
    }
}

/// Memory of a buffer and of tensors that share it. The last one gives it back to the pool.
#[derive(Debug)]
pub(crate) struct PooledMemory {
    block: Option<MemoryBlock>,
    len: usize,
    pool: Arc<CallerBufferPool>,
}

impl PooledMemory {
    /// Takes memory from a pool.
    pub(crate) fn take(pool: &Arc<CallerBufferPool>, bytes: usize) -> Result<Self, CallFailure> {
        let block = Some(pool.take(bytes)?);
        Ok(Self { block, len: bytes, pool: Arc::clone(pool) })
    }

    /// Returns the address of the memory.
    pub(crate) fn start(&self) -> *mut u8 {
        self.block.as_ref().map_or(std::ptr::null_mut(), |block| block.start.as_ptr())
    }
}

// SAFETY: the block stays where it is; the caller promises not to write while a run reads.
unsafe impl Allocation for PooledMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }
    fn as_ptr(&self) -> Result<*const u8, TensorError> {
        Ok(self.start().cast_const())
    }
    fn len_bytes(&self) -> usize {
        self.len
    }
}

impl Drop for PooledMemory {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give_back(block);
        }
    }
}

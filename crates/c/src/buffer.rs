//! Buffers: memory that C fills and models read without a copy, from a pool of each engine.

use std::ffi::c_void;
use std::sync::Arc;

use galatea::Tensor;
use galatea_tensor::Allocation;

use crate::api_status::{ApiStatus, CallFailure};
use crate::buffer_pool::{PoolStatistics, PooledMemory};
use crate::caller::CallerPointers;
use crate::engine::{ENGINES, OpaqueEngine};
use crate::handle_table::HandleTable;
use crate::tensor::{OpaqueTensor, new_handle, shape};
use crate::value_type::data_type;

/// Memory that the caller writes and models read without a copy.
#[derive(Debug)]
pub struct OpaqueBuffer(());

static BUFFERS: HandleTable<Arc<PooledMemory>, OpaqueBuffer> = HandleTable::new(9, "buffer");

/// Takes a buffer from the pool of an engine. Its contents are those of an earlier use, or zeros.
///
/// Ownership: the buffer is the caller's, who gives it back with `galatea_buffer_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_buffer_create(
    engine: *const OpaqueEngine,
    bytes: usize,
    buffer: *mut *mut OpaqueBuffer,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(buffer, 1, "buffer")?;
        let engine = ENGINES.get(engine)?;
        if bytes == 0 {
            return Err(CallFailure::argument("a buffer needs a byte"));
        }
        let memory = PooledMemory::take(&engine.pool, bytes)?;
        caller.put(buffer, BUFFERS.insert(Arc::new(memory))?, "buffer")
    })
}

/// Gives the memory of a buffer, which begins at a multiple of 16 KiB. `bytes` may be null.
///
/// Ownership: the memory belongs to the buffer and is valid until it is freed. It must not be written while a run reads
/// a tensor of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_buffer_data(
    buffer: *const OpaqueBuffer,
    data: *mut *mut c_void,
    bytes: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let memory = BUFFERS.get(buffer)?;
        if !bytes.is_null() {
            caller.put(bytes, memory.len_bytes(), "bytes")?;
        }
        caller.put(data, memory.start().cast(), "data")
    })
}

/// Makes a tensor of the begin of a buffer, without a copy.
///
/// Ownership: the tensor is the caller's, who frees it with `galatea_tensor_free`; it may outlive the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_buffer_tensor(
    buffer: *const OpaqueBuffer,
    value_type: i32,
    lengths: *const i64,
    rank: usize,
    tensor: *mut *mut OpaqueTensor,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(tensor, 1, "tensor")?;
        let memory: Arc<dyn Allocation> = Arc::clone(&*BUFFERS.get(buffer)?) as Arc<_>;
        let shape = shape(caller, lengths, rank)?;
        let made = Tensor::from_allocation(data_type(value_type)?, &shape, memory, 0);
        let made = made.map_err(|error| CallFailure::argument(error.to_string()))?;
        caller.put(tensor, new_handle(&made)?, "tensor")
    })
}

/// Gives a buffer back. Its memory goes to the pool when no tensor shares it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_buffer_free(buffer: *mut OpaqueBuffer) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| BUFFERS.remove(buffer).map(drop))
}

/// Tells the statistics of an engine's pool of buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_pool_read(
    engine: *const OpaqueEngine,
    statistics: *mut PoolStatistics,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let found = ENGINES.get(engine)?.pool.statistics();
        caller.report(found, statistics, "statistics")
    })
}

/// Limits the bytes that an engine's pool keeps, and gives back what is beyond. 0 keeps nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_pool_limit(
    engine: *const OpaqueEngine,
    bytes: usize,
) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        ENGINES.get(engine)?.pool.limit(bytes);
        Ok(())
    })
}

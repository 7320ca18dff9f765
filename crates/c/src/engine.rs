//! Engines: the devices of the machine, with what models share.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use galatea::power::PowerWatch;
use galatea::{Engine, memory_limit};

use crate::api_status::{ApiStatus, CallFailure};
use crate::buffer_pool::CallerBufferPool;
use crate::caller::{CallerPointers, SizedStruct};
use crate::handle_table::HandleTable;
use crate::operation_cache::OperationCache;

/// The devices of this machine, with what models on them share.
#[derive(Debug)]
pub struct OpaqueEngine(());

/// Options of an engine. Zeros stand for the usual values.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EngineCreateOptions {
    /// `sizeof(galatea_engine_options)`.
    pub size: usize,
    /// Limit on the memory of each GPU, such as "8GiB" or "60%"; null for what the GPU recommends.
    pub gpu_memory_limit: *const c_char,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for EngineCreateOptions {}

/// An engine and what C has asked of it.
#[derive(Debug)]
pub(crate) struct EngineObject {
    pub(crate) engine: Engine,
    pub(crate) operations: OperationCache,
    /// The watch over the engine's power, while there is one.
    pub(crate) power: Mutex<Option<PowerWatch>>,
    pub(crate) pool: Arc<CallerBufferPool>,
}

pub(crate) static ENGINES: HandleTable<EngineObject, OpaqueEngine> = HandleTable::new(2, "engine");

/// Makes an engine. Devices are opened when models need them. `options` may be null.
///
/// Ownership: the engine is the caller's, who frees it with `galatea_engine_free`. Models, servers and what else was
/// made with an engine stay valid when it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_engine_create(
    options: *const EngineCreateOptions,
    engine: *mut *mut OpaqueEngine,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(engine, 1, "engine")?;
        let options = caller.options(options, "options")?;
        let limit = caller.optional_text(options.gpu_memory_limit, "gpu_memory_limit")?;
        let limit = memory_limit::of_gpus(limit.unwrap_or_default());
        let made = Engine::new();
        made.gpus()
            .limit_memory(limit.map_err(CallFailure::argument)?)
            .map_err(|why| CallFailure::new(ApiStatus::Unsupported, why))?;
        let object = EngineObject {
            engine: made,
            operations: OperationCache::default(),
            power: Mutex::default(),
            pool: Arc::default(),
        };
        caller.put(engine, ENGINES.insert(object)?, "engine")
    })
}

/// Frees an engine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_engine_free(engine: *mut OpaqueEngine) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| ENGINES.remove(engine).map(drop))
}

//! Memory of models and GPUs.

use serde_json::{Value, json};

use crate::api_status::ApiStatus;
use crate::caller::CallerPointers;
use crate::engine::{ENGINES, OpaqueEngine};
use crate::model::{MODELS, OpaqueModel};
use crate::owned_text::{OpaqueText, put_text};

/// Tells the memory that a model holds, as JSON: weights in memory, weights in mapped files, and arenas.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_model_memory(
    model: *const OpaqueModel,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let memory = MODELS.get(model)?.model.session().report().memory;
        let text = json!({
            "weight_bytes": memory.initializer_bytes,
            "mapped_bytes": memory.mapped_bytes,
            "arena_bytes": memory.arena_bytes,
        });
        put_text(caller, text.to_string(), json, "json")
    })
}

/// Tells the memory of the GPUs that an engine has opened, as a JSON array: bytes by what they are, and the buffers of
/// each size that are in use and that are kept.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_engine_gpu_memory(
    engine: *const OpaqueEngine,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let gpus = ENGINES.get(engine)?.engine.gpus().memory();
        let rows = gpus.into_iter().map(|gpu| {
            let bytes: serde_json::Map<String, Value> = gpu
                .bytes
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect();
            let buffers: Vec<Value> = gpu
                .buffers
                .into_iter()
                .map(|(reach, bytes, used, kept)| {
                    json!({"reach": reach, "bytes": bytes, "used": used, "kept": kept})
                })
                .collect();
            json!({"number": gpu.number, "name": gpu.name, "bytes": bytes, "buffers": buffers})
        });
        put_text(caller, Value::Array(rows.collect()).to_string(), json, "json")
    })
}

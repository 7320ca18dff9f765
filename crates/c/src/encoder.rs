//! Encoders: vectors of texts, and scores of pairs of texts.

use std::ffi::c_char;

use galatea::Encoder;

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::CallerPointers;
use crate::engine::{ENGINES, OpaqueEngine};
use crate::handle_table::HandleTable;
use crate::llm::{LlmLoadOptions, arguments};

/// A model that makes vectors of texts. Several threads may ask it at once.
#[derive(Debug)]
pub struct OpaqueEncoder(());

static ENCODERS: HandleTable<Encoder, OpaqueEncoder> = HandleTable::new(7, "encoder");

/// Loads an encoder from a folder of safetensors. `options` may be null.
///
/// Ownership: the encoder is the caller's, who frees it with `galatea_encoder_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_encoder_load(
    engine: *const OpaqueEngine,
    path: *const c_char,
    options: *const LlmLoadOptions,
    encoder: *mut *mut OpaqueEncoder,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(encoder, 1, "encoder")?;
        let engine = ENGINES.get(engine)?;
        let path = caller.text(path, "path")?;
        let loaded = engine.engine.encoder_with(path, &arguments(caller, options)?)?;
        caller.put(encoder, ENCODERS.insert(loaded)?, "encoder")
    })
}

/// Tells the dimensions of a vector (0 for a model that scores pairs) and the most tokens of a text. Either place may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_encoder_sizes(
    encoder: *const OpaqueEncoder,
    dimensions: *mut usize,
    context: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let encoder = ENCODERS.get(encoder)?;
        if !dimensions.is_null() {
            caller.put(dimensions, encoder.dimensions().unwrap_or(0), "dimensions")?;
        }
        if !context.is_null() {
            caller.put(context, encoder.context(), "context")?;
        }
        Ok(())
    })
}

fn texts<'a>(
    caller: CallerPointers,
    texts: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, CallFailure> {
    if texts.is_null() {
        return Err(CallFailure::null(name));
    }
    caller.slice(texts, count, name)?.iter().map(|&text| caller.text(text, name)).collect()
}

/// Computes the vector of each text, one behind the other. `vectors` has room for `capacity` floats, of which `count`
/// texts need `count` times the dimensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_encoder_embed(
    encoder: *const OpaqueEncoder,
    texts: *const *const c_char,
    count: usize,
    vectors: *mut f32,
    capacity: usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let encoder = ENCODERS.get(encoder)?;
        let texts = self::texts(caller, texts, count, "texts")?;
        let needed = count.saturating_mul(encoder.dimensions().unwrap_or(1));
        caller.check(vectors, capacity.max(1), "vectors")?;
        if capacity < needed {
            let text = format!("'vectors' has room for {capacity} floats, {needed} are needed");
            return Err(CallFailure::new(ApiStatus::TooSmall, text));
        }
        let found: Vec<f32> = encoder.embed(&texts)?.concat();
        caller.copy_to(&found, vectors, capacity, "vectors")
    })
}

/// Scores how well each document answers a query. `scores` has room for `count` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_encoder_rank(
    encoder: *const OpaqueEncoder,
    query: *const c_char,
    documents: *const *const c_char,
    count: usize,
    scores: *mut f32,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let encoder = ENCODERS.get(encoder)?;
        let query = caller.text(query, "query")?;
        let documents = texts(caller, documents, count, "documents")?;
        caller.check(scores, count.max(1), "scores")?;
        let found = encoder.rank(query, &documents)?;
        caller.copy_to(&found, scores, count, "scores")
    })
}

/// Frees an encoder. Calls under way end as usual.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_encoder_free(encoder: *mut OpaqueEncoder) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| ENCODERS.remove(encoder).map(drop))
}

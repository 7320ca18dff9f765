//! Language models: answers as a whole, by a callback, and as a stream.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use galatea::{
    AnswerCancellation, AnswerStream, ChatInput, ChatMessage, EngineArguments, GenerationSettings,
    Llm,
};
use serde_json::json;

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::generation::{
    ApiChatMessage, ApiTokenUsage, GenerationOptions, PieceCallback, PieceText, conversation_of,
    put_usage, settings,
};
use crate::handle_table::HandleTable;
use crate::owned_text::{OpaqueText, put_text};

/// A language model. Several threads may ask it at once; their requests are computed together.
#[derive(Debug)]
pub struct OpaqueLlm(());

/// An answer under way.
#[derive(Debug)]
pub struct OpaqueStream(());

/// Options for loading a language model or an encoder. Zeros stand for the usual values; the names are vLLM's.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct LlmLoadOptions {
    /// `sizeof(galatea_llm_options)`.
    pub size: usize,
    /// Device that computes: "auto", "cpu", "gpu", "gpu:N" or "coreml".
    pub device: *const c_char,
    /// Type that the model computes in: "auto", "float32", "bfloat16" or "float16".
    pub dtype: *const c_char,
    /// Form to which weights are rounded when they are loaded.
    pub quantization: *const c_char,
    /// Type of stored keys and values.
    pub kv_cache_dtype: *const c_char,
    /// Source of speculative tokens: "ngram", or the path of a smaller checkpoint.
    pub speculative_model: *const c_char,
    /// The most tokens of a prompt and its answer.
    pub max_model_len: usize,
    /// The most sequences that run together.
    pub max_num_seqs: usize,
    /// The most memory of keys and values, in bytes.
    pub kv_cache_memory_bytes: usize,
    /// 1 if requests share what they begin with, -1 if not.
    pub enable_prefix_caching: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for LlmLoadOptions {}

pub(crate) static LLMS: HandleTable<Llm, OpaqueLlm> = HandleTable::new(5, "language model");

/// An answer under way: who reads it has the lock, who cancels it needs none.
struct StreamObject {
    answer: Mutex<AnswerStream>,
    cancellation: AnswerCancellation,
}

static STREAMS: HandleTable<StreamObject, OpaqueStream> = HandleTable::new(6, "stream");

/// Reads options of a load.
pub(crate) fn arguments(
    caller: CallerPointers,
    options: *const LlmLoadOptions,
) -> Result<EngineArguments, CallFailure> {
    let options = caller.options(options, "options")?;
    let text = |pointer, name| {
        Ok::<_, CallFailure>(caller.optional_text(pointer, name)?.map(str::to_owned))
    };
    let count = |value: usize| (value != 0).then_some(value);
    Ok(EngineArguments {
        device: text(options.device, "device")?,
        dtype: text(options.dtype, "dtype")?,
        quantization: text(options.quantization, "quantization")?,
        kv_cache_dtype: text(options.kv_cache_dtype, "kv_cache_dtype")?,
        speculative_model: text(options.speculative_model, "speculative_model")?,
        max_model_len: count(options.max_model_len),
        max_num_seqs: count(options.max_num_seqs),
        kv_cache_memory_bytes: count(options.kv_cache_memory_bytes),
        enable_prefix_caching: match options.enable_prefix_caching {
            0 => None,
            value => Some(value > 0),
        },
        ..EngineArguments::default()
    })
}

/// Loads a language model: a GGUF file, a folder of safetensors, or a folder of Core ML packages. `options` may be null.
///
/// Ownership: the model is the caller's, who frees it with `galatea_llm_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_load(
    engine: *const OpaqueEngine,
    path: *const c_char,
    options: *const LlmLoadOptions,
    llm: *mut *mut OpaqueLlm,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(llm, 1, "llm")?;
        let engine = ENGINES.get(engine)?;
        let path = caller.text(path, "path")?;
        let loaded = engine.engine.llm_with(path, &arguments(caller, options)?)?;
        caller.put(llm, LLMS.insert(loaded)?, "llm")
    })
}

/// Tells sizes of a language model and of its cache of keys and values, and what its engine has done, as JSON.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_describe(
    llm: *const OpaqueLlm,
    json: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let llm = LLMS.get(llm)?;
        let model = llm.language_model();
        let statistics = model.engine().statistics();
        let text = json!({
            "context": model.context(),
            "vocabulary": model.tokenizer().vocabulary_size(),
            "has_chat_template": model.template().is_some(),
            "weight_bytes": model.weight_bytes(),
            "memory_bytes": model.memory_bytes(),
            "kv_cache": {
                "bytes_of_a_position": model.position_bytes(),
                "blocks": statistics.blocks,
                "active_blocks": statistics.active_blocks,
                "cached_blocks": statistics.cached_blocks,
                "positions_of_a_block": statistics.block_size,
                "prefix_queries": statistics.prefix_queries,
                "prefix_hits": statistics.prefix_hits,
            },
            "requests": {
                "running": statistics.running,
                "waiting": statistics.waiting,
                "all": statistics.requests,
                "failed": statistics.failed,
                "prompt_tokens": statistics.prompt_tokens,
                "generated_tokens": statistics.generation_tokens,
            },
        });
        put_text(caller, text.to_string(), json, "json")
    })
}

/// Divides a text into tokens. `count` tells how many there are, also where `tokens` has room for fewer
/// (`GALATEA_STATUS_TOO_SMALL`); `tokens` may be null where `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_tokenize(
    llm: *const OpaqueLlm,
    text: *const c_char,
    tokens: *mut u32,
    capacity: usize,
    count: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let llm = LLMS.get(llm)?;
        let found = llm.tokens(caller.text(text, "text")?)?;
        caller.put(count, found.len(), "count")?;
        caller.copy_to(&found, tokens, capacity, "tokens")
    })
}

/// Puts tokens together to a text, without special ones.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_detokenize(
    llm: *const OpaqueLlm,
    tokens: *const u32,
    count: usize,
    text: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let llm = LLMS.get(llm)?;
        let tokens = caller.slice(tokens, count, "tokens")?;
        put_text(caller, llm.text_of(tokens), text, "text")
    })
}

/// Places for the pieces, the text and the counts of an answer.
struct AnswerPlaces {
    callback: PieceCallback,
    context: *mut c_void,
    answer: *mut *mut OpaqueText,
    usage: *mut ApiTokenUsage,
}

/// Reads an answer to its end.
fn read_answer(
    caller: CallerPointers,
    mut stream: AnswerStream,
    places: &AnswerPlaces,
) -> Result<(), CallFailure> {
    let mut content = String::new();
    for piece in stream.by_ref() {
        let piece = PieceText::of(piece?);
        if piece.kind == crate::PieceKind::Content {
            content.push_str(&piece.text);
        }
        if !piece.tell(places.callback, places.context) {
            return Err(CallFailure::new(
                ApiStatus::Cancelled,
                "the callback cancelled the answer",
            ));
        }
    }
    put_usage(caller, stream.usage(), places.usage)?;
    if places.answer.is_null() {
        return Ok(());
    }
    put_text(caller, content, places.answer, "answer")
}

fn prompt(
    caller: CallerPointers,
    llm: &Llm,
    text: *const c_char,
    options: *const GenerationOptions,
) -> Result<AnswerStream, CallFailure> {
    let settings = settings(caller, llm, options)?;
    Ok(llm.complete(caller.text(text, "prompt")?, &settings)?)
}

fn conversation(
    caller: CallerPointers,
    llm: &Llm,
    messages: &[ChatMessage],
    options: *const GenerationOptions,
) -> Result<AnswerStream, CallFailure> {
    let settings: GenerationSettings = settings(caller, llm, options)?;
    let input = ChatInput::new(messages);
    Ok(llm.stream_chat(ChatInput { settings, ..input })?)
}

/// Continues a text and waits for the end. `options`, `callback`, `context`, `answer` and `usage` may be null.
///
/// Ownership: the answer is the caller's, who frees it with `galatea_text_free`. A callback that cancels makes the call
/// return `GALATEA_STATUS_CANCELLED`, without an answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_generate(
    llm: *const OpaqueLlm,
    text: *const c_char,
    options: *const GenerationOptions,
    callback: PieceCallback,
    context: *mut c_void,
    answer: *mut *mut OpaqueText,
    usage: *mut ApiTokenUsage,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let llm = LLMS.get(llm)?;
        let stream = prompt(caller, &llm, text, options)?;
        read_answer(caller, stream, &AnswerPlaces { callback, context, answer, usage })
    })
}

/// Answers a conversation and waits for the end. `options`, `callback`, `context`, `answer` and `usage` may be null.
///
/// Ownership: as of `galatea_llm_generate`. The answer is the content alone; reasoning and calls of tools go to the
/// callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_chat(
    llm: *const OpaqueLlm,
    messages: *const ApiChatMessage,
    message_count: usize,
    options: *const GenerationOptions,
    callback: PieceCallback,
    context: *mut c_void,
    answer: *mut *mut OpaqueText,
    usage: *mut ApiTokenUsage,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let llm = LLMS.get(llm)?;
        let messages = conversation_of(caller, messages, message_count)?;
        let stream = conversation(caller, &llm, &messages, options)?;
        read_answer(caller, stream, &AnswerPlaces { callback, context, answer, usage })
    })
}

fn put_stream(
    caller: CallerPointers,
    answer: AnswerStream,
    stream: *mut *mut OpaqueStream,
) -> Result<(), CallFailure> {
    let cancellation = answer.cancellation();
    let object = StreamObject { answer: Mutex::new(answer), cancellation };
    caller.put(stream, STREAMS.insert(object)?, "stream")
}

/// Begins to continue a text. `options` may be null.
///
/// Ownership: the stream is the caller's, who frees it with `galatea_stream_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_stream_generate(
    llm: *const OpaqueLlm,
    text: *const c_char,
    options: *const GenerationOptions,
    stream: *mut *mut OpaqueStream,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(stream, 1, "stream")?;
        let llm = LLMS.get(llm)?;
        put_stream(caller, prompt(caller, &llm, text, options)?, stream)
    })
}

/// Begins to answer a conversation. `options` may be null.
///
/// Ownership: the stream is the caller's, who frees it with `galatea_stream_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_stream_chat(
    llm: *const OpaqueLlm,
    messages: *const ApiChatMessage,
    message_count: usize,
    options: *const GenerationOptions,
    stream: *mut *mut OpaqueStream,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(stream, 1, "stream")?;
        let llm = LLMS.get(llm)?;
        let messages = conversation_of(caller, messages, message_count)?;
        let answer = conversation(caller, &llm, &messages, options)?;
        put_stream(caller, answer, stream)
    })
}

/// Waits for the next piece of an answer. `GALATEA_STATUS_END` says that there is no more. `kind` may be null.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_stream_next(
    stream: *const OpaqueStream,
    kind: *mut i32,
    text: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(text, 1, "text")?;
        let object = STREAMS.get(stream)?;
        let mut answer = object.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(piece) = answer.next() else {
            return Err(CallFailure::new(ApiStatus::End, "the answer has ended"));
        };
        let piece = PieceText::of(piece?);
        if !kind.is_null() {
            caller.put(kind, piece.kind as i32, "kind")?;
        }
        put_text(caller, piece.text, text, "text")
    })
}

/// Tells the counts of an answer that has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_stream_usage(
    stream: *const OpaqueStream,
    usage: *mut ApiTokenUsage,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(usage, 1, "usage")?;
        let object = STREAMS.get(stream)?;
        let answer = object.answer.lock().unwrap_or_else(PoisonError::into_inner);
        put_usage(caller, answer.usage(), usage)
    })
}

/// Cancels an answer, from any thread. Who waits in `galatea_stream_next` gets what is there and then the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_stream_cancel(stream: *const OpaqueStream) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        STREAMS.get(stream)?.cancellation.cancel();
        Ok(())
    })
}

/// Frees a stream, which cancels its answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_stream_free(stream: *mut OpaqueStream) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| {
        STREAMS.remove(stream)?.cancellation.cancel();
        Ok(())
    })
}

/// Frees a language model. Its weights stay until answers under way have ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_llm_free(llm: *mut OpaqueLlm) -> ApiStatus {
    // SAFETY: no pointer is followed.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|_| LLMS.remove(llm).map(drop))
}

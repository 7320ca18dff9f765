//! Encoders under names of tensors: `text_input` to `embedding`, or of a cross-encoder `query` and `documents` to
//! `scores`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use galatea_llm::LlmError;
use galatea_llm::embed::{EncodedTexts, EncoderEngine, TextTokens};
use galatea_llm::tokens::SpecialTokens;
use galatea_tensor::{ByteString, DataType, Tensor};

use super::of_model;
use super::request::TEXT;
use super::residency::InUse;
use crate::backend::{ActiveRequest, ModelIo, ModelTensor};
use crate::batch;
use crate::error::ServingError;
use crate::generate::GenerateError;
use crate::generate::queue::EventQueue;
use crate::request::{OutputTensor, ParameterValue};

/// Vectors of texts.
const EMBEDDING: &str = "embedding";
/// Query that documents are ranked for.
const QUERY: &str = "query";
/// Texts that are ranked.
const DOCUMENTS: &str = "documents";
/// How well they answer the query.
const SCORES: &str = "scores";

/// Inputs and outputs of an encoder.
pub(super) fn io(engine: &EncoderEngine) -> ModelIo {
    match engine.model().encoder().dimensions() {
        Some(length) => ModelIo {
            // Any shape of texts fits; batches are the engine's.
            inputs: vec![ModelTensor { ranked: false, ..texts(TEXT, -1) }],
            outputs: vec![numbers(EMBEDDING, vec![-1, i64::try_from(length).unwrap_or(i64::MAX)])],
            ..ModelIo::default()
        },
        None => ModelIo {
            inputs: vec![texts(QUERY, 1), texts(DOCUMENTS, -1)],
            outputs: vec![numbers(SCORES, vec![-1])],
            ..ModelIo::default()
        },
    }
}

fn texts(name: &str, dim: i64) -> ModelTensor {
    ModelTensor { datatype: DataType::Bytes, ..numbers(name, vec![dim]) }
}

fn numbers(name: &str, dims: Vec<i64>) -> ModelTensor {
    ModelTensor {
        name: name.to_owned(),
        datatype: DataType::Fp32,
        dims,
        ranked: true,
        optional: false,
    }
}

/// Fate of the texts of a request.
enum TextsOutcome {
    /// The engine has not taken them.
    Refused(LlmError),
    /// The engine has ended with them.
    Ended(Result<EncodedTexts, LlmError>),
}

/// Hands texts to the engine. `end` is called once, on the engine's thread or on this one; it must not block. The texts
/// are taken back when the request is cancelled.
fn submit(
    engine: &EncoderEngine,
    in_use: Arc<InUse>,
    texts: Vec<TextTokens>,
    request: ActiveRequest,
    end: impl FnOnce(ActiveRequest, TextsOutcome) + Send + 'static,
) {
    let cancel = request.request.cancel.clone();
    if let Some(meter) = &request.request.token_meter {
        meter.count(texts.iter().map(|text| text.tokens.len()).sum());
    }
    // Whoever comes first answers: the engine, or this thread where the engine takes nothing.
    let waiting = Arc::new(Mutex::new(Some((request, end))));
    let taken = Arc::clone(&waiting);
    let sink = move |encoded: Result<EncodedTexts, LlmError>| {
        // The model stays in memory as long as somebody may be told.
        let _ = &in_use;
        if let Some((request, end)) = take(&taken) {
            end(request, TextsOutcome::Ended(encoded));
        }
    };
    match engine.submit(texts, Box::new(sink)) {
        Ok(ticket) => cancel.on_cancel(move || drop(ticket)),
        Err(error) => {
            if let Some((request, end)) = take(&waiting) {
                end(request, TextsOutcome::Refused(error));
            }
        }
    }
}

fn take<T>(waiting: &Mutex<Option<T>>) -> Option<T> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Hands the texts of a request with tensors to the engine, whose thread answers it.
pub(super) fn start(engine: &EncoderEngine, in_use: Arc<InUse>, request: ActiveRequest) {
    let texts = match read(engine, &request) {
        Ok(texts) => texts,
        Err(error) => return request.finish_with(Err(error)),
    };
    // Not the engine, on whose thread this lives.
    let model = Arc::clone(engine.model());
    let count = texts.len();
    submit(engine, in_use, texts, request, move |request, outcome| {
        let encoded = match outcome {
            TextsOutcome::Refused(error) => Err(error),
            TextsOutcome::Ended(encoded) => encoded,
        };
        let answer = encoded.map_err(|error| of_model(&error)).and_then(|encoded| {
            let results = encoded.results;
            match model.encoder().dimensions() {
                Some(length) => vectors(&request, results, [count, length]),
                None => scores(&request, model.scores(results)),
            }
        });
        request.finish_with(answer);
    });
}

/// Texts that a front end has prepared, whose results it reads itself.
pub(crate) struct TextsJob {
    pub(crate) engine: Arc<EncoderEngine>,
    pub(crate) in_use: Arc<InUse>,
    pub(crate) texts: Vec<TextTokens>,
    pub(crate) results: Arc<EventQueue<Result<EncodedTexts, GenerateError>>>,
}

impl TextsJob {
    /// Begins the work for a request, and answers that some time.
    pub(super) fn start(self, request: ActiveRequest) {
        let Self { engine, in_use, texts, results } = self;
        results.begin();
        let from = Instant::now();
        submit(&engine, in_use, texts, request, move |request, outcome| {
            results.push_last(counted(request, outcome, from));
        });
    }
}

/// Counts the end of a request before its front end is told of it.
fn counted(
    mut request: ActiveRequest,
    outcome: TextsOutcome,
    from: Instant,
) -> Result<EncodedTexts, GenerateError> {
    let encoded = match outcome {
        TextsOutcome::Refused(error) => {
            request.refuse(of_model(&error));
            return Err(GenerateError::Engine(error));
        }
        TextsOutcome::Ended(Err(error)) => {
            request.finish_with(Err(of_model(&error)));
            return Err(GenerateError::Engine(error));
        }
        TextsOutcome::Ended(Ok(encoded)) => encoded,
    };
    if !encoded.results.iter().flatten().all(|number| number.is_finite()) {
        let error = ServingError::internal("the model gave numbers that are not finite");
        request.finish_with(Err(error.clone()));
        return Err(GenerateError::Serving(error));
    }
    request.respond_past_sink(from);
    request.add_queue_time(encoded.queue);
    request.finish();
    Ok(encoded)
}

/// The texts of a request as tokens.
fn read(engine: &EncoderEngine, request: &ActiveRequest) -> Result<Vec<TextTokens>, ServingError> {
    let inputs = batch::gather(request.config(), std::slice::from_ref(request))?;
    let named = |name: &str| -> Result<Vec<String>, ServingError> {
        let found = inputs.iter().find(|(input, _)| input == name);
        let Some((_, tensor)) = found else {
            return Err(ServingError::invalid_arg(format!("input '{name}' is missing")));
        };
        let text = |text: &ByteString| match std::str::from_utf8(text.as_bytes()) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                Err(ServingError::invalid_arg(format!("input '{name}' is no UTF-8: {error}")))
            }
        };
        tensor.contiguous()?.to_vec::<ByteString>()?.iter().map(text).collect()
    };
    let model = engine.model();
    let most = most_tokens(request, model.encoder().context())?;
    let tokens = if model.encoder().dimensions().is_some() {
        let prompt = match parameter(request, "prompt_name") {
            Some(ParameterValue::String(name)) => Some(name.as_str()),
            _ => None,
        };
        let text = |text: &String| model.text(text, prompt, SpecialTokens::Add, most);
        named(TEXT)?.iter().map(text).collect()
    } else {
        let queries = named(QUERY)?;
        let documents = named(DOCUMENTS)?;
        let Some(query) = queries.first() else {
            return Err(ServingError::invalid_arg(format!("input '{QUERY}' has no element")));
        };
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        model.ranked(query, &documents, most)
    };
    tokens.map_err(|error: galatea_llm::LlmError| of_model(&error))
}
fn parameter<'a>(request: &'a ActiveRequest, wanted: &str) -> Option<&'a ParameterValue> {
    let mut all = request.request.parameters.iter();
    all.find(|(name, _)| name == wanted).map(|(_, value)| value)
}

/// The most tokens of a text, where the request lets longer ones be cut; -1 stands for as many as the model takes.
fn most_tokens(request: &ActiveRequest, context: usize) -> Result<Option<usize>, ServingError> {
    let name = "truncate_prompt_tokens";
    let most = match parameter(request, name) {
        None => return Ok(None),
        Some(ParameterValue::Int(-1)) => Some(context),
        Some(ParameterValue::Int(most)) => usize::try_from(*most).ok(),
        Some(ParameterValue::Uint(most)) => usize::try_from(*most).ok(),
        Some(_) => None,
    };
    match most.filter(|most| (1..=context).contains(most)) {
        Some(most) => Ok(Some(most)),
        None => Err(ServingError::invalid_arg(format!(
            "parameter '{name}' must be a whole number from 1 to {context}, or -1"
        ))),
    }
}

fn vectors(
    request: &ActiveRequest,
    results: Vec<Vec<f32>>,
    shape: [usize; 2],
) -> Result<Vec<OutputTensor>, ServingError> {
    request.wanted(vec![(EMBEDDING.to_owned(), Tensor::from_vec(&shape, results.concat())?)])
}

fn scores(request: &ActiveRequest, found: Vec<f32>) -> Result<Vec<OutputTensor>, ServingError> {
    request.wanted(vec![(SCORES.to_owned(), Tensor::vector(found))])
}

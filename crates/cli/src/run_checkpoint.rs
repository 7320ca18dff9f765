//! `galatea run` of a checkpoint: tokens to logits or rows, and a prompt to its continuation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

use clap::Args;
use galatea_formats::npy;
use galatea_llm::embed::{EncoderModel, TextEncoder, TextTokens};
use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_llm::engine::{GenerationEvent, GenerationRequest, SessionModel};
use galatea_llm::model::{CheckpointOptions, LanguageModel};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::tokens::SpecialTokens;
use galatea_serving::backend::llm::EngineArguments;
use galatea_tensor::{DataType, Tensor};

use super::arguments::{number, path};
use super::model::SessionChoices;
use super::{engine, model, say};

/// Options for the files of a run.
#[derive(Debug, Args)]
pub(super) struct RunFiles {
    #[arg(
        long,
        value_name = "IN.npz",
        value_parser = path,
        help = "named inputs of one run; repeatable"
    )]
    pub(super) inputs: Vec<PathBuf>,
    #[arg(long, value_name = "PREFIX", help = "write PREFIX0.npz, PREFIX1.npz, …")]
    outputs: Option<String>,
}

impl RunFiles {
    /// Returns the beginning of the names of all files of outputs.
    ///
    /// # Errors
    /// Fails when it is not given.
    pub(super) fn prefix(&self) -> Result<&str, String> {
        self.outputs.as_deref().ok_or_else(|| "--outputs PREFIX is missing".to_owned())
    }
}

/// Options for continuing a text.
#[derive(Debug, Args)]
pub(super) struct PromptChoices {
    #[arg(long = "prompt", value_name = "TEXT", help = "print what a checkpoint writes behind it")]
    pub(super) text: Option<String>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<u32>,
        default_value_t = 64,
        help = "longest text that it writes [64]"
    )]
    max_tokens: u32,
}

/// Runs a checkpoint once for each file of inputs, or continues a prompt.
///
/// # Errors
/// Fails when it cannot be loaded, or its inputs do not fit it.
pub(super) fn run(
    path: &Path,
    files: &RunFiles,
    prompt: &PromptChoices,
    session: &SessionChoices,
    threads: usize,
) -> Result<ExitCode, String> {
    if let Some(function) = session.function.name.as_ref().filter(|&name| name != "main") {
        return Err(format!("a checkpoint has no function '{function}'; its only one is 'main'"));
    }
    let options = options(session, threads)?;
    if let Some(text) = &prompt.text {
        say(&continued(path, &options, text, prompt.max_tokens)?);
        return Ok(ExitCode::SUCCESS);
    }
    if files.inputs.is_empty() {
        return Err("--inputs IN.npz or --prompt TEXT is missing".to_owned());
    }
    model::refuse_chunks(path, "run --inputs", "checkpoints; --prompt TEXT is for chunks too")?;
    let prefix = files.prefix()?;
    let mut loaded = TokenComputer::load(path, options)?;
    for (index, file) in files.inputs.iter().enumerate() {
        let of_file = |error: String| format!("{}: {error}", file.display());
        let given = npy::read_npz(file).map_err(|error| error.to_string())?;
        let outputs = loaded.run(&given).map_err(of_file)?;
        let target = format!("{prefix}{index}.npz");
        let named = outputs.iter().map(|(name, tensor)| (*name, tensor));
        npy::write_npz(target.as_ref(), named).map_err(|error| error.to_string())?;
        say(&target);
    }
    Ok(ExitCode::SUCCESS)
}

fn options(session: &SessionChoices, threads: usize) -> Result<CheckpointOptions, String> {
    let weights =
        EngineArguments { device: session.provider.clone(), ..EngineArguments::default() };
    let mut options = engine().load_options(&weights).map_err(text_of)?;
    options.providers = engine().providers(session.provider.as_deref())?;
    options.session.threads = threads;
    options.session.optimise = session.optimise_level();
    options.session.precision = session.precision.unwrap_or_default();
    // One sequence at a time.
    options.engine.max_sequences = 1;
    Ok(options)
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The text that a model writes behind a prompt, the likeliest token each time.
fn continued(
    path: &Path,
    options: &CheckpointOptions,
    prompt: &str,
    most: u32,
) -> Result<String, String> {
    let model = LanguageModel::load(path, options).map_err(text_of)?;
    let tokens = model.tokenizer().encode(prompt, SpecialTokens::Add).map_err(text_of)?;
    let request = GenerationRequest {
        prompt: tokens,
        sampling: SamplingParameters {
            temperature: 0.0,
            max_tokens: Some(most),
            ..SamplingParameters::default()
        },
        constraint: None,
        priority: 0,
        client: 0,
        salt: 0,
        id: String::new(),
    };
    let (to, events) = mpsc::channel();
    let sink = Box::new(move |event| drop(to.send(event)));
    let _ticket = model.engine().submit(request, sink).map_err(text_of)?;
    let mut text = String::new();
    loop {
        match events.recv().map_err(|_| "the engine went away")? {
            GenerationEvent::Started { .. } => {}
            GenerationEvent::Delta(delta) => text.push_str(&delta.text),
            GenerationEvent::Finished(_) => return Ok(text),
            GenerationEvent::Failed(error) => return Err(error.to_string()),
        }
    }
}

/// Loaded model that computes on tokens.
enum TokenComputer {
    Decoder(Box<SessionModel>),
    Encoder(Box<EncoderModel>),
    Both(Box<EncoderDecoder>),
}

type NamedOutputs = Vec<(&'static str, Tensor)>;

impl TokenComputer {
    fn load(path: &Path, options: CheckpointOptions) -> Result<Self, String> {
        let CheckpointOptions { providers, session, quantization, .. } = &options;
        let to = *quantization;
        if path.is_dir() && TextEncoder::recognises(path).map_err(text_of)? {
            let encoder = EncoderModel::load_as(path, providers, session, to).map_err(text_of)?;
            return Ok(Self::Encoder(Box::new(encoder)));
        }
        if path.is_dir() && EncoderDecoder::recognises(path).map_err(text_of)? {
            let model = EncoderDecoder::load_as(path, providers, session, to).map_err(text_of)?;
            return Ok(Self::Both(Box::new(model)));
        }
        let model = SessionModel::load(path, &options).map_err(text_of)?;
        Ok(Self::Decoder(Box::new(model)))
    }

    /// The names of the inputs that it takes.
    fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Decoder(_) => &["input_ids", "attention_mask"],
            Self::Encoder(_) => &["input_ids", "attention_mask", "token_type_ids"],
            Self::Both(_) => &["input_ids", "attention_mask", "decoder_input_ids"],
        }
    }

    fn run(&mut self, given: &[(String, Tensor)]) -> Result<NamedOutputs, String> {
        let names = self.names();
        if let Some((name, _)) = given.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(format!("input '{name}' found, expected {}", names.join(", ")));
        }
        let ids = required(given, "input_ids")?;
        let mask = InputMatrix::find(given, "attention_mask")?;
        let rows = ids.masked(mask.as_ref())?;
        match self {
            Self::Decoder(model) => {
                let width = galatea_llm::engine::StepModel::shape(&**model).vocabulary;
                let mut found = PaddedRows::new([ids.rows, ids.columns, width]);
                for (at, (start, tokens)) in rows.iter().enumerate() {
                    let logits = model.logits(tokens).map_err(of_row(at))?;
                    found.put(at, *start, &logits);
                }
                Ok(vec![("logits", found.tensor()?)])
            }
            Self::Encoder(encoder) => encoded(encoder, &ids, &rows, given),
            Self::Both(model) => written(model, &rows, &required(given, "decoder_input_ids")?),
        }
    }
}

fn of_row(at: usize) -> impl Fn(galatea_llm::LlmError) -> String {
    move |error| format!("row {at}: {error}")
}

/// An encoder's rows and vectors, or its logits.
fn encoded(
    encoder: &EncoderModel,
    ids: &InputMatrix,
    rows: &[(usize, Vec<u32>)],
    given: &[(String, Tensor)],
) -> Result<NamedOutputs, String> {
    let types = InputMatrix::find(given, "token_type_ids")?;
    if let Some(types) = &types {
        types.must_be_like(ids, "token_type_ids")?;
    }
    let mut texts = Vec::new();
    for (at, (start, tokens)) in rows.iter().enumerate() {
        let types = match &types {
            None => Vec::new(),
            Some(types) => {
                let line = types.line(at).iter().skip(*start).take(tokens.len());
                let kind = |value: &i64| u32::try_from(*value).ok();
                let kinds: Option<Vec<u32>> = line.map(kind).collect();
                kinds.ok_or_else(|| format!("token_type_ids: row {at} has negative numbers"))?
            }
        };
        texts.push(TextTokens { tokens: tokens.clone(), types });
    }
    let raw = encoder.raw(&texts).map_err(text_of)?;
    let shape = encoder.shape();
    if let Some(labels) = shape.labels {
        let logits = Tensor::from_vec(&[texts.len(), labels], raw.concat()).map_err(text_of)?;
        return Ok(vec![("logits", logits)]);
    }
    let mut found = PaddedRows::new([ids.rows, ids.columns, shape.hidden]);
    for (at, (values, (start, _))) in raw.iter().zip(rows).enumerate() {
        found.put(at, *start, values);
    }
    let tokens: Vec<Vec<u32>> = texts.into_iter().map(|text| text.tokens).collect();
    let vectors = encoder.embed(&tokens).map_err(text_of)?;
    let width = vectors.first().map_or(0, Vec::len);
    let vectors = Tensor::from_vec(&[tokens.len(), width], vectors.concat()).map_err(text_of)?;
    Ok(vec![("last_hidden_state", found.tensor()?), ("embeddings", vectors)])
}

/// The logits of what is written behind texts that are read.
fn written(
    model: &EncoderDecoder,
    rows: &[(usize, Vec<u32>)],
    after: &InputMatrix,
) -> Result<NamedOutputs, String> {
    if after.rows != rows.len() {
        let found = format!("decoder_input_ids: {} rows found", after.rows);
        return Err(format!("{found}, expected {} as in input_ids", rows.len()));
    }
    let mut found = PaddedRows::new([after.rows, after.columns, model.shape().vocabulary]);
    let tokens = after.masked(None)?;
    for (at, ((_, text), (_, tokens))) in rows.iter().zip(tokens).enumerate() {
        let mut writing = model.read(std::slice::from_ref(text)).map_err(of_row(at))?;
        for (step, token) in tokens.into_iter().enumerate() {
            let logits = writing.write(&[token]).map_err(of_row(at))?;
            found.put(at, step, &logits.concat());
        }
    }
    Ok(vec![("logits", found.tensor()?)])
}

/// Numbers of rows, 0 where a text has no token.
struct PaddedRows {
    shape: [usize; 3],
    values: Vec<f32>,
}

impl PaddedRows {
    fn new(shape: [usize; 3]) -> Self {
        Self { shape, values: vec![0.0; shape.iter().product()] }
    }

    /// Puts values from the token `start` of a row on.
    fn put(&mut self, row: usize, start: usize, values: &[f32]) {
        let [_, columns, width] = self.shape;
        let from = (row * columns + start) * width;
        if let Some(to) = self.values.get_mut(from..from + values.len()) {
            to.copy_from_slice(values);
        }
    }

    fn tensor(self) -> Result<Tensor, String> {
        Tensor::from_vec(&self.shape, self.values).map_err(text_of)
    }
}

/// An input of whole numbers with two axes.
struct InputMatrix {
    name: String,
    rows: usize,
    columns: usize,
    values: Vec<i64>,
}

fn required(given: &[(String, Tensor)], name: &str) -> Result<InputMatrix, String> {
    InputMatrix::find(given, name)?.ok_or_else(|| format!("input '{name}' is missing"))
}

impl InputMatrix {
    fn find(given: &[(String, Tensor)], wanted: &str) -> Result<Option<Self>, String> {
        let Some((name, tensor)) = given.iter().find(|(name, _)| name == wanted) else {
            return Ok(None);
        };
        let &[rows, columns] = tensor.shape() else {
            let shape = tensor.shape();
            return Err(format!("input '{name}': shape {shape:?} found, expected [rows, tokens]"));
        };
        let values = match tensor.dtype() {
            DataType::Int64 => tensor.to_vec::<i64>(),
            DataType::Int32 => {
                tensor.to_vec::<i32>().map(|values| values.into_iter().map(i64::from).collect())
            }
            DataType::Bool => {
                tensor.to_vec::<bool>().map(|values| values.into_iter().map(i64::from).collect())
            }
            other => {
                let found = format!("input '{name}': {} found", other.wire_name());
                return Err(format!("{found}, expected INT64, INT32 or BOOL"));
            }
        };
        let values = values.map_err(text_of)?;
        Ok(Some(Self { name: name.clone(), rows, columns, values }))
    }

    fn line(&self, row: usize) -> &[i64] {
        let from = row * self.columns;
        self.values.get(from..from + self.columns).unwrap_or_default()
    }

    fn must_be_like(&self, other: &Self, name: &str) -> Result<(), String> {
        if (self.rows, self.columns) == (other.rows, other.columns) {
            return Ok(());
        }
        Err(format!(
            "input '{name}': shape [{}, {}] found, expected [{}, {}] as in {}",
            self.rows, self.columns, other.rows, other.columns, other.name
        ))
    }

    /// Returns for each row the contiguous tokens that a mask leaves, and the position where they begin.
    fn masked(&self, mask: Option<&Self>) -> Result<Vec<(usize, Vec<u32>)>, String> {
        if let Some(mask) = mask {
            mask.must_be_like(self, &mask.name)?;
        }
        let row = |at: usize| {
            let line = self.line(at);
            let of_mask = |mask: &Self| {
                let line = mask.line(at);
                let start = line.iter().position(|cell| *cell != 0).unwrap_or(0);
                let count = line.iter().skip(start).take_while(|cell| **cell != 0).count();
                let rest = line.iter().skip(start + count).all(|cell| *cell == 0);
                let text = format!("attention_mask: row {at} has tokens on both sides of padding");
                rest.then_some((start, count)).ok_or(text)
            };
            let (start, count) = mask.map_or(Ok((0, line.len())), of_mask)?;
            if count == 0 {
                return Err(format!("{}: row {at} has no token", self.name));
            }
            let tokens: Option<Vec<u32>> = line
                .iter()
                .skip(start)
                .take(count)
                .map(|token| u32::try_from(*token).ok())
                .collect();
            let wrong = || format!("{}: row {at} has numbers that are no tokens", self.name);
            Ok((start, tokens.ok_or_else(wrong)?))
        };
        (0..self.rows).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(name: &str, rows: usize, values: &[i64]) -> InputMatrix {
        let columns = values.len() / rows;
        InputMatrix { name: name.to_owned(), rows, columns, values: values.to_vec() }
    }

    #[test]
    fn padding_may_stand_on_either_side_but_not_between_tokens() {
        let ids = matrix("input_ids", 2, &[5, 6, 0, 0, 7, 8]);
        let mask = matrix("attention_mask", 2, &[1, 1, 0, 0, 1, 1]);
        assert_eq!(ids.masked(Some(&mask)).unwrap(), [(0, vec![5, 6]), (1, vec![7, 8])]);
        let gap = matrix("attention_mask", 2, &[1, 0, 1, 1, 1, 1]);
        assert!(ids.masked(Some(&gap)).unwrap_err().contains("row 0 has tokens on both sides"));
        let none = matrix("attention_mask", 2, &[1, 1, 1, 0, 0, 0]);
        assert!(ids.masked(Some(&none)).unwrap_err().contains("row 1 has no token"));
        let other = matrix("attention_mask", 1, &[1, 1]);
        assert!(ids.masked(Some(&other)).unwrap_err().contains("expected [2, 3]"));
        let negative = matrix("input_ids", 1, &[-1]);
        assert!(negative.masked(None).unwrap_err().contains("no tokens"));
    }
}

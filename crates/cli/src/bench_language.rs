//! `galatea bench` of a checkpoint: how fast a language model reads prompts and writes answers.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use galatea_kernels::peak::read_bytes_per_ns;
use galatea_llm::chunked::ChunkManifest;
use galatea_llm::engine::{GenerationEvent, GenerationRequest};
use galatea_llm::model::{LanguageModel, PerplexityModel, PerplexityScore};
use galatea_llm::sampling::SamplingParameters;
use galatea_serving::backend::llm::EngineArguments;

use super::language_choices::{TokenCounts, WeightChoices};
use super::model::{self, TimelineChoices};
use super::progress::ProgressLine;
use super::{engine, say, step_profile};
use crate::table::table;

/// Tokens of a prompt, where nothing else is said.
const PROMPT: usize = 512;
/// Tokens of an answer likewise.
const ANSWER: usize = 64;
/// Tokens before an answer that is measured, where nothing else is said.
const SHORT_PROMPT: usize = 8;
/// Times that everything is measured; the median counts.
const ROUNDS: usize = 3;

/// A request's times.
struct GenerationTimes {
    /// From submission until the first token.
    first: Duration,
    /// From the first token until the last.
    rest: Duration,
    /// Tokens of the answer.
    tokens: Vec<u32>,
}

/// How a checkpoint is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckpointJob<'a> {
    pub(super) path: &'a Path,
    pub(super) counts: &'a TokenCounts,
    pub(super) weights: &'a WeightChoices,
    pub(super) provider: Option<&'a str>,
    /// 0 for all fast cores.
    pub(super) threads: usize,
    /// Answers at once.
    pub(super) concurrency: usize,
    /// True if steps are taken apart.
    pub(super) profile: bool,
}

/// Measures a checkpoint.
///
/// # Errors
/// Fails when it cannot be loaded, or a request fails.
pub(super) fn bench(
    job: CheckpointJob<'_>,
    perplexity: Option<&Path>,
    timeline: &TimelineChoices,
    json: bool,
) -> Result<ExitCode, String> {
    for (option, given) in [("perplexity", perplexity.is_some()), ("profile", job.profile)] {
        if given {
            model::refuse_chunks(job.path, &format!("--{option}"), "checkpoints")?;
        }
    }
    if let Some(file) = perplexity {
        say(&job.score(file, json)?);
        return Ok(ExitCode::SUCCESS);
    }
    let _timeline = timeline.start()?;
    let mut measured = job.measure()?;
    if json {
        if let (Some(fields), true) = (measured.line.as_object_mut(), job.profile) {
            fields.insert("profile".to_owned(), measured.steps.into());
        }
        say(&measured.line.to_string());
    } else {
        say(&measured.text);
        if job.profile {
            say(&measured.tables);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Results of measuring a checkpoint.
#[derive(Debug)]
pub(super) struct MeasuredCheckpoint {
    text: String,
    /// The same for programs.
    pub(super) line: serde_json::Value,
    tables: String,
    /// A step of an answer and one of a prompt, where these were taken apart, for programs.
    pub(super) steps: Vec<serde_json::Value>,
    /// Tokens a second of prompts, in each round.
    pub(super) prefill: Vec<f64>,
    /// The same of answers.
    pub(super) decode: Vec<f64>,
    /// The likeliest answers to some prompts, where steps were taken apart: who measures as much of another model with
    /// as many tokens in its vocabulary has those to the same prompts.
    pub(super) answers: Vec<Vec<u32>>,
    /// Tokens of the vocabulary.
    pub(super) vocabulary: usize,
}

/// Prompts whose answers are kept.
const KEPT: usize = 4;

impl CheckpointJob<'_> {
    /// Measures how fast a checkpoint reads and writes, and profiles its steps if asked to.
    ///
    /// # Errors
    /// Fails as [`bench`] does.
    pub(super) fn measure(&self) -> Result<MeasuredCheckpoint, String> {
        let CheckpointJob { path, counts, threads, .. } = *self;
        let mut prompt = counts.prompt.prompt_tokens.unwrap_or(PROMPT).max(1);
        let answer = counts.decode_tokens.unwrap_or(ANSWER).max(2);
        let context = counts.text.context.unwrap_or(SHORT_PROMPT).max(1);
        let concurrency = self.concurrency.max(1);
        if ChunkManifest::is_in(path) && counts.prompt.prompt_tokens.is_none() {
            let manifest = ChunkManifest::read(path).map_err(|error| error.to_string())?;
            prompt = prompt.min(manifest.context.saturating_sub(answer + 1)).max(1);
        }
        let weights = EngineArguments {
            max_num_seqs: Some(concurrency.max(4)),
            enable_prefix_caching: Some(false),
            max_model_len: Some(prompt.max(context) + answer + 1),
            ..self.weights.engine_arguments(self.provider)
        };
        let mut options = engine().load_options(&weights).map_err(|error| error.to_string())?;
        options.session.threads = threads;
        let progress = ProgressLine::start(format!("Loading {}", path.display()));
        let started = Instant::now();
        let model = LanguageModel::load(path, &options).map_err(|error| error.to_string())?;
        let load = started.elapsed();
        let bench = LanguageBench { model: &model, context, answer };
        // The first runs plan memory.
        progress.say("Warming up");
        bench.alone(prompt, 2)?;
        let mut figures = Vec::new();
        for round in 1..=ROUNDS {
            progress.say(format!("Measuring, round {round} of {ROUNDS}"));
            let read = bench.alone(prompt, 1)?;
            let written = bench.alone(context, answer)?;
            let together = if concurrency > 1 { Some(bench.together(concurrency)?) } else { None };
            figures.push(RoundFigures {
                prefill: prompt as f64 / read.first.as_secs_f64(),
                ttft: read.first.as_secs_f64() * 1e3,
                decode: (written.tokens.len() - 1) as f64 / written.rest.as_secs_f64().max(1e-9),
                together,
                bandwidth: read_bandwidth(threads),
            });
        }
        let touched = model.weight_bytes() + model.position_bytes() * (context + answer / 2);
        let report = LanguageReport { figures, load, model: &model, concurrency, prompt, touched };
        let text = report.text(path);
        let line = report.json(path);
        let speeds = |of: fn(&RoundFigures) -> f64| report.figures.iter().map(of).collect();
        let prefill = speeds(|of| of.prefill);
        let decode = speeds(|of| of.decode);
        progress.say("Taking steps apart");
        let answers = if self.profile { bench.answers()? } else { Vec::new() };
        let vocabulary = model.tokenizer().vocabulary_size();
        drop(report);
        drop(model);
        let (tables, steps) = match self.profile {
            true => {
                let steps = [(context, 1), (0, prompt)];
                step_profile::tables(path, &options, &steps, self.provider)?
            }
            false => Default::default(),
        };
        Ok(MeasuredCheckpoint { text, line, tables, steps, prefill, decode, answers, vocabulary })
    }

    /// Scores a text.
    fn score(&self, file: &Path, json: bool) -> Result<String, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("'{}' cannot be read as a text: {error}", file.display()))?;
        let weights = self.weights.engine_arguments(self.provider);
        let mut options = engine().load_options(&weights).map_err(|error| error.to_string())?;
        options.session.threads = self.threads;
        let chunk = self.counts.prompt.prompt_tokens.unwrap_or(PROMPT);
        let _line = ProgressLine::start(format!("Scoring {}", file.display()));
        let scored = PerplexityModel::load(self.path, &options, chunk)
            .and_then(|mut model| Ok((model.score(&text)?, model)));
        let (score, model) = scored.map_err(|error| error.to_string())?;
        let report = serde_json::json!({
            "perplexity": score.perplexity,
            "tokens": score.tokens,
            "chunks": score.chunks,
            "chunk_tokens": model.chunk(),
            "weight_bytes": model.weight_bytes(),
        });
        if json {
            return Ok(report.to_string());
        }
        let PerplexityScore { perplexity, tokens, chunks } = score;
        let chunk = model.chunk();
        Ok(format!("perplexity {perplexity:.4} of {tokens} tokens in {chunks} pieces of {chunk}"))
    }
}

/// Figures of one round of measurements.
struct RoundFigures {
    prefill: f64,
    ttft: f64,
    decode: f64,
    together: Option<f64>,
    /// Bytes a second.
    bandwidth: f64,
}

struct LanguageBench<'a> {
    model: &'a LanguageModel,
    /// Tokens before an answer whose speed is measured.
    context: usize,
    answer: usize,
}

impl LanguageBench<'_> {
    /// A request for so many tokens behind a prompt of others' length.
    fn request(&self, prompt: usize, tokens: usize, seed: usize) -> GenerationRequest {
        let vocabulary = self.model.tokenizer().vocabulary_size().max(2);
        let token = |at: usize| (at * 7919 + seed * 104_729 + 1) % vocabulary;
        let prompt = (0..prompt).map(|at| u32::try_from(token(at)).unwrap_or(0)).collect();
        let sampling = SamplingParameters {
            temperature: 0.0,
            max_tokens: u32::try_from(tokens).ok(),
            ignore_eos: true,
            ..SamplingParameters::default()
        };
        GenerationRequest {
            prompt,
            sampling,
            constraint: None,
            priority: 0,
            client: seed as u64,
            salt: 0,
            id: String::new(),
        }
    }

    /// Submits requests, and gives the times of each.
    fn all(&self, requests: Vec<GenerationRequest>) -> Result<Vec<GenerationTimes>, String> {
        let (sender, receiver) = mpsc::channel();
        let count = requests.len();
        let start = Instant::now();
        let mut tickets = Vec::new();
        for (at, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            let sink = move |event| drop(sender.send((at, Instant::now(), event)));
            let ticket = self.model.engine().submit(request, Box::new(sink));
            tickets.push(ticket.map_err(|error| error.to_string())?);
        }
        drop(sender);
        let mut marks: Vec<(Option<Instant>, Instant, Vec<u32>)> =
            vec![(None, start, Vec::new()); count];
        let mut ended = 0;
        while ended < count {
            let (at, now, event) = receiver.recv().map_err(|_| "the engine went away")?;
            let Some(mark) = marks.get_mut(at) else { continue };
            match event {
                GenerationEvent::Started { .. } => {}
                GenerationEvent::Delta(delta) => {
                    mark.0 = mark.0.or(Some(now));
                    mark.1 = now;
                    mark.2.extend(delta.tokens);
                }
                GenerationEvent::Finished(_) => ended += 1,
                GenerationEvent::Failed(error) => return Err(error.to_string()),
            }
        }
        let times = |(first, last, tokens): (Option<Instant>, Instant, Vec<u32>)| {
            let first = first.unwrap_or(last);
            GenerationTimes {
                first: first.duration_since(start),
                rest: last.duration_since(first),
                tokens,
            }
        };
        Ok(marks.into_iter().map(times).collect())
    }

    /// The times of one request.
    fn alone(&self, prompt: usize, tokens: usize) -> Result<GenerationTimes, String> {
        let mut all = self.all(vec![self.request(prompt, tokens, 0)])?;
        all.pop().ok_or_else(|| "no times".to_owned())
    }

    /// The likeliest answers to some prompts, one after the other: what a sequence gives alone.
    fn answers(&self) -> Result<Vec<Vec<u32>>, String> {
        let answer = |seed| {
            let mut all = self.all(vec![self.request(self.context, self.answer, seed)])?;
            all.pop().map(|times| times.tokens).ok_or_else(|| "no answer".to_owned())
        };
        (0..KEPT).map(answer).collect()
    }

    /// Tokens a second of so many requests at once, from the first token of the last one on.
    fn together(&self, concurrency: usize) -> Result<f64, String> {
        let requests = (0..concurrency).map(|at| self.request(self.context, self.answer, at + 1));
        let times = self.all(requests.collect())?;
        let tokens: usize = times.iter().map(|times| times.tokens.len() - 1).sum();
        let first = times.iter().map(|times| times.first).min().unwrap_or_default();
        let last = times.iter().map(|times| times.first + times.rest).max().unwrap_or_default();
        Ok(tokens as f64 / (last - first).as_secs_f64().max(1e-9))
    }
}

/// Measures the highest rate at which threads read from memory, in bytes per second.
fn read_bandwidth(threads: usize) -> f64 {
    let threads = if threads == 0 { galatea_providers::HostCores::detect().fast } else { threads };
    read_bytes_per_ns(threads) * 1e9
}

struct LanguageReport<'a> {
    figures: Vec<RoundFigures>,
    load: Duration,
    model: &'a LanguageModel,
    concurrency: usize,
    prompt: usize,
    /// Bytes that a token of the answer reads: weights, and keys and values of what is before it.
    touched: usize,
}

impl LanguageReport<'_> {
    fn median(&self, of: impl Fn(&RoundFigures) -> f64) -> f64 {
        let mut all: Vec<f64> = self.figures.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }

    /// The share of memory's bandwidth that decoding takes.
    fn share(&self) -> f64 {
        let bytes = self.touched as f64;
        self.median(|of| of.decode * bytes / of.bandwidth.max(1.0))
    }

    fn json(&self, path: &Path) -> serde_json::Value {
        let mut line = serde_json::json!({
            "model": path.display().to_string(),
            "prompt_tokens": self.prompt,
            "prefill_tokens_s": self.median(|of| of.prefill),
            "decode_tokens_s": self.median(|of| of.decode),
            "ttft_ms": self.median(|of| of.ttft),
            "share_of_bandwidth": self.share(),
            "read_gb_s": self.median(|of| of.bandwidth) / 1e9,
            "weight_bytes": self.model.weight_bytes(),
            "token_bytes": self.touched,
            "load_ms": self.load.as_secs_f64() * 1e3,
        });
        if let (Some(fields), true) = (line.as_object_mut(), self.concurrency > 1) {
            let together = self.median(|of| of.together.unwrap_or(0.0));
            fields.insert("concurrency".to_owned(), self.concurrency.into());
            fields.insert("aggregate_tokens_s".to_owned(), together.into());
        }
        line
    }

    fn text(&self, path: &Path) -> String {
        let mut rows = vec![
            vec![
                format!("prompt of {} tokens", self.prompt),
                format!("{:.1} tokens/s", self.median(|of| of.prefill)),
                format!("{:.1} ms to the first token", self.median(|of| of.ttft)),
            ],
            vec![
                "answer".to_owned(),
                format!("{:.1} tokens/s", self.median(|of| of.decode)),
                match self.share() {
                    share if share <= 1.0 => {
                        format!("{:.0} % of memory's bandwidth", share * 100.0)
                    }
                    _ => "more than memory's bandwidth, out of caches".to_owned(),
                },
            ],
        ];
        if self.concurrency > 1 {
            let together = self.median(|of| of.together.unwrap_or(0.0));
            rows.push(vec![
                format!("{} answers at once", self.concurrency),
                format!("{together:.1} tokens/s"),
                String::new(),
            ]);
        }
        let megabytes = self.model.weight_bytes() >> 20;
        let load = self.load.as_secs_f64() * 1e3;
        format!(
            "{}: {megabytes} MiB of weights, loaded in {load:.0} ms\n{}",
            path.display(),
            table(&["", "Speed", ""], rows)
        )
    }
}

//! Subject of tuning: the graph of a file, or the steps of a language model.

use std::path::{Path, PathBuf};

use clap::Args;
use galatea_llm::engine::{SessionModel, StepKind, StepModel};
use galatea_runtime::tune::{ChoiceSource, TuningProblem};
use galatea_runtime::{Precision, Session, SessionOptions};
use galatea_tensor::Tensor;

use super::arguments::{number, parsed, purpose};
use super::generate::{self, ShapeChoices};
use super::language_choices::{ContextLength, PromptLength, WeightChoices};
use super::model::ThreadChoice;
use super::{engine, model};

/// Rows of a step that reads a prompt, where none are given.
const PROMPT: usize = 512;
/// Positions before a step that writes an answer, where none are given.
const CONTEXT: usize = 1024;

/// Options for what is tuned, besides the model.
#[derive(Debug, Args)]
#[command(
    mut_args(purpose("prompt_tokens", "of a language model: rows of a step that reads [512]")),
    mut_args(purpose(
        "context",
        "of a language model: positions before a step that writes [1024]"
    )),
    mut_args(purpose("quantization", "round a language model's matrices")),
    mut_args(purpose("kv_cache_dtype", "what keys and values of a language model are stored as"))
)]
pub(super) struct SubjectChoices {
    #[arg(long, value_name = "NAME", help = "run on this provider: cpu, gpu or gpu:N")]
    provider: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = parsed::<Precision>,
        help = "what products compute in"
    )]
    precision: Option<Precision>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 1,
        help = "length of the batch axis, or sequences of a step [1]"
    )]
    batch: usize,
    #[command(flatten)]
    shapes: ShapeChoices,
    #[command(flatten)]
    threads: ThreadChoice,
    #[command(flatten)]
    prompt: PromptLength,
    #[command(flatten)]
    text: ContextLength,
    #[command(flatten)]
    weights: WeightChoices,
}

/// Subject of tuning.
pub(super) enum TuneSubject {
    /// The graph of a file.
    Graph(PathBuf),
    /// The steps of a language model.
    Checkpoint(PathBuf),
}

impl TuneSubject {
    /// Finds the subject that a path stands for.
    ///
    /// # Errors
    /// Fails when the path is no model.
    pub(super) fn find(path: &Path) -> Result<Self, String> {
        match model::checkpoint(path)? {
            Some(checkpoint) => {
                model::refuse_chunks(&checkpoint, "tune", "checkpoints and ONNX models")?;
                Ok(Self::Checkpoint(checkpoint))
            }
            None => model::find(path).map(Self::Graph),
        }
    }

    /// Lists all choices of the subject, given the known records.
    ///
    /// # Errors
    /// Fails when the model cannot be loaded or does not run.
    pub(super) fn problems(
        &self,
        arguments: &SubjectChoices,
        choices: ChoiceSource,
    ) -> Result<Vec<TuningProblem>, String> {
        match self {
            Self::Graph(path) => {
                let options = SessionOptions {
                    threads: arguments.threads.count,
                    precision: arguments.precision.unwrap_or_default(),
                    choices,
                    ..SessionOptions::default()
                };
                let providers = engine().providers(arguments.provider.as_deref())?;
                let session = Session::new(model::load(path, None)?.graph, &providers, &options);
                of_graph(&session.map_err(text_of)?, arguments)
            }
            Self::Checkpoint(path) => {
                let prompt = arguments.prompt.prompt_tokens.unwrap_or(PROMPT).max(1);
                let context = arguments.text.context.unwrap_or(CONTEXT);
                let sequences = arguments.batch.max(1);
                let weights = arguments.weights.engine_arguments(arguments.provider.as_deref());
                let mut options = engine().load_options(&weights).map_err(text_of)?;
                options.session.threads = arguments.threads.count;
                options.session.choices = choices;
                if let Some(precision) = arguments.precision {
                    options.session.precision = precision;
                }
                let most = (context + 1).max(prompt).div_ceil(options.block_size.max(1));
                options.blocks = Some(most * sequences);
                let mut model = SessionModel::load(path, &options).map_err(text_of)?;
                let writing = StepKind { sequences, before: context, rows: 1 };
                let reading = StepKind { sequences: 1, before: 0, rows: prompt };
                let mut problems = Vec::new();
                for kind in [writing, reading] {
                    let batch = kind.batch(model.shape().vocabulary, most);
                    problems.extend(model.problems(&batch).map_err(text_of)?);
                }
                let mut seen = std::collections::HashSet::new();
                problems.retain(|one| seen.insert((one.family.clone(), one.bucket.clone())));
                Ok(problems)
            }
        }
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn of_graph(session: &Session, arguments: &SubjectChoices) -> Result<Vec<TuningProblem>, String> {
    let shapes = arguments.shapes.by_input();
    let lengths = generate::FreeLengths { batch: arguments.batch, sequence: None };
    let made = generate::inputs(session, lengths, &shapes)?;
    let named: Vec<(&str, Tensor)> =
        made.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    session.problems(&named).map_err(text_of)
}

//! Subject of tuning: the graph of a file, or the steps of a language model.

use std::path::PathBuf;

use galatea_llm::engine::{SessionModel, StepBatch, StepModel};
use galatea_runtime::tune::{ChoiceSource, TuningProblem};
use galatea_runtime::{Session, SessionOptions};
use galatea_tensor::Tensor;

use super::arguments::{CommandArguments, CommandOption};
use super::{bench_language, engine, generate, model};

/// The options that say what is tuned, besides the model.
pub(super) const CHOICES: [CommandOption; 9] = [
    CommandOption {
        name: "provider",
        value: "NAME",
        sentence: "run on this provider: cpu, gpu or gpu:N",
    },
    CommandOption { name: "precision", value: "NAME", sentence: "what products compute in" },
    CommandOption {
        name: "batch",
        value: "N",
        sentence: "length of the batch axis, or sequences of a step [1]",
    },
    CommandOption {
        name: "shape", value: "NAME=D,D…", sentence: "shape of an input; repeatable"
    },
    CommandOption {
        name: "threads",
        value: "N",
        sentence: "threads inside an operator [all cores]",
    },
    CommandOption {
        name: "prompt-tokens",
        value: "N",
        sentence: "of a language model: rows of a step that reads [512]",
    },
    CommandOption {
        name: "context",
        value: "N",
        sentence: "of a language model: positions before a step that writes [1024]",
    },
    CommandOption {
        name: "quantization",
        value: "NAME",
        sentence: "round a language model's matrices",
    },
    CommandOption {
        name: "kv-cache-dtype",
        value: "NAME",
        sentence: "what keys and values of a language model are stored as",
    },
];

/// Rows of a step that reads.
const PROMPT: usize = 512;
/// Positions before a step that writes.
const CONTEXT: usize = 1024;

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
    pub(super) fn find(path: &str) -> Result<Self, String> {
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
        arguments: &CommandArguments,
        choices: ChoiceSource,
    ) -> Result<Vec<TuningProblem>, String> {
        match self {
            Self::Graph(path) => {
                let options = SessionOptions {
                    threads: arguments.number("threads", 0)?,
                    precision: model::precision(arguments)?,
                    choices,
                    ..SessionOptions::default()
                };
                let providers = engine().providers(arguments.last("provider"))?;
                let session =
                    Session::new(model::load(path, arguments)?.graph, &providers, &options);
                of_graph(&session.map_err(text_of)?, arguments)
            }
            Self::Checkpoint(path) => {
                let prompt = arguments.number("prompt-tokens", PROMPT)?.max(1);
                let context: usize = arguments.number("context", CONTEXT)?;
                let sequences = arguments.number("batch", 1_usize)?.max(1);
                let weights = bench_language::weights_of(arguments);
                let mut options = engine().load_options(&weights).map_err(text_of)?;
                options.session.threads = arguments.number("threads", 0)?;
                options.session.choices = choices;
                if arguments.last("precision").is_some() {
                    options.session.precision = model::precision(arguments)?;
                }
                let most = (context + 1).max(prompt).div_ceil(options.block_size.max(1));
                options.blocks = Some(most * sequences);
                let mut model = SessionModel::load(path, &options).map_err(text_of)?;
                let steps = [(sequences, context, 1), (1, 0, prompt)];
                let mut problems = Vec::new();
                for (sequences, before, rows) in steps {
                    let batch = step(model.shape().vocabulary, most, sequences, before, rows);
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

fn of_graph(session: &Session, arguments: &CommandArguments) -> Result<Vec<TuningProblem>, String> {
    let shapes = generate::parse_shapes(arguments.all("shape"))?;
    let lengths = generate::FreeLengths { batch: arguments.number("batch", 1)?, sequence: None };
    let made = generate::inputs(session, lengths, &shapes)?;
    let named: Vec<(&str, Tensor)> =
        made.inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    session.problems(&named).map_err(text_of)
}

/// A step of so many sequences, with so many rows of each behind so many positions.
fn step(
    vocabulary: usize,
    most_blocks: usize,
    sequences: usize,
    before: usize,
    rows: usize,
) -> StepBatch {
    let int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let all = sequences * rows;
    StepBatch {
        tokens: (0..all).map(|row| int((row * 31 + 7) % vocabulary.max(1))).collect(),
        positions: (0..all).map(|row| int(before + row % rows.max(1))).collect(),
        starts: (0..=sequences).map(|at| int(at * rows)).collect(),
        lengths: vec![int(before + rows); sequences],
        blocks: (0..sequences * most_blocks).map(int).collect(),
        most_blocks,
        wanted: (1..=sequences).map(|at| int(at * rows) - 1).collect(),
        ..StepBatch::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_rows_for_every_sequence() {
        let found = step(100, 3, 2, 10, 1);
        assert_eq!((found.tokens.len(), &found.positions[..]), (2, &[10, 10][..]));
        assert_eq!((&found.starts[..], &found.lengths[..]), (&[0, 1, 2][..], &[11, 11][..]));
        assert_eq!((&found.blocks[..], &found.wanted[..]), (&[0, 1, 2, 3, 4, 5][..], &[0, 1][..]));
    }
}

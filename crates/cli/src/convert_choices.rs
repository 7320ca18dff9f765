//! Options of `galatea convert` that say what is written.

use std::path::PathBuf;

use clap::Args;
use galatea::chunks::ChunkOptions;
use galatea_coreml::{ConvertOptions, WeightCompression};
use galatea_runtime::OptimiseLevel;
use galatea_tensor::OrderedMap;

use super::arguments::{NamedLength, named_length, number, path, purpose, worded_choice};
use super::language_choices::ContextLength;

/// Options for programs that are written.
#[derive(Debug, Args)]
pub(super) struct ProgramChoices {
    #[arg(
        long,
        value_name = "fp16|fp32",
        value_parser = worded_choice(FLOATS, wrong_float),
        help = "what floats are computed in [fp16]"
    )]
    precision: Option<ComputedFloat>,
    #[arg(
        long,
        value_name = "6…9",
        value_parser = specification,
        help = "version of Core ML's format: 6 is macOS 12, 9 is macOS 15 [9]"
    )]
    specification: Option<i32>,
    #[arg(
        long = "length",
        value_name = "NAME=N",
        value_parser = named_length,
        help = "number that a named length of the inputs is; repeatable"
    )]
    lengths: Vec<NamedLength>,
    #[arg(
        long = "shape",
        value_name = "INPUT=N,N,…",
        value_parser = InputShape::parse,
        help = "shape of an input; repeatable"
    )]
    shapes: Vec<InputShape>,
    #[arg(
        long = "bucket",
        value_name = "NAME=N,NAME=N…",
        value_parser = LengthSet::parse,
        help = "lengths that the inputs may have together; repeatable"
    )]
    buckets: Vec<LengthSet>,
    #[arg(
        long,
        value_name = "N",
        value_parser = longest,
        help = "the most that a length is which each run brings [2048]"
    )]
    longest: Option<usize>,
    #[arg(
        long,
        value_name = "FORM",
        value_parser = compression,
        help = "how they are stored: int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP, sparse:SHARE [as computed]"
    )]
    weights: Option<WeightCompression>,
}

/// Options for language models in chunks.
#[derive(Debug, Args)]
#[command(mut_args(purpose("context", "of a language model: the most tokens of a text [1024]")))]
pub(super) struct ChunkChoices {
    #[command(flatten)]
    text: ContextLength,
    #[arg(
        long,
        value_name = "N,N,…",
        value_parser = RowCounts::parse,
        help = "of a language model: rows of the functions that compute prompts [64,128,512]"
    )]
    prefill: Option<RowCounts>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<u64>,
        help = "of a language model: the most bytes of the weights of a package [1000000000]"
    )]
    chunk_bytes: Option<u64>,
    #[arg(
        long,
        value_name = "FOLDER",
        value_parser = path,
        help = "of a language model: where its tokenizer is [the checkpoint's folder]"
    )]
    tokenizer: Option<PathBuf>,
}

/// Type of the floats that a program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComputedFloat {
    Fp16,
    Fp32,
}

/// Words of `--precision`.
const FLOATS: &[(&str, ComputedFloat)] =
    &[("fp16", ComputedFloat::Fp16), ("fp32", ComputedFloat::Fp32)];

fn wrong_float(given: &str) -> String {
    format!(": '{given}' found, expected fp16 or fp32")
}

fn specification(text: &str) -> Result<i32, String> {
    let version = number(text)?;
    match (6..=9).contains(&version) {
        true => Ok(version),
        false => Err(format!(": {version} found, expected 6 to 9")),
    }
}

fn longest(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err(": 0 found, expected 1 or more".to_owned()),
        length => Ok(length),
    }
}

/// A shape of an input, `INPUT=N,N,…`.
#[derive(Debug, Clone)]
struct InputShape {
    input: String,
    shape: Vec<usize>,
}

impl InputShape {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!(": '{text}' found, expected INPUT=N,N,…");
        let (input, lengths) = text.split_once('=').ok_or_else(wrong)?;
        let lengths = lengths.split(',').filter(|len| !len.trim().is_empty());
        let lengths = lengths.map(|len| len.trim().parse().map_err(|_| wrong()));
        Ok(Self { input: input.to_owned(), shape: lengths.collect::<Result<_, _>>()? })
    }
}

/// Lengths that inputs have together.
#[derive(Debug, Clone)]
struct LengthSet(OrderedMap<String, usize>);

impl LengthSet {
    fn parse(text: &str) -> Result<Self, String> {
        let lengths =
            text.split(',').map(|one| named_length(one).map(|one| (one.name, one.length)));
        lengths.collect::<Result<_, _>>().map(Self)
    }
}

/// Rows of functions that compute prompts.
#[derive(Debug, Clone)]
struct RowCounts(Vec<usize>);

impl RowCounts {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |one: &str| format!(": '{one}' found, expected numbers of rows");
        let rows = text.split(',').filter(|one| !one.trim().is_empty());
        let rows = rows.map(|one| one.trim().parse().map_err(|_| wrong(one)));
        rows.collect::<Result<_, _>>().map(Self)
    }
}

impl ProgramChoices {
    /// Returns the options for writing programs; options that are not given stay as in `usual`.
    pub(super) fn options(
        &self,
        level: Option<OptimiseLevel>,
        usual: ConvertOptions,
    ) -> ConvertOptions {
        let mut options = ConvertOptions {
            half: self.precision.map_or(usual.half, |float| float == ComputedFloat::Fp16),
            specification: self.specification.unwrap_or(usual.specification),
            compression: self.weights.unwrap_or(usual.compression),
            longest: self.longest.unwrap_or(usual.longest),
            level: level.unwrap_or(usual.level),
            ..usual
        };
        let lengths = self.lengths.iter().map(|one| (one.name.clone(), one.length));
        options.lengths.extend(lengths);
        options.buckets.extend(self.buckets.iter().map(|set| set.0.clone()));
        let shapes = self.shapes.iter().map(|one| (one.input.clone(), one.shape.clone()));
        options.shapes.extend(shapes);
        options
    }
}

impl ProgramChoices {
    /// Names of the given options for shapes of inputs.
    pub(super) fn given_shapes(&self) -> Vec<&'static str> {
        named([
            ("length", !self.lengths.is_empty()),
            ("shape", !self.shapes.is_empty()),
            ("bucket", !self.buckets.is_empty()),
            ("longest", self.longest.is_some()),
        ])
    }

    /// Names of the given options for what programs compute and store.
    pub(super) fn given_forms(&self) -> Vec<&'static str> {
        named([
            ("precision", self.precision.is_some()),
            ("specification", self.specification.is_some()),
            ("weights", self.weights.is_some()),
        ])
    }

    /// Returns whether the most of an open length is given.
    pub(super) fn says_longest(&self) -> bool {
        self.longest.is_some()
    }
}

/// Names of the options that are given.
pub(super) fn named<const N: usize>(rows: [(&'static str, bool); N]) -> Vec<&'static str> {
    rows.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
}

impl ChunkChoices {
    /// Names of the given options.
    pub(super) fn given(&self) -> Vec<&'static str> {
        named([
            ("context", self.text.context.is_some()),
            ("prefill", self.prefill.is_some()),
            ("chunk-bytes", self.chunk_bytes.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ])
    }

    /// Changes the options that are given.
    pub(super) fn apply(&self, options: &mut ChunkOptions) {
        options.context = self.text.context;
        options.chunk_bytes = self.chunk_bytes.unwrap_or(options.chunk_bytes);
        options.tokenizer.clone_from(&self.tokenizer);
        options.prefill = self.prefill.as_ref().map(|rows| rows.0.clone());
    }
}

/// The form of weights that a word names.
fn compression(text: &str) -> Result<WeightCompression, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let wrong = || {
        format!(
            ": '{text}' found, expected int8, int4, int4:BLOCK, palette:BITS, palette:BITS:GROUP or \
             sparse:SHARE"
        )
    };
    let found = match parts.as_slice() {
        ["int8"] => WeightCompression::Int8,
        ["int4"] => WeightCompression::Int4 { block: 32 },
        ["int4", block] => WeightCompression::Int4 { block: block.parse().map_err(|_| wrong())? },
        ["palette", bits] => {
            WeightCompression::Palette { bits: bits.parse().map_err(|_| wrong())?, group: 0 }
        }
        ["palette", bits, group] => WeightCompression::Palette {
            bits: bits.parse().map_err(|_| wrong())?,
            group: group.parse().map_err(|_| wrong())?,
        },
        ["sparse", share] => {
            WeightCompression::Sparse { share: share.parse().map_err(|_| wrong())? }
        }
        _ => return Err(wrong()),
    };
    let sound = match found {
        WeightCompression::Palette { bits, .. } => matches!(bits, 1 | 2 | 3 | 4 | 6 | 8),
        WeightCompression::Sparse { share } => (0.0..=1.0).contains(&share),
        WeightCompression::Int4 { block } => block > 0,
        _ => true,
    };
    if sound { Ok(found) } else { Err(wrong()) }
}

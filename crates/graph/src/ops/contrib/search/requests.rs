//! Attributes and inputs that the searching operators share.

use galatea_tensor::{DataType, Tensor};

use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_type, floats};

/// Most tokens of a text, as in ONNX Runtime.
const MAX_LENGTH: usize = 4096;
/// Most beams of a prompt, as in ONNX Runtime.
const MAX_BEAMS: usize = 128;

/// Attributes of all searches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SearchTokens {
    /// Token that ends a text.
    pub end: i32,
    /// Token that fills the rest of a text.
    pub padding: i32,
    /// Tokens of the n-grams that may not come twice; any may where it is 0.
    pub no_repeat_ngram_size: usize,
    /// Number of tokens there are, where it is less than the decoder's scores.
    pub vocab_size: Option<usize>,
    /// Token that a decoder behind an encoder starts with; none where there is no encoder.
    pub start: Option<i32>,
}

/// Values of `model_type`.
const DECODER: i64 = 0;
const ENCODER_AND_DECODER: i64 = 1;

/// Whether a search can have an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EncoderRule {
    /// It may, as T5.
    Allowed,
    /// It has a decoder alone, as GPT-2.
    Refused,
}

impl SearchTokens {
    pub(super) fn parse(
        context: &mut ParseContext<'_>,
        rule: EncoderRule,
    ) -> Result<Self, OpError> {
        let model = context.attributes.int_or("model_type", DECODER)?;
        let encodes = context.attributes.graph("encoder")?.is_some();
        let start = context.attributes.int("decoder_start_token_id")?;
        let start = match (model, encodes, rule) {
            (DECODER, false, _) => None,
            (ENCODER_AND_DECODER, true, EncoderRule::Allowed) => {
                let start = start.and_then(|token| i32::try_from(token).ok());
                let missing = "attribute 'decoder_start_token_id' is missing or large";
                Some(start.ok_or_else(|| OpError::new(missing))?)
            }
            (ENCODER_AND_DECODER, false, EncoderRule::Allowed) => {
                let text = "attribute 'model_type' is 1, and there is no subgraph 'encoder'";
                return Err(OpError::new(text));
            }
            _ => {
                let known = match rule {
                    EncoderRule::Allowed => {
                        "expected 0 for a decoder as GPT-2's, or 1 for an encoder and a decoder as T5's"
                    }
                    EncoderRule::Refused => "only decoders as GPT-2's (0) are known",
                };
                let found = if encodes { " with a subgraph 'encoder'" } else { "" };
                let text = format!("attribute 'model_type' is {model}{found}: {known}");
                return Err(OpError::new(text));
            }
        };
        let mut token = |name: &'static str| {
            let found = context.attributes.int(name)?;
            let found = found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")));
            i32::try_from(found?).map_err(|_| OpError::new(format!("attribute '{name}' is large")))
        };
        let (end, padding) = (token("eos_token_id")?, token("pad_token_id")?);
        let size = context.attributes.int_or("no_repeat_ngram_size", 0)?;
        let no_repeat_ngram_size = bounds::length(size, "attribute 'no_repeat_ngram_size'")?;
        let vocab_size = context.attributes.int_or("vocab_size", 0)?;
        let vocab_size = usize::try_from(vocab_size).ok().filter(|&size| size > 0);
        Ok(Self { end, padding, no_repeat_ngram_size, vocab_size, start })
    }
}

/// Rules for the scores of the next tokens.
#[derive(Clone, Debug)]
pub(super) struct TextRules {
    /// Texts of one prompt.
    pub(super) beams: usize,
    pub(super) repetition_penalty: f32,
    pub(super) no_repeat_ngram_size: usize,
    /// 0 for tokens that are never written.
    pub(super) vocab_mask: Option<Vec<i64>>,
    /// 0 for tokens that do not come first, for each prompt.
    pub(super) prefix_mask: Option<Vec<i64>>,
    pub(super) min_length: usize,
    pub(super) end: i32,
    /// Divisor of the scores; nothing where it is 0.
    pub(super) temperature: f32,
}

/// Inputs of a search by position.
pub(super) struct SearchInputs<'a>(pub(super) &'a [Option<Datum>]);

impl<'a> SearchInputs<'a> {
    pub(super) fn tensor(&self, at: usize) -> Result<Option<&'a Tensor>, OpError> {
        match self.0.get(at) {
            Some(Some(Datum::Tensor(tensor))) => Ok(Some(tensor)),
            Some(Some(_)) => Err(OpError::new(format!("input {at} is no tensor"))),
            Some(None) | None => Ok(None),
        }
    }

    /// A single whole number.
    pub(super) fn length(&self, at: usize, name: &str) -> Result<Option<usize>, OpError> {
        let Some(tensor) = self.tensor(at)? else { return Ok(None) };
        match tensor.to_i64_vec()?[..] {
            [one] => Ok(Some(bounds::length(one, name)?)),
            _ => Err(OpError::new(format!("{name} has {} elements", tensor.elements()))),
        }
    }

    /// A single number, 1 where there is none.
    pub(super) fn factor(&self, at: usize, name: &str) -> Result<f32, OpError> {
        let Some(tensor) = self.tensor(at)? else { return Ok(1.0) };
        #[allow(clippy::cast_possible_truncation, reason = "the input is FP32")]
        match floats(tensor)?[..] {
            [one] => Ok(one as f32),
            _ => Err(OpError::new(format!("{name} has {} elements", tensor.elements()))),
        }
    }

    /// Whole numbers, as many as there are expected to be.
    pub(super) fn mask(&self, at: usize, shape: &[usize]) -> Result<Option<Vec<i64>>, OpError> {
        let Some(tensor) = self.tensor(at)? else { return Ok(None) };
        if tensor.elements() != shape.iter().product::<usize>() {
            let found = tensor.shape();
            return Err(OpError::new(format!("input {at} is {found:?}, expected {shape:?}")));
        }
        Ok(Some(tensor.to_i64_vec()?))
    }
}

/// Prompts and how long their texts may be.
#[derive(Debug)]
pub(super) struct PromptRows {
    /// Tokens of each prompt.
    pub(super) rows: Vec<Vec<i32>>,
    pub(super) length: usize,
    pub(super) max_length: usize,
}

impl PromptRows {
    /// Reads the prompts; with a start token their texts are that token alone.
    pub(super) fn read(inputs: &SearchInputs<'_>, start: Option<i32>) -> Result<Self, OpError> {
        let ids = inputs.tensor(0)?.ok_or_else(|| OpError::new("input_ids are missing"))?;
        let &[batch, given] = ids.shape() else {
            return Err(OpError::new(format!("input_ids of shape {:?}", ids.shape())));
        };
        if given == 0 {
            return Err(OpError::new("input_ids have no tokens"));
        }
        let length = if start.is_some() { 1 } else { given };
        let max_length = inputs.length(1, "max_length")?.unwrap_or(MAX_LENGTH);
        if max_length <= length || max_length > MAX_LENGTH {
            return Err(OpError::new(format!(
                "max_length is {max_length}, expected more than the {length} tokens of a prompt and at most {MAX_LENGTH}"
            )));
        }
        let tokens = match start {
            Some(start) => vec![start; batch],
            None => ids.to_vec::<i32>()?,
        };
        let rows = tokens.chunks_exact(length).map(<[i32]>::to_vec).collect();
        Ok(Self { rows, length, max_length })
    }
}

/// A number of beams or texts.
pub(super) fn beams(found: Option<usize>, name: &str) -> Result<usize, OpError> {
    match found {
        Some(count) if (1..=MAX_BEAMS).contains(&count) => Ok(count),
        found => Err(OpError::new(format!("{name} is {found:?}, expected 1 to {MAX_BEAMS}"))),
    }
}

/// The tokens of all texts, of which each fills the rest of a row.
pub(super) fn padded<'a>(
    texts: impl Iterator<Item = &'a [i32]>,
    shape: &[usize],
    padding: i32,
) -> Result<Tensor, OpError> {
    let count = bounds::bounded(DataType::Int32, shape)?;
    let width = shape.last().copied().unwrap_or(1).max(1);
    let mut all = vec![padding; count];
    for (row, text) in all.chunks_exact_mut(width).zip(texts) {
        row.iter_mut().zip(text).for_each(|(to, token)| *to = *token);
    }
    Ok(Tensor::from_vec(shape, all)?)
}

/// Facts of prompts and of the longest texts: batch and length of a text.
pub(super) fn text_facts(inputs: OperatorInputs<'_, Fact>) -> Result<[Dim; 2], OpError> {
    let ids = inputs.required(0)?;
    expect_type("input_ids", ids.dtype, |dtype| dtype == DataType::Int32, "INT32")?;
    let batch = match ids.shape.as_deref() {
        None => Dim::Unknown,
        Some([batch, _]) => batch.clone(),
        Some(dims) => {
            return Err(OpError::new(format!("input_ids of {} axes, expected 2", dims.len())));
        }
    };
    Ok([batch, number(inputs, 1)])
}

/// A length that an input holds.
pub(super) fn number(inputs: OperatorInputs<'_, Fact>, at: usize) -> Dim {
    let found = inputs.optional(at).and_then(Fact::integers).and_then(|all| all.first().copied());
    let found = found.and_then(|length| usize::try_from(length).ok());
    found.map_or(Dim::Unknown, Dim::Known)
}

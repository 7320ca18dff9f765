//! `GreedySearch` and `Sampling`: one text for each prompt.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor};

use super::decoder::{self, TextDecoder};
use super::random::SeededNumbers;
use super::requests::{
    self, EncoderRule, PromptRows, SearchInputs, SearchTokens, TextRules, text_facts,
};
use super::scores::index;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// Seed where no input gives one.
const SEED: usize = 0;

/// Which tokens may be drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopShare {
    /// Share of the probability that the most probable tokens have together.
    pub share: f32,
    /// Number of tokens that are kept at least.
    pub least: usize,
    /// Score of those that are left out.
    pub filter: f32,
    /// Divisor of the scores.
    pub temperature: f32,
    /// True if the least probable tokens are left out as long as their sum is below the rest.
    pub from_below: bool,
}

impl TopShare {
    fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let attributes = &mut context.attributes;
        // ONNX Runtime's CPU reads it and does nothing with it.
        attributes.ignore("presence_penalty");
        let least = attributes.int_or("min_tokens_to_keep", 0)?;
        Ok(Self {
            share: attributes.float_or("top_p", 0.0)?,
            least: usize::try_from(least).unwrap_or(0),
            filter: attributes.float_or("filter_value", -1e20)?,
            temperature: attributes.float_or("temperature", 1.0)?,
            from_below: attributes.flag("custom", false)?,
        })
    }

    /// Leaves tokens out.
    fn filter(self, row: &mut [f32]) {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        if self.share == 0.0 && !self.from_below {
            row.fill(self.filter);
            return;
        }
        if self.from_below {
            order.reverse();
        }
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = order.iter().map(|&at| f64::from(row[at] - most).exp()).collect();
        let total: f64 = powers.iter().sum();
        let mut sum = 0.0;
        for (rank, power) in powers.iter().enumerate() {
            sum += power / total;
            #[allow(clippy::cast_possible_truncation, reason = "probabilities are FP32")]
            let share = sum as f32;
            let out = match self.from_below {
                true => (share <= 1.0 - self.share).then_some(rank),
                false => (share > self.share && rank + 1 >= self.least).then_some(rank + 1),
            };
            if let Some(&at) = out.and_then(|rank| order.get(rank)) {
                row[at] = self.filter;
            }
        }
    }
}

/// Choice of the next token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenChoice {
    /// The one with the greatest score.
    Greatest,
    /// One that is drawn.
    Drawn(TopShare),
}

/// `GreedySearch` and `Sampling` of domain `com.microsoft` with a decoder as GPT-2's.
///
/// Inputs: prompts `[B, S]`, the greatest and least length, a penalty of repetition, masks of tokens `[V]` and of first
/// tokens `[B, V]`, a mask of the prompts, and for `Sampling` a mask that has no effect and a seed. Outputs: texts
/// `[B, length]`, and for `Sampling` the scores of the last step.
#[derive(Clone, Debug)]
pub struct TokenSearch {
    bodies: Vec<OperatorBody>,
    tokens: SearchTokens,
    choice: TokenChoice,
    inputs: usize,
}

impl TokenSearch {
    pub(in crate::ops::contrib) fn greedy(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Self::parse(context, TokenChoice::Greatest)
    }

    pub(in crate::ops::contrib) fn sampling(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let share = TopShare::parse(context)?;
        Self::parse(context, TokenChoice::Drawn(share))
    }

    fn parse(
        context: &mut ParseContext<'_>,
        choice: TokenChoice,
    ) -> Result<Box<dyn Operator>, OpError> {
        let tokens = SearchTokens::parse(context, EncoderRule::Refused)?;
        let bodies = decoder::parse(context)?;
        Ok(Box::new(Self { bodies, tokens, choice, inputs: context.inputs }))
    }

    fn chosen(&self, row: &mut [f32], numbers: &mut SeededNumbers) -> usize {
        match self.choice {
            TokenChoice::Greatest => greatest(row),
            TokenChoice::Drawn(share) => {
                share.filter(row);
                drawn(row, numbers.unit())
            }
        }
    }
}

/// Place of the greatest score; of equal ones the first.
fn greatest(row: &[f32]) -> usize {
    let mut best = 0;
    for (at, score) in row.iter().enumerate() {
        if *score > row[best] {
            best = at;
        }
    }
    best
}

/// The token at a share of the sum of all powers.
fn drawn(row: &[f32], share: f64) -> usize {
    let most = row.iter().copied().filter(|x| x.is_finite()).fold(f32::MIN, f32::max);
    let mut sum = 0.0;
    let sums: Vec<f64> = row
        .iter()
        .map(|&score| {
            sum += if score.is_finite() { (f64::from(score) - f64::from(most)).exp() } else { 0.0 };
            sum
        })
        .collect();
    let target = share * sum;
    sums.partition_point(|&sum| sum <= target).min(row.len().saturating_sub(1))
}

impl Operator for TokenSearch {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let [batch, length] = text_facts(inputs)?;
        let scores = Fact::new(DataType::Fp32, vec![batch.clone(), Dim::Unknown]);
        let texts = Fact::new(DataType::Int32, vec![batch, length]);
        Ok(match self.choice {
            TokenChoice::Greatest => vec![texts],
            TokenChoice::Drawn(_) => vec![texts, scores],
        })
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let mut decoder = TextDecoder::new(&self.bodies, &mut inputs, &self.tokens)?;
        inputs.truncate(self.inputs);
        let inputs = SearchInputs(&inputs);
        let prompts = PromptRows::read(&inputs, None)?;
        let batch = prompts.rows.len();
        let mask = inputs.mask(6, &[batch, prompts.length])?;
        let SearchTokens { end, padding, no_repeat_ngram_size, .. } = self.tokens;
        let mut scores = decoder.start(&prompts, mask.as_deref(), padding, 1)?;
        let words = scores.words;
        let temperature = match self.choice {
            TokenChoice::Greatest => 0.0,
            TokenChoice::Drawn(share) => share.temperature,
        };
        let rules = TextRules {
            beams: 1,
            repetition_penalty: inputs.factor(3, "repetition_penalty")?,
            no_repeat_ngram_size,
            vocab_mask: inputs.mask(4, &[words])?,
            prefix_mask: inputs.mask(5, &[batch, words])?,
            min_length: inputs.length(2, "min_length")?.unwrap_or(0),
            end,
            temperature,
        };
        let seed = inputs.length(8, "seed")?.unwrap_or(SEED);
        let mut numbers = SeededNumbers::new(u32::try_from(seed).unwrap_or(u32::MAX));
        let mut texts = prompts.rows.clone();
        let mut ended = vec![false; batch];
        let same: Vec<usize> = (0..batch).collect();
        for length in prompts.length..prompts.max_length {
            scores.apply(&rules, &texts, length == prompts.length);
            let mut tokens = vec![padding; batch];
            for (text, token) in tokens.iter_mut().enumerate() {
                let chosen = self.chosen(scores.row_mut(text), &mut numbers);
                ended[text] |= Some(chosen) == index(end);
                if !ended[text] {
                    *token = i32::try_from(chosen).unwrap_or(i32::MAX);
                }
            }
            if ended.iter().all(|ended| *ended) {
                break;
            }
            texts.iter_mut().zip(&tokens).for_each(|(text, token)| text.push(*token));
            if length + 1 < prompts.max_length {
                scores = decoder.step(&tokens, &same)?;
            }
        }
        let shape = [batch, prompts.max_length];
        let found = requests::padded(texts.iter().map(Vec::as_slice), &shape, padding)?;
        let mut outputs = vec![Datum::Tensor(found)];
        if matches!(self.choice, TokenChoice::Drawn(_)) {
            outputs.push(Datum::Tensor(Tensor::from_vec(&[batch, words], scores.values)?));
        }
        Ok(outputs)
    }

    /// Not folded: the number of steps is an input's.
    fn is_deterministic(&self) -> bool {
        false
    }

    fn bodies(&self) -> &[OperatorBody] {
        &self.bodies
    }

    fn body_facts(
        &self,
        body: usize,
        inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Option<Fact>>, OpError> {
        let body = self.bodies.get(body).ok_or_else(|| OpError::new("there is no such body"))?;
        Ok(decoder::body_facts(body, inputs))
    }

    fn with_bodies(&self, bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Self { bodies, ..self.clone() }))
    }
}

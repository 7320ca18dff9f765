//! The decoder of a search: a subgraph that scores the tokens behind all texts.

use galatea_tensor::{DataType, Tensor};

use super::requests::{PromptRows, SearchTokens};
use super::scores::TokenScores;
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::{OperatorInputs, ParseContext};
use crate::ops::shape::join_tensors;
use crate::ops::values::floats;

/// Inputs of the subgraph before the vectors of earlier positions: tokens, positions and mask.
const OWN: usize = 3;
/// Axis of the texts in the vectors of earlier positions `[2, texts, heads, positions, width]`.
const TEXTS: usize = 1;

/// The subgraphs: the decoder, and the one for the first step where there is another.
pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Vec<OperatorBody>, OpError> {
    let mut bodies = vec![context.body("decoder")?];
    if context.attributes.graph("init_decoder")?.is_some() {
        bodies.push(context.body("init_decoder")?);
    }
    for body in &bodies {
        let layers = body.outputs().saturating_sub(1);
        if layers == 0 {
            return Err(OpError::new(format!("'{}' gives no vectors of positions", body.name())));
        }
        body.check(OWN + layers, 1 + layers)?;
    }
    Ok(bodies)
}

/// Facts of a decoder's inputs.
pub(super) fn body_facts(
    body: &OperatorBody,
    inputs: OperatorInputs<'_, Fact>,
) -> Vec<Option<Fact>> {
    let graph = body.graph();
    let declared = |&id: &_| {
        let fact: &Fact = graph.value(id).declared.as_ref()?;
        let known = |dim: &Dim| dim.known().map_or(Dim::Unknown, Dim::Known);
        let shape = fact.shape.as_ref().map(|dims| dims.iter().map(known).collect());
        Some(Fact::shaped(fact.dtype, shape))
    };
    let own: Vec<Option<Fact>> =
        graph.inputs.iter().take(body.own_inputs()).map(declared).collect();
    body.input_facts(&own, inputs)
}

/// A decoder and what it has read.
pub(super) struct TextDecoder<'a> {
    bodies: &'a [OperatorBody],
    captured: Vec<Vec<Datum>>,
    vocab_size: Option<usize>,
    /// Vectors of earlier positions.
    past: Vec<Tensor>,
    /// Which positions of each text count.
    mask: Vec<Vec<i32>>,
    /// Positions of the next tokens.
    next: Vec<i32>,
}

impl<'a> TextDecoder<'a> {
    /// Takes what the subgraphs capture from the inputs of the node.
    pub(super) fn new(
        bodies: &'a [OperatorBody],
        inputs: &mut [Option<Datum>],
        tokens: &SearchTokens,
    ) -> Result<Self, OpError> {
        let mut take = |body: &OperatorBody| {
            // Both subgraphs may read the same value.
            let mut copies = inputs.to_vec();
            body.capture(&mut copies)
        };
        let captured = collected(&mut bodies.iter().map(&mut take))?;
        let vocab_size = tokens.vocab_size;
        Ok(Self { bodies, captured, vocab_size, past: vec![], mask: vec![], next: vec![] })
    }

    /// Scores of the tokens behind the prompts, each of them `beams` times. Padding is no part of a prompt and has
    /// position 0; a mask, if one is given, says what counts.
    pub(super) fn start(
        &mut self,
        prompts: &PromptRows,
        mask: Option<&[i64]>,
        padding: i32,
        beams: usize,
    ) -> Result<TokenScores, OpError> {
        let mut positions = Vec::new();
        for (at, row) in prompts.rows.iter().enumerate() {
            let (mut next, mut places, mut counts) = (0, Vec::new(), Vec::new());
            for (column, &token) in row.iter().enumerate() {
                let given = mask.and_then(|mask| mask.get(at * prompts.length + column));
                let own = i32::from(token != padding);
                counts.push(given.map_or(own, |&count| i32::try_from(count).unwrap_or(1)));
                places.push(next * own);
                next += own;
            }
            for _ in 0..beams {
                positions.extend_from_slice(&places);
                self.mask.push(counts.clone());
                self.next.push(next);
            }
        }
        let rows = prompts.rows.iter().flat_map(|row| std::iter::repeat_n(row, beams));
        let ids: Vec<i32> = rows.flatten().copied().collect();
        self.past = self.empty(self.next.len())?;
        self.run(self.bodies.len() - 1, ids, positions)
    }

    /// Scores of the tokens behind the texts that took `tokens` after the texts at `from`.
    pub(super) fn step(&mut self, tokens: &[i32], from: &[usize]) -> Result<TokenScores, OpError> {
        if from.iter().enumerate().any(|(at, &text)| at != text) {
            self.past = collected(&mut self.past.iter().map(|past| picked(past, TEXTS, from)))?;
        }
        // Texts of one prompt have equal masks and lengths, whichever they follow.
        let positions = self.next.clone();
        self.next.iter_mut().for_each(|next| *next += 1);
        self.mask.iter_mut().for_each(|mask| mask.push(1));
        self.run(0, tokens.to_vec(), positions)
    }

    /// Vectors of no positions.
    fn empty(&self, texts: usize) -> Result<Vec<Tensor>, OpError> {
        let graph = self.bodies[0].graph();
        let layers = self.bodies[0].outputs() - 1;
        let layer = |&id: &_| {
            let declared = graph.value(id).declared.as_ref();
            let dims = declared.and_then(|fact: &Fact| fact.shape.as_deref());
            match (declared, dims) {
                (Some(fact), Some([_, _, heads, _, width])) => {
                    let (heads, width) = (heads.known(), width.known());
                    let (Some(heads), Some(width)) = (heads, width) else { return None };
                    Tensor::zeros(fact.dtype, &[2, texts, heads, 0, width]).ok()
                }
                _ => None,
            }
        };
        let layer = |id: &_| {
            layer(id).ok_or_else(|| {
                let text = "the decoder declares no number of heads and width for past vectors";
                OpError::new(format!("{text} [2, texts, heads, positions, width]"))
            })
        };
        collected(&mut graph.inputs.iter().skip(OWN).take(layers).map(layer))
    }

    fn run(
        &mut self,
        body: usize,
        ids: Vec<i32>,
        positions: Vec<i32>,
    ) -> Result<TokenScores, OpError> {
        let texts = self.next.len();
        let shape = [texts, ids.len() / texts.max(1)];
        let width = self.mask.first().map_or(0, Vec::len);
        let mask = Tensor::from_vec(&[texts, width], self.mask.concat())?;
        let mut own = vec![
            Datum::Tensor(Tensor::from_vec(&shape, ids)?),
            Datum::Tensor(Tensor::from_vec(&shape, positions)?),
            Datum::Tensor(mask),
        ];
        own.extend(self.past.drain(..).map(Datum::Tensor));
        let captured = self.captured[body].clone();
        let mut outputs = self.bodies[body].run(own, captured)?.into_iter();
        let logits = match outputs.next() {
            Some(logits) => logits.into_tensor()?,
            None => return Err(OpError::new("the decoder gives no scores")),
        };
        self.past = collected(&mut outputs.map(Datum::into_tensor))?;
        last_scores(&logits, texts, self.vocab_size)
    }
}

/// Scores behind the last position, from scores `[texts, positions, words]`.
pub(super) fn last_scores(
    logits: &Tensor,
    texts: usize,
    vocab_size: Option<usize>,
) -> Result<TokenScores, OpError> {
    let &[own, positions, all] = logits.shape() else {
        return Err(OpError::new(format!("scores of shape {:?}", logits.shape())));
    };
    let words = vocab_size.unwrap_or(all);
    if own != texts || positions == 0 || words > all || words == 0 {
        let text = format!("scores of shape {:?}", logits.shape());
        return Err(OpError::new(format!("{text} for {texts} texts and {words} tokens")));
    }
    let last = logits.slice_axis(1, positions - 1, 1, 1)?.slice_axis(2, 0, words, 1)?;
    #[allow(clippy::cast_possible_truncation, reason = "scores are FP32")]
    let values = floats(&last)?.into_iter().map(|score| score as f32).collect();
    Ok(TokenScores { values, words })
}

/// Parts of a tensor at these places of an axis.
pub(super) fn picked(of: &Tensor, axis: usize, from: &[usize]) -> Result<Tensor, OpError> {
    let one = |&at: &usize| -> Result<Tensor, OpError> {
        Ok(of.slice_axis(axis, at, 1, 1)?.contiguous()?)
    };
    let rows = collected(&mut from.iter().map(one))?;
    join_tensors(&rows.iter().collect::<Vec<_>>(), axis)
}

/// Type of the scores of steps.
pub(super) const SCORES: DataType = DataType::Fp32;

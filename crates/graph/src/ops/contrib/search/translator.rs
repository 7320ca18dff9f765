//! An encoder and a decoder as T5's: one reads the prompts, the other writes texts behind a start token.

use galatea_tensor::Tensor;

use super::decoder::{last_scores, picked};
use super::requests::{PromptRows, SearchTokens};
use super::scores::TokenScores;
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::ParseContext;

/// Axis of the texts in all tensors of the subgraphs.
const TEXTS: usize = 0;
/// Inputs of the decoder before the encoder's vectors: tokens and the mask of the prompts.
const OWN: usize = 2;

/// Parses the subgraphs: the decoder, then the encoder.
pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Vec<OperatorBody>, OpError> {
    let bodies = vec![context.body("decoder")?, context.body("encoder")?];
    TranslatorLayout::of(&bodies)?;
    Ok(bodies)
}

/// Inputs and outputs of the subgraphs.
#[derive(Clone, Copy)]
struct TranslatorLayout {
    /// Keys and values of all layers.
    pasts: usize,
    /// True if the decoder takes the last vectors of the encoder too.
    takes_hidden: bool,
    /// True if the encoder takes the start tokens, and gives the scores behind them.
    starts: bool,
    /// True if the decoder takes whole texts, not their last tokens.
    whole_texts: bool,
}

impl TranslatorLayout {
    fn of(bodies: &[OperatorBody]) -> Result<Self, OpError> {
        let [decoder, encoder] = bodies else {
            return Err(OpError::new("a decoder and an encoder are expected"));
        };
        let graph = decoder.graph();
        let value = |at: usize| graph.inputs.get(at).map(|&id| graph.value(id));
        let takes_hidden = value(OWN).is_some_and(|value| value.name == "encoder_hidden_states");
        let pasts = decoder.outputs().saturating_sub(1);
        if pasts == 0 || !pasts.is_multiple_of(2) {
            return Err(OpError::new(format!(
                "'decoder' gives {pasts} keys and values, expected two for each layer"
            )));
        }
        decoder.check(OWN + usize::from(takes_hidden) + 2 * pasts, 1 + pasts)?;
        let starts = encoder.own_inputs() != 2;
        match starts {
            true => encoder.check(3, 2 + 2 * pasts)?,
            false => encoder.check(2, pasts)?,
        }
        if takes_hidden && !starts {
            let text = "'decoder' takes encoder_hidden_states, which 'encoder' does not give";
            return Err(OpError::new(text));
        }
        let ids = value(0).and_then(|value| value.declared.as_ref());
        let dims = ids.and_then(|fact: &Fact| fact.shape.as_deref());
        let whole_texts = !matches!(dims, Some([_, Dim::Known(1)]));
        Ok(Self { pasts, takes_hidden, starts, whole_texts })
    }
}

/// An encoder and a decoder, and what they have read and written.
pub(super) struct TextTranslator<'a> {
    decoder: &'a OperatorBody,
    encoder: &'a OperatorBody,
    captured: [Vec<Datum>; 2],
    layout: TranslatorLayout,
    vocab_size: Option<usize>,
    texts: usize,
    /// Inputs of each step about the prompts: their mask, and the last vectors of the encoder.
    prompts: Vec<Tensor>,
    /// Keys and values of the texts.
    past: Vec<Tensor>,
    /// Keys and values of the prompts.
    cross: Vec<Tensor>,
}

impl<'a> TextTranslator<'a> {
    /// Takes what the subgraphs capture from the inputs of the node.
    pub(super) fn new(
        bodies: &'a [OperatorBody],
        inputs: &[Option<Datum>],
        tokens: &SearchTokens,
    ) -> Result<Self, OpError> {
        let layout = TranslatorLayout::of(bodies)?;
        let capture = |body: &OperatorBody| body.capture(&mut inputs.to_vec());
        Ok(Self {
            decoder: &bodies[0],
            encoder: &bodies[1],
            captured: [capture(&bodies[0])?, capture(&bodies[1])?],
            layout,
            vocab_size: tokens.vocab_size,
            texts: 0,
            prompts: vec![],
            past: vec![],
            cross: vec![],
        })
    }

    /// Scores of the tokens behind the start tokens, for each prompt `beams` times. Padding at the beginning is no part
    /// of a prompt; a mask, if one is given, says what counts.
    pub(super) fn start(
        &mut self,
        ids: &Tensor,
        mask: Option<&[i64]>,
        prompts: &PromptRows,
        settings: TranslatorStart,
    ) -> Result<TokenScores, OpError> {
        let TranslatorStart { padding, beams } = settings;
        let batch = prompts.rows.len();
        let counts = match mask {
            Some(mask) => mask.iter().map(|&one| i32::try_from(one).unwrap_or(1)).collect(),
            None => counted(&ids.to_vec::<i32>()?, ids.shape()[1], padding),
        };
        let mask = Tensor::from_vec(ids.shape(), counts)?;
        let starts = Tensor::from_vec(&[batch, 1], prompts.rows.concat())?;
        let mut own = vec![ids.clone(), mask.clone()];
        own.extend(self.layout.starts.then(|| starts.clone()));
        let own = own.into_iter().map(Datum::Tensor).collect();
        let outputs = self.encoder.run(own, self.captured[1].clone())?;
        let mut outputs = collected(&mut outputs.into_iter().map(Datum::into_tensor))?.into_iter();
        self.texts = batch * beams;
        let copies: Vec<usize> = (0..self.texts).map(|text| text / beams).collect();
        let spread = |tensor: &Tensor| picked(tensor, TEXTS, &copies);
        self.prompts = vec![spread(&mask)?];
        if self.layout.starts {
            let (logits, hidden) = (outputs.next(), outputs.next());
            let (Some(logits), Some(hidden)) = (logits, hidden) else {
                return Err(OpError::new("the encoder gives no scores"));
            };
            if self.layout.takes_hidden {
                self.prompts.push(spread(&hidden)?);
            }
            let past = outputs.by_ref().take(self.layout.pasts);
            self.past = collected(&mut past.map(|tensor| spread(&tensor)))?;
            self.cross = collected(&mut outputs.map(|tensor| spread(&tensor)))?;
            return last_scores(&spread(&logits)?, self.texts, self.vocab_size);
        }
        self.cross = collected(&mut outputs.map(|tensor| spread(&tensor)))?;
        self.past = collected(&mut self.cross.iter().map(no_positions))?;
        self.decode(&spread(&starts)?)
    }

    /// Scores of the tokens behind texts, whose last tokens are new and which follow the texts at `from`.
    pub(super) fn step(
        &mut self,
        texts: &[Vec<i32>],
        from: &[usize],
    ) -> Result<TokenScores, OpError> {
        if from.iter().enumerate().any(|(at, &text)| at != text) {
            self.past = collected(&mut self.past.iter().map(|past| picked(past, TEXTS, from)))?;
        }
        let whole = self.layout.whole_texts;
        let part = |text: &Vec<i32>| text[if whole { 0 } else { text.len() - 1 }..].to_vec();
        let ids: Vec<i32> = texts.iter().flat_map(part).collect();
        let shape = [self.texts, ids.len() / self.texts.max(1)];
        self.decode(&Tensor::from_vec(&shape, ids)?)
    }

    fn decode(&mut self, ids: &Tensor) -> Result<TokenScores, OpError> {
        let own = std::iter::once(ids.clone()).chain(self.prompts.iter().cloned());
        let own = own.chain(self.past.drain(..)).chain(self.cross.iter().cloned());
        let own = own.map(Datum::Tensor).collect();
        let outputs = self.decoder.run(own, self.captured[0].clone())?;
        let mut outputs = collected(&mut outputs.into_iter().map(Datum::into_tensor))?.into_iter();
        let logits = outputs.next().ok_or_else(|| OpError::new("the decoder gives no scores"))?;
        self.past = outputs.collect();
        last_scores(&logits, self.texts, self.vocab_size)
    }
}

/// How a translator starts.
#[derive(Clone, Copy)]
pub(super) struct TranslatorStart {
    /// Token that is no part of a prompt at its beginning.
    pub(super) padding: i32,
    /// Texts of one prompt.
    pub(super) beams: usize,
}

/// Which tokens of prompts count: padding behind the first other token does, which may be the end of a text.
fn counted(ids: &[i32], length: usize, padding: i32) -> Vec<i32> {
    let row = |row: &[i32]| {
        let begin = row.iter().position(|&token| token != padding).unwrap_or(row.len());
        (0..row.len()).map(|at| i32::from(at >= begin)).collect::<Vec<_>>()
    };
    ids.chunks(length.max(1)).flat_map(row).collect()
}

/// Keys or values of no positions, for texts whose prompts have these.
fn no_positions(cross: &Tensor) -> Result<Tensor, OpError> {
    match cross.shape() {
        &[texts, heads, _, width] => Ok(Tensor::zeros(cross.dtype(), &[texts, heads, 0, width])?),
        shape => Err(OpError::new(format!(
            "'encoder' gives vectors of shape {shape:?}, expected [texts, heads, positions, width]"
        ))),
    }
}

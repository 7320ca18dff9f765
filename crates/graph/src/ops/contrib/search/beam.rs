//! `BeamSearch`: the texts that a decoder finds most probable.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::decoder::{self, SCORES, TextDecoder};
use super::hypotheses::FinishedTexts;
use super::requests::{
    self, EncoderRule, PromptRows, SearchInputs, SearchTokens, TextRules, text_facts,
};
use super::scores::TokenScores;
use super::translator::{self, TextTranslator, TranslatorStart};
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::graph::OperatorBody;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::bounds::bounded;

/// Score of the beams of a prompt that do not count in the first step: all are equal there.
const UNUSED: f32 = -1e9;

/// `BeamSearch` of domain `com.microsoft` with a decoder as GPT-2's, or with an encoder and a decoder as T5's.
///
/// Inputs: prompts `[B, S]`, the greatest and least length, numbers of beams and of texts, penalties of length and
/// repetition, masks of tokens `[V]` and of first tokens `[B, V]`, and a mask of the prompts. Outputs: texts
/// `[B, texts, length]`, their scores `[B, texts]`, and the scores of all tokens in each step `[steps, B, beams, V]`.
#[derive(Clone, Debug)]
pub struct BeamSearch {
    bodies: Vec<OperatorBody>,
    tokens: SearchTokens,
    early_stopping: bool,
    inputs: usize,
}

impl BeamSearch {
    pub(in crate::ops::contrib) fn parse(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let tokens = SearchTokens::parse(context, EncoderRule::Allowed)?;
        let early_stopping = context.attributes.flag("early_stopping", false)?;
        let bodies = match tokens.start {
            Some(_) => translator::parse(context)?,
            None => decoder::parse(context)?,
        };
        Ok(Box::new(Self { bodies, tokens, early_stopping, inputs: context.inputs }))
    }
}

/// Numbers of a search.
struct BeamSettings {
    beams: usize,
    returned: usize,
    length_penalty: f32,
    early_stopping: bool,
    end: i32,
    padding: i32,
}

/// The model that scores texts.
enum BeamModel<'a> {
    Decoder(TextDecoder<'a>),
    Translator(TextTranslator<'a>),
}

impl BeamModel<'_> {
    /// Scores of the tokens behind the prompts.
    fn start(
        &mut self,
        inputs: &SearchInputs<'_>,
        prompts: &PromptRows,
        settings: &BeamSettings,
    ) -> Result<TokenScores, OpError> {
        let ids = inputs.tensor(0)?.ok_or_else(|| OpError::new("input_ids are missing"))?;
        let mask = inputs.mask(9, ids.shape())?;
        let &BeamSettings { padding, beams, .. } = settings;
        match self {
            Self::Decoder(decoder) => decoder.start(prompts, mask.as_deref(), padding, beams),
            Self::Translator(translator) => {
                let start = TranslatorStart { padding, beams };
                translator.start(ids, mask.as_deref(), prompts, start)
            }
        }
    }

    /// Scores of the tokens behind texts that have got a token each.
    fn step(&mut self, step: &BeamStep, texts: &[Vec<i32>]) -> Result<TokenScores, OpError> {
        match self {
            Self::Decoder(decoder) => decoder.step(&step.tokens, &step.from),
            Self::Translator(translator) => translator.step(texts, &step.from),
        }
    }
}

/// The beams of all prompts.
struct BeamState {
    texts: Vec<Vec<i32>>,
    sums: Vec<f32>,
    finished: Vec<FinishedTexts>,
}

/// Next token of each text, and the text that it follows.
struct BeamStep {
    tokens: Vec<i32>,
    from: Vec<usize>,
}

impl BeamState {
    fn new(prompts: &PromptRows, settings: &BeamSettings) -> Self {
        let beams = settings.beams;
        let rows = prompts.rows.iter().flat_map(|row| std::iter::repeat_n(row.clone(), beams));
        let texts: Vec<Vec<i32>> = rows.collect();
        let sum = |at: usize| if at.is_multiple_of(beams) { 0.0 } else { UNUSED };
        let sums = (0..texts.len()).map(sum).collect();
        let none = || FinishedTexts::new(beams, settings.length_penalty);
        let finished = prompts.rows.iter().map(|_| none()).collect();
        Self { texts, sums, finished }
    }

    /// Adds the best next tokens, by the scores of all.
    fn extend(&mut self, scores: &TokenScores, settings: &BeamSettings) -> BeamStep {
        let beams = settings.beams;
        let mut tokens = vec![settings.padding; self.texts.len()];
        let mut from: Vec<usize> = (0..self.texts.len()).map(|at| at / beams * beams).collect();
        let mut sums = vec![0.0; self.texts.len()];
        for (prompt, finished) in self.finished.iter_mut().enumerate().filter(|(_, one)| !one.done)
        {
            let first = prompt * beams;
            let all = &scores.values[first * scores.words..(first + beams) * scores.words];
            let best = best_places(all, 2 * beams);
            let mut beam = first;
            for (rank, &place) in best.iter().enumerate() {
                let text = first + place / scores.words;
                let token = i32::try_from(place % scores.words).unwrap_or(i32::MAX);
                if token != settings.end {
                    (tokens[beam], from[beam], sums[beam]) = (token, text, all[place]);
                    beam += 1;
                } else if rank < beams {
                    finished.add(&self.texts[text], all[place]);
                }
                if beam == first + beams {
                    break;
                }
            }
            let top = best.first().map_or(f32::NEG_INFINITY, |&place| all[place]);
            finished.update(top, self.texts[first].len(), settings.early_stopping);
        }
        self.sums = sums;
        let followed = |(&from, &token): (&usize, &i32)| {
            let mut text = self.texts[from].clone();
            text.push(token);
            text
        };
        self.texts = from.iter().zip(&tokens).map(followed).collect();
        BeamStep { tokens, from }
    }

    /// Takes texts that did not end for finished ones.
    fn finish(&mut self, beams: usize) {
        for (prompt, finished) in self.finished.iter_mut().enumerate().filter(|(_, one)| !one.done)
        {
            for beam in prompt * beams..(prompt + 1) * beams {
                finished.add(&self.texts[beam], self.sums[beam]);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.finished.iter().all(|finished| finished.done)
    }
}

/// Places of the greatest scores, the greatest first.
fn best_places(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let before = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    if count < order.len() {
        order.select_nth_unstable_by(count, before);
        order.truncate(count);
    }
    order.sort_unstable_by(before);
    order
}

impl Operator for BeamSearch {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let [batch, length] = text_facts(inputs)?;
        let returned = requests::number(inputs, 4);
        let beams = requests::number(inputs, 3);
        let texts = vec![batch.clone(), returned.clone(), length];
        let steps = vec![Dim::Unknown, batch.clone(), beams, Dim::Unknown];
        Ok(vec![
            Fact::new(galatea_tensor::DataType::Int32, texts),
            Fact::new(SCORES, vec![batch, returned]),
            Fact::new(SCORES, steps),
        ])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let mut model = match self.tokens.start {
            Some(_) => {
                let found = TextTranslator::new(&self.bodies, &inputs, &self.tokens)?;
                BeamModel::Translator(found)
            }
            None => {
                let found = TextDecoder::new(&self.bodies, &mut inputs, &self.tokens)?;
                BeamModel::Decoder(found)
            }
        };
        inputs.truncate(self.inputs);
        let inputs = SearchInputs(&inputs);
        for at in [10, 11] {
            if inputs.tensor(at)?.is_some() {
                return Err(OpError::new(format!("input {at} is only for models as Whisper")));
            }
        }
        let prompts = PromptRows::read(&inputs, self.tokens.start)?;
        let beams = requests::beams(inputs.length(3, "num_beams")?, "num_beams")?;
        let returned = inputs.length(4, "num_return_sequences")?;
        let returned = requests::beams(returned, "num_return_sequences")?;
        if returned > beams {
            return Err(OpError::new(format!("{returned} texts of {beams} beams")));
        }
        let settings = BeamSettings {
            beams,
            returned,
            length_penalty: inputs.factor(5, "length_penalty")?,
            early_stopping: self.early_stopping,
            end: self.tokens.end,
            padding: self.tokens.padding,
        };
        let batch = prompts.rows.len();
        let mut scores = model.start(&inputs, &prompts, &settings)?;
        let words = scores.words;
        let rules = TextRules {
            beams,
            repetition_penalty: inputs.factor(6, "repetition_penalty")?,
            no_repeat_ngram_size: self.tokens.no_repeat_ngram_size,
            vocab_mask: inputs.mask(7, &[words])?,
            prefix_mask: inputs.mask(8, &[batch, words])?,
            min_length: inputs.length(2, "min_length")?.unwrap_or(0),
            end: settings.end,
            temperature: 0.0,
        };
        let mut state = BeamState::new(&prompts, &settings);
        let steps = prompts.max_length - prompts.length;
        let shape = [steps, batch, beams, words];
        let mut all = vec![0.0_f32; bounded(SCORES, &shape)?];
        for (step, kept) in all.chunks_exact_mut((batch * beams * words).max(1)).enumerate() {
            scores.log_softmax();
            scores.apply(&rules, &state.texts, step == 0);
            for (row, sum) in scores.values.chunks_exact_mut(words).zip(&state.sums) {
                row.iter_mut().for_each(|score| *score += sum);
            }
            kept.copy_from_slice(&scores.values);
            let next = state.extend(&scores, &settings);
            if state.is_done() || step + 1 == steps {
                break;
            }
            scores = model.step(&next, &state.texts)?;
        }
        state.finish(beams);
        let best = state.finished.iter().flat_map(|one| one.texts().iter().take(settings.returned));
        let shape_of_texts = [batch, settings.returned, prompts.max_length];
        let tokens = best.clone().map(|text| text.tokens.as_slice());
        let texts = requests::padded(tokens, &shape_of_texts, settings.padding)?;
        let sums: Vec<f32> = best.map(|text| text.score).collect();
        let sums = Tensor::from_vec(&[batch, settings.returned], sums)?;
        let kept = Tensor::from_vec(&shape, all)?;
        Ok([texts, sums, kept].map(Datum::Tensor).into())
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

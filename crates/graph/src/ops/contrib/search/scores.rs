//! Rules that change the scores of the next tokens.

use super::requests::TextRules;

/// Scores of forbidden tokens.
const LOWEST: f32 = f32::MIN;

/// Scores of all tokens for each text: `[texts, words]`.
#[derive(Clone, Debug)]
pub(super) struct TokenScores {
    pub(super) values: Vec<f32>,
    pub(super) words: usize,
}

/// Texts so far, all of one length.
pub(super) type TokenRows = [Vec<i32>];

impl TokenScores {
    /// Scores of one text.
    pub(super) fn row_mut(&mut self, text: usize) -> &mut [f32] {
        &mut self.values[text * self.words..(text + 1) * self.words]
    }

    /// Makes logarithms of probabilities of them.
    pub(super) fn log_softmax(&mut self) {
        for row in self.values.chunks_exact_mut(self.words.max(1)) {
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|&x| f64::from(x - most).exp()).sum();
            #[allow(clippy::cast_possible_truncation, reason = "scores are FP32")]
            let log = sum.ln() as f32;
            row.iter_mut().for_each(|x| *x = *x - most - log);
        }
    }

    /// Applies all rules in the order of ONNX Runtime. `beams` texts belong to one prompt; `is_first` says that the
    /// texts are the prompts.
    pub(super) fn apply(&mut self, rules: &TextRules, texts: &TokenRows, is_first: bool) {
        for (at, tokens) in texts.iter().enumerate() {
            let prompt = at / rules.beams.max(1);
            let words = self.words;
            let row = self.row_mut(at);
            repeat_less(row, tokens, rules.repetition_penalty);
            forbid_n_grams(row, tokens, rules.no_repeat_ngram_size);
            if let Some(mask) = &rules.vocab_mask {
                forbid(row, mask);
            }
            if let Some(mask) = rules.prefix_mask.as_ref().filter(|_| is_first) {
                forbid(row, mask.get(prompt * words..(prompt + 1) * words).unwrap_or_default());
            }
            if tokens.len() < rules.min_length
                && let Some(score) = index(rules.end).and_then(|end| row.get_mut(end))
            {
                *score = LOWEST;
            }
            if rules.temperature > 0.0 {
                row.iter_mut().for_each(|score| *score /= rules.temperature);
            }
        }
    }
}

/// Place of a token among the scores.
pub(super) fn index(token: i32) -> Option<usize> {
    usize::try_from(token).ok()
}

/// Makes tokens of the text less likely.
fn repeat_less(row: &mut [f32], tokens: &[i32], penalty: f32) {
    if penalty == 1.0 {
        return;
    }
    let mut seen = tokens.to_vec();
    seen.sort_unstable();
    seen.dedup();
    for token in seen.into_iter().filter_map(index) {
        if let Some(score) = row.get_mut(token) {
            *score = if *score < 0.0 { *score * penalty } else { *score / penalty };
        }
    }
}

/// Forbids tokens that would end an n-gram which the text has already.
fn forbid_n_grams(row: &mut [f32], tokens: &[i32], size: usize) {
    if size == 0 || size > tokens.len() {
        return;
    }
    let last = &tokens[tokens.len() + 1 - size..];
    for gram in tokens.windows(size) {
        let Some((&next, before)) = gram.split_last() else { continue };
        if before == last
            && let Some(score) = index(next).and_then(|next| row.get_mut(next))
        {
            *score = LOWEST;
        }
    }
}

/// Forbids tokens whose number in a mask is 0.
fn forbid(row: &mut [f32], mask: &[i64]) {
    for (score, _) in row.iter_mut().zip(mask).filter(|(_, mask)| **mask == 0) {
        *score = LOWEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_grams_and_repeated_tokens_are_held_back() {
        let mut row = [1.0, -1.0, 2.0, 3.0];
        repeat_less(&mut row, &[1, 0, 0, 9, -1], 2.0);
        assert_eq!(row, [0.5, -2.0, 2.0, 3.0]);
        forbid_n_grams(&mut row, &[2, 3, 0, 2], 2);
        assert_eq!(row, [0.5, -2.0, 2.0, LOWEST]);
        forbid_n_grams(&mut row, &[1], 2);
        forbid_n_grams(&mut row, &[1], 1);
        assert_eq!(row[1], LOWEST);
        let mut scores = TokenScores { values: vec![0.0, 0.0, 1e4, 0.0], words: 2 };
        scores.log_softmax();
        assert!((scores.values[0] + std::f32::consts::LN_2).abs() < 1e-6);
        assert_eq!(scores.row_mut(1), [0.0, -1e4]);
    }
}

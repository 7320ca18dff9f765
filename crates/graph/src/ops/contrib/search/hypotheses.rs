//! Finished texts of a beam search.

/// A finished text.
#[derive(Clone, Debug)]
pub(super) struct FinishedText {
    pub(super) tokens: Vec<i32>,
    /// Sum of the logarithms over a power of the length.
    pub(super) score: f32,
}

/// The best finished texts of one prompt.
#[derive(Debug)]
pub(super) struct FinishedTexts {
    texts: Vec<FinishedText>,
    most: usize,
    length_penalty: f32,
    /// Whether nothing better can come.
    pub(super) done: bool,
}

/// A sum of logarithms over a power of the length.
fn scaled(sum: f32, length: usize, penalty: f32) -> f32 {
    #[allow(clippy::cast_precision_loss, reason = "texts are short")]
    let length = length as f32;
    sum / length.powf(penalty)
}

impl FinishedTexts {
    pub(super) fn new(most: usize, length_penalty: f32) -> Self {
        Self { texts: Vec::new(), most, length_penalty, done: false }
    }

    /// Keeps a text if it is among the best.
    pub(super) fn add(&mut self, tokens: &[i32], sum: f32) {
        let score = scaled(sum, tokens.len(), self.length_penalty);
        if self.texts.len() == self.most {
            if self.texts.last().is_none_or(|worst| score <= worst.score) {
                return;
            }
            self.texts.pop();
        }
        let better = self.texts.iter().rev().take_while(|text| score > text.score).count();
        let at = self.texts.len() - better;
        self.texts.insert(at, FinishedText { tokens: tokens.to_vec(), score });
    }

    /// Looks whether texts of this length, of which the best has this sum, can still be among the best.
    pub(super) fn update(&mut self, best: f32, length: usize, early: bool) {
        let full = self.texts.len() == self.most;
        let best = scaled(best, length, self.length_penalty);
        let improves = self.texts.last().is_none_or(|worst| worst.score < best);
        self.done |= full && (early || !improves);
    }

    /// The texts, the best first.
    pub(super) fn texts(&self) -> &[FinishedText] {
        &self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_texts_are_kept_in_order() {
        let mut found = FinishedTexts::new(2, 1.0);
        found.add(&[1, 2], -4.0);
        found.update(-1.0, 2, true);
        assert!(!found.done);
        found.add(&[3, 4, 5, 6], -4.0);
        found.add(&[7], -9.0);
        found.add(&[8, 9], -3.0);
        let order: Vec<i32> = found.texts().iter().map(|text| text.tokens[0]).collect();
        assert_eq!(order, [3, 8]);
        found.update(-1.0, 4, false);
        assert!(!found.done);
        found.update(-9.0, 4, false);
        assert!(found.done);
    }
}

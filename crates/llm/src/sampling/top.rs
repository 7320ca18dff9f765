//! The most probable tokens of a row, where they are all that a choice needs.

/// How many of the most probable tokens a [`TopTokens`] has where the vocabulary has as many.
pub const TOP: usize = 64;

/// Need of a choice from a row of logits. Later ones serve for earlier ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogitNeed {
    /// The most probable token.
    Best,
    /// The [`TOP`] most probable tokens.
    Top,
    /// All logits.
    #[default]
    Logits,
}

/// The most probable tokens of a row and their logits, none of which is NaN: the more probable first, of equal ones
/// the lower id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopTokens<'a> {
    logits: &'a [f32],
    tokens: &'a [u32],
}

impl<'a> TopTokens<'a> {
    /// Tokens and their logits in that order.
    #[must_use]
    pub fn new(logits: &'a [f32], tokens: &'a [u32]) -> Self {
        Self { logits, tokens }
    }

    /// The largest logit; -∞ where there is none.
    #[must_use]
    pub fn largest(&self) -> f32 {
        self.logits.first().copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// The most probable token; `None` where no logit is above -∞.
    #[must_use]
    pub fn best(&self) -> Option<u32> {
        self.tokens.first().copied().filter(|_| self.largest() > f32::NEG_INFINITY)
    }

    /// Tokens and their logits.
    pub(super) fn each(self) -> impl Iterator<Item = (u32, f32)> + 'a {
        self.tokens.iter().copied().zip(self.logits.iter().copied())
    }
}

/// Values that a token is chosen from.
#[derive(Debug)]
pub enum LogitRow<'a> {
    /// All logits, which sampling writes over.
    Logits(&'a mut [f32]),
    /// The most probable tokens.
    Top(TopTokens<'a>),
}

//! Log-probabilities of tokens.

use super::row;

/// The log-probability of a token and of those more probable.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The token.
    pub token: u32,
    /// Its natural logarithm of probability.
    pub logprob: f32,
    /// Its rank, 1 for the most probable token.
    pub rank: u32,
    /// The most probable tokens with their log-probabilities, the first one first.
    pub top: Vec<(u32, f32)>,
}

/// The log-softmax of `logits` (as the model gives them) at `token`, and its `top` largest values.
/// `None` where there is no such token or no finite logit.
pub fn logprobs(logits: &[f32], token: u32, top: usize) -> Option<TokenLogprobs> {
    let at = usize::try_from(token).ok()?;
    let value = *logits.get(at)?;
    let largest = row::largest(logits);
    if !largest.is_finite() {
        return None;
    }
    let total = f64::from(largest) + row::sum_exp(logits, largest, 1.0).ln();
    #[expect(clippy::cast_possible_truncation, reason = "logits are f32, so are their logarithms")]
    let logprob = |value: f32| (f64::from(value) - total) as f32;
    let before = logits.iter().enumerate();
    let rank = 1 + before.filter(|(i, v)| **v > value || **v == value && *i < at).count();
    // The smallest of the best so far stands last.
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(top.min(logits.len()) + 1);
    if top > 0 {
        row::visit_from(logits, f32::NEG_INFINITY, |i, value| {
            let place = best.partition_point(|(_, other)| *other >= value);
            best.insert(place, (i, value));
            best.truncate(top);
            match best.last() {
                Some((_, least)) if best.len() == top => *least,
                _ => f32::NEG_INFINITY,
            }
        });
    }
    let id = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
    Some(TokenLogprobs {
        token,
        logprob: logprob(value),
        rank: id(rank),
        top: best.into_iter().map(|(i, value)| (id(i), logprob(value))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_ranks_count() {
        let logits = [1.0, 3.0, 2.0, 3.0, f32::NEG_INFINITY, -1.0];
        let of = logprobs(&logits, 2, 10).unwrap();
        assert_eq!(of.rank, 3);
        let order: Vec<u32> = of.top.iter().map(|(id, _)| *id).collect();
        assert_eq!(order, [1, 3, 2, 0, 5, 4]);
        let sum: f64 = of.top.iter().map(|(_, p)| f64::from(*p).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        assert_eq!(of.logprob, of.top[2].1);
        assert_eq!(logprobs(&logits, 3, 2).unwrap().top.len(), 2);
        assert_eq!(logprobs(&logits, 3, 0).unwrap().rank, 2);
        assert_eq!(logprobs(&logits, 6, 1), None);
        assert_eq!(logprobs(&[f32::NAN], 0, 1), None);
    }
}

//! How many of the worst layers must return to FP32.

/// A number of layers that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// How many of the worst layers stayed in FP32.
    pub left_out: usize,
    /// How far the results agreed with FP32.
    pub agreement: f64,
}

/// Finds how few of `layers` layers, the worst first, must be left out for the agreement to reach
/// `bound`: doubles the number until it does, then halves the step back. All attempts are given, the
/// last one is the one to use; where no number does, that is all of them.
///
/// # Errors
/// The first of `agreement`.
pub(super) fn search<E>(
    layers: usize,
    bound: f64,
    agreement: &mut dyn FnMut(usize) -> Result<f64, E>,
) -> Result<Vec<Attempt>, E> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut tried = |left_out: usize, attempts: &mut Vec<Attempt>| -> Result<bool, E> {
        let agreement = agreement(left_out)?;
        attempts.push(Attempt { left_out, agreement });
        Ok(agreement >= bound)
    };
    let (mut low, mut high) = (0, 0);
    while !tried(high, &mut attempts)? {
        if high >= layers {
            return Ok(attempts);
        }
        low = high;
        high = (high * 2).max(1).min(layers);
    }
    // Too few at `low`, enough at `high`.
    while high > low + 1 {
        let middle = usize::midpoint(low, high);
        if tried(middle, &mut attempts)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    if attempts.last().is_none_or(|last| last.left_out != high) {
        let found = attempts.iter().find(|attempt| attempt.left_out == high).copied();
        attempts.extend(found);
    }
    Ok(attempts)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn tried(layers: usize, needed: usize) -> Vec<usize> {
        let mut agreement = |left_out: usize| -> Result<f64, Infallible> {
            Ok(if left_out >= needed { 1.0 } else { 0.5 })
        };
        let attempts = search(layers, 0.992, &mut agreement).unwrap();
        attempts.into_iter().map(|attempt| attempt.left_out).collect()
    }

    #[test]
    fn the_least_number_is_found_and_comes_last() {
        for layers in [1, 2, 3, 7, 36, 100] {
            for needed in 0..=layers {
                let attempts = tried(layers, needed);
                assert_eq!(attempts.last(), Some(&needed), "{layers}: {attempts:?}");
                assert!(attempts.len() <= 16, "{attempts:?}");
            }
        }
        assert_eq!(tried(36, 0), [0]);
        assert_eq!(tried(36, 3), [0, 1, 2, 4, 3]);
    }

    #[test]
    fn nothing_is_tried_beyond_all_layers() {
        assert_eq!(tried(3, 4), [0, 1, 2, 3]);
        assert_eq!(tried(0, 1), [0]);
    }
}

//! Search for the number of worst layers that must return to FP32, and for those among them that need not.

/// A number of layers that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerAttempt {
    /// Number of layers that stayed in FP32.
    pub left_out: usize,
    /// Agreement of the results with FP32.
    pub agreement: f64,
}

/// Finds how few of `layers` layers, the worst first, must be left out for the agreement to reach
/// `bound`: doubles the number until it does, then halves the step back. `none` is what is known with
/// none left out. All attempts are given, the last one is the one to use; where no number does, that
/// is all of them.
///
/// # Errors
/// The first of `agreement`.
pub(super) fn search<E>(
    none: LayerAttempt,
    layers: usize,
    bound: f64,
    agreement: &mut dyn FnMut(usize) -> Result<f64, E>,
) -> Result<Vec<LayerAttempt>, E> {
    let mut attempts = vec![none];
    let mut tried = |left_out: usize, attempts: &mut Vec<LayerAttempt>| -> Result<bool, E> {
        let agreement = agreement(left_out)?;
        attempts.push(LayerAttempt { left_out, agreement });
        Ok(agreement >= bound)
    };
    if none.agreement >= bound || layers == 0 {
        return Ok(attempts);
    }
    let mut low = 0;
    let mut high = 1;
    while !tried(high, &mut attempts)? {
        if high >= layers {
            return Ok(attempts);
        }
        low = high;
        high = (high * 2).min(layers);
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

/// Layers still left out after some were taken back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TakenBack {
    /// The layers, the worst first.
    pub(super) left: Vec<usize>,
    /// Attempts that were made.
    pub(super) attempts: Vec<LayerAttempt>,
}

/// Takes layers back as far as the agreement stays at `bound`: one after the other, the one that
/// matters least first, with `tries` of them at most.
///
/// # Errors
/// The first of `agreement`.
pub(super) fn take_back<E>(
    left: &[usize],
    tries: usize,
    bound: f64,
    agreement: &mut dyn FnMut(&[usize]) -> Result<f64, E>,
) -> Result<TakenBack, E> {
    let mut found = TakenBack { left: left.to_vec(), attempts: Vec::new() };
    // The last one is needed: without it the search would have stopped earlier.
    for &layer in left.iter().rev().skip(1).take(tries) {
        let without: Vec<usize> = found.left.iter().copied().filter(|&at| at != layer).collect();
        let agreement = agreement(&without)?;
        found.attempts.push(LayerAttempt { left_out: without.len(), agreement });
        if agreement >= bound {
            found.left = without;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn tried(layers: usize, needed: usize) -> Vec<usize> {
        let mut agreement = |left_out: usize| -> Result<f64, Infallible> {
            Ok(if left_out >= needed { 1.0 } else { 0.5 })
        };
        let none = LayerAttempt { left_out: 0, agreement: agreement(0).unwrap() };
        let attempts = search(none, layers, 0.992, &mut agreement).unwrap();
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

    #[test]
    fn layers_that_were_not_needed_are_taken_back() {
        // Each layer costs so much; the bound allows costs of 5 in all.
        let costs = [9, 1, 4, 1, 3];
        let mut agreement = |left: &[usize]| -> Result<f64, Infallible> {
            let rest = (0..costs.len()).filter(|at| !left.contains(at)).map(|at| costs[at]);
            Ok(1.0 - f64::from(rest.sum::<i32>()) / 100.0)
        };
        let found = take_back(&[0, 1, 2, 4], 8, 0.949, &mut agreement).unwrap();
        assert_eq!(found.left, [0, 1, 4]);
        let tried: Vec<usize> = found.attempts.iter().map(|attempt| attempt.left_out).collect();
        assert_eq!(tried, [3, 2, 2]);
        let found = take_back(&[0, 1, 2, 4], 1, 0.949, &mut agreement).unwrap();
        assert_eq!(found.attempts.len(), 1);
    }
}

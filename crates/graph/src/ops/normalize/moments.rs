//! Mean, variance and the pieces that several normalisations share.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::ops::values::floats;

/// Mean and variance of a group (the variance of the whole group: divided by its size). Computed
/// in two passes, so that a large mean does not drown a small variance.
#[allow(clippy::cast_precision_loss, reason = "a count of elements divides their sum")]
pub(super) fn moments(group: &[f64]) -> (f64, f64) {
    let count = group.len() as f64;
    let mean = group.iter().sum::<f64>() / count;
    let variance = group.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    (mean, variance)
}

/// The elements of a vector that has one per channel (or group).
pub(super) fn per_channel(vector: &Tensor, count: usize, what: &str) -> Result<Vec<f64>, OpError> {
    if vector.shape() != [count] {
        return Err(OpError::new(format!(
            "{what} has shape {:?}, expected [{count}]",
            vector.shape()
        )));
    }
    floats(vector)
}

/// Refuses what cannot have one element per channel of `x`: another rank or a known other length.
pub(super) fn check_per_channel(
    vector: &Fact,
    count: Option<usize>,
    what: &str,
) -> Result<(), OpError> {
    crate::ops::values::expect_float(vector.dtype)?;
    let Some(shape) = &vector.shape else { return Ok(()) };
    let length = shape.first().and_then(crate::Dim::known);
    if shape.len() != 1 || count.zip(length).is_some_and(|(a, b)| a != b) {
        let count = count.map_or("?".to_owned(), |count| count.to_string());
        return Err(OpError::new(format!("{what} is {vector}, expected one axis of {count}")));
    }
    Ok(())
}

/// `(batch, channels, elements of one channel)` of a tensor with channels on its second axis.
pub(super) fn channels_first(shape: &[usize]) -> Result<(usize, usize, usize), OpError> {
    match shape {
        [batch, channels, rest @ ..] => Ok((*batch, *channels, rest.iter().product())),
        _ => Err(OpError::new(format!("the input has shape {shape:?}, expected 2 axes or more"))),
    }
}

/// The length of the second axis, if known; refuses fewer axes.
pub(super) fn channels_of(x: &Fact) -> Result<Option<usize>, OpError> {
    match x.shape.as_deref() {
        None => Ok(None),
        Some([_, channels, ..]) => Ok(channels.known()),
        Some(_) => Err(OpError::new(format!("the input is {x}, expected 2 axes or more"))),
    }
}

/// The fact of a result that has the input's type and shape.
pub(super) fn same_as(x: &Fact) -> Vec<Fact> {
    vec![Fact { value: None, elements: None, ..x.clone() }]
}

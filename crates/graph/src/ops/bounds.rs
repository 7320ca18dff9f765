//! Axes and sizes from outside, checked.

use galatea_tensor::{DataType, MAX_RANK, Tensor, checked_elements};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::limits;

/// The vectors that stand for shapes are short; longer ones are data and carry no lengths.
const MAX_LENGTHS: usize = 1024;

/// An axis that may count from the end, as a position.
///
/// # Errors
/// Fails when it lies outside `-rank..rank`.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, OpError> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let shifted = if axis < 0 { axis.saturating_add(signed) } else { axis };
    usize::try_from(shifted)
        .ok()
        .filter(|&found| found < rank)
        .ok_or_else(|| OpError::new(format!("axis {axis} is outside a tensor of rank {rank}")))
}

/// Several axes that may count from the end, in the order given.
///
/// # Errors
/// Fails when one lies outside, or is named twice.
pub(crate) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    let found = collected(&mut list.iter().map(|&one| axis(one, rank)))?;
    let mut sorted = found.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != found.len() {
        return Err(OpError::new(format!("axes {} name an axis twice", listed(list))));
    }
    Ok(found)
}

/// A list as messages show it: the beginning of a long one.
pub(crate) fn listed(list: &[i64]) -> String {
    match list.get(..MAX_RANK) {
        Some(first) if list.len() > MAX_RANK => {
            format!("{first:?} and {} more", list.len() - MAX_RANK)
        }
        _ => format!("{list:?}"),
    }
}

/// A length that must not be negative.
///
/// # Errors
/// Fails when it is negative.
pub(crate) fn length(value: i64, what: &str) -> Result<usize, OpError> {
    usize::try_from(value)
        .map_err(|_| OpError::new(format!("{what} is {value}, expected 0 or more")))
}

/// Several lengths that must not be negative.
///
/// # Errors
/// Fails when one is negative.
pub(crate) fn lengths(values: &[i64], what: &str) -> Result<Vec<usize>, OpError> {
    collected(&mut values.iter().map(|&value| length(value, what)))
}

/// The element count of a result that is about to be allocated. Lengths of 0 count as 1 towards the
/// limit: an empty result may still be made of lists as long as its other axes.
///
/// # Errors
/// Fails when it takes more bytes than the limit of a value, or the system has no memory for it.
pub(crate) fn bounded(dtype: DataType, shape: &[usize]) -> Result<usize, OpError> {
    let limit = limits::get().value_bytes;
    let size = dtype.size_bytes().unwrap_or(size_of::<galatea_tensor::ByteString>());
    let count = checked_elements(shape).ok();
    let bytes = shape.iter().try_fold(size, |bytes, &len| bytes.checked_mul(len.max(1)));
    let (Some(count), Some(bytes)) = (count, bytes.filter(|&bytes| bytes <= limit)) else {
        let bytes = bytes.map_or("more".to_owned(), |bytes| bytes.to_string());
        return Err(OpError::new(format!(
            "a result of shape {shape:?} and type {dtype} takes {bytes} bytes, the limit of a \
             value is {limit}"
        )));
    };
    // Reserving and giving back costs nothing and answers with an error where collecting into a
    // vector would abort.
    Vec::<u8>::new().try_reserve_exact(count.saturating_mul(size)).map_err(|_| {
        OpError::new(format!(
            "a result of shape {shape:?} and type {dtype} takes {bytes} bytes, for which there is \
             no memory"
        ))
    })?;
    Ok(count)
}

/// A view, copied into adjacent memory of a bounded size.
///
/// # Errors
/// Fails when it is too large.
pub(crate) fn owned(view: &Tensor) -> Result<Tensor, OpError> {
    bounded(view.dtype(), view.shape())?;
    Ok(view.contiguous()?)
}

/// The numbers that a fact carries, if it is a short integer scalar or vector.
pub(crate) fn carried(fact: &Fact) -> Option<Vec<Dim>> {
    let shape = fact.shape.as_ref()?;
    let short = match shape.as_slice() {
        [] => true,
        [Dim::Known(len)] => *len <= MAX_LENGTHS,
        _ => false,
    };
    if short && fact.dtype.is_integer() { fact.numbers() } else { None }
}

/// The number of elements of a vector that describes a shape, if known and possible: a model may
/// declare any length, and the inferred shape would take memory for each.
pub(crate) fn vector_len(fact: &Fact) -> Option<usize> {
    match fact.shape.as_deref() {
        Some([len]) => len.known().filter(|&len| len <= MAX_RANK),
        _ => None,
    }
}

/// Refuses a fact of another rank; an unknown rank passes.
///
/// # Errors
/// Fails when the rank is known and less than `least`.
pub(crate) fn rank_at_least(fact: &Fact, least: usize) -> Result<(), OpError> {
    match fact.rank() {
        Some(rank) if rank < least => {
            Err(OpError::new(format!("the input has rank {rank}, expected at least {least}")))
        }
        _ => Ok(()),
    }
}

/// The factor that `parts` lack to have the product of `whole`: symbols on both sides cancel.
pub(crate) fn quotient<'a>(
    whole: impl IntoIterator<Item = &'a Dim>,
    parts: impl IntoIterator<Item = &'a Dim>,
) -> Dim {
    length::over(&product(whole), &product(parts))
}

/// The product of lengths.
pub(crate) fn product<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Dim {
    dims.into_iter().fold(Dim::Known(1), |product, dim| length::times(&product, dim))
}

/// The sum of lengths.
pub(crate) fn sum<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Dim {
    dims.into_iter().fold(Dim::Known(0), |sum, dim| length::plus(&sum, dim))
}

/// Steps an index through a shape in row-major order; the last position steps back to the first.
pub(crate) fn advance(index: &mut [usize], shape: &[usize]) {
    for (at, &len) in index.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < len {
            return;
        }
        *at = 0;
    }
}

/// The row-major distances between neighbours along each axis.
pub(crate) fn steps(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1_usize; shape.len()];
    for at in (1..shape.len()).rev() {
        steps[at - 1] = steps[at].saturating_mul(shape[at]);
    }
    steps
}

/// Every index of a shape in row-major order.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let count = checked_elements(shape).unwrap_or(0);
    let mut index = vec![0; shape.len()];
    (0..count).map(move |_| {
        let current = index.clone();
        advance(&mut index, shape);
        current
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_counts_from_either_end_and_no_further() {
        assert_eq!(axis(-1, 3).unwrap(), 2);
        assert_eq!(axis(2, 3).unwrap(), 2);
        assert!(axis(3, 3).is_err());
        assert!(axis(-4, 3).is_err());
        assert!(axis(i64::MIN, 3).is_err());
        assert!(axes(&[0, -3], 3).is_err());
    }

    #[test]
    fn equal_symbols_cancel_in_a_quotient() {
        let batch = Dim::symbol("batch");
        let seq = Dim::symbol("seq");
        let whole = [batch.clone(), seq.clone(), Dim::Known(384)];
        let parts = [seq.clone(), batch.clone(), Dim::Known(12)];
        assert_eq!(quotient(&whole, &parts), Dim::Known(32));
        assert_eq!(quotient(&whole, [&batch, &Dim::Known(384)]), seq);
        assert_eq!(quotient(&whole, [&batch]), Dim::symbol("384*seq"));
        assert_eq!(quotient(&[Dim::Known(7)], &[Dim::Known(2)]), Dim::Unknown);
    }

    #[test]
    fn a_result_beyond_any_machine_is_an_error() {
        assert_eq!(bounded(DataType::Fp32, &[0, 1 << 20]).unwrap(), 0);
        assert!(bounded(DataType::Fp32, &[0, 1 << 40]).is_err());
        assert!(bounded(DataType::Fp32, &[1 << 40]).is_err());
        assert!(bounded(DataType::Fp32, &[usize::MAX, 2]).is_err());
        assert_eq!(bounded(DataType::Fp32, &[2, 3]).unwrap(), 6);
    }
}

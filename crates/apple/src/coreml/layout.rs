//! Layout of the elements of an array, and copying between arrays with and without gaps.

use std::ops::Range;

use super::{ArrayDataType, CoreMlFault};

/// A shape or strides, for errors.
pub(super) fn shown(sizes: &[usize]) -> String {
    format!("{sizes:?}")
}

/// The type, the shape and the strides of an array. Every dimension has an element, no two elements
/// share memory, and sizes fit what Objective-C counts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrayLayout {
    pub(super) data_type: ArrayDataType,
    pub(super) shape: Vec<usize>,
    /// Elements from one to the next along each dimension.
    pub(super) strides: Vec<usize>,
    /// Bytes from the first element to the end of the last.
    span: usize,
}

impl ArrayLayout {
    /// An array with gaps, or one whose dimensions lie in another order.
    pub(super) fn new(
        data_type: ArrayDataType,
        shape: &[usize],
        strides: &[usize],
    ) -> Result<Self, CoreMlFault> {
        let wrong = |what: String| {
            let shape = shown(shape);
            let strides = shown(strides);
            CoreMlFault::argument(format!("array of shape {shape}, strides {strides}: {what}"))
        };
        if shape.is_empty() {
            return Err(wrong("expected one dimension or more".to_owned()));
        }
        if shape.len() != strides.len() {
            return Err(wrong("expected as many strides as dimensions".to_owned()));
        }
        if let Some(axis) = shape.iter().position(|&len| len == 0) {
            return Err(wrong(format!("dimension {axis} is empty, which Core ML does not take")));
        }
        if overlap(shape, strides) {
            return Err(wrong("elements share memory".to_owned()));
        }
        let span = span_bytes(data_type, shape, strides);
        let span = span.ok_or_else(|| wrong("it is too large".to_owned()))?;
        Ok(Self { data_type, shape: shape.to_vec(), strides: strides.to_vec(), span })
    }

    /// An array without gaps whose last dimension lies closest.
    pub(super) fn contiguous(
        data_type: ArrayDataType,
        shape: &[usize],
    ) -> Result<Self, CoreMlFault> {
        Self::new(data_type, shape, &contiguous_strides(shape))
    }

    /// Bytes from the first element to the end of the last.
    pub(super) fn span(&self) -> usize {
        self.span
    }
}

/// Strides of an array without gaps; those of one that no memory has are wrong and not used.
pub(super) fn contiguous_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// Bytes from the first element to the end of the last, where they can be counted.
pub(super) fn span_bytes(
    data_type: ArrayDataType,
    shape: &[usize],
    strides: &[usize],
) -> Option<usize> {
    let mut last = 0_usize;
    for (&len, &stride) in shape.iter().zip(strides) {
        last = last.checked_add(len.checked_sub(1)?.checked_mul(stride)?)?;
    }
    let bytes = last.checked_add(1)?.checked_mul(data_type.size_bytes())?;
    isize::try_from(bytes).is_ok().then_some(bytes)
}

/// Returns the number of bytes that may be read of an array's own memory, of which the system counts `counted`. It may
/// leave out the gaps between rows, but every element lies in the memory.
#[cfg(any(target_os = "macos", apple_doubles, test))]
pub(super) fn own_bytes(
    counted: usize,
    data_type: ArrayDataType,
    shape: &[usize],
    strides: &[usize],
) -> usize {
    let span =
        if shape.len() == strides.len() { span_bytes(data_type, shape, strides) } else { None };
    counted.max(span.unwrap_or(0))
}

/// Returns whether two elements may share a place. They cannot if each dimension, from the closest on, steps
/// over everything that lies within it.
fn overlap(shape: &[usize], strides: &[usize]) -> bool {
    let mut dimensions: Vec<(usize, usize)> =
        strides.iter().copied().zip(shape.iter().copied()).filter(|&(_, len)| len > 1).collect();
    dimensions.sort_unstable();
    let mut within = 1_usize;
    for (stride, len) in dimensions {
        if stride < within {
            return true;
        }
        within = stride.saturating_mul(len - 1).saturating_add(within);
    }
    false
}

/// Calls `copy` with the bytes of each row, in the array's order: where they lie at the strides, and
/// where without gaps. A row is as many elements as lie beside each other.
fn rows(
    data_type: ArrayDataType,
    shape: &[usize],
    strides: &[usize],
    mut copy: impl FnMut(Range<usize>, Range<usize>),
) {
    let size = data_type.size_bytes();
    let close = contiguous_strides(shape);
    // Dimensions from here on lie without gaps.
    let same = |axis: &usize| strides[*axis] == close[*axis] || shape[*axis] == 1;
    let inner = shape.len() - (0..shape.len()).rev().take_while(same).count();
    let row = shape[inner..].iter().product::<usize>() * size;
    let count: usize = shape[..inner].iter().product();
    for index in 0..count {
        let mut rest = index;
        let mut at = 0;
        for axis in (0..inner).rev() {
            at += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        copy(at * size..at * size + row, index * row..(index + 1) * row);
    }
}

/// Copies an array that lies at `strides` in `from` to `to`, without gaps. Both are long enough.
pub(super) fn gather(
    data_type: ArrayDataType,
    shape: &[usize],
    from: &[u8],
    strides: &[usize],
    to: &mut [u8],
) {
    rows(data_type, shape, strides, |far, near| to[near].copy_from_slice(&from[far]));
}

/// Copies an array without gaps to `to`, at `strides`. Both are long enough.
pub(super) fn scatter(
    data_type: ArrayDataType,
    shape: &[usize],
    from: &[u8],
    to: &mut [u8],
    strides: &[usize],
) {
    rows(data_type, shape, strides, |far, near| to[far].copy_from_slice(&from[near]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_counted_without_gaps_reach_to_the_last_element() {
        let bytes = |counted| own_bytes(counted, ArrayDataType::Float16, &[2, 3], &[32, 1]);
        // Two rows of 3 elements, the second 32 elements behind the first.
        assert_eq!(bytes(2 * 3 * 2), (32 + 3) * 2);
        assert_eq!(bytes(2 * 32 * 2), 2 * 32 * 2);
        // Sizes that no memory has add nothing.
        let odd = own_bytes(8, ArrayDataType::Float16, &[2, usize::MAX], &[usize::MAX, 1]);
        assert_eq!(odd, 8);
        assert_eq!(own_bytes(8, ArrayDataType::Float16, &[2], &[1, 1]), 8);
    }

    #[test]
    fn an_array_without_gaps_spans_its_elements() {
        let layout = ArrayLayout::contiguous(ArrayDataType::Float16, &[2, 3, 4]).unwrap();
        assert_eq!(layout.strides, [12, 4, 1]);
        assert_eq!(layout.span(), 48);
    }

    #[test]
    fn padded_rows_end_with_the_last_element() {
        let layout = ArrayLayout::new(ArrayDataType::Float16, &[2, 3], &[32, 1]).unwrap();
        assert_eq!(layout.span(), 70);
    }

    #[test]
    fn arrays_that_core_ml_cannot_have_are_refused() {
        let refused = |shape: &[usize], strides: &[usize]| {
            ArrayLayout::new(ArrayDataType::Float32, shape, strides).unwrap_err().text
        };
        assert!(refused(&[], &[]).contains("one dimension or more"));
        assert!(refused(&[2], &[1, 1]).contains("as many strides"));
        assert!(refused(&[2, 0], &[1, 1]).contains("dimension 1 is empty"));
        assert!(refused(&[2, 2], &[1, 1]).contains("share memory"));
        assert!(refused(&[4], &[0]).contains("share memory"));
        assert!(refused(&[2, 3, 2], &[6, 2, 2]).contains("share memory"));
        assert!(refused(&[usize::MAX], &[1]).contains("too large"));
        assert!(refused(&[3, 3], &[usize::MAX / 2, 1]).contains("too large"));
        let many = ArrayLayout::contiguous(ArrayDataType::Int8, &[1 << 40, 1 << 40]);
        assert!(many.unwrap_err().text.contains("too large"));
    }

    #[test]
    fn a_transposed_array_is_taken() {
        assert!(ArrayLayout::new(ArrayDataType::Int32, &[3, 2], &[1, 3]).is_ok());
        assert!(ArrayLayout::new(ArrayDataType::Int32, &[1, 2], &[0, 1]).is_ok());
    }

    #[test]
    fn padded_rows_are_gathered_and_scattered() {
        let far: Vec<u8> = (0..16).collect();
        let shape = [2, 2, 3];
        let strides = [8, 4, 1];
        let mut near = [0; 12];
        gather(ArrayDataType::Int8, &shape, &far, &strides, &mut near);
        assert_eq!(near, [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14]);
        let mut back = [99; 16];
        scatter(ArrayDataType::Int8, &shape, &near, &mut back, &strides);
        assert_eq!(back[..8], [0, 1, 2, 99, 4, 5, 6, 99]);
    }

    #[test]
    fn a_transposed_array_is_gathered_in_its_own_order() {
        let far: Vec<u8> = [1_u16, 2, 3, 4, 5, 6].into_iter().flat_map(u16::to_ne_bytes).collect();
        let mut near = [0; 12];
        gather(ArrayDataType::Float16, &[3, 2], &far, &[1, 3], &mut near);
        let read: Vec<u16> =
            near.chunks(2).map(|pair| u16::from_ne_bytes(pair.try_into().unwrap())).collect();
        assert_eq!(read, [1, 4, 2, 5, 3, 6]);
    }

    proptest! {
        #[test]
        fn what_is_scattered_is_gathered_again(
            shape in prop::collection::vec(1_usize..5, 1..5),
            gap in 0_usize..3,
            turn in 0_usize..4,
        ) {
            // Dimensions in a turned order, each with a gap behind it.
            let mut strides = vec![0; shape.len()];
            let mut step = 1 + gap;
            for place in 0..shape.len() {
                let axis = (place + turn) % shape.len();
                strides[axis] = step;
                step = step * shape[axis] + gap;
            }
            let layout = ArrayLayout::new(ArrayDataType::Float16, &shape, &strides).unwrap();
            let count = shape.iter().product::<usize>() * layout.data_type.size_bytes();
            let near: Vec<u8> = (0..=u8::MAX).cycle().take(count).collect();
            let mut far = vec![0; layout.span()];
            scatter(layout.data_type, &shape, &near, &mut far, &strides);
            let mut back = vec![0; near.len()];
            gather(layout.data_type, &shape, &far, &strides, &mut back);
            prop_assert_eq!(near, back);
        }
    }
}

//! Places of the elements of an array in its memory.

use super::played::{OutputLayout, PlayedTensor};

/// Rows of surfaces and of arrays with gaps begin at multiples of these bytes.
const ROW: usize = 64;

/// Bytes of an element of an `MLMultiArrayDataType`, whose last byte counts bits.
pub(super) fn element_bytes(data_type: isize) -> usize {
    usize::try_from(data_type & 0xff).map_or(0, |bits| bits / 8)
}

/// Strides of an array without gaps.
pub(super) fn close_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Strides of an array whose rows are so many elements apart.
pub(super) fn row_strides(shape: &[usize], row: usize) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = if axis == shape.len() - 1 { row } else { strides[axis] * shape[axis] };
    }
    strides
}

/// Elements between the rows of a surface or of an array with gaps.
pub(super) fn padded_row(data_type: isize, width: usize) -> usize {
    let bytes = element_bytes(data_type).max(1);
    (width * bytes).next_multiple_of(ROW) / bytes
}

/// Strides of an array that a model makes.
pub(super) fn output_strides(tensor: &PlayedTensor, layout: OutputLayout) -> Vec<usize> {
    match (layout, tensor.shape.last()) {
        (OutputLayout::Close, _) | (_, None) => close_strides(&tensor.shape),
        (_, Some(&width)) => row_strides(&tensor.shape, padded_row(tensor.data_type, width)),
    }
}

/// Bytes from the first element to the end of the last.
pub(super) fn span(data_type: isize, shape: &[usize], strides: &[usize]) -> usize {
    let last: usize =
        shape.iter().zip(strides).map(|(len, stride)| (len.max(&1) - 1) * stride).sum();
    (last + 1) * element_bytes(data_type)
}

/// Calls `copy` with the place of each element in memory and in order, in bytes.
pub(super) fn each(
    data_type: isize,
    shape: &[usize],
    strides: &[usize],
    mut copy: impl FnMut(usize, usize, usize),
) {
    let bytes = element_bytes(data_type);
    let count: usize = shape.iter().product();
    for index in 0..count {
        let mut rest = index;
        let mut at = 0;
        for axis in (0..shape.len()).rev() {
            at += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        copy(at * bytes, index * bytes, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_half_floats_begin_at_multiples_of_64_bytes() {
        assert_eq!(padded_row(0x1_0010, 3), 32);
        assert_eq!(row_strides(&[2, 4, 3], 32), [128, 32, 1]);
        assert_eq!(span(0x1_0010, &[2, 4, 3], &[128, 32, 1]), (128 + 3 * 32 + 3) * 2);
    }
}

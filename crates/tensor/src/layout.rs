//! Shapes, strides and the walks over them.

use crate::error::{TensorError, TensorErrorKind};

/// The shape of a view and the distance, in elements, between neighbours along each axis.
///
/// A broadcast axis has stride 0; a reversed one a negative stride.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewLayout {
    shape: Vec<usize>,
    strides: Vec<isize>,
}

/// The most axes of a tensor, as in NumPy: a model may ask for millions.
pub const MAX_RANK: usize = 64;

/// The number of elements of a shape.
///
/// # Errors
/// When there are more than [`MAX_RANK`] axes, or the product overflows `isize`, the most that one
/// allocation can hold. Lengths of 0 count as 1 there, so that products of some of the lengths
/// cannot overflow either.
pub fn checked_elements(shape: &[usize]) -> Result<usize, TensorError> {
    if shape.len() > MAX_RANK {
        let text = format!("a shape of {} axes, at most {MAX_RANK} are possible", shape.len());
        return Err(TensorError::shape(text));
    }
    let product = shape
        .iter()
        .try_fold(1_usize, |count, &dim| count.checked_mul(dim.max(1)))
        .filter(|&count| isize::try_from(count).is_ok());
    let Some(product) = product else {
        return Err(TensorErrorKind::TooLarge(shape.to_vec()).into());
    };
    Ok(if shape.contains(&0) { 0 } else { product })
}

/// Row-major strides, in elements, of a shape without gaps.
#[must_use]
pub fn contiguous_strides(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1_isize;
    for (stride, &dim) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(isize::try_from(dim).unwrap_or(isize::MAX));
    }
    strides
}

/// The common shape of two operands under NumPy's (and ONNX's multidirectional) broadcasting.
///
/// # Errors
/// When two dimensions differ and neither is 1.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Result<Vec<usize>, TensorError> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[usize], axis: usize| {
        let missing = rank - shape.len();
        if axis < missing { 1 } else { shape[axis - missing] }
    };
    (0..rank)
        .map(|axis| match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(TensorError::shape(format!("shapes {a:?} and {b:?} do not broadcast"))),
        })
        .collect()
}

impl ViewLayout {
    /// The row-major layout of a shape.
    #[must_use]
    pub fn contiguous(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), strides: contiguous_strides(shape) }
    }

    /// A layout with given strides. The caller's storage code checks the bounds.
    pub(crate) fn with_strides(shape: Vec<usize>, strides: Vec<isize>) -> Self {
        debug_assert_eq!(shape.len(), strides.len());
        Self { shape, strides }
    }

    /// Lengths of the axes.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements between neighbours along each axis.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements are adjacent in row-major order.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let mut step = 1_isize;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if dim != 1 {
                if stride != step {
                    return false;
                }
                step *= dim.cast_signed();
            }
        }
        true
    }

    /// Returns the layout of the first elements of runs along the last axis, and the length of a run
    /// with the distance between its elements.
    pub(crate) fn runs(&self) -> (Self, (usize, isize)) {
        let Some((&len, shape)) = self.shape.split_last() else {
            return (self.clone(), (1, 1));
        };
        let (&step, strides) = self.strides.split_last().unwrap_or((&1, &[]));
        (Self::with_strides(shape.to_vec(), strides.to_vec()), (len, step))
    }

    /// Offsets, in elements from the view's start, of all elements in row-major order.
    pub fn offsets(&self) -> ElementOffsets<'_> {
        ElementOffsets {
            layout: self,
            index: vec![0; self.shape.len()],
            offset: 0,
            left: self.elements(),
        }
    }
}

/// Iterator over element offsets; see [`ViewLayout::offsets`].
#[derive(Debug)]
pub struct ElementOffsets<'a> {
    layout: &'a ViewLayout,
    index: Vec<usize>,
    offset: isize,
    left: usize,
}

impl Iterator for ElementOffsets<'_> {
    type Item = isize;

    fn next(&mut self) -> Option<isize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let current = self.offset;
        for axis in (0..self.index.len()).rev() {
            self.index[axis] += 1;
            self.offset += self.layout.strides[axis];
            if self.index[axis] < self.layout.shape[axis] {
                break;
            }
            self.offset -= self.layout.strides[axis] * self.layout.shape[axis].cast_signed();
            self.index[axis] = 0;
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ElementOffsets<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast_shapes(&[2, 1, 3], &[4, 1]).unwrap(), [2, 4, 3]);
        assert_eq!(broadcast_shapes(&[], &[5]).unwrap(), [5]);
        assert_eq!(broadcast_shapes(&[0], &[1]).unwrap(), [0]);
        assert!(broadcast_shapes(&[2], &[3]).is_err());
    }

    #[test]
    fn offsets_walk_a_transposed_view_row_by_row() {
        let layout = ViewLayout::with_strides(vec![3, 2], vec![1, 3]);
        assert_eq!(layout.offsets().collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
        assert!(!layout.is_contiguous());
    }

    #[test]
    fn runs_lie_along_the_last_axis() {
        let layout = ViewLayout::with_strides(vec![3, 2], vec![1, 3]);
        let (starts, run) = layout.runs();
        assert_eq!(starts.offsets().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(run, (2, 3));
        let (starts, run) = ViewLayout::contiguous(&[]).runs();
        assert_eq!((starts.elements(), run), (1, (1, 1)));
    }

    #[test]
    fn a_shape_beyond_the_address_space_is_an_error() {
        assert!(checked_elements(&[1 << 40, 1 << 40]).is_err());
        assert_eq!(checked_elements(&[1 << 20, 0, 1 << 20]).unwrap(), 0);
        // Some of the lengths are multiplied now and then.
        assert!(checked_elements(&[1 << 40, 0, 1 << 40]).is_err());
    }
}

//! Walks along one axis of a tensor's elements.

/// A tensor seen as `outer` blocks of `len` positions along one axis, `inner` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisLanes {
    /// Product of the lengths before the axis.
    pub(crate) outer: usize,
    /// The length of the axis.
    pub(crate) len: usize,
    /// Product of the lengths behind the axis.
    pub(crate) inner: usize,
}

impl AxisLanes {
    /// The lanes along an axis of a shape; the axis has been checked.
    pub(crate) fn along(shape: &[usize], axis: usize) -> Self {
        let len = shape.get(axis).copied().unwrap_or(1);
        if shape.contains(&0) {
            // No element, whatever the other lengths, whose product could overflow.
            return Self { outer: 0, len, inner: 0 };
        }
        let outer = shape.iter().take(axis).product();
        Self { outer, len, inner: shape.iter().skip(axis + 1).product() }
    }

    /// The index of the first element of every lane, in row-major order of the other axes.
    pub(crate) fn starts(self) -> impl Iterator<Item = usize> {
        let Self { outer, len, inner } = self;
        (0..outer * inner).map(move |lane| lane / inner * len * inner + lane % inner)
    }

    /// The indices of one lane.
    pub(crate) fn lane(self, start: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.len).map(move |position| start + position * self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_visit_every_element_once() {
        let lanes = AxisLanes::along(&[2, 3, 2], 1);
        let mut all: Vec<_> = lanes.starts().flat_map(|start| lanes.lane(start)).collect();
        assert_eq!(&all[..3], [0, 2, 4]);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..12));
    }
}

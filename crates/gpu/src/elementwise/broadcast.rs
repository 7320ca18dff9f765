//! Broadcasting: reading operands of other shapes along the elements of a result.

use crate::kernel::param;

/// An operand's elements along those of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperandWalk {
    /// The same element.
    Same,
    /// One element for all.
    One,
    /// By a step for each axis of the result.
    Steps(Vec<usize>),
}

/// A result's axes, merged as far as all operands allow, and how operands go along them.
#[derive(Clone, Debug)]
pub(crate) struct MergedBroadcast {
    /// Lengths of the merged axes; at least one.
    pub(crate) lengths: Vec<usize>,
    /// For each operand.
    pub(crate) walks: Vec<OperandWalk>,
}

/// Steps of an operand along the axes of a result that it broadcasts to.
pub(crate) fn steps(operand: &[usize], result: &[usize]) -> Vec<usize> {
    let missing = result.len().saturating_sub(operand.len());
    let mut steps = vec![0; result.len()];
    let mut step = 1;
    for (axis, &len) in operand.iter().enumerate().rev() {
        if len != 1 {
            steps[axis + missing] = step;
        }
        step *= len;
    }
    steps
}

/// Leaves out axes of length 1 and merges those along which every operand's steps go on.
pub(crate) fn merge(lengths: &[usize], steps: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut merged: Vec<usize> = Vec::new();
    let mut all: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (axis, &len) in lengths.iter().enumerate().filter(|(_, len)| **len != 1) {
        let goes_on = |(own, new): (&Vec<usize>, &Vec<usize>)| {
            own.last().is_some_and(|&last| last == new[axis].wrapping_mul(len))
        };
        let joins = !merged.is_empty() && all.iter().zip(steps).all(goes_on);
        if joins {
            if let Some(last) = merged.last_mut() {
                *last *= len;
            }
            for (own, new) in all.iter_mut().zip(steps) {
                if let Some(last) = own.last_mut() {
                    *last = new[axis];
                }
            }
        } else {
            merged.push(len);
            for (own, new) in all.iter_mut().zip(steps) {
                own.push(new[axis]);
            }
        }
    }
    if merged.is_empty() {
        merged.push(1);
        all.iter_mut().for_each(|own| own.push(0));
    }
    (merged, all)
}

impl MergedBroadcast {
    /// Creates the broadcast of operands of these shapes to a result of this one.
    ///
    /// # Errors
    /// Fails when the result has more elements than a shader counts.
    pub(crate) fn new(operands: &[&[usize]], result: &[usize]) -> Result<Self, String> {
        param(result.iter().product())?;
        let all: Vec<Vec<usize>> = operands.iter().map(|shape| steps(shape, result)).collect();
        let (lengths, all) = merge(result, &all);
        let whole = contiguous(&lengths);
        let walk = |steps: Vec<usize>| match steps {
            steps if steps.iter().all(|&step| step == 0) => OperandWalk::One,
            steps if steps == whole => OperandWalk::Same,
            steps => OperandWalk::Steps(steps),
        };
        Ok(Self { lengths, walks: all.into_iter().map(walk).collect() })
    }

    /// Returns whether a quad of the result stays within its last axis.
    pub(crate) fn in_quads(&self) -> bool {
        self.lengths.last().is_some_and(|len| len % 4 == 0)
    }
}

/// Steps of adjacent elements.
pub(crate) fn contiguous(lengths: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; lengths.len()];
    for axis in (1..lengths.len()).rev() {
        steps[axis - 1] = steps[axis] * lengths[axis];
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_where_all_operands_go_on() {
        let found = MergedBroadcast::new(&[&[2, 3, 4], &[4], &[]], &[2, 3, 4]).unwrap();
        assert_eq!(found.lengths, [6, 4]);
        assert_eq!(
            found.walks,
            [OperandWalk::Same, OperandWalk::Steps(vec![0, 1]), OperandWalk::One]
        );
        let found = MergedBroadcast::new(&[&[2, 1, 4], &[3, 1]], &[2, 3, 4]).unwrap();
        assert_eq!(found.lengths, [2, 3, 4]);
        assert_eq!(
            found.walks,
            [OperandWalk::Steps(vec![4, 0, 1]), OperandWalk::Steps(vec![0, 1, 0])]
        );
        let found = MergedBroadcast::new(&[&[1, 1], &[]], &[1, 1]).unwrap();
        assert_eq!(found.lengths, [1]);
    }
}

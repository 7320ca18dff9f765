//! Reshapes and transposes: the form stays what it is, axes get other names.

use galatea_graph::Node;
use galatea_graph::ops::shape::{Flatten, Reshape, Squeeze, Transpose, Unsqueeze};

use crate::ane_values::LayoutAxes;
use crate::emit::ProgramEmitter;
use crate::unwritable::Result;

/// Axes of one shape that become axes of another one together.
struct AxisBlock {
    from: Vec<usize>,
    to: Vec<usize>,
}

/// The smallest blocks of axes longer than 1 that a reshape keeps apart.
fn blocks(from: &[usize], to: &[usize]) -> Option<Vec<AxisBlock>> {
    let long = |shape: &[usize]| -> Vec<(usize, usize)> {
        shape.iter().copied().enumerate().filter(|&(_, len)| len > 1).collect()
    };
    let from = long(from);
    let to = long(to);
    let mut from = from.into_iter();
    let mut to = to.into_iter();
    let mut all = Vec::new();
    loop {
        match (from.next(), to.next()) {
            (None, None) => return Some(all),
            (Some((a, mut of_a)), Some((b, mut of_b))) => {
                let mut block = AxisBlock { from: vec![a], to: vec![b] };
                while of_a != of_b {
                    if of_a < of_b {
                        let (axis, len) = from.next()?;
                        block.from.push(axis);
                        of_a *= len;
                    } else {
                        let (axis, len) = to.next()?;
                        block.to.push(axis);
                        of_b *= len;
                    }
                }
                all.push(block);
            }
            _ => return None,
        }
    }
}

/// The groups after a reshape; none where axes of several groups become one.
fn reshaped(axes: &LayoutAxes, from: &[usize], to: &[usize]) -> Option<LayoutAxes> {
    let mut result = axes.clone();
    let blocks = blocks(from, to)?;
    for (group, renamed) in [
        (&axes.batch, &mut result.batch),
        (&axes.channels, &mut result.channels),
        (&axes.positions, &mut result.positions),
    ] {
        let mut left = group.as_slice();
        let mut names = Vec::new();
        while let Some(first) = left.first() {
            let block = blocks.iter().find(|block| block.from.first() == Some(first))?;
            left = left.strip_prefix(block.from.as_slice())?;
            names.extend(&block.to);
        }
        *renamed = names;
    }
    Some(result)
}

pub(super) fn reshape(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let known = node.operator::<Reshape>().is_some()
        || node.operator::<Flatten>().is_some()
        || node.operator::<Squeeze>().is_some()
        || node.operator::<Unsqueeze>().is_some();
    let (Some(x), Some(y), true) = (node.input(0), node.output(0), known) else { return Ok(false) };
    let (Some(from), Some(to)) = (emit.fixed_floats(x), emit.fixed_floats(y)) else {
        return Ok(false);
    };
    let (var, axes) = match emit.formed(x).cloned() {
        Some(form) => (form.var, form.axes),
        // The means of an image lie as a form does.
        None if matches!(from.as_slice(), [_, _, 1, 1]) && emit.is_wanted(y) => {
            let axes = LayoutAxes::new(&from, [&[0], &[1], &[]]);
            (emit.form_in(x, &axes)?, axes)
        }
        None => return Ok(false),
    };
    match reshaped(&axes, &from, &to) {
        Some(axes) => emit.end_formed(node, var, axes),
        None => Ok(false),
    }
}

/// Where an image `[B, C, S]` becomes rows `[B, S, C]` that are wanted in the form, it has it already.
pub(super) fn transpose(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<Transpose>() else { return Ok(false) };
    let (Some(x), Some(y)) = (node.input(0), node.output(0)) else { return Ok(false) };
    let (Some(from), Some(to)) = (emit.fixed_floats(x), emit.fixed_floats(y)) else {
        return Ok(false);
    };
    let order = operator.perm.clone().unwrap_or_else(|| (0..from.len()).rev().collect());
    let place = |axis: usize| order.iter().position(|&old| old == axis).unwrap_or(axis);
    let (var, axes) = match emit.formed(x).cloned() {
        Some(form) => (form.var, form.axes.renamed(place)),
        None if order == [0, 2, 1] && emit.is_wanted(y) => {
            let axes = LayoutAxes::of_rows(&to);
            (emit.form_in(x, &axes.renamed(|axis| order[axis]))?, axes)
        }
        None => return Ok(false),
    };
    emit.end_formed(node, var, axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(batch: &[usize], channels: &[usize], positions: &[usize]) -> LayoutAxes {
        let own = |all: &[usize]| all.to_vec();
        LayoutAxes { batch: own(batch), channels: own(channels), positions: own(positions) }
    }

    #[test]
    fn axes_that_are_split_and_merged_keep_their_groups() {
        let rows = axes(&[0], &[2], &[1]);
        let heads = reshaped(&rows, &[2, 5, 12], &[2, 5, 3, 4]);
        assert_eq!(heads, Some(axes(&[0], &[2, 3], &[1])));
        assert_eq!(reshaped(&heads.unwrap(), &[2, 5, 3, 4], &[2, 5, 12]), Some(rows.clone()));
        assert_eq!(reshaped(&rows, &[2, 5, 12], &[10, 12]), None);
        assert_eq!(reshaped(&rows, &[2, 5, 12], &[2, 60]), None);
        assert_eq!(reshaped(&rows, &[2, 5, 12], &[2, 1, 5, 1, 12]), Some(axes(&[0], &[4], &[2])));
        // What lies in another order than the graph's is not merged.
        let turned = axes(&[0], &[3, 2], &[1]);
        assert_eq!(reshaped(&turned, &[2, 5, 3, 4], &[2, 5, 12]), None);
    }

    #[test]
    fn a_batch_of_one_and_positions_become_one_axis() {
        let rows = axes(&[], &[2], &[1]);
        assert_eq!(reshaped(&rows, &[1, 5, 12], &[5, 12]), Some(axes(&[], &[1], &[0])));
    }
}

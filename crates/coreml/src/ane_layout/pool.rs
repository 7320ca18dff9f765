//! Pools whose windows the engine does not take: as reductions, or one smaller window after the other.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::Node;
use galatea_graph::ops::convolution::WindowPadding;
use galatea_graph::ops::pooling::{AveragePool, MaxPool, PoolWindow};

use crate::emit::ProgramEmitter;
use crate::rows::convolution::amounts;
use crate::unwritable::{Result, small_all};

/// The longest side of a window.
const MOST: usize = 13;

/// Pads of the two axes of an image.
struct ImagePads {
    /// Elements in front of each axis.
    front: Vec<usize>,
    /// Elements behind each axis.
    behind: Vec<usize>,
}

impl ImagePads {
    /// No pads at all.
    fn none() -> Self {
        Self { front: vec![0; 2], behind: vec![0; 2] }
    }

    /// Returns the longest pad.
    fn longest(&self) -> usize {
        self.front.iter().chain(&self.behind).copied().max().unwrap_or(0)
    }
}

/// Lengths of an image and its pads, of a window without gaps that rounds down; none of others.
fn plain(
    emit: &ProgramEmitter<'_>,
    node: &Node,
    window: &PoolWindow,
) -> Option<([usize; 2], ImagePads)> {
    let shape = emit.fixed_floats(node.input(0)?).filter(|shape| shape.len() == 4)?;
    let pads = match &window.pads {
        WindowPadding::Explicit(pads) if pads.len() == 4 => {
            ImagePads { front: pads[..2].to_vec(), behind: pads[2..].to_vec() }
        }
        WindowPadding::Explicit(pads) if !pads.is_empty() => return None,
        WindowPadding::Explicit(_) | WindowPadding::Valid => ImagePads::none(),
        WindowPadding::SameUpper | WindowPadding::SameLower => return None,
    };
    let fits = window.dilations.iter().all(|&step| step == 1)
        && window.kernel_shape.len() == 2
        && !window.channels_last
        && !window.ceil_mode;
    fits.then_some(([shape[2], shape[3]], pads))
}

fn strides(window: &PoolWindow) -> Vec<usize> {
    if window.strides.is_empty() { vec![1; 2] } else { window.strides.clone() }
}

/// A window of these lengths.
fn pool(
    emit: &mut ProgramEmitter<'_>,
    operator: &str,
    x: &MilVar,
    kernel: &[usize],
    strides: &[usize],
    pads: &ImagePads,
) -> Result<MilVar> {
    let mut inputs = vec![
        ("x", x.into()),
        ("kernel_sizes", MilArg::Ints(small_all(kernel)?)),
        ("strides", MilArg::Ints(small_all(strides)?)),
        ("pad_type", MilArg::Text("custom")),
        ("pad", amounts(&pads.front, &pads.behind)?),
        ("ceil_mode", MilArg::Bool(false)),
    ];
    if operator == "avg_pool" {
        inputs.push(("exclude_padding_from_average", MilArg::Bool(false)));
    }
    emit.op(operator, inputs)
}

/// The greatest of the greatest: windows in steps of 1, of which the last one takes the steps.
pub(super) fn max_pool(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<MaxPool>() else { return Ok(false) };
    let window = &operator.window;
    let Some((_, mut pads)) = plain(emit, node, window) else { return Ok(false) };
    let mut left = window.kernel_shape.clone();
    let inside = pads.longest() < MOST;
    if left.iter().all(|&side| side <= MOST) || !inside || node.output(1).is_some() {
        return Ok(false);
    }
    let mut x = emit.var(node, 0)?;
    loop {
        let part: Vec<usize> = left.iter().map(|&side| side.min(MOST)).collect();
        let last = part == left;
        let steps = if last { strides(window) } else { vec![1; 2] };
        x = pool(emit, "max_pool", &x, &part, &steps, &pads)?;
        if last {
            break;
        }
        for (left, part) in left.iter_mut().zip(part) {
            *left = *left - part + 1;
        }
        pads = ImagePads::none();
    }
    emit.end(node, vec![x])?;
    Ok(true)
}

/// The mean of a whole image is a reduction; one of windows side by side is that of the means of their
/// parts.
pub(super) fn average_pool(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<bool> {
    let Some(operator) = node.operator::<AveragePool>() else { return Ok(false) };
    let window = &operator.window;
    let Some((lengths, pads)) = plain(emit, node, window) else { return Ok(false) };
    if pads.longest() != 0 {
        return Ok(false);
    }
    let kernel = &window.kernel_shape;
    if kernel.as_slice() == lengths {
        let x = emit.var(node, 0)?;
        let axes = ("axes", MilArg::Ints(vec![2, 3]));
        let inputs = vec![("x", MilArg::Var(x)), axes, ("keep_dims", MilArg::Bool(true))];
        let mean = emit.op("reduce_mean", inputs)?;
        emit.end(node, vec![mean])?;
        return Ok(true);
    }
    let factors = |side: usize| match side <= MOST {
        true => Some((side, 1)),
        false => (2..=MOST).rev().find_map(|one| {
            (side.is_multiple_of(one) && side / one <= MOST).then_some((one, side / one))
        }),
    };
    let parts: Option<Vec<(usize, usize)>> = kernel.iter().map(|&side| factors(side)).collect();
    let large = kernel.iter().any(|&side| side > MOST);
    let Some(parts) = parts.filter(|_| large && strides(window) == *kernel) else {
        return Ok(false);
    };
    let mut x = emit.var(node, 0)?;
    let (first, second): (Vec<usize>, Vec<usize>) = parts.into_iter().unzip();
    for part in [first, second] {
        x = pool(emit, "avg_pool", &x, &part, &part, &pads)?;
    }
    emit.end(node, vec![x])?;
    Ok(true)
}

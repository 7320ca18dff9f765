//! Shapes that take about the same time.

use std::fmt;

use galatea_graph::Datum;

/// Lengths up to this one are told apart.
const EXACT: usize = 16;
/// Beyond it, lengths between two powers of two are told apart in so many steps.
const STEPS: usize = 4;

/// Input shapes that are taken for equal when times are predicted and remembered: lengths up to 16 are what
/// they are, greater ones are rounded up to a quarter of a power of two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeBucket(Vec<usize>);

/// Marker of the end of a shape; no length is as great.
const END: usize = usize::MAX;

impl ShapeBucket {
    /// The bucket of input shapes, in their order.
    pub fn of<'s>(shapes: impl IntoIterator<Item = &'s [usize]>) -> Self {
        let mut lengths = Vec::new();
        for shape in shapes {
            lengths.extend(shape.iter().copied().map(rounded));
            lengths.push(END);
        }
        Self(lengths)
    }

    /// The bucket of what a run is given. Values that are no tensors count as no shape.
    #[must_use]
    pub fn of_inputs(inputs: &[Datum]) -> Self {
        Self::of(inputs.iter().map(|datum| datum.as_tensor().map_or(&[][..], |one| one.shape())))
    }
}

impl fmt::Display for ShapeBucket {
    /// The lengths of each shape, such as `1x256 1x256`; a scalar is `-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes = self.0.split(|&length| length == END);
        // The last end has nothing behind it.
        let count = self.0.iter().filter(|&&length| length == END).count();
        for (at, shape) in shapes.take(count).enumerate() {
            let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
            let text = if shape.is_empty() { "-".to_owned() } else { lengths.join("x") };
            write!(f, "{}{text}", if at > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

fn rounded(length: usize) -> usize {
    if length <= EXACT {
        return length;
    }
    let step = (length.next_power_of_two() / 2 / STEPS).max(1);
    length.div_ceil(step).saturating_mul(step)
}

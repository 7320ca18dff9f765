//! The geometry of a window that slides over an image: pads, output lengths, and what it sees.

use crate::attribute::{AttributeValue, Attributes, named};
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::Dim;
use crate::operator::ParseContext;
use crate::ops::bounds;

/// Padding of the image before and behind each spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowPadding {
    /// These lengths: all begins, then all ends; empty means none.
    Explicit(Vec<usize>),
    /// Padding that makes the output `ceil(input / stride)` long, an odd one at the end.
    SameUpper,
    /// Padding that makes the output `ceil(input / stride)` long, an odd one at the beginning.
    SameLower,
    /// No padding.
    Valid,
}

impl WindowPadding {
    /// Reads the attributes `auto_pad` and `pads`.
    ///
    /// # Errors
    /// Fails when the keyword is unknown or a length negative.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        let keywords = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];
        let choice = context.attributes.choice("auto_pad", &keywords, 0)?;
        let pads = context.attributes.ints("pads")?.unwrap_or_default();
        Ok(match choice {
            1 => Self::SameUpper,
            2 => Self::SameLower,
            3 => Self::Valid,
            _ => Self::Explicit(bounds::lengths(&pads, "a pad")?),
        })
    }

    /// The attributes that are read as this.
    pub(crate) fn attributes(&self) -> Attributes {
        let keyword = |name: &str| named([("auto_pad", AttributeValue::String(name.into()))]);
        match self {
            Self::Explicit(pads) => named([("pads", pads.as_slice().into())]),
            Self::SameUpper => keyword("SAME_UPPER"),
            Self::SameLower => keyword("SAME_LOWER"),
            Self::Valid => keyword("VALID"),
        }
    }
}

/// Padding and output lengths of a window that slides over an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvGeometry {
    /// Padding before each spatial axis.
    pub pads_begin: Vec<usize>,
    /// Padding behind each spatial axis.
    pub pads_end: Vec<usize>,
    /// Output length of each spatial axis.
    pub output: Vec<usize>,
}

/// A window with its movement; empty strides or dilations are ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlidingWindow<'a> {
    /// Lengths of the window.
    pub(crate) kernel: &'a [usize],
    /// Steps of the window.
    pub(crate) strides: &'a [usize],
    /// Distances of neighbours inside the window.
    pub(crate) dilations: &'a [usize],
    /// How far it may leave the image.
    pub(crate) pads: &'a WindowPadding,
    /// True if a last window that leaves the image counts.
    pub(crate) ceil: bool,
}

/// One axis of a window.
#[derive(Clone, Copy)]
struct WindowAxis {
    kernel: usize,
    stride: usize,
    dilation: usize,
}

impl WindowAxis {
    /// From the first to the last element that the window sees, both included.
    fn extent(self) -> usize {
        self.kernel.saturating_sub(1).saturating_mul(self.dilation).saturating_add(1)
    }
}

impl SlidingWindow<'_> {
    /// Refuses lists of the wrong length, windows without elements, and steps of 0.
    pub(crate) fn check(&self, rank: usize) -> Result<(), OpError> {
        let fits = |list: &[usize]| list.is_empty() || list.len() == rank;
        let pads_fit = match self.pads {
            WindowPadding::Explicit(pads) => pads.is_empty() || pads.len() == 2 * rank,
            _ => true,
        };
        if self.kernel.len() != rank || !fits(self.strides) || !fits(self.dilations) || !pads_fit {
            return Err(OpError::new(format!(
                "kernel {:?}, strides {:?}, dilations {:?} and pads {:?} for {rank} spatial axes",
                self.kernel, self.strides, self.dilations, self.pads
            )));
        }
        if [self.kernel, self.strides, self.dilations].concat().contains(&0) {
            return Err(OpError::new(format!(
                "kernel {:?}, strides {:?} and dilations {:?} must be positive",
                self.kernel, self.strides, self.dilations
            )));
        }
        Ok(())
    }

    fn axis(&self, at: usize) -> WindowAxis {
        let of = |list: &[usize]| list.get(at).copied().unwrap_or(1);
        WindowAxis {
            kernel: of(self.kernel),
            stride: of(self.strides),
            dilation: of(self.dilations),
        }
    }

    fn explicit_pads(&self, at: usize) -> (usize, usize) {
        match self.pads {
            WindowPadding::Explicit(pads) if !pads.is_empty() => {
                (pads[at], pads[at + self.kernel.len()])
            }
            _ => (0, 0),
        }
    }

    /// Pads and output length of one axis of length `len`.
    fn resolve(&self, at: usize, len: usize) -> Result<(usize, usize, usize), OpError> {
        let axis = self.axis(at);
        if matches!(self.pads, WindowPadding::SameUpper | WindowPadding::SameLower) {
            let output = len.div_ceil(axis.stride);
            let reach = output.saturating_sub(1).saturating_mul(axis.stride);
            let total = reach.saturating_add(axis.extent()).saturating_sub(len);
            let less = total / 2;
            let more = total - total / 2;
            let upper = *self.pads == WindowPadding::SameUpper;
            let (begin, end) = if upper { (less, more) } else { (more, less) };
            return Ok((begin, end, output));
        }
        let (begin, end) = self.explicit_pads(at);
        let padded = len.checked_add(begin).and_then(|sum| sum.checked_add(end));
        let room = padded.and_then(|padded| padded.checked_sub(axis.extent())).ok_or_else(|| {
            OpError::new(format!(
                "a window of {} does not fit an axis of length {len} with pads {begin} and {end}",
                axis.extent()
            ))
        })?;
        let mut output = room / axis.stride + 1;
        if self.ceil && !room.is_multiple_of(axis.stride) && *self.pads != WindowPadding::Valid {
            // A window that would start behind the image sees nothing and does not count.
            let starts_at = output.saturating_mul(axis.stride);
            output += usize::from(starts_at < len.saturating_add(begin));
        }
        Ok((begin, end, output))
    }

    /// Pads and output lengths for an image of these spatial lengths.
    pub(crate) fn geometry(&self, input: &[usize]) -> Result<ConvGeometry, OpError> {
        self.check(input.len())?;
        let mut geometry =
            ConvGeometry { pads_begin: Vec::new(), pads_end: Vec::new(), output: Vec::new() };
        for (at, &len) in input.iter().enumerate() {
            let (begin, end, output) = self.resolve(at, len)?;
            geometry.pads_begin.push(begin);
            geometry.pads_end.push(end);
            geometry.output.push(output);
        }
        Ok(geometry)
    }

    /// Output lengths for an image of which some lengths are symbols.
    pub(crate) fn output_dims(&self, input: &[Dim]) -> Result<Vec<Dim>, OpError> {
        self.check(input.len())?;
        let output = |(at, dim): (usize, &Dim)| {
            if let Some(len) = dim.known() {
                return Ok(Dim::Known(self.resolve(at, len)?.2));
            }
            let axis = self.axis(at);
            let keeps = match self.pads {
                WindowPadding::SameUpper | WindowPadding::SameLower => true,
                _ => {
                    let (begin, end) = self.explicit_pads(at);
                    begin.saturating_add(end) == axis.extent() - 1
                }
            };
            Ok(if keeps && axis.stride == 1 { dim.clone() } else { Dim::Unknown })
        };
        collected(&mut input.iter().enumerate().map(output))
    }

    /// Where the window at an output position sees the image: offsets in the image and in the
    /// window, both row-major.
    pub(crate) fn taps(
        &self,
        input: &[usize],
        geometry: &ConvGeometry,
        position: &[usize],
    ) -> Vec<(usize, usize)> {
        let steps = bounds::steps(input);
        let mut taps = Vec::new();
        for (number, inside) in bounds::indices(self.kernel).enumerate() {
            let mut offset = Some(0);
            for (at, &place) in inside.iter().enumerate() {
                let axis = self.axis(at);
                let padded = position[at] * axis.stride + place * axis.dilation;
                let source = padded.checked_sub(geometry.pads_begin[at]);
                let source = source.filter(|&source| source < input[at]);
                offset = offset.zip(source).map(|(offset, source)| offset + source * steps[at]);
            }
            taps.extend(offset.map(|offset| (offset, number)));
        }
        taps
    }

    /// How many elements of the window at an output position lie in the image or its pads.
    pub(crate) fn padded_taps(
        &self,
        input: &[usize],
        geometry: &ConvGeometry,
        position: &[usize],
    ) -> usize {
        (0..input.len())
            .map(|at| {
                let axis = self.axis(at);
                let end = geometry.pads_begin[at] + input[at] + geometry.pads_end[at];
                let start = position[at] * axis.stride;
                (0..axis.kernel).filter(|place| start + place * axis.dilation < end).count()
            })
            .product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window<'a>(pads: &'a WindowPadding, strides: &'a [usize], ceil: bool) -> SlidingWindow<'a> {
        SlidingWindow { kernel: &[3], strides, dilations: &[], pads, ceil }
    }

    #[test]
    fn same_padding_puts_the_odd_element_where_it_says() {
        let upper = window(&WindowPadding::SameUpper, &[2], false).geometry(&[4]).unwrap();
        assert_eq!((upper.pads_begin[0], upper.pads_end[0], upper.output[0]), (0, 1, 2));
        let lower = window(&WindowPadding::SameLower, &[2], false).geometry(&[4]).unwrap();
        assert_eq!((lower.pads_begin[0], lower.pads_end[0], lower.output[0]), (1, 0, 2));
    }

    #[test]
    fn a_ceiled_window_that_starts_behind_the_image_does_not_count() {
        let pads = WindowPadding::Explicit(vec![1, 1]);
        let ceiled = |strides, len| {
            window(&pads, strides, true).geometry(&[len]).map(|geometry| geometry.output[0])
        };
        assert_eq!(ceiled(&[2], 4).unwrap(), 3);
        assert_eq!(ceiled(&[4], 3).unwrap(), 1);
        assert_eq!(window(&pads, &[2], false).geometry(&[4]).unwrap().output, [2]);
    }

    #[test]
    fn windows_that_do_not_fit_are_errors() {
        let none = WindowPadding::Valid;
        assert!(window(&none, &[], false).geometry(&[2]).is_err());
        assert!(window(&none, &[0], false).geometry(&[5]).is_err());
        assert!(window(&none, &[1, 1], false).geometry(&[5]).is_err());
        let huge = WindowPadding::Explicit(vec![usize::MAX, 1]);
        assert!(window(&huge, &[], false).geometry(&[5]).is_err());
    }

    #[test]
    fn a_symbolic_length_that_the_window_keeps_stays_a_symbol() {
        let width = Dim::symbol("width");
        let pads = WindowPadding::Explicit(vec![1, 1]);
        let keeps = window(&pads, &[], false).output_dims(std::slice::from_ref(&width)).unwrap();
        assert_eq!(keeps.first(), Some(&width));
        assert_eq!(window(&pads, &[2], false).output_dims(&[width]).unwrap(), [Dim::Unknown]);
    }
}

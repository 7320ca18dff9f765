//! `Pad`: a frame around a tensor.

use galatea_tensor::{DataType, Element, Tensor, with_carrier, with_number};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::expect_same;

/// Content of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    /// One value.
    Constant,
    /// The tensor mirrored at its edge, the edge itself not repeated.
    Reflect,
    /// The nearest element of the tensor.
    Edge,
    /// The tensor again and again.
    Wrap,
}

/// ONNX `Pad`. Lengths and value are attributes before opset 11, inputs 1 and 2 from then on;
/// input 3 (from opset 18 on) names the axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// The content of the frame.
    pub mode: PadMode,
    /// Lengths of the attribute: all begins, then all ends; negative ones cut.
    pub pads: Option<Vec<i64>>,
    /// The value of the attribute.
    pub value: f32,
}

const MODES: [PadMode; 4] = [PadMode::Constant, PadMode::Reflect, PadMode::Edge, PadMode::Wrap];

impl Pad {
    /// Opsets before 11.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let mode = context.attributes.choice("mode", &["constant", "reflect", "edge"], 0)?;
        let pads = context.attributes.ints("pads")?;
        let pads = Some(pads.ok_or_else(|| OpError::new("attribute 'pads' is missing"))?);
        let value = context.attributes.float_or("value", 0.0)?;
        Ok(Box::new(Self { mode: MODES[mode], pads, value }))
    }

    /// Version 1 had another name for the lengths.
    pub(super) fn parse_1(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mode = context.attributes.choice("mode", &["constant", "reflect", "edge"], 0)?;
        let pads = context.attributes.ints("paddings")?;
        let pads = Some(pads.ok_or_else(|| OpError::new("attribute 'paddings' is missing"))?);
        let value = context.attributes.float_or("value", 0.0)?;
        Ok(Box::new(Self { mode: MODES[mode], pads, value }))
    }

    /// Opset 11 and newer.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        if context.inputs < 2 {
            return Err(OpError::new("input 1 (pads) is missing"));
        }
        let names = ["constant", "reflect", "edge", "wrap"];
        let known = if context.opset >= 19 { &names[..] } else { &names[..3] };
        let mode = context.attributes.choice("mode", known, 0)?;
        Ok(Box::new(Self { mode: MODES[mode], pads: None, value: 0.0 }))
    }

    /// Begin and end of every axis.
    fn pairs(
        &self,
        rank: usize,
        pads: &[i64],
        axes: Option<&[i64]>,
    ) -> Result<Vec<(i64, i64)>, OpError> {
        let axes = match axes {
            Some(axes) => bounds::axes(axes, rank)?,
            None => (0..rank).collect(),
        };
        if pads.len() != 2 * axes.len() {
            return Err(OpError::new(format!(
                "{} pads for {} axes, expected twice as many",
                pads.len(),
                axes.len()
            )));
        }
        let mut pairs = vec![(0, 0); rank];
        for (at, &axis) in axes.iter().enumerate() {
            pairs[axis] = (pads[at], pads[at + axes.len()]);
        }
        Ok(pairs)
    }

    /// The position that each output position of an axis reads; `None` where it is padding.
    fn sources(&self, len: usize, begin: i64, end: i64) -> Result<Vec<Option<usize>>, OpError> {
        let total = padded(len, begin, end)?;
        bounds::bounded(DataType::Int64, &[total, 2])?;
        // Negative pads cut first; the frame is drawn around what is left.
        let first = bounds::length(begin.saturating_neg().max(0), "a pad")?;
        let last = len.saturating_sub(bounds::length(end.saturating_neg().max(0), "a pad")?);
        let kept = last.saturating_sub(first);
        let before = i128::from(begin.max(0));
        let count = i128::try_from(kept).unwrap_or(0);
        if count == 0 && self.mode != PadMode::Constant && total > 0 {
            return Err(OpError::new("an axis without elements cannot be padded from itself"));
        }
        let at = |position: usize| -> Option<usize> {
            let from = i128::try_from(position).unwrap_or(0) - before;
            let inside = match self.mode {
                PadMode::Constant => Some(from).filter(|from| (0..count).contains(from)),
                PadMode::Edge => Some(from.clamp(0, count - 1)),
                PadMode::Wrap => Some(from.rem_euclid(count)),
                PadMode::Reflect if count == 1 => Some(0),
                PadMode::Reflect => {
                    let period = 2 * (count - 1);
                    let folded = from.rem_euclid(period);
                    Some(folded.min(period - folded))
                }
            };
            inside.and_then(|inside| usize::try_from(inside).ok()).map(|inside| inside + first)
        };
        Ok((0..total).map(at).collect())
    }

    /// Returns the place that each place of the result reads, axis by axis, for a tensor of this shape; `None` where it
    /// is filled.
    ///
    /// # Errors
    /// Fails when the pads are absent or do not fit the shape.
    pub fn axis_sources(
        &self,
        shape: &[usize],
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<Vec<Vec<Option<usize>>>, OpError> {
        let pads = match &self.pads {
            Some(pads) => pads.clone(),
            None => inputs.required(1)?.to_i64_vec()?,
        };
        let axes = inputs.optional(3).map(Tensor::to_i64_vec).transpose()?;
        let pairs = self.pairs(shape.len(), &pads, axes.as_deref())?;
        let each = shape.iter().zip(pairs);
        collected(&mut each.map(|(&len, (begin, end))| self.sources(len, begin, end)))
    }

    /// Returns the element that fills where no input gives one: the attribute's, as one of a type.
    ///
    /// # Errors
    /// Fails when the type has none.
    pub fn filling(&self, dtype: DataType) -> Result<Tensor, OpError> {
        attribute_value(self.value, dtype)
    }

    /// The one element that the frame is filled with.
    fn fill(&self, inputs: OperatorInputs<'_, Tensor>, dtype: DataType) -> Result<Tensor, OpError> {
        match inputs.optional(2) {
            Some(value) if self.pads.is_none() && value.elements() > 0 => {
                expect_same(dtype, value.dtype())?;
                if value.elements() != 1 {
                    return Err(OpError::new(format!(
                        "a fill value of shape {:?}, expected one element",
                        value.shape()
                    )));
                }
                Ok(value.clone())
            }
            _ => attribute_value(self.value, dtype),
        }
    }
}

/// The length of an axis with its pads.
fn padded(len: usize, begin: i64, end: i64) -> Result<usize, OpError> {
    let signed = i64::try_from(len).ok();
    let total = signed.and_then(|len| len.checked_add(begin)).and_then(|len| len.checked_add(end));
    total.and_then(|total| usize::try_from(total).ok()).ok_or_else(|| {
        OpError::new(format!("pads {begin} and {end} do not fit an axis of length {len}"))
    })
}

fn gather<T: Element>(
    data: &Tensor,
    sources: &[Vec<Option<usize>>],
    fill: &Tensor,
) -> Result<Tensor, OpError> {
    let shape: Vec<usize> = sources.iter().map(Vec::len).collect();
    let count = bounds::bounded(data.dtype(), &shape)?;
    let values = data.to_carriers::<T>()?;
    let Some((row, lead)) = sources.split_last() else {
        return Ok(Tensor::from_carriers(data.dtype(), &shape, values)?);
    };
    let fill = &fill.to_carriers::<T>()?[0];
    let steps = bounds::steps(data.shape());
    let mut index = vec![0; lead.len()];
    let mut result = Vec::with_capacity(count);
    for _ in 0..count.checked_div(row.len()).unwrap_or(0) {
        let start = index
            .iter()
            .zip(lead)
            .zip(&steps)
            .try_fold(0, |start, ((&at, axis), step)| axis[at].map(|from| start + from * step));
        match start {
            None => result.resize(result.len() + row.len(), fill.clone()),
            Some(start) => result.extend(
                row.iter().map(|from| from.map_or(fill, |from| &values[start + from]).clone()),
            ),
        }
        bounds::advance(&mut index, &shape[..lead.len()]);
    }
    Ok(Tensor::from_carriers(data.dtype(), &shape, result)?)
}

/// The value attribute as an element of a type; strings and booleans have none.
fn attribute_value(value: f32, dtype: DataType) -> Result<Tensor, OpError> {
    with_number!(dtype, T => {
        let value = <T as num_traits::NumCast>::from(value).unwrap_or_default();
        Ok(Tensor::scalar::<T>(value))
    }, else {
        Ok(Tensor::zeros(dtype, &[])?)
    })
}

impl Operator for Pad {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let pads = match &self.pads {
            Some(pads) => Some(pads.clone()),
            None => inputs.required(1)?.integers(),
        };
        let axes = inputs.optional(3).map(Fact::integers);
        let (Some(pads), None | Some(Some(_))) = (pads, &axes) else {
            return Ok(vec![Fact::new(data.dtype, vec![Dim::Unknown; dims.len()])]);
        };
        let pairs = self.pairs(dims.len(), &pads, axes.flatten().as_deref())?;
        let length = |(dim, pair): (&Dim, (i64, i64))| match (dim.known(), pair) {
            (Some(len), (begin, end)) => padded(len, begin, end).map(Dim::Known),
            (None, (0, 0)) => Ok(dim.clone()),
            (None, _) => Ok(Dim::Unknown),
        };
        let shape = collected(&mut dims.iter().zip(pairs).map(length))?;
        Ok(vec![Fact::new(data.dtype, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let pads = match &self.pads {
            Some(pads) => pads.clone(),
            None => inputs.required(1)?.to_i64_vec()?,
        };
        let axes = inputs.optional(3).map(Tensor::to_i64_vec).transpose()?;
        let pairs = self.pairs(data.rank(), &pads, axes.as_deref())?;
        let lengths = data.shape().iter().zip(&pairs);
        let shape = lengths.clone().map(|(&len, &(begin, end))| padded(len, begin, end));
        bounds::bounded(data.dtype(), &shape.collect::<Result<Vec<_>, _>>()?)?;
        let sources =
            collected(&mut lengths.map(|(&len, &(begin, end))| self.sources(len, begin, end)))?;
        let fill = self.fill(inputs, data.dtype())?;
        Ok(vec![with_carrier!(data.dtype(), T => gather::<T>(data, &sources, &fill))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, counting, ints, one, run, tensor, text};

    fn padded_row(mode: &str, pads: &[i64]) -> Vec<f32> {
        let attributes = attributes([("mode", text(mode))]);
        let data = tensor(&[3], &[1_f32, 2.0, 3.0]);
        let pads = Tensor::vector(pads.to_vec());
        one("Pad", 19, &attributes, &[&data, &pads]).to_vec().unwrap()
    }

    #[test]
    fn every_mode_frames_a_row() {
        assert_eq!(padded_row("constant", &[1, 2]), [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
        assert_eq!(padded_row("reflect", &[2, 1]), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
        assert_eq!(padded_row("edge", &[2, 1]), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(padded_row("wrap", &[4, 1]), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]);
        assert_eq!(padded_row("constant", &[-1, 1]), [2.0, 3.0, 0.0]);
    }

    #[test]
    fn attributes_before_opset_11_and_axes_from_18_on() {
        let old =
            attributes([("pads", ints(&[0, 1, 0, 0])), ("value", AttributeValue::Float(9.0))]);
        let result = one("Pad", 10, &old, &[&counting(&[2, 1])]);
        assert_eq!(result, tensor(&[2, 2], &[9_f32, 0.0, 9.0, 1.0]));
        let pads = Tensor::vector(vec![1_i64, 0]);
        let axes = Tensor::vector(vec![-1_i64]);
        let data = counting(&[2, 1]);
        let value = Tensor::scalar(9_f32);
        assert_eq!(one("Pad", 18, &attributes([]), &[&data, &pads, &value, &axes]), result);
    }

    #[test]
    fn hostile_pads_are_errors() {
        for pads in [[i64::MAX, 0], [i64::MAX, i64::MAX], [1 << 45, 0], [-2, -2], [i64::MIN, 0]] {
            let pads = Tensor::vector(pads.to_vec());
            let inputs = [Some(&counting(&[3])), Some(&pads)];
            assert!(run("Pad", 13, &attributes([]), &inputs, 1).is_err());
        }
    }
}

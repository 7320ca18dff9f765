//! `Slice`: a range with a step of some axes.

use galatea_tensor::Tensor;

use crate::attribute::Attributes;
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::length;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Slice`. Everything is an attribute before opset 10; from then on inputs 1 to 4 are
/// `starts`, `ends`, `axes` and `steps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The ranges of the attributes.
    pub ranges: Option<SliceAttributes>,
}

/// The attributes of `Slice` before opset 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceAttributes {
    /// First position of each axis; negative counts from the end.
    pub starts: Vec<i64>,
    /// One past the last position; negative counts from the end.
    pub ends: Vec<i64>,
    /// The axes; all leading ones if absent.
    pub axes: Option<Vec<i64>>,
}

/// The positions of one axis that a slice takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRange {
    /// The axis.
    pub axis: usize,
    /// The first position.
    pub start: usize,
    /// How many positions.
    pub len: usize,
    /// From one to the next; negative goes backwards, never 0.
    pub step: isize,
}

/// A range of an axis as a model gives it: negative positions count from the end.
#[derive(Clone, Copy, Debug)]
struct RequestedSlice {
    start: i64,
    end: i64,
    step: i64,
}

impl SliceRange {
    /// Clamps a range to an axis as ONNX says.
    ///
    /// # Errors
    /// Fails when the step is 0.
    fn resolve(axis: usize, len: usize, slice: RequestedSlice) -> Result<Self, OpError> {
        let step = slice.step;
        let range = |start: i64, count: i64| -> Result<Self, OpError> {
            Ok(Self {
                axis,
                start: bounds::length(start, "a slice start")?,
                len: bounds::length(count.max(0), "a slice length")?,
                // A step beyond the platform's word leaves only the first position anyway.
                step: isize::try_from(step).unwrap_or(if step < 0 {
                    isize::MIN
                } else {
                    isize::MAX
                }),
            })
        };
        let n = i64::try_from(len).unwrap_or(i64::MAX);
        let from_end = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
        let start = from_end(slice.start);
        let end = from_end(slice.end);
        match step {
            0 => Err(OpError::new("a slice step is 0")),
            _ if n == 0 => range(0, 0),
            1.. => {
                let start = start.clamp(0, n);
                let end = end.clamp(0, n);
                let span = (end - start).max(0);
                range(start, span / step + i64::from(span % step != 0))
            }
            _ => {
                let start = start.clamp(0, n - 1);
                let end = end.clamp(-1, n - 1);
                let span = (start - end).max(0);
                let stride = step.saturating_neg();
                range(start, span / stride + i64::from(span % stride != 0))
            }
        }
    }
}

/// The four lists, brought to one length.
struct SliceLists {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<usize>,
    steps: Vec<i64>,
}

impl SliceLists {
    fn new(
        starts: Vec<i64>,
        ends: Vec<i64>,
        axes: Option<Vec<i64>>,
        steps: Option<Vec<i64>>,
        rank: usize,
    ) -> Result<Self, OpError> {
        let count = starts.len();
        let axes = match axes {
            Some(axes) => bounds::axes(&axes, rank)?,
            None => (0..count).collect(),
        };
        let steps = steps.unwrap_or_else(|| vec![1; count]);
        let counts = [ends.len(), axes.len(), steps.len()];
        if counts.iter().any(|&other| other != count) || count > rank {
            return Err(OpError::new(format!(
                "{count} starts with {} ends, {} axes and {} steps for rank {rank}",
                counts[0], counts[1], counts[2]
            )));
        }
        Ok(Self { starts, ends, axes, steps })
    }

    fn requested(&self, at: usize) -> RequestedSlice {
        RequestedSlice { start: self.starts[at], end: self.ends[at], step: self.steps[at] }
    }

    fn ranges(&self, shape: &[usize]) -> Result<Vec<SliceRange>, OpError> {
        collected(&mut (0..self.axes.len()).map(|at| {
            let axis = self.axes[at];
            SliceRange::resolve(axis, shape[axis], self.requested(at))
        }))
    }
}

impl Slice {
    /// Opsets before 10.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let missing = |name: &str| OpError::new(format!("attribute '{name}' is missing"));
        let starts = context.attributes.ints("starts")?.ok_or_else(|| missing("starts"))?;
        let ends = context.attributes.ints("ends")?.ok_or_else(|| missing("ends"))?;
        let axes = context.attributes.ints("axes")?;
        Ok(Box::new(Self { ranges: Some(SliceAttributes { starts, ends, axes }) }))
    }

    /// Opset 10 and newer.
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        if context.inputs < 3 {
            return Err(OpError::new("inputs 'starts' and 'ends' are missing"));
        }
        Ok(Box::new(Self { ranges: None }))
    }

    /// Returns the ranges that the slice takes from an input of this shape; `inputs` are those of
    /// the node.
    ///
    /// # Errors
    /// Returns an error if the ranges do not fit the shape.
    pub fn ranges(
        &self,
        shape: &[usize],
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<Vec<SliceRange>, OpError> {
        let list = |at: usize| inputs.optional(at).map(Tensor::to_i64_vec).transpose();
        let lists = match &self.ranges {
            Some(all) => {
                let starts = all.starts.clone();
                SliceLists::new(starts, all.ends.clone(), all.axes.clone(), None, shape.len())?
            }
            None => {
                let starts = inputs.required(1)?.to_i64_vec()?;
                let ends = inputs.required(2)?.to_i64_vec()?;
                SliceLists::new(starts, ends, list(3)?, list(4)?, shape.len())?
            }
        };
        lists.ranges(shape)
    }

    /// The lists where all are known before the run.
    fn known_lists(
        &self,
        inputs: OperatorInputs<'_, Fact>,
        rank: usize,
    ) -> Result<Option<SliceLists>, OpError> {
        if let Some(all) = &self.ranges {
            let starts = all.starts.clone();
            let lists = SliceLists::new(starts, all.ends.clone(), all.axes.clone(), None, rank);
            return lists.map(Some);
        }
        let starts = inputs.required(1)?.integers();
        let ends = inputs.required(2)?.integers();
        let (Some(starts), Some(ends)) = (starts, ends) else { return Ok(None) };
        let mut optional = Vec::new();
        for at in [3, 4] {
            optional.push(match inputs.optional(at).map(Fact::integers) {
                Some(None) => return Ok(None),
                Some(known) => known,
                None => None,
            });
        }
        let steps = optional.pop().flatten();
        SliceLists::new(starts, ends, optional.pop().flatten(), steps, rank).map(Some)
    }
}

/// The length of a range of an axis whose length is not a number.
fn symbolic_range(dim: &Dim, slice: RequestedSlice) -> Dim {
    match (slice.start, slice.end, slice.step) {
        (0, i64::MAX, 1) => dim.clone(),
        // The largest 32-bit number also stands for "to the end" in exported models.
        (0, end, 1) if end >= i64::from(i32::MAX) => dim.clone(),
        (-1, end, -1) if end <= i64::from(i32::MIN) => dim.clone(),
        // An axis that is shorter than what is cut off gives nothing, and a model that relies on
        // more fails in its run.
        (from @ 0.., to, 1) => {
            let cut = |len: i64| usize::try_from(len).map_or(Dim::Unknown, Dim::Known);
            let rest = length::unless_negative(length::minus(dim, &cut(from)));
            match to {
                to if to >= i64::from(i32::MAX) => rest,
                to if to < 0 => {
                    length::unless_negative(length::minus(&rest, &cut(to.saturating_neg())))
                }
                _ => Dim::Unknown,
            }
        }
        _ => Dim::Unknown,
    }
}

/// The length of `start..end` of an axis where `end` is a symbol. A model that asks for more than the
/// axis has gets less; the shapes of the run, where the symbol is a number, say how much.
fn symbolic_end(inputs: OperatorInputs<'_, Fact>, dims: &[Dim]) -> Option<Vec<Dim>> {
    let starts = inputs.optional(1)?.lengths()?;
    let ends = inputs.optional(2)?.lengths()?;
    let steps = inputs.optional(4).map_or_else(|| Some(vec![1; starts.len()]), Fact::integers)?;
    let axes = match inputs.optional(3) {
        None => (0..starts.len()).collect(),
        Some(fact) => bounds::axes(&fact.integers()?, dims.len()).ok()?,
    };
    let mut shape = dims.to_vec();
    for (at, &axis) in axes.iter().enumerate() {
        *shape.get_mut(axis)? = match (starts.get(at)?, ends.get(at)?, steps.get(at)?) {
            (Dim::Known(0), end @ Dim::Symbol(_), 1) => end.clone(),
            (start @ Dim::Symbol(_), end @ Dim::Symbol(_), 1) => {
                length::unless_negative(length::minus(end, start))
            }
            (Dim::Known(0), Dim::Known(end), 1) => match dims[axis].known() {
                Some(len) => Dim::Known(len.min(*end)),
                None if *end >= i32::MAX.unsigned_abs() as usize => dims[axis].clone(),
                None => Dim::Unknown,
            },
            _ => Dim::Unknown,
        };
    }
    Some(shape)
}

impl Operator for Slice {
    fn attributes(&self) -> Option<Attributes> {
        self.ranges.is_none().then(Attributes::new)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let Some(dims) = &data.shape else { return Ok(vec![Fact::unranked(data.dtype)]) };
        let Some(lists) = self.known_lists(inputs, dims.len())? else {
            let axes = match inputs.optional(3) {
                Some(fact) => fact.integers(),
                None => inputs
                    .optional(1)
                    .and_then(bounds::vector_len)
                    .map(|count| (0..count).filter_map(|axis| i64::try_from(axis).ok()).collect()),
            };
            let shape = symbolic_end(inputs, dims).unwrap_or_else(|| {
                let cut = axes.and_then(|axes| bounds::axes(&axes, dims.len()).ok());
                let is_cut = |axis: usize| cut.as_ref().is_none_or(|cut| cut.contains(&axis));
                let length = |(axis, dim): (usize, &Dim)| {
                    if is_cut(axis) { Dim::Unknown } else { dim.clone() }
                };
                dims.iter().enumerate().map(length).collect()
            });
            return Ok(vec![Fact::new(data.dtype, shape)]);
        };
        let mut shape = dims.clone();
        let mut elements = bounds::carried(data);
        for (at, &axis) in lists.axes.iter().enumerate() {
            let slice = lists.requested(at);
            let Some(len) = dims[axis].known() else {
                SliceRange::resolve(axis, 0, slice)?;
                shape[axis] = symbolic_range(&dims[axis], slice);
                continue;
            };
            let taken = SliceRange::resolve(axis, len, slice)?;
            shape[axis] = Dim::Known(taken.len);
            elements = elements.map(|all| {
                let mut position = taken.start;
                let mut kept = Vec::with_capacity(taken.len);
                for _ in 0..taken.len {
                    kept.push(all.get(position).cloned().unwrap_or(Dim::Unknown));
                    position = position.saturating_add_signed(taken.step);
                }
                kept
            });
        }
        Ok(vec![Fact::new(data.dtype, shape).with_elements(elements)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let mut view = data.clone();
        for range in self.ranges(data.shape(), inputs)? {
            // With at most one position the step has no meaning, and may be too large to use.
            let step = if range.len > 1 { range.step } else { 1 };
            view = view.slice_axis(
                range.axis,
                range.start.min(view.shape()[range.axis]),
                range.len,
                step,
            )?;
        }
        Ok(vec![bounds::owned(&view)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, ints, one, run, tensor};
    use galatea_tensor::DataType;

    fn sliced(data: &Tensor, lists: [&[i64]; 4]) -> Tensor {
        let lists = lists.map(|list| Tensor::vector(list.to_vec()));
        one("Slice", 13, &attributes([]), &[data, &lists[0], &lists[1], &lists[2], &lists[3]])
    }

    #[test]
    fn ranges_clamp_and_go_either_way() {
        let data = counting(&[5]);
        let values = |lists| sliced(&data, lists).to_vec::<f32>().unwrap();
        assert_eq!(values([&[1], &[3], &[0], &[1]]), [1.0, 2.0]);
        assert_eq!(values([&[-2], &[i64::MAX], &[0], &[1]]), [3.0, 4.0]);
        assert_eq!(values([&[4], &[i64::MIN], &[-1], &[-2]]), [4.0, 2.0, 0.0]);
        assert_eq!(values([&[10], &[0], &[0], &[-1]]), [4.0, 3.0, 2.0, 1.0]);
        assert_eq!(values([&[0], &[5], &[0], &[i64::MAX]]), [0.0]);
        assert!(values([&[7], &[9], &[0], &[1]]).is_empty());
        assert_eq!(sliced(&counting(&[0]), [&[-1], &[-9], &[0], &[-1]]).shape(), [0]);
    }

    #[test]
    fn attributes_hold_the_ranges_before_opset_10() {
        let old = attributes([("starts", ints(&[1])), ("ends", ints(&[9])), ("axes", ints(&[1]))]);
        let result = one("Slice", 7, &old, &[&counting(&[2, 3])]);
        assert_eq!(result, tensor(&[2, 2], &[1_f32, 2.0, 4.0, 5.0]));
    }

    #[test]
    fn a_step_of_zero_and_lists_of_unequal_length_are_errors() {
        let data = counting(&[5]);
        let zero = Tensor::vector(vec![0_i64]);
        let one = counting(&[1]);
        let two = Tensor::vector(vec![1_i64, 2]);
        for lists in [[&zero, &zero, &zero, &zero], [&zero, &two, &zero, &two]] {
            let inputs =
                [Some(&data), Some(lists[0]), Some(lists[1]), Some(lists[2]), Some(lists[3])];
            assert!(run("Slice", 13, &attributes([]), &inputs, 1).is_err());
        }
        assert!(
            run("Slice", 13, &attributes([]), &[Some(&data), Some(&one), Some(&one)], 1).is_err()
        );
    }

    #[test]
    fn symbols_pass_through_and_end_ranges() {
        let seq = Dim::symbol("seq");
        let shape = Fact::fixed(DataType::Int64, &[3]).with_elements(Some(vec![
            Dim::symbol("batch"),
            seq.clone(),
            Dim::Known(4),
        ]));
        let list = |n: i64| Fact::constant(Tensor::vector(vec![n]));
        let fact = inferred("Slice", 13, &attributes([]), &[&shape, &list(1), &list(2), &list(0)])
            .unwrap();
        assert_eq!(fact.elements, Some(vec![seq.clone()]));
        let table = Fact::fixed(DataType::Int64, &[1, 512]);
        let inputs = [&table, &list(0), &fact, &list(1)];
        let cut = inferred("Slice", 13, &attributes([]), &inputs).unwrap();
        assert_eq!(cut.shape.unwrap(), [Dim::Known(1), seq]);
    }
}

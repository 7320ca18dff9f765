//! `Reshape`: the same elements under another shape.

use galatea_tensor::{Tensor, checked_elements};

use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::legacy::WithConstants;

/// ONNX `Reshape`: inputs `data` and `shape`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// True if a 0 in the target is a length of 0 (from opset 14 on) instead of the input's length
    /// of the same axis.
    pub allow_zero: bool,
}

/// One entry of a target shape.
enum ShapeEntry {
    /// A length.
    Length(Dim),
    /// The length that makes the element counts equal.
    Rest,
}

impl Reshape {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { allow_zero: context.attributes.flag("allowzero", false)? }))
    }

    /// Before version 5 the target was an attribute.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let target = context.attributes.ints("shape")?;
        let target = target.ok_or_else(|| OpError::new("attribute 'shape' is missing"))?;
        let inner = Box::new(Self { allow_zero: false });
        Ok(WithConstants::boxed(inner, vec![Tensor::vector(target)]))
    }

    /// The resulting shape for an input shape and a target with 0 and -1 in it.
    ///
    /// # Errors
    /// Fails when the target does not fit the number of elements.
    pub fn output_shape(&self, input: &[usize], target: &[i64]) -> Result<Vec<usize>, OpError> {
        let mut rest = None;
        let mut shape = Vec::with_capacity(target.len());
        for (at, &entry) in target.iter().enumerate() {
            shape.push(match entry {
                -1 if rest.replace(at).is_some() => {
                    return Err(OpError::new(format!("target {target:?} has -1 twice")));
                }
                -1 => 1,
                0 if !self.allow_zero => *input.get(at).ok_or_else(|| {
                    OpError::new(format!("target {target:?} copies axis {at} of {input:?}"))
                })?,
                other => bounds::length(other, "an entry of the target shape")?,
            });
        }
        let count = checked_elements(input)?;
        let other = checked_elements(&shape)?;
        if let Some(at) = rest {
            if other == 0 || count % other != 0 {
                return Err(misfit(input, target));
            }
            shape[at] = count / other;
        } else if other != count {
            return Err(misfit(input, target));
        }
        Ok(shape)
    }

    /// The entries of a target of which only lengths are known.
    fn entries(&self, input: Option<&[Dim]>, target: &Fact) -> Option<Vec<ShapeEntry>> {
        let lengths = target.lengths()?;
        let entry = |(at, dim): (usize, &Dim)| match dim {
            Dim::Known(0) if !self.allow_zero => ShapeEntry::Length(
                input.and_then(|dims| dims.get(at)).cloned().unwrap_or(Dim::Unknown),
            ),
            // Either -1, or a length that nobody knows: the element count decides both.
            Dim::Unknown => ShapeEntry::Rest,
            known => ShapeEntry::Length(known.clone()),
        };
        Some(lengths.iter().enumerate().map(entry).collect())
    }
}

fn misfit(input: &[usize], target: &[i64]) -> OpError {
    OpError::new(format!("shape {input:?} cannot become {target:?}"))
}

/// Entries as lengths, the one that is left open computed from the others where possible.
fn resolve(input: Option<&[Dim]>, entries: &[ShapeEntry]) -> Vec<Dim> {
    let open = entries.iter().filter(|entry| matches!(entry, ShapeEntry::Rest)).count();
    let known = entries.iter().filter_map(|entry| match entry {
        ShapeEntry::Length(dim) => Some(dim),
        ShapeEntry::Rest => None,
    });
    let rest = match input {
        Some(dims) if open == 1 => bounds::quotient(dims, known),
        _ => Dim::Unknown,
    };
    entries
        .iter()
        .map(|entry| match entry {
            ShapeEntry::Length(dim) => dim.clone(),
            ShapeEntry::Rest => rest.clone(),
        })
        .collect()
}

impl Operator for Reshape {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([("allowzero", self.allow_zero.into())]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let target = inputs.required(1)?;
        let shape = match (data.known_shape(), target.integers()) {
            (Some(input), Some(target)) => {
                let shape = self.output_shape(&input, &target)?;
                Some(shape.into_iter().map(Dim::Known).collect())
            }
            _ => match self.entries(data.shape.as_deref(), target) {
                Some(entries) => Some(resolve(data.shape.as_deref(), &entries)),
                None => bounds::vector_len(target).map(|rank| vec![Dim::Unknown; rank]),
            },
        };
        let is_vector = shape.as_ref().is_some_and(|dims: &Vec<Dim>| dims.len() <= 1);
        let elements = if is_vector { bounds::carried(data) } else { None };
        Ok(vec![Fact { elements, ..Fact::shaped(data.dtype, shape) }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let target = inputs.required(1)?.to_i64_vec()?;
        Ok(vec![data.reshape(&self.output_shape(data.shape(), &target)?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, int, one, run, tensor};
    use galatea_tensor::DataType;

    #[test]
    fn zero_copies_a_length_and_minus_one_takes_the_rest() {
        let target = tensor::<i64>(&[3], &[0, -1, 2]);
        let result = one("Reshape", 13, &attributes([]), &[&counting(&[2, 3, 4]), &target]);
        assert_eq!(result.shape(), [2, 6, 2]);
        let empty = tensor::<i64>(&[2], &[3, 0]);
        let allow = attributes([("allowzero", int(1))]);
        assert_eq!(one("Reshape", 14, &allow, &[&counting(&[0, 4]), &empty]).shape(), [3, 0]);
    }

    #[test]
    fn symbolic_lengths_survive_and_cancel() {
        let batch = Dim::symbol("batch");
        let seq = Dim::symbol("seq");
        let data = Fact::new(DataType::Fp32, vec![batch.clone(), seq.clone(), Dim::Known(384)]);
        let target = Fact::fixed(DataType::Int64, &[4]).with_elements(Some(vec![
            batch.clone(),
            seq.clone(),
            Dim::Known(12),
            Dim::Unknown,
        ]));
        let fact = inferred("Reshape", 13, &attributes([]), &[&data, &target]).unwrap();
        assert_eq!(fact.shape.unwrap(), [batch, seq, Dim::Known(12), Dim::Known(32)]);
    }

    #[test]
    fn a_target_of_another_count_is_an_error() {
        for bad in [vec![-1_i64, 5], vec![-1, -1], vec![7], vec![0, 0, 0], vec![-2]] {
            let target = Tensor::vector(bad);
            let inputs = [Some(&counting(&[2, 3])), Some(&target)];
            assert!(run("Reshape", 13, &attributes([]), &inputs, 1).is_err());
        }
    }
}

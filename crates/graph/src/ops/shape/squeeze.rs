//! `Squeeze` and `Unsqueeze`: axes of length 1 taken away and added.

use galatea_tensor::Tensor;

use crate::attribute::Attributes;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `Squeeze`. The axes are an attribute before opset 13, input 1 from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Squeeze {
    /// The axes of the attribute.
    pub axes: Option<Vec<i64>>,
}

/// ONNX `Unsqueeze`. The axes are an attribute before opset 13, input 1 from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsqueeze {
    /// The axes of the attribute, in the output.
    pub axes: Option<Vec<i64>>,
}

/// Axes of a fact: `None` without any, `Some(None)` where they are not known yet.
fn axes_of(attribute: Option<&Vec<i64>>, input: Option<&Fact>) -> Option<Option<Vec<i64>>> {
    attribute.map_or_else(|| input.map(Fact::integers), |axes| Some(Some(axes.clone())))
}

/// Axes of a run, if there are any.
fn axes_given(
    attribute: Option<&Vec<i64>>,
    input: Option<&Tensor>,
) -> Result<Option<Vec<i64>>, OpError> {
    match (attribute, input) {
        (Some(axes), _) => Ok(Some(axes.clone())),
        (None, Some(tensor)) => Ok(Some(tensor.to_i64_vec()?)),
        (None, None) => Ok(None),
    }
}

impl Squeeze {
    /// Reads the attributes of opsets before 13.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axes: context.attributes.ints("axes")? }))
    }

    /// Opset 13 and newer.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axes: None }))
    }

    /// The lengths that remain.
    fn remaining(dims: &[Dim], axes: &[i64]) -> Result<Vec<Dim>, OpError> {
        let axes = bounds::axes(axes, dims.len())?;
        for &axis in &axes {
            if let Some(len) = dims[axis].known().filter(|&len| len != 1) {
                return Err(OpError::new(format!("axis {axis} has length {len}, expected 1")));
            }
        }
        let kept = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        Ok(kept.map(|(_, dim)| dim.clone()).collect())
    }
}

impl Operator for Squeeze {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let shape = match (&data.shape, axes_of(self.axes.as_ref(), inputs.optional(1))) {
            (Some(dims), Some(Some(axes))) => Some(Self::remaining(dims, &axes)?),
            (Some(_), None) => data
                .known_shape()
                .map(|all| all.into_iter().filter(|&len| len != 1).map(Dim::Known).collect()),
            (Some(dims), Some(None)) => inputs
                .optional(1)
                .and_then(bounds::vector_len)
                .and_then(|count| dims.len().checked_sub(count))
                .map(|rank| vec![Dim::Unknown; rank]),
            (None, _) => None,
        };
        Ok(vec![Fact { elements: bounds::carried(data), ..Fact::shaped(data.dtype, shape) }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let shape: Vec<usize> = match axes_given(self.axes.as_ref(), inputs.optional(1))? {
            None => data.shape().iter().copied().filter(|&len| len != 1).collect(),
            Some(axes) => {
                let dims: Vec<Dim> = data.shape().iter().map(|&len| Dim::Known(len)).collect();
                Self::remaining(&dims, &axes)?.iter().filter_map(Dim::known).collect()
            }
        };
        Ok(vec![data.reshape(&shape)?])
    }
}

impl Unsqueeze {
    /// Reads the attributes of opsets before 13.
    pub(super) fn parse_attribute(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let axes = context.attributes.ints("axes")?;
        let axes = axes.ok_or_else(|| OpError::new("attribute 'axes' is missing"))?;
        Ok(Box::new(Self { axes: Some(axes) }))
    }

    /// Opset 13 and newer.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { axes: None }))
    }

    /// The lengths with ones put in.
    fn extended(dims: &[Dim], axes: &[i64]) -> Result<Vec<Dim>, OpError> {
        let mut axes = bounds::axes(axes, dims.len() + axes.len())?;
        axes.sort_unstable();
        let mut shape = dims.to_vec();
        for axis in axes {
            shape.insert(axis, Dim::Known(1));
        }
        Ok(shape)
    }
}

impl Operator for Unsqueeze {
    fn attributes(&self) -> Option<Attributes> {
        self.axes.is_none().then(Attributes::new)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let axes = axes_of(self.axes.as_ref(), inputs.optional(1)).flatten();
        let shape = match (&data.shape, axes) {
            (Some(dims), Some(axes)) => Some(Self::extended(dims, &axes)?),
            (Some(dims), None) => inputs
                .optional(1)
                .and_then(bounds::vector_len)
                .map(|count| vec![Dim::Unknown; dims.len() + count]),
            (None, _) => None,
        };
        let is_vector = shape.as_ref().is_some_and(|dims| dims.len() <= 1);
        let elements = if is_vector { bounds::carried(data) } else { None };
        Ok(vec![Fact { elements, ..Fact::shaped(data.dtype, shape) }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let axes = axes_given(self.axes.as_ref(), inputs.optional(1))?
            .ok_or_else(|| OpError::new("input 1 (axes) is missing"))?;
        let dims: Vec<Dim> = data.shape().iter().map(|&len| Dim::Known(len)).collect();
        let shape: Vec<usize> =
            Self::extended(&dims, &axes)?.iter().filter_map(Dim::known).collect();
        Ok(vec![data.reshape(&shape)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, inferred, ints, one, run};
    use galatea_tensor::DataType;

    #[test]
    fn axes_come_from_the_attribute_or_the_input() {
        let data = counting(&[1, 3, 1]);
        assert_eq!(
            one("Squeeze", 7, &attributes([("axes", ints(&[0]))]), &[&data]).shape(),
            [3, 1]
        );
        let axes = Tensor::vector(vec![-1_i64]);
        assert_eq!(one("Squeeze", 13, &attributes([]), &[&data, &axes]).shape(), [1, 3]);
        assert_eq!(one("Squeeze", 13, &attributes([]), &[&data]).shape(), [3]);
        let old = attributes([("axes", ints(&[0, 4]))]);
        assert_eq!(one("Unsqueeze", 11, &old, &[&data]).shape(), [1, 1, 3, 1, 1]);
        let axes = Tensor::vector(vec![-1_i64, 0]);
        assert_eq!(one("Unsqueeze", 13, &attributes([]), &[&data, &axes]).shape(), [1, 1, 3, 1, 1]);
    }

    #[test]
    fn an_axis_longer_than_one_does_not_squeeze() {
        let wrong = attributes([("axes", ints(&[1]))]);
        assert!(run("Squeeze", 7, &wrong, &[Some(&counting(&[1, 3]))], 1).is_err());
    }

    #[test]
    fn a_symbolic_scalar_becomes_a_symbolic_vector() {
        let batch = Dim::symbol("batch");
        let scalar = Fact::fixed(DataType::Int64, &[]).with_elements(Some(vec![batch.clone()]));
        let axes = Fact::constant(Tensor::vector(vec![0_i64]));
        let fact = inferred("Unsqueeze", 13, &attributes([]), &[&scalar, &axes]).unwrap();
        assert_eq!(fact.elements, Some(vec![batch]));
        assert_eq!(fact.shape, Some(vec![Dim::Known(1)]));
    }
}

//! Tensors on their way through an ensemble.

use galatea_tensor::{DataType, SharedBytes, Tensor, decode_byte_strings};

use crate::batch::substitute;
use crate::error::ServingError;
use crate::request::{CorrelationId, InferenceRequest, InputData, ParameterValue};

/// To which sequence a tensor belongs, and whether as its first or last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SequenceTags {
    pub(super) correlation: CorrelationId,
    pub(super) start: bool,
    pub(super) end: bool,
}

impl SequenceTags {
    pub(super) fn of(request: &InferenceRequest) -> Self {
        Self {
            correlation: request.correlation.clone(),
            start: request.sequence_start,
            end: request.sequence_end,
        }
    }

    /// With what the parameters of a response say of the sequence.
    pub(super) fn overridden(mut self, parameters: &[(String, ParameterValue)]) -> Self {
        for (name, value) in parameters {
            match (name.as_str(), value) {
                ("sequence_id", ParameterValue::Int(id)) => {
                    self.correlation = CorrelationId::Uint(u64::try_from(*id).unwrap_or(0));
                }
                ("sequence_id", ParameterValue::Uint(id)) => {
                    self.correlation = CorrelationId::Uint(*id);
                }
                ("sequence_id", ParameterValue::String(id)) => {
                    self.correlation = CorrelationId::String(id.clone());
                }
                ("sequence_start", ParameterValue::Bool(start)) => self.start = *start,
                ("sequence_end", ParameterValue::Bool(end)) => self.end = *end,
                _ => {}
            }
        }
        self
    }

    pub(super) fn parameters(&self) -> [(String, ParameterValue); 3] {
        let id = match &self.correlation {
            CorrelationId::None => ParameterValue::Int(0),
            CorrelationId::Uint(id) => match i64::try_from(*id) {
                Ok(id) => ParameterValue::Int(id),
                Err(_) => ParameterValue::Uint(*id),
            },
            CorrelationId::String(id) => ParameterValue::String(id.clone()),
        };
        [
            ("sequence_id".to_owned(), id),
            ("sequence_start".to_owned(), ParameterValue::Bool(self.start)),
            ("sequence_end".to_owned(), ParameterValue::Bool(self.end)),
        ]
    }
}

/// A tensor with the shape that its maker gave it.
#[derive(Clone, Debug)]
pub(super) struct ShapedValue {
    pub(super) datatype: DataType,
    pub(super) shape: Vec<i64>,
    pub(super) data: InputData,
    pub(super) tags: SequenceTags,
}

impl ShapedValue {
    /// The data with another shape of as many elements; the bytes stay where they are.
    ///
    /// # Errors
    /// When the shape holds another number of elements.
    pub(super) fn data_shaped(&self, shape: &[i64]) -> Result<InputData, ServingError> {
        match &self.data {
            InputData::Raw(raw) => Ok(InputData::Raw(raw.clone())),
            InputData::Tensor(tensor) if *shape == *self.shape => {
                Ok(InputData::Tensor(tensor.clone()))
            }
            InputData::Tensor(tensor) => Ok(InputData::Tensor(tensor.reshape(&sizes(shape))?)),
        }
    }

    /// Returns it as a tensor of this shape.
    ///
    /// # Errors
    /// When the data do not fit.
    pub(super) fn tensor(&self, shape: &[i64]) -> Result<Tensor, ServingError> {
        let raw = match self.data_shaped(shape)? {
            InputData::Tensor(tensor) => return Ok(tensor),
            InputData::Raw(raw) => raw,
        };
        let shape = sizes(shape);
        Ok(match self.datatype {
            DataType::Bytes => Tensor::from_vec(&shape, decode_byte_strings(&raw)?)?,
            datatype => Tensor::from_allocation(datatype, &shape, SharedBytes::new(raw), 0)?,
        })
    }
}

fn sizes(shape: &[i64]) -> Vec<usize> {
    shape.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect()
}

fn is_of(shape: &[i64], dims: &[i64]) -> bool {
    shape.len() == dims.len()
        && shape.iter().zip(dims).all(|(&size, &dim)| dim == -1 || dim == size)
}

/// The shape in which a tensor goes where `dims` are declared. Between models with and without a batch dimension, the
/// first dimension is that of the batch or a plain one, and a dimension of 1 is added or left out where that fits. A
/// shape that fits in no way is given as it is, and refused by whom it goes to.
pub(super) fn fit(shape: &[i64], dims: &[i64], batching: bool) -> Vec<i64> {
    let behind_first = |shape: &[i64]| shape.get(1..).is_some_and(|rest| is_of(rest, dims));
    match shape.split_first() {
        _ if batching && is_of(shape, dims) && !behind_first(shape) => {
            std::iter::once(1).chain(shape.iter().copied()).collect()
        }
        Some((1, rest)) if !batching && is_of(rest, dims) && !is_of(shape, dims) => rest.to_vec(),
        _ => shape.to_vec(),
    }
}

/// A shape that `from` describes, as `to` describes it.
pub(super) fn reshape(shape: &[i64], from: &[i64], to: &[i64], batching: bool) -> Vec<i64> {
    if from == to {
        return shape.to_vec();
    }
    let batch = usize::from(batching).min(shape.len());
    let given = sizes(shape.get(batch..).unwrap_or_default());
    let inner = substitute(from, &given, to).into_iter();
    let inner = inner.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
    shape.iter().take(batch).copied().chain(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_move_between_models_with_and_without_batches() {
        type Shape = &'static [i64];
        // As it is, declared, batching, as it arrives.
        let cases: &[(Shape, Shape, bool, Shape)] = &[
            (&[4, 16], &[16], true, &[4, 16]),
            (&[16], &[16], true, &[1, 16]),
            (&[4, 16], &[-1, 16], false, &[4, 16]),
            (&[1, 16], &[16], false, &[16]),
            (&[1, 16], &[-1, 16], false, &[1, 16]),
            (&[4, 16], &[16], false, &[4, 16]),
            (&[3, 5], &[-1, -1], true, &[1, 3, 5]),
            (&[], &[], true, &[1]),
        ];
        for (shape, dims, batching, expected) in cases {
            assert_eq!(fit(shape, dims, *batching), *expected, "{shape:?} to {dims:?}");
        }
        assert_eq!(reshape(&[2, 4, 5], &[4, -1], &[-1, 2, 2], true), [2, 5, 2, 2]);
        assert_eq!(reshape(&[4, 4], &[4, 4], &[16], false), [16]);
    }

    #[test]
    fn responses_change_the_sequence() {
        let request = InferenceRequest {
            correlation: CorrelationId::Uint(7),
            sequence_start: true,
            ..InferenceRequest::default()
        };
        let tags = SequenceTags::of(&request);
        assert_eq!(tags.clone().overridden(&tags.parameters()), tags);
        let end = [("sequence_end".to_owned(), ParameterValue::Bool(true))];
        assert_eq!(tags.clone().overridden(&end), SequenceTags { end: true, ..tags });
    }
}

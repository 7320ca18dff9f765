//! Items of a batch that only fill the gaps between sequences.

use bytes::Bytes;
use galatea_tensor::DataType;

use crate::request::{InferenceRequest, InputData, InputTensor};

/// A request with the inputs of another one, all zero.
pub(crate) fn filler(like: &InferenceRequest) -> InferenceRequest {
    let zero = |input: &InputTensor| {
        let bytes = match &input.data {
            InputData::Raw(raw) if input.datatype != DataType::Bytes => raw.len(),
            _ => {
                let elements: usize =
                    input.shape.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).product();
                // An empty string is its length alone.
                elements.saturating_mul(input.datatype.size_bytes().unwrap_or(4))
            }
        };
        InputTensor {
            name: input.name.clone(),
            datatype: input.datatype,
            shape: input.shape.clone(),
            data: InputData::Raw(Bytes::from(vec![0; bytes])),
        }
    };
    InferenceRequest {
        model_name: like.model_name.clone(),
        inputs: like.inputs.iter().map(zero).collect(),
        ..InferenceRequest::default()
    }
}

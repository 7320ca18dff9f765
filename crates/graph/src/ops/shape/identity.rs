//! `Identity` and `Dropout` as it is outside training: the input itself.

use galatea_tensor::{DataType, Tensor};

use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Inputs, Operator, ParseContext};
use crate::ops::bounds;

/// ONNX `Identity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity;

/// ONNX `Dropout` outside training: the input, and a mask that drops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropout {
    /// Whether the mask has the input's type (before opset 10) instead of `BOOL`.
    pub mask_like_input: bool,
}

impl Identity {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for Identity {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![inputs.required(0)?.clone()])
    }

    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let input = inputs.into_iter().next().flatten();
        Ok(vec![input.ok_or_else(|| OpError::new("input 0 is missing"))?])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

impl Dropout {
    /// Reads the attributes; ratio and seed have no effect outside training.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        context.attributes.ignore("ratio");
        context.attributes.ignore("seed");
        Ok(Box::new(Self { mask_like_input: context.opset < 10 }))
    }

    fn mask_type(&self, input: DataType) -> DataType {
        if self.mask_like_input { input } else { DataType::Bool }
    }

    /// The mask: all kept.
    fn mask(&self, data: &Tensor) -> Result<Tensor, OpError> {
        let dtype = self.mask_type(data.dtype());
        bounds::bounded(dtype, data.shape())?;
        let one = galatea_tensor::with_float!(dtype, T => {
            Tensor::scalar(<T as num_traits::One>::one())
        }, else { Tensor::scalar(true) });
        Ok(one.broadcast_to(data.shape())?.contiguous()?)
    }
}

impl Operator for Dropout {
    fn infer(&self, inputs: Inputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        let mask = self.mask_type(data.dtype);
        let mask = Fact::shaped(mask, data.shape.clone());
        Ok(vec![data.clone(), mask])
    }

    fn reference(&self, inputs: Inputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        if let Some(training) = inputs.optional(2)
            && training.item::<bool>()?
        {
            // With a ratio of 0 training drops nothing either; anything else is random.
            let ratio = inputs.optional(1);
            let zero = ratio
                .map(|ratio| {
                    Ok::<_, OpError>(*ratio == Tensor::zeros(ratio.dtype(), ratio.shape())?)
                })
                .transpose()?;
            if zero != Some(true) {
                return Err(OpError::new("Dropout in training mode is not supported"));
            }
        }
        Ok(vec![data.clone(), self.mask(data)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, one, run};

    #[test]
    fn identity_shares_the_memory() {
        let data = counting(&[3]);
        assert!(one("Identity", 13, &attributes([]), &[&data]).shares_memory_with(&data));
    }

    #[test]
    fn dropout_keeps_everything() {
        let data = counting(&[3]);
        let new = run("Dropout", 12, &attributes([]), &[Some(&data)], 2).unwrap();
        assert_eq!(new[0], data);
        assert_eq!(new[1].to_vec::<bool>().unwrap(), [true; 3]);
        let old = run("Dropout", 7, &attributes([]), &[Some(&data)], 2).unwrap();
        assert_eq!(old[1].to_vec::<f32>().unwrap(), [1.0; 3]);
    }

    #[test]
    fn training_is_an_error() {
        let (data, ratio, training) =
            (counting(&[3]), Tensor::scalar(0.5_f32), Tensor::scalar(true));
        let inputs = [Some(&data), Some(&ratio), Some(&training)];
        assert!(run("Dropout", 12, &attributes([]), &inputs, 1).is_err());
    }
}

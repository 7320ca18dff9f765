//! `ConvTransposeWithDynamicPads`: a transposed convolution whose pads are an input.

use galatea_tensor::Tensor;

use super::conv_transpose::ConvTranspose;
use super::window::WindowPadding;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// `ConvTransposeWithDynamicPads` of domain `com.microsoft`: [`ConvTranspose`] with the inputs `X`, `W`,
/// optionally pads (all begins, then all ends) and optionally `B`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvTransposeWithDynamicPads {
    /// The operator without pads.
    pub plain: ConvTranspose,
}

impl ConvTransposeWithDynamicPads {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { plain: ConvTranspose::read(context)? }))
    }

    fn with_pads(&self, pads: Option<Vec<i64>>) -> Result<ConvTranspose, OpError> {
        let Some(pads) = pads else { return Ok(self.plain.clone()) };
        let pads = WindowPadding::Explicit(bounds::lengths(&pads, "a pad")?);
        Ok(ConvTranspose { pads, ..self.plain.clone() })
    }
}

impl Operator for ConvTransposeWithDynamicPads {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let operands = [Some(inputs.required(0)?), Some(inputs.required(1)?), inputs.optional(3)];
        let operands = OperatorInputs::new(&operands);
        let pads = inputs.optional(2);
        match pads.map(Fact::integers) {
            Some(None) => {
                let mut found = self.plain.infer(operands)?;
                for fact in &mut found {
                    let spatial = fact.shape.iter_mut().flat_map(|dims| dims.iter_mut().skip(2));
                    spatial.for_each(|dim| *dim = Dim::Unknown);
                }
                Ok(found)
            }
            pads => self.with_pads(pads.flatten())?.infer(operands),
        }
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let operands = [Some(inputs.required(0)?), Some(inputs.required(1)?), inputs.optional(3)];
        let pads = inputs.optional(2).map(Tensor::to_i64_vec).transpose()?;
        self.with_pads(pads)?.reference(OperatorInputs::new(&operands))
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, counting, ints, one, run, tensor};

    #[test]
    fn pads_come_with_the_run() {
        let x = counting(&[1, 1, 3, 3]);
        let w = tensor(&[1, 1, 2, 2], &[1_f32, 2.0, 3.0, 4.0]);
        let bias = tensor(&[1], &[10_f32]);
        let name = "com.microsoft:ConvTransposeWithDynamicPads";
        let pads = Tensor::vector(vec![1_i64, 0, 1, 1]);
        let found =
            run(name, 1, &attributes([]), &[Some(&x), Some(&w), Some(&pads), Some(&bias)], 1);
        let list = attributes([("pads", ints(&[1, 0, 1, 1]))]);
        assert_eq!(found.unwrap()[0], one("ConvTranspose", 11, &list, &[&x, &w, &bias]));
        let plain = one(name, 1, &attributes([]), &[&x, &w]);
        assert_eq!(plain, one("ConvTranspose", 11, &attributes([]), &[&x, &w]));
        for wrong in [vec![1_i64], vec![-1, 0, 0, 0], vec![9, 9, 9, 9]] {
            let pads = Tensor::vector(wrong);
            assert!(run(name, 1, &attributes([]), &[Some(&x), Some(&w), Some(&pads)], 1).is_err());
        }
    }
}

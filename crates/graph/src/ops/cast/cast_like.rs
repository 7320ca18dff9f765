//! `CastLike`: elements in the type of another tensor.

use galatea_tensor::{NarrowingRule, Tensor};

use super::convert::{convert, infer, narrowing};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// The first input in the type of the second one; see [`super::Cast`] for how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CastLike {
    /// How floats become small ones.
    pub narrowing: NarrowingRule,
}

impl CastLike {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self { narrowing: narrowing(context)? }))
    }
}

impl Operator for CastLike {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        Ok(vec![infer(inputs.required(0)?, inputs.required(1)?.dtype)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![convert(inputs.required(0)?, inputs.required(1)?.dtype(), self.narrowing)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one};

    #[test]
    fn only_the_type_of_the_second_input_matters() {
        let x = Tensor::vector(vec![1.5_f32, -2.5]);
        let like = Tensor::scalar(7_i16);
        let found = one("CastLike", 19, &attributes([]), &[&x, &like]);
        assert_eq!(found, Tensor::vector(vec![1_i16, -2]));
    }
}

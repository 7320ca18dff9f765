//! `Not`: the opposite truth value.

use galatea_tensor::Tensor;

use super::logical::expect_bool;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};

/// The opposite of every element of a `BOOL` tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Not;

impl Operator for Not {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_bool(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let all = x.to_vec::<bool>()?.into_iter().map(|v| !v).collect::<Vec<_>>();
        Ok(vec![Tensor::from_vec(x.shape(), all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::one;

    #[test]
    fn every_element_is_reversed() {
        let x = Tensor::vector(vec![true, false]);
        let found = one("Not", 7, &crate::Attributes::new(), &[&x]);
        assert_eq!(found, Tensor::vector(vec![false, true]));
        let number = Tensor::scalar(1_i32);
        assert!(Not.reference(OperatorInputs::new(&[Some(&number)])).is_err());
    }
}

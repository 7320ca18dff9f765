//! `Unique` of `com.microsoft`: distinct elements in the order in which they come.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::index::Unique;

/// ONNX `Unique` of a vector, unsorted and without the positions of first occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContribUnique;

const PLAIN: Unique = Unique { axis: None, sorted: false };

fn check_rank(rank: usize) -> Result<(), OpError> {
    match rank {
        1 => Ok(()),
        _ => Err(OpError::new(format!("the input has rank {rank}, expected 1"))),
    }
}

impl Operator for ContribUnique {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        inputs.required(0)?.rank().map_or(Ok(()), check_rank)?;
        let mut found = PLAIN.infer(inputs)?;
        found.remove(1);
        Ok(found)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        check_rank(inputs.required(0)?.rank())?;
        let mut found = PLAIN.reference(inputs)?;
        found.remove(1);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, counting, run, tensor};

    #[test]
    fn elements_keep_their_order() {
        let x = tensor(&[6], &[2.0_f32, 1.0, 1.0, 3.0, 4.0, 3.0]);
        let found = run("com.microsoft:Unique", 1, &attributes([]), &[Some(&x)], 3).unwrap();
        assert_eq!(found[0], tensor(&[4], &[2.0_f32, 1.0, 3.0, 4.0]));
        assert_eq!(found[1], tensor(&[6], &[0_i64, 1, 1, 2, 3, 2]));
        assert_eq!(found[2], tensor(&[4], &[1_i64, 2, 2, 1]));
        let matrix = counting(&[2, 2]);
        assert!(run("com.microsoft:Unique", 1, &attributes([]), &[Some(&matrix)], 3).is_err());
    }
}

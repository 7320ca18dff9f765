//! `GatedAdd`: a sum whose second operand has a factor for each row.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_float, expect_same, floats, from_floats};

/// `X + Y · gate` of domain `com.microsoft`; the product is rounded to the type of `X`.
///
/// Inputs: `X` and `Y` `[…, C]`, and the gate `[…, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedAdd;

impl Operator for GatedAdd {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        expect_same(x.dtype, inputs.required(1)?.dtype)?;
        expect_same(x.dtype, inputs.required(2)?.dtype)?;
        refuse_weight(inputs.optional(3).is_some())?;
        let different = |a: &Dim, b: &Dim| a.known().zip(b.known()).is_some_and(|(a, b)| a != b);
        if let (Some(a), Some(b)) = (&x.shape, &inputs.required(1)?.shape)
            && (a.len() != b.len() || a.iter().zip(b).any(|(a, b)| different(a, b)))
        {
            return Err(OpError::new(format!("X is {x}, Y is {}", inputs.required(1)?)));
        }
        Ok(vec![Fact::shaped(x.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (x, y, gate) = (inputs.required(0)?, inputs.required(1)?, inputs.required(2)?);
        refuse_weight(inputs.optional(3).is_some())?;
        let fits = match (x.shape().split_last(), gate.shape().split_last()) {
            (Some((_, rows)), Some((1, own))) => x.shape() == y.shape() && rows == own,
            _ => false,
        };
        if !fits {
            let text = format!("X {:?}, Y {:?}, gate {:?}", x.shape(), y.shape(), gate.shape());
            return Err(OpError::new(format!("{text} do not fit")));
        }
        let gate = floats(&gate.broadcast_to(x.shape())?)?;
        let product = floats(y)?.into_iter().zip(gate).map(|(y, gate)| y * gate).collect();
        let product = floats(&from_floats(x.dtype(), x.shape(), product)?)?;
        let sum = floats(x)?.into_iter().zip(product).map(|(x, product)| x + product).collect();
        Ok(vec![from_floats(x.dtype(), x.shape(), sum)?])
    }
}

/// Refuses the fourth input, as ONNX Runtime does on CPUs.
fn refuse_weight(is_there: bool) -> Result<(), OpError> {
    match is_there {
        true => Err(OpError::new("a weight for the gate (gate_weight), which no CPU computes")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn each_row_has_its_factor() {
        let x = tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
        let gate = tensor(&[2, 1], &[10.0_f32, -1.0]);
        let name = "com.microsoft:GatedAdd";
        let found = one(name, 1, &attributes([]), &[&x, &x, &gate]);
        assert_eq!(found, tensor(&[2, 2], &[11.0_f32, 22.0, 0.0, 0.0]));
        let wrong = tensor(&[1, 1], &[1.0_f32]);
        assert!(run(name, 1, &attributes([]), &[Some(&x), Some(&x), Some(&wrong)], 1).is_err());
    }
}

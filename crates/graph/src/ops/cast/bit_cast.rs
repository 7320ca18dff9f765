//! `BitCast`: the same bits under another type.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// The bits of each element read as another type of the same size. As `BOOL`, every pattern but 0
/// is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitCast {
    /// The new type.
    pub to: DataType,
}

impl BitCast {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let to = context.data_type("to")?;
        let to = to.ok_or_else(|| OpError::new("attribute 'to' is missing"))?;
        Ok(Box::new(Self { to }))
    }

    fn check(&self, from: DataType) -> Result<(), OpError> {
        if from.size_bits().is_some() && from.size_bits() == self.to.size_bits() {
            return Ok(());
        }
        Err(OpError::new(format!("bits of {from} cannot be read as {}", self.to)))
    }
}

impl Operator for BitCast {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        self.check(x.dtype)?;
        Ok(vec![Fact { dtype: self.to, value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.check(x.dtype())?;
        Ok(vec![Tensor::from_bytes(self.to, x.shape(), x.contiguous()?.as_bytes()?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, int, one, run};

    #[test]
    fn bits_stay_and_sizes_must_agree() {
        let x = Tensor::vector(vec![1.0_f32, -0.0]);
        let to_uint32 = attributes([("to", int(12))]);
        let found = one("BitCast", 26, &to_uint32, &[&x]);
        assert_eq!(found, Tensor::vector(vec![0x3f80_0000_u32, 0x8000_0000]));
        let to_int8 = attributes([("to", int(3))]);
        assert!(run("BitCast", 26, &to_int8, &[Some(&x)], 1).is_err());
    }
}

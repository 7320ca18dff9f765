//! `PRelu`: a leaky rectifier with learnt slopes.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{TensorValues, expect_number, expect_same};

/// `x < 0 ? slope · x : x`.
///
/// Shapes: the slope (second input) broadcasts to the shape of `x` (first input).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PRelu;

impl Operator for PRelu {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let slope = inputs.required(1)?;
        expect_number(x.dtype)?;
        expect_same(x.dtype, slope.dtype)?;
        let broadcast = Fact::broadcast(&[x, slope])?;
        if let (Some(dims), Some(rank)) = (&broadcast, x.rank())
            && dims.len() > rank
        {
            return Err(OpError::new(format!("the slope {slope} does not broadcast to {x}")));
        }
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let slope = inputs.required(1)?;
        expect_number(x.dtype())?;
        expect_same(x.dtype(), slope.dtype())?;
        let mut values = TensorValues::read(x)?;
        match (&mut values, TensorValues::read(&slope.broadcast_to(x.shape())?)?) {
            (TensorValues::Floats(all), TensorValues::Floats(slopes)) => {
                for (v, slope) in all.iter_mut().zip(slopes).filter(|(v, _)| **v < 0.0) {
                    *v *= slope;
                }
            }
            (TensorValues::Integers(all), TensorValues::Integers(slopes)) => {
                for (v, slope) in all.iter_mut().zip(slopes).filter(|(v, _)| **v < 0) {
                    *v = v.wrapping_mul(slope);
                }
            }
            _ => {}
        }
        Ok(vec![values.write(x.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_has_its_slope() {
        let x = Tensor::from_vec(&[2, 2], vec![-1.0_f32, 2.0, -3.0, -4.0]).unwrap();
        let slope = Tensor::from_vec(&[2, 1], vec![0.5_f32, 2.0]).unwrap();
        let outputs = PRelu.reference(OperatorInputs::new(&[Some(&x), Some(&slope)])).unwrap();
        assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [-0.5, 2.0, -6.0, -8.0]);
        assert!(PRelu.reference(OperatorInputs::new(&[Some(&slope), Some(&x)])).is_err());
    }
}

//! `MatMulInteger16`: a product of 16-bit matrices, summed in 32 bits.

use galatea_tensor::{DataType, Tensor};

use super::product::{ProductExtents, infer_shape};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs};
use crate::ops::values::{expect_type, from_integers, integers};

/// `A · B` of domain `com.microsoft`: both `INT16` or `UINT16`, the result `INT32` (`UINT32` of two unsigned
/// matrices), which wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatMulInteger16;

fn result(a: DataType, b: DataType) -> Result<DataType, OpError> {
    let takes = |dtype| matches!(dtype, DataType::Int16 | DataType::Uint16);
    expect_type("A", a, takes, "INT16 or UINT16")?;
    expect_type("B", b, takes, "INT16 or UINT16")?;
    let unsigned = a == DataType::Uint16 && b == DataType::Uint16;
    Ok(if unsigned { DataType::Uint32 } else { DataType::Int32 })
}

impl Operator for MatMulInteger16 {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        Ok(vec![Fact::shaped(result(a.dtype, b.dtype)?, infer_shape(a, b)?)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let dtype = result(a.dtype(), b.dtype())?;
        let product = ProductExtents::new(a.shape(), b.shape(), dtype)?;
        let all = product.run(&integers(a)?, &integers(b)?, |sum, x, y| sum + x * y);
        Ok(vec![from_integers(dtype, &product.shape, &all)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn sums_have_32_bits() {
        let name = "com.microsoft:MatMulInteger16";
        let a = tensor(&[1, 2], &[30_000_i16, -3]);
        let b = tensor(&[2, 2], &[32_767_i16, 1, 2, 3]);
        let found = one(name, 1, &attributes([]), &[&a, &b]);
        assert_eq!(found, tensor(&[1, 2], &[983_009_994_i32, 29_991]));
        let bytes = tensor(&[2, 2], &[1_i8; 4]);
        assert!(run(name, 1, &attributes([]), &[Some(&a), Some(&bytes)], 1).is_err());
    }
}

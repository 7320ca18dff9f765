//! `LookUp`: every byte replaced by the one that a table has for it.

use galatea_tensor::{DataType, Tensor};

use crate::attribute::{AttributeValue, Attributes, named};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::expect_type;

/// Any function of quantised values of 8 bits. The table's entry of a byte is the byte of the
/// result; both are bytes as they lie in memory, whether signed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The 256 results.
    pub table: Vec<u8>,
    /// The type of the results: `INT8` or `UINT8`.
    pub dtype: DataType,
}

fn is_bytes(dtype: DataType) -> bool {
    matches!(dtype, DataType::Int8 | DataType::Uint8)
}

impl LookUp {
    /// Reads the attributes `table` and `dtype`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let table = context.attributes.ints("table")?.unwrap_or_default();
        let table: Vec<u8> = table.into_iter().flat_map(u8::try_from).collect();
        let dtype = context.data_type("dtype")?.unwrap_or(DataType::Uint8);
        expect_type("attribute 'dtype'", dtype, is_bytes, "INT8 or UINT8")?;
        if table.len() != 256 {
            return Err(OpError::new(format!("a table of {} bytes, expected 256", table.len())));
        }
        Ok(Box::new(Self { table, dtype }))
    }
}

impl Operator for LookUp {
    fn attributes(&self) -> Option<Attributes> {
        let table = self.table.iter().map(|&byte| byte.into()).collect();
        let dtype = if self.dtype == DataType::Int8 { 3 } else { 2 };
        Some(named([("table", AttributeValue::Ints(table)), ("dtype", AttributeValue::Int(dtype))]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the input", x.dtype, is_bytes, "INT8 or UINT8")?;
        Ok(vec![Fact::shaped(self.dtype, x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?.contiguous()?;
        expect_type("the input", x.dtype(), is_bytes, "INT8 or UINT8")?;
        let found = |&byte: &u8| self.table.get(usize::from(byte)).copied().unwrap_or_default();
        let bytes: Vec<u8> = x.as_bytes()?.iter().map(found).collect();
        Ok(vec![Tensor::from_bytes(self.dtype, x.shape(), &bytes)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn every_byte_is_found_in_the_table() {
        let table = |len: i64| ("table", AttributeValue::Ints((0..len).rev().collect()));
        let list = attributes([table(256), ("dtype", AttributeValue::Int(3))]);
        let x = tensor(&[3], &[0_u8, 1, 255]);
        assert_eq!(one("ai.galatea:LookUp", 1, &list, &[&x]), tensor(&[3], &[-1_i8, -2, 0]));
        let short = attributes([table(255), ("dtype", AttributeValue::Int(3))]);
        assert!(run("ai.galatea:LookUp", 1, &short, &[Some(&x)], 1).is_err());
    }
}

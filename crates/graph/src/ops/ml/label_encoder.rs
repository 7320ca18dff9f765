//! `LabelEncoder`: other values for known ones.

use std::collections::HashMap;

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{TensorValues, expect_type};

/// A key by which a value is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelKey {
    /// A text.
    Text(ByteString),
    /// An integer.
    Integer(i128),
    /// The bits of a float; one pattern for every NaN and one for both zeros.
    Float(u64),
}

/// The positions of keys; of equal keys the last counts.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPositions(HashMap<LabelKey, usize>);

impl KeyPositions {
    /// The positions of these keys in their order.
    pub(super) fn new(keys: impl IntoIterator<Item = LabelKey>) -> Self {
        Self(keys.into_iter().enumerate().map(|(at, key)| (key, at)).collect())
    }

    /// The position of a key.
    #[must_use]
    pub fn of(&self, key: &LabelKey) -> Option<usize> {
        self.0.get(key).copied()
    }
}

impl std::fmt::Debug for KeyPositions {
    /// In the order of keys: equal operators have equal texts.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all: Vec<(&LabelKey, &usize)> = self.0.iter().collect();
        all.sort_unstable();
        f.debug_map().entries(all).finish()
    }
}

/// The keys that a tensor's elements are.
pub(super) fn items(values: TensorValues) -> Vec<LabelKey> {
    match values {
        TensorValues::Strings(all) => all.into_iter().map(LabelKey::Text).collect(),
        TensorValues::Integers(all) => all.into_iter().map(LabelKey::Integer).collect(),
        TensorValues::Bools(all) => {
            all.into_iter().map(|one| LabelKey::Integer(one.into())).collect()
        }
        TensorValues::Floats(all) => {
            let bits = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 }.to_bits();
            all.into_iter().map(|value| LabelKey::Float(bits(value))).collect()
        }
    }
}

/// ONNX `LabelEncoder` and `CategoryMapper`.
#[derive(Clone, Debug)]
pub struct LabelEncoder {
    /// The positions of the keys' values.
    pub positions: KeyPositions,
    /// The type of the keys.
    pub from: DataType,
    /// The values, and behind them the one for unknown keys.
    pub values: Tensor,
}

impl LabelEncoder {
    /// An encoder of these keys, values and the value of others. The last of equal keys counts.
    pub(super) fn new(keys: &Tensor, values: &Tensor, other: &Tensor) -> Result<Self, OpError> {
        let count = keys.elements();
        let found = values.elements();
        if count != found || other.elements() != 1 || other.dtype() != values.dtype() {
            return Err(OpError::new(format!(
                "{count} keys, {found} values of type {} and {} default of type {}",
                values.dtype(),
                other.elements(),
                other.dtype()
            )));
        }
        let joined = match (TensorValues::read(values)?, TensorValues::read(other)?) {
            (TensorValues::Strings(a), TensorValues::Strings(b)) => {
                TensorValues::Strings([a, b].concat())
            }
            (TensorValues::Integers(a), TensorValues::Integers(b)) => {
                TensorValues::Integers([a, b].concat())
            }
            (TensorValues::Floats(a), TensorValues::Floats(b)) => {
                TensorValues::Floats([a, b].concat())
            }
            _ => return Err(OpError::new(format!("values of type {}", values.dtype()))),
        };
        Ok(Self {
            positions: KeyPositions::new(items(TensorValues::read(keys)?)),
            from: keys.dtype(),
            values: joined.write(values.dtype(), &[count + 1])?,
        })
    }

    /// Reads the attributes from version 2 on.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let keys = one_of(context, ["keys_strings", "keys_int64s", "keys_floats", "keys_tensor"])?;
        let names = ["values_strings", "values_int64s", "values_floats", "values_tensor"];
        let values = one_of(context, names)?;
        let attributes = &mut context.attributes;
        let text = attributes.bytes("default_string")?.unwrap_or_else(|| "_Unused".into());
        let integer = attributes.int_or("default_int64", -1)?;
        let float = attributes.float_or("default_float", -0.0)?;
        let given =
            if context.opset < 4 { None } else { context.attributes.tensor("default_tensor")? };
        let other = match (given, values.dtype()) {
            (Some(given), _) => given,
            (None, DataType::Bytes) => Tensor::vector(vec![text]),
            (None, DataType::Int64) => Tensor::vector(vec![integer]),
            (None, DataType::Fp32) => Tensor::vector(vec![float]),
            (None, dtype) if dtype.is_float() => {
                TensorValues::Floats(vec![-0.0]).write(dtype, &[1])?
            }
            (None, dtype) => TensorValues::Integers(vec![-1]).write(dtype, &[1])?,
        };
        Ok(Box::new(Self::new(&keys, &values, &other)?))
    }
}

/// The list that is there of four.
fn one_of(context: &mut ParseContext<'_>, names: [&'static str; 4]) -> Result<Tensor, OpError> {
    let attributes = &mut context.attributes;
    let texts = attributes.strings(names[0])?.filter(|all| !all.is_empty()).map(Tensor::vector);
    let integers = attributes.ints(names[1])?.filter(|all| !all.is_empty()).map(Tensor::vector);
    let floats = attributes.floats(names[2])?.filter(|all| !all.is_empty()).map(Tensor::vector);
    let tensor = if context.opset < 4 { None } else { context.attributes.tensor(names[3])? };
    let mut given = [texts, integers, floats, tensor].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(found), None) => Ok(found),
        _ => Err(OpError::new(format!("one of {} must be given", names.join(", ")))),
    }
}

impl Operator for LabelEncoder {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let expected = self.from.to_string();
        expect_type("the input", x.dtype, |found| found == self.from, &expected)?;
        Ok(vec![Fact::shaped(self.values.dtype(), x.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let expected = self.from.to_string();
        expect_type("the input", x.dtype(), |found| found == self.from, &expected)?;
        bounded(self.values.dtype(), x.shape())?;
        let other = self.values.elements() - 1;
        let found = items(TensorValues::read(x)?).into_iter();
        let places: Vec<usize> =
            found.map(|item| self.positions.of(&item).unwrap_or(other)).collect();
        let result = match TensorValues::read(&self.values)? {
            TensorValues::Strings(all) => {
                TensorValues::Strings(places.iter().map(|&p| all[p].clone()).collect())
            }
            TensorValues::Integers(all) => {
                TensorValues::Integers(places.iter().map(|&p| all[p]).collect())
            }
            TensorValues::Floats(all) => {
                TensorValues::Floats(places.iter().map(|&p| all[p]).collect())
            }
            TensorValues::Bools(all) => {
                TensorValues::Bools(places.iter().map(|&p| all[p]).collect())
            }
        };
        Ok(vec![result.write(self.values.dtype(), x.shape())?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, ints, one, run, tensor, text};
    use galatea_tensor::{ByteString, Tensor};

    const NAME: &str = "ai.onnx.ml:LabelEncoder";

    fn words(all: &[&str]) -> Vec<ByteString> {
        all.iter().map(|&one| ByteString::from(one)).collect()
    }

    #[test]
    fn positions_stand_for_texts_and_texts_for_positions() {
        let list = attributes([
            ("classes_strings", AttributeValue::Strings(words(&["a", "b"]))),
            ("default_string", text("?")),
            ("default_int64", int(9)),
        ]);
        let x = tensor(&[3], &[1_i64, 2, -1]);
        assert_eq!(one(NAME, 1, &list, &[&x]), tensor(&[3], &words(&["b", "?", "?"])));
        let x = tensor(&[1, 2], &words(&["b", "c"]));
        assert_eq!(one(NAME, 1, &list, &[&x]), tensor(&[1, 2], &[1_i64, 9]));
    }

    #[test]
    fn keys_stand_for_values() {
        let mut list = attributes([
            ("keys_floats", AttributeValue::Floats(vec![1.5, f32::NAN, 0.0])),
            ("values_int64s", ints(&[1, 2, 3])),
            ("default_int64", int(7)),
        ]);
        let x = tensor(&[4], &[f32::NAN, 1.5, -0.0, 4.0]);
        assert_eq!(one(NAME, 2, &list, &[&x]), tensor(&[4], &[2_i64, 1, 3, 7]));
        let wrong = tensor(&[1], &[1_i64]);
        assert!(run(NAME, 2, &list, &[Some(&wrong)], 1).unwrap_err().contains("FP32"));
        list.insert("values_int64s".to_owned(), ints(&[1]));
        assert!(run(NAME, 2, &list, &[Some(&x)], 1).unwrap_err().contains("3 keys, 1 values"));
        list.insert("values_floats".to_owned(), AttributeValue::Floats(vec![1.0]));
        assert!(run(NAME, 2, &list, &[Some(&x)], 1).unwrap_err().contains("one of"));
    }

    #[test]
    fn tensors_hold_keys_and_values_from_version_4_on() {
        let list = attributes([
            ("keys_tensor", AttributeValue::Tensor(tensor(&[3], &[5_i16, 6, 6]))),
            ("values_tensor", AttributeValue::Tensor(tensor(&[3], &[0.5_f64, 1.5, 2.5]))),
        ]);
        let x = tensor(&[3], &[6_i16, 5, 0]);
        assert_eq!(one(NAME, 4, &list, &[&x]), tensor(&[3], &[2.5_f64, 0.5, -0.0]));
        let mut list = list;
        let other = AttributeValue::Tensor(Tensor::scalar(9.0_f64));
        list.insert("default_tensor".to_owned(), other);
        assert_eq!(one(NAME, 4, &list, &[&x]), tensor(&[3], &[2.5_f64, 0.5, 9.0]));
        assert!(run(NAME, 2, &list, &[Some(&x)], 1).is_err());
    }
}

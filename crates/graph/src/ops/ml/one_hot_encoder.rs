//! `OneHotEncoder`: a one at the place of the category.

use galatea_tensor::{DataType, Tensor};

use super::label_encoder::{KeyPositions, LabelKey, items};
use super::labels::ClassifierLabels;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::values::{TensorValues, expect_type};

/// ONNX `OneHotEncoder`. Floats are categories without their fractions.
#[derive(Clone, Debug)]
pub struct OneHotEncoder {
    /// The places of the categories.
    pub places: KeyPositions,
    /// Number of places.
    pub width: usize,
    /// True if categories are texts.
    pub texts: bool,
    /// True if other categories have no place, instead of being refused.
    pub zeros: bool,
}

impl OneHotEncoder {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let zeros = attributes.flag("zeros", true)?;
        let categories = ClassifierLabels::parse(attributes, "cats_strings", "cats_int64s")?;
        let width = categories.len();
        let texts = categories.dtype() == DataType::Bytes;
        let items: Vec<LabelKey> = match categories {
            ClassifierLabels::Strings(all) => all.into_iter().map(LabelKey::Text).collect(),
            ClassifierLabels::Integers(all) => {
                all.into_iter().map(|one| LabelKey::Integer(one.into())).collect()
            }
        };
        let places = KeyPositions::new(items);
        Ok(Box::new(Self { places, width, texts, zeros }))
    }

    fn expect(&self, dtype: DataType) -> Result<(), OpError> {
        use DataType::{Bytes, Fp32, Fp64, Int32, Int64};
        if self.texts {
            return expect_type("the input", dtype, |found| found == Bytes, "BYTES");
        }
        let allowed = |found| matches!(found, Fp32 | Fp64 | Int32 | Int64);
        expect_type("the input", dtype, allowed, "FP32, FP64, INT32 or INT64")
    }
}

/// The integers that are left of numbers; NaN and what is larger than any category has none.
#[allow(clippy::cast_possible_truncation, reason = "fractions are cut off")]
fn whole(value: f64) -> Option<LabelKey> {
    const BEYOND: f64 = 1e30;
    (value.abs() < BEYOND).then_some(LabelKey::Integer(value as i128))
}

impl Operator for OneHotEncoder {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        self.expect(x.dtype)?;
        let shape = x.shape.as_ref().map(|shape| [&shape[..], &[Dim::Known(self.width)]].concat());
        Ok(vec![Fact::shaped(DataType::Fp32, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        self.expect(x.dtype())?;
        let shape = [x.shape(), &[self.width]].concat();
        let mut result = vec![0.0_f32; bounded(DataType::Fp32, &shape)?];
        let found: Vec<Option<LabelKey>> = match TensorValues::read(x)? {
            TensorValues::Floats(all) => all.into_iter().map(whole).collect(),
            other => items(other).into_iter().map(Some).collect(),
        };
        for (at, item) in found.iter().enumerate() {
            match item.as_ref().and_then(|item| self.places.of(item)) {
                Some(place) => result[at * self.width + place] = 1.0,
                None if self.zeros => {}
                None => {
                    let text = format!("element {at} ({item:?}) is none of the categories");
                    return Err(OpError::new(text));
                }
            }
        }
        Ok(vec![Tensor::from_vec(&shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, ints, one, run, tensor};
    use galatea_tensor::ByteString;

    #[test]
    fn categories_have_places() {
        let name = "ai.onnx.ml:OneHotEncoder";
        let mut list = attributes([("cats_int64s", ints(&[3, 5]))]);
        let x = tensor(&[2, 2], &[5.9_f32, 3.0, f32::NAN, 4.0]);
        let expected = tensor(&[2, 2, 2], &[0.0_f32, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(one(name, 1, &list, &[&x]), expected);
        list.insert("zeros".to_owned(), int(0));
        let error = run(name, 1, &list, &[Some(&x)], 1).unwrap_err();
        assert!(error.contains("element 2"), "{error}");
        let words = ["a", "b"].map(ByteString::from);
        let list = attributes([("cats_strings", AttributeValue::Strings(words.to_vec()))]);
        let x = tensor(&[1], &words[1..]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[1, 2], &[0.0_f32, 1.0]));
        let x = tensor(&[1], &[1_i64]);
        assert!(run(name, 1, &list, &[Some(&x)], 1).is_err());
    }
}

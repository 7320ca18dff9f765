//! `DictVectorizer`: the values of a map in a fixed order.

use galatea_tensor::{ByteString, Tensor};

use super::label_encoder::{KeyPositions, items};
use super::labels::ClassifierLabels;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::map::MapKey;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::sequence::taken;
use crate::ops::values::TensorValues;

/// ONNX `DictVectorizer`. A key that the map lacks gives 0 or an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictVectorizer {
    /// The keys in their order.
    pub vocabulary: ClassifierLabels,
}

impl DictVectorizer {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let vocabulary =
            ClassifierLabels::parse(attributes, "string_vocabulary", "int64_vocabulary")?;
        Ok(Box::new(Self { vocabulary }))
    }

    fn expect(&self, key: MapKey) -> Result<(), OpError> {
        let wanted = self.vocabulary.dtype();
        if key.dtype() == wanted {
            return Ok(());
        }
        Err(OpError::new(format!("a map with keys of type {key} and a vocabulary of {wanted}")))
    }
}

/// The elements at these places, with a default where there is no place.
fn gathered<T: Clone>(all: &[T], places: &[Option<usize>], default: &T) -> Vec<T> {
    places.iter().map(|place| place.map_or(default, |at| &all[at]).clone()).collect()
}

impl Operator for DictVectorizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let FactKind::Map(key) = x.kind else {
            return Err(OpError::new(format!("input 0 is {x}, expected a map")));
        };
        self.expect(key)?;
        Ok(vec![Fact::fixed(x.dtype, &[1, self.vocabulary.len()])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let map = taken(&mut inputs, 0)?.into_map()?;
        self.expect(map.kind())?;
        let places = KeyPositions::new(items(TensorValues::read(map.keys())?));
        let wanted = items(TensorValues::read(&self.vocabulary.tensor())?);
        let places: Vec<Option<usize>> = wanted.iter().map(|word| places.of(word)).collect();
        let values = match TensorValues::read(map.values())? {
            TensorValues::Floats(all) => TensorValues::Floats(gathered(&all, &places, &0.0)),
            TensorValues::Integers(all) => TensorValues::Integers(gathered(&all, &places, &0)),
            TensorValues::Bools(all) => TensorValues::Bools(gathered(&all, &places, &false)),
            TensorValues::Strings(all) => {
                TensorValues::Strings(gathered(&all, &places, &ByteString::from("")))
            }
        };
        let shape = [1, self.vocabulary.len()];
        Ok(vec![Datum::Tensor(values.write(map.values().dtype(), &shape)?)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::map::KeyedMap;
    use crate::ops::testing::{attributes, ints, parse, tensor};
    use galatea_tensor::DataType;

    const NAME: &str = "ai.onnx.ml:DictVectorizer";

    fn words(all: &[&str]) -> Vec<ByteString> {
        all.iter().map(|&one| ByteString::from(one)).collect()
    }

    #[test]
    fn values_come_in_the_order_of_the_vocabulary() {
        let list =
            attributes([("string_vocabulary", AttributeValue::Strings(words(&["b", "a", "c"])))]);
        let operator = parse(NAME, 1, &list, 1, 1).unwrap();
        let keys = Tensor::vector(words(&["a", "z", "c"]));
        let map = KeyedMap::new(keys, Tensor::vector(vec![1.0_f64, 5.0, 3.0])).unwrap();
        let found = operator.evaluate(vec![Some(Datum::Map(map))]).unwrap().remove(0);
        assert_eq!(found, Datum::Tensor(tensor(&[1, 3], &[0.0_f64, 1.0, 3.0])));
        let fact = Fact::unranked(DataType::Fp64).within(FactKind::Map(MapKey::Text));
        let inferred = operator.infer(OperatorInputs::new(&[Some(&fact)])).unwrap().remove(0);
        assert_eq!(inferred, Fact::fixed(DataType::Fp64, &[1, 3]));
    }

    #[test]
    fn keys_of_another_type_and_other_values_are_refused() {
        let list = attributes([("int64_vocabulary", ints(&[4, 5]))]);
        let operator = parse(NAME, 1, &list, 1, 1).unwrap();
        let values = Tensor::vector(words(&["x"]));
        let numbers = KeyedMap::new(Tensor::vector(vec![5_i64]), values.clone()).unwrap();
        let found = operator.evaluate(vec![Some(Datum::Map(numbers))]).unwrap().remove(0);
        assert_eq!(found, Datum::Tensor(tensor(&[1, 2], &words(&["", "x"]))));
        let texts = KeyedMap::new(values.clone(), values.clone()).unwrap();
        let error = operator.evaluate(vec![Some(Datum::Map(texts))]).unwrap_err().to_string();
        assert!(error.contains("BYTES") && error.contains("INT64"), "{error}");
        let error = operator.evaluate(vec![Some(values.into())]).unwrap_err().to_string();
        assert!(error.contains("expected a map"), "{error}");
        let fact = Fact::fixed(DataType::Int64, &[1]);
        assert!(operator.infer(OperatorInputs::new(&[Some(&fact)])).is_err());
    }
}

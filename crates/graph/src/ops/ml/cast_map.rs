//! `CastMap`: the values of a map from numbers, as a row of another type.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Dim, Fact, FactKind};
use crate::map::MapKey;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::bounds::{self, bounded};
use crate::ops::sequence::taken;
use crate::ops::values::{TensorValues, expect_type};

/// ONNX `CastMap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastMap {
    /// The type of the result: `FP32`, `INT64` or `BYTES`.
    pub to: DataType,
    /// The length of the result where keys are positions in it, with zeros between them and larger
    /// keys left out; `None` where the values follow each other in the order of their keys.
    pub sparse: Option<usize>,
}

/// Text at the positions for which a sparse map has no key, like in ONNX Runtime.
const NO_TEXT: &str = "0.f";

impl CastMap {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let types = [DataType::Fp32, DataType::Bytes, DataType::Int64];
        let to = types[attributes.choice("cast_to", &["TO_FLOAT", "TO_STRING", "TO_INT64"], 0)?];
        let sparse = attributes.choice("map_form", &["DENSE", "SPARSE"], 0)? == 1;
        let length = attributes.int_or("max_map", 1)?;
        let sparse = sparse.then(|| bounds::length(length, "max_map")).transpose()?;
        Ok(Box::new(Self { to, sparse }))
    }

    /// Values with their keys.
    fn expect(key: MapKey, values: DataType) -> Result<(), OpError> {
        expect_type("the keys", key.dtype(), |found| found == DataType::Int64, "INT64")?;
        let allowed = |found| matches!(found, DataType::Fp32 | DataType::Bytes);
        expect_type("the map's values", values, allowed, "FP32 or BYTES")
    }

    /// The value of each element of the result, or nothing where there is no key.
    fn laid_out<T: Copy>(&self, keys: &[i64], values: &[T]) -> Result<Vec<Option<T>>, OpError> {
        let mut pairs: Vec<(i64, T)> = keys.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_by_key(|pair| pair.0);
        let Some(length) = self.sparse else {
            return Ok(pairs.into_iter().map(|(_, value)| Some(value)).collect());
        };
        let mut row = vec![None; bounded(DataType::Fp64, &[length])?];
        for (key, value) in pairs {
            let key = bounds::length(key, "a key of a sparse map")?;
            if let Some(slot) = row.get_mut(key) {
                *slot = Some(value);
            }
        }
        Ok(row)
    }

    #[allow(clippy::cast_possible_truncation, reason = "fractions are cut off")]
    fn of_floats(&self, row: &[Option<f32>]) -> Tensor {
        match self.to {
            DataType::Bytes => Tensor::vector(texts(row, |value| format!("{value:.6}"))),
            DataType::Int64 => Tensor::vector(numbers(row, |value| value as i64)),
            _ => Tensor::vector(numbers(row, |value| value)),
        }
    }

    fn of_texts(&self, row: &[Option<&ByteString>]) -> Result<Tensor, OpError> {
        fn read<T: std::str::FromStr>(text: &ByteString) -> Result<T, OpError> {
            let found = text.as_str().and_then(|text| text.trim().parse().ok());
            found.ok_or_else(|| OpError::new(format!("{text:?} is no number")))
        }
        fn all<T: std::str::FromStr + Default>(
            row: &[Option<&ByteString>],
        ) -> Result<Vec<T>, OpError> {
            collected(&mut row.iter().map(|slot| slot.map_or_else(|| Ok(T::default()), read)))
        }
        Ok(match self.to {
            DataType::Bytes => {
                let none = ByteString::from(NO_TEXT);
                Tensor::vector(row.iter().map(|slot| slot.unwrap_or(&none).clone()).collect())
            }
            DataType::Int64 => Tensor::vector(all::<i64>(row)?),
            _ => Tensor::vector(all::<f32>(row)?),
        })
    }
}

fn numbers<T: Default>(row: &[Option<f32>], convert: impl Fn(f32) -> T) -> Vec<T> {
    row.iter().map(|slot| slot.map_or_else(T::default, &convert)).collect()
}

fn texts(row: &[Option<f32>], show: impl Fn(f32) -> String) -> Vec<ByteString> {
    let text = |slot: &Option<f32>| slot.map_or_else(|| NO_TEXT.to_owned(), &show);
    row.iter().map(|slot| ByteString::from(text(slot).as_str())).collect()
}

impl Operator for CastMap {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let FactKind::Map(key) = x.kind else {
            return Err(OpError::new(format!("input 0 is {x}, expected a map")));
        };
        Self::expect(key, x.dtype)?;
        let columns = self.sparse.map_or(Dim::Unknown, Dim::Known);
        Ok(vec![Fact::new(self.to, vec![Dim::Known(1), columns])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let map = taken(&mut inputs, 0)?.into_map()?;
        Self::expect(map.kind(), map.values().dtype())?;
        let keys = map.keys().to_i64_vec()?;
        let row = match TensorValues::read(map.values())? {
            TensorValues::Strings(all) => {
                let all: Vec<&ByteString> = all.iter().collect();
                self.of_texts(&self.laid_out(&keys, &all)?)?
            }
            _ => self.of_floats(&self.laid_out(&keys, &map.values().to_vec::<f32>()?)?),
        };
        Ok(vec![Datum::Tensor(row.reshape(&[1, row.elements()])?)])
    }

    fn takes_any_kind(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::KeyedMap;
    use crate::ops::testing::{attributes, int, parse, tensor, text};

    fn cast(to: &str, form: &str, values: Tensor, keys: &[i64]) -> Result<Tensor, String> {
        let list =
            attributes([("cast_to", text(to)), ("map_form", text(form)), ("max_map", int(3))]);
        let operator = parse("ai.onnx.ml:CastMap", 1, &list, 1, 1)?;
        let kind = FactKind::Map(MapKey::Integer);
        let fact = Fact::unranked(values.dtype()).within(kind);
        let inferred = operator.infer(OperatorInputs::new(&[Some(&fact)])).unwrap().remove(0);
        let map = Datum::Map(KeyedMap::new(Tensor::vector(keys.to_vec()), values).unwrap());
        let found = operator.evaluate(vec![Some(map)]).map_err(|error| error.to_string())?;
        assert!(found[0].fits(&inferred));
        Ok(found[0].clone().into_tensor().unwrap())
    }

    fn words(all: &[&str]) -> Vec<ByteString> {
        all.iter().map(|&one| ByteString::from(one)).collect()
    }

    /// The results are those of ONNX Runtime.
    #[test]
    fn values_become_a_row() {
        let keys = [1, 0, 3];
        let floats = || Tensor::vector(vec![1.5_f32, -2.75, 1e10]);
        let of = |to, form| cast(to, form, floats(), &keys).unwrap();
        assert_eq!(of("TO_FLOAT", "DENSE"), tensor(&[1, 3], &[-2.75_f32, 1.5, 1e10]));
        assert_eq!(of("TO_FLOAT", "SPARSE"), tensor(&[1, 3], &[-2.75_f32, 1.5, 0.0]));
        assert_eq!(of("TO_INT64", "SPARSE"), tensor(&[1, 3], &[-2_i64, 1, 0]));
        let expected = tensor(&[1, 3], &words(&["-2.750000", "1.500000", "10000000000.000000"]));
        assert_eq!(of("TO_STRING", "DENSE"), expected);
        let expected = tensor(&[1, 3], &words(&["-2.750000", "1.500000", "0.f"]));
        assert_eq!(of("TO_STRING", "SPARSE"), expected);
    }

    #[test]
    fn texts_are_read_as_numbers() {
        let of = |to, all: &[&str]| cast(to, "DENSE", Tensor::vector(words(all)), &[4, 2]);
        assert_eq!(of("TO_FLOAT", &["1.5", "-2"]).unwrap(), tensor(&[1, 2], &[-2.0_f32, 1.5]));
        assert_eq!(of("TO_INT64", &["7", "-2"]).unwrap(), tensor(&[1, 2], &[-2_i64, 7]));
        let expected = tensor(&[1, 2], &words(&["b", "a"]));
        assert_eq!(of("TO_STRING", &["a", "b"]).unwrap(), expected);
        assert!(of("TO_FLOAT", &["1.5", "x"]).unwrap_err().contains("is no number"));
    }

    #[test]
    fn what_is_no_position_is_refused() {
        let one = || Tensor::vector(vec![1.0_f32]);
        assert!(cast("TO_FLOAT", "SPARSE", one(), &[-1]).unwrap_err().contains("is -1"));
        assert_eq!(cast("TO_FLOAT", "DENSE", one(), &[-1]).unwrap(), tensor(&[1, 1], &[1.0_f32]));
        let huge = attributes([("map_form", text("SPARSE")), ("max_map", int(1 << 40))]);
        let operator = parse("ai.onnx.ml:CastMap", 1, &huge, 1, 1).unwrap();
        let map = KeyedMap::new(Tensor::vector(vec![0_i64]), one()).unwrap();
        assert!(operator.evaluate(vec![Some(Datum::Map(map))]).is_err());
    }
}

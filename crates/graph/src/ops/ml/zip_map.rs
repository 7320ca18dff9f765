//! `ZipMap`: a map from classes to scores for every example.

use galatea_tensor::{DataType, Tensor};

use super::labels::ClassifierLabels;
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::{Fact, FactKind};
use crate::map::{KeyedMap, MapKey};
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};
use crate::ops::sequence::taken;
use crate::ops::values::expect_type;

/// ONNX `ZipMap`. One vector of scores is one example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZipMap {
    /// The classes.
    pub labels: ClassifierLabels,
}

impl ZipMap {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let labels =
            ClassifierLabels::parse(attributes, "classlabels_strings", "classlabels_int64s")?;
        Ok(Box::new(Self { labels }))
    }

    fn expect(&self, dtype: DataType, shape: Option<&[Option<usize>]>) -> Result<(), OpError> {
        expect_type("the input", dtype, |found| found == DataType::Fp32, "FP32")?;
        let last = match shape {
            None => return Ok(()),
            Some([last] | [_, last]) => *last,
            Some(other) => {
                let text = format!("the input has rank {}, expected 1 or 2", other.len());
                return Err(OpError::new(text));
            }
        };
        let classes = self.labels.len();
        match last.filter(|&found| found != classes) {
            Some(found) => Err(OpError::new(format!("{found} scores for {classes} classes"))),
            None => Ok(()),
        }
    }
}

impl Operator for ZipMap {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let shape: Option<Vec<_>> =
            x.shape.as_ref().map(|shape| shape.iter().map(crate::Dim::known).collect());
        self.expect(x.dtype, shape.as_deref())?;
        let key = MapKey::of(self.labels.dtype()).unwrap_or(MapKey::Text);
        Ok(vec![Fact::unranked(x.dtype).within(FactKind::Maps(key))])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let x = taken(&mut inputs, 0)?.into_tensor()?;
        let shape: Vec<_> = x.shape().iter().map(|&len| Some(len)).collect();
        self.expect(x.dtype(), Some(&shape))?;
        let classes = self.labels.len();
        let keys = self.labels.tensor();
        let x = x.contiguous()?;
        let x = x.reshape(&[x.elements() / classes, classes])?;
        let map = |row| {
            let scores = x.slice_axis(0, row, 1, 1)?.reshape(&[classes])?;
            KeyedMap::new(keys.clone(), scores)
        };
        Ok(vec![Datum::Maps(collected(&mut (0..x.shape()[0]).map(map))?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, ints, parse, tensor};

    #[test]
    fn every_example_has_a_map() {
        let list = attributes([("classlabels_int64s", ints(&[7, 9]))]);
        let operator = parse("ai.onnx.ml:ZipMap", 1, &list, 1, 1).unwrap();
        let x = tensor(&[3, 2], &[0.25_f32, 0.75, 0.5, 0.5, 1.0, 0.0]);
        let found = operator.evaluate(vec![Some(x.clone().into())]).unwrap().remove(0);
        let fact = Fact::fixed(x.dtype(), x.shape());
        let inferred = operator.infer(OperatorInputs::new(&[Some(&fact)])).unwrap().remove(0);
        assert_eq!(inferred.to_string(), "sequence of maps from INT64 to FP32");
        assert!(found.fits(&inferred));
        let Datum::Maps(maps) = found else { panic!("{found:?}") };
        assert_eq!(maps.len(), 3);
        assert_eq!(maps[2].keys(), &Tensor::vector(vec![7_i64, 9]));
        assert_eq!(maps[2].values(), &Tensor::vector(vec![1.0_f32, 0.0]));
        let vector = operator.evaluate(vec![Some(tensor(&[2], &[0.5_f32, 0.5]).into())]).unwrap();
        assert!(matches!(&vector[0], Datum::Maps(maps) if maps.len() == 1));
    }

    #[test]
    fn scores_must_fit_the_classes() {
        let list = attributes([("classlabels_int64s", ints(&[7, 9]))]);
        let operator = parse("ai.onnx.ml:ZipMap", 1, &list, 1, 1).unwrap();
        for (x, expected) in [
            (tensor(&[1, 3], &[0.5_f32; 3]), "3 scores for 2 classes"),
            (tensor(&[1, 1, 2], &[0.5_f32; 2]), "rank 3"),
            (tensor(&[1, 2], &[1_i64; 2]), "INT64"),
        ] {
            let fact = Fact::fixed(x.dtype(), x.shape());
            let inferred =
                operator.infer(OperatorInputs::new(&[Some(&fact)])).unwrap_err().to_string();
            let found = operator.evaluate(vec![Some(x.into())]).unwrap_err().to_string();
            assert!(found.contains(expected) && inferred == found, "{found}, {inferred}");
        }
        assert!(parse("ai.onnx.ml:ZipMap", 1, &attributes([]), 1, 1).is_err());
    }
}

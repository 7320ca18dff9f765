//! `CategoryMapper`: numbers for texts and texts for numbers.

use galatea_tensor::{DataType, Tensor};

use super::label_encoder::LabelEncoder;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// ONNX `CategoryMapper`, and `LabelEncoder` of version 1. The type of the input tells the
/// direction.
#[derive(Clone, Debug)]
pub struct CategoryMapper {
    /// From texts to numbers.
    pub numbers: LabelEncoder,
    /// From numbers to texts.
    pub texts: LabelEncoder,
}

/// Pairs of texts and numbers, with the attributes that say what others become.
fn parse_pairs(
    context: &mut ParseContext<'_>,
    texts: &Tensor,
    numbers: &Tensor,
) -> Result<Box<dyn Operator>, OpError> {
    let attributes = &mut context.attributes;
    let number = Tensor::vector(vec![attributes.int_or("default_int64", -1)?]);
    let text = attributes.bytes("default_string")?.unwrap_or_else(|| "_Unused".into());
    let text = Tensor::vector(vec![text]);
    Ok(Box::new(CategoryMapper {
        numbers: LabelEncoder::new(texts, numbers, &number)?,
        texts: LabelEncoder::new(numbers, texts, &text)?,
    }))
}

impl CategoryMapper {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let texts = context.attributes.strings("cats_strings")?.unwrap_or_default();
        let numbers = context.attributes.ints("cats_int64s")?.unwrap_or_default();
        parse_pairs(context, &Tensor::vector(texts), &Tensor::vector(numbers))
    }

    /// Reads the attributes of version 1 of `LabelEncoder`: texts stand for their positions in a list, in either
    /// direction, which the type of the input tells.
    pub(super) fn parse_classes(
        context: &mut ParseContext<'_>,
    ) -> Result<Box<dyn Operator>, OpError> {
        let classes = context.attributes.strings("classes_strings")?.unwrap_or_default();
        let count = i64::try_from(classes.len()).map_err(|_| OpError::new("too many classes"))?;
        let numbers = Tensor::vector((0..count).collect::<Vec<_>>());
        parse_pairs(context, &Tensor::vector(classes), &numbers)
    }

    fn direction(&self, dtype: DataType) -> &LabelEncoder {
        if dtype == DataType::Bytes { &self.numbers } else { &self.texts }
    }
}

impl Operator for CategoryMapper {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        self.direction(inputs.required(0)?.dtype).infer(inputs)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        self.direction(inputs.required(0)?.dtype()).reference(inputs)
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, ints, one, run, tensor};
    use galatea_tensor::ByteString;

    #[test]
    fn texts_and_numbers_stand_for_each_other() {
        let words = ["a", "b", "c", "_Unused"].map(ByteString::from);
        let mut list = attributes([
            ("cats_strings", AttributeValue::Strings(words[..2].to_vec())),
            ("cats_int64s", ints(&[10, 20])),
        ]);
        let name = "ai.onnx.ml:CategoryMapper";
        let x = tensor(&[3], &words[..3]);
        assert_eq!(one(name, 1, &list, &[&x]), tensor(&[3], &[10_i64, 20, -1]));
        let x = tensor(&[2], &[20_i64, 0]);
        let expected = tensor(&[2], &[words[1].clone(), words[3].clone()]);
        assert_eq!(one(name, 1, &list, &[&x]), expected);
        let x = tensor(&[2], &[20.0_f32, 0.0]);
        assert!(run(name, 1, &list, &[Some(&x)], 1).unwrap_err().contains("INT64"));
        list.insert("cats_int64s".to_owned(), ints(&[10]));
        assert!(run(name, 1, &list, &[Some(&x)], 1).unwrap_err().contains("2 keys"));
    }
}

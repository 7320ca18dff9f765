//! `StringNormalizer`: words without stop words, in one case.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// How letters change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseChange {
    /// Not at all.
    None,
    /// To small ones.
    Lower,
    /// To capitals.
    Upper,
}

/// ONNX `StringNormalizer` of a `[C]` or `[1, C]` input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringNormalizer {
    /// How the letters of what stays change.
    pub case_change: CaseChange,
    /// True if stop words only match in their own case.
    pub is_case_sensitive: bool,
    /// The words to leave out.
    pub stopwords: Vec<ByteString>,
}

impl StringNormalizer {
    /// Reads the attributes. Unicode's own case mapping is used, whatever the locale.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let choice = attributes.choice("case_change_action", &["NONE", "LOWER", "UPPER"], 0)?;
        attributes.ignore("locale");
        Ok(Box::new(Self {
            case_change: [CaseChange::None, CaseChange::Lower, CaseChange::Upper][choice],
            is_case_sensitive: attributes.flag("is_case_sensitive", false)?,
            stopwords: attributes.strings("stopwords")?.unwrap_or_default(),
        }))
    }

    fn stays(&self, word: &str) -> bool {
        !self.stopwords.iter().filter_map(ByteString::as_str).any(|stop| {
            if self.is_case_sensitive {
                stop == word
            } else {
                stop.to_lowercase() == word.to_lowercase()
            }
        })
    }

    fn changed(&self, word: &str) -> ByteString {
        match self.case_change {
            CaseChange::None => ByteString::from(word),
            CaseChange::Lower => ByteString::from(word.to_lowercase()),
            CaseChange::Upper => ByteString::from(word.to_uppercase()),
        }
    }
}

impl Operator for StringNormalizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let data = inputs.required(0)?;
        Ok(vec![match &data.shape {
            None => Fact::unranked(DataType::Bytes),
            Some(shape) => {
                let mut shape = shape.clone();
                if let Some(last) = shape.last_mut() {
                    *last = Dim::Unknown;
                }
                Fact::new(DataType::Bytes, shape)
            }
        }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let shape = data.shape();
        if !matches!(shape, [_] | [1, _]) {
            return Err(OpError::new(format!("shape {shape:?}, expected [C] or [1, C]")));
        }
        let mut kept = Vec::new();
        for word in data.to_vec::<ByteString>()? {
            let text = word
                .as_str()
                .ok_or_else(|| OpError::new(format!("the string {word:?} is not valid UTF-8")))?;
            if self.stays(text) {
                kept.push(self.changed(text));
            }
        }
        if kept.is_empty() {
            // Where nothing stays, one empty string does.
            kept.push(ByteString::default());
        }
        let shape = [&shape[..shape.len() - 1], &[kept.len()]].concat();
        bounds::bounded(DataType::Bytes, &shape)?;
        Ok(vec![Tensor::from_vec(&shape, kept)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::AttributeValue;
    use crate::ops::testing::{attributes, int, one, run, tensor, text};
    use galatea_tensor::{ByteString, Tensor};

    fn words(shape: &[usize], all: &[&str]) -> Tensor {
        tensor(shape, &all.iter().map(|word| ByteString::from(*word)).collect::<Vec<_>>())
    }

    #[test]
    fn stop_words_go_and_letters_change() {
        let stop = AttributeValue::Strings(vec!["monday".into()]);
        let list = attributes([
            ("case_change_action", text("UPPER")),
            ("is_case_sensitive", int(1)),
            ("stopwords", stop.clone()),
        ]);
        let data = words(&[1, 3], &["monday", "Monday", "übung"]);
        let result = one("StringNormalizer", 10, &list, &[&data]);
        assert_eq!(result, words(&[1, 2], &["MONDAY", "ÜBUNG"]));
        let any = attributes([("stopwords", stop)]);
        let only = words(&[2], &["Monday", "MONDAY"]);
        assert_eq!(one("StringNormalizer", 10, &any, &[&only]), words(&[1], &[""]));
    }

    #[test]
    fn a_matrix_of_words_is_an_error() {
        let data = words(&[2, 1], &["a", "b"]);
        assert!(run("StringNormalizer", 10, &attributes([]), &[Some(&data)], 1).is_err());
    }
}

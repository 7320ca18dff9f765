//! The names of classes.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::attribute::AttributeReader;
use crate::error::OpError;

/// The labels of a classifier's classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassifierLabels {
    /// Texts.
    Strings(Vec<ByteString>),
    /// Numbers.
    Integers(Vec<i64>),
}

/// Answer of a classifier for one example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassChoice {
    /// The class at a position.
    Class(usize),
    /// Yes or no.
    Positive(bool),
}

impl ClassifierLabels {
    /// Reads the attribute that is there of two.
    pub(super) fn parse(
        attributes: &mut AttributeReader<'_>,
        strings: &'static str,
        integers: &'static str,
    ) -> Result<Self, OpError> {
        let texts = attributes.strings(strings)?.unwrap_or_default();
        let numbers = attributes.ints(integers)?.unwrap_or_default();
        match (texts.is_empty(), numbers.is_empty()) {
            (false, true) => Ok(Self::Strings(texts)),
            (true, false) => Ok(Self::Integers(numbers)),
            _ => Err(OpError::new(format!("one of '{strings}' and '{integers}' must be given"))),
        }
    }

    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Strings(all) => all.len(),
            Self::Integers(all) => all.len(),
        }
    }

    /// The type of the labels.
    pub(super) fn dtype(&self) -> DataType {
        match self {
            Self::Strings(_) => DataType::Bytes,
            Self::Integers(_) => DataType::Int64,
        }
    }

    /// All labels.
    pub(super) fn tensor(&self) -> Tensor {
        match self {
            Self::Strings(all) => Tensor::vector(all.clone()),
            Self::Integers(all) => Tensor::vector(all.clone()),
        }
    }

    /// The number of a choice, where labels are numbers.
    #[must_use]
    pub fn number(&self, choice: ClassChoice) -> Option<i64> {
        match (self, choice) {
            (Self::Integers(all), ClassChoice::Class(at)) => all.get(at).copied(),
            (Self::Integers(_), ClassChoice::Positive(yes)) => Some(i64::from(yes)),
            (Self::Strings(_), _) => None,
        }
    }

    /// The labels of choices. Yes and no are the numbers 1 and 0 and, where there are two texts,
    /// these, as ONNX Runtime answers.
    pub(super) fn of(&self, choices: &[ClassChoice]) -> Tensor {
        match self {
            Self::Integers(all) => {
                let label = |choice: &ClassChoice| match *choice {
                    ClassChoice::Class(at) => all[at],
                    ClassChoice::Positive(yes) => i64::from(yes),
                };
                Tensor::vector(choices.iter().map(label).collect())
            }
            Self::Strings(all) => {
                let label = |choice: &ClassChoice| match (*choice, &all[..]) {
                    (ClassChoice::Class(at), all) => all[at].clone(),
                    (ClassChoice::Positive(false), [no, _]) => no.clone(),
                    (ClassChoice::Positive(true), [_, yes]) => yes.clone(),
                    (ClassChoice::Positive(yes), _) => {
                        ByteString::from(if yes { "1" } else { "0" })
                    }
                };
                Tensor::vector(choices.iter().map(label).collect::<Vec<_>>())
            }
        }
    }
}

/// The position of the largest score; the first of equals.
pub(super) fn largest(scores: impl IntoIterator<Item = f64>) -> usize {
    let better = |best: (usize, f64), (at, score)| if score > best.1 { (at, score) } else { best };
    let mut scores = scores.into_iter().enumerate();
    let first = scores.next().unwrap_or_default();
    scores.fold(first, better).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_and_no_are_texts_or_numbers() {
        let choices = [ClassChoice::Positive(true), ClassChoice::Class(0)];
        let numbers = ClassifierLabels::Integers(vec![10, 20]);
        assert_eq!(numbers.of(&choices), Tensor::vector(vec![1_i64, 10]));
        let text = |all: &[&str]| all.iter().map(|&one| ByteString::from(one)).collect::<Vec<_>>();
        let two = ClassifierLabels::Strings(text(&["a", "b"]));
        assert_eq!(two.of(&choices), Tensor::vector(text(&["b", "a"])));
        let one = ClassifierLabels::Strings(text(&["a"]));
        assert_eq!(one.of(&choices), Tensor::vector(text(&["1", "a"])));
    }

    #[test]
    fn the_first_of_equal_scores_is_the_largest() {
        assert_eq!(largest([1.0, 3.0, 3.0]), 1);
        assert_eq!(largest([]), 0);
    }
}

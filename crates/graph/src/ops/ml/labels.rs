//! The names of classes.

use galatea_tensor::{ByteString, DataType, Tensor};

use crate::attribute::AttributeReader;
use crate::error::OpError;

/// The labels of a classifier's classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Texts.
    Strings(Vec<ByteString>),
    /// Numbers.
    Integers(Vec<i64>),
}

/// What a classifier says of one example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The class at a position.
    Class(usize),
    /// Yes or no.
    Positive(bool),
}

impl Labels {
    /// Reads the attribute that is there of two.
    pub(super) fn parse(
        attributes: &mut AttributeReader<'_>,
        (strings, integers): (&'static str, &'static str),
    ) -> Result<Self, OpError> {
        let texts = attributes.strings(strings)?.unwrap_or_default();
        let numbers = attributes.ints(integers)?.unwrap_or_default();
        match (texts.is_empty(), numbers.is_empty()) {
            (false, true) => Ok(Self::Strings(texts)),
            (true, false) => Ok(Self::Integers(numbers)),
            _ => Err(OpError::new(format!("one of '{strings}' and '{integers}' must be given"))),
        }
    }

    /// How many classes there are.
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
    pub fn number(&self, choice: Choice) -> Option<i64> {
        match (self, choice) {
            (Self::Integers(all), Choice::Class(at)) => all.get(at).copied(),
            (Self::Integers(_), Choice::Positive(yes)) => Some(i64::from(yes)),
            (Self::Strings(_), _) => None,
        }
    }

    /// The labels of choices. Yes and no are the numbers 1 and 0 and, where there are two texts,
    /// these, as ONNX Runtime answers.
    pub(super) fn of(&self, choices: &[Choice]) -> Tensor {
        match self {
            Self::Integers(all) => {
                let label = |choice: &Choice| match *choice {
                    Choice::Class(at) => all[at],
                    Choice::Positive(yes) => i64::from(yes),
                };
                Tensor::vector(choices.iter().map(label).collect())
            }
            Self::Strings(all) => {
                let label = |choice: &Choice| match (*choice, &all[..]) {
                    (Choice::Class(at), all) => all[at].clone(),
                    (Choice::Positive(false), [no, _]) => no.clone(),
                    (Choice::Positive(true), [_, yes]) => yes.clone(),
                    (Choice::Positive(yes), _) => ByteString::from(if yes { "1" } else { "0" }),
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
        let choices = [Choice::Positive(true), Choice::Class(0)];
        let numbers = Labels::Integers(vec![10, 20]);
        assert_eq!(numbers.of(&choices), Tensor::vector(vec![1_i64, 10]));
        let text = |all: &[&str]| all.iter().map(|&one| ByteString::from(one)).collect::<Vec<_>>();
        let two = Labels::Strings(text(&["a", "b"]));
        assert_eq!(two.of(&choices), Tensor::vector(text(&["b", "a"])));
        let one = Labels::Strings(text(&["a"]));
        assert_eq!(one.of(&choices), Tensor::vector(text(&["1", "a"])));
    }

    #[test]
    fn the_first_of_equal_scores_is_the_largest() {
        assert_eq!(largest([1.0, 3.0, 3.0]), 1);
        assert_eq!(largest([]), 0);
    }
}

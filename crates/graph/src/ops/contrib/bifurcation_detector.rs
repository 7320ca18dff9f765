//! `BifurcationDetector`: takes over a guessed continuation as far as it was right.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::expect_type;

/// `BifurcationDetector` of domain `com.microsoft`, of aggressive decoding.
///
/// Inputs: source tokens, current tokens, the position in the source behind the last match, and predicted tokens, one
/// more than the source has from there. Outputs: the current tokens with those that were predicted up to the first one
/// that differs from the source, and the position in the source behind the only place where the last tokens stand, or
/// -1. Tokens are INT64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BifurcationDetector {
    /// Least number of tokens that match.
    pub shortest: usize,
    /// Greatest number of tokens that are looked for.
    pub longest: usize,
}

impl BifurcationDetector {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut size = |name: &'static str| -> Result<usize, OpError> {
            let found = context.attributes.int(name)?;
            let found = found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")));
            match bounds::length(found?, name)? {
                0 => Err(OpError::new(format!("attribute '{name}' is 0"))),
                size => Ok(size),
            }
        };
        let (shortest, longest) = (size("min_ngram_size")?, size("max_ngram_size")?);
        if longest < shortest {
            let text =
                format!("attribute 'max_ngram_size' is {longest}, expected {shortest} or more");
            return Err(OpError::new(text));
        }
        Ok(Box::new(Self { shortest, longest }))
    }

    /// Position in the source behind the only place of the last tokens; -1 where they stand nowhere or twice.
    fn position(&self, source: &[i64], tokens: &[i64]) -> i64 {
        let mut position = -1;
        for size in self.shortest..=self.longest.min(tokens.len()) {
            let gram = &tokens[tokens.len() - size..];
            let find = |from: usize| {
                let found = source.get(from..)?.windows(size).position(|window| window == gram);
                found.map(|at| from + at)
            };
            let Some(first) = find(0) else { break };
            position = i64::try_from(first + size).unwrap_or(i64::MAX);
            if first + size >= source.len() {
                break;
            }
            if find(first + 1).is_some() {
                position = -1;
            }
        }
        position
    }
}

/// Returns how many predicted tokens are taken: those that the source has too, and the next one.
fn taken(source: &[i64], from: i64, predicted: &[i64]) -> Result<usize, OpError> {
    let wrong = |text: String| OpError::new(format!("prev_suffix_match_idx is {from}: {text}"));
    let from = usize::try_from(from).map_err(|_| wrong("expected 0 or more".to_owned()))?;
    let rest =
        source.get(from..).ok_or_else(|| wrong(format!("{} source tokens", source.len())))?;
    if predicted.len() != rest.len() + 1 {
        let expected = rest.len() + 1;
        return Err(wrong(format!("{} predicted tokens, expected {expected}", predicted.len())));
    }
    let differs = predicted.iter().zip(rest).position(|(predicted, source)| predicted != source);
    Ok(differs.unwrap_or(rest.len()) + 1)
}

impl Operator for BifurcationDetector {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        for at in 0..4 {
            if let Some(fact) = inputs.optional(at) {
                expect_type("tokens", fact.dtype, |dtype| dtype == DataType::Int64, "INT64")?;
            }
        }
        let current = inputs.required(1)?;
        let length = match inputs.optional(3) {
            Some(_) => Some(vec![Dim::Unknown]),
            None => current.shape.clone(),
        };
        let position = inputs.required(2)?.shape.clone();
        Ok(vec![Fact::shaped(DataType::Int64, length), Fact::shaped(DataType::Int64, position)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let row = |at: usize| -> Result<Vec<i64>, OpError> {
            let tensor = inputs.required(at)?;
            match tensor.rank() {
                1 => Ok(tensor.to_vec::<i64>()?),
                rank => Err(OpError::new(format!("input {at} has {rank} axes, expected 1"))),
            }
        };
        let (source, mut tokens) = (row(0)?, row(1)?);
        let before = inputs.required(2)?;
        let &[from] = &before.to_vec::<i64>()?[..] else {
            let found = before.elements();
            return Err(OpError::new(format!("{found} numbers for prev_suffix_match_idx")));
        };
        if inputs.optional(3).is_some() {
            let predicted = row(3)?;
            let count = taken(&source, from, &predicted)?;
            tokens.extend(&predicted[..count]);
        }
        let position = self.position(&source, &tokens);
        let position = Tensor::from_vec(before.shape(), vec![position])?;
        Ok(vec![Tensor::vector(tokens), position])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, int, run};

    #[test]
    fn predictions_are_taken_up_to_the_first_difference() {
        let row = |all: &[i64]| Tensor::vector(all.to_vec());
        let list =
            |from, to| attributes([("min_ngram_size", int(from)), ("max_ngram_size", int(to))]);
        let source = row(&[1, 5, 3, 4, 2]);
        let name = "com.microsoft:BifurcationDetector";
        let (current, none) = (row(&[2]), row(&[0]));
        let predicted = row(&[1, 5, 3, 9, 2, 7]);
        let inputs = [Some(&source), Some(&current), Some(&none), Some(&predicted)];
        let found = run(name, 1, &list(1, 3), &inputs, 2).unwrap();
        assert_eq!(found, [row(&[2, 1, 5, 3, 9]), row(&[-1])]);
        let current = row(&[0, 3, 4]);
        let found = run(name, 1, &list(1, 3), &[Some(&source), Some(&current), Some(&none)], 2);
        assert_eq!(found.unwrap(), [row(&[0, 3, 4]), row(&[4])]);
        let twice = row(&[4, 1, 4, 2]);
        let last = row(&[4]);
        let found = run(name, 1, &list(1, 1), &[Some(&twice), Some(&last), Some(&none)], 2);
        assert_eq!(found.unwrap()[1], row(&[-1]));
        let far = row(&[9]);
        for before in [&far, &row(&[-1])] {
            let inputs = [Some(&source), Some(&current), Some(before), Some(&predicted)];
            assert!(run(name, 1, &list(1, 3), &inputs, 2).is_err());
        }
        assert!(run(name, 1, &list(3, 1), &inputs, 2).is_err());
        assert!(run(name, 1, &list(0, 1), &inputs, 2).is_err());
    }
}

//! `NGramRepeatBlock`: scores of tokens that would repeat an n-gram.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_type, floats, from_floats};

/// `NGramRepeatBlock` of domain `com.microsoft`.
///
/// Inputs: tokens `[B, S]` and scores `[B, V]`. Output: the scores, `-inf` for tokens behind which the
/// last n-gram of the row would stand in it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NGramRepeatBlock {
    /// Tokens of an n-gram.
    pub size: usize,
}

impl NGramRepeatBlock {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let size = context.attributes.int("ngram_size")?;
        let size = size.ok_or_else(|| OpError::new("attribute 'ngram_size' is missing"))?;
        match bounds::length(size, "attribute 'ngram_size'")? {
            0 => Err(OpError::new("attribute 'ngram_size' is 0")),
            size => Ok(Box::new(Self { size })),
        }
    }
}

impl Operator for NGramRepeatBlock {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let tokens = inputs.required(0)?.dtype;
        expect_type("tokens", tokens, |dtype| dtype == DataType::Int64, "INT64")?;
        let scores = inputs.required(1)?;
        expect_type("scores", scores.dtype, |dtype| dtype == DataType::Fp32, "FP32")?;
        Ok(vec![Fact::shaped(scores.dtype, scores.shape.clone())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let tokens = inputs.required(0)?;
        let scores = inputs.required(1)?;
        let (&[batch, length], &[rows, words]) = (tokens.shape(), scores.shape()) else {
            let text = format!("tokens {:?} and scores {:?}", tokens.shape(), scores.shape());
            return Err(OpError::new(format!("{text}, expected two axes each")));
        };
        if batch != rows {
            return Err(OpError::new(format!("{batch} rows of tokens, {rows} of scores")));
        }
        let all = tokens.to_i64_vec()?;
        let mut result = floats(scores)?;
        for row in 0..batch {
            let tokens = &all[row * length..(row + 1) * length];
            let Some(start) = (length + 1).checked_sub(self.size) else { continue };
            let last = &tokens[start..];
            for gram in tokens.windows(self.size) {
                let Some((&next, before)) = gram.split_last() else { continue };
                if before == last {
                    let word = usize::try_from(next).ok().filter(|&word| word < words);
                    let word = word.ok_or_else(|| {
                        OpError::new(format!("token {next}, there are scores of {words}"))
                    })?;
                    result[row * words + word] = f64::NEG_INFINITY;
                }
            }
        }
        Ok(vec![from_floats(scores.dtype(), scores.shape(), result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn tokens_that_repeat_get_no_score() {
        let list = attributes([("ngram_size", int(3))]);
        let name = "com.microsoft:NGramRepeatBlock";
        let none = f32::NEG_INFINITY;
        let tokens = tensor(&[2, 5], &[0_i64, 1, 2, 0, 1, 3, 3, 3, 3, 3]);
        let found = one(name, 1, &list, &[&tokens, &tensor(&[2, 4], &[0.5_f32; 8])]);
        assert_eq!(found, tensor(&[2, 4], &[0.5, 0.5, none, 0.5, 0.5, 0.5, 0.5, none]));
        let short = tensor(&[1, 1], &[0_i64]);
        let scores = tensor(&[1, 2], &[0.5_f32; 2]);
        assert_eq!(one(name, 1, &list, &[&short, &scores]), scores);
        let single = attributes([("ngram_size", int(1))]);
        let both = tensor(&[1, 2], &[0_i64, 1]);
        assert_eq!(one(name, 1, &single, &[&both, &scores]), tensor(&[1, 2], &[none, none]));
        let outside = tensor(&[1, 5], &[0_i64, 1, 2, 0, 1]);
        assert!(run(name, 1, &list, &[Some(&outside), Some(&scores)], 1).is_err());
    }
}

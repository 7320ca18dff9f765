//! `WordConvEmbedding`: vectors of words from their characters.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_type, floats, from_floats};

/// `WordConvEmbedding` of domain `com.microsoft`.
///
/// Inputs: characters of words `[words, length]` (0 is none), filters `[F, 1, window, width]`, biases `[F]` and the
/// vectors of characters `[characters, width]`. Output `[words, F]`: the largest hyperbolic tangents of the filters
/// over a word; zeros for a word that begins with no character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordConvEmbedding {
    /// Length of the vector of a word, where it is stated.
    pub embedding_size: Option<usize>,
    /// Length of the window, where it is stated.
    pub window: Option<usize>,
    /// Length of the vector of a character, where it is stated.
    pub character_size: Option<usize>,
}

impl WordConvEmbedding {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut length = |name: &'static str| {
            let found = context.attributes.int(name)?;
            // ONNX Runtime takes -1 for what the weights say.
            let found = found.filter(|&found| found != -1);
            found.map(|found| bounds::length(found, name)).transpose()
        };
        Ok(Box::new(Self {
            embedding_size: length("embedding_size")?,
            window: length("conv_window_size")?,
            character_size: length("char_embedding_size")?,
        }))
    }
}

/// Lengths of the weights.
struct WordConvSizes {
    filters: usize,
    window: usize,
    width: usize,
}

impl WordConvEmbedding {
    fn weights(
        &self,
        filters: &[usize],
        bias: &[usize],
        vectors: &[usize],
    ) -> Result<WordConvSizes, OpError> {
        let stated = |stated: Option<usize>, found: usize| stated.is_none_or(|one| one == found);
        match (filters, vectors) {
            (&[count, 1, window, width], &[_, own])
                if width == own
                    && bias == [count]
                    && window > 0
                    && stated(self.embedding_size, count)
                    && stated(self.window, window)
                    && stated(self.character_size, width) =>
            {
                Ok(WordConvSizes { filters: count, window, width })
            }
            _ => Err(OpError::new(format!(
                "filters {filters:?}, biases {bias:?} and vectors {vectors:?} do not fit {self:?}"
            ))),
        }
    }
}

impl Operator for WordConvEmbedding {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let words = inputs.required(0)?;
        expect_type("the words", words.dtype, |dtype| dtype == DataType::Int32, "INT32")?;
        let filters = inputs.required(1)?;
        let dim = |fact: &Fact| {
            let found = fact.shape.as_ref().and_then(|dims| dims.first().cloned());
            found.unwrap_or(Dim::Unknown)
        };
        Ok(vec![Fact::new(filters.dtype, vec![dim(words), dim(filters)])])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let words = inputs.required(0)?;
        let (filters, bias) = (inputs.required(1)?, inputs.required(2)?);
        let vectors = inputs.required(3)?;
        let &[count, length] = words.shape() else {
            let text = format!("words of shape {:?}, expected two axes", words.shape());
            return Err(OpError::new(text));
        };
        let sizes = self.weights(filters.shape(), bias.shape(), vectors.shape())?;
        let WordConvSizes { filters: rows, window, width } = sizes;
        if window > length {
            return Err(OpError::new(format!("a window of {window} for words of {length}")));
        }
        let shape = [count, rows];
        let mut result = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        let (weights, biases) = (floats(filters)?, floats(bias)?);
        let (table, known) = (floats(vectors)?, vectors.shape()[0]);
        for word in words.to_i64_vec()?.chunks_exact(length) {
            let characters = word.iter().map(|&character| {
                let found = usize::try_from(character).ok().filter(|&found| found < known);
                found.ok_or_else(|| OpError::new(format!("character {character} of {known}")))
            });
            let characters: Vec<usize> = characters.collect::<Result<_, OpError>>()?;
            if characters.first().is_none_or(|&first| first == 0) {
                result.extend(std::iter::repeat_n(0.0, rows));
                continue;
            }
            let used = characters.iter().filter(|&&character| character != 0).count();
            let places = (used + 1).saturating_sub(window).max(1);
            for filter in 0..rows {
                let filter_weights =
                    &weights[filter * window * width..(filter + 1) * window * width];
                let at = |place: usize| {
                    let seen = characters[place..place + window].iter();
                    let vectors = seen.flat_map(|one| &table[one * width..(one + 1) * width]);
                    let sum: f64 = vectors.zip(filter_weights).map(|(x, w)| x * w).sum();
                    (sum + biases[filter]).tanh()
                };
                result.push((0..places).map(at).fold(f64::NEG_INFINITY, f64::max));
            }
        }
        Ok(vec![from_floats(filters.dtype(), &shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn the_largest_window_within_a_word_counts() {
        let words = tensor(&[3, 3], &[1_i32, 2, 0, 2, 0, 0, 0, 0, 0]);
        let filters = tensor(&[1, 1, 2, 1], &[1.0_f32, -1.0]);
        let bias = tensor(&[1], &[0.5_f32]);
        let vectors = tensor(&[3, 1], &[0.25_f32, 1.0, -1.0]);
        let name = "com.microsoft:WordConvEmbedding";
        let inputs = [&words, &filters, &bias, &vectors];
        let found = one(name, 1, &attributes([]), &inputs).to_vec::<f32>().unwrap();
        let expected = [2.5_f32.tanh(), (-0.75_f32).tanh(), 0.0];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        let list = attributes([("conv_window_size", int(3))]);
        assert!(run(name, 1, &list, &inputs.map(Some), 1).is_err());
        let outside = tensor(&[1, 3], &[1_i32, 3, 0]);
        let inputs = [Some(&outside), Some(&filters), Some(&bias), Some(&vectors)];
        assert!(run(name, 1, &attributes([]), &inputs, 1).is_err());
    }
}

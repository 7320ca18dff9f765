//! The forms that a mask of keys has in the attention operators of `com.microsoft`.

use galatea_tensor::Tensor;

use crate::error::OpError;

/// Value added to the score of a hidden key if no attribute sets it.
pub(super) const HIDDEN: f32 = -10000.0;

/// Which keys are hidden from which queries.
#[derive(Debug)]
pub(super) struct KeyMask {
    form: KeyMaskForm,
    numbers: Vec<i64>,
}

#[derive(Clone, Copy, Debug)]
enum KeyMaskForm {
    /// Nothing is hidden.
    None,
    /// Where the keys of each batch end.
    Ends,
    /// Where they end, then for each batch where they begin.
    EndsAndStarts,
    /// For each batch and key whether it is seen.
    Keys { total: usize },
    /// For each batch, query and key.
    Scores { queries: usize, total: usize },
    /// For each batch, absolute query and key, in a square of the longest length.
    Square { side: usize, past: usize },
}

impl KeyMask {
    /// Reads a mask for `[batch, queries, total]` scores, of which `past` keys come before the
    /// first query.
    ///
    /// # Errors
    /// Fails when the shape is none of the known ones.
    pub(super) fn read(
        tensor: Option<&Tensor>,
        batch: usize,
        queries: usize,
        total: usize,
        past: usize,
    ) -> Result<Self, OpError> {
        let Some(tensor) = tensor else {
            return Ok(Self { form: KeyMaskForm::None, numbers: Vec::new() });
        };
        let form = match *tensor.shape() {
            [n] if n == batch => KeyMaskForm::Ends,
            [n] if n == 2 * batch => KeyMaskForm::EndsAndStarts,
            [b, n] if b == batch && n >= total => KeyMaskForm::Keys { total: n },
            [b, s, n] if b == batch && s == queries && n >= total => {
                KeyMaskForm::Scores { queries, total: n }
            }
            [b, 1, side, n] if b == batch && side == n && n >= total => {
                KeyMaskForm::Square { side, past }
            }
            _ => {
                return Err(OpError::new(format!(
                    "a mask of shape {:?} for a batch of {batch}, {queries} queries and {total} keys",
                    tensor.shape()
                )));
            }
        };
        Ok(Self { form, numbers: tensor.to_i64_vec()? })
    }

    /// Returns whether a query sees a key.
    pub(super) fn sees(&self, batch: usize, query: usize, key: usize) -> bool {
        let number = |at: usize| self.numbers.get(at).copied().unwrap_or(0);
        let position = i64::try_from(key).unwrap_or(i64::MAX);
        match self.form {
            KeyMaskForm::None => true,
            KeyMaskForm::Ends => position < number(batch),
            KeyMaskForm::EndsAndStarts => {
                let start = number(self.numbers.len() / 2 + batch);
                position < number(batch) && position >= start
            }
            KeyMaskForm::Keys { total } => number(batch * total + key) > 0,
            KeyMaskForm::Scores { queries, total } => {
                number((batch * queries + query) * total + key) > 0
            }
            KeyMaskForm::Square { side, past } => {
                number((batch * side + past + query) * side + key) > 0
            }
        }
    }
}

/// A bias on the scores that broadcasts to `[B, H, S, T]`.
#[derive(Debug)]
pub(super) struct ScoreBias(Option<(Vec<f64>, [usize; 4])>);

impl ScoreBias {
    /// Reads an optional bias; its last axis may be longer than the keys.
    ///
    /// # Errors
    /// Fails when it does not fit scores of this shape.
    pub(super) fn read(tensor: Option<&Tensor>, shape: [usize; 4]) -> Result<Self, OpError> {
        let Some(tensor) = tensor else { return Ok(Self(None)) };
        match *tensor.shape() {
            [b, h, s, t]
                if (b == 1 || b == shape[0])
                    && (h == 1 || h == shape[1])
                    && s == shape[2]
                    && t >= shape[3] =>
            {
                Ok(Self(Some((crate::ops::values::floats(tensor)?, [b, h, s, t]))))
            }
            _ => Err(OpError::new(format!(
                "a bias of shape {:?} for scores of shape {shape:?}",
                tensor.shape()
            ))),
        }
    }

    /// Returns the value that is added to a score.
    pub(super) fn at(&self, batch: usize, head: usize, query: usize, key: usize) -> f64 {
        let Some((values, shape)) = &self.0 else { return 0.0 };
        let batch = if shape[0] == 1 { 0 } else { batch };
        let head = if shape[1] == 1 { 0 } else { head };
        values[((batch * shape[1] + head) * shape[2] + query) * shape[3] + key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::tensor;

    fn seen(mask: &Tensor) -> Vec<usize> {
        let mask = KeyMask::read(Some(mask), 1, 1, 4, 3).unwrap();
        (0..4).filter(|key| mask.sees(0, 0, *key)).collect()
    }

    #[test]
    fn every_form_hides_keys() {
        assert_eq!(seen(&tensor(&[1], &[2_i32])), [0, 1]);
        assert_eq!(seen(&tensor(&[2], &[3_i32, 1])), [1, 2]);
        assert_eq!(seen(&tensor(&[1, 4], &[0_i32, 1, 0, 1])), [1, 3]);
        assert_eq!(seen(&tensor(&[1, 1, 4], &[1_i32, 0, 0, 1])), [0, 3]);
        let mut square = [1_i32; 16];
        square[12] = 0;
        assert_eq!(seen(&tensor(&[1, 1, 4, 4], &square)), [1, 2, 3]);
        assert!(KeyMask::read(Some(&tensor(&[3], &[1_i32; 3])), 1, 1, 4, 3).is_err());
    }
}

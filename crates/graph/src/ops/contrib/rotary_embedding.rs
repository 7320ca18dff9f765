//! `RotaryEmbedding` as it was before it was an operator of ONNX.

use galatea_tensor::Tensor;

use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::transformer::RotaryEmbedding;
use crate::ops::transformer::heads::WideHeads;
use crate::ops::values::{expect_float, floats};

/// `RotaryEmbedding` of domain `com.microsoft`: inputs are `X`, positions `[B, S]` or the first
/// position `[1]`, and the caches `[longest, pairs]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContribRotaryEmbedding {
    /// How pairs turn.
    pub rotary: RotaryEmbedding,
}

impl ContribRotaryEmbedding {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // Neither has an effect on the CPU of ONNX Runtime.
        context.attributes.ignore("is_packed_batching");
        context.attributes.ignore("scale");
        let mut length =
            |name: &'static str| bounds::length(context.attributes.int_or(name, 0)?, name);
        let heads = length("num_heads")?;
        let rotary_dim = length("rotary_embedding_dim")?;
        let interleaved = context.attributes.flag("interleaved", false)?;
        let num_heads = Some(heads).filter(|heads| *heads > 0);
        Ok(Box::new(Self { rotary: RotaryEmbedding { interleaved, rotary_dim, num_heads } }))
    }
}

/// Cosines and sines by position.
pub(super) struct RotaryCaches {
    cos: Vec<f64>,
    sin: Vec<f64>,
    rows: usize,
    pairs: usize,
}

impl RotaryCaches {
    pub(super) fn read(cos: &Tensor, sin: &Tensor) -> Result<Self, OpError> {
        match *cos.shape() {
            [rows, pairs] if cos.shape() == sin.shape() => {
                Ok(Self { cos: floats(cos)?, sin: floats(sin)?, rows, pairs })
            }
            _ => Err(OpError::new(format!(
                "caches of shapes {:?} and {:?}",
                cos.shape(),
                sin.shape()
            ))),
        }
    }

    /// How many pairs turn.
    pub(super) fn pairs(&self) -> usize {
        self.pairs
    }

    pub(super) fn at(&self, position: i64) -> Result<(Vec<f64>, Vec<f64>), OpError> {
        let row = usize::try_from(position).ok().filter(|row| *row < self.rows);
        let row = row.ok_or_else(|| {
            OpError::new(format!("position {position}, the caches have {} rows", self.rows))
        })?;
        let part = |all: &[f64]| all[row * self.pairs..(row + 1) * self.pairs].to_vec();
        Ok((part(&self.cos), part(&self.sin)))
    }
}

impl Operator for ContribRotaryEmbedding {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_float(x.dtype)?;
        Ok(vec![Fact { value: None, elements: None, ..x.clone() }])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let caches = RotaryCaches::read(inputs.required(2)?, inputs.required(3)?)?;
        // Without a number of heads the caches say how wide one is.
        let by_cache = || x.shape().last()?.checked_div(2 * caches.pairs());
        let heads = self.rotary.num_heads.or_else(by_cache);
        let mut all = WideHeads::read(x, heads, "X")?;
        let [batch, _, length, width] = all.shape;
        let pairs = self.rotary.pairs(width)?;
        if pairs != caches.pairs() {
            return Err(OpError::new(format!("{pairs} pairs with caches of {}", caches.pairs())));
        }
        let positions = inputs.required(1)?;
        let numbers = positions.to_i64_vec()?;
        let position = |b: usize, s: usize| match (positions.shape(), &numbers[..]) {
            ([1], [first]) => Ok(first.saturating_add(s as i64)),
            (shape, all) if shape == [batch, length] => Ok(all[b * length + s]),
            (shape, _) => Err(OpError::new(format!("positions of shape {shape:?}"))),
        };
        self.rotary.turn(&mut all, |b, s| caches.at(position(b, s)?))?;
        let packed = x.rank() == 3;
        Ok(vec![if packed { all.write_packed(x.dtype())? } else { all.write(x.dtype())? }])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, one, run, tensor};

    #[test]
    fn one_position_is_the_first() {
        let x = tensor(&[1, 2, 2], &[1.0_f32, 2.0, 1.0, 2.0]);
        let cos = tensor(&[3, 1], &[9.0_f32, 1.0, 0.0]);
        let sin = tensor(&[3, 1], &[9.0_f32, 0.0, 1.0]);
        let name = "com.microsoft:RotaryEmbedding";
        let first = tensor(&[1], &[1_i64]);
        let found = one(name, 1, &attributes([]), &[&x, &first, &cos, &sin]);
        assert_eq!(found, tensor(&[1, 2, 2], &[1.0_f32, 2.0, -2.0, 1.0]));
        let beyond = tensor(&[1, 2], &[1_i64, 3]);
        let inputs = [Some(&x), Some(&beyond), Some(&cos), Some(&sin)];
        assert!(run(name, 1, &attributes([]), &inputs, 1).unwrap_err().contains("rows"));
    }
}

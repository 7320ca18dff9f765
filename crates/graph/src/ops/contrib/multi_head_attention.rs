//! `MultiHeadAttention`: attention over projected queries, keys and values.

use galatea_tensor::{DataType, Tensor};

use super::key_mask::{HIDDEN, KeyMask, ScoreBias};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::transformer::heads::{ScoreOptions, WideHeads, attend, divided};
use crate::ops::values::{expect_float, floats};

/// `MultiHeadAttention` of domain `com.microsoft`.
///
/// Inputs: queries `[B, S, hidden]`, or queries, keys and values as `[B, S, H, 3, D]`; keys and
/// values as `[B, L, hidden]`, `[B, L, H, 2, D]` (keys alone) or `[B, H, L, D]`; optionally the
/// bias of all three projections, a mask of keys, a bias on the scores, and keys and values of the
/// past `[B, H, P, D]`. Outputs: `[B, S, v hidden]`, all keys, all values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiHeadAttention {
    /// Heads of queries, keys and values.
    pub num_heads: usize,
    /// True if a query sees no key behind its own position.
    pub unidirectional: bool,
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// Value added to the score of a hidden key.
    pub mask_filter_value: f32,
}

impl MultiHeadAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let heads = context.attributes.int("num_heads")?;
        let heads = heads.ok_or_else(|| OpError::new("attribute 'num_heads' is missing"))?;
        Ok(Box::new(Self {
            num_heads: bounds::length(heads, "num_heads")?,
            unidirectional: context.attributes.flag("unidirectional", false)?,
            scale: context.attributes.float("scale")?,
            mask_filter_value: context.attributes.float_or("mask_filter_value", HIDDEN)?,
        }))
    }

    /// One of several projections that are stored together, `[B, L, H, parts, D]`.
    fn unpack(&self, tensor: &Tensor, part: usize, parts: usize) -> Result<Tensor, OpError> {
        match *tensor.shape() {
            [b, l, h, found, d] if h == self.num_heads && found == parts => Ok(tensor
                .slice_axis(3, part, 1, 1)?
                .reshape(&[b, l, h, d])?
                .permute(&[0, 2, 1, 3])?),
            _ => Err(OpError::new(format!(
                "packed projections of shape {:?}, expected [B, L, {}, {parts}, D]",
                tensor.shape(),
                self.num_heads
            ))),
        }
    }

    /// Queries, keys and values before the bias, and how many of the three have one.
    fn projections(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<([WideHeads; 3], usize), OpError> {
        let query = inputs.required(0)?;
        let read =
            |tensor: &Tensor, what: &str| WideHeads::read(tensor, Some(self.num_heads), what);
        if query.rank() == 5 {
            let part = |at: usize| read(&self.unpack(query, at, 3)?, "the query");
            return Ok(([part(0)?, part(1)?, part(2)?], 3));
        }
        if query.rank() != 3 {
            return Err(OpError::new(format!("a query of rank {}, expected 3 or 5", query.rank())));
        }
        let key = inputs.required(1)?;
        if key.rank() == 5 {
            let part = |at: usize| read(&self.unpack(key, at, 2)?, "the key");
            return Ok(([read(query, "the query")?, part(0)?, part(1)?], 3));
        }
        // Keys by head come from a cache and have their bias already.
        let biased = if key.rank() == 4 { 1 } else { 3 };
        let value = inputs.required(2)?;
        Ok(([read(query, "the query")?, read(key, "the key")?, read(value, "the value")?], biased))
    }

    fn add_bias(
        &self,
        parts: &mut [WideHeads; 3],
        biased: usize,
        bias: Option<&Tensor>,
    ) -> Result<(), OpError> {
        let Some(bias) = bias else { return Ok(()) };
        let widths = parts.each_ref().map(|part| part.shape[1] * part.shape[3]);
        if bias.shape() != [widths.iter().sum::<usize>()] {
            return Err(OpError::new(format!(
                "a bias of shape {:?} for projections of {widths:?}",
                bias.shape()
            )));
        }
        let bias = floats(bias)?;
        let mut first = 0;
        for (part, width) in parts.iter_mut().zip(widths).take(biased) {
            let [_, heads, length, d] = part.shape;
            for (at, value) in part.values.iter_mut().enumerate() {
                let head = at / (length * d) % heads;
                *value += bias[first + head * d + at % d];
            }
            first += width;
        }
        Ok(())
    }
}

/// The axes of queries, keys or values that inference knows.
fn dim(fact: Option<&Fact>, axis: usize) -> Dim {
    let found = fact.and_then(|fact| fact.shape.as_ref()).and_then(|dims| dims.get(axis).cloned());
    found.unwrap_or(Dim::Unknown)
}

impl Operator for MultiHeadAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        expect_float(query.dtype)?;
        let heads = Dim::Known(self.num_heads);
        let key = inputs.optional(1);
        let value = inputs.optional(2);
        let rank = |fact: Option<&Fact>| fact.and_then(Fact::rank);
        let by_width = |fact: Option<&Fact>| bounds::quotient([&dim(fact, 2)], [&heads]);
        // Length of the keys, width of a key and of a value, by the form of the inputs.
        let (length, d, e) = match (query.rank(), rank(key)) {
            (Some(5), _) => (dim(Some(query), 1), dim(Some(query), 4), dim(Some(query), 4)),
            (_, Some(5)) => (dim(key, 1), dim(key, 4), dim(key, 4)),
            (_, Some(4)) => (dim(key, 2), dim(key, 3), dim(value, 3)),
            (Some(3), Some(3)) => (dim(key, 1), by_width(key), by_width(value)),
            _ => (Dim::Unknown, Dim::Unknown, Dim::Unknown),
        };
        let total = match inputs.optional(6) {
            None => length,
            Some(past) => bounds::sum([&dim(Some(past), 2), &length]),
        };
        let batch = dim(Some(query), 0);
        let positions = dim(Some(query), 1);
        let width = bounds::product([&heads, &e]);
        let present = |width: Dim| {
            Fact::new(query.dtype, vec![batch.clone(), heads.clone(), total.clone(), width])
        };
        let output = Fact::new(query.dtype, vec![batch.clone(), positions, width]);
        Ok(vec![output, present(d), present(e)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        for index in [8, 9] {
            if inputs.optional(index).is_some() {
                return Err(OpError::new(format!(
                    "input {index} (a shared cache) is not supported"
                )));
            }
        }
        let (mut parts, biased) = self.projections(inputs)?;
        self.add_bias(&mut parts, biased, inputs.optional(3))?;
        let [q, k, v] = parts;
        let past = (inputs.optional(6), inputs.optional(7));
        let k = k.after(past.0, "past_key")?;
        let v = v.after(past.1, "past_value")?;
        let ([batch, heads, length, width], total) = (q.shape, k.shape[2]);
        divided(heads * width, self.num_heads, "the query")?;
        let before = past.0.map_or(0, |past| past.shape()[2]);
        let mask = KeyMask::read(inputs.optional(4), batch, length, total, before)?;
        let extra = ScoreBias::read(inputs.optional(5), [batch, heads, length, total])?;
        let hidden = f64::from(self.mask_filter_value);
        let bias = |[b, h, s, t]: [usize; 4]| {
            if self.unidirectional && t > before + s {
                return f64::NEG_INFINITY;
            }
            extra.at(b, h, s, t) + if mask.sees(b, s, t) { 0.0 } else { hidden }
        };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.scale.map_or_else(|| 1.0 / (width as f64).sqrt(), f64::from);
        let scoring = ScoreOptions { scale, softcap: 0.0, bias: &bias, sink: None, stage: None };
        let output = attend(&q, &k, &v, &scoring)?.output;
        let dtype: DataType = inputs.required(0)?.dtype();
        Ok(vec![output.write_packed(dtype)?, k.write(dtype)?, v.write(dtype)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn packed_and_separate_projections_give_the_same() {
        let list = attributes([("num_heads", int(2))]);
        let of = |values: &[f32]| tensor(&[1, 2, 2], values);
        let q = of(&[1.0, 2.0, 3.0, 4.0]);
        let k = of(&[0.5, 1.0, 2.0, 0.1]);
        let v = of(&[5.0, 6.0, 7.0, 8.0]);
        let name = "com.microsoft:MultiHeadAttention";
        let separate = run(name, 1, &list, &[Some(&q), Some(&k), Some(&v)], 3).unwrap();
        let packed = [1.0, 0.5, 5.0, 2.0, 1.0, 6.0, 3.0, 2.0, 7.0, 4.0, 0.1, 8.0];
        let packed = tensor::<f32>(&[1, 2, 2, 3, 1], &packed);
        assert_eq!(run(name, 1, &list, &[Some(&packed)], 3).unwrap(), separate);
        let pairs = tensor::<f32>(&[1, 2, 2, 2, 1], &[0.5, 5.0, 1.0, 6.0, 2.0, 7.0, 0.1, 8.0]);
        assert_eq!(run(name, 1, &list, &[Some(&q), Some(&pairs)], 3).unwrap(), separate);
        let inputs = [Some(&q), Some(&separate[1]), Some(&separate[2])];
        assert_eq!(run(name, 1, &list, &inputs, 1).unwrap()[0], separate[0]);
    }

    #[test]
    fn the_bias_of_the_values_shows_in_the_result() {
        let list = attributes([("num_heads", int(1)), ("unidirectional", int(1))]);
        let x = tensor(&[1, 2, 1], &[0.0_f32, 4.0]);
        let bias = tensor(&[3], &[0.0_f32, 0.0, 10.0]);
        let zero = tensor(&[1, 2, 1], &[0.0_f32; 2]);
        let inputs = [Some(&zero), Some(&zero), Some(&x), Some(&bias)];
        let all = run("com.microsoft:MultiHeadAttention", 1, &list, &inputs, 1).unwrap();
        assert_eq!(all[0], tensor(&[1, 2, 1], &[10.0_f32, 12.0]));
    }
}

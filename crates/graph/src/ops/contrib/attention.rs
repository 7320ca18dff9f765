//! `ContribAttention`: projection to queries, keys and values, and attention over them.

use galatea_tensor::{DataType, Tensor};

use super::key_mask::{HIDDEN, KeyMask, ScoreBias};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::transformer::heads::{ScoreOptions, WideHeads, attend, divided};
use crate::ops::values::{expect_float, floats, from_floats};

/// `ContribAttention` of domain `com.microsoft`.
///
/// Inputs: `[B, S, input]`, weights `[input, q + k + v]`, optionally their bias, a mask of keys,
/// keys and values of the past `[2, B, H, P, D]`, and a bias on the scores. Outputs: `[B, S, v]`,
/// and all keys and values `[2, B, H, P + S, D]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ContribAttention {
    /// Heads of queries, keys and values.
    pub num_heads: usize,
    /// True if a query sees no key behind its own position.
    pub unidirectional: bool,
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// Value added to the score of a hidden key.
    pub mask_filter_value: f32,
    /// Widths of queries, keys and values; a third of the weights each if absent.
    pub qkv_hidden_sizes: Option<[usize; 3]>,
}

impl ContribAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self::read(context)?))
    }

    /// Reads the attributes.
    pub(super) fn read(context: &mut ParseContext<'_>) -> Result<Self, OpError> {
        for name in ["do_rotary", "past_present_share_buffer"] {
            if context.attributes.flag(name, false)? {
                return Err(OpError::new(format!("attribute '{name}' is not supported")));
            }
        }
        context.attributes.ignore("rotary_embedding_dim");
        let heads = context.attributes.int("num_heads")?;
        let heads = heads.ok_or_else(|| OpError::new("attribute 'num_heads' is missing"))?;
        let sizes = match context.attributes.ints("qkv_hidden_sizes")? {
            None => None,
            Some(all) => {
                let all = bounds::lengths(&all, "qkv_hidden_sizes")?;
                Some(all.try_into().map_err(|all| {
                    OpError::new(format!("qkv_hidden_sizes {all:?}, expected three"))
                })?)
            }
        };
        Ok(Self {
            num_heads: bounds::length(heads, "num_heads")?,
            unidirectional: context.attributes.flag("unidirectional", false)?,
            scale: context.attributes.float("scale")?,
            mask_filter_value: context.attributes.float_or("mask_filter_value", HIDDEN)?,
            qkv_hidden_sizes: sizes,
        })
    }

    /// Widths of queries, keys and values.
    fn widths(&self, columns: usize) -> Result<[usize; 3], OpError> {
        let widths = self.qkv_hidden_sizes.unwrap_or([columns / 3; 3]);
        if widths.iter().sum::<usize>() != columns || widths[0] != widths[1] {
            return Err(OpError::new(format!("{columns} columns of weights for {widths:?}")));
        }
        Ok(widths)
    }

    /// Queries, keys and values of the new positions.
    fn project(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<[WideHeads; 3], OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        let (&[batch, length, inner], &[rows, columns]) = (x.shape(), w.shape()) else {
            return Err(OpError::new(format!(
                "weights of shape {:?} for an input of shape {:?}",
                w.shape(),
                x.shape()
            )));
        };
        if rows != inner {
            return Err(OpError::new(format!("{rows} rows of weights for vectors of {inner}")));
        }
        let widths = self.widths(columns)?;
        let bias = match inputs.optional(2) {
            None => vec![0.0; columns],
            Some(bias) => super::skip_normalization::row_vector(bias, columns, "the bias")?,
        };
        let x = floats(x)?;
        let w = floats(w)?;
        let part = |first: usize, width: usize| -> Result<WideHeads, OpError> {
            let d = divided(width, self.num_heads, "a projection")?;
            let shape = [batch, self.num_heads, length, d];
            let mut values = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
            for at in bounds::indices(&shape) {
                let column = first + at[1] * d + at[3];
                let row = &x[(at[0] * length + at[2]) * inner..][..inner];
                let products = row.iter().enumerate().map(|(k, x)| x * w[k * columns + column]);
                values.push(bias[column] + products.sum::<f64>());
            }
            Ok(WideHeads { shape, values })
        };
        Ok([
            part(0, widths[0])?,
            part(widths[0], widths[1])?,
            part(widths[0] + widths[1], widths[2])?,
        ])
    }
}

/// One half of the past: keys (0) or values (1).
fn half(past: Option<&Tensor>, which: usize) -> Result<Option<Tensor>, OpError> {
    let Some(past) = past else { return Ok(None) };
    match past.shape() {
        [2, rest @ ..] if rest.len() == 4 => {
            Ok(Some(past.slice_axis(0, which, 1, 1)?.reshape(rest)?))
        }
        other => Err(OpError::new(format!("a past of shape {other:?}, expected [2, B, H, P, D]"))),
    }
}

impl Operator for ContribAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let w = inputs.required(1)?;
        expect_float(x.dtype)?;
        let dim = |fact: &Fact, axis: usize| {
            let found = fact.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let widths = dim(w, 1).known().map(|columns| self.widths(columns)).transpose()?;
        let width = |at: usize| widths.map_or(Dim::Unknown, |all: [usize; 3]| Dim::Known(all[at]));
        let output = Fact::new(x.dtype, vec![dim(x, 0), dim(x, 1), width(2)]);
        let total = match inputs.optional(4) {
            None => dim(x, 1),
            Some(past) => bounds::sum([&dim(past, 3), &dim(x, 1)]),
        };
        let heads = Dim::Known(self.num_heads);
        let head = bounds::quotient([&width(1)], [&heads]);
        let present = Fact::new(x.dtype, vec![Dim::Known(2), dim(x, 0), heads, total, head]);
        Ok(vec![output, present])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let [q, k, v] = self.project(inputs)?;
        let length = q.shape[2];
        let past = inputs.optional(4);
        let k = k.after(half(past, 0)?.as_ref(), "the past")?;
        let v = v.after(half(past, 1)?.as_ref(), "the past")?;
        let [batch, heads, total, width] = k.shape;
        let before = total - length;
        let mask = KeyMask::read(inputs.optional(3), batch, length, total, before)?;
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
        let dtype = inputs.required(0)?.dtype();
        let mut present = vec![output.write_packed(dtype)?];
        if k.shape == v.shape {
            let shape = [2, batch, heads, total, width];
            bounded(DataType::Fp64, &shape)?;
            present.push(from_floats(dtype, &shape, [k.values, v.values].concat())?);
        } else {
            // There is no such output of keys and values of different widths.
            present.push(Tensor::zeros(dtype, &[2, batch, heads, total, width])?);
        }
        Ok(present)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};

    #[test]
    fn the_past_comes_first_and_a_mask_hides_it() {
        let x = tensor(&[1, 1, 1], &[1.0_f32]);
        // Queries are 0, so that keys weigh the same; values are twice the input.
        let w = tensor(&[1, 3], &[0.0_f32, 1.0, 2.0]);
        let bias = tensor(&[3], &[0.0_f32, 0.0, 1.0]);
        let past = tensor(&[2, 1, 1, 1, 1], &[7.0_f32, 9.0]);
        let list = attributes([("num_heads", int(1))]);
        let inputs = [Some(&x), Some(&w), Some(&bias), None, Some(&past)];
        let all = run("com.microsoft:Attention", 1, &list, &inputs, 2).unwrap();
        assert_eq!(all[0], tensor(&[1, 1, 1], &[6.0_f32]));
        assert_eq!(all[1], tensor(&[2, 1, 1, 2, 1], &[7.0_f32, 1.0, 9.0, 3.0]));
        let mask = tensor(&[1, 2], &[0_i32, 1]);
        let inputs = [Some(&x), Some(&w), Some(&bias), Some(&mask), Some(&past)];
        let all = run("com.microsoft:Attention", 1, &list, &inputs, 1).unwrap();
        assert_eq!(all[0], tensor(&[1, 1, 1], &[3.0_f32]));
    }
}

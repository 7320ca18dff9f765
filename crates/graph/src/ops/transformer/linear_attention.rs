//! `LinearAttention`: a recurrent state in place of a cache of keys.

use galatea_tensor::{DataType, Tensor};

use super::heads::{WideHeads, divided};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, floats, from_floats};

/// ONNX `LinearAttention`: each head keeps a matrix `S` `[d_k, d_v]`. A token lets it fade by
/// `exp(g)` (gated rules), adds the outer product of key and value (of `β` times what the value
/// differs from what the key finds: delta rules), and reads it with the query.
///
/// Inputs: query `[B, T, Hq · d_k]`, key `[B, T, H · d_k]`, value `[B, T, H · d_v]`; optionally
/// the state `[B, H, d_k, d_v]`, the decay `g` (for each head, or each element of its key), `β`.
/// Outputs: `[B, T, Hq · d_v]` and the new state.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearAttention {
    /// Heads of the query.
    pub q_num_heads: usize,
    /// Heads of key and value.
    pub kv_num_heads: usize,
    /// Factor on the output; 0 means `1/√d_k`.
    pub scale: f32,
    /// True if the state fades.
    pub gated: bool,
    /// True if the state is corrected instead of added to.
    pub delta: bool,
}

impl LinearAttention {
    pub(crate) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // How many tokens an implementation may take at once has no effect on the result.
        context.attributes.ignore("chunk_size");
        let rules = ["linear", "gated", "delta", "gated_delta"];
        let rule = context.attributes.choice("update_rule", &rules, 3)?;
        let mut heads = |name: &'static str| {
            let found = context.attributes.int(name)?;
            let found =
                found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))?;
            bounds::length(found, name)
        };
        let q_num_heads = heads("q_num_heads")?;
        let kv_num_heads = heads("kv_num_heads")?;
        if kv_num_heads == 0 || q_num_heads == 0 || !q_num_heads.is_multiple_of(kv_num_heads) {
            return Err(OpError::new(format!(
                "{q_num_heads} query heads are no multiple of {kv_num_heads} key heads"
            )));
        }
        let scale = context.attributes.float_or("scale", 0.0)?;
        let gated = rule == 1 || rule == 3;
        let delta = rule >= 2;
        Ok(Box::new(Self { q_num_heads, kv_num_heads, scale, gated, delta }))
    }

    /// The optional input that a rule needs, or refuses.
    fn gate<'a>(
        inputs: OperatorInputs<'a, Tensor>,
        index: usize,
        needed: bool,
        what: &str,
    ) -> Result<Option<&'a Tensor>, OpError> {
        match inputs.optional(index) {
            None if needed => Err(OpError::new(format!("the update rule needs the input {what}"))),
            Some(_) if !needed => {
                Err(OpError::new(format!("the update rule has no use for the input {what}")))
            }
            found => Ok(found),
        }
    }
}

/// A gate `[B, T, columns]` as numbers.
fn columns(
    gate: Option<&Tensor>,
    batch: usize,
    tokens: usize,
    allowed: [usize; 2],
    what: &str,
) -> Result<Option<(Vec<f64>, usize)>, OpError> {
    let Some(gate) = gate else { return Ok(None) };
    match *gate.shape() {
        [b, t, width] if [b, t] == [batch, tokens] && allowed.contains(&width) => {
            Ok(Some((floats(gate)?, width)))
        }
        _ => Err(OpError::new(format!(
            "{what} has shape {:?}, expected [{batch}, {tokens}, {} or {}]",
            gate.shape(),
            allowed[0],
            allowed[1]
        ))),
    }
}

impl Operator for LinearAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        let key = inputs.required(1)?;
        let value = inputs.required(2)?;
        expect_float(query.dtype)?;
        let dims = |fact: &Fact| match fact.shape.as_deref() {
            None => Ok([Dim::Unknown, Dim::Unknown, Dim::Unknown]),
            Some([b, t, width]) => Ok([b.clone(), t.clone(), width.clone()]),
            Some(other) => Err(OpError::new(format!("rank {}, expected 3", other.len()))),
        };
        let [batch, tokens, _] = dims(query)?;
        let heads = Dim::Known(self.kv_num_heads);
        let width = |fact| Ok::<_, OpError>(bounds::quotient([&dims(fact)?[2]], [&heads]));
        let d_k = width(key)?;
        let d_v = width(value)?;
        let out = bounds::product([&Dim::Known(self.q_num_heads), &d_v]);
        let state = inputs.optional(3).map_or(query.dtype, |state| state.dtype);
        Ok(vec![
            Fact::new(query.dtype, vec![batch.clone(), tokens, out]),
            Fact::new(state, vec![batch, heads, d_k, d_v]),
        ])
    }

    #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let packed = |index: usize, heads: usize, what: &str| {
            let tensor = inputs.required(index)?;
            if tensor.rank() != 3 {
                return Err(OpError::new(format!("{what} has rank {}, expected 3", tensor.rank())));
            }
            WideHeads::read(tensor, Some(heads), what)
        };
        let query = packed(0, self.q_num_heads, "query")?;
        let key = packed(1, self.kv_num_heads, "key")?;
        let value = packed(2, self.kv_num_heads, "value")?;
        let ([batch, _, tokens, d_k], [_, heads, _, d_v]) = (query.shape, value.shape);
        if key.shape != [batch, heads, tokens, d_k] || value.shape != [batch, heads, tokens, d_v] {
            return Err(OpError::new("query, key and value do not fit each other"));
        }
        let decay = Self::gate(inputs, 4, self.gated, "decay")?;
        let decay = columns(decay, batch, tokens, [heads, heads * d_k], "decay")?;
        let beta = Self::gate(inputs, 5, self.delta, "beta")?;
        let beta = columns(beta, batch, tokens, [heads, 1], "beta")?;
        let state_shape = [batch, heads, d_k, d_v];
        let count = bounded(DataType::Fp64, &state_shape)?;
        let (mut state, state_type) = match inputs.optional(3) {
            None => (vec![0.0; count], inputs.required(0)?.dtype()),
            Some(past) if past.shape() == state_shape => (floats(past)?, past.dtype()),
            Some(past) => {
                return Err(OpError::new(format!(
                    "the state has shape {:?}, expected {state_shape:?}",
                    past.shape()
                )));
            }
        };
        let scale = match self.scale {
            0.0 => 1.0 / (d_k as f64).sqrt(),
            scale => f64::from(scale),
        };
        let group = divided(self.q_num_heads, heads, "query")?;
        let out_shape = [batch, self.q_num_heads, tokens, d_v];
        let mut output = vec![0.0; bounded(DataType::Fp64, &out_shape)?];
        for at in bounds::indices(&[batch, heads, tokens]) {
            let [b, h, t] = at[..] else { continue };
            let state = &mut state[(b * heads + h) * d_k * d_v..][..d_k * d_v];
            let row = b * tokens + t;
            let key = key.vector(b, h, t);
            if let Some((decay, width)) = &decay {
                for (at, entry) in state.iter_mut().enumerate() {
                    let column = if *width == heads { h } else { h * d_k + at / d_v };
                    *entry *= decay[row * width + column].exp();
                }
            }
            let mut added = value.vector(b, h, t).to_vec();
            if let Some((beta, width)) = &beta {
                let rate = beta[row * width + if *width == 1 { 0 } else { h }];
                for (column, slot) in added.iter_mut().enumerate() {
                    let found: f64 = (0..d_k).map(|d| state[d * d_v + column] * key[d]).sum();
                    *slot = rate * (*slot - found);
                }
            }
            for (at, entry) in state.iter_mut().enumerate() {
                *entry += key[at / d_v] * added[at % d_v];
            }
            for head in h * group..(h + 1) * group {
                let query = query.vector(b, head, t);
                let out = &mut output[((b * self.q_num_heads + head) * tokens + t) * d_v..][..d_v];
                for (column, slot) in out.iter_mut().enumerate() {
                    *slot =
                        scale * (0..d_k).map(|d| query[d] * state[d * d_v + column]).sum::<f64>();
                }
            }
        }
        let output = WideHeads { shape: out_shape, values: output };
        let dtype = inputs.required(0)?.dtype();
        Ok(vec![output.write_packed(dtype)?, from_floats(state_type, &state_shape, state)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor, text};

    fn heads(rule: &str) -> crate::Attributes {
        attributes([
            ("q_num_heads", int(2)),
            ("kv_num_heads", int(1)),
            ("update_rule", text(rule)),
            ("scale", crate::AttributeValue::Float(1.0)),
        ])
    }

    #[test]
    fn the_state_adds_up_and_both_query_heads_read_it() {
        let q = tensor(&[1, 2, 2], &[1.0_f32, 2.0, 1.0, 2.0]);
        let k = tensor(&[1, 2, 1], &[1.0_f32, 2.0]);
        let inputs = [Some(&q), Some(&k), Some(&k)];
        let all = run("LinearAttention", 27, &heads("linear"), &inputs, 2).unwrap();
        assert_eq!(all[0], tensor(&[1, 2, 2], &[1.0_f32, 2.0, 5.0, 10.0]));
        assert_eq!(all[1], tensor(&[1, 1, 1, 1], &[5.0_f32]));
    }

    #[test]
    fn the_delta_rule_replaces_what_the_key_finds_after_it_faded() {
        let q = tensor(&[1, 1, 2], &[1.0_f32, 1.0]);
        let k = tensor(&[1, 1, 1], &[1.0_f32]);
        let v = tensor(&[1, 1, 1], &[7.0_f32]);
        let past = tensor(&[1, 1, 1, 1], &[3.0_f32]);
        let g = tensor(&[1, 1, 1], &[0.0_f32]);
        let beta = tensor(&[1, 1, 1], &[0.5_f32]);
        let inputs = [Some(&q), Some(&k), Some(&v), Some(&past), Some(&g), Some(&beta)];
        let all = run("LinearAttention", 27, &heads("gated_delta"), &inputs, 2).unwrap();
        assert_eq!(all[1], tensor(&[1, 1, 1, 1], &[5.0_f32]));
        let without = run("LinearAttention", 27, &heads("gated"), &inputs[..4], 2);
        assert!(without.unwrap_err().contains("decay"));
    }
}

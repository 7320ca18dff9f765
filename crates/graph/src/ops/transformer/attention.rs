//! `Attention`: scaled dot-product attention with masks, windows and a cache of keys and values.

use galatea_tensor::{DataType, Tensor};

use super::heads::{AttentionResults, ScoreOptions, ScoreStage, WideHeads, attend, head_dims};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{TensorValues, expect_float};

/// ONNX `Attention`.
///
/// Inputs: `Q`, `K` and `V` as `[B, H, S, D]` or packed as `[B, S, H · D]`; optionally a mask that
/// broadcasts to `[B, H, S, T]` (its last axis may be shorter: keys beyond it are hidden), keys and
/// values of the past, which come before the new ones, and the number of valid keys in each batch.
/// Outputs: `Y` laid out like `Q`, all keys, all values, and the scores at a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// True if a query sees no key behind its own position.
    pub is_causal: bool,
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// The scores are kept inside `±softcap` where it is above 0.
    pub softcap: f32,
    /// Heads of packed queries.
    pub q_num_heads: Option<usize>,
    /// Heads of packed keys and values.
    pub kv_num_heads: Option<usize>,
    /// How far before its own position a query sees.
    pub left_window: Option<usize>,
    /// How far behind its own position a query sees.
    pub right_window: Option<usize>,
    /// Which scores are the fourth output; `None` where the node has no fourth output.
    pub stage: Option<ScoreStage>,
}

impl Attention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        // Scores and their softmax are kept wider than any of the types it may name.
        context.data_type("softmax_precision")?;
        let mode = context.attributes.int_or("qk_matmul_output_mode", 0)?;
        let stage = match mode {
            0 => ScoreStage::Raw,
            1 => ScoreStage::Capped,
            2 => ScoreStage::Biased,
            3 => ScoreStage::Weights,
            other => {
                return Err(OpError::new(format!(
                    "qk_matmul_output_mode is {other}, expected 0 to 3"
                )));
            }
        };
        let mut heads = |name: &'static str| -> Result<Option<usize>, OpError> {
            context.attributes.int(name)?.map(|n| bounds::length(n, name)).transpose()
        };
        let q_num_heads = heads("q_num_heads")?;
        let kv_num_heads = heads("kv_num_heads")?;
        let mut window = |name: &'static str| -> Result<Option<usize>, OpError> {
            if context.opset < 25 {
                return Ok(None);
            }
            match context.attributes.int_or(name, -1)? {
                -1 => Ok(None),
                length => bounds::length(length, name).map(Some),
            }
        };
        let left_window = window("left_window_size")?;
        let right_window = window("right_window_size")?;
        Ok(Box::new(Self {
            is_causal: context.attributes.flag("is_causal", false)?,
            scale: context.attributes.float("scale")?,
            softcap: context.attributes.float_or("softcap", 0.0)?,
            q_num_heads,
            kv_num_heads,
            left_window,
            right_window,
            stage: (context.outputs > 3).then_some(stage),
        }))
    }

    /// Returns whether the query at an absolute position may see a key, masks aside.
    fn sees(&self, position: i64, key: usize) -> bool {
        let key = i64::try_from(key).unwrap_or(i64::MAX);
        let reach = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        let left = self.left_window.is_none_or(|n| position.saturating_sub(reach(n)) <= key);
        let right = self.right_window.is_none_or(|n| key <= position.saturating_add(reach(n)));
        left && right && (!self.is_causal || key <= position)
    }

    fn run(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<(AttentionResults, WideHeads, WideHeads), OpError> {
        let q = WideHeads::read(inputs.required(0)?, self.q_num_heads, "Q")?;
        let k = WideHeads::read(inputs.required(1)?, self.kv_num_heads, "K")?;
        let v = WideHeads::read(inputs.required(2)?, self.kv_num_heads, "V")?;
        let past_k = inputs.optional(4);
        let past_v = inputs.optional(5);
        if past_k.is_some() != past_v.is_some() {
            return Err(OpError::new("past_key and past_value belong together, one is missing"));
        }
        let past = past_k.map_or(0, |past| past.shape().get(2).copied().unwrap_or(0));
        let k = k.after(past_k, "past_key")?;
        let v = v.after(past_v, "past_value")?;
        let [batch, heads, queries, width] = q.shape;
        let valid = inputs.optional(6).map(Tensor::to_i64_vec).transpose()?;
        check_valid(valid.as_deref(), batch, past_k.is_some())?;
        let offset = |at: usize| match &valid {
            Some(valid) => valid[at].saturating_sub(queries as i64),
            None => past as i64,
        };
        let mask = AdditiveMask::read(inputs.optional(3), [batch, heads, queries, k.shape[2]])?;
        let bias = |[b, h, s, key]: [usize; 4]| {
            let beyond = valid.as_ref().is_some_and(|valid| key as i64 >= valid[b]);
            if beyond || !self.sees(offset(b).saturating_add(s as i64), key) {
                return f64::NEG_INFINITY;
            }
            mask.as_ref().map_or(0.0, |mask| mask.at([b, h, s, key]))
        };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.scale.map_or_else(|| 1.0 / (width as f64).sqrt(), f64::from);
        let softcap = f64::from(self.softcap);
        let scoring = ScoreOptions { scale, softcap, bias: &bias, sink: None, stage: self.stage };
        Ok((attend(&q, &k, &v, &scoring)?, k, v))
    }
}

fn check_valid(valid: Option<&[i64]>, batch: usize, past: bool) -> Result<(), OpError> {
    match valid {
        Some(_) if past => {
            Err(OpError::new("nonpad_kv_seqlen and past_key exclude each other, both are given"))
        }
        Some(valid) if valid.len() != batch => Err(OpError::new(format!(
            "nonpad_kv_seqlen has {} elements for a batch of {batch}",
            valid.len()
        ))),
        _ => Ok(()),
    }
}

/// A mask as numbers to add.
struct AdditiveMask {
    values: Vec<f64>,
    /// Distance of neighbours along each axis; 0 where the mask is broadcast.
    steps: [usize; 4],
    keys: usize,
}

impl AdditiveMask {
    fn read(tensor: Option<&Tensor>, shape: [usize; 4]) -> Result<Option<Self>, OpError> {
        let Some(tensor) = tensor else { return Ok(None) };
        let wrong = || {
            let found = tensor.shape();
            OpError::new(format!("a mask of shape {found:?} for scores of shape {shape:?}"))
        };
        let missing = 4_usize.checked_sub(tensor.rank()).ok_or_else(wrong)?;
        let mut full = [1; 4];
        full[missing..].copy_from_slice(tensor.shape());
        let keys = full[3];
        let fits = (0..3).all(|axis| full[axis] == 1 || full[axis] == shape[axis]);
        if !fits || keys > shape[3] {
            return Err(wrong());
        }
        let stored = bounds::steps(&full);
        let step = |axis: usize| if full[axis] == 1 { 0 } else { stored[axis] };
        let values = match TensorValues::read(tensor)? {
            TensorValues::Bools(all) => {
                all.into_iter().map(|sees| if sees { 0.0 } else { f64::NEG_INFINITY }).collect()
            }
            TensorValues::Floats(all) => all,
            #[allow(clippy::cast_precision_loss, reason = "a mask holds small numbers")]
            TensorValues::Integers(all) => all.into_iter().map(|value| value as f64).collect(),
            TensorValues::Strings(_) => return Err(OpError::new("a mask of type BYTES")),
        };
        Ok(Some(Self { values, steps: [step(0), step(1), step(2), 1], keys }))
    }

    fn at(&self, index: [usize; 4]) -> f64 {
        if index[3] >= self.keys {
            return f64::NEG_INFINITY;
        }
        let offset: usize = index.iter().zip(self.steps).map(|(at, step)| at * step).sum();
        self.values[offset]
    }
}

impl Operator for Attention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let q = inputs.required(0)?;
        let k = inputs.required(1)?;
        let v = inputs.required(2)?;
        for fact in [q, k, v] {
            expect_float(fact.dtype)?;
        }
        let heads = |fact: &Fact, heads, what| {
            let unknown = || std::array::from_fn(|_| Dim::Unknown);
            Ok::<[Dim; 4], OpError>(head_dims(fact, heads, what)?.unwrap_or_else(unknown))
        };
        let [b, h, s, _] = heads(q, self.q_num_heads, "Q")?;
        let [kb, kh, t, d] = heads(k, self.kv_num_heads, "K")?;
        let [vb, vh, vt, e] = heads(v, self.kv_num_heads, "V")?;
        let total = |past: Option<&Fact>, new: &Dim| match past.map(|past| past.shape.as_deref()) {
            None => new.clone(),
            Some(Some([_, _, past, _])) => bounds::sum([past, new]),
            Some(_) => Dim::Unknown,
        };
        let y = match q.rank() {
            None => Fact::unranked(q.dtype),
            Some(3) => Fact::new(q.dtype, vec![b.clone(), s.clone(), bounds::product([&h, &e])]),
            _ => Fact::new(q.dtype, vec![b.clone(), h.clone(), s.clone(), e.clone()]),
        };
        let keys = total(inputs.optional(4), &t);
        let values = total(inputs.optional(5), &vt);
        let mut all = vec![
            y,
            Fact::new(k.dtype, vec![kb, kh, keys.clone(), d]),
            Fact::new(v.dtype, vec![vb, vh, values, e]),
        ];
        if self.stage.is_some() {
            all.push(Fact::new(q.dtype, vec![b, h, s, keys]));
        }
        Ok(all)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let (AttentionResults { output, scores }, k, v) = self.run(inputs)?;
        let dtype =
            |index: usize| -> Result<DataType, OpError> { Ok(inputs.required(index)?.dtype()) };
        let q_type = dtype(0)?;
        let y = if inputs.required(0)?.rank() == 3 {
            output.write_packed(q_type)?
        } else {
            output.write(q_type)?
        };
        let mut all = vec![y, k.write(dtype(1)?)?, v.write(dtype(2)?)?];
        if self.stage.is_some() {
            all.push(scores.write(q_type)?);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, run, tensor};

    #[test]
    fn causal_queries_see_the_past_and_themselves() {
        let q = tensor(&[1, 1, 2, 1], &[0.0_f32, 0.0]);
        let v = tensor(&[1, 1, 2, 1], &[2.0_f32, 4.0]);
        let past = tensor(&[1, 1, 1, 1], &[6.0_f32]);
        let causal = attributes([("is_causal", int(1))]);
        let alone = one("Attention", 23, &causal, &[&q, &q, &v]);
        assert_eq!(alone, tensor(&[1, 1, 2, 1], &[2.0_f32, 3.0]));
        let inputs = [Some(&q), Some(&q), Some(&v), None, Some(&past), Some(&past)];
        let all = run("Attention", 23, &causal, &inputs, 4).unwrap();
        assert_eq!(all[0], tensor(&[1, 1, 2, 1], &[4.0_f32, 4.0]));
        assert_eq!(all[2], tensor(&[1, 1, 3, 1], &[6.0_f32, 2.0, 4.0]));
        assert_eq!(all[3].shape(), [1, 1, 2, 3]);
    }

    #[test]
    fn packed_heads_share_keys_and_a_short_mask_hides_the_rest() {
        let q = tensor(&[1, 1, 4], &[0.0_f32; 4]);
        let k = tensor(&[1, 3, 2], &[0.0_f32; 6]);
        let v = tensor(&[1, 3, 1], &[1.0_f32, 3.0, 100.0]);
        let mask = tensor(&[1, 2], &[true, true]);
        let heads = attributes([("q_num_heads", int(2)), ("kv_num_heads", int(1))]);
        let found = one("Attention", 24, &heads, &[&q, &k, &v, &mask]);
        assert_eq!(found, tensor(&[1, 1, 2], &[2.0_f32, 2.0]));
        let hidden = tensor(&[1], &[false]);
        let found = one("Attention", 24, &heads, &[&q, &k, &v, &hidden]);
        assert_eq!(found, tensor(&[1, 1, 2], &[0.0_f32, 0.0]));
    }

    #[test]
    fn windows_bound_both_sides() {
        let q = tensor(&[1, 1, 3, 1], &[0.0_f32; 3]);
        let v = tensor(&[1, 1, 3, 1], &[1.0_f32, 2.0, 6.0]);
        let window = attributes([("left_window_size", int(0)), ("right_window_size", int(1))]);
        let found = one("Attention", 25, &window, &[&q, &q, &v]);
        assert_eq!(found, tensor(&[1, 1, 3, 1], &[1.5_f32, 4.0, 6.0]));
    }

    #[test]
    fn scores_are_scaled_capped_and_kept() {
        let q = tensor(&[1, 1, 1, 1], &[3.0_f32]);
        let list = attributes([
            ("scale", AttributeValue::Float(2.0)),
            ("softcap", AttributeValue::Float(1e-3)),
            ("qk_matmul_output_mode", int(1)),
        ]);
        let inputs = [Some(&q), Some(&q), Some(&q)];
        let all = run("Attention", 23, &list, &inputs, 4).unwrap();
        assert_eq!(all[3], tensor(&[1, 1, 1, 1], &[1e-3_f32]));
    }

    #[test]
    fn misfits_are_errors() {
        let q = tensor(&[1, 3, 2, 1], &[0.0_f32; 6]);
        let k = tensor(&[1, 2, 2, 1], &[0.0_f32; 4]);
        let none = attributes([]);
        assert!(run("Attention", 23, &none, &[Some(&q), Some(&k), Some(&k)], 1).is_err());
        let packed = tensor(&[1, 2, 2], &[0.0_f32; 4]);
        let inputs = [Some(&packed); 3];
        assert!(run("Attention", 23, &none, &inputs, 1).unwrap_err().contains("heads"));
        let inputs = [Some(&q), Some(&q), Some(&q), None, Some(&q)];
        assert!(run("Attention", 23, &none, &inputs, 1).is_err());
    }
}

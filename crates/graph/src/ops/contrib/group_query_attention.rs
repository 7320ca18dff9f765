//! `GroupQueryAttention`: causal attention with a cache, shared keys and rotary positions.

use galatea_tensor::{DataType, Tensor};

use super::key_mask::ScoreBias;
use super::rotary_embedding::RotaryCaches;
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::transformer::RotaryEmbedding;
use crate::ops::transformer::heads::{ScoreOptions, WideHeads, attend, divided};
use crate::ops::values::{expect_float, floats};

/// `GroupQueryAttention` of domain `com.microsoft`, without quantised or window-sized caches.
///
/// Inputs: queries `[B, S, H · D]` with keys and values `[B, S, Hkv · D]`, or all three in one;
/// optionally keys and values of the past `[B, Hkv, P, D]`; for each row of the batch how many keys
/// it has in all, less one; the most of them; optionally cosines and sines, positions `[B, S]`, a
/// bias on the scores, and one more score for each head. Outputs: `[B, S, H · D]`, keys, values.
/// The new keys of a row come behind its own past, which may be shorter than `P`.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupQueryAttention {
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values.
    pub kv_num_heads: usize,
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// The scores are kept inside `±softcap` where it is above 0.
    pub softcap: f32,
    /// How many keys a query sees up to its own position; all if absent.
    pub window: Option<usize>,
    /// True if a query sees no key behind its own position.
    pub causal: bool,
    /// Rotation of queries and keys by their position, if there is one.
    pub rotary: Option<RotaryEmbedding>,
    /// True if every head has one more score, of 0 unless an input says another.
    pub smooth_softmax: bool,
}

impl GroupQueryAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        for name in ["kv_cache_bit_width", "sliding_window_cache", "qk_output"] {
            if attributes.int_or(name, 0)? != 0 {
                return Err(OpError::new(format!("attribute '{name}' is not supported")));
            }
        }
        for name in ["k_quant_type", "v_quant_type"] {
            attributes.choice(name, &["NONE"], 0)?;
        }
        attributes.ignore("qk_norm_epsilon");
        let mut heads = |name: &'static str| {
            let found = attributes.int(name)?;
            let missing = || OpError::new(format!("attribute '{name}' is missing"));
            bounds::length(found.ok_or_else(missing)?, name)
        };
        let num_heads = heads("num_heads")?;
        let kv_num_heads = heads("kv_num_heads")?;
        if kv_num_heads == 0 || num_heads == 0 || !num_heads.is_multiple_of(kv_num_heads) {
            return Err(OpError::new(format!("{num_heads} heads share {kv_num_heads}")));
        }
        let interleaved = attributes.flag("rotary_interleaved", false)?;
        let rotary = RotaryEmbedding { interleaved, rotary_dim: 0, num_heads: None };
        let window = attributes.int_or("local_window_size", -1)?;
        Ok(Box::new(Self {
            num_heads,
            kv_num_heads,
            scale: attributes.float("scale")?.filter(|scale| *scale != 0.0),
            softcap: attributes.float_or("softcap", 0.0)?,
            window: usize::try_from(window).ok(),
            causal: attributes.flag("causal", true)?,
            rotary: attributes.flag("do_rotary", false)?.then_some(rotary),
            smooth_softmax: attributes.int_or("smooth_softmax", -1)? == 1,
        }))
    }

    /// Queries, keys and values of the new positions.
    pub(super) fn projections(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<[WideHeads; 3], OpError> {
        let query = inputs.required(0)?;
        let heads = [self.num_heads, self.kv_num_heads, self.kv_num_heads];
        let (Some(key), Some(value)) = (inputs.optional(1), inputs.optional(2)) else {
            let hidden = query.shape().last().copied().unwrap_or(0);
            let width = divided(hidden, heads.iter().sum(), "the query")?;
            let part = |first: usize, heads: usize| {
                let part = query.slice_axis(2, first * width, heads * width, 1)?;
                WideHeads::read(&part, Some(heads), "the query")
            };
            return Ok([
                part(0, heads[0])?,
                part(heads[0], heads[1])?,
                part(heads[0] + heads[1], heads[2])?,
            ]);
        };
        Ok([
            WideHeads::read(query, Some(heads[0]), "the query")?,
            WideHeads::read(key, Some(heads[1]), "the key")?,
            WideHeads::read(value, Some(heads[2]), "the value")?,
        ])
    }
}

/// How long each row of the batch is, its new positions included, and the longest.
struct SequenceLengths {
    totals: Vec<usize>,
    longest: usize,
    new: usize,
}

impl SequenceLengths {
    fn read(inputs: OperatorInputs<'_, Tensor>, batch: usize, new: usize) -> Result<Self, OpError> {
        let last = inputs.required(5)?.to_i64_vec()?;
        let longest = match inputs.required(6)?.to_i64_vec()?[..] {
            [one] => bounds::length(one, "total_sequence_length")?,
            _ => return Err(OpError::new("total_sequence_length is not a single integer")),
        };
        let total = |last: &i64| bounds::length(last.saturating_add(1), "a length");
        let totals = collected(&mut last.iter().map(total))?;
        if totals.len() != batch || totals.iter().any(|total| *total > longest) || longest < new {
            return Err(OpError::new(format!(
                "lengths {totals:?} in a batch of {batch} of which the longest has {longest}"
            )));
        }
        Ok(Self { totals, longest, new })
    }

    /// How many positions of the past a row has. The first call has none, whatever its padding.
    fn past(&self, batch: usize) -> usize {
        if self.longest == self.new { 0 } else { self.totals[batch].saturating_sub(self.new) }
    }
}

/// The cache with new vectors behind the past of each row.
fn appended(
    new: &WideHeads,
    past: Option<&Tensor>,
    lengths: &SequenceLengths,
) -> Result<WideHeads, OpError> {
    let [batch, heads, count, width] = new.shape;
    let past = past.map(|past| WideHeads::read(past, None, "the past")).transpose()?;
    let stored = past.as_ref().map_or(0, |past| past.shape[2]);
    let shape = [batch, heads, stored.max(lengths.longest), width];
    if past.as_ref().is_some_and(|past| past.shape != [batch, heads, stored, width]) {
        return Err(OpError::new(format!("a past that does not fit vectors {:?}", new.shape)));
    }
    let mut all = WideHeads { shape, values: vec![0.0; bounded(DataType::Fp64, &shape)?] };
    for at in bounds::indices(&[batch, heads]) {
        let [b, h] = at[..] else { continue };
        let start = (b * heads + h) * shape[2] * width;
        let behind = lengths.past(b);
        if behind + count > shape[2] || behind > stored {
            return Err(OpError::new(format!("{behind} of {stored} positions of the past")));
        }
        if let Some(past) = &past {
            // What a longer cache holds behind the row's own past is not the row's.
            let from = (b * heads + h) * stored * width;
            let kept = behind * width;
            all.values[start..start + kept].copy_from_slice(&past.values[from..from + kept]);
        }
        for s in 0..count {
            let slot = start + (behind + s) * width;
            all.values[slot..slot + width].copy_from_slice(new.vector(b, h, s));
        }
    }
    Ok(all)
}

impl Operator for GroupQueryAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        expect_float(query.dtype)?;
        let dim = |fact: Option<&Fact>, axis: usize| {
            let found =
                fact.and_then(|f| f.shape.as_ref()).and_then(|dims| dims.get(axis).cloned());
            found.unwrap_or(Dim::Unknown)
        };
        let heads = Dim::Known(self.num_heads);
        let shared = Dim::Known(self.kv_num_heads);
        let hidden = dim(Some(query), 2);
        let width = match inputs.optional(1) {
            Some(_) => bounds::quotient([&hidden], [&heads]),
            None => {
                let all = Dim::Known(self.num_heads + 2 * self.kv_num_heads);
                bounds::quotient([&hidden], [&all])
            }
        };
        let batch = dim(Some(query), 0);
        let output = vec![batch.clone(), dim(Some(query), 1), bounds::product([&heads, &width])];
        let longest = inputs.required(6)?.lengths().and_then(|all| all.first()?.known());
        let stored = inputs.optional(3).map_or(Some(0), |past| dim(Some(past), 2).known());
        let length = match (longest, stored) {
            (Some(longest), Some(stored)) => Dim::Known(longest.max(stored)),
            _ => Dim::Unknown,
        };
        let present = Fact::new(query.dtype, vec![batch, shared, length, width]);
        Ok(vec![Fact::new(query.dtype, output), present.clone(), present])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        for index in 12..16 {
            if inputs.optional(index).is_some() {
                return Err(OpError::new(format!("input {index} is not supported")));
            }
        }
        let [mut q, mut k, v] = self.projections(inputs)?;
        let [batch, heads, count, width] = q.shape;
        let lengths = SequenceLengths::read(inputs, batch, count)?;
        if let Some(rotary) = &self.rotary {
            let caches = RotaryCaches::read(inputs.required(7)?, inputs.required(8)?)?;
            let positions = inputs.optional(9).map(Tensor::to_i64_vec).transpose()?;
            let position = |b: usize, s: usize| {
                let given = positions.as_ref().and_then(|all| all.get(b * count + s).copied());
                given.unwrap_or((lengths.past(b) + s) as i64)
            };
            let rotary = RotaryEmbedding { rotary_dim: 2 * caches.pairs(), ..rotary.clone() };
            for heads in [&mut q, &mut k] {
                rotary.turn(heads, |b, s| caches.at(position(b, s)))?;
            }
        }
        let k = appended(&k, inputs.optional(3), &lengths)?;
        let v = appended(&v, inputs.optional(4), &lengths)?;
        let extra = ScoreBias::read(inputs.optional(10), [batch, heads, count, lengths.longest])?;
        let bias = |[b, h, s, t]: [usize; 4]| {
            let own = lengths.past(b) + s;
            let behind = if self.causal { t > own } else { t >= lengths.totals[b] };
            let before = self.window.is_some_and(|window| t.saturating_add(window) <= own);
            if behind || before || t >= lengths.longest {
                return f64::NEG_INFINITY;
            }
            extra.at(b, h, s, t)
        };
        let sinks = inputs.optional(11).map(floats).transpose()?;
        let sink =
            |head: usize| sinks.as_ref().and_then(|all| all.get(head).copied()).unwrap_or(0.0);
        let smooth = self.smooth_softmax || sinks.is_some();
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.scale.map_or_else(|| 1.0 / (width as f64).sqrt(), f64::from);
        let scoring = ScoreOptions {
            scale,
            softcap: f64::from(self.softcap),
            bias: &bias,
            sink: if smooth { Some(&sink) } else { None },
            stage: None,
        };
        let output = attend(&q, &k, &v, &scoring)?.output;
        let dtype = inputs.required(0)?.dtype();
        Ok(vec![output.write_packed(dtype)?, k.write(dtype)?, v.write(dtype)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor};
    use galatea_tensor::Tensor;

    #[test]
    fn new_keys_come_behind_the_past_of_each_row() {
        let list = attributes([("num_heads", int(1)), ("kv_num_heads", int(1))]);
        let zero = tensor(&[2, 1, 1], &[0.0_f32; 2]);
        let new = tensor(&[2, 1, 1], &[4.0_f32, 8.0]);
        let past = tensor(&[2, 1, 2, 1], &[2.0_f32, 0.0, 1.0, 3.0]);
        let lengths = Tensor::vector(vec![1_i32, 2]);
        let longest = Tensor::scalar(3_i32);
        let inputs = [
            Some(&zero),
            Some(&zero),
            Some(&new),
            Some(&past),
            Some(&past),
            Some(&lengths),
            Some(&longest),
        ];
        let name = "com.microsoft:GroupQueryAttention";
        let all = run(name, 1, &list, &inputs, 3).unwrap();
        assert_eq!(all[0], tensor(&[2, 1, 1], &[3.0_f32, 4.0]));
        assert_eq!(all[2], tensor(&[2, 1, 3, 1], &[2.0_f32, 4.0, 0.0, 1.0, 3.0, 8.0]));
        let window = [("num_heads", 1), ("kv_num_heads", 1), ("local_window_size", 2)];
        let window = attributes(window.map(|(name, value)| (name, int(value))));
        let all = run(name, 1, &window, &inputs, 1).unwrap();
        assert_eq!(all[0], tensor(&[2, 1, 1], &[3.0_f32, 5.5]));
    }
}

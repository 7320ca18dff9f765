//! `DecoderMaskedMultiHeadAttention`: attention of one new position over a cache of beams, or over an encoder's keys.

use galatea_tensor::{DataType, Tensor};

use super::key_mask::{HIDDEN, KeyMask, ScoreBias};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::transformer::heads::{ScoreOptions, ScoreStage, WideHeads, attend};
use crate::ops::values::{expect_float, floats};

/// `DecoderMaskedMultiHeadAttention` of domain `com.microsoft`.
///
/// Inputs: a query `[B, 1, hidden]` (or all three projections), keys and values `[B, 1, hidden]`, or `[B, H, L, D]` of
/// an encoder; a mask `[B, T]`, a bias on the scores, the caches `[B, H, P, D]`, the length of the past and the width
/// of beams where the caches are longer, from which beam each position came `[B / W, W, M]`, and the bias of all
/// projections. Outputs: `[B, 1, hidden]`, the caches, and the scores before the softmax `[B, H, 1, T]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecoderMaskedAttention {
    /// Heads of queries, keys and values.
    pub num_heads: usize,
    /// Factor on the scores; `1/√D` if absent.
    pub scale: Option<f32>,
    /// Value added to the score of a hidden key.
    pub mask_filter_value: f32,
    /// True if the caches have room for new positions behind the past.
    pub shares_buffer: bool,
}

impl DecoderMaskedAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let heads = context.attributes.int("num_heads")?;
        let heads = heads.ok_or_else(|| OpError::new("attribute 'num_heads' is missing"))?;
        // Scores are an output where the node has the fourth one.
        context.attributes.ignore("output_qk");
        Ok(Box::new(Self {
            num_heads: bounds::length(heads, "num_heads")?,
            scale: context.attributes.float("scale")?.filter(|scale| *scale != 0.0),
            mask_filter_value: context.attributes.float_or("mask_filter_value", HIDDEN)?,
            shares_buffer: context.attributes.flag("past_present_share_buffer", false)?,
        }))
    }

    fn heads(&self, tensor: &Tensor, what: &str) -> Result<WideHeads, OpError> {
        WideHeads::read(tensor, Some(self.num_heads), what)
    }

    /// Projections of the new position, before their bias.
    fn projections(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<[WideHeads; 3], OpError> {
        let query = inputs.required(0)?;
        let (Some(key), Some(value)) = (inputs.optional(1), inputs.optional(2)) else {
            let hidden = query.shape().last().copied().unwrap_or(0) / 3;
            let part = |at: usize| {
                self.heads(&query.slice_axis(2, at * hidden, hidden, 1)?, "the packed projections")
            };
            return Ok([part(0)?, part(1)?, part(2)?]);
        };
        let [key, value] = [self.heads(key, "the key")?, self.heads(value, "the value")?];
        Ok([self.heads(query, "the query")?, key, value])
    }
}

/// Adds the part of a bias that begins at an element.
fn add_bias(heads: &mut WideHeads, bias: &[f64], first: usize) -> Result<(), OpError> {
    let [_, count, positions, width] = heads.shape;
    let Some(bias) = bias.get(first..first + count * width) else {
        return Err(OpError::new(format!("a bias of {} elements", bias.len())));
    };
    for (at, value) in heads.values.iter_mut().enumerate() {
        *value += bias[at / (positions * width) % count * width + at % width];
    }
    Ok(())
}

/// The caches of a step.
struct StepCache {
    /// Caches with the new vectors.
    present: WideHeads,
    /// Vectors of the positions so far, each from its beam.
    seen: WideHeads,
}

/// Place of the new position, and from which beam each earlier one came.
struct BeamHistory {
    past: usize,
    width: usize,
    beams: Option<(Vec<i64>, usize)>,
}

impl BeamHistory {
    fn read(inputs: OperatorInputs<'_, Tensor>, batch: usize) -> Result<Self, OpError> {
        let one = |index: usize| -> Result<Option<usize>, OpError> {
            let Some(tensor) = inputs.optional(index) else { return Ok(None) };
            match tensor.to_i64_vec()?[..] {
                [one] => Ok(Some(bounds::length(one, "a number of positions or beams")?)),
                _ => Err(OpError::new(format!("input {index} is not a single integer"))),
            }
        };
        let past = one(7)?.ok_or_else(|| OpError::new("past_sequence_length is missing"))?;
        let width = one(8)?.unwrap_or(1);
        let beams = match inputs.optional(9) {
            None => None,
            Some(beams) => match *beams.shape() {
                [groups, own, longest]
                    if own == width && groups * own == batch && longest >= past =>
                {
                    Some((beams.to_i64_vec()?, longest))
                }
                _ => {
                    let text = format!("beams of shape {:?}", beams.shape());
                    return Err(OpError::new(format!("{text} for {batch} rows, {width} each")));
                }
            },
        };
        Ok(Self { past, width: width.max(1), beams })
    }

    /// Row of the batch that holds a position of a row.
    fn row(&self, batch: usize, position: usize) -> Result<usize, OpError> {
        let Some((beams, longest)) = self.beams.as_ref().filter(|_| position < self.past) else {
            return Ok(batch);
        };
        let beam = beams[batch * longest + position];
        match usize::try_from(beam).ok().filter(|&beam| beam < self.width) {
            Some(beam) => Ok(batch / self.width * self.width + beam),
            None => Err(OpError::new(format!("beam {beam} of {}", self.width))),
        }
    }

    /// Puts a new vector behind the past.
    fn step(&self, new: &WideHeads, cache: &Tensor) -> Result<StepCache, OpError> {
        let mut present = WideHeads::read(cache, None, "the cache")?;
        let [batch, heads, count, width] = new.shape;
        let longest = present.shape[2];
        if present.shape != [batch, heads, longest, width] || count != 1 || self.past >= longest {
            let text = format!("a cache {:?} for vectors {:?}", present.shape, new.shape);
            return Err(OpError::new(format!("{text} behind {} positions", self.past)));
        }
        for row in 0..batch * heads {
            let slot = (row * longest + self.past) * width;
            let vector = &new.values[row * width..(row + 1) * width];
            present.values[slot..slot + width].copy_from_slice(vector);
        }
        let shape = [batch, heads, self.past + 1, width];
        let mut values = Vec::with_capacity(bounds::bounded(DataType::Fp64, &shape)?);
        for at in bounds::indices(&shape[..3]) {
            let [b, h, t] = at[..] else { continue };
            values.extend_from_slice(present.vector(self.row(b, t)?, h, t));
        }
        Ok(StepCache { present, seen: WideHeads { shape, values } })
    }
}

fn dim(fact: Option<&Fact>, axis: usize) -> Dim {
    let found = fact.and_then(|fact| fact.shape.as_ref()).and_then(|dims| dims.get(axis).cloned());
    found.unwrap_or(Dim::Unknown)
}

impl DecoderMaskedAttention {
    /// Facts of the caches, and the number of keys.
    fn cache_facts(&self, inputs: OperatorInputs<'_, Fact>) -> ([Fact; 2], Dim) {
        let query = inputs.optional(0);
        let dtype = query.map_or(DataType::Fp32, |query| query.dtype);
        let (key, past) = (inputs.optional(1), inputs.optional(5));
        let keys = match (key.and_then(Fact::rank), past) {
            (Some(4), _) => dim(key, 2),
            (_, Some(_)) if self.shares_buffer => Dim::Unknown,
            (_, Some(past)) => bounds::sum([&dim(Some(past), 2), &Dim::Known(1)]),
            (_, None) => Dim::Known(1),
        };
        let cache = |index: usize| match inputs.optional(index) {
            Some(past) if self.shares_buffer => Fact::shaped(dtype, past.shape.clone()),
            past => {
                let width = dim(past, 3);
                let heads = Dim::Known(self.num_heads);
                Fact::new(dtype, vec![dim(query, 0), heads, keys.clone(), width])
            }
        };
        let caches = match key.and_then(Fact::rank) {
            Some(3) => [cache(5), cache(6)],
            _ => [Fact::unranked(dtype), Fact::unranked(dtype)],
        };
        (caches, keys)
    }
}

impl Operator for DecoderMaskedAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        expect_float(query.dtype)?;
        let value = inputs.optional(2);
        let hidden = match value.and_then(Fact::rank) {
            Some(3) => dim(value, 2),
            Some(4) => bounds::product([&dim(value, 1), &dim(value, 3)]),
            _ => Dim::Unknown,
        };
        let output = vec![dim(Some(query), 0), dim(Some(query), 1), hidden];
        let ([key, value], keys) = self.cache_facts(inputs);
        let scores = vec![dim(Some(query), 0), Dim::Known(self.num_heads), Dim::Unknown, keys];
        let dtype = query.dtype;
        Ok(vec![Fact::new(dtype, output), key, value, Fact::new(dtype, scores)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let crosses = inputs.optional(1).is_some_and(|key| key.rank() == 4);
        let [mut q, mut k, mut v] = self.projections(inputs)?;
        let bias = inputs.optional(10).map(floats).transpose()?;
        if let Some(bias) = &bias {
            let hidden = q.shape[1] * q.shape[3];
            add_bias(&mut q, bias, 0)?;
            // An encoder's keys and values have their bias already.
            if !crosses {
                add_bias(&mut k, bias, hidden)?;
                add_bias(&mut v, bias, 2 * hidden)?;
            }
        }
        let (mut present_key, mut present_value) = (k.clone(), v.clone());
        if !crosses && self.shares_buffer {
            let history = BeamHistory::read(inputs, q.shape[0])?;
            let key = history.step(&k, inputs.required(5)?)?;
            let value = history.step(&v, inputs.required(6)?)?;
            (k, v) = (key.seen, value.seen);
            (present_key, present_value) = (key.present, value.present);
        } else if !crosses {
            k = k.after(inputs.optional(5), "past_key")?;
            v = v.after(inputs.optional(6), "past_value")?;
            (present_key, present_value) = (k.clone(), v.clone());
        }
        let ([batch, heads, length, width], total) = (q.shape, k.shape[2]);
        let mask =
            KeyMask::read(inputs.optional(3), batch, length, total, total - length.min(total))?;
        let extra = ScoreBias::read(inputs.optional(4), [batch, heads, length, total])?;
        let hidden = f64::from(self.mask_filter_value);
        let bias = |[b, h, s, t]: [usize; 4]| {
            extra.at(b, h, s, t) + if mask.sees(b, s, t) { 0.0 } else { hidden }
        };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.scale.map_or_else(|| 1.0 / (width as f64).sqrt(), f64::from);
        let stage = Some(ScoreStage::Biased);
        let scoring = ScoreOptions { scale, softcap: 0.0, bias: &bias, sink: None, stage };
        let attended = attend(&q, &k, &v, &scoring)?;
        let dtype = inputs.required(0)?.dtype();
        Ok(vec![
            attended.output.write_packed(dtype)?,
            present_key.write(dtype)?,
            present_value.write(dtype)?,
            attended.scores.write(dtype)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, int, run, tensor};

    const NAME: &str = "com.microsoft:DecoderMaskedMultiHeadAttention";

    #[allow(clippy::cast_precision_loss, reason = "numbers below 16")]
    fn pattern(shape: &[usize], numbers: [usize; 2]) -> Tensor {
        let value = |at: usize| (((at * numbers[0] + numbers[1]) % 11) as f32 - 5.0) / 4.0;
        let all: Vec<f32> = (0..shape.iter().product()).map(value).collect();
        tensor(shape, &all)
    }

    fn close(found: &Tensor, expected: &[f32]) {
        let found = found.to_vec::<f32>().unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{found}");
        }
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn positions_come_from_the_beams_that_wrote_them() {
        let list = attributes([("num_heads", int(1)), ("past_present_share_buffer", int(1))]);
        let new = |numbers| pattern(&[2, 1, 2], numbers);
        let (q, k, v) = (new([3, 1]), new([5, 2]), new([7, 3]));
        let (keys, values) = (pattern(&[2, 1, 4, 2], [3, 4]), pattern(&[2, 1, 4, 2], [7, 5]));
        let (past, width) = (Tensor::vector(vec![2_i32]), Tensor::vector(vec![2_i32]));
        let beams = tensor(&[1, 2, 4], &[1_i32, 0, 0, 0, 0, 1, 0, 0]);
        let mask = tensor(&[2, 3], &[1_i32, 1, 1, 0, 1, 1]);
        let bias = pattern(&[6], [3, 0]);
        let inputs = [
            Some(&q),
            Some(&k),
            Some(&v),
            Some(&mask),
            None,
            Some(&keys),
            Some(&values),
            Some(&past),
            Some(&width),
            Some(&beams),
            Some(&bias),
        ];
        let found = run(NAME, 1, &list, &inputs, 4).unwrap();
        close(&found[0], &[-0.780_706_94, 0.408_110_95, -0.154_850_13, -0.659_914_3]);
        let keys = [
            -0.25, 0.5, 1.25, -0.75, -0.5, 1.5, -1.25, -0.5, 0.25, 1.0, -1.0, -0.25, -0.75, 1.25,
            -0.75, 0.0,
        ];
        close(&found[1], &keys);
        let scores = [-0.928_077_6, -1.590_990_2, 0.0, -9999.603, 0.397_747_55, 1.060_660_1];
        close(&found[3], &scores);
        let far = tensor(&[1, 2, 4], &[2_i32; 8]);
        let mut wrong = inputs;
        wrong[9] = Some(&far);
        assert!(run(NAME, 1, &list, &wrong, 1).unwrap_err().contains("beam 2 of 2"));
    }

    #[test]
    fn an_encoder_gives_all_keys_at_once() {
        let list = attributes([("num_heads", int(1))]);
        let q = pattern(&[2, 1, 2], [3, 1]);
        let (keys, values) = (pattern(&[2, 1, 4, 2], [3, 4]), pattern(&[2, 1, 4, 2], [7, 5]));
        let found = run(NAME, 1, &list, &[Some(&q), Some(&keys), Some(&values)], 1).unwrap();
        close(&found[0], &[-0.405_777_07, 0.498_136_37, -0.339_248_93, -0.031_666_89]);
    }
}

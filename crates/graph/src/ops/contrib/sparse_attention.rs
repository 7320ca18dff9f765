//! `SparseAttention`: causal attention over a cache, of which each head sees some blocks.

use galatea_tensor::Tensor;

use super::group_query_attention::GroupQueryAttention;
use super::rotary_embedding::RotaryCaches;
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::transformer::RotaryEmbedding;
use crate::ops::transformer::heads::{ScoreOptions, WideHeads, attend};
use crate::ops::values::expect_float;

/// `SparseAttention` of domain `com.microsoft`.
///
/// Inputs: queries, keys and values `[B, S, hidden]` (or all in the first), the caches `[B, Hkv, M, D]`, the seen
/// blocks of each block of queries as rows and columns of CSR `[layouts, …]`, the longest length, the length of each
/// row of the batch, and optionally cosines and sines. Outputs: `[B, S, hidden]` and the caches with the new vectors.
/// Heads take the layouts in turn.
///
/// Source: Abdin et al. 2024, arXiv 2404.14219.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseAttention {
    /// Heads, scale and rotation.
    pub attention: GroupQueryAttention,
    /// Positions of a block.
    pub block_size: usize,
}

impl SparseAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let mut number = |name: &'static str| {
            let found = context.attributes.int(name)?;
            let found = found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")));
            bounds::length(found?, name)
        };
        let num_heads = number("num_heads")?;
        let kv_num_heads = number("kv_num_heads")?;
        let block_size = number("sparse_block_size")?;
        if kv_num_heads == 0 || num_heads == 0 || !num_heads.is_multiple_of(kv_num_heads) {
            return Err(OpError::new(format!("{num_heads} heads share {kv_num_heads}")));
        }
        if block_size == 0 {
            return Err(OpError::new("attribute 'sparse_block_size' is 0"));
        }
        let interleaved = context.attributes.flag("rotary_interleaved", false)?;
        let rotary = RotaryEmbedding { interleaved, rotary_dim: 0, num_heads: None };
        let attention = GroupQueryAttention {
            num_heads,
            kv_num_heads,
            scale: context.attributes.float("scale")?.filter(|scale| *scale != 0.0),
            softcap: 0.0,
            window: None,
            causal: true,
            rotary: context.attributes.flag("do_rotary", false)?.then_some(rotary),
            smooth_softmax: false,
        };
        Ok(Box::new(Self { attention, block_size }))
    }
}

/// Which blocks of keys each block of queries sees, by layout.
struct BlockLayouts {
    /// `[layouts, blocks + 1]`: where the columns of each row begin.
    rows: Vec<i64>,
    /// `[layouts, columns]`.
    columns: Vec<i64>,
    layouts: usize,
    width: usize,
    length: usize,
}

impl BlockLayouts {
    fn read(rows: &Tensor, columns: &Tensor, heads: usize) -> Result<Self, OpError> {
        match (rows.shape(), columns.shape()) {
            (&[layouts, width], &[own, length])
                if layouts == own && layouts > 0 && width > 1 && heads.is_multiple_of(layouts) =>
            {
                let (rows, columns) = (rows.to_i64_vec()?, columns.to_i64_vec()?);
                Ok(Self { rows, columns, layouts, width, length })
            }
            (rows, columns) => {
                let text = format!("layouts of rows {rows:?} and columns {columns:?}");
                Err(OpError::new(format!("{text} for {heads} heads")))
            }
        }
    }

    /// Returns whether a block of queries sees a block of keys. Behind the last row nothing is seen.
    fn sees(&self, head: usize, queries: usize, keys: usize) -> bool {
        let layout = head % self.layouts;
        let begin = |row: usize| {
            let found = self.rows.get(layout * self.width + row).filter(|_| row < self.width);
            found.and_then(|&at| usize::try_from(at).ok()).unwrap_or(0).min(self.length)
        };
        let own = layout * self.length;
        let (from, to) = (begin(queries), begin(queries + 1));
        let seen = self.columns.get(own + from..own + to).unwrap_or_default();
        seen.iter().any(|&column| usize::try_from(column) == Ok(keys))
    }
}

/// Length of each row of the batch, its new positions included, and how many those are.
struct RowLengths {
    totals: Vec<usize>,
    new: usize,
    is_prompt: bool,
}

impl RowLengths {
    fn read(inputs: OperatorInputs<'_, Tensor>, batch: usize, new: usize) -> Result<Self, OpError> {
        let longest = match inputs.required(7)?.to_i64_vec()?[..] {
            [one] => bounds::length(one, "total_sequence_length")?,
            _ => return Err(OpError::new("total_sequence_length is not a single integer")),
        };
        let totals = inputs.required(8)?.to_i64_vec()?;
        let total = |total: &i64| bounds::length(*total, "a length");
        let totals = collected(&mut totals.iter().map(total))?;
        let fits = |total: &usize| *total <= longest;
        if totals.len() != batch || !totals.iter().all(fits) || longest < new {
            return Err(OpError::new(format!(
                "lengths {totals:?} in a batch of {batch} of which the longest has {longest}"
            )));
        }
        Ok(Self { totals, new, is_prompt: longest == new })
    }

    /// How many positions a row has before its new ones. A prompt has none, whatever its padding.
    fn past(&self, batch: usize) -> usize {
        if self.is_prompt { 0 } else { self.totals[batch].saturating_sub(self.new) }
    }

    /// The cache with the new vectors at their positions.
    fn written(&self, new: &WideHeads, cache: &Tensor) -> Result<WideHeads, OpError> {
        let mut all = WideHeads::read(cache, None, "the cache")?;
        let [batch, heads, count, width] = new.shape;
        let longest = all.shape[2];
        if all.shape != [batch, heads, longest, width] {
            let text = format!("a cache {:?} for vectors {:?}", all.shape, new.shape);
            return Err(OpError::new(text));
        }
        for b in 0..batch {
            if self.past(b) + count > longest {
                let text = format!("{} positions and {count} new ones", self.past(b));
                return Err(OpError::new(format!("{text} in a cache of {longest}")));
            }
            for at in bounds::indices(&[heads, count]) {
                let [h, s] = at[..] else { continue };
                let slot = ((b * heads + h) * longest + self.past(b) + s) * width;
                all.values[slot..slot + width].copy_from_slice(new.vector(b, h, s));
            }
        }
        Ok(all)
    }
}

impl Operator for SparseAttention {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        expect_float(query.dtype)?;
        let cache = |index: usize| -> Result<Fact, OpError> {
            let past = inputs.required(index)?;
            Ok(Fact::shaped(past.dtype, past.shape.clone()))
        };
        let dim = |axis: usize| query.shape.as_ref().and_then(|dims| dims.get(axis).cloned());
        let dim = |axis: usize| dim(axis).unwrap_or(Dim::Unknown);
        let hidden = match inputs.optional(1) {
            Some(_) => dim(2),
            None => {
                let [own, shared] = [self.attention.num_heads, self.attention.kv_num_heads];
                let all = Dim::Known(own + 2 * shared);
                let width = bounds::quotient([&dim(2)], [&all]);
                bounds::product([&Dim::Known(own), &width])
            }
        };
        let output = Fact::new(query.dtype, vec![dim(0), dim(1), hidden]);
        Ok(vec![output, cache(3)?, cache(4)?])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let [mut q, mut k, v] = self.attention.projections(inputs)?;
        let [batch, heads, count, width] = q.shape;
        let lengths = RowLengths::read(inputs, batch, count)?;
        if let Some(rotary) = &self.attention.rotary {
            let caches = RotaryCaches::read(inputs.required(9)?, inputs.required(10)?)?;
            let rotary = RotaryEmbedding { rotary_dim: 2 * caches.pairs(), ..rotary.clone() };
            for heads in [&mut q, &mut k] {
                rotary.turn(heads, |b, s| {
                    caches.at(i64::try_from(lengths.past(b) + s).unwrap_or(i64::MAX))
                })?;
            }
        }
        let k = lengths.written(&k, inputs.required(3)?)?;
        let v = lengths.written(&v, inputs.required(4)?)?;
        let layouts = BlockLayouts::read(inputs.required(5)?, inputs.required(6)?, heads)?;
        let bias = |[b, h, s, t]: [usize; 4]| {
            let own = lengths.past(b) + s;
            let seen = t <= own && layouts.sees(h, own / self.block_size, t / self.block_size);
            if seen { 0.0 } else { f64::NEG_INFINITY }
        };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.attention.scale.map_or_else(|| 1.0 / (width as f64).sqrt(), f64::from);
        let scoring = ScoreOptions { scale, softcap: 0.0, bias: &bias, sink: None, stage: None };
        let output = attend(&q, &k, &v, &scoring)?.output;
        let dtype = inputs.required(0)?.dtype();
        Ok(vec![output.write_packed(dtype)?, k.write(dtype)?, v.write(dtype)?])
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::ops::testing::{attributes, int, run, tensor};

    const NAME: &str = "com.microsoft:SparseAttention";

    #[allow(clippy::cast_precision_loss, reason = "numbers below 16")]
    fn pattern(shape: &[usize], numbers: [usize; 2]) -> Tensor {
        let value = |at: usize| (((at * numbers[0] + numbers[1]) % 11) as f32 - 5.0) / 4.0;
        let all: Vec<f32> = (0..shape.iter().product()).map(value).collect();
        tensor(shape, &all)
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn each_head_sees_the_blocks_of_its_layout() {
        let of = |name, value| (name, int(value));
        let list =
            attributes([of("num_heads", 2), of("kv_num_heads", 1), of("sparse_block_size", 16)]);
        let q = pattern(&[1, 2, 16], [3, 1]);
        let (k, v) = (pattern(&[1, 2, 8], [5, 2]), pattern(&[1, 2, 8], [7, 3]));
        let (keys, values) = (pattern(&[1, 1, 64, 8], [3, 4]), pattern(&[1, 1, 64, 8], [7, 5]));
        let rows = tensor(&[2, 5], &[0_i32, 1, 3, 5, 9, 0, 1, 3, 5, 9]);
        let columns = [0_i32, 0, 1, 1, 2, 0, 1, 2, 3, 0, 0, 1, 0, 2, 0, 1, 2, 3];
        let columns = tensor(&[2, 9], &columns);
        let longest = Tensor::scalar(35_i32);
        let lengths = Tensor::vector(vec![35_i32]);
        let all = [&q, &k, &v, &keys, &values, &rows, &columns, &longest, &lengths];
        let inputs: Vec<Option<&Tensor>> = all.into_iter().map(Some).collect();
        let found = run(NAME, 1, &list, &inputs, 3).unwrap();
        let output = found[0].to_vec::<f32>().unwrap();
        let expected = [
            (0, [0.203_281_8, 0.189_971_24, -0.230_743_33]),
            (8, [0.220_337_05, -0.416_209_3, 0.036_380_857]),
            (29, [0.139_788_52, 0.132_525_34, -0.085_958_76]),
        ];
        for (at, expected) in expected {
            for (found, expected) in output[at..].iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{at}: {found}");
            }
        }
        // The cache keeps what stands beside the new positions 33 and 34.
        let present = found[1].to_vec::<f32>().unwrap();
        let firsts: Vec<f32> = (32..36).map(|position| present[position * 8]).collect();
        assert_eq!(firsts, [-0.75, -0.75, 1.0, 0.75]);
        let short = Tensor::scalar(30_i32);
        let mut wrong = inputs.clone();
        wrong[7] = Some(&short);
        assert!(run(NAME, 1, &list, &wrong, 3).unwrap_err().contains("the longest has 30"));
    }
}

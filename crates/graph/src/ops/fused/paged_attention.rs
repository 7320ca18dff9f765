//! `PagedAttention`: rows of several sequences at once, whose keys and values lie in blocks.

use galatea_tensor::{DataType, Tensor};

use crate::attribute::{Attributes, named};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_float, expect_type, floats, from_floats, from_integers};

/// Causal attention of the newest rows of several sequences, which it also writes to a cache of
/// blocks: `softmax(scale Q Kᵀ) V` over all positions up to a row's own.
///
/// The rows of all sequences follow each other; those of sequence `b` are `starts[b]..starts[b + 1]`
/// and are the last of its `lengths[b]` positions. Position `p` of it lies in block
/// `blocks[b, p / S]` of `S` positions, at `p % S`. Neighbouring query heads share a key head. First
/// all keys and values are written, then all rows are computed; what one sequence writes, no other
/// one may read or write.
///
/// Inputs: `Q` `[T, num_heads · D]`, `K` `[T, kv_num_heads · D]`, `V` `[T, kv_num_heads · E]`, the
/// caches of keys `[N, kv_num_heads, D, S]`, where an element of neighbouring positions is a vector,
/// and of values `[N, kv_num_heads, S, E]`, `starts` `[B + 1]`, `lengths` `[B]` and `blocks` `[B, M]`
/// of INT64; of caches of INT8 also their scales,
/// `[N, kv_num_heads, S]` of FP32: a vector is its bytes times its scale, which is the 127th part of
/// its greatest magnitude. Outputs: `[T, num_heads · E]`, the caches, and the scales if there are any.
/// Types: rows of FP32, FP16 or BF16; caches of these or of INT8.
///
/// Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
/// PagedAttention", arXiv 2309.06180.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedAttention {
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values; a divisor of `num_heads`.
    pub kv_num_heads: usize,
    /// Factor on scores; `None` is `1 / sqrt(D)`.
    pub scale: Option<f32>,
    /// How many positions a row sees, its own included; 0 is all.
    pub window: usize,
    /// Scores `x` become `softcap · tanh(x / softcap)`; 0 leaves them.
    pub softcap: f32,
}

/// Where the caches' inputs begin, and those of their scales.
const CACHES: usize = 3;
const SCALES: usize = 8;

/// The greatest magnitude of a byte.
const MOST: f64 = 127.0;

impl PagedAttention {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let length = |value: Option<i64>, name: &'static str| {
            let value = value.ok_or_else(|| OpError::new(format!("{name} is missing")))?;
            bounds::length(value, name)
        };
        let num_heads = length(attributes.int("num_heads")?, "num_heads")?;
        let kv_num_heads = length(attributes.int("kv_num_heads")?, "kv_num_heads")?;
        if kv_num_heads == 0 || num_heads == 0 || !num_heads.is_multiple_of(kv_num_heads) {
            return Err(OpError::new(format!(
                "{num_heads} heads of queries cannot share {kv_num_heads} heads of keys"
            )));
        }
        let window = bounds::length(attributes.int_or("window", 0)?, "window")?;
        let scale = attributes.float("scale")?;
        let softcap = attributes.float_or("softcap", 0.0)?;
        if !(softcap.is_finite() && softcap >= 0.0) {
            return Err(OpError::new(format!("softcap is {softcap}, expected 0 or more")));
        }
        Ok(Box::new(Self { num_heads, kv_num_heads, scale, window, softcap }))
    }

    /// The sequences of a step, and where their rows and blocks are.
    ///
    /// # Errors
    /// Fails when inputs contradict each other or name what does not exist.
    pub fn steps(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<PagedSteps, OpError> {
        let keys = inputs.required(CACHES)?;
        let values = inputs.required(CACHES + 1)?;
        if keys.dtype() != values.dtype() {
            let keys = keys.dtype();
            let values = values.dtype();
            return Err(OpError::new(format!("caches of {keys} and {values}")));
        }
        let shape = |at: usize| inputs.required(at).map(Tensor::shape);
        let shapes = PagedShapes {
            rows: [shape(0)?, shape(1)?, shape(2)?],
            caches: [keys.shape(), values.shape()],
            blocks: shape(7)?,
        };
        let numbers = |at: usize| Ok::<_, OpError>(inputs.required(at)?.to_i64_vec()?);
        let steps = self.steps_of(&shapes, &numbers(5)?, &numbers(6)?, numbers(7)?)?;
        for at in [SCALES, SCALES + 1] {
            let bytes = keys.dtype() == DataType::Int8;
            let wanted = bytes.then(|| &values.shape()[..3]);
            let found = inputs.optional(at).map(Tensor::shape);
            if found != wanted {
                return Err(OpError::new(format!("scales {found:?}, expected {wanted:?}")));
            }
        }
        Ok(steps)
    }

    /// Returns the same as [`PagedAttention::steps`], from shapes and numbers instead of tensors.
    ///
    /// # Errors
    /// Fails like [`PagedAttention::steps`].
    pub fn steps_of(
        &self,
        shapes: &PagedShapes<'_>,
        starts: &[i64],
        lengths: &[i64],
        blocks: Vec<i64>,
    ) -> Result<PagedSteps, OpError> {
        let [keys, values] = shapes.caches;
        let (&[count, heads, width, block], &[n, h, s, value_width]) = (keys, values) else {
            return Err(OpError::new(format!(
                "caches of shapes {keys:?} and {values:?}, expected four axes"
            )));
        };
        if [n, h, s] != [count, heads, block] || heads != self.kv_num_heads || block == 0 {
            return Err(OpError::new(format!(
                "caches {keys:?} and {values:?} for {} heads",
                self.kv_num_heads
            )));
        }
        let steps = PagedSteps {
            starts: bounds::lengths(starts, "starts")?,
            lengths: bounds::lengths(lengths, "lengths")?,
            blocks,
            block,
            widths: [width, value_width],
        };
        let rows = steps.starts.last().copied().unwrap_or(0);
        let columns = [self.num_heads * width, heads * width, heads * value_width];
        for ((name, columns), found) in ["Q", "K", "V"].into_iter().zip(columns).zip(shapes.rows) {
            if found != [rows, columns] {
                return Err(OpError::new(format!(
                    "{name} is {found:?}, expected [{rows}, {columns}]"
                )));
            }
        }
        steps.check(shapes.blocks, count)?;
        Ok(steps)
    }
}

/// Shapes of a step's inputs.
#[derive(Clone, Copy, Debug)]
pub struct PagedShapes<'a> {
    /// Shapes of Q, K and V.
    pub rows: [&'a [usize]; 3],
    /// Shapes of the caches of keys and of values.
    pub caches: [&'a [usize]; 2],
    /// Shape of the blocks.
    pub blocks: &'a [usize],
}

/// The sequences of a step: rows, positions and blocks, which fit each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedSteps {
    /// The first row of each sequence, and the number of all rows.
    pub starts: Vec<usize>,
    /// Positions of each sequence, the new ones included.
    pub lengths: Vec<usize>,
    /// Blocks of each sequence.
    blocks: Vec<i64>,
    /// Positions of a block.
    pub block: usize,
    /// Lengths of a key and of a value.
    pub widths: [usize; 2],
}

impl PagedSteps {
    fn check(&self, blocks: &[usize], count: usize) -> Result<(), OpError> {
        let batch = self.lengths.len();
        let ordered = self.starts.first() == Some(&0) && self.starts.is_sorted();
        if self.starts.len() != batch + 1 || !ordered {
            let starts = &self.starts;
            return Err(OpError::new(format!("starts {starts:?} for {batch} sequences")));
        }
        let &[own, most] = blocks else {
            return Err(OpError::new(format!("blocks of shape {blocks:?}, expected two axes")));
        };
        if own != batch {
            return Err(OpError::new(format!("blocks of {own} sequences, expected {batch}")));
        }
        for (sequence, &length) in self.lengths.iter().enumerate() {
            let rows = self.starts[sequence + 1] - self.starts[sequence];
            let used = length.div_ceil(self.block);
            if rows > length || used > most {
                return Err(OpError::new(format!(
                    "sequence {sequence} has {rows} rows and {length} positions in {most} blocks of {}",
                    self.block
                )));
            }
            let all = &self.blocks[sequence * most..][..used];
            let bad = |&&block: &&i64| !usize::try_from(block).is_ok_and(|block| block < count);
            if let Some(block) = all.iter().find(bad) {
                return Err(OpError::new(format!(
                    "sequence {sequence} has block {block}, the caches have {count}"
                )));
            }
        }
        Ok(())
    }

    /// Blocks of all sequences, as many for each; those behind a sequence's last position mean nothing.
    #[must_use]
    pub fn blocks(&self) -> &[i64] {
        &self.blocks
    }

    /// The block of a position, and the place in it.
    #[must_use]
    pub fn place(&self, sequence: usize, position: usize) -> (usize, usize) {
        let most = self.blocks.len() / self.lengths.len().max(1);
        let block = self.blocks[sequence * most + position / self.block];
        (usize::try_from(block).unwrap_or(0), position % self.block)
    }

    /// Every row with its sequence and position.
    fn rows(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.lengths.iter().enumerate().flat_map(|(sequence, &length)| {
            let rows = self.starts[sequence]..self.starts[sequence + 1];
            let before = length - rows.len();
            rows.enumerate().map(move |(i, row)| (row, sequence, before + i))
        })
    }
}

/// A cache as numbers.
struct CacheNumbers {
    dtype: DataType,
    shape: Vec<usize>,
    values: Vec<f64>,
    /// Scales of the vectors, if the cache is of bytes.
    scales: Option<Vec<f64>>,
    /// True if vectors of a block lie element by element.
    across: bool,
}

impl CacheNumbers {
    fn read(cache: &Tensor, scales: Option<&Tensor>, across: bool) -> Result<Self, OpError> {
        let dtype = cache.dtype();
        let shape = cache.shape().to_vec();
        let values = match dtype {
            DataType::Int8 => cache.to_vec::<i8>()?.into_iter().map(f64::from).collect(),
            _ => floats(cache)?,
        };
        Ok(Self { dtype, shape, values, scales: scales.map(floats).transpose()?, across })
    }

    /// Positions of a block, and elements of a vector.
    fn sizes(&self) -> (usize, usize) {
        if self.across { (self.shape[3], self.shape[2]) } else { (self.shape[2], self.shape[3]) }
    }

    /// The number of the vector at a place.
    fn vector(&self, head: usize, block: usize, at: usize) -> usize {
        (block * self.shape[1] + head) * self.sizes().0 + at
    }

    /// Where the elements of a vector are.
    fn places(&self, vector: usize) -> impl Iterator<Item = usize> + use<> {
        let ((block, width), across) = (self.sizes(), self.across);
        (0..width).map(move |i| match across {
            true => (vector / block * width + i) * block + vector % block,
            false => vector * width + i,
        })
    }

    fn write(&mut self, vector: usize, row: &[f64]) -> Result<(), OpError> {
        // What is read back is rounded to the cache's type.
        let rounded = match &mut self.scales {
            None => floats(&from_floats(self.dtype, &[row.len()], row.to_vec())?)?,
            Some(scales) => {
                let greatest = row.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                #[allow(clippy::cast_possible_truncation, reason = "scales are FP32")]
                let scale = f64::from((greatest / MOST) as f32);
                scales[vector] = scale;
                let whole = |x: f64| if scale > 0.0 { (x / scale).round_ties_even() } else { 0.0 };
                row.iter().map(|&x| whole(x).clamp(-MOST, MOST)).collect()
            }
        };
        for (place, x) in self.places(vector).zip(rounded) {
            self.values[place] = x;
        }
        Ok(())
    }

    fn row(&self, vector: usize) -> impl Iterator<Item = f64> + '_ {
        let scale = self.scales.as_ref().map_or(1.0, |scales| scales[vector]);
        self.places(vector).map(move |place| self.values[place] * scale)
    }

    /// The cache, and its scales if it has some.
    fn finish(self) -> Result<(Tensor, Option<Tensor>), OpError> {
        let block = self.sizes().0;
        let Some(scales) = self.scales else {
            return Ok((from_floats(self.dtype, &self.shape, self.values)?, None));
        };
        #[allow(clippy::cast_possible_truncation, reason = "limited to bytes when written")]
        let bytes: Vec<i128> = self.values.into_iter().map(|x| x as i128).collect();
        let cache = from_integers(self.dtype, &self.shape, &bytes)?;
        Ok((
            cache,
            Some(from_floats(DataType::Fp32, &[self.shape[0], self.shape[1], block], scales)?),
        ))
    }
}

impl Operator for PagedAttention {
    fn attributes(&self) -> Option<Attributes> {
        let int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX).into();
        let mut all = named([
            ("num_heads", int(self.num_heads)),
            ("kv_num_heads", int(self.kv_num_heads)),
            ("window", int(self.window)),
            ("softcap", self.softcap.into()),
        ]);
        if let Some(scale) = self.scale {
            all.insert("scale".to_owned(), scale.into());
        }
        Some(all)
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let q = inputs.required(0)?;
        expect_float(q.dtype)?;
        for (at, name) in (5..SCALES).zip(["starts", "lengths", "blocks"]) {
            let found = inputs.required(at)?.dtype;
            expect_type(name, found, |dtype| dtype == DataType::Int64, "INT64")?;
        }
        let caches = [inputs.required(CACHES)?, inputs.required(CACHES + 1)?];
        let rows = q.shape.as_ref().and_then(|dims| dims.first().cloned());
        let width = caches[1].shape.as_ref().and_then(|dims| dims.get(3)).and_then(Dim::known);
        let columns = width.map_or(Dim::Unknown, |width| Dim::Known(self.num_heads * width));
        let result = Fact::new(q.dtype, vec![rows.unwrap_or(Dim::Unknown), columns]);
        let kept = |fact: &Fact| Fact { value: None, elements: None, ..fact.clone() };
        let scales = (SCALES..SCALES + 2).filter_map(|at| inputs.optional(at));
        Ok(std::iter::once(result).chain(caches.into_iter().chain(scales).map(kept)).collect())
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let steps = self.steps(inputs)?;
        let mut keys = CacheNumbers::read(inputs.required(CACHES)?, inputs.optional(SCALES), true)?;
        let scales = inputs.optional(SCALES + 1);
        let mut values = CacheNumbers::read(inputs.required(CACHES + 1)?, scales, false)?;
        let dtype = inputs.required(0)?.dtype();
        let rows_of = |at: usize| floats(inputs.required(at)?);
        let q = rows_of(0)?;
        let k = rows_of(1)?;
        let v = rows_of(2)?;
        let [width, value_width] = steps.widths;
        for (row, sequence, position) in steps.rows() {
            let (block, at) = steps.place(sequence, position);
            for head in 0..self.kv_num_heads {
                let own = row * self.kv_num_heads + head;
                let key = keys.vector(head, block, at);
                let value = values.vector(head, block, at);
                keys.write(key, &k[own * width..][..width])?;
                values.write(value, &v[own * value_width..][..value_width])?;
            }
        }
        let scale = self.scale.map_or(1.0 / (width as f64).sqrt(), f64::from);
        let cap = f64::from(self.softcap);
        let mut result = Vec::new();
        for (row, sequence, position) in steps.rows() {
            let first = match self.window {
                0 => 0,
                window => (position + 1).saturating_sub(window),
            };
            for head in 0..self.num_heads {
                let shared = head / (self.num_heads / self.kv_num_heads);
                let query = &q[(row * self.num_heads + head) * width..][..width];
                let places = (first..=position).map(|p| steps.place(sequence, p));
                let vectors: Vec<usize> =
                    places.map(|(block, at)| keys.vector(shared, block, at)).collect();
                let score = |&vector: &usize| {
                    let product: f64 = query.iter().zip(keys.row(vector)).map(|(q, k)| q * k).sum();
                    let scaled = scale * product;
                    if cap > 0.0 { cap * (scaled / cap).tanh() } else { scaled }
                };
                let scores: Vec<f64> = vectors.iter().map(score).collect();
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
                let total: f64 = weights.iter().sum();
                let mut sums = vec![0.0; value_width];
                // A vector of keys and one of values have the same number.
                for (&vector, weight) in vectors.iter().zip(weights) {
                    for (sum, value) in sums.iter_mut().zip(values.row(vector)) {
                        *sum += weight / total * value;
                    }
                }
                result.extend(sums);
            }
        }
        let rows = steps.starts.last().copied().unwrap_or(0);
        let result = from_floats(dtype, &[rows, self.num_heads * value_width], result)?;
        let ((keys, key_scales), (values, value_scales)) = (keys.finish()?, values.finish()?);
        let scales = key_scales.into_iter().chain(value_scales);
        Ok([result, keys, values].into_iter().chain(scales).collect())
    }
}

#[cfg(test)]
#[path = "paged_attention_tests.rs"]
mod tests;

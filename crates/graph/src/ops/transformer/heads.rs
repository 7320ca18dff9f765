//! Queries, keys and values as batches of heads, and attention over them.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{floats, from_floats};

/// Vectors by batch, head and position: `[B, H, S, D]` in row-major order, widened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WideHeads {
    /// Batch, heads, positions and elements of a vector.
    pub(crate) shape: [usize; 4],
    /// The elements.
    pub(crate) values: Vec<f64>,
}

impl WideHeads {
    /// Reads `[B, H, S, D]`, or `[B, S, H · D]` with the number of heads.
    ///
    /// # Errors
    /// Fails when the rank is another, or the heads do not divide the last axis.
    pub(crate) fn read(tensor: &Tensor, heads: Option<usize>, what: &str) -> Result<Self, OpError> {
        let stored = match *tensor.shape() {
            [_, _, _, _] => tensor.clone(),
            [batch, positions, hidden] => {
                let heads = heads.ok_or_else(|| {
                    OpError::new(format!("{what} has 3 axes, and the number of heads is missing"))
                })?;
                let width = divided(hidden, heads, what)?;
                tensor.reshape(&[batch, positions, heads, width])?.permute(&[0, 2, 1, 3])?
            }
            _ => {
                return Err(OpError::new(format!(
                    "{what} has shape {:?}, expected 3 or 4 axes",
                    tensor.shape()
                )));
            }
        };
        let shape = stored.shape().try_into().unwrap_or([0; 4]);
        Ok(Self { shape, values: floats(&stored)? })
    }

    /// These heads with those of `past` before them along the positions.
    ///
    /// # Errors
    /// Fails when batch, heads or width differ, or the result is too large.
    pub(crate) fn after(self, past: Option<&Tensor>, what: &str) -> Result<Self, OpError> {
        let Some(past) = past else { return Ok(self) };
        let past = Self::read(past, None, what)?;
        let [b, h, s, d] = self.shape;
        let [pb, ph, ps, pd] = past.shape;
        if [b, h, d] != [pb, ph, pd] {
            return Err(OpError::new(format!(
                "{what} has shape {:?}, and new vectors have {:?}",
                past.shape, self.shape
            )));
        }
        let shape = [b, h, ps.saturating_add(s), d];
        let mut values = Vec::with_capacity(bounded(DataType::Fp64, &shape)?);
        for head in 0..b * h {
            values.extend_from_slice(&past.values[head * ps * d..(head + 1) * ps * d]);
            values.extend_from_slice(&self.values[head * s * d..(head + 1) * s * d]);
        }
        Ok(Self { shape, values })
    }

    /// The vector at a batch, head and position.
    pub(crate) fn vector(&self, batch: usize, head: usize, position: usize) -> &[f64] {
        let [_, h, s, d] = self.shape;
        let at = ((batch * h + head) * s + position) * d;
        &self.values[at..at + d]
    }

    /// A tensor `[B, H, S, D]`.
    pub(crate) fn write(&self, dtype: DataType) -> Result<Tensor, OpError> {
        from_floats(dtype, &self.shape, self.values.clone())
    }

    /// A tensor `[B, S, H · D]`.
    pub(crate) fn write_packed(&self, dtype: DataType) -> Result<Tensor, OpError> {
        let [b, h, s, d] = self.shape;
        let turned = self.write(dtype)?.permute(&[0, 2, 1, 3])?;
        Ok(turned.reshape(&[b, s, h * d])?)
    }
}

/// The width of a head.
pub(crate) fn divided(hidden: usize, heads: usize, what: &str) -> Result<usize, OpError> {
    if heads == 0 || !hidden.is_multiple_of(heads) {
        return Err(OpError::new(format!("{hidden} elements of {what} in {heads} heads")));
    }
    Ok(hidden / heads)
}

/// The axes `[B, H, S, D]` that [`WideHeads::read`] would make of a fact; `None` where the rank is
/// unknown.
///
/// # Errors
/// Fails when the rank is neither 3 nor 4.
pub(crate) fn head_dims(
    fact: &Fact,
    heads: Option<usize>,
    what: &str,
) -> Result<Option<[Dim; 4]>, OpError> {
    match fact.shape.as_deref() {
        None => Ok(None),
        Some([b, h, s, d]) => Ok(Some([b.clone(), h.clone(), s.clone(), d.clone()])),
        Some([b, s, hidden]) => {
            let heads = heads.ok_or_else(|| {
                OpError::new(format!("{what} has 3 axes, and the number of heads is missing"))
            })?;
            if let Some(hidden) = hidden.known() {
                divided(hidden, heads, what)?;
            }
            let width = bounds::quotient([hidden], [&Dim::Known(heads)]);
            Ok(Some([b.clone(), Dim::Known(heads), s.clone(), width]))
        }
        Some(other) => {
            Err(OpError::new(format!("{what} has {} axes, expected 3 or 4", other.len())))
        }
    }
}

/// Stage at which the scores are an output of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreStage {
    /// After scaling the products of queries and keys.
    Raw,
    /// After the soft cap.
    Capped,
    /// After adding the bias.
    Biased,
    /// After the softmax.
    Weights,
}

/// How queries weigh keys.
pub(crate) struct ScoreOptions<'a> {
    /// Factor on the products.
    pub(crate) scale: f64,
    /// `cap · tanh(score / cap)` where it is above 0.
    pub(crate) softcap: f64,
    /// Added to the score of `[batch, head, query, key]`; −∞ hides the key.
    pub(crate) bias: &'a dyn Fn([usize; 4]) -> f64,
    /// One more score a head that takes part in the softmax and stands for no key.
    pub(crate) sink: Option<&'a dyn Fn(usize) -> f64>,
    /// Which scores to keep.
    pub(crate) stage: Option<ScoreStage>,
}

/// The results of attention.
pub(crate) struct AttentionResults {
    /// `[B, H, S, E]`.
    pub(crate) output: WideHeads,
    /// The scores of the stage that was asked for, `[B, H, S, T]`; empty if none was.
    pub(crate) scores: WideHeads,
}

/// `softmax(cap(scale · Q·Kᵀ) + bias) · V`. Query head `h` reads key head `h / (H / Hkv)`. A query
/// that sees no key gives zeros.
///
/// Source: Vaswani et al. 2017, arXiv 1706.03762; grouped heads: Ainslie et al. 2023, arXiv
/// 2305.13245.
pub(crate) fn attend(
    q: &WideHeads,
    k: &WideHeads,
    v: &WideHeads,
    scoring: &ScoreOptions<'_>,
) -> Result<AttentionResults, OpError> {
    let ([b, h, s, d], [_, groups, t, _], [_, _, _, e]) = (q.shape, k.shape, v.shape);
    let fits = k.shape == [b, groups, t, d] && v.shape == [b, groups, t, e];
    if !fits || groups == 0 || !h.is_multiple_of(groups) {
        return Err(OpError::new(format!(
            "queries {:?}, keys {:?} and values {:?} do not fit each other",
            q.shape, k.shape, v.shape
        )));
    }
    let out_shape = [b, h, s, e];
    let score_shape = if scoring.stage.is_some() { [b, h, s, t] } else { [0; 4] };
    let mut output = Vec::with_capacity(bounded(DataType::Fp64, &out_shape)?);
    let mut scores = Vec::with_capacity(bounded(DataType::Fp64, &score_shape)?);
    for at in bounds::indices(&[b, h, s]) {
        let [batch, head, query] = at[..] else { continue };
        let group = head / (h / groups);
        let row = score_row(q.vector(batch, head, query), k, batch, group, scoring, &at);
        scores.extend_from_slice(&row.kept);
        let mut sums = vec![0.0; e];
        for (key, weight) in row.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            for (sum, value) in sums.iter_mut().zip(v.vector(batch, group, key)) {
                *sum += weight * value;
            }
        }
        output.extend(sums);
    }
    Ok(AttentionResults {
        output: WideHeads { shape: out_shape, values: output },
        scores: WideHeads { shape: score_shape, values: scores },
    })
}

struct AttendedRow {
    weights: Vec<f64>,
    kept: Vec<f64>,
}

fn score_row(
    query: &[f64],
    k: &WideHeads,
    batch: usize,
    group: usize,
    scoring: &ScoreOptions<'_>,
    at: &[usize],
) -> AttendedRow {
    let keys = k.shape[2];
    let keep = |stage: ScoreStage, row: &[f64]| {
        if scoring.stage == Some(stage) { row.to_vec() } else { Vec::new() }
    };
    let mut row: Vec<f64> = (0..keys)
        .map(|key| {
            let key = k.vector(batch, group, key);
            query.iter().zip(key).map(|(x, y)| x * y).sum::<f64>() * scoring.scale
        })
        .collect();
    let mut kept = keep(ScoreStage::Raw, &row);
    if scoring.softcap > 0.0 {
        row.iter_mut().for_each(|x| *x = (*x / scoring.softcap).tanh() * scoring.softcap);
    }
    kept.extend(keep(ScoreStage::Capped, &row));
    let mut visible = false;
    for (key, score) in row.iter_mut().enumerate() {
        let bias = (scoring.bias)([batch, at[1], at[2], key]);
        visible |= bias != f64::NEG_INFINITY;
        *score = if bias == f64::NEG_INFINITY { bias } else { *score + bias };
    }
    kept.extend(keep(ScoreStage::Biased, &row));
    softmax(&mut row, scoring.sink.map(|sink| sink(at[1])));
    if !visible {
        row.fill(0.0);
    }
    kept.extend(keep(ScoreStage::Weights, &row));
    AttendedRow { weights: row, kept }
}

/// Exponentials relative to their sum, to which `sink` belongs where there is one. Scores that are
/// all −∞ give zeros.
pub(super) fn softmax(row: &mut [f64], sink: Option<f64>) {
    let max = row.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        row.fill(0.0);
        return;
    }
    row.iter_mut().for_each(|score| *score = (*score - max).exp());
    let sum = row.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - max).exp());
    row.iter_mut().for_each(|score| *score /= sum);
}

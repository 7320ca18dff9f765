//! `FusedAttention`: scaled dot-product attention over any storage order of its axes.

use galatea_tensor::Tensor;

use super::widened::{narrowed, widened};
use crate::attribute::{Attributes, named};
use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};

/// `softmax(scale · Q·Kᵀ + mask) · V` per batch and head.
///
/// Inputs: `Q` `[B, H, S, D]`, `K` `[B, Hkv, T, D]`, `V` `[B, Hkv, T, E]` after applying the
/// permutations below to the stored axes; optional additive `mask`, broadcast to `[B, H, S, T]`.
/// `H` is a multiple of `Hkv`: query head `h` reads key head `h / (H / Hkv)`.
/// Output: `[B, H, S, E]`, stored with its axes permuted by `out_perm`.
/// Types: FP32, FP64, FP16, BF16; sums are kept in f64.
/// Source: Vaswani et al. 2017, arXiv 1706.03762; grouped heads: Ainslie et al. 2023, arXiv
/// 2305.13245.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedAttention {
    /// Factor on the scores; usually 1/√D.
    pub scale: f32,
    /// Axis `i` of `[B, H, S, D]` is axis `q_perm[i]` of the stored `Q`.
    pub q_perm: [usize; 4],
    /// Same as `q_perm`, for `K`.
    pub k_perm: [usize; 4],
    /// Same as `q_perm`, for `V`.
    pub v_perm: [usize; 4],
    /// Axis `i` of the stored output is axis `out_perm[i]` of `[B, H, S, E]`.
    pub out_perm: [usize; 4],
    /// True if a query whose every score is −∞ gives zeros; without it NaN, as softmax does.
    pub masked_to_zero: bool,
    /// True if query `i` sees keys up to `i + T − S` only: the queries are the last of the sequence.
    pub causal: bool,
}

impl FusedAttention {
    /// Storage in `[B, H, S, D]` order.
    pub const IN_ORDER: [usize; 4] = [0, 1, 2, 3];

    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let scale = context.attributes.float_or("scale", 1.0)?;
        let q_perm = order(context, "q_perm")?;
        let k_perm = order(context, "k_perm")?;
        let v_perm = order(context, "v_perm")?;
        let out_perm = order(context, "out_perm")?;
        let masked_to_zero = context.attributes.flag("masked_to_zero", false)?;
        let causal = context.attributes.flag("causal", false)?;
        Ok(Box::new(Self { scale, q_perm, k_perm, v_perm, out_perm, masked_to_zero, causal }))
    }
}

/// An attribute that orders four axes.
pub(super) fn order(
    context: &mut ParseContext<'_>,
    name: &'static str,
) -> Result<[usize; 4], OpError> {
    let Some(axes) = context.attributes.ints(name)? else { return Ok(FusedAttention::IN_ORDER) };
    let wrong = || OpError::new(format!("'{name}' is {axes:?}, not an order of four axes"));
    let found: Vec<usize> =
        collected(&mut axes.iter().map(|&axis| usize::try_from(axis))).map_err(|_| wrong())?;
    let mut sorted = found.clone();
    sorted.sort_unstable();
    if sorted != FusedAttention::IN_ORDER {
        return Err(wrong());
    }
    found.try_into().map_err(|_| wrong())
}

/// The lengths of a stored value in the order of the axes that the operator names.
pub(super) fn four<T: Clone>(name: &str, shape: &[T], perm: [usize; 4]) -> Result<[T; 4], OpError> {
    let shape: &[T; 4] = shape.try_into().map_err(|_| {
        OpError::new(format!("input {name} must have 4 axes, found {}", shape.len()))
    })?;
    Ok(perm.map(|axis| shape[axis].clone()))
}

impl Operator for FusedAttention {
    fn attributes(&self) -> Option<Attributes> {
        Some(named([
            ("scale", self.scale.into()),
            ("q_perm", self.q_perm.as_slice().into()),
            ("k_perm", self.k_perm.as_slice().into()),
            ("v_perm", self.v_perm.as_slice().into()),
            ("out_perm", self.out_perm.as_slice().into()),
            ("masked_to_zero", self.masked_to_zero.into()),
            ("causal", self.causal.into()),
        ]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let q = inputs.required(0)?;
        let v = inputs.required(2)?;
        let (Some(q_shape), Some(v_shape)) = (&q.shape, &v.shape) else {
            return Ok(vec![Fact::new(q.dtype, vec![Dim::Unknown; 4])]);
        };
        let [b, h, s, _] = four("Q", q_shape, self.q_perm)?;
        let [_, _, _, e] = four("V", v_shape, self.v_perm)?;
        let plain = [b, h, s, e];
        let stored = self.out_perm.iter().map(|&axis| plain[axis].clone()).collect();
        Ok(vec![Fact::new(q.dtype, stored)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        Ok(vec![self.attend(inputs)?])
    }
}

impl FusedAttention {
    fn attend(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Tensor, OpError> {
        let dtype = inputs.required(0)?.dtype();
        let plain = |index: usize, name: &str, perm: [usize; 4]| -> Result<_, OpError> {
            let tensor = inputs.required(index)?;
            let shape = four(name, tensor.shape(), perm)?;
            Ok((shape, widened(&tensor.permute(&perm)?, dtype)?))
        };
        let ([b, h, s, d], q) = plain(0, "Q", self.q_perm)?;
        let ([kb, kv_heads, t, kd], k) = plain(1, "K", self.k_perm)?;
        let ([vb, v_heads, vt, e], v) = plain(2, "V", self.v_perm)?;
        let fits = kb == b && vb == b && kd == d && vt == t && v_heads == kv_heads;
        if !fits || kv_heads == 0 || h % kv_heads != 0 {
            return Err(OpError::new(format!(
                "Q {:?}, K {:?} and V {:?} do not fit each other",
                [b, h, s, d],
                [kb, kv_heads, t, kd],
                [vb, v_heads, vt, e]
            )));
        }
        let mask = inputs
            .optional(3)
            .map(|mask| widened(&mask.broadcast_to(&[b, h, s, t])?, dtype))
            .transpose()?;
        let mut result = Vec::with_capacity(b * h * s * e);
        for row in 0..b * h * s {
            let head = row / s;
            let kv = head / h * kv_heads + head % h / (h / kv_heads);
            let mut scores: Vec<f64> = (0..t)
                .map(|at| {
                    let key = &k[(kv * t + at) * d..][..d];
                    let dot: f64 = q[row * d..][..d].iter().zip(key).map(|(x, y)| x * y).sum();
                    let masked = mask.as_ref().map_or(0.0, |mask| mask[row * t + at]);
                    let hidden = self.causal && at + s > row % s + t;
                    let masked = if hidden { f64::NEG_INFINITY } else { masked };
                    dot * f64::from(self.scale) + masked
                })
                .collect();
            softmax(&mut scores);
            if self.masked_to_zero {
                scores.iter_mut().filter(|score| score.is_nan()).for_each(|score| *score = 0.0);
            }
            result.extend((0..e).map(|column| {
                let weighted = scores.iter().enumerate();
                weighted.map(|(at, w)| w * v[(kv * t + at) * e + column]).sum::<f64>()
            }));
        }
        Ok(narrowed(dtype, &[b, h, s, e], result)?.permute(&self.out_perm)?.contiguous()?)
    }
}

fn softmax(scores: &mut [f64]) {
    let max = scores.iter().fold(f64::NEG_INFINITY, |max, &score| max.max(score));
    for score in scores.iter_mut() {
        *score = (*score - max).exp();
    }
    let sum: f64 = scores.iter().sum();
    for score in scores {
        *score /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attention(out_perm: [usize; 4], k_perm: [usize; 4]) -> FusedAttention {
        let order = FusedAttention::IN_ORDER;
        let masked_to_zero = false;
        let causal = false;
        let q_perm = order;
        let v_perm = order;
        FusedAttention { scale: 1.0, q_perm, k_perm, v_perm, out_perm, masked_to_zero, causal }
    }

    #[test]
    fn a_mask_selects_the_key_and_grouped_heads_share_it() {
        let q = Tensor::zeros(galatea_tensor::DataType::Fp32, &[1, 2, 1, 2]).unwrap();
        let k = Tensor::from_slice(&[1, 1, 2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let v = Tensor::from_slice(&[1, 1, 2, 1], &[5.0_f32, 7.0]).unwrap();
        let mask = Tensor::from_slice(&[1, 1, 1, 2], &[0.0_f32, f32::NEG_INFINITY]).unwrap();
        let op = attention(FusedAttention::IN_ORDER, FusedAttention::IN_ORDER);
        let masked = op
            .reference(OperatorInputs::new(&[Some(&q), Some(&k), Some(&v), Some(&mask)]))
            .unwrap();
        assert_eq!(masked[0].to_vec::<f32>().unwrap(), [5.0, 5.0]);
        let free = op.reference(OperatorInputs::new(&[Some(&q), Some(&k), Some(&v)])).unwrap();
        assert_eq!(free[0].to_vec::<f32>().unwrap(), [6.0, 6.0]);
    }

    #[test]
    fn a_query_without_keys_gives_zeros_where_asked() {
        let one = Tensor::from_slice(&[1, 1, 1, 1], &[1.0_f32]).unwrap();
        let mask = Tensor::from_slice(&[1], &[f32::NEG_INFINITY]).unwrap();
        let inputs = [Some(&one), Some(&one), Some(&one), Some(&mask)];
        let plain = attention(FusedAttention::IN_ORDER, FusedAttention::IN_ORDER);
        let nan = plain.reference(OperatorInputs::new(&inputs)).unwrap()[0].item::<f32>().unwrap();
        assert!(nan.is_nan());
        let zero = FusedAttention { masked_to_zero: true, ..plain };
        assert_eq!(
            zero.reference(OperatorInputs::new(&inputs)).unwrap()[0].item::<f32>().unwrap(),
            0.0
        );
    }

    #[test]
    fn a_causal_query_sees_the_keys_before_it() {
        let zeros = |shape: &[usize]| Tensor::zeros(galatea_tensor::DataType::Fp32, shape).unwrap();
        let v = Tensor::from_slice(&[1, 1, 3, 1], &[1.0_f32, 3.0, 8.0]).unwrap();
        let order = FusedAttention::IN_ORDER;
        let op = FusedAttention { causal: true, ..attention(order, order) };
        let inputs = [Some(&zeros(&[1, 1, 2, 2])), Some(&zeros(&[1, 1, 3, 2])), Some(&v)];
        let means = op.reference(OperatorInputs::new(&inputs)).unwrap();
        assert_eq!(means[0].to_vec::<f32>().unwrap(), [2.0, 4.0]);
    }

    #[test]
    fn stored_orders_are_permuted_away() {
        let values: Vec<f32> = (0..24).map(|n| (n as f32).sin()).collect();
        let plain = Tensor::from_slice(&[1, 2, 3, 4], &values).unwrap();
        let stored = plain.permute(&[0, 2, 1, 3]).unwrap().contiguous().unwrap();
        let in_order = attention(FusedAttention::IN_ORDER, FusedAttention::IN_ORDER);
        let expected = in_order.reference(OperatorInputs::new(&[Some(&plain); 3])).unwrap();
        let turned = attention([0, 2, 1, 3], [0, 2, 1, 3]);
        let inputs = [Some(&plain), Some(&stored), Some(&plain)];
        let found = turned.reference(OperatorInputs::new(&inputs)).unwrap();
        assert_eq!(found[0].shape(), [1, 3, 2, 4]);
        assert_eq!(found[0].permute(&[0, 2, 1, 3]).unwrap().contiguous().unwrap(), expected[0]);
    }
}

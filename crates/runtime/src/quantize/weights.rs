//! Weights as integers of eight bits.

use galatea_tensor::{Tensor, TensorError};

/// Weights with a scale for each position of an axis, or one for all.
#[derive(Clone, Debug)]
pub(super) struct ScaledInt8Weights {
    pub(super) values: Tensor,
    /// One, or one for each position of the axis.
    pub(super) scales: Vec<f32>,
}

impl ScaledInt8Weights {
    /// The scales as a tensor: a scalar where there is one for all.
    pub(super) fn scale(&self, by_channel: bool) -> Tensor {
        match self.scales[..] {
            [one] if !by_channel => Tensor::scalar(one),
            _ => Tensor::vector(self.scales.clone()),
        }
    }

    /// Zero points of the same shape.
    pub(super) fn zero(&self, by_channel: bool) -> Tensor {
        match self.scales.len() {
            1 if !by_channel => Tensor::scalar(0_i8),
            count => Tensor::vector(vec![0_i8; count]),
        }
    }
}

/// Rounds weights to integers from -127 to 127 around zero. A scale is at least `least(channel)`.
pub(super) fn quantise(
    weights: &Tensor,
    axis: Option<usize>,
    least: &dyn Fn(usize) -> f32,
) -> Result<ScaledInt8Weights, TensorError> {
    let values = weights.to_vec::<f32>()?;
    let shape = weights.shape();
    let (count, inner) = match axis {
        Some(axis) => (shape[axis], shape[axis + 1..].iter().product::<usize>()),
        None => (1, values.len()),
    };
    let channel = |at: usize| (at / inner.max(1)) % count.max(1);
    let mut most = vec![0.0_f32; count];
    for (at, value) in values.iter().enumerate() {
        let slot = &mut most[channel(at)];
        *slot = slot.max(value.abs());
    }
    let scale = |(channel, most): (usize, f32)| {
        let scale = (most / 127.0).max(least(channel));
        if scale >= f32::MIN_POSITIVE { scale } else { 1.0 }
    };
    let scales: Vec<f32> = most.into_iter().enumerate().map(scale).collect();
    #[allow(clippy::cast_possible_truncation, reason = "limited to the type's range")]
    let round = |(at, value): (usize, &f32)| {
        (value / scales[channel(at)]).round_ties_even().clamp(-127.0, 127.0) as i8
    };
    let values = values.iter().enumerate().map(round).collect();
    Ok(ScaledInt8Weights { values: Tensor::from_vec(shape, values)?, scales })
}

/// A bias in units of `unit(channel)`.
pub(super) fn quantise_bias(bias: &[f32], unit: &dyn Fn(usize) -> f64) -> Vec<i32> {
    #[allow(clippy::cast_possible_truncation, reason = "a cast saturates")]
    let round = |(channel, value): (usize, &f32)| {
        (f64::from(*value) / unit(channel)).round_ties_even() as i32
    };
    bias.iter().enumerate().map(round).collect()
}

/// The least scale of weights with which a bias of this size still fits into 32 bits.
pub(super) fn least_scale(bias: f32, input_scale: f32) -> f32 {
    const MOST: f32 = (1_u32 << 30) as f32;
    bias.abs() / MOST / input_scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_uses_its_whole_range() {
        let weights =
            Tensor::from_vec(&[2, 3], vec![1.0_f32, -0.5, 0.0, 100.0, 50.0, -25.0]).unwrap();
        let rows = quantise(&weights, Some(0), &|_| 0.0).unwrap();
        assert_eq!(rows.values.to_vec::<i8>().unwrap(), [127, -64, 0, 127, 64, -32]);
        let columns = quantise(&weights, Some(1), &|_| 0.0).unwrap();
        assert_eq!(columns.scales.len(), 3);
        assert_eq!(columns.values.to_vec::<i8>().unwrap(), [1, -1, 0, 127, 127, -127]);
        let whole = quantise(&weights, None, &|_| 0.0).unwrap();
        assert_eq!(whole.values.to_vec::<i8>().unwrap(), [1, -1, 0, 127, 64, -32]);
        assert_eq!(whole.scale(false).shape(), [0_usize; 0]);
    }

    #[test]
    fn channels_of_zeros_have_a_scale_all_the_same() {
        let weights = Tensor::zeros(galatea_tensor::DataType::Fp32, &[2, 2]).unwrap();
        assert_eq!(quantise(&weights, Some(0), &|_| 0.0).unwrap().scales, [1.0, 1.0]);
    }

    #[test]
    fn a_large_bias_beside_small_weights_fits() {
        let bias = 1e4_f32;
        let input_scale = 1e-3_f32;
        let weights = Tensor::from_vec(&[1, 2], vec![1e-6_f32, -1e-6]).unwrap();
        let least = |_| least_scale(bias, input_scale);
        let scale = quantise(&weights, Some(0), &least).unwrap().scales[0];
        let unit = f64::from(scale) * f64::from(input_scale);
        let found = quantise_bias(&[bias], &|_| unit)[0];
        assert!((f64::from(found) * unit / f64::from(bias) - 1.0).abs() < 1e-6);
    }
}

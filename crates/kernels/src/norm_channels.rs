//! Normalisation of channels that come first: group, instance and batch normalisation.

use crate::KernelContext;
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;
use crate::reduce::{sum, sum_squared_differences};

/// Sums are taken over this many elements at a time and added in f64.
const RUN: usize = 4096;

/// Groups of channels over which a normalisation takes its statistics: each group of each item.
#[derive(Clone, Copy, Debug)]
pub struct ChannelGroups<'a> {
    /// Channels of an item.
    pub channels: usize,
    /// Groups of an item, each of neighbouring channels; as many as channels for instance
    /// normalisation.
    pub groups: usize,
    /// Elements of a channel.
    pub columns: usize,
    /// One factor per channel.
    pub scale: &'a [f32],
    /// One summand per channel.
    pub bias: &'a [f32],
    /// Added to the variance before its root.
    pub epsilon: f32,
}

/// `y = (x - mean) / sqrt(variance + epsilon) · scale + bias` with the mean and variance of each
/// group of each item.
///
/// Shapes: x and y `[items, channels, columns]`.
///
/// # Panics
/// Panics when the groups are not equal, or a slice has not the length that it should.
pub fn normalize_groups(exec: KernelContext<'_>, g: &ChannelGroups<'_>, x: &[f32], y: &mut [f32]) {
    let equal = g.groups > 0 && g.channels.is_multiple_of(g.groups);
    assert!(equal, "group norm: {} channels in {} groups", g.channels, g.groups);
    check("group norm", x, y, g.channels, g.columns, &[g.scale, g.bias]);
    if x.is_empty() {
        return;
    }
    let in_group = g.channels / g.groups;
    let slab = in_group * g.columns;
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(x.len() / slab, 8192_usize.div_ceil(slab), |range| {
        for at in range {
            let channel = at % g.groups * in_group;
            let own = channel..channel + in_group;
            // SAFETY: the groups are disjoint parts of y.
            let y = unsafe { y.range(at * slab..(at + 1) * slab) };
            let scale = &g.scale[own.clone()];
            let bias = &g.bias[own];
            let x = &x[at * slab..(at + 1) * slab];
            exec.isa.run(ChannelGroup {
                x,
                y,
                scale,
                bias,
                columns: g.columns,
                epsilon: g.epsilon,
            });
        }
    });
}

/// The parameters of a batch normalisation: one of each per channel.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormParameters<'a> {
    /// Factors.
    pub scale: &'a [f32],
    /// Summands.
    pub bias: &'a [f32],
    /// Means.
    pub mean: &'a [f32],
    /// Variances.
    pub variance: &'a [f32],
    /// Added to the variance before its root.
    pub epsilon: f32,
}

/// `y = (x - mean) / sqrt(variance + epsilon) · scale + bias` with given statistics.
///
/// Shapes: x and y `[items, channels, columns]`, `channels` that of the parameters.
///
/// # Panics
/// Panics when a slice has not the length that it should.
pub fn normalize_batch(
    exec: KernelContext<'_>,
    p: &BatchNormParameters<'_>,
    columns: usize,
    x: &[f32],
    y: &mut [f32],
) {
    let channels = p.scale.len();
    check("batch norm", x, y, channels, columns, &[p.bias, p.mean, p.variance]);
    if x.is_empty() {
        return;
    }
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(x.len() / columns, 16_384_usize.div_ceil(columns), |range| {
        for at in range {
            let channel = at % channels;
            // SAFETY: the channels are disjoint parts of y.
            let y = unsafe { y.range(at * columns..(at + 1) * columns) };
            let factor = p.scale[channel] / (p.variance[channel] + p.epsilon).sqrt();
            let mean = p.mean[channel];
            let bias = p.bias[channel];
            exec.isa.run(AffineRow {
                x: &x[at * columns..(at + 1) * columns],
                y,
                mean,
                factor,
                bias,
            });
        }
    });
}

#[track_caller]
fn check(what: &str, x: &[f32], y: &[f32], channels: usize, columns: usize, own: &[&[f32]]) {
    let item = channels * columns;
    let whole = x.is_empty() || (item > 0 && x.len().is_multiple_of(item));
    assert!(whole, "{what}: {} elements in items of {channels}x{columns}", x.len());
    assert!(x.len() == y.len(), "{what}: {} elements into {}", x.len(), y.len());
    let fits = own.iter().all(|parameter| parameter.len() == channels);
    assert!(fits, "{what}: a parameter has not {channels} elements");
}

struct ChannelGroup<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
    scale: &'a [f32],
    bias: &'a [f32],
    columns: usize,
    epsilon: f32,
}

impl IsaKernel for ChannelGroup<'_> {
    type Output = ();
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "means of FP32 values are FP32 values")]
    fn run<S: Simd>(self, s: S) {
        let n = self.x.len() as f64;
        let total = |part: &dyn Fn(&[f32]) -> f32| {
            self.x.chunks(RUN).map(|run| f64::from(part(run))).sum::<f64>()
        };
        let mean = (total(&|run| sum(s, run)) / n) as f32;
        let variance = (total(&|run| sum_squared_differences(s, run, mean)) / n) as f32;
        let root = 1.0 / (variance + self.epsilon).sqrt();
        let rows = self.x.chunks_exact(self.columns).zip(self.y.chunks_exact_mut(self.columns));
        for ((x, y), (scale, &bias)) in rows.zip(self.scale.iter().zip(self.bias)) {
            AffineRow { x, y, mean, factor: root * scale, bias }.run(s);
        }
    }
}

/// `y = (x - mean) · factor + bias`.
struct AffineRow<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
    mean: f32,
    factor: f32,
    bias: f32,
}

impl IsaKernel for AffineRow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mean = s.splat(self.mean);
        let factor = s.splat(self.factor);
        let bias = s.splat(self.bias);
        let n = self.x.len().min(self.y.len());
        let x = self.x.as_ptr();
        let y = self.y.as_mut_ptr();
        let mut i = 0;
        // SAFETY: every access is below n, by whole vectors or by the mask.
        unsafe {
            while i + S::LANES <= n {
                s.store(y.add(i), s.fma(s.sub(s.load(x.add(i)), mean), factor, bias));
                i += S::LANES;
            }
            if i < n {
                let m = s.tail(n - i);
                let x = s.load_tail(x.add(i), m);
                s.store_tail(y.add(i), m, s.fma(s.sub(x, mean), factor, bias));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    /// Computes the formula in f64.
    fn expected(x: &[f32], slab: usize, columns: usize, scale: &[f32], bias: &[f32]) -> Vec<f64> {
        let mut y = Vec::new();
        for group in x.chunks(slab) {
            let n = group.len() as f64;
            let mean = group.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = group.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            for &v in group {
                let channel = y.len() / columns % scale.len();
                let normal = (f64::from(v) - mean) / (variance + 1e-5).sqrt();
                y.push(normal * f64::from(scale[channel]) + f64::from(bias[channel]));
            }
        }
        y
    }

    #[test]
    fn groups_of_any_size_equal_the_formula() {
        let pool = ThreadPool::new(2);
        for (items, channels, groups, columns) in
            [(2, 6, 3, 35), (1, 4, 4, 9000), (3, 5, 1, 7), (1, 8, 2, 3000), (0, 4, 2, 5)]
        {
            // Far from zero, where a careless variance cancels.
            let x: Vec<f32> =
                values(items * channels * columns, 1).iter().map(|v| v + 30.0).collect();
            let scale = values(channels, 2);
            let bias = values(channels, 3);
            let g = ChannelGroups {
                channels,
                groups,
                columns,
                scale: &scale,
                bias: &bias,
                epsilon: 1e-5,
            };
            let want = expected(&x, channels / groups * columns, columns, &scale, &bias);
            for isa in Isa::available() {
                let mut y = vec![f32::NAN; x.len()];
                normalize_groups(KernelContext { pool: &pool, isa }, &g, &x, &mut y);
                for (got, want) in y.iter().zip(&want) {
                    assert!((f64::from(*got) - want).abs() < 2e-5, "{} {got} {want}", isa.name());
                }
            }
        }
    }

    #[test]
    fn given_statistics_equal_the_formula() {
        let pool = ThreadPool::new(2);
        let channels = 5;
        let columns = 77;
        let x = values(3 * channels * columns, 1);
        let [scale, bias, mean] = [2, 3, 4].map(|seed| values(channels, seed));
        let variance: Vec<f32> = values(channels, 5).iter().map(|v| v.abs() + 0.1).collect();
        let p = BatchNormParameters {
            scale: &scale,
            bias: &bias,
            mean: &mean,
            variance: &variance,
            epsilon: 1e-3,
        };
        for isa in Isa::available() {
            let mut y = vec![f32::NAN; x.len()];
            normalize_batch(KernelContext { pool: &pool, isa }, &p, columns, &x, &mut y);
            for (at, got) in y.iter().enumerate() {
                let c = at / columns % channels;
                let want = (x[at] - mean[c]) / (variance[c] + 1e-3).sqrt() * scale[c] + bias[c];
                assert!((got - want).abs() < 1e-5, "{} {got} {want}", isa.name());
            }
        }
    }

    #[test]
    #[should_panic(expected = "5 channels in 2 groups")]
    fn unequal_groups_are_refused() {
        let pool = ThreadPool::new(1);
        let scale = [1.0; 5];
        let bias = [0.0; 5];
        let g = ChannelGroups {
            channels: 5,
            groups: 2,
            columns: 1,
            scale: &scale,
            bias: &bias,
            epsilon: 0.0,
        };
        normalize_groups(KernelContext::new(&pool), &g, &[0.0; 5], &mut [0.0; 5]);
    }
}

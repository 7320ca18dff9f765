//! Pooling over channels-last images, vectors over channels.

use half::bf16;

use crate::KernelContext;
use crate::cell::RealCell;
use crate::conv::ImageBatch;
use crate::gemm::check_matrix;
use crate::isa::{IsaKernel, Simd};
use crate::math;
use crate::memory::DisjointSlice;

/// Function of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPool {
    /// The greatest value that is not padding, NaN if one is; -infinity where there is none.
    Max,
    /// The sum over the number of values that are not padding.
    Average,
    /// The sum over the number of taps inside the image or its padding.
    AverageWithPadding,
}

/// The constants of a pooling over height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolParams {
    /// The function of the values of a window.
    pub pool: WindowPool,
    /// Size of the window.
    pub kernel: [usize; 2],
    /// Step of the window.
    pub stride: [usize; 2],
    /// Distance between the taps of the window.
    pub dilation: [usize; 2],
    /// Padding before the image.
    pub pads_begin: [usize; 2],
    /// Padding after the image.
    pub pads_end: [usize; 2],
    /// True if the last window may reach beyond the padding.
    pub rounding: WindowRounding,
}

/// How the number of windows is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRounding {
    /// Only whole windows.
    Floor,
    /// A last window may be cut off, as long as it starts inside the image or the padding before.
    Ceil,
}

/// Limit of every size and pad along a dimension: sums and products of two do not overflow.
const MOST: usize = 1 << 30;

impl PoolParams {
    /// The size of the result for an image of `size`; 0 where the window does not fit.
    #[must_use]
    pub fn output_size(&self, size: [usize; 2]) -> [usize; 2] {
        std::array::from_fn(|d| {
            let window = self.dilation[d] * (self.kernel[d].max(1) - 1) + 1;
            let padded = size[d] + self.pads_begin[d] + self.pads_end[d];
            let stride = self.stride[d].max(1);
            let Some(room) = padded.checked_sub(window) else { return 0 };
            match self.rounding {
                WindowRounding::Floor => room / stride + 1,
                WindowRounding::Ceil => {
                    let n = room.div_ceil(stride) + 1;
                    if (n - 1) * stride >= size[d] + self.pads_begin[d] { n - 1 } else { n }
                }
            }
        })
    }
}

/// [`pool`] of an image of BF16, computed in FP32 and rounded once.
///
/// # Panics
/// Panics like [`pool`].
pub fn pool_bf16(
    exec: KernelContext<'_>,
    p: &PoolParams,
    x: &[bf16],
    image: ImageBatch<2>,
    channels: usize,
    y: &mut [bf16],
) {
    pool_cells(exec, p, x, image, channels, y);
}

/// Pools every channel of `[batch, height, width, channels]` into `[batch, …output_size, channels]`.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or a size of the window is 0.
pub fn pool(
    exec: KernelContext<'_>,
    p: &PoolParams,
    x: &[f32],
    batch: usize,
    size: [usize; 2],
    channels: usize,
    y: &mut [f32],
) {
    pool_cells(exec, p, x, ImageBatch { batch, size }, channels, y);
}

fn pool_cells<T: RealCell>(
    exec: KernelContext<'_>,
    p: &PoolParams,
    x: &[T],
    image: ImageBatch<2>,
    channels: usize,
    y: &mut [T],
) {
    let ImageBatch { batch, size } = image;
    let positive = |x: &[usize; 2]| x.iter().all(|&x| x > 0);
    assert!(positive(&p.kernel) && positive(&p.stride) && positive(&p.dilation), "pool: {p:?}");
    let sizes = [p.kernel, p.stride, p.dilation, p.pads_begin, p.pads_end, size].concat();
    assert!(sizes.iter().all(|&x| x < MOST), "pool: a size beyond {MOST} in {p:?} of {size:?}");
    let out = p.output_size(size);
    let in_pixels = batch.saturating_mul(size[0]).saturating_mul(size[1]);
    let rows = batch.saturating_mul(out[0]);
    check_matrix("image", x.len(), in_pixels, channels, channels);
    check_matrix("result", y.len(), rows.saturating_mul(out[1]), channels, channels);
    if rows * out[1] * channels == 0 {
        return;
    }
    let y = DisjointSlice::new(y);
    let work = (out[1] * channels).saturating_mul(p.kernel[0] * p.kernel[1]);
    exec.pool.run_ranges(rows, 65_536usize.div_ceil(work), |range| {
        for row in range {
            for column in 0..out[1] {
                let start = (row * out[1] + column) * channels;
                let window = WindowOf {
                    x: &x[row / out[0] * size[0] * size[1] * channels..],
                    width: size[1],
                    channels,
                    rows: taps(p, 0, size[0], row % out[0]),
                    columns: taps(p, 1, size[1], column),
                    pool: p.pool,
                    // SAFETY: ranges are disjoint, so pixels are.
                    y: unsafe { y.range(start..start + channels) },
                };
                exec.isa.run(window);
            }
        }
    });
}

/// The taps of a window along one dimension.
#[derive(Clone, Copy)]
struct WindowTaps {
    /// Image coordinate of the first tap inside the image.
    first: usize,
    step: usize,
    /// Taps inside the image.
    count: usize,
    /// Taps inside the image or its padding.
    padded: usize,
}

fn taps(p: &PoolParams, d: usize, size: usize, o: usize) -> WindowTaps {
    let start = o * p.stride[d];
    let step = p.dilation[d];
    let pad = p.pads_begin[d];
    // Number of taps below a limit, counted from the start of the padding.
    let below = |limit: usize| limit.saturating_sub(start).div_ceil(step).min(p.kernel[d]);
    let skipped = below(pad);
    WindowTaps {
        first: (start + skipped * step).saturating_sub(pad),
        step,
        count: below(pad + size) - skipped,
        padded: below(pad + size + p.pads_end[d]),
    }
}

struct WindowOf<'a, T> {
    x: &'a [T],
    width: usize,
    channels: usize,
    rows: WindowTaps,
    columns: WindowTaps,
    pool: WindowPool,
    y: &'a mut [T],
}

impl<T: RealCell> IsaKernel for WindowOf<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.rows;
        let columns = self.columns;
        let n = self.channels;
        let is_max = self.pool == WindowPool::Max;
        let start = s.splat(if is_max { f32::NEG_INFINITY } else { 0.0 });
        let count = match self.pool {
            WindowPool::AverageWithPadding => rows.padded * columns.padded,
            _ => rows.count * columns.count,
        };
        let factor = s.splat(if is_max { 1.0 } else { 1.0 / count as f32 });
        let mut c = 0;
        while c < n {
            let m = (n - c < S::LANES).then(|| s.tail(n - c));
            let mut value = start;
            for r in 0..rows.count {
                let row = (rows.first + r * rows.step) * self.width;
                for t in 0..columns.count {
                    let at = (row + columns.first + t * columns.step) * n + c;
                    // SAFETY: the taps are inside the image, and the mask inside its channels.
                    let x = unsafe { T::load(s, self.x.as_ptr().add(at), m) };
                    value = if is_max {
                        math::keep_nan(s, value, s.max(value, x))
                    } else {
                        s.add(value, x)
                    };
                }
            }
            // SAFETY: the mask chooses channels that exist.
            unsafe { T::store(s, self.y.as_mut_ptr().add(c), m, s.mul(value, factor)) };
            c += S::LANES;
        }
    }
}

/// The mean over all pixels of every channel: `[batch, pixels, channels]` into
/// `[batch, channels]`.
///
/// # Panics
/// Panics when a slice is shorter than its shape says.
pub fn global_average(
    exec: KernelContext<'_>,
    x: &[f32],
    batch: usize,
    pixels: usize,
    channels: usize,
    y: &mut [f32],
) {
    check_matrix("image", x.len(), batch.saturating_mul(pixels), channels, channels);
    check_matrix("result", y.len(), batch, channels, channels);
    if batch * channels == 0 {
        return;
    }
    let y = DisjointSlice::new(y);
    // Blocks of channels: whole cache lines for every vector width.
    let blocks = channels.div_ceil(64);
    exec.pool.run_ranges(batch * blocks, 131_072usize.div_ceil(64 * pixels.max(1)), |range| {
        for task in range {
            let image = task / blocks;
            let first = task % blocks * 64;
            let last = channels.min(first + 64);
            let mean = MeanOf {
                x: &x[(image * pixels * channels).min(x.len())..],
                pixels,
                channels,
                first,
                // SAFETY: tasks write disjoint channels.
                y: unsafe { y.range(image * channels + first..image * channels + last) },
            };
            exec.isa.run(mean);
        }
    });
}

struct MeanOf<'a> {
    x: &'a [f32],
    pixels: usize,
    channels: usize,
    first: usize,
    y: &'a mut [f32],
}

impl IsaKernel for MeanOf<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let factor = s.splat(1.0 / self.pixels as f32);
        let n = self.y.len();
        let mut c = 0;
        while c < n {
            let m = s.tail(n - c);
            // Two sums, so that one addition need not wait for the other.
            let mut sums = [s.splat(0.0); 2];
            for pixel in 0..self.pixels {
                let at = pixel * self.channels + self.first + c;
                // SAFETY: the mask chooses channels of this pixel.
                let x = unsafe { s.load_tail(self.x.as_ptr().add(at), m) };
                sums[pixel % 2] = s.add(sums[pixel % 2], x);
            }
            let mean = s.mul(s.add(sums[0], sums[1]), factor);
            // SAFETY: the mask chooses channels that exist.
            unsafe { s.store_tail(self.y.as_mut_ptr().add(c), m, mean) };
            c += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};
    use proptest::prelude::*;

    fn check(p: &PoolParams, batch: usize, size: [usize; 2], channels: usize) {
        let pool_threads = ThreadPool::new(2);
        let x = values(batch * size[0] * size[1] * channels, 1);
        let out = p.output_size(size);
        for isa in Isa::available() {
            let mut y = vec![f32::NAN; batch * out[0] * out[1] * channels];
            pool(KernelContext { pool: &pool_threads, isa }, p, &x, batch, size, channels, &mut y);
            let half: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
            let wide: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
            let mut from_wide = y.clone();
            let mut from_half = vec![bf16::NAN; y.len()];
            let exec = KernelContext { pool: &pool_threads, isa };
            pool(exec, p, &wide, batch, size, channels, &mut from_wide);
            pool_bf16(exec, p, &half, ImageBatch { batch, size }, channels, &mut from_half);
            for (got, want) in from_half.iter().zip(&from_wide) {
                assert_eq!(got.to_bits(), bf16::from_f32(*want).to_bits(), "{}", isa.name());
            }
            for (i, &got) in y.iter().enumerate() {
                let pixel = i / channels;
                let c = i % channels;
                let b = pixel / (out[0] * out[1]);
                let h = pixel / out[1] % out[0];
                let w = pixel % out[1];
                let mut top = f64::NEG_INFINITY;
                let mut sum = 0.0;
                let mut inside = 0;
                let mut padded = 0;
                for kh in 0..p.kernel[0] {
                    for kw in 0..p.kernel[1] {
                        let ih = h * p.stride[0] + kh * p.dilation[0];
                        let iw = w * p.stride[1] + kw * p.dilation[1];
                        if ih >= size[0] + p.pads_begin[0] + p.pads_end[0]
                            || iw >= size[1] + p.pads_begin[1] + p.pads_end[1]
                        {
                            continue;
                        }
                        padded += 1;
                        let ih = ih.wrapping_sub(p.pads_begin[0]);
                        let iw = iw.wrapping_sub(p.pads_begin[1]);
                        if ih < size[0] && iw < size[1] {
                            let v = x[((b * size[0] + ih) * size[1] + iw) * channels + c];
                            top = top.max(f64::from(v));
                            sum += f64::from(v);
                            inside += 1;
                        }
                    }
                }
                let want = match p.pool {
                    WindowPool::Max => top,
                    WindowPool::Average => sum / f64::from(inside),
                    WindowPool::AverageWithPadding => sum / f64::from(padded),
                };
                let got = f64::from(got);
                let equal = got == want || got.is_nan() && want.is_nan();
                assert!(equal || (got - want).abs() < 1e-6, "{} {p:?} {got} {want}", isa.name());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn any_pooling_equals_the_reference(
            pool in prop_oneof![Just(WindowPool::Max), Just(WindowPool::Average), Just(WindowPool::AverageWithPadding)],
            rounding in prop_oneof![Just(WindowRounding::Floor), Just(WindowRounding::Ceil)],
            kernel in proptest::array::uniform2(1usize..4),
            stride in proptest::array::uniform2(1usize..4),
            dilation in proptest::array::uniform2(1usize..3),
            pads_begin in proptest::array::uniform2(0usize..3),
            pads_end in proptest::array::uniform2(0usize..3),
            size in proptest::array::uniform2(1usize..9),
            channels in 1usize..40, batch in 1usize..3,
        ) {
            let p = PoolParams { pool, kernel, stride, dilation, pads_begin, pads_end, rounding };
            check(&p, batch, size, channels);
        }
    }

    #[test]
    fn a_nan_anywhere_in_the_window_wins() {
        let threads = ThreadPool::new(1);
        let p = PoolParams {
            pool: WindowPool::Max,
            kernel: [2, 2],
            stride: [1, 1],
            dilation: [1, 1],
            pads_begin: [0, 0],
            pads_end: [0, 0],
            rounding: WindowRounding::Floor,
        };
        for isa in Isa::available() {
            for others in [1.0, f32::INFINITY, f32::NEG_INFINITY] {
                let mut y = [0.0];
                for at in 0..4 {
                    let mut x = [others; 4];
                    x[at] = f32::NAN;
                    pool(KernelContext { pool: &threads, isa }, &p, &x, 1, [2, 2], 1, &mut y);
                    assert!(y[0].is_nan(), "{} {others} {at}", isa.name());
                }
                pool(KernelContext { pool: &threads, isa }, &p, &[others; 4], 1, [2, 2], 1, &mut y);
                assert_eq!(y[0], others, "{}", isa.name());
            }
        }
    }

    #[test]
    fn global_average_equals_the_reference() {
        let threads = ThreadPool::new(2);
        for isa in Isa::available() {
            for (batch, pixels, channels) in [(1, 49, 130), (2, 1, 3), (3, 7, 64)] {
                let x = values(batch * pixels * channels, 1);
                let mut y = vec![f32::NAN; batch * channels];
                global_average(
                    KernelContext { pool: &threads, isa },
                    &x,
                    batch,
                    pixels,
                    channels,
                    &mut y,
                );
                for (i, &got) in y.iter().enumerate() {
                    let b = i / channels;
                    let c = i % channels;
                    let want = (0..pixels)
                        .map(|p| f64::from(x[(b * pixels + p) * channels + c]))
                        .sum::<f64>()
                        / pixels as f64;
                    assert!((f64::from(got) - want).abs() < 1e-6);
                }
            }
        }
    }
}

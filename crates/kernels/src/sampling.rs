//! Sums of weighted elements of planes: images that are read between their elements.

use crate::KernelContext;
use crate::memory::DisjointSlice;

/// Element of a plane, and its share of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleTap {
    /// Place in the plane; one outside stands for a zero.
    pub place: u32,
    /// Factor.
    pub weight: f32,
}

impl SampleTap {
    /// A zero outside the plane.
    pub const NOTHING: Self = Self { place: u32::MAX, weight: 0.0 };
}

/// Results of one thread at a time: their taps stay in the first-level cache while channel after channel is read.
const CHUNK_TAPS: usize = 2048;

/// `y[channel, p] = Σ x[channel, tap.place] tap.weight` over the `taps` taps of each result `p`.
///
/// # Panics
/// Panics when `x` is no whole number of planes, or `taps` and `y` do not fit it.
pub fn sample_planes(
    exec: KernelContext<'_>,
    x: &[f32],
    plane: usize,
    taps: &[SampleTap],
    each: usize,
    y: &mut [f32],
) {
    if y.is_empty() {
        return;
    }
    assert!(plane > 0 && each > 0, "planes of {plane} elements, {each} taps");
    let (channels, count) = (x.len() / plane, taps.len() / each);
    assert!(
        x.len() == channels * plane && taps.len() == count * each && y.len() == channels * count,
        "{} elements in planes of {plane}, {} taps, {each} for each of {}",
        x.len(),
        taps.len(),
        y.len()
    );
    let chunk = CHUNK_TAPS.div_ceil(each).min(count);
    let chunks = count.div_ceil(chunk);
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(chunks, 16_384usize.div_ceil(chunk * each * channels), |range| {
        for at in range {
            let places = at * chunk..((at + 1) * chunk).min(count);
            let taps = &taps[places.start * each..places.end * each];
            for (channel, x) in x.chunks_exact(plane).enumerate() {
                let start = channel * count;
                // SAFETY: chunks of results have none in common.
                let y = unsafe { y.range(start + places.start..start + places.end) };
                match each {
                    1 => sample::<1>(x, taps, y),
                    4 => sample::<4>(x, taps, y),
                    16 => sample::<16>(x, taps, y),
                    _ => sample_many(x, taps, each, y),
                }
            }
        }
    });
}

#[inline(always)]
fn value(x: &[f32], tap: SampleTap) -> f32 {
    x.get(tap.place as usize).map_or(0.0, |x| x * tap.weight)
}

fn sample<const N: usize>(x: &[f32], taps: &[SampleTap], y: &mut [f32]) {
    for (y, taps) in y.iter_mut().zip(taps.as_chunks::<N>().0) {
        *y = taps.iter().map(|&tap| value(x, tap)).sum();
    }
}

fn sample_many(x: &[f32], taps: &[SampleTap], each: usize, y: &mut [f32]) {
    for (y, taps) in y.iter_mut().zip(taps.chunks_exact(each)) {
        *y = taps.iter().map(|&tap| value(x, tap)).sum();
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]
mod tests {
    use super::*;
    use crate::ThreadPool;
    use crate::gemm::test_values;

    #[test]
    fn results_are_weighted_sums_of_what_their_taps_name() {
        let pool = ThreadPool::new(2);
        let exec = KernelContext::new(&pool);
        for (channels, plane, count, each) in
            [(1, 1, 1, 1), (3, 50, 700, 4), (5, 90, 300, 16), (2, 33, 41, 7)]
        {
            let x = test_values(channels * plane, 3);
            let tap = |at: usize| match at % 13 {
                5 => SampleTap::NOTHING,
                _ => SampleTap { place: (at * 31 % plane) as u32, weight: at as f32 / 100.0 },
            };
            let taps: Vec<SampleTap> = (0..count * each).map(tap).collect();
            let mut y = vec![f32::NAN; channels * count];
            sample_planes(exec, &x, plane, &taps, each, &mut y);
            for (at, y) in y.iter().enumerate() {
                let (channel, place) = (at / count, at % count);
                let of = |tap: &SampleTap| match tap.place {
                    u32::MAX => 0.0,
                    place => x[channel * plane + place as usize] * tap.weight,
                };
                let want: f32 = taps[place * each..(place + 1) * each].iter().map(of).sum();
                assert!((y - want).abs() <= 1e-4 * want.abs().max(1.0), "{y} for {want}");
            }
        }
    }

    #[test]
    fn what_is_not_read_may_be_infinite() {
        let pool = ThreadPool::new(1);
        let x = [f32::INFINITY, 2.0];
        let taps = [SampleTap::NOTHING, SampleTap { place: 1, weight: 0.5 }];
        let mut y = [0.0];
        sample_planes(KernelContext::new(&pool), &x, 2, &taps, 2, &mut y);
        assert_eq!(y, [1.0]);
    }
}

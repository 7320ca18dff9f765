//! Places where a run is cut into submissions, so that none keeps the device busy for long.

/// Returns the dispatches before which a new submission begins, so that the predicted times of each add up to no
/// more than the bound. A dispatch that takes longer alone has a submission of its own.
pub(crate) fn cuts(times_ns: impl IntoIterator<Item = f64>, bound_ns: f64) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut sum = 0.0;
    for (at, time) in times_ns.into_iter().enumerate() {
        if at > 0 && sum + time > bound_ns {
            cuts.push(at);
            sum = 0.0;
        }
        sum += time;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use galatea_runtime::chips::{ChipFigure, chips};
    use galatea_runtime::{ArithmeticWork, DevicePeaks};

    use super::*;
    use crate::device::{GpuCapabilities, SUBMISSION_BOUND};
    use crate::throughput::ThroughputModel;

    /// Sums of the parts between cuts, with the number of times in each.
    fn parts(times: &[f64], cuts: &[usize]) -> Vec<(f64, usize)> {
        let ends = cuts.iter().copied().chain([times.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        begins.zip(ends).map(|(from, to)| (times[from..to].iter().sum(), to - from)).collect()
    }

    /// Numbers as chance has them, the same in every run.
    fn chance(seed: &mut u64) -> u64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    /// Work of the dispatches of a prompt's step through layers of these widths, and of its attention.
    fn step(rows: u64, width: u64, context: u64, layers: usize) -> Vec<ArithmeticWork> {
        let product = |columns: u64| ArithmeticWork {
            operations: 2 * rows * width * columns,
            bytes: width * columns / 2 + 4 * rows * (width + columns),
        };
        let attention =
            ArithmeticWork { operations: 4 * rows * context * width, bytes: 4 * context * width };
        let small = ArithmeticWork { operations: rows * width, bytes: 8 * rows * width };
        let layer =
            [small, product(3 * width), attention, product(width), small, product(6 * width)];
        layer.into_iter().cycle().take(layers * layer.len()).collect()
    }

    #[test]
    fn no_submission_of_any_chip_is_predicted_to_take_longer_than_the_bound() {
        let bound = SUBMISSION_BOUND.as_secs_f64() * 1e9;
        let here = GpuCapabilities { unified: true, ..GpuCapabilities::default() };
        let mut seed = 7;
        let mut cut = 0;
        for chip in chips() {
            let sizes = chip.sizes().unwrap();
            for size in 0..sizes {
                let peaks = DevicePeaks {
                    vector_f32: chip.of_size(ChipFigure::GpuTflops, size).map(|peak| peak * 1e12),
                    bytes: chip.of_size(ChipFigure::Bandwidth, size).map(|peak| peak * 1e9),
                    ..DevicePeaks::default()
                };
                let pace = ThroughputModel::from(&here, None, &peaks);
                for _ in 0..40 {
                    let (rows, width) =
                        (1 + chance(&mut seed) % 4096, 256 << (chance(&mut seed) % 6));
                    let works = step(rows, width, rows + chance(&mut seed) % 131_072, 32);
                    let times: Vec<f64> =
                        works.into_iter().map(|work| pace.dispatch_time_ns(work)).collect();
                    let cuts = cuts(times.iter().copied(), bound);
                    for (sum, count) in parts(&times, &cuts) {
                        assert!(sum <= bound || count == 1, "{sum} ns in {count} dispatches");
                    }
                    cut += cuts.len();
                }
            }
        }
        assert!(cut > 1000, "{cut}");
    }

    #[test]
    fn a_step_of_many_rows_on_the_slowest_chip_is_cut_and_a_token_is_not() {
        let here = GpuCapabilities { unified: true, ..GpuCapabilities::default() };
        let pace = ThroughputModel::from(&here, None, &DevicePeaks::default());
        let bound = SUBMISSION_BOUND.as_secs_f64() * 1e9;
        let count = |rows, width, context| {
            let works = step(rows, width, context, 32);
            cuts(works.into_iter().map(|work| pace.dispatch_time_ns(work)), bound).len()
        };
        // A model of seven billion weights: seconds, by the prediction.
        assert!((20..80).contains(&count(512, 4096, 512)), "{}", count(512, 4096, 512));
        assert_eq!(count(1, 1024, 512), 0);
    }

    #[test]
    fn cuts_come_before_what_is_too_much() {
        assert_eq!(cuts([1.0, 2.0, 3.0], 3.0), [2]);
        assert_eq!(cuts([9.0, 1.0, 1.0, 9.0], 3.0), [1, 3]);
        assert!(cuts([1.0, 2.0], 3.0).is_empty() && cuts([], 3.0).is_empty());
    }
}

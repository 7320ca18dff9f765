//! Two variants beside each other: times, throughput and results.

use galatea_runtime::tune::{PairedTimes, SpeedVerdict};
use galatea_tensor::{DataType, Tensor, bf16, f16};
use serde_json::{Value, json};

/// Samples of each that are compared: more make intervals hardly narrower.
const MAX_SAMPLES: usize = 400;
/// Times that samples are drawn anew for an interval.
const RESAMPLED: usize = 1000;
/// Differences that are called the same results, as a share of the greatest value.
const CLOSE: f64 = 1e-3;

/// Milliseconds of runs that took turns, and what they say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimedRace {
    /// Latency.
    pub(super) latency: PairedTimes,
    /// The second's throughput as a share of the first's, and where it lies with a confidence of 95 %.
    pub(super) throughput: (f64, [f64; 2]),
}

impl TimedRace {
    /// Compares times in milliseconds, each of a run with so many rows.
    ///
    /// # Errors
    /// Fails when there are too few times.
    pub(super) fn of(times: [&[f64]; 2], rows: [usize; 2]) -> Result<Self, String> {
        let [first, second] = times.map(thinned);
        let ns = |times: &[f64]| -> Vec<f64> { times.iter().map(|ms| ms * 1e6).collect() };
        let latency = PairedTimes::of(&ns(&first), &ns(&second))?;
        let share = rows[1] as f64 / rows[0].max(1) as f64;
        let throughput = bootstrap([&first, &second], share);
        Ok(Self { latency, throughput })
    }

    pub(super) fn json(&self) -> Value {
        let of = &self.latency;
        let (ratio, [low, high]) = self.throughput;
        json!({
            "first_ms": of.median_ns[0] / 1e6, "second_ms": of.median_ns[1] / 1e6,
            "latency_ratio": of.ratio, "latency_low": of.interval[0], "latency_high": of.interval[1],
            "p": of.p, "samples": of.samples, "faster": of.verdict.name(),
            "throughput_ratio": ratio, "throughput_low": low, "throughput_high": high,
        })
    }

    /// The verdict in words, of variants with these names.
    pub(super) fn sentence(&self, names: [&str; 2]) -> String {
        let (ratio, [low, high]) = self.throughput;
        let more = match self.latency.verdict {
            SpeedVerdict::Undecided => String::new(),
            _ => format!(
                "; {} has {ratio:.2} times the throughput of {} (95 % between {low:.2} and {high:.2})",
                names[1], names[0]
            ),
        };
        format!("{}{more}.", self.latency.sentence(names))
    }
}

/// Returns at most [`MAX_SAMPLES`] of the samples, evenly spaced.
fn thinned(times: &[f64]) -> Vec<f64> {
    let step = times.len().div_ceil(MAX_SAMPLES).max(1);
    times.iter().step_by(step).copied().collect()
}

/// Numbers that look random, the same each time.
struct ReportNoise(u64);

impl ReportNoise {
    fn below(&mut self, most: usize) -> usize {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let most = u64::try_from(most.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.0 % most).unwrap_or(0)
    }
}

/// Returns the ratio of the second throughput to the first, with its 95 % confidence interval. Samples are
/// drawn anew with replacement, and the middle 95 % of the ratios are taken (Efron, 1979).
fn bootstrap(times: [&[f64]; 2], share: f64) -> (f64, [f64; 2]) {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
    let mut random = ReportNoise(0x9E37_79B9_7F4A_7C15);
    let mut drawn = |times: &[f64]| {
        let pick = |_| times.get(random.below(times.len())).copied().unwrap_or(0.0);
        mean(&(0..times.len()).map(pick).collect::<Vec<_>>())
    };
    let [first, second] = times;
    let mut ratios: Vec<f64> = (0..RESAMPLED)
        .map(|_| share * drawn(first) / drawn(second).max(f64::MIN_POSITIVE))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |place: usize| ratios.get(place).copied().unwrap_or(f64::NAN);
    let edge = RESAMPLED / 40;
    let ratio = share * mean(first) / mean(second).max(f64::MIN_POSITIVE);
    (ratio, [at(edge), at(RESAMPLED - 1 - edge)])
}

/// Difference between two results of the same name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResultDistance {
    pub(super) name: String,
    /// Why they cannot be compared; then nothing else is known.
    pub(super) differ: Option<String>,
    /// The greatest difference.
    pub(super) most: f64,
    /// The same as a share of the greatest value.
    pub(super) relative: f64,
    /// The share of rows whose greatest value lies at the same place, of results with rows.
    pub(super) same_best: Option<f64>,
}

impl ResultDistance {
    pub(super) fn agrees(&self) -> bool {
        self.differ.is_none() && self.relative <= CLOSE
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "output": self.name, "differ": self.differ,
            "most": self.most.is_finite().then_some(self.most),
            "relative": self.relative.is_finite().then_some(self.relative),
            "same_best": self.same_best, "agree": self.agrees(),
        })
    }
}

/// Compares results by their names.
pub(super) fn outputs(
    first: &[(String, Tensor)],
    second: &[(String, Tensor)],
) -> Vec<ResultDistance> {
    let of = |(name, tensor): &(String, Tensor)| {
        let apart = |differ: Option<String>| ResultDistance {
            name: name.clone(),
            differ,
            most: f64::NAN,
            relative: f64::NAN,
            same_best: None,
        };
        let Some((_, other)) = second.iter().find(|(other, _)| other == name) else {
            return apart(Some("the second has no such output".to_owned()));
        };
        if tensor.shape() != other.shape() {
            let text = format!("shapes {:?} and {:?}", tensor.shape(), other.shape());
            return apart(Some(text));
        }
        match (numbers(tensor), numbers(other)) {
            (Some(a), Some(b)) => {
                let (most, relative) = distance(&a, &b);
                let same_best = same_best(&a, &b, tensor.shape());
                ResultDistance { most, relative, same_best, ..apart(None) }
            }
            _ => match (
                tensor.dtype() == other.dtype(),
                tensor.as_bytes().ok() == other.as_bytes().ok(),
            ) {
                (true, true) => ResultDistance { most: 0.0, relative: 0.0, ..apart(None) },
                _ => apart(Some("other values".to_owned())),
            },
        }
    };
    first.iter().map(of).collect()
}

/// Elements as numbers; nothing of other types.
fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let wide = |halves: Vec<f32>| halves.into_iter().map(f64::from).collect();
    match tensor.dtype() {
        DataType::Fp64 => tensor.to_vec::<f64>().ok(),
        DataType::Fp32 => tensor.to_vec::<f32>().ok().map(wide),
        DataType::Fp16 => {
            tensor.to_vec::<f16>().ok().map(|all| all.into_iter().map(f16::to_f64).collect())
        }
        DataType::Bf16 => {
            tensor.to_vec::<bf16>().ok().map(|all| all.into_iter().map(bf16::to_f64).collect())
        }
        dtype if dtype.is_signed_integer() => {
            tensor.to_i64_vec().ok().map(|all| all.into_iter().map(|one| one as f64).collect())
        }
        _ => None,
    }
}

/// The greatest difference, and the same as a share of the greatest value. What is no number lies apart from all but
/// itself.
fn distance(a: &[f64], b: &[f64]) -> (f64, f64) {
    let mut most = 0.0_f64;
    let mut scale = 0.0_f64;
    for (&a, &b) in a.iter().zip(b) {
        let same = a == b || (a.is_nan() && b.is_nan());
        let apart = if same { 0.0 } else { (a - b).abs() };
        most = most.max(if apart.is_nan() { f64::INFINITY } else { apart });
        scale = scale.max(if a.is_finite() { a.abs() } else { 0.0 });
    }
    (most, if most == 0.0 { 0.0 } else { most / scale.max(f64::MIN_POSITIVE) })
}

/// The share of rows along the last axis whose greatest value lies at the same place.
fn same_best(a: &[f64], b: &[f64], shape: &[usize]) -> Option<f64> {
    let width = *shape.last().filter(|width| shape.len() > 1 && **width > 1)?;
    let best = |row: &[f64]| {
        row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(place, _)| place)
    };
    let rows = a.len() / width;
    let same = a.chunks_exact(width).zip(b.chunks_exact(width));
    let same = same.filter(|(a, b)| best(a) == best(b)).count();
    (rows > 0).then(|| same as f64 / rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_found_with_its_interval() {
        let noise = |at: usize| (at * 7919 % 13) as f64 / 100.0;
        let first: Vec<f64> = (0..60).map(|at| 1.0 + noise(at)).collect();
        let second: Vec<f64> = (0..60).map(|at| 2.0 + 2.0 * noise(at + 5)).collect();
        let race = TimedRace::of([&first, &second], [1, 4]).unwrap();
        assert_eq!(race.latency.verdict, SpeedVerdict::First);
        assert!((race.latency.ratio - 2.0).abs() < 0.1, "{race:?}");
        // Of four rows in twice the time, it does twice as many a second.
        let (ratio, [low, high]) = race.throughput;
        assert!(
            (ratio - 2.0).abs() < 0.05 && low < ratio && ratio < high && high - low < 0.2,
            "{race:?}"
        );
        assert!(race.sentence(["a", "b"]).starts_with("a is faster than b"), "{race:?}");
        let same = TimedRace::of([&first, &first], [1, 1]).unwrap();
        assert_eq!(same.latency.verdict, SpeedVerdict::Undecided);
        assert!(TimedRace::of([&first[..2], &first], [1, 1]).is_err());
    }

    #[test]
    fn results_are_compared_by_name() {
        let tensor = |values: &[f32]| Tensor::from_slice(&[2, 2], values).unwrap();
        let named = |name: &str, values: &[f32]| (name.to_owned(), tensor(values));
        let first =
            [named("x", &[1.0, 2.0, 3.0, 4.0]), named("y", &[0.0; 4]), named("z", &[0.0; 4])];
        let second = [named("x", &[1.0, 2.0, 4.0, 3.5]), named("z", &[0.0; 4])];
        let found = outputs(&first, &second);
        assert_eq!((found[0].most, found[0].relative), (1.0, 0.25));
        assert_eq!((found[0].same_best, found[0].agrees()), (Some(0.5), false));
        assert!(found[1].differ.is_some() && !found[1].agrees());
        assert!(found[2].agrees());
        let nan = [named("z", &[f32::NAN, 0.0, 0.0, 0.0])];
        assert!(!outputs(&first[2..], &nan)[0].agrees());
        assert!(outputs(&nan, &nan)[0].agrees());
    }
}

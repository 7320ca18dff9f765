//! Activity of GPUs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::{family, gauge};
use galatea::gpus::{GpuPool, GpuUse};

/// The use of GPUs between two looks, which are no nearer to each other than an interval, so that several
/// readers see the same numbers.
#[derive(Debug)]
pub(crate) struct GpuMeters {
    gpus: Arc<GpuPool>,
    interval: Duration,
    start: Instant,
    last: Mutex<Option<GpuLook>>,
}

/// One look at all GPUs.
#[derive(Debug)]
struct GpuLook {
    at: Instant,
    uses: HashMap<usize, GpuUse>,
    figures: Vec<GpuFigures>,
}

/// Activity of a GPU between two readings.
#[derive(Debug, Clone, PartialEq)]
struct GpuFigures {
    number: usize,
    name: String,
    /// The share of the time that it was at work.
    busy_percent: f64,
    /// 10⁹ bytes a second of that time; nothing where it did not work.
    moved: Option<f64>,
}

impl GpuFigures {
    fn of(before: Option<&GpuUse>, now: &GpuUse, wall: Duration) -> Self {
        let busy = now.busy.saturating_sub(before.map_or(Duration::ZERO, |before| before.busy));
        let bytes = now.bytes.saturating_sub(before.map_or(0, |before| before.bytes));
        let share = busy.as_secs_f64() / wall.as_secs_f64().max(1e-9);
        Self {
            number: now.number,
            name: now.name.clone(),
            // A run that ends in this window may have begun in the one before.
            busy_percent: (share * 100.0).min(100.0),
            moved: (!busy.is_zero()).then(|| bytes as f64 / busy.as_secs_f64() / 1e9),
        }
    }
}

impl GpuMeters {
    /// Measures from now on.
    #[must_use]
    pub(crate) fn start(gpus: &Arc<GpuPool>, interval: Duration) -> Self {
        gpus.measure_use();
        let gpus = Arc::clone(gpus);
        Self { gpus, interval, start: Instant::now(), last: Mutex::new(None) }
    }

    /// The families; none where no GPU is measured.
    #[must_use]
    pub(crate) fn page(&self) -> Vec<MetricFamily> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(look) = last.as_ref().filter(|look| look.at.elapsed() < self.interval) {
            return families(&look.figures);
        }
        let now = Instant::now();
        let before = last.take();
        let since = before.as_ref().map_or(self.start, |look| look.at);
        let uses: HashMap<usize, GpuUse> =
            self.gpus.uses().into_iter().map(|of| (of.number, of)).collect();
        let known = |number: usize| before.as_ref().and_then(|look| look.uses.get(&number));
        let of = |now_used: &GpuUse| {
            // A GPU that was closed and opened again counts from 0.
            let before = known(now_used.number).filter(|before| before.busy <= now_used.busy);
            GpuFigures::of(before, now_used, now - since)
        };
        let mut figures: Vec<GpuFigures> = uses.values().map(of).collect();
        figures.sort_by_key(|of| of.number);
        let page = families(&figures);
        *last = Some(GpuLook { at: now, uses, figures });
        page
    }
}

fn families(figures: &[GpuFigures]) -> Vec<MetricFamily> {
    let series = |of: &GpuFigures, value: f64| {
        let pair = |(name, value): (&str, &str)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(value.to_owned());
            pair
        };
        let number = of.number.to_string();
        let mut metric = Metric::from_gauge(gauge(value));
        metric.set_label([("gpu", number.as_str()), ("name", &of.name)].map(pair).to_vec());
        metric
    };
    let busy = figures.iter().map(|of| series(of, of.busy_percent)).collect();
    let moved = figures.iter().filter_map(|of| Some(series(of, of.moved?))).collect();
    let all: [(&str, &str, Vec<Metric>); 2] = [
        (
            "metal_gpu_utilization_percent",
            "Share of the time since the last look at this page that the GPU ran models, by its own clock [0 - 100]",
            busy,
        ),
        (
            "metal_memory_bandwidth_gbps",
            "Least 10^9 bytes a second that kernels moved while the GPU ran models since the last look at this page",
            moved,
        ),
    ];
    let there = all.into_iter().filter(|(.., series)| !series.is_empty());
    there.map(|(name, help, series)| family(name, help, MetricType::GAUGE, series)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(ms: u64, bytes: u64) -> GpuUse {
        let busy = Duration::from_millis(ms);
        GpuUse { number: 0, name: "a".to_owned(), busy, bytes }
    }

    #[test]
    fn figures_are_of_the_time_between_two_looks() {
        let wall = Duration::from_secs(1);
        let of = GpuFigures::of(Some(&used(100, 5)), &used(350, 500_000_005), wall);
        assert!((of.busy_percent - 25.0).abs() < 1e-9, "{of:?}");
        assert!((of.moved.unwrap() - 2.0).abs() < 1e-9, "{of:?}");
        let first = GpuFigures::of(None, &used(250, 0), wall);
        assert!((first.busy_percent - 25.0).abs() < 1e-9, "{first:?}");
    }

    #[test]
    fn a_gpu_that_did_not_work_moved_nothing_at_any_speed() {
        let of = GpuFigures::of(Some(&used(5, 5)), &used(5, 5), Duration::from_secs(1));
        assert_eq!((of.busy_percent, of.moved), (0.0, None));
        let page = families(&[of]);
        assert_eq!(page.len(), 1);
        assert_eq!(page[0].name(), "metal_gpu_utilization_percent");
        assert!(families(&[]).is_empty());
    }
}

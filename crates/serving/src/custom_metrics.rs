//! Metrics that models make themselves.
//!
//! A family is there for as long as somebody holds it or one of its metrics, and so is a metric: the registry itself
//! holds nothing. Who makes a family or a metric that is there already gets the same one, so that instances and models
//! count together.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use galatea_tensor::OrderedMap;

use crate::error::{ErrorCode, ServingError};

/// Beginnings of names that the server keeps for families of its own.
const OWN: &[&str] = &[
    "nv_inference_",
    "nv_cache_",
    "nv_model_",
    "nv_gpu_",
    "nv_cpu_",
    "nv_energy_",
    "nv_pinned_",
    "metal_",
    "amx_",
    "ane_",
    "apple_",
    "galatea_",
    "python_worker_",
];

/// Kind of the numbers of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// How often values lay where.
    Histogram,
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// Labels by name.
pub type MetricLabels = OrderedMap<String, String>;

/// The families that models have made.
#[derive(Debug, Default)]
pub struct CustomMetrics {
    families: Mutex<OrderedMap<String, Weak<CustomFamily>>>,
}

/// A family of metrics.
#[derive(Debug)]
pub struct CustomFamily {
    name: String,
    help: String,
    kind: MetricKind,
    metrics: Mutex<OrderedMap<MetricLabels, Weak<CustomMetric>>>,
}

/// A metric of a family.
#[derive(Debug)]
pub struct CustomMetric {
    family: Arc<CustomFamily>,
    /// Upper bounds of buckets; none for other kinds than histograms.
    bounds: Vec<f64>,
    value: Mutex<MetricValue>,
}

/// Value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// Value of a counter or a gauge.
    Number(f64),
    /// Values of a histogram.
    Distribution {
        /// How many values lay at or below each bound, in the order of bounds, and not at or below the one before.
        counts: Vec<u64>,
        /// How many values there were.
        count: u64,
        /// Their sum.
        sum: f64,
    },
}

/// A family as it is at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilySnapshot {
    /// Name.
    pub name: String,
    /// Description.
    pub help: String,
    /// Kind of its numbers.
    pub kind: MetricKind,
    /// Its metrics, one at least.
    pub metrics: Vec<MetricSnapshot>,
}

/// A metric as it is at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSnapshot {
    /// Labels.
    pub labels: MetricLabels,
    /// Upper bounds of buckets.
    pub bounds: Vec<f64>,
    /// Value of it.
    pub value: MetricValue,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CustomMetrics {
    /// The family of this name, which is made if it is not there.
    ///
    /// # Errors
    /// INVALID_ARG for a name that is none of Prometheus, or the server's; ALREADY_EXISTS when the family is there and
    /// is another one.
    pub fn family(
        &self,
        name: &str,
        help: &str,
        kind: MetricKind,
    ) -> Result<Arc<CustomFamily>, ServingError> {
        if !is_name(name, true) {
            return Err(ServingError::invalid_arg(format!(
                "'{name}' is no name of a metric: it has letters, digits, '_' and ':', and begins with no digit"
            )));
        }
        if OWN.iter().any(|own| name.starts_with(own)) {
            return Err(ServingError::invalid_arg(format!(
                "the metric family '{name}' would have a name that the server keeps for its own"
            )));
        }
        self.own_family(name, help, kind)
    }

    /// Makes a family like [`CustomMetrics::family`], with a name of the server's.
    ///
    /// # Errors
    /// ALREADY_EXISTS when the family is there and is another one.
    pub fn own_family(
        &self,
        name: &str,
        help: &str,
        kind: MetricKind,
    ) -> Result<Arc<CustomFamily>, ServingError> {
        let mut families = locked(&self.families);
        if let Some(known) = families.get(name).and_then(Weak::upgrade) {
            // As in Triton, the first description stays: models of one package may differ in a word.
            if known.kind == kind {
                return Ok(known);
            }
            return Err(ServingError::new(
                ErrorCode::AlreadyExists,
                format!(
                    "the metric family '{name}' exists and has kind {}, not {kind}",
                    known.kind
                ),
            ));
        }
        let name = name.to_owned();
        let help = help.to_owned();
        let family = Arc::new(CustomFamily { name, help, kind, metrics: Mutex::default() });
        families.insert(family.name.clone(), Arc::downgrade(&family));
        Ok(family)
    }

    /// The families that have metrics, by name.
    #[must_use]
    pub fn snapshot(&self) -> Vec<FamilySnapshot> {
        let mut held = Vec::new();
        locked(&self.families).retain(|_, family| {
            let family = family.upgrade();
            let there = family.is_some();
            held.extend(family);
            there
        });
        let found = held.iter().map(|family| family.snapshot());
        found.filter(|family| !family.metrics.is_empty()).collect()
    }
}

impl CustomFamily {
    /// The metric with these labels, which is made if it is not there.
    ///
    /// # Errors
    /// INVALID_ARG for labels or buckets that cannot be; ALREADY_EXISTS when it is there with other buckets.
    pub fn metric(
        self: &Arc<Self>,
        labels: MetricLabels,
        buckets: Option<Vec<f64>>,
    ) -> Result<Arc<CustomMetric>, ServingError> {
        labels.keys().try_for_each(|name| self.check_label(name))?;
        let bounds = self.bounds(buckets)?;
        let mut metrics = locked(&self.metrics);
        if let Some(known) = metrics.get(&labels).and_then(Weak::upgrade) {
            if known.bounds == bounds {
                return Ok(known);
            }
            return Err(ServingError::new(
                ErrorCode::AlreadyExists,
                format!(
                    "the histogram with these labels in the metric family '{}' exists and has the buckets {:?}",
                    self.name, known.bounds
                ),
            ));
        }
        // Those that nobody has any more are not kept until somebody looks at the page.
        metrics.retain(|_, metric| metric.strong_count() > 0);
        let value = match self.kind {
            MetricKind::Histogram => {
                MetricValue::Distribution { counts: vec![0; bounds.len()], count: 0, sum: 0.0 }
            }
            MetricKind::Counter | MetricKind::Gauge => MetricValue::Number(0.0),
        };
        let metric = CustomMetric { family: Arc::clone(self), bounds, value: Mutex::new(value) };
        let metric = Arc::new(metric);
        metrics.insert(labels, Arc::downgrade(&metric));
        Ok(metric)
    }

    fn check_label(&self, name: &str) -> Result<(), ServingError> {
        let reserved =
            name.starts_with("__") || (self.kind == MetricKind::Histogram && name == "le");
        if is_name(name, false) && !reserved {
            return Ok(());
        }
        Err(ServingError::invalid_arg(format!(
            "'{name}' is no name of a label in the {} family '{}': it has letters, digits and '_', begins with no digit \
             and not with '__', and is not 'le' in histograms",
            self.kind, self.name
        )))
    }

    /// The buckets' bounds. One that has no end is always there.
    fn bounds(&self, buckets: Option<Vec<f64>>) -> Result<Vec<f64>, ServingError> {
        let refused = |why: &str| {
            Err(ServingError::invalid_arg(format!(
                "the {} family '{}' {why}",
                self.kind, self.name
            )))
        };
        let mut bounds = match (self.kind, buckets) {
            (MetricKind::Histogram, Some(bounds)) => bounds,
            (MetricKind::Histogram, None) => return refused("needs buckets for its metrics"),
            (_, None) => return Ok(Vec::new()),
            (_, Some(_)) => return refused("takes no buckets, which only histograms have"),
        };
        let rising = bounds.iter().zip(bounds.iter().skip(1)).all(|(low, high)| low < high);
        if bounds.is_empty() || !rising || bounds.iter().any(|bound| bound.is_nan()) {
            return refused("needs buckets that increase strictly, one at least");
        }
        if bounds.last().is_some_and(|last| *last == f64::INFINITY) {
            bounds.pop();
        }
        Ok(bounds)
    }

    fn snapshot(&self) -> FamilySnapshot {
        let mut held = Vec::new();
        locked(&self.metrics).retain(|labels, metric| {
            let metric = metric.upgrade();
            let there = metric.is_some();
            held.extend(metric.map(|metric| (labels.clone(), metric)));
            there
        });
        let metrics = held.into_iter().map(|(labels, metric)| MetricSnapshot {
            labels,
            bounds: metric.bounds.clone(),
            value: locked(&metric.value).clone(),
        });
        let name = self.name.clone();
        let help = self.help.clone();
        FamilySnapshot { name, help, kind: self.kind, metrics: metrics.collect() }
    }
}

impl CustomMetric {
    /// Adds to a counter or a gauge.
    ///
    /// # Errors
    /// For histograms, and for what a counter cannot grow by.
    pub fn increment(&self, by: f64) -> Result<(), ServingError> {
        let counter = self.family.kind == MetricKind::Counter;
        if counter && (by.is_nan() || by < 0.0) {
            return Err(ServingError::invalid_arg(format!(
                "the counter '{}' cannot be incremented by {by}: counters never get less",
                self.family.name
            )));
        }
        match &mut *locked(&self.value) {
            MetricValue::Number(value) => *value += by,
            MetricValue::Distribution { .. } => return Err(self.unsupported("increment")),
        }
        Ok(())
    }

    /// Sets a gauge.
    ///
    /// # Errors
    /// For other kinds.
    pub fn set(&self, to: f64) -> Result<(), ServingError> {
        if self.family.kind != MetricKind::Gauge {
            return Err(self.unsupported("set"));
        }
        *locked(&self.value) = MetricValue::Number(to);
        Ok(())
    }

    /// Counts a value in a histogram.
    ///
    /// # Errors
    /// For other kinds, and for what is no number.
    pub fn observe(&self, value: f64) -> Result<(), ServingError> {
        let mut kept = locked(&self.value);
        let MetricValue::Distribution { counts, count, sum } = &mut *kept else {
            return Err(self.unsupported("observe"));
        };
        if value.is_nan() {
            let name = &self.family.name;
            return Err(ServingError::invalid_arg(format!(
                "the histogram '{name}' cannot observe NaN"
            )));
        }
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = counts.get_mut(at) {
            *bucket += 1;
        }
        *count += 1;
        *sum += value;
        Ok(())
    }

    /// The number of a counter or a gauge.
    ///
    /// # Errors
    /// For histograms.
    pub fn value(&self) -> Result<f64, ServingError> {
        match &*locked(&self.value) {
            MetricValue::Number(value) => Ok(*value),
            MetricValue::Distribution { .. } => Err(self.unsupported("value")),
        }
    }

    fn unsupported(&self, what: &str) -> ServingError {
        let CustomFamily { name, kind, .. } = &*self.family;
        ServingError::unsupported(format!("the {kind} '{name}' does not support '{what}'"))
    }
}

/// Whether Prometheus takes a name.
fn is_name(name: &str, colons: bool) -> bool {
    let fits =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || (colons && letter == ':');
    name.chars().all(fits) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_metrics_are_shared_and_go_with_their_last_holder() {
        let metrics = CustomMetrics::default();
        let family = metrics.family("a", "b", MetricKind::Counter).unwrap();
        assert!(
            metrics
                .family("a", "b", MetricKind::Gauge)
                .unwrap_err()
                .message
                .contains("kind counter")
        );
        // The first description stays.
        let again = metrics.family("a", "c", MetricKind::Counter).unwrap();
        assert!(Arc::ptr_eq(&again, &family));
        let one = family.metric(MetricLabels::new(), None).unwrap();
        again.metric(MetricLabels::new(), None).unwrap().increment(2.0).unwrap();
        assert_eq!(one.value().unwrap(), 2.0);
        drop((family, again));
        assert_eq!(metrics.snapshot().len(), 1);
        drop(one);
        assert!(metrics.snapshot().is_empty());
        metrics.family("a", "b", MetricKind::Gauge).unwrap();
    }

    #[test]
    fn histograms_count_values_up_to_each_bound() {
        let metrics = CustomMetrics::default();
        let family = metrics.family("h", "", MetricKind::Histogram).unwrap();
        for wrong in [None, Some(vec![]), Some(vec![1.0, 1.0]), Some(vec![f64::NAN])] {
            assert!(family.metric(MetricLabels::new(), wrong).is_err());
        }
        let one = family.metric(MetricLabels::new(), Some(vec![1.0, 2.0, f64::INFINITY])).unwrap();
        [0.5, 1.0, 1.5, 7.0].iter().for_each(|value| one.observe(*value).unwrap());
        assert!(one.observe(f64::NAN).is_err() && one.set(1.0).is_err());
        assert!(one.increment(1.0).is_err() && one.value().is_err());
        let value = MetricValue::Distribution { counts: vec![2, 1], count: 4, sum: 10.0 };
        assert_eq!(metrics.snapshot()[0].metrics[0].value, value);
    }

    #[test]
    fn names_are_those_of_prometheus_and_not_the_servers() {
        let metrics = CustomMetrics::default();
        for wrong in ["", "1a", "a b", "ä", "nv_inference_count", "python_worker_restarts_total"] {
            assert!(metrics.family(wrong, "", MetricKind::Gauge).is_err(), "{wrong}");
        }
        let family = metrics.family("vllm:a_1", "", MetricKind::Gauge).unwrap();
        for wrong in ["", "__a", "a:b", "1"] {
            let labels = MetricLabels::from([(wrong.to_owned(), String::new())]);
            assert!(family.metric(labels, None).is_err(), "{wrong}");
        }
    }
}

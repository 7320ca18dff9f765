//! Families of metrics that the flags ask for.

use galatea_serving::latency::{LatencyOptions, TrackedQuantile};

/// Quantiles of the summaries unless the flags name others.
const QUANTILES: [(f64, f64); 5] =
    [(0.5, 0.05), (0.9, 0.01), (0.95, 0.001), (0.99, 0.001), (0.999, 0.001)];

/// Families that the flags add or leave out.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsConfig {
    /// True if there are counters of durations.
    pub counters: bool,
    /// True if the time that each model took to load is reported. Recorded Triton has no such family, newer
    /// ones do.
    pub load_durations: bool,
    /// True if the arithmetic of each model and the machine's capabilities are reported. Triton has no such
    /// families.
    pub arithmetic: bool,
    /// Distributions that the core keeps.
    pub latencies: LatencyOptions,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        let latencies = LatencyOptions::default();
        Self { counters: true, load_durations: false, arithmetic: false, latencies }
    }
}

impl MetricsConfig {
    /// Reads values of `--metrics-config`.
    ///
    /// # Errors
    /// Returns a sentence about the first value that cannot be used.
    pub fn parse(values: &[String]) -> Result<Self, String> {
        let mut config = Self::default();
        let mut quantiles: Vec<TrackedQuantile> = QUANTILES
            .iter()
            .map(|&(quantile, error)| TrackedQuantile { quantile, error })
            .collect();
        let mut summaries = false;
        for text in values {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                format!("--metrics-config option format is <setting>=<value>. Got {text}")
            })?;
            match key {
                "counter_latencies" => config.counters = truth(key, value)?,
                "load_durations" => config.load_durations = truth(key, value)?,
                "arithmetic" => config.arithmetic = truth(key, value)?,
                "summary_latencies" => summaries = truth(key, value)?,
                "histogram_latencies" => config.latencies.histograms = truth(key, value)?,
                "summary_quantiles" => quantiles = read_quantiles(value)?,
                _ => {
                    return Err(format!(
                        "--metrics-config has no setting '{key}'; it has counter_latencies, \
                         load_durations, arithmetic, summary_latencies, histogram_latencies and \
                         summary_quantiles"
                    ));
                }
            }
        }
        config.latencies.summaries = summaries.then_some(quantiles);
        Ok(config)
    }
}

fn truth(key: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(format!("--metrics-config {key} expects true or false, got '{value}'")),
    }
}

/// Number at the beginning of a text, as C reads it and with it Triton: what follows does not count.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let letters = text.bytes().take_while(|byte| b"0123456789+-.eE".contains(byte)).count();
    (1..=letters).rev().find_map(|end| text.get(..end)?.parse().ok())
}

/// `quantile:error,…`
fn read_quantiles(text: &str) -> Result<Vec<TrackedQuantile>, String> {
    let pair = |text: &str| {
        let (quantile, error) = text.split_once(':')?;
        let share = |text: &str| leading_number(text).filter(|share| (0.0..=1.0).contains(share));
        Some(TrackedQuantile { quantile: share(quantile)?, error: share(error)? })
    };
    text.split(',')
        .map(|part| {
            pair(part).ok_or_else(|| {
                format!(
                    "--metrics-config summary_quantiles expects \
                     <quantile>:<error>,… with numbers from 0 to 1, got '{part}'"
                )
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<MetricsConfig, String> {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        MetricsConfig::parse(&values)
    }

    #[test]
    fn families_are_chosen() {
        assert_eq!(read(&[]).unwrap(), MetricsConfig::default());
        let config =
            read(&["counter_latencies=false", "summary_latencies=true", "histogram_latencies=1"])
                .unwrap();
        assert!(!config.counters && config.latencies.histograms);
        assert_eq!(config.latencies.summaries.unwrap().len(), 5);
        assert!(read(&["load_durations=true"]).unwrap().load_durations);
        assert!(read(&["arithmetic=true"]).unwrap().arithmetic);
        let config = read(&["summary_quantiles=0.1:0.01,0.75:0.02", "summary_latencies=true"]);
        let quantiles = config.unwrap().latencies.summaries.unwrap();
        assert_eq!(quantiles.get(1), Some(&TrackedQuantile { quantile: 0.75, error: 0.02 }));
    }

    #[test]
    fn numbers_end_where_c_ends_them() {
        let config = read(&["summary_quantiles=0.1:0.0.1,5e-1x: 0.25", "summary_latencies=1"]);
        let quantiles = config.unwrap().latencies.summaries.unwrap();
        let expected =
            [(0.1, 0.0), (0.5, 0.25)].map(|(quantile, error)| TrackedQuantile { quantile, error });
        assert_eq!(quantiles, expected);
    }

    #[test]
    fn mistakes_are_named() {
        for (value, text) in [
            ("counter_latencies=maybe", "expects true or false, got 'maybe'"),
            ("gauges=1", "has no setting 'gauges'"),
            ("summary_quantiles=0.5", "got '0.5'"),
            ("summary_quantiles=0.5:0.1,2:0.1", "got '2:0.1'"),
            ("nothing", "Got nothing"),
        ] {
            let error = read(&[value]).unwrap_err();
            assert!(error.contains(text), "{value}: {error}");
        }
    }
}

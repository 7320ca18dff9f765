//! Options of `galatea quantize` that say how a model is quantised.

use clap::Args;
use galatea_runtime::quantize::{
    AccuracyBound, QuantizeMode, QuantizeOptions, RangeMethod, RoundingAlgorithm,
};

use super::arguments::{choice, number};

/// Options for what is quantised and how.
#[derive(Debug, Args)]
pub(super) struct QuantizeChoices {
    #[arg(
        long,
        value_name = "MODE",
        value_parser = choice(MODES),
        default_value = "dynamic",
        help = "dynamic: INT8 weights of products, inputs become UINT8 as a run goes; \
                static: INT8 weights and values with scales from calibration; \
                int4: weights of products in blocks of 4 bits; \
                fp16, bf16: weights of 16 bits; mixed: static, and FP16 for the rest [dynamic]"
    )]
    mode: QuantizeMode,
    #[arg(
        long,
        value_name = "DATA",
        help = "samples: .npz files or folders of them, each one run, or several along an axis in front; repeatable"
    )]
    pub(super) calibration: Vec<String>,
    #[arg(
        long,
        value_name = "DATA",
        help = "samples on which agreement is measured; repeatable [those of --calibration]"
    )]
    pub(super) evaluation: Vec<String>,
    #[command(flatten)]
    range: RangeChoices,
    #[arg(long, conflicts_with = "per_tensor", help = "a scale for each result [yes]")]
    per_channel: bool,
    #[arg(long, help = "one scale for all weights of a layer")]
    per_tensor: bool,
    #[arg(
        long,
        conflicts_with = "symmetric",
        help = "ranges of values (int4: of weights) need not be around zero [yes]"
    )]
    asymmetric: bool,
    #[arg(long, help = "ranges are around zero")]
    symmetric: bool,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "weights of 4 bits that share a scale [32]"
    )]
    block: Option<usize>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(ALGORITHMS),
        help = "int4: rtn rounds each weight to the nearest number, gptq makes up for errors \
                by calibration [rtn]"
    )]
    algorithm: Option<RoundingAlgorithm>,
    #[arg(long, help = "fp16, bf16, mixed: sums and products of 16 bits too, not weights alone")]
    half_arithmetic: bool,
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = number::<f64>,
        help = "agreement with FP32 to reach: the worst layers stay in FP32 until it holds [0.992]"
    )]
    bound: Option<f64>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(AGREEMENTS),
        help = "top1, cosine or auto: top1 for outputs [rows, classes], else cosine [auto]"
    )]
    agreement: Option<AccuracyBound>,
    #[arg(long, value_name = "LAYER", help = "keep this layer in FP32; repeatable")]
    exclude: Vec<String>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "the most layers whose effect on the whole is measured to find the worst [64]"
    )]
    probes: Option<usize>,
}

/// Words of `--mode`.
const MODES: &[(&str, QuantizeMode)] = &[
    ("dynamic", QuantizeMode::Dynamic),
    ("static", QuantizeMode::Static),
    ("int4", QuantizeMode::Int4),
    ("fp16", QuantizeMode::Fp16),
    ("bf16", QuantizeMode::Bf16),
    ("mixed", QuantizeMode::Mixed),
];
/// Words of `--algorithm`.
const ALGORITHMS: &[(&str, RoundingAlgorithm)] =
    &[("rtn", RoundingAlgorithm::RoundToNearest), ("gptq", RoundingAlgorithm::Gptq)];
/// Words of `--agreement`.
const AGREEMENTS: &[(&str, AccuracyBound)] = &[
    ("auto", AccuracyBound::Auto),
    ("top1", AccuracyBound::Top1),
    ("cosine", AccuracyBound::Cosine),
];

/// Options for ranges of values.
#[derive(Debug, Args)]
pub(super) struct RangeChoices {
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(METHODS),
        help = "range of values between layers: minmax, entropy or percentile [minmax]"
    )]
    pub(super) method: Option<RangeName>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f64>,
        help = "share of values in the range, in percent [99.99]"
    )]
    pub(super) percentile: Option<f64>,
}

/// Name of a method for ranges of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeName {
    MinMax,
    Entropy,
    Percentile,
}

/// Words of `--method`.
const METHODS: &[(&str, RangeName)] = &[
    ("minmax", RangeName::MinMax),
    ("entropy", RangeName::Entropy),
    ("percentile", RangeName::Percentile),
];
/// Share of values in a range, in percent, where nothing else is said.
const PERCENTILE: f64 = 99.99;

impl RangeChoices {
    /// Returns the method for ranges of values.
    ///
    /// # Errors
    /// Fails when a percentile is given for another method.
    pub(super) fn range_method(&self, usual: RangeMethod) -> Result<RangeMethod, String> {
        match (self.method, self.percentile) {
            (Some(RangeName::MinMax | RangeName::Entropy), Some(_)) => {
                Err("--percentile goes with --method percentile".to_owned())
            }
            (Some(RangeName::MinMax), None) => Ok(RangeMethod::MinMax),
            (Some(RangeName::Entropy), None) => Ok(RangeMethod::Entropy),
            (Some(RangeName::Percentile), None) => Ok(RangeMethod::Percentile(PERCENTILE)),
            (_, Some(percentile)) => Ok(RangeMethod::Percentile(percentile)),
            (None, None) => Ok(usual),
        }
    }
}

impl QuantizeChoices {
    /// Returns the options of a quantisation.
    ///
    /// # Errors
    /// Fails when options do not go with each other.
    pub(super) fn options(&self) -> Result<QuantizeOptions, String> {
        let usual = QuantizeOptions::new(self.mode);
        Ok(QuantizeOptions {
            method: self.range.range_method(usual.method)?,
            per_channel: (self.per_channel || usual.per_channel) && !self.per_tensor,
            symmetric: (self.symmetric || usual.symmetric) && !self.asymmetric,
            block: self.block.unwrap_or(usual.block),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
            half_arithmetic: self.half_arithmetic,
            bound: self.bound.unwrap_or(usual.bound),
            agreement: self.agreement.unwrap_or(usual.agreement),
            exclude: self.exclude.clone(),
            probes: self.probes.unwrap_or(usual.probes),
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<QuantizeOptions, String> {
        parse::<QuantizeChoices>(arguments)?.options()
    }

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let found = parsed(&["--mode", "static", "--percentile=99.9", "--symmetric"]).unwrap();
        assert_eq!((found.mode, found.symmetric), (QuantizeMode::Static, true));
        assert_eq!(found.method, RangeMethod::Percentile(99.9));
        assert_eq!(parsed(&[]).unwrap(), QuantizeOptions::new(QuantizeMode::Dynamic));
        let error = |arguments: &[&str]| parsed(arguments).unwrap_err();
        assert!(error(&["--mode", "int3"]).contains("dynamic, static, int4"));
        assert!(error(&["--per-channel", "--per-tensor"]).contains("exclude each other"));
        assert!(error(&["--method=entropy", "--percentile=99"]).contains("--method percentile"));
        assert!(error(&["--block", "x"]).contains("expects a number"));
    }
}

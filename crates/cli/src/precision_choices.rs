//! Options of `galatea convert` that say how precise a package is.

use clap::Args;

use super::arguments::{purpose, worded_choice};
use super::convert_choices::named;
use super::quantize_choices::RangeChoices;

/// The word for inputs that are made.
pub(super) const RANDOM: &str = "random";

/// Options for the precision of a package.
#[derive(Debug, Args)]
#[command(mut_args(purpose(
    "method",
    "range of activations: minmax, entropy or percentile [minmax]"
)))]
pub(super) struct PrecisionChoices {
    #[arg(
        long,
        value_name = "int8",
        value_parser = worded_choice(ACTIVATIONS, wrong_form),
        help = "values that layers read have 8 bits too, with scales from --calibration [floats]"
    )]
    activations: Option<ActivationForm>,
    #[arg(
        long,
        value_name = "DATA|random",
        help = "samples: .npz files or folders of them, each one run, or several along an axis in front; repeatable"
    )]
    pub(super) calibration: Vec<String>,
    #[command(flatten)]
    pub(super) range: RangeChoices,
    #[arg(
        long,
        value_name = "NODE",
        help = "activations of this node, or of this operator, stay floats; repeatable"
    )]
    pub(super) exclude: Vec<String>,
    #[arg(
        long,
        value_name = "COSINE",
        value_parser = cosine,
        help = "activations of the worst layers stay floats until results agree so far with FP32 [all have 8 bits]"
    )]
    pub(super) accuracy: Option<f64>,
    #[arg(
        long,
        value_name = "auto|none|NODE,…",
        help = "nodes computed in FP32: those whose values FP16 does not hold, none, or these; repeatable [auto with --calibration, else none]"
    )]
    pub(super) islands: Vec<String>,
    #[arg(
        long,
        value_name = "DATA|random",
        help = "run the package on samples and compare it with the model in FP32; nothing is written where FP32 has numbers that it has not; repeatable"
    )]
    pub(super) check: Vec<String>,
}

/// Form of the values that layers read.
#[derive(Debug, Clone, Copy)]
enum ActivationForm {
    /// Whole numbers of 8 bits.
    Int8,
}

/// Words of `--activations`.
const ACTIVATIONS: &[(&str, ActivationForm)] = &[("int8", ActivationForm::Int8)];

fn wrong_form(given: &str) -> String {
    format!(": '{given}' found, expected int8")
}

impl PrecisionChoices {
    /// Names of the given options.
    pub(super) fn given(&self) -> Vec<&'static str> {
        named([
            ("activations", self.activations.is_some()),
            ("islands", !self.islands.is_empty()),
            ("check", !self.check.is_empty()),
            ("calibration", !self.calibration.is_empty()),
            ("method", self.range.method.is_some()),
            ("percentile", self.range.percentile.is_some()),
            ("exclude", !self.exclude.is_empty()),
            ("accuracy", self.accuracy.is_some()),
        ])
    }

    /// Returns whether the package is compared with the model.
    pub(super) fn checks(&self) -> bool {
        !self.check.is_empty()
    }

    /// Returns whether activations have 8 bits.
    ///
    /// # Errors
    /// Fails when options go with such activations only, or these lack their samples.
    pub(super) fn quantised(&self) -> Result<bool, String> {
        let quantised = matches!(self.activations, Some(ActivationForm::Int8));
        if quantised && self.calibration.is_empty() {
            return Err(format!(
                "--activations int8 needs --calibration DATA; with '{RANDOM}' scales are those of noise"
            ));
        }
        let rows = [
            ("method", self.range.method.is_some()),
            ("percentile", self.range.percentile.is_some()),
            ("exclude", !self.exclude.is_empty()),
            ("accuracy", self.accuracy.is_some()),
        ];
        match rows.into_iter().find(|(_, given)| *given && !quantised) {
            Some((name, _)) => Err(format!("--{name} goes with --activations int8")),
            None => Ok(quantised),
        }
    }
}

/// Reads the required agreement with FP32 results, a cosine.
fn cosine(text: &str) -> Result<f64, String> {
    let target = text.parse().ok().filter(|target: &f64| (0.0..=1.0).contains(target));
    target.ok_or_else(|| format!("'{text}' found, expected a cosine from 0 to 1 such as 0.992"))
}

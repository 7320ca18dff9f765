//! Command line of `galatea simulate`.

use std::path::PathBuf;

use clap::Args;
use galatea_runtime::power::{PowerPolicy, PowerSettings};
use galatea_runtime::simulate::{FleetNetwork, ModelLoading};

use super::arguments::{NamedLength, number, parsed, path};

/// Command line of `galatea simulate`.
#[derive(Debug, Args)]
pub(super) struct SimulateArguments {
    #[arg(
        long,
        value_name = "FILE",
        value_parser = path,
        help = "models and requests, lines of JSON"
    )]
    pub(super) trace: Option<PathBuf>,
    #[arg(
        long = "chip",
        value_name = "NAME",
        help = "a machine with this chip, such as m2-pro, m4-max:32 (cores of the GPU) or FILE.toml; repeatable"
    )]
    pub(super) chips: Vec<String>,
    #[arg(
        long,
        value_name = "FILE",
        value_parser = path,
        help = "machines with their counts, JSON"
    )]
    pub(super) fleet: Option<PathBuf>,
    #[arg(
        long = "model",
        value_name = "NAME=FILE",
        value_parser = NamedFile::parse,
        help = "a model of the trace: ONNX, Core ML or a checkpoint; repeatable"
    )]
    pub(super) models: Vec<NamedFile>,
    #[arg(
        long = "length",
        value_name = "NAME=N",
        value_parser = length,
        help = "a length of graphs that has a name [1]; repeatable"
    )]
    pub(super) lengths: Vec<NamedLength>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = parsed::<PowerPolicy>,
        help = "high_performance, balanced or low_power [balanced]"
    )]
    policy: Option<PowerPolicy>,
    #[arg(
        long,
        value_name = "W",
        value_parser = watts,
        help = "watts of each chip at most"
    )]
    power_target_watts: Option<f64>,
    #[arg(
        long,
        help = "models are read from disks and compiled for Neural Engines before they run"
    )]
    loading: bool,
    #[arg(
        long,
        value_name = "S",
        value_parser = compile_seconds,
        help = "with --loading: how long a Neural Engine's compiler takes for 10⁹ bytes of weights [20]"
    )]
    compile_seconds_per_gb: Option<f64>,
    #[arg(
        long,
        value_name = "MS,MBIT",
        value_parser = network,
        help = "milliseconds between clients and machines, and Mbit/s of each machine's link"
    )]
    pub(super) network: Option<FleetNetwork>,
    #[arg(long, help = "print one line of JSON")]
    pub(super) json: bool,
}

/// A model of a trace, and its file.
#[derive(Debug, Clone)]
pub(super) struct NamedFile {
    pub(super) name: String,
    pub(super) file: PathBuf,
}

impl NamedFile {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, file) = pair(text)?;
        Ok(Self { name: name.to_owned(), file: file.into() })
    }
}

impl SimulateArguments {
    /// Returns the power settings of a fleet.
    pub(super) fn power(&self) -> PowerSettings {
        let usual = PowerSettings::default();
        PowerSettings {
            policy: self.policy.unwrap_or(usual.policy),
            target_watts: self.power_target_watts.or(usual.target_watts),
            ..usual
        }
    }

    /// Returns how models are loaded, where they are.
    ///
    /// # Errors
    /// Fails when an option goes with loading only.
    pub(super) fn loading(&self) -> Result<Option<ModelLoading>, String> {
        let mut loading = ModelLoading::default();
        if let Some(seconds) = self.compile_seconds_per_gb {
            if !self.loading {
                return Err("--compile-seconds-per-gb needs --loading".to_owned());
            }
            loading.compile_seconds_per_byte = seconds / 1e9;
        }
        Ok(self.loading.then_some(loading))
    }
}

/// Reads the watts of a chip.
fn watts(text: &str) -> Result<f64, String> {
    const NAME: &str = "power_target_watts";
    let watts = number(text)?;
    let checked = PowerSettings::default().set(NAME, text);
    checked.map_err(|error| error.trim_start_matches(NAME).to_owned())?;
    Ok(watts)
}

/// Reads how long a compiler takes.
fn compile_seconds(text: &str) -> Result<f64, String> {
    number::<f64>(text)?;
    above(text, |number| number >= 0.0)
        .ok_or_else(|| format!("expects seconds from 0 on, got '{text}'"))
}

/// `MS,MBIT`: latency and bandwidth.
fn network(text: &str) -> Result<FleetNetwork, String> {
    let read = || {
        let (ms, mbit) = text.split_once(',')?;
        let ms = above(ms, |number| number >= 0.0)?;
        let mbit = above(mbit, |number| number > 0.0)?;
        Some(FleetNetwork { seconds: ms / 1e3, bytes: mbit * 1e6 / 8.0 })
    };
    read().ok_or_else(|| format!("expects milliseconds and Mbit/s, such as 5,1000, got '{text}'"))
}

/// The finite number of a text, where it fits.
fn above(text: &str, fits: impl Fn(f64) -> bool) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && fits(*number))
}

/// Splits `NAME=VALUE`.
fn pair(text: &str) -> Result<(&str, &str), String> {
    let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    parts.ok_or_else(|| format!("expects NAME=…, got '{text}'"))
}

/// Reads a length of graphs.
fn length(text: &str) -> Result<NamedLength, String> {
    let (name, length) = pair(text)?;
    let length = length.parse().ok().filter(|&length: &usize| length > 0);
    let length = length.ok_or_else(|| format!("expects NAME=N, got '{text}'"))?;
    Ok(NamedLength { name: name.to_owned(), length })
}

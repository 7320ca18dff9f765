//! Contract of tuning kernels while a server is idle.

use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use galatea_runtime::KernelTuningReport;
use galatea_runtime::tune::TuningGate;

/// Models whose kernels are measured while the server is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoTuning {
    /// None.
    Never,
    /// Models whose `enable_auto_tuning` is true.
    #[default]
    Asked,
    /// All but those whose `enable_auto_tuning` is false.
    Always,
}

impl AutoTuning {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Never, Self::Asked, Self::Always];

    /// Returns whether the kernels of a model with this `enable_auto_tuning` are measured.
    #[must_use]
    pub fn measures(self, enabled: Option<bool>) -> bool {
        match self {
            Self::Never => false,
            Self::Asked => enabled == Some(true),
            Self::Always => enabled != Some(false),
        }
    }
}

impl Display for AutoTuning {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::Asked => "asked",
            Self::Always => "always",
        })
    }
}

impl FromStr for AutoTuning {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.to_string() == text.trim());
        found.ok_or_else(|| format!("'{text}' found, expected never, asked or always"))
    }
}

/// Policy on tuning the kernels of models while a server is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTuningPolicy {
    /// Models whose kernels are measured.
    pub models: AutoTuning,
    /// The most time that the kernels of a version are measured.
    pub time: Duration,
    /// Cores that a measurement keeps busy.
    pub cores: usize,
}

impl Default for KernelTuningPolicy {
    fn default() -> Self {
        Self { models: AutoTuning::default(), time: Duration::from_secs(60), cores: 1 }
    }
}

/// Tunes the kernels of a loaded version.
pub trait KernelTuner: Debug + Send + Sync {
    /// Measures what has no record for one more set of input shapes, each measurement when the gate is open. Returns
    /// `None` where nothing is left to measure.
    fn tune(&self, gate: &dyn TuningGate) -> Option<KernelTuningReport>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read_back_and_say_whose_kernels_are_measured() {
        for word in AutoTuning::ALL {
            assert_eq!(word.to_string().parse(), Ok(word));
        }
        let error = "often".parse::<AutoTuning>().unwrap_err();
        assert_eq!(error, "'often' found, expected never, asked or always");
        let measured = |word: AutoTuning| [None, Some(true), Some(false)].map(|e| word.measures(e));
        assert_eq!(measured(AutoTuning::Never), [false; 3]);
        assert_eq!(measured(AutoTuning::Asked), [false, true, false]);
        assert_eq!(measured(AutoTuning::Always), [true, true, false]);
    }
}

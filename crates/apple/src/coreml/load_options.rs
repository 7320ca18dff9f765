//! Options of loading a model.

/// Devices that a model may run on. Core ML decides for each operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComputeUnits {
    /// The CPU.
    CpuOnly,
    /// CPU and GPU.
    CpuAndGpu,
    /// CPU, GPU and Neural Engine.
    #[default]
    All,
    /// CPU and Neural Engine.
    CpuAndNeuralEngine,
}

impl ComputeUnits {
    /// The number in Core ML's `MLComputeUnits`.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    pub(super) fn number(self) -> isize {
        match self {
            Self::CpuOnly => 0,
            Self::CpuAndGpu => 1,
            Self::All => 2,
            Self::CpuAndNeuralEngine => 3,
        }
    }
}

/// Options of loading a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoreMlLoadOptions {
    /// Devices that it may run on.
    pub units: ComputeUnits,
    /// Function of a model with several; the default one if none is named. macOS 15.
    pub function: Option<String>,
    /// Loads for longer so that predictions are faster. macOS 15.
    pub fast_prediction: bool,
    /// Shapes change rarely, so Core ML may prepare itself anew for each. macOS 14.4.
    pub infrequent_reshapes: bool,
    /// The GPU may add in half precision.
    pub low_precision_accumulation: bool,
    /// The name in Apple's tools.
    pub display_name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_the_numbers_of_core_ml() {
        let units = [
            ComputeUnits::CpuOnly,
            ComputeUnits::CpuAndGpu,
            ComputeUnits::All,
            ComputeUnits::CpuAndNeuralEngine,
        ];
        assert_eq!(units.map(ComputeUnits::number), [0, 1, 2, 3]);
    }
}

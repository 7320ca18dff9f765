//! Devices that Core ML can compute on.

use std::fmt;

/// A device of Core ML's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoreMlDevice {
    /// The CPU, matrix units included.
    Cpu,
    /// A GPU.
    Gpu {
        /// Metal's name for it.
        name: String,
    },
    /// The Neural Engine.
    NeuralEngine {
        /// Its cores.
        cores: usize,
    },
    /// A device that is none of these.
    Other,
}

impl fmt::Display for CoreMlDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("CPU"),
            Self::Gpu { name } => write!(f, "GPU {name}"),
            Self::NeuralEngine { cores } => write!(f, "Neural Engine of {cores} cores"),
            Self::Other => f.write_str("another device"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_apart() {
        let cores = CoreMlDevice::NeuralEngine { cores: 16 };
        assert_eq!(cores.to_string(), "Neural Engine of 16 cores");
        let gpu = CoreMlDevice::Gpu { name: "Apple M1".to_owned() };
        assert_eq!(gpu.to_string(), "GPU Apple M1");
    }
}

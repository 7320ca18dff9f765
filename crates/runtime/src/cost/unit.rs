//! Parts of a chip that compute.

/// A part of a chip that computes, as Core ML names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ComputeUnit {
    /// The processor with its matrix units.
    Cpu,
    /// The GPU.
    Gpu,
    /// The Neural Engine.
    NeuralEngine,
}

impl ComputeUnit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Gpu, Self::NeuralEngine];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::NeuralEngine => "neural_engine",
        }
    }
}

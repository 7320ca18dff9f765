//! Devices by the number that C has for them.

/// Device that computes something.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeUnitKind {
    /// The choice is the library's, or several devices compute.
    Auto = 0,
    /// The CPU, its matrix unit included.
    Cpu = 1,
    /// A GPU.
    Gpu = 2,
    /// The Neural Engine, or the interpreter of its programs where there is none.
    NeuralEngine = 3,
    /// The plain evaluation that kernels are tested against.
    Reference = 4,
}

impl ComputeUnitKind {
    /// The kind of the devices that run something, by the names of their providers.
    pub(crate) fn of(devices: &[&str]) -> Self {
        match devices {
            ["cpu"] => Self::Cpu,
            ["gpu"] => Self::Gpu,
            ["coreml"] => Self::NeuralEngine,
            ["reference"] => Self::Reference,
            _ => Self::Auto,
        }
    }
}

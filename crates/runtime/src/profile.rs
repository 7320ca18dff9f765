//! Times of the steps of a run.

use std::time::Duration;

use crate::work::ArithmeticWork;

/// Kind of instructions that multiply and add in a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArithmeticUnit {
    /// Ordinary instructions, one element of a vector or thread at a time.
    #[default]
    Vector,
    /// Instructions on whole matrices.
    Matrix,
    /// Products of BF16 of a CPU, with sums of FP32.
    Bf16,
    /// Products of bytes of a CPU, with sums of 32 bits.
    Int8,
}

impl ArithmeticUnit {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

/// Time of one step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileRow {
    /// The node's name, or that of its first output where it has none.
    pub node: String,
    /// The operator.
    pub op: String,
    /// Name of the code that ran it, such as the kernel's name.
    pub kernel: String,
    /// The provider.
    pub provider: &'static str,
    /// The time.
    pub time: Duration,
    /// Least work that it had to do.
    pub work: ArithmeticWork,
    /// Kind of instructions that multiplied and added.
    pub unit: ArithmeticUnit,
    /// True if the time was not measured by itself: it is the step's share of a longer one, by what a framework
    /// says that its steps cost.
    pub estimated: bool,
}

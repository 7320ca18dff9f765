//! Operators of a model and the devices on which Core ML means to run them.

use super::CoreMlDevice;

/// An operator of a model and its devices.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreMlPlannedOperator {
    /// The function of an ML program; the name of a pipeline's model; empty for other networks.
    pub function: String,
    /// The blocks around it, the outermost first.
    pub path: Vec<EnclosingBlock>,
    /// Its place in its block.
    pub index: usize,
    /// The operator's name in MIL with its opset's suffix, such as `ios16.conv`; the type of a
    /// network's layer.
    pub operator: String,
    /// The names of what it gives.
    pub outputs: Vec<String>,
    /// Device on which Core ML means to run it; `None` for what is not run, such as a constant.
    pub preferred: Option<CoreMlDevice>,
    /// Devices on which it could run.
    pub supported: Vec<CoreMlDevice>,
    /// Its share of the whole's cost, from 0 to 1.
    pub weight: Option<f64>,
}

/// A block of an operator with blocks, such as a branch of `cond`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnclosingBlock {
    /// The operator's place in its own block.
    pub operation: usize,
    /// Index of the block in the operator.
    pub block: usize,
}

/// Depth to which blocks within blocks are followed.
#[cfg(any(target_os = "macos", apple_doubles))]
pub(super) const DEPTH: usize = 64;

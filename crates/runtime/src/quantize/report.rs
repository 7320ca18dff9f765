//! Report of what quantizing a model cost.

use super::fallback::LayerAttempt;
use super::measure::OutputLikeness;

/// Result of quantizing a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// The node's name, or that of its result.
    pub name: String,
    /// The operator.
    pub op: String,
    /// The form of its numbers, such as `INT8`.
    pub form: &'static str,
    /// Likeness of its results to those in FP32 when it alone is quantized; `None` without data.
    pub likeness: Option<OutputLikeness>,
    /// Change in the results of the whole when it alone is quantized: one minus the cosine, or the divergence
    /// for classes. Measured or estimated where layers had to be chosen, else `None`.
    pub effect: Option<f64>,
    /// Reason why it stayed in FP32.
    pub reason: Option<String>,
}

/// Likeness of an output of the model to that in FP32.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputReport {
    /// The output.
    pub name: String,
    /// Over all samples.
    pub likeness: OutputLikeness,
}

/// Loss from quantizing a model, by layer and as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuantizeReport {
    /// The layers in the graph's order.
    pub layers: Vec<LayerReport>,
    /// The outputs; none without data.
    pub outputs: Vec<OutputReport>,
    /// Name of the measure of agreement: `top-1` or `cosine`.
    pub measure: &'static str,
    /// Agreement of results with FP32, of the worst output; `None` without data.
    pub agreement: Option<f64>,
    /// Agreement that they should reach.
    pub bound: f64,
    /// Numbers of layers that were left out to reach it; the last one is what was done.
    pub attempts: Vec<LayerAttempt>,
    /// Bytes of the constants before.
    pub bytes_before: usize,
    /// Bytes of the constants now.
    pub bytes_after: usize,
}

impl QuantizeReport {
    /// Returns whether the agreement reaches the bound, as far as is known.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.agreement.is_none_or(|agreement| agreement >= self.bound)
    }
}

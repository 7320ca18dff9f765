//! What quantising a model cost.

use super::fallback::Attempt;
use super::measure::Likeness;

/// What became of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// The node's name, or that of its result.
    pub name: String,
    /// The operator.
    pub op: String,
    /// The form of its numbers, such as `INT8`.
    pub form: &'static str,
    /// How like its results are to those in FP32 when it alone is quantised; without data nothing is
    /// known.
    pub likeness: Option<Likeness>,
    /// What quantising it alone changes in the results of the whole: one minus the cosine, or the
    /// divergence for classes. Measured or estimated where layers had to be chosen, else `None`.
    pub effect: Option<f64>,
    /// Why it stayed in FP32.
    pub reason: Option<String>,
}

/// How like an output of the model is to that in FP32.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputReport {
    /// The output.
    pub name: String,
    /// Over all samples.
    pub likeness: Likeness,
}

/// What quantising a model cost, by layer and as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The layers in the graph's order.
    pub layers: Vec<LayerReport>,
    /// The outputs; none without data.
    pub outputs: Vec<OutputReport>,
    /// What agreement means here: `top-1` or `cosine`.
    pub measure: &'static str,
    /// How far results agree with FP32, the worst output; `None` without data.
    pub agreement: Option<f64>,
    /// What they should reach.
    pub bound: f64,
    /// Numbers of layers that were left out to reach it; the last one is what was done.
    pub attempts: Vec<Attempt>,
    /// Bytes of the constants before.
    pub bytes_before: usize,
    /// Bytes of the constants now.
    pub bytes_after: usize,
}

impl Report {
    /// Whether the agreement reaches the bound, as far as is known.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.agreement.is_none_or(|agreement| agreement >= self.bound)
    }
}

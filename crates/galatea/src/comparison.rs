//! Comparison of two models on the same inputs.

use std::time::{Duration, Instant};

use galatea_runtime::tune::{CandidatePair, PairedTimes, ResultAgreement, TuningTarget};
use galatea_tensor::Tensor;

use crate::{Error, ErrorKind, Model};

/// Limits of a comparison of two models.
///
/// ```
/// assert!(galatea::ComparisonLimits::default().samples > 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonLimits {
    /// The most runs of each model that are timed.
    pub samples: usize,
    /// The most time to take, once there are enough runs to say anything.
    pub time: Duration,
    /// Distance that results may have, relative to the largest of them.
    pub tolerance: f32,
}

impl Default for ComparisonLimits {
    fn default() -> Self {
        Self { samples: 30, time: Duration::from_secs(10), tolerance: 1e-3 }
    }
}

/// Result of a comparison of two models.
///
/// ```
/// # let model = galatea::Engine::new().model("../../examples/models/simple")?;
/// # let ones = galatea::Tensor::from_vec(&[1, 16], vec![1_i32; 16]).unwrap();
/// let inputs = [("INPUT0", ones.clone()), ("INPUT1", ones)];
/// let comparison = model.compare(&model, &inputs, galatea::ComparisonLimits::default())?;
/// assert!(comparison.agreement.holds());
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelComparison {
    /// Times, and which model is faster.
    pub times: PairedTimes,
    /// Agreement of the first outputs that are floats.
    pub agreement: ResultAgreement,
}

/// Two models on the same inputs.
struct ModelPair<'a> {
    models: [&'a Model; 2],
    inputs: &'a [(&'a str, Tensor)],
}

impl TuningTarget for ModelPair<'_> {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        let outputs = self.models[candidate].run(self.inputs).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        for (_, tensor) in outputs {
            let floats = galatea_graph::converted(&tensor, galatea_tensor::DataType::Fp32);
            // Texts have no distance.
            all.extend(
                floats.ok().and_then(|floats| floats.to_vec::<f32>().ok()).unwrap_or_default(),
            );
        }
        Ok(all)
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        let begin = Instant::now();
        self.models[candidate].run(self.inputs).map_err(|error| error.to_string())?;
        Ok(begin.elapsed().as_secs_f64() * 1e9)
    }
}

impl Model {
    /// Compares this model with another one (an A/B test): both run in turn on the same inputs.
    ///
    /// # Errors
    /// Fails when one of them does not run on the inputs.
    ///
    /// ```
    /// use galatea::{ComparisonLimits, Engine, ModelOptions, Tensor};
    ///
    /// let path = "../../examples/models/simple";
    /// let reference = ModelOptions { device: Some("reference".to_owned()), ..ModelOptions::default() };
    /// let (fast, plain) = (Engine::new().model(path)?, Engine::new().model_with(path, &reference)?);
    /// let ones = Tensor::from_vec(&[1, 16], vec![1_i32; 16])?;
    /// let inputs = [("INPUT0", ones.clone()), ("INPUT1", ones)];
    /// let found = fast.compare(&plain, &inputs, ComparisonLimits::default())?;
    /// println!("{}", found.times.sentence(["fast", "plain"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compare(
        &self,
        other: &Self,
        inputs: &[(&str, Tensor)],
        limits: ComparisonLimits,
    ) -> Result<ModelComparison, Error> {
        let mut device = ModelPair { models: [self, other], inputs };
        let ComparisonLimits { samples, time, tolerance } = limits;
        let pair =
            CandidatePair { device: &mut device, candidates: [0, 1], samples, time, tolerance };
        let begin = Instant::now();
        let found = pair.run(&mut || begin.elapsed()).map_err(Error::of(ErrorKind::Run))?;
        Ok(ModelComparison { times: found.0, agreement: found.1 })
    }
}

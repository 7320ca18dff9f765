//! Check that a compiled partition gives the CPU's FP32 results: compared once, on samples that the configuration names and
//! on inputs made for it.

use std::sync::Arc;

use galatea_graph::{Datum, Graph, converted};
use galatea_runtime::{
    CompileRequest, Executable, ExecutionProvider, Precision, RuntimeError, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

use super::NAME;
use super::engine::{ValidationEntry, counts};
use super::probe_samples::ProbeSamples;
use galatea_providers::cpu::CpuProvider;

/// Comparison of a partition, and its exactness.
pub(super) struct AccuracyProbe<'a> {
    /// A partition with known shapes.
    pub(super) graph: &'a Arc<Graph>,
    pub(super) options: &'a SessionOptions,
    /// Inputs besides those that are made.
    pub(super) samples: &'a ProbeSamples,
    /// The largest relative error: the root of the mean square of differences against that of results.
    pub(super) limit: f64,
    /// The result of an earlier comparison, if there was one.
    pub(super) verdict: &'a ValidationEntry,
}

impl AccuracyProbe<'_> {
    /// Compares what an executable of the graph gives, where that was not done before.
    ///
    /// # Errors
    /// Fails when it fails, gives no numbers where FP32 has some, or differs by more than the
    /// limit.
    pub(super) fn check(&self, executable: &dyn Executable) -> Result<(), RuntimeError> {
        let found = self.verdict.known().unwrap_or_else(|| {
            let found = self.compare(executable);
            self.verdict.keep(&found);
            if found.is_err() {
                counts::fallback();
            }
            found
        });
        found.map_err(|text| RuntimeError::provider(NAME, text))
    }

    fn compare(&self, executable: &dyn Executable) -> Result<(), String> {
        let mut all = self.samples.inputs(self.graph);
        all.extend(inputs(self.graph));
        if all.is_empty() {
            return Ok(());
        }
        let whole = SessionOptions { precision: Precision::Fp32, ..self.options.clone() };
        let exact =
            CpuProvider::new().compile(CompileRequest::alone(Arc::clone(self.graph), &whole));
        let exact = match exact {
            Ok(exact) => exact,
            Err(error) => {
                tracing::debug!(model = %self.graph.name, "no accuracy probe: {error}");
                return Ok(());
            }
        };
        all.into_iter().try_for_each(|inputs| self.compare_on(executable, &*exact, inputs))
    }

    fn compare_on(
        &self,
        executable: &dyn Executable,
        exact: &dyn Executable,
        inputs: Vec<Datum>,
    ) -> Result<(), String> {
        counts::comparison();
        let expected = exact.submit(inputs.clone().into()).outputs();
        let expected = match expected {
            Ok(expected) => expected,
            // Made inputs may be none that the model takes, such as places beyond a table.
            Err(error) => {
                tracing::debug!(model = %self.graph.name, "no accuracy probe: {error}");
                return Ok(());
            }
        };
        let found = executable.submit(inputs.into()).outputs();
        let found = found.map_err(|error| format!("accuracy probe: {error}"))?;
        let names = self.graph.outputs.iter().map(|&id| self.graph.value(id).name.as_str());
        for (name, (found, expected)) in names.zip(found.iter().zip(&expected)) {
            let (Some(found), Some(expected)) = (floats(found), floats(expected)) else { continue };
            let error = relative_error(&found, &expected).ok_or_else(|| {
                format!("accuracy probe: '{name}' has no numbers where FP32 has some")
            })?;
            if error > self.limit {
                return Err(format!(
                    "accuracy probe: '{name}' differs from FP32 by {error:.3} of its size, the limit is {}",
                    self.limit
                ));
            }
            tracing::debug!(model = %self.graph.name, output = name, error, "accuracy probe");
        }
        Ok(())
    }
}

/// Inputs for a run: numbers from -1 to 1, integers and truth values that are 0 or 1. None where a shape is
/// not known.
fn inputs(graph: &Graph) -> Option<Vec<Datum>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    let made = graph.inputs.iter().map(|&id| {
        let fact = graph.value(id).declared.as_ref().filter(|fact| fact.is_tensor())?;
        let shape = fact.known_shape()?;
        let count = shape.iter().product::<usize>();
        let real = fact.dtype.is_float();
        #[allow(clippy::cast_precision_loss, reason = "24 bits")]
        let one = |bits: u64| match real {
            true => bits as f32 / 8_388_608.0 - 1.0,
            false => (bits % 2) as f32,
        };
        let all: Vec<f32> = (0..count).map(|_| one(next())).collect();
        let tensor = Tensor::from_vec(&shape, all).ok()?;
        Some(Datum::Tensor(converted(&tensor, fact.dtype).ok()?))
    });
    made.collect()
}

/// The numbers of a tensor of floats.
fn floats(datum: &Datum) -> Option<Vec<f32>> {
    let tensor = datum.as_tensor().filter(|tensor| tensor.dtype().is_float())?;
    converted(tensor, DataType::Fp32).ok()?.to_vec::<f32>().ok()
}

/// The root of the mean square of differences against that of what is expected. None where a number is
/// expected and none is there.
fn relative_error(found: &[f32], expected: &[f32]) -> Option<f64> {
    let mut apart = 0.0_f64;
    let mut size = 0.0_f64;
    for (&found, &expected) in found.iter().zip(expected) {
        if !expected.is_finite() {
            continue;
        }
        if !found.is_finite() {
            return None;
        }
        let found = f64::from(found);
        let expected = f64::from(expected);
        apart += (found - expected).powi(2);
        size += expected.powi(2);
    }
    // Next to nothing differs from nothing by rounding alone.
    let least = f64::from(galatea_tensor::f16::EPSILON.to_f32()).powi(2);
    #[allow(clippy::cast_precision_loss, reason = "a count")]
    let floor = least * expected.len() as f64;
    Some((apart / size.max(floor).max(f64::MIN_POSITIVE)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_whole() {
        assert_eq!(relative_error(&[1.0, 2.0], &[1.0, 2.0]), Some(0.0));
        let error = relative_error(&[1.1, 2.0], &[1.0, 2.0]).unwrap();
        assert!((error - 0.1 / 5.0_f64.sqrt()).abs() < 1e-6, "{error}");
        // A mask is infinite in both.
        assert_eq!(relative_error(&[-65504.0, 1.0], &[f32::NEG_INFINITY, 1.0]), Some(0.0));
        assert_eq!(relative_error(&[f32::NAN], &[1.0]), None);
        assert_eq!(relative_error(&[f32::INFINITY], &[70000.0]), None);
        assert!(relative_error(&[1e-5], &[0.0]).unwrap() < 0.05);
    }
}

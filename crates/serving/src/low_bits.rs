//! Weights of few bits that a model gets when it is loaded.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_graph::{Graph, infer};
use galatea_runtime::quantize::{
    NamedInputs, QuantizeContext, QuantizeMode, QuantizeOptions, QuantizeReport, RoundingAlgorithm,
    quantize,
};
use galatea_runtime::{ExecutionProvider, IoInfo, SessionOptions, typical_shapes};
use galatea_tensor::{Tensor, read_plain_file};

use crate::made_values::{MadeNoise, values};
use crate::model_cache::GraphTransform;
use crate::samples::samples;

/// Folder of a model that holds samples of its inputs.
const SAMPLES: &str = "calibration";
/// Samples that are made where a model brings none.
const MADE_SAMPLES: u64 = 8;
/// The most layers whose effect is measured alone to find the worst: a load waits for it.
const PROBES: usize = 24;

/// Operators of models that are quantized already.
const QUANTIZED: &[&str] = &[
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "ConvInteger",
    "QLinearMatMul",
    "QLinearConv",
    "MatMulNBits",
];

/// Bits of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowBits {
    /// Eight bits.
    Int8,
    /// Four bits, in blocks that share a scale.
    Int4,
}

impl fmt::Display for LowBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int8 => "int8",
            Self::Int4 => "int4",
        })
    }
}

/// Quantization of a model while it is loaded.
#[derive(Clone, Debug)]
pub struct LoadQuantization {
    bits: LowBits,
    /// Archives of samples, in the order of their names.
    samples: Vec<PathBuf>,
}

impl LoadQuantization {
    /// Looks for samples in a model's folder.
    #[must_use]
    pub fn new(bits: LowBits, model_dir: &Path) -> Self {
        let entries = fs::read_dir(model_dir.join(SAMPLES)).into_iter().flatten().flatten();
        let archive = |path: &PathBuf| path.extension().is_some_and(|end| end == "npz");
        let mut samples: Vec<PathBuf> = entries.map(|one| one.path()).filter(archive).collect();
        samples.sort();
        Self { bits, samples }
    }

    /// Options: values between layers have eight bits too where there are samples to take their ranges from.
    fn options(&self) -> QuantizeOptions {
        let calibrated = !self.samples.is_empty();
        let mode = match self.bits {
            LowBits::Int8 if calibrated => QuantizeMode::Static,
            LowBits::Int8 => QuantizeMode::Dynamic,
            LowBits::Int4 => QuantizeMode::Int4,
        };
        let algorithm = match calibrated {
            true => RoundingAlgorithm::Gptq,
            false => RoundingAlgorithm::RoundToNearest,
        };
        QuantizeOptions { algorithm, probes: PROBES, ..QuantizeOptions::new(mode) }
    }

    /// Quantizes a graph as far as results stay within the bound.
    ///
    /// # Errors
    /// Says why it stays as it is.
    fn quantized(
        &self,
        graph: &Graph,
        providers: &[Arc<dyn ExecutionProvider>],
        threads: usize,
    ) -> Result<(Graph, String), String> {
        if let Some(name) = quantized_operator(graph) {
            return Err(format!("the model is quantized already ({name})"));
        }
        let named: Vec<String> =
            self.samples.iter().map(|path| path.display().to_string()).collect();
        let calibration = samples(graph, &named)?;
        let evaluation = match calibration.is_empty() {
            true => made_samples(graph)?,
            false => calibration.clone(),
        };
        let session = SessionOptions { threads, ..SessionOptions::default() };
        let context = QuantizeContext {
            providers,
            session: &session,
            calibration: &calibration,
            evaluation: &evaluation,
        };
        let options = self.options();
        let done = quantize(graph, &context, &options, &mut |_| {});
        let done = done.map_err(|error| match (self.bits, calibration.is_empty()) {
            (LowBits::Int8, true) => format!(
                "{error}; convolutions need samples of inputs in the model's folder '{SAMPLES}'"
            ),
            _ => error.to_string(),
        })?;
        let Some(agreement) = done.report.agreement else {
            return Err("there is nothing to compare its results by".to_owned());
        };
        if !done.report.holds() {
            return Err(format!(
                "no choice of layers agrees with FP32 as far as it must: {agreement:.4} of {}",
                options.bound
            ));
        }
        let samples = match calibration.is_empty() {
            true => format!("{MADE_SAMPLES} made inputs"),
            false => format!("{} samples", calibration.len()),
        };
        Ok((done.graph, verdict(self.bits, &done.report, &samples)))
    }
}

/// Result of a quantization in words.
fn verdict(bits: LowBits, report: &QuantizeReport, samples: &str) -> String {
    let left = report.layers.iter().filter(|layer| layer.reason.is_some()).count();
    let all = report.layers.len();
    #[allow(clippy::cast_precision_loss, reason = "a size for people")]
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    format!(
        "{bits} in {} of {all} layers, {} {:.4} on {samples}, constants of {:.2} MB in place of {:.2}",
        all - left,
        report.measure,
        report.agreement.unwrap_or_default(),
        megabytes(report.bytes_after),
        megabytes(report.bytes_before),
    )
}

/// Name of an operator that only quantized models have.
pub(crate) fn quantized_operator(graph: &Graph) -> Option<&'static str> {
    let named = |name: &&&str| graph.nodes.iter().any(|node| node.op_type == **name);
    QUANTIZED.iter().find(named).copied()
}

/// Inputs of runs of one row, of made values.
fn made_samples(graph: &Graph) -> Result<Vec<NamedInputs>, String> {
    let mut graph = graph.clone();
    graph.sort().map_err(|error| error.to_string())?;
    let facts = infer::facts(&graph, &std::collections::HashMap::new());
    let facts = facts.map_err(|error| error.to_string())?;
    let typical = typical_shapes(&graph, &facts, &[]);
    let typical = typical.ok_or("no lengths of its inputs are known to fit each other")?;
    let one = |seed: u64| -> Result<NamedInputs, String> {
        let mut random = MadeNoise::new(seed);
        let input = |id: &galatea_graph::ValueId| {
            let name = &graph.value(*id).name;
            let fact = typical.get(id.index()).and_then(Option::as_ref);
            let shape = fact.and_then(|fact| fact.known_shape());
            let (Some(fact), Some(shape)) = (fact, shape) else {
                return Err(format!("nothing is known of the lengths of its input '{name}'"));
            };
            let info = IoInfo::new(name.clone(), fact);
            let made: Result<Tensor, _> = values(&info, &shape, &mut random);
            Ok((name.clone(), made.map_err(|error| error.to_string())?))
        };
        graph.inputs.iter().map(input).collect()
    };
    (0..MADE_SAMPLES).map(one).collect()
}

impl GraphTransform for LoadQuantization {
    fn name(&self) -> Result<String, String> {
        let mut name = format!("{} {:?}", self.bits, self.options().mode);
        for path in &self.samples {
            let failed = |error| format!("'{}' cannot be read: {error}", path.display());
            let bytes = read_plain_file(path).map_err(failed)?;
            name.push_str(&format!(" {:08x}-{}", crc32fast::hash(&bytes), bytes.len()));
        }
        Ok(name)
    }

    fn change(
        &self,
        graph: Graph,
        providers: &[Arc<dyn ExecutionProvider>],
        options: &SessionOptions,
    ) -> (Graph, String) {
        match self.quantized(&graph, providers, options.threads) {
            Ok(changed) => changed,
            Err(why) => (graph, format!("not {}: {why}", self.bits)),
        }
    }
}

#[cfg(test)]
#[path = "low_bits_tests.rs"]
mod tests;

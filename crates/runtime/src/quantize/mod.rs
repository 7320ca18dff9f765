//! Models with fewer bits.
//!
//! [`quantize`] finds the [layers](LayerReport) of a graph, gives them another form, measures what
//! that costs on samples, and returns the worst layers to FP32 until results agree with FP32 as far
//! as is asked for. What it makes are ordinary ONNX operators, and `MatMulNBits` for weights of four
//! bits, so that other programs run the model too.

mod block_grid;
mod blocks;
mod calibrate;
mod compare;
mod dynamic;
mod edit;
mod fallback;
mod form;
mod gptq;
mod half;
mod histogram;
mod int4;
mod layer;
mod measure;
mod plan;
mod qdq;
mod range;
mod report;
mod search;
mod watch;
mod weights;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galatea_graph::{Graph, ONNX_DOMAIN, ValueId, rewrite};
use galatea_tensor::{DataType, Tensor};

use crate::error::RuntimeError;
use crate::options::SessionOptions;
use crate::provider::ExecutionProvider;
use block_grid::BlockRounding;
use blocks::BlockedMatrix;
use calibrate::CalibrationRunner;
pub use compare::{OutputComparison, compare};
use dynamic::DynamicInt8;
pub use fallback::LayerAttempt;
use form::{QuantizePurpose, QuantizedForm, build, probes};
use half::{HalfPrecision, HalfType};
pub use histogram::ValueHistogram;
use int4::Int4Blocks;
use layer::WeightedLayer;
use measure::LikenessSums;
pub use measure::OutputLikeness;
use plan::QuantizePlan;
use qdq::StaticInt8;
pub use range::{AffineScale, RangeMethod, ValueRange};
pub use report::{LayerReport, OutputReport, QuantizeReport};
use search::SearchOutcome;
pub use watch::{histograms, watch};

/// Target number format of a quantized model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizeMode {
    /// Weights of products are INT8, their inputs become UINT8 as a run goes. Needs no data.
    Dynamic,
    /// Weights and the values between layers are of eight bits, with scales from calibration.
    Static,
    /// Weights of products have four bits, in blocks that share a scale.
    Int4,
    /// Weights are FP16.
    Fp16,
    /// Weights are BF16.
    Bf16,
    /// Same as [`QuantizeMode::Static`], and all other weights are FP16.
    Mixed,
}

/// Method of finding 4-bit weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundingAlgorithm {
    /// Every weight becomes the nearest number.
    RoundToNearest,
    /// The errors of weights make up for each other as far as calibration says that their inputs go
    /// together.
    Gptq,
}

/// Measure that the bound applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccuracyBound {
    /// Top-1 for outputs of classes, `[rows, classes]`, and for labels; else the cosine.
    Auto,
    /// The share of rows whose greatest value is at the same place.
    Top1,
    /// The cosine of all values as vectors.
    Cosine,
}

/// Options of quantizing a model.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizeOptions {
    /// Target number format.
    pub mode: QuantizeMode,
    /// Method of choosing ranges of values.
    pub method: RangeMethod,
    /// True if weights have a scale for each result; else one for all.
    pub per_channel: bool,
    /// True if zero is in the middle of ranges: of 8-bit values between layers, and of blocks of 4-bit weights.
    pub symmetric: bool,
    /// Weights of four bits that share a scale: a power of two from 16 on.
    pub block: usize,
    /// Method of finding 4-bit weights.
    pub algorithm: RoundingAlgorithm,
    /// True if sums and products have 16 bits too, in the modes that have 16-bit floats.
    pub half_arithmetic: bool,
    /// Agreement with FP32 that results must reach.
    pub bound: f64,
    /// Measure of that agreement.
    pub agreement: AccuracyBound,
    /// Names of layers that stay in FP32.
    pub exclude: Vec<String>,
    /// The most layers whose effect on the whole is measured by itself where the bound does not
    /// hold; that of others is estimated from their own noise.
    pub probes: usize,
}

impl QuantizeOptions {
    /// The usual choices of a mode.
    #[must_use]
    pub fn new(mode: QuantizeMode) -> Self {
        Self {
            mode,
            method: RangeMethod::MinMax,
            per_channel: true,
            symmetric: false,
            block: 32,
            algorithm: RoundingAlgorithm::RoundToNearest,
            half_arithmetic: false,
            bound: 0.992,
            agreement: AccuracyBound::Auto,
            exclude: Vec::new(),
            probes: 64,
        }
    }
}

/// The named inputs of one run.
pub type NamedInputs = Vec<(String, Tensor)>;

/// Resources for quantizing models.
#[derive(Clone, Copy, Debug)]
pub struct QuantizeContext<'a> {
    /// Providers that run the model.
    pub providers: &'a [Arc<dyn ExecutionProvider>],
    /// Options of the sessions that run it.
    pub session: &'a SessionOptions,
    /// Samples from which ranges and roundings are derived.
    pub calibration: &'a [NamedInputs],
    /// Samples on which the agreement is measured.
    pub evaluation: &'a [NamedInputs],
}

/// A model with fewer bits.
#[derive(Clone, Debug)]
pub struct QuantizedModel {
    /// The model.
    pub graph: Graph,
    /// Report of the loss.
    pub report: QuantizeReport,
}

/// The rewrites that come first: what they fold are weights.
const FIRST: &[&str] = &["remove-identity", "constant-folding", "conv-batch-norm"];

/// Quantises a model. `progress` is told what is being done.
///
/// # Errors
/// [`RuntimeError::Quantise`] where the model or the options do not allow what is asked for;
/// [`RuntimeError::Input`] where a sample is not what the model takes.
pub fn quantize(
    graph: &Graph,
    context: &QuantizeContext<'_>,
    options: &QuantizeOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<QuantizedModel, RuntimeError> {
    let mut graph = graph.clone();
    graph.sort()?;
    rewrite::run_named(&mut graph, FIRST)?;
    graph.sort()?;
    check(&graph, context, options)?;
    let layers = layer::find(&graph);
    let work = QuantizeRun { graph, layers, context, options, runner: runner(context) };
    work.run(progress)
}

fn runner<'a>(context: &QuantizeContext<'a>) -> CalibrationRunner<'a> {
    CalibrationRunner { providers: context.providers, options: context.session }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, RuntimeError> {
    Err(RuntimeError::Quantise(text.into()))
}

/// Refuses options that do not fit each other or the model.
fn check(
    graph: &Graph,
    context: &QuantizeContext<'_>,
    options: &QuantizeOptions,
) -> Result<(), RuntimeError> {
    let opset = graph.opsets.get(ONNX_DOMAIN).copied().unwrap_or(0);
    let integers = matches!(options.mode, QuantizeMode::Static | QuantizeMode::Mixed);
    let least = match options.mode {
        QuantizeMode::Static | QuantizeMode::Mixed if options.per_channel => 13,
        QuantizeMode::Static | QuantizeMode::Mixed => 10,
        QuantizeMode::Dynamic => 11,
        QuantizeMode::Bf16 => 13,
        QuantizeMode::Int4 | QuantizeMode::Fp16 => 7,
    };
    if opset < least {
        return refuse(format!(
            "the model imports opset {opset} of ONNX, this form needs {least} or later \
             (onnx.version_converter can convert it{})",
            if integers && opset >= 10 { "; one scale per tensor needs 10" } else { "" }
        ));
    }
    if let RangeMethod::Percentile(percent) = options.method
        && !(50.0..=100.0).contains(&percent)
    {
        return refuse(format!("a percentile of {percent}, expected 50 to 100"));
    }
    if !options.block.is_power_of_two() || options.block < 16 {
        return refuse(format!("blocks of {}, expected a power of two from 16 on", options.block));
    }
    if !(0.0..=1.0).contains(&options.bound) {
        return refuse(format!("a bound of {}, expected 0 to 1", options.bound));
    }
    let calibrated =
        options.mode == QuantizeMode::Int4 && options.algorithm == RoundingAlgorithm::Gptq;
    if (integers || calibrated) && context.calibration.is_empty() {
        return refuse("this form needs samples for calibration");
    }
    Ok(())
}

struct QuantizeRun<'a> {
    graph: Graph,
    layers: Vec<WeightedLayer>,
    context: &'a QuantizeContext<'a>,
    options: &'a QuantizeOptions,
    runner: CalibrationRunner<'a>,
}

impl QuantizeRun<'_> {
    fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<QuantizedModel, RuntimeError> {
        self.check_excluded()?;
        let form = self.form(progress)?;
        let refusals: Vec<Option<String>> =
            self.layers.iter().map(|layer| self.refusal(&*form, layer)).collect();
        let eligible: Vec<&WeightedLayer> = self
            .layers
            .iter()
            .zip(&refusals)
            .filter_map(|(layer, refusal)| refusal.is_none().then_some(layer))
            .collect();
        if eligible.is_empty()
            && matches!(
                self.options.mode,
                QuantizeMode::Dynamic | QuantizeMode::Static | QuantizeMode::Int4
            )
        {
            return refuse(format!(
                "the model has no layer that can become {}: products with constant weights are \
                 what is quantised",
                form.name()
            ));
        }
        progress("comparing each layer with FP32");
        let own = self.likenesses(&eligible, &*form)?;
        let reference = self.reference(progress)?;
        let found = self.search(&eligible, &own, &*form, &reference, progress)?;
        let graph = self.finished(&eligible, &found.left, &*form)?;
        let report = QuantizeReport {
            layers: self.layer_reports(&*form, &refusals, &own, &found),
            outputs: found.outputs,
            measure: self.measure_name(&reference),
            agreement: found.attempts.last().map(|attempt| attempt.agreement),
            bound: self.options.bound,
            attempts: found.attempts,
            bytes_before: bytes(&self.graph),
            bytes_after: bytes(&graph),
        };
        Ok(QuantizedModel { graph, report })
    }

    fn check_excluded(&self) -> Result<(), RuntimeError> {
        let known = |name: &String| self.layers.iter().any(|layer| layer.name == *name);
        match self.options.exclude.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let names: Vec<&str> =
                    self.layers.iter().take(20).map(|layer| layer.name.as_str()).collect();
                let names = names.join(", ");
                refuse(format!("there is no layer '{name}' to exclude; there are {names}"))
            }
        }
    }

    fn refusal(&self, form: &dyn QuantizedForm, layer: &WeightedLayer) -> Option<String> {
        if self.options.exclude.contains(&layer.name) {
            return Some("excluded".to_owned());
        }
        form.refusal(&self.graph, layer)
    }

    /// The form that the options ask for, calibrated.
    fn form(&self, progress: &mut dyn FnMut(&str)) -> Result<Box<dyn QuantizedForm>, RuntimeError> {
        let half = |of: HalfType, inner: Option<Box<dyn half::MixedForm>>| HalfPrecision {
            of,
            arithmetic: self.options.half_arithmetic,
            inner,
        };
        Ok(match self.options.mode {
            QuantizeMode::Dynamic => {
                Box::new(DynamicInt8 { per_channel: self.options.per_channel })
            }
            QuantizeMode::Static => Box::new(self.calibrated(progress)?),
            QuantizeMode::Int4 => Box::new(self.rounded(progress)?),
            QuantizeMode::Fp16 => Box::new(half(HalfType::Fp16, None)),
            QuantizeMode::Bf16 => Box::new(half(HalfType::Bf16, None)),
            QuantizeMode::Mixed => {
                let inner = self.calibrated(progress)?;
                Box::new(half(HalfType::Fp16, Some(Box::new(inner))))
            }
        })
    }

    fn calibrated(&self, progress: &mut dyn FnMut(&str)) -> Result<StaticInt8, RuntimeError> {
        progress("calibrating");
        let all: Vec<&WeightedLayer> = self.layers.iter().collect();
        let plan = QuantizePlan::new(&self.graph, &all)?;
        let samples = self.context.calibration;
        let histograms = self.runner.histograms(&self.graph, &plan.values(), samples)?;
        let method = self.options.method;
        let symmetric = self.options.symmetric;
        let mut own = HashMap::new();
        for (id, histogram) in &histograms {
            if histogram.total() == 0 {
                let name = &self.graph.value(*id).name;
                return refuse(format!("no sample gives '{name}' a finite value"));
            }
            own.insert(*id, ValueRange::of(histogram, method, symmetric));
        }
        let per_channel = self.options.per_channel;
        Ok(StaticInt8 { ranges: plan.ranges(&own), symmetric, per_channel })
    }

    fn rounded(&self, progress: &mut dyn FnMut(&str)) -> Result<Int4Blocks, RuntimeError> {
        let layout = BlockRounding { block: self.options.block, symmetric: self.options.symmetric };
        let mut blocks = HashMap::new();
        let products: Vec<(&WeightedLayer, layer::WeightMatrix)> = self
            .layers
            .iter()
            .filter_map(|layer| Some((layer, layer.matrix(&self.graph)?)))
            .collect();
        if self.options.algorithm == RoundingAlgorithm::RoundToNearest {
            for (layer, matrix) in &products {
                blocks.insert(layer.output, BlockedMatrix::new(matrix, layout, None));
            }
        } else {
            progress("calibrating");
            let mut inputs: Vec<(ValueId, usize)> = Vec::new();
            for (layer, matrix) in &products {
                if inputs.iter().all(|(id, _)| *id != layer.input) {
                    inputs.push((layer.input, matrix.columns));
                }
            }
            let samples = self.context.calibration;
            self.runner.hessians(&self.graph, &inputs, samples, &mut |id, hessian| {
                for (layer, matrix) in products.iter().filter(|(layer, _)| layer.input == id) {
                    progress(&format!("rounding {}", layer.name));
                    blocks.insert(layer.output, BlockedMatrix::new(matrix, layout, Some(hessian)));
                }
            })?;
        }
        Ok(Int4Blocks { blocks, block: self.options.block })
    }

    /// Returns the likeness of each layer's results when it alone is quantized.
    fn likenesses(
        &self,
        layers: &[&WeightedLayer],
        form: &dyn QuantizedForm,
    ) -> Result<Vec<Option<OutputLikeness>>, RuntimeError> {
        let samples = self.context.evaluation;
        if samples.is_empty() {
            return Ok(vec![None; layers.len()]);
        }
        let (graph, results) = probes(&self.graph, layers, form)?;
        let mut sums = vec![LikenessSums::default(); layers.len()];
        let watched: Vec<ValueId> =
            layers.iter().zip(results).flat_map(|(layer, probe)| [layer.output, probe]).collect();
        self.runner.values(&graph, &watched, samples, &mut |tensors| {
            for (sums, pair) in sums.iter_mut().zip(tensors.chunks_exact(2)) {
                sums.add(&pair[0], &pair[1])?;
            }
            Ok(())
        })?;
        Ok(sums.iter().map(|sums| Some(sums.likeness())).collect())
    }

    /// The outputs in FP32 for every sample.
    fn reference(&self, progress: &mut dyn FnMut(&str)) -> Result<Vec<Vec<Tensor>>, RuntimeError> {
        let mut all = Vec::new();
        if !self.context.evaluation.is_empty() {
            progress("running in FP32");
            self.runner.outputs(&self.graph, self.context.evaluation, &mut |outputs| {
                all.push(outputs);
                Ok(())
            })?;
        }
        Ok(all)
    }

    fn measure_name(&self, reference: &[Vec<Tensor>]) -> &'static str {
        let first = reference.first().into_iter().flatten();
        match first.filter(|tensor| comparable(tensor)).map(|tensor| self.by_class(tensor)).next() {
            Some(true) => "top-1",
            _ => "cosine",
        }
    }

    /// The model as it is given away.
    fn finished(
        &self,
        layers: &[&WeightedLayer],
        left: &HashSet<ValueId>,
        form: &dyn QuantizedForm,
    ) -> Result<Graph, RuntimeError> {
        let chosen: Vec<&WeightedLayer> =
            layers.iter().copied().filter(|layer| !left.contains(&layer.output)).collect();
        build(&self.graph, &chosen, left, form, QuantizePurpose::Storing)
    }

    fn layer_reports(
        &self,
        form: &dyn QuantizedForm,
        refusals: &[Option<String>],
        own: &[Option<OutputLikeness>],
        found: &SearchOutcome,
    ) -> Vec<LayerReport> {
        let mut own = own.iter().zip(&found.effects);
        let else_form = match self.options.mode {
            QuantizeMode::Mixed => "FP16",
            _ => "FP32",
        };
        let report = |(layer, refusal): (&WeightedLayer, &Option<String>)| {
            let measured = if refusal.is_none() { own.next() } else { None };
            let (likeness, effect) =
                measured.map_or((None, None), |(likeness, effect)| (*likeness, *effect));
            let worst = found.left.contains(&layer.output).then(|| {
                let effect = effect.map(|effect| format!(" ({effect:.1e})")).unwrap_or_default();
                format!("among the worst for the whole{effect}, left out until the bound holds")
            });
            let reason = refusal.clone().or(worst);
            LayerReport {
                name: layer.name.clone(),
                op: layer.node.operator_name(),
                form: if reason.is_none() { form.name() } else { else_form },
                likeness,
                effect,
                reason,
            }
        };
        self.layers.iter().zip(refusals).map(report).collect()
    }
}

/// Returns whether an output can be compared: floats and integers can.
fn comparable(tensor: &Tensor) -> bool {
    tensor.dtype() == DataType::Fp32 || tensor.dtype().is_integer()
}

/// Bytes of the constants of a graph.
fn bytes(graph: &Graph) -> usize {
    let all = graph.values().iter().filter_map(|value| value.initializer.as_ref());
    all.map(|tensor| match tensor.dtype() {
        DataType::Small(small) => small.packed_bytes(tensor.elements()).unwrap_or(usize::MAX),
        _ => tensor.size_bytes(),
    })
    .fold(0, usize::saturating_add)
}

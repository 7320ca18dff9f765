//! Search for the layers that must return to FP32 for the whole model to agree with it.
//!
//! A layer's own noise says little about the results: later layers may damp or amplify it. Each layer is
//! therefore quantized alone, and the whole model is run on a few samples. The layers that change the results
//! most return first; afterwards, returns that prove unnecessary are undone.

use std::collections::{HashMap, HashSet};

use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor};

use super::fallback::{self, LayerAttempt};
use super::form::{QuantizePurpose, QuantizedForm, build};
use super::layer::WeightedLayer;
use super::measure::{LikenessSums, OutputLikeness};
use super::report::OutputReport;
use super::{AccuracyBound, NamedInputs, QuantizeRun, comparable};
use crate::error::RuntimeError;

/// The most samples on which effects of single layers are measured.
const SAMPLES: usize = 4;
/// Number of left-out layers that are tried again at most.
const TAKEN_BACK: usize = 12;

/// Result of the search.
#[derive(Debug, Default)]
pub(super) struct SearchOutcome {
    /// All that was tried; the last one is what holds.
    pub(super) attempts: Vec<LayerAttempt>,
    /// The outputs beside those in FP32.
    pub(super) outputs: Vec<OutputReport>,
    /// The layers that stay in FP32, by their results.
    pub(super) left: HashSet<ValueId>,
    /// Change in the results that each layer alone causes, where that was requested.
    pub(super) effects: Vec<Option<f64>>,
}

/// Tells what is being done.
pub(super) type ProgressReporter<'p> = &'p mut dyn FnMut(&str);

impl QuantizeRun<'_> {
    /// Looks for the layers to leave out.
    pub(super) fn search(
        &self,
        layers: &[&WeightedLayer],
        own: &[Option<OutputLikeness>],
        form: &dyn QuantizedForm,
        reference: &[Vec<Tensor>],
        progress: ProgressReporter<'_>,
    ) -> Result<SearchOutcome, RuntimeError> {
        let mut found =
            SearchOutcome { effects: vec![None; layers.len()], ..SearchOutcome::default() };
        if reference.is_empty() {
            return Ok(found);
        }
        let mut tries = LayerTrials { work: self, layers, form, reference, known: HashMap::new() };
        progress("measuring the whole");
        let agreement = tries.agreement(&[])?;
        let none = LayerAttempt { left_out: 0, agreement };
        if agreement >= self.options.bound || layers.is_empty() {
            found.attempts.push(none);
            found.outputs = tries.outputs(&[]);
            return Ok(found);
        }
        let effects = self.effects(layers, own, form, reference, progress)?;
        let order = greatest_first(&effects);
        let attempts = fallback::search(none, layers.len(), self.options.bound, &mut |count| {
            progress(&format!("measuring with {count} layers left out"));
            tries.agreement(&order[..count])
        })?;
        let last = attempts.last().copied().unwrap_or(none);
        found.attempts = attempts;
        let mut left = order[..last.left_out].to_vec();
        if last.agreement >= self.options.bound {
            let taken = fallback::take_back(&left, TAKEN_BACK, self.options.bound, &mut |left| {
                progress(&format!("measuring with {} layers left out", left.len()));
                tries.agreement(left)
            })?;
            found.attempts.extend(taken.attempts);
            left = taken.left;
        }
        let agreement = tries.agreement(&left)?;
        found.attempts.push(LayerAttempt { left_out: left.len(), agreement });
        found.attempts.dedup();
        found.outputs = tries.outputs(&left);
        found.left = left.iter().map(|&at| layers[at].output).collect();
        found.effects = effects.into_iter().map(Some).collect();
        Ok(found)
    }

    /// Returns the change in the results that each layer alone causes. The noisiest are measured, on a few
    /// samples; others are assumed to pass on as much of their noise as these do.
    fn effects(
        &self,
        layers: &[&WeightedLayer],
        own: &[Option<OutputLikeness>],
        form: &dyn QuantizedForm,
        reference: &[Vec<Tensor>],
        progress: ProgressReporter<'_>,
    ) -> Result<Vec<f64>, RuntimeError> {
        let noise = |at: usize| -> f64 {
            own[at].map_or(1.0, |likeness| 10.0_f64.powf(-likeness.sqnr_db / 10.0))
        };
        let mut noisiest: Vec<usize> = (0..layers.len()).collect();
        noisiest.sort_by(|&a, &b| noise(b).total_cmp(&noise(a)));
        noisiest.truncate(self.options.probes);
        let (samples, reference) = some(self.context.evaluation, reference);
        let mut measured: Vec<Option<f64>> = vec![None; layers.len()];
        for (done, &at) in noisiest.iter().enumerate() {
            progress(&format!("measuring each layer alone: {} of {}", done + 1, noisiest.len()));
            let chosen = [layers[at]];
            let others = layers.iter().map(|layer| layer.output).filter(|&o| o != chosen[0].output);
            let graph =
                build(&self.graph, &chosen, &others.collect(), form, QuantizePurpose::Measuring)?;
            let outputs = self.compare(&graph, &samples, &reference)?;
            measured[at] = Some(self.change(&outputs, &reference));
        }
        let sums = noisiest.iter().fold((0.0, 0.0), |(effects, noises), &at| {
            (effects + measured[at].unwrap_or(0.0), noises + noise(at))
        });
        let passed_on = if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 };
        let effect = |at: usize| measured[at].unwrap_or(noise(at) * passed_on);
        Ok((0..layers.len()).map(effect).collect())
    }

    /// Returns the distance of outputs from those in FP32: a sum, as the noises of layers add up.
    fn change(&self, outputs: &[OutputReport], reference: &[Vec<Tensor>]) -> f64 {
        let first = reference.first().map(Vec::as_slice).unwrap_or_default();
        let compared = outputs.iter().zip(first).filter(|(_, tensor)| comparable(tensor));
        let each = compared.map(|(report, tensor)| {
            let OutputLikeness { cosine, divergence, top1, .. } = report.likeness;
            let change = match tensor.dtype() {
                DataType::Fp32 if self.by_class(tensor) => divergence,
                DataType::Fp32 => 1.0 - cosine,
                _ => 1.0 - top1,
            };
            if change.is_finite() { change } else { f64::MAX }
        });
        each.fold(0.0, f64::max)
    }

    /// The outputs of a graph beside those in FP32.
    fn compare(
        &self,
        graph: &galatea_graph::Graph,
        samples: &[NamedInputs],
        reference: &[Vec<Tensor>],
    ) -> Result<Vec<OutputReport>, RuntimeError> {
        let mut sums = vec![LikenessSums::default(); self.graph.outputs.len()];
        let mut wanted = reference.iter();
        self.runner.outputs(graph, samples, &mut |outputs| {
            for ((sums, first), second) in
                sums.iter_mut().zip(wanted.next().into_iter().flatten()).zip(&outputs)
            {
                if comparable(first) {
                    sums.add(first, second)?;
                }
            }
            Ok(())
        })?;
        let report = |(id, sums): (&ValueId, &LikenessSums)| OutputReport {
            name: self.graph.value(*id).name.clone(),
            likeness: sums.likeness(),
        };
        Ok(self.graph.outputs.iter().zip(&sums).map(report).collect())
    }

    pub(super) fn by_class(&self, output: &Tensor) -> bool {
        match self.options.agreement {
            AccuracyBound::Top1 => true,
            AccuracyBound::Cosine => false,
            AccuracyBound::Auto => {
                output.dtype() != DataType::Fp32 || (output.rank() == 2 && output.shape()[1] > 1)
            }
        }
    }

    fn agreement(&self, outputs: &[OutputReport], reference: &[Vec<Tensor>]) -> f64 {
        let first = reference.first().map(Vec::as_slice).unwrap_or_default();
        let compared = outputs.iter().zip(first).filter(|(_, tensor)| comparable(tensor));
        let each = compared.map(|(report, tensor)| {
            let OutputLikeness { top1, cosine, .. } = report.likeness;
            if self.by_class(tensor) { top1 } else { cosine }
        });
        each.fold(1.0, |least, value| if value >= least { least } else { value })
    }
}

/// Runs the whole with some layers left out.
struct LayerTrials<'t> {
    work: &'t QuantizeRun<'t>,
    layers: &'t [&'t WeightedLayer],
    form: &'t dyn QuantizedForm,
    reference: &'t [Vec<Tensor>],
    /// Results of runs, by the layers that were left out.
    known: HashMap<Vec<usize>, (f64, Vec<OutputReport>)>,
}

impl LayerTrials<'_> {
    /// Returns the agreement of results with FP32 when the layers at these positions are left out.
    fn agreement(&mut self, left: &[usize]) -> Result<f64, RuntimeError> {
        if let Some((agreement, _)) = self.known.get(&sorted(left)) {
            return Ok(*agreement);
        }
        let outputs: HashSet<ValueId> = left.iter().map(|&at| self.layers[at].output).collect();
        let chosen: Vec<&WeightedLayer> =
            self.layers.iter().copied().filter(|layer| !outputs.contains(&layer.output)).collect();
        let graph =
            build(&self.work.graph, &chosen, &outputs, self.form, QuantizePurpose::Measuring)?;
        let found = self.work.compare(&graph, self.work.context.evaluation, self.reference)?;
        let agreement = self.work.agreement(&found, self.reference);
        self.known.insert(sorted(left), (agreement, found));
        Ok(agreement)
    }

    /// The outputs when these were left out, where that was tried.
    fn outputs(&self, left: &[usize]) -> Vec<OutputReport> {
        self.known.get(&sorted(left)).map(|(_, outputs)| outputs.clone()).unwrap_or_default()
    }
}

fn sorted(left: &[usize]) -> Vec<usize> {
    let mut sorted = left.to_vec();
    sorted.sort_unstable();
    sorted
}

/// A few samples from all over, with the outputs that belong to them.
fn some(
    samples: &[NamedInputs],
    reference: &[Vec<Tensor>],
) -> (Vec<NamedInputs>, Vec<Vec<Tensor>>) {
    let count = samples.len().min(SAMPLES);
    let at = |index: usize| index * samples.len() / count;
    let chosen = (0..count).map(|index| (samples[at(index)].clone(), reference[at(index)].clone()));
    chosen.unzip()
}

/// Positions of layers, the one with the greatest effect first.
fn greatest_first(effects: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..effects.len()).collect();
    order.sort_by(|&a, &b| effects[b].total_cmp(&effects[a]));
    order
}

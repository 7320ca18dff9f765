//! Tuning of a session's kernels while nothing else runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_graph::{Datum, Fact};
use galatea_tensor::{DataType, Tensor};

use super::compiled::CompiledPart;
use super::compiled_graph::{CompiledGraph, lock};
use super::parts::PartsRun;
use super::{Run, Session};
use crate::error::RuntimeError;
use crate::tune::{
    GatedOutcome, TuningCache, TuningGate, TuningGateState, TuningProblem, search_gated, wait_open,
};
use crate::typical_shapes::typical_shapes;

/// Sets of input shapes of runs that are remembered.
const MAX_SHAPES: usize = 16;
/// The most bytes of weights of a session that is compiled again while it serves: both forms are held for a moment.
const MAX_RENEWED_BYTES: usize = 1 << 30;

/// Element type and shape of an input of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TuningInput {
    /// Type of the elements.
    pub dtype: DataType,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
}

/// Limits of a session's kernel tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTuningLimits {
    /// The most time of all measurements.
    pub time: Duration,
    /// Cores that a measurement of the CPU keeps busy.
    pub cores: usize,
}

/// Account of what was measured for one set of shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTuningReport {
    /// Choices that got a record.
    pub measured: usize,
    /// Choices of which another candidate than the default is the fastest.
    pub improved: usize,
    /// Choices without a record that were not measured for lack of time.
    pub left: usize,
    /// Time of all measurements.
    pub spent: Duration,
    /// True if the session runs on kernels that were compiled with the new records.
    pub renewed: bool,
    /// True if the gate closed.
    pub closed: bool,
}

/// Shapes of runs, for as long as somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct RunShapes {
    wanted: AtomicBool,
    seen: Mutex<Vec<SeenShapes>>,
}

#[derive(Debug)]
struct SeenShapes {
    inputs: Vec<TuningInput>,
    runs: u64,
}

impl RunShapes {
    /// Takes note of a run. Of runs at the same time only one is noted: nobody waits here.
    pub(super) fn note(&self, inputs: &[Datum]) {
        if !self.wanted.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut seen) = self.seen.try_lock() else { return };
        let same = |known: &SeenShapes| {
            let pairs = known.inputs.iter().zip(inputs);
            known.inputs.len() == inputs.len()
                && pairs.into_iter().all(|(known, datum)| {
                    datum.as_tensor().is_some_and(|tensor| *tensor.shape() == *known.shape)
                })
        };
        if let Some(known) = seen.iter_mut().find(|known| same(known)) {
            known.runs += 1;
            return;
        }
        let shape = |datum: &Datum| {
            let tensor = datum.as_tensor()?;
            Some(TuningInput { dtype: tensor.dtype(), shape: tensor.shape().to_vec() })
        };
        let inputs: Option<Vec<TuningInput>> = inputs.iter().map(shape).collect();
        if let Some(inputs) = inputs.filter(|_| seen.len() < MAX_SHAPES) {
            seen.push(SeenShapes { inputs, runs: 1 });
        }
    }
}

impl Session {
    /// Remembers from now on which shapes runs have.
    pub fn watch_shapes(&self) {
        self.shapes.wanted.store(true, Ordering::Relaxed);
    }

    /// Returns the shapes of runs since [`Session::watch_shapes`], those of most runs first.
    #[must_use]
    pub fn seen_shapes(&self) -> Vec<Vec<TuningInput>> {
        let mut seen = lock(&self.shapes.seen);
        seen.sort_by_key(|one| std::cmp::Reverse(one.runs));
        seen.iter().map(|one| one.inputs.clone()).collect()
    }

    /// Returns the shapes of a usual run with so many rows; `None` where nothing is known of an input, or one is no
    /// tensor.
    #[must_use]
    pub fn usual_shapes(&self, rows: usize) -> Option<Vec<TuningInput>> {
        let graph = &self.compiled.graph;
        let typical = typical_shapes(graph, &self.compiled.facts, &[])?;
        let input = |id: &galatea_graph::ValueId| {
            let fact: &Fact = typical.get(id.index())?.as_ref()?;
            let mut shape = fact.known_shape()?;
            let stated = self.compiled.facts.get(id.index())?.as_ref()?.shape.as_ref();
            let open =
                stated.and_then(|dims| dims.first()).is_some_and(|dim| dim.known().is_none());
            // What is longer than one row is a length of another kind.
            if let Some(first) = shape.first_mut().filter(|first| open && **first == 1) {
                *first = rows;
            }
            Some(TuningInput { dtype: fact.dtype, shape })
        };
        graph.inputs.iter().map(input).collect()
    }

    /// Measures the choices between kernels that have no record for inputs of these shapes, each measurement when the
    /// gate is open. The records are kept, and the session runs on what is fastest from then on: runs under way end on
    /// the kernels that they began with.
    ///
    /// # Errors
    /// Fails when the model cannot run with made inputs of these shapes, or a default kernel fails.
    pub fn tune_kernels(
        &self,
        inputs: &[TuningInput],
        gate: &dyn TuningGate,
        limits: KernelTuningLimits,
    ) -> Result<KernelTuningReport, RuntimeError> {
        self.tune_bound(&self.compiled.made_inputs(inputs)?, gate, limits)
    }

    /// Measures like [`Session::tune_kernels`] on inputs whose values matter, such as those of a language model's step.
    ///
    /// # Errors
    /// Fails when the model does not take these inputs or cannot run with them, or a default kernel fails.
    pub fn tune_kernels_on(
        &self,
        inputs: &[(&str, Tensor)],
        gate: &dyn TuningGate,
        limits: KernelTuningLimits,
    ) -> Result<KernelTuningReport, RuntimeError> {
        let bound = Run::named(inputs).bind(&self.inputs, self.outputs.len())?;
        self.tune_bound(&bound.inputs, gate, limits)
    }

    fn tune_bound(
        &self,
        inputs: &[Datum],
        gate: &dyn TuningGate,
        limits: KernelTuningLimits,
    ) -> Result<KernelTuningReport, RuntimeError> {
        let mut report = KernelTuningReport::default();
        let Some(choices) = self.compiled.options.choices.0.clone() else { return Ok(report) };
        // How kernels compute is settled before on how many threads they do.
        for threads in [false, true] {
            let work = TuningRound { graph: &self.compiled, choices: &*choices, gate, limits };
            let improved = report.improved;
            work.measure(inputs, threads, &mut report)?;
            if report.improved > improved && !report.closed {
                report.renewed |= self.compiled.renew(inputs, gate)?;
            }
            if report.closed || report.spent >= limits.time {
                break;
            }
        }
        Ok(report)
    }
}

/// Gate that closes when nobody but the tuner has the session any more.
pub struct SessionGate<'a> {
    inner: &'a dyn TuningGate,
    session: &'a Arc<Session>,
}

impl std::fmt::Debug for SessionGate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionGate").finish_non_exhaustive()
    }
}

impl<'a> SessionGate<'a> {
    /// Returns a gate that is open when another one is.
    #[must_use]
    pub fn new(inner: &'a dyn TuningGate, session: &'a Arc<Session>) -> Self {
        Self { inner, session }
    }
}

impl TuningGate for SessionGate<'_> {
    fn wait(&self) -> TuningGateState {
        let state = self.inner.wait();
        if Arc::strong_count(self.session) < 2 { TuningGateState::Closed } else { state }
    }

    fn is_open(&self) -> bool {
        self.inner.is_open()
    }

    fn spent(&self, time: Duration, cores: usize) {
        self.inner.spent(time, cores);
    }
}

/// Round of measurements of one kind of choices.
struct TuningRound<'a> {
    graph: &'a CompiledGraph,
    choices: &'a dyn TuningCache,
    gate: &'a dyn TuningGate,
    limits: KernelTuningLimits,
}

impl TuningRound<'_> {
    /// Measures the choices of numbers of threads, or all others.
    fn measure(
        &self,
        inputs: &[Datum],
        threads: bool,
        report: &mut KernelTuningReport,
    ) -> Result<(), RuntimeError> {
        let mut problems = self.problems(inputs, report)?;
        problems.retain(|problem| problem.is_about_threads() == threads);
        let count = problems.len();
        for (at, mut problem) in problems.into_iter().enumerate() {
            let left = self.limits.time.saturating_sub(report.spent);
            if report.closed || left.is_zero() {
                report.left += count - at;
                return Ok(());
            }
            // Twice its share at most: what is large must not take the time of all others.
            let share = left.div_f64((count - at) as f64 / 2.0).min(left);
            let cores = if problem.unit.is_some() { 1 } else { self.limits.cores };
            let found = search_gated(&mut problem, self.gate, share, cores);
            let GatedOutcome { record, spent } = match found {
                Ok(found) => found,
                // The other choices do not suffer.
                Err(error) => {
                    let TuningProblem { family, bucket, .. } = &problem;
                    tracing::debug!("{family} {bucket} is not tuned: {error}");
                    continue;
                }
            };
            report.spent += spent;
            let Some(record) = record else {
                report.closed = true;
                report.left += count - at;
                return Ok(());
            };
            report.measured += 1;
            report.improved += usize::from(record.choice != problem.space.name(0));
            self.choices.keep(&problem, record);
        }
        Ok(())
    }

    /// Lists the choices without a record. The model runs once for that.
    fn problems(
        &self,
        inputs: &[Datum],
        report: &mut KernelTuningReport,
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        if !wait_open(self.gate) {
            report.closed = true;
            return Ok(Vec::new());
        }
        let begin = Instant::now();
        // Where a provider fails in its first run, others take over.
        let _permit = self.graph.options.pace.enter();
        self.graph.run_planned(PartsRun { inputs: inputs.to_vec(), ..PartsRun::default() })?;
        let waited = Cell::new(Duration::ZERO);
        let mut problems = self.graph.problems(inputs, &|| {
            let shut = Instant::now();
            wait_open(self.gate);
            waited.set(waited.get() + shut.elapsed());
        })?;
        let took = begin.elapsed().saturating_sub(waited.get());
        report.spent += took;
        self.gate.spent(took, 1);
        problems.retain(|problem| !self.choices.knows(problem));
        Ok(problems)
    }
}

impl CompiledGraph {
    /// Compiles the partitions again, with what the choices say now, runs them once, and lets later runs take them.
    /// Returns whether they do: not where that takes long or much memory, nor where somebody else replaced them.
    ///
    /// # Errors
    /// Fails when the new partitions cannot be compiled or run; then the old ones stay.
    fn renew(&self, inputs: &[Datum], gate: &dyn TuningGate) -> Result<bool, RuntimeError> {
        // Whoever holds the lock keeps runs waiting that lost their device.
        if !wait_open(gate) {
            return Ok(false);
        }
        let _one = lock(&self.recompiling);
        let current = self.current();
        let quick = |part: &CompiledPart| {
            part.executable.traits().tuning.is_some_and(|tuning| tuning.recompiles())
        };
        let bytes = |part: &CompiledPart| part.executable.report().memory.initializer_bytes;
        let bytes: usize = current.parts.iter().map(bytes).sum();
        if bytes > MAX_RENEWED_BYTES || !current.parts.iter().all(quick) {
            return Ok(false);
        }
        let begin = Instant::now();
        let mut claims = lock(&self.claims).clone();
        let renewed = Arc::new(self.compile(&mut claims)?);
        // Kernels are bound to the shapes before anybody waits for them.
        let run = PartsRun { inputs: inputs.to_vec(), ..PartsRun::default() };
        renewed.run(run, &|_| None).map_err(|failure| failure.error)?;
        gate.spent(begin.elapsed(), 1);
        if !Arc::ptr_eq(&self.current(), &current) {
            return Ok(false);
        }
        self.keep(claims, &renewed);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(rows: usize) -> Datum {
        Datum::Tensor(Tensor::zeros(DataType::Fp32, &[rows, 2]).unwrap())
    }

    #[test]
    fn shapes_are_noted_once_somebody_wants_them() {
        let shapes = RunShapes::default();
        shapes.note(&[tensor(1)]);
        assert!(lock(&shapes.seen).is_empty());
        shapes.wanted.store(true, Ordering::Relaxed);
        for rows in [1, 4, 4, 4] {
            shapes.note(&[tensor(rows)]);
        }
        shapes.note(&[Datum::Optional(None)]);
        let seen = lock(&shapes.seen);
        let runs: Vec<u64> = seen.iter().map(|one| one.runs).collect();
        assert_eq!(runs, [1, 3]);
        assert_eq!(seen[1].inputs, [TuningInput { dtype: DataType::Fp32, shape: vec![4, 2] }]);
        drop(seen);
        for rows in 10..100 {
            shapes.note(&[tensor(rows)]);
        }
        assert_eq!(lock(&shapes.seen).len(), MAX_SHAPES);
    }
}

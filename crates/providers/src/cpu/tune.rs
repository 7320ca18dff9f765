//! The choices of a compiled partition: what is asked when it is planned, and what can be measured.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use galatea_graph::{Datum, Fact, Graph, infer};
use galatea_kernels::{Isa, KernelContext, ThreadPool};
use galatea_runtime::tune::{
    ConfigAxis, ConfigSpace, TuningCache, TuningProblem, TuningTarget, bucket,
};
use galatea_runtime::{NodeShapes, Precision, RuntimeError, ValueShape};
use galatea_tensor::{DataType, OwnedTensor, Tensor};

use super::KERNELS;
use super::kernel::{CpuBuildContext, CpuKernel, CpuNodeView, CpuStep, KernelChoices, StepCall};
use super::route::BlasRoute;
use super::stage::facts_of;

/// The time that a sample takes at least: shorter ones are repeated.
const SAMPLE: Duration = Duration::from_micros(100);
/// The most repetitions of a sample.
const MAX_REPEATS: u32 = 64;

/// Numbers of threads to choose from: all, and halves of it down to one.
pub(super) fn thread_space(threads: usize) -> ConfigSpace {
    let halves = std::iter::successors(Some(threads.max(1)), |&n| (n > 1).then_some(n.div_ceil(2)));
    ConfigSpace::new(vec![ConfigAxis::numbers("threads", &halves.collect::<Vec<_>>())])
}

/// The number of threads that a candidate stands for.
pub(super) fn threads_of(space: &ConfigSpace, candidate: usize) -> Option<usize> {
    space.axes().first()?.labels.get(candidate)?.parse().ok()
}

/// The family and the bucket of a kernel's number of threads.
pub(super) fn thread_key(row: &str, precision: Precision, shapes: &NodeShapes) -> (String, String) {
    let elements = |all: &[Option<ValueShape>], wanted: &dyn Fn(usize) -> bool| {
        let each = all.iter().enumerate().filter(|(at, _)| wanted(*at));
        let each = each.filter_map(|(_, slot)| slot.as_ref());
        each.map(ValueShape::elements).fold(0, usize::saturating_add)
    };
    let constant = |at: usize| shapes.constants.get(at).is_some_and(Option::is_some);
    let lengths = [
        ("in", elements(&shapes.inputs, &|at| !constant(at))),
        ("constant", elements(&shapes.inputs, &constant)),
        ("out", elements(&shapes.outputs, &|_| true)),
    ];
    (format!("threads {row} {precision}"), bucket(&lengths))
}

/// A question that a kernel asks while it is built.
type CpuQuestion = (String, String, ConfigSpace);

/// Binds a node's kernel, whose questions go to the recorder.
type StepBinder = Arc<dyn Fn(&QuestionRecorder) -> Result<CpuStep, String>>;

/// Notes what is asked, and answers the first question with one candidate.
#[derive(Debug, Default)]
struct QuestionRecorder {
    asked: Mutex<Vec<CpuQuestion>>,
    answer: usize,
}

impl TuningCache for QuestionRecorder {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((family.to_owned(), bucket.to_owned(), space.clone()));
        let is_first = asked.first().is_some_and(|first| first.0 == family && first.1 == bucket);
        is_first.then_some(self.answer)
    }
}

/// Families and buckets that have a problem already.
type AskedFamilies = HashSet<(String, String)>;

/// A partition whose choices are to be measured.
pub(super) struct CpuTunablePart<'a> {
    pub(super) graph: &'a Arc<Graph>,
    pub(super) kernels: &'a [Option<Box<dyn CpuKernel>>],
    pub(super) names: &'a [&'static str],
    pub(super) isa: Isa,
    pub(super) blas: Option<BlasRoute>,
    pub(super) threads: usize,
    pub(super) precision: Precision,
    /// The choices that are already known.
    pub(super) choices: Option<&'a dyn TuningCache>,
    /// Facts that later stages of runs have found, the latest first.
    pub(super) stages: Vec<Arc<Vec<Option<Fact>>>>,
}

/// A node of a partition, with the lengths of a run.
struct TunableNode<'a> {
    name: String,
    row: &'static str,
    kernel: &'a dyn CpuKernel,
    shapes: NodeShapes,
    bind: StepBinder,
}

impl CpuTunablePart<'_> {
    /// All choices in runs with inputs of these shapes. Between two nodes `pause` is called. Candidates are built when
    /// they are first measured.
    pub(super) fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let known = facts_of(self.graph, inputs)?;
        let announced = Arc::new(infer::facts(self.graph, &HashMap::new())?);
        let mut problems = Vec::new();
        let mut seen = AskedFamilies::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(kernel) = &self.kernels[index] else { continue };
            let found = || self.stages.iter().find_map(|facts| NodeShapes::known(node, facts));
            let shapes = NodeShapes::known(node, &known).or_else(found);
            let Some(shapes) = shapes.filter(measurable) else { continue };
            pause();
            let node = TunableNode {
                name: self.graph.place(index).to_string(),
                row: self.names[index],
                kernel: &**kernel,
                bind: self.binder(index, &announced, &shapes),
                shapes,
            };
            problems.extend(self.algorithms(&node, &mut seen));
            problems.extend(self.thread_counts(&node, &mut seen));
        }
        Ok(problems)
    }

    /// Returns what builds and binds a node anew, as often as somebody measures it.
    fn binder(
        &self,
        index: usize,
        announced: &Arc<Vec<Option<Fact>>>,
        shapes: &NodeShapes,
    ) -> StepBinder {
        let graph = Arc::clone(self.graph);
        let announced = Arc::clone(announced);
        let shapes = shapes.clone();
        let Self { isa, blas, threads, precision, .. } = *self;
        Arc::new(move |recorder| {
            let view = CpuNodeView {
                graph: &graph,
                node: graph.nodes.get(index).ok_or("there is no such node")?,
                facts: &announced,
                precision,
                device: CpuBuildContext { isa, packed: None, choices: Some(recorder), blas },
            };
            let kernel = (KERNELS.find(&view)?.build)(&view)?;
            kernel.bind_chosen(&shapes, KernelChoices { chooser: Some(recorder), threads })
        })
    }

    /// The choice that a kernel asks for while it is built, if any.
    fn algorithms(
        &self,
        node: &TunableNode<'_>,
        seen: &mut AskedFamilies,
    ) -> Option<TuningProblem> {
        let first = QuestionRecorder::default();
        (node.bind)(&first).ok()?;
        let asked = first.asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (family, bucket, space) = asked.into_iter().next().filter(|(.., s)| s.len() > 1)?;
        if !seen.insert((family.clone(), bucket.clone())) {
            return None;
        }
        let made = (0..space.len()).map(|_| None).collect();
        let forms = StepForms::Built { bind: Arc::clone(&node.bind), made };
        let device = StepDevice::new(forms, vec![self.threads], self.isa, &node.shapes)?;
        let device = Box::new(device);
        Some(TuningProblem { node: node.name.clone(), unit: None, family, bucket, space, device })
    }

    fn thread_counts(
        &self,
        node: &TunableNode<'_>,
        seen: &mut AskedFamilies,
    ) -> Option<TuningProblem> {
        let space = thread_space(self.threads);
        let (family, bucket) = thread_key(node.row, self.precision, &node.shapes);
        if space.len() < 2 || !seen.insert((family.clone(), bucket.clone())) {
            return None;
        }
        let threads = (0..space.len()).map(|candidate| threads_of(&space, candidate));
        let threads = threads.collect::<Option<Vec<_>>>()?;
        let choices = KernelChoices { chooser: self.choices, threads: self.threads };
        let step = node.kernel.bind_chosen(&node.shapes, choices).ok()?;
        let device = StepDevice::new(StepForms::One(step), threads, self.isa, &node.shapes)?;
        let device = Box::new(device);
        Some(TuningProblem { node: node.name.clone(), unit: None, family, bucket, space, device })
    }
}

/// Returns whether inputs can be made up: floats and bytes can, positions in tables cannot.
fn measurable(shapes: &NodeShapes) -> bool {
    let made = |dtype: DataType| matches!(dtype, DataType::Fp32 | DataType::Uint8 | DataType::Int8);
    let inputs = shapes.inputs.iter().zip(&shapes.constants);
    let mut open =
        inputs.filter(|(_, constant)| constant.is_none()).filter_map(|(i, _)| i.as_ref());
    open.all(|value| made(value.dtype))
}

/// Bound forms of a node's kernel.
enum StepForms {
    /// One form, for all candidates.
    One(CpuStep),
    /// A form for each candidate, built when it is first measured: weights are packed for it then.
    Built {
        /// Builds and binds.
        bind: StepBinder,
        /// Forms that were built.
        made: Vec<Option<Result<CpuStep, String>>>,
    },
}

impl StepForms {
    /// Returns the form of a candidate.
    fn step(&mut self, candidate: usize) -> Result<&CpuStep, String> {
        match self {
            Self::One(step) => Ok(step),
            Self::Built { bind, made } => {
                let slot = made.get_mut(candidate).ok_or("there is no such candidate")?;
                let recorder =
                    || QuestionRecorder { answer: candidate, ..QuestionRecorder::default() };
                slot.get_or_insert_with(|| bind(&recorder())).as_ref().map_err(String::clone)
            }
        }
    }
}

/// A kernel over values that are made up: several forms of it on the same threads, or one form on
/// several numbers of threads.
struct StepDevice {
    forms: StepForms,
    /// Number of threads of all candidates, or of each.
    threads: Vec<usize>,
    /// Pools of these numbers of threads, started when they are first used.
    pools: Vec<Option<ThreadPool>>,
    isa: Isa,
    inputs: Vec<Option<MeasuredInput>>,
    outputs: Vec<Option<ValueShape>>,
    repeats: Option<u32>,
}

/// An input of a kernel that is measured.
enum MeasuredInput {
    Ready(Tensor),
    /// Values to be made up of this type and shape.
    Open(ValueShape),
}

impl fmt::Debug for StepDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepDevice").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Repeatable values between -1 and 1, or bytes.
fn made_up(dtype: DataType, shape: &[usize]) -> Option<Tensor> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u16
    };
    let count = shape.iter().product::<usize>();
    let tensor = match dtype {
        DataType::Fp32 => {
            let values = (0..count).map(|_| f32::from(next()) / 32_768.0 - 1.0).collect();
            Tensor::from_vec(shape, values)
        }
        _ => {
            let bytes: Vec<u8> = (0..count).map(|_| next().to_le_bytes()[1]).collect();
            Tensor::from_bytes(dtype, shape, &bytes)
        }
    };
    tensor.ok()
}

impl StepDevice {
    fn new(forms: StepForms, threads: Vec<usize>, isa: Isa, shapes: &NodeShapes) -> Option<Self> {
        let mut inputs = Vec::with_capacity(shapes.inputs.len());
        for (slot, constant) in shapes.inputs.iter().zip(&shapes.constants) {
            inputs.push(match (slot, constant) {
                (None, _) => None,
                (Some(_), Some(constant)) => {
                    Some(MeasuredInput::Ready(constant.contiguous().ok()?))
                }
                (Some(value), None) => Some(MeasuredInput::Open(value.clone())),
            });
        }
        let outputs = shapes.outputs.clone();
        let pools = threads.iter().map(|_| None).collect();
        Some(Self { forms, threads, pools, isa, inputs, outputs, repeats: None })
    }

    /// Makes up the inputs that are still open, and starts the threads of a candidate. Returns the place of its pool.
    fn prepare(&mut self, candidate: usize) -> Result<usize, String> {
        for input in self.inputs.iter_mut().flatten() {
            if let MeasuredInput::Open(value) = input {
                let made = made_up(value.dtype, &value.shape).ok_or("no values for an input")?;
                *input = MeasuredInput::Ready(made);
            }
        }
        let pool = if self.threads.len() > 1 { candidate } else { 0 };
        let threads = *self.threads.get(pool).ok_or("there is no such candidate")?;
        if let Some(slot) = self.pools.get_mut(pool) {
            slot.get_or_insert_with(|| ThreadPool::new(threads));
        }
        Ok(pool)
    }

    /// Runs a candidate so often; gives the outputs of the last run and the time of all.
    fn run(
        &mut self,
        candidate: usize,
        times: u32,
    ) -> Result<(Vec<Option<OwnedTensor>>, Duration), String> {
        let pool = self.prepare(candidate)?;
        let step = self.forms.step(candidate)?;
        let pool = self.pools.get(pool).and_then(Option::as_ref).ok_or("there are no threads")?;
        let failed = |error: galatea_tensor::TensorError| error.to_string();
        let made = |slot: &Option<ValueShape>| {
            let zeroed = |value: &ValueShape| OwnedTensor::zeroed(value.dtype, &value.shape);
            slot.as_ref().map(zeroed).transpose()
        };
        let mut outputs =
            self.outputs.iter().map(made).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if step.scratch > 0 {
            let scratch = OwnedTensor::zeroed(DataType::Fp32, &[step.scratch]);
            outputs.push(Some(scratch.map_err(failed)?));
        }
        let mut took = Duration::ZERO;
        for _ in 0..times {
            let mut inputs = Vec::with_capacity(self.inputs.len());
            for (at, input) in self.inputs.iter().enumerate() {
                let read = match input {
                    Some(MeasuredInput::Ready(tensor)) if !step.unread.contains(&at) => {
                        Some(tensor)
                    }
                    _ => None,
                };
                inputs.push(read.map(Tensor::as_view).transpose().map_err(failed)?);
            }
            let views = outputs.iter_mut();
            let views =
                views.map(|output| output.as_mut().map(OwnedTensor::as_view_mut).transpose());
            let outputs = views.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            let mut call =
                StepCall { exec: KernelContext { pool, isa: self.isa }, inputs, outputs };
            let start = Instant::now();
            (step.run)(&mut call).map_err(|error| error.to_string())?;
            took += start.elapsed();
        }
        Ok((outputs, took))
    }
}

impl TuningTarget for StepDevice {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        let (outputs, took) = self.run(candidate, 1)?;
        if self.repeats.is_none() {
            let fits = SAMPLE.as_nanos() / took.as_nanos().max(1);
            self.repeats = Some(u32::try_from(fits).unwrap_or(MAX_REPEATS).clamp(1, MAX_REPEATS));
        }
        let first = outputs.into_iter().flatten().next().ok_or("there is no output")?.freeze();
        let values = match first.dtype() {
            DataType::Fp32 => first.to_vec::<f32>(),
            _ => first.to_i64_vec().map(|all| all.into_iter().map(|value| value as f32).collect()),
        };
        values.map_err(|error| error.to_string())
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        let times = self.repeats.unwrap_or(1);
        let (_, took) = self.run(candidate, times)?;
        Ok(took.as_secs_f64() * 1e9 / f64::from(times))
    }
}

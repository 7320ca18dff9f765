//! The choices of a compiled partition: what is asked when it is planned, and what can be measured.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use galatea_graph::{Datum, Graph, infer};
use galatea_kernels::{Isa, KernelContext, ThreadPool};
use galatea_runtime::tune::{
    ConfigAxis, ConfigSpace, TuningCache, TuningProblem, TuningTarget, bucket,
};
use galatea_runtime::{NodeShapes, Precision, RuntimeError, ValueShape};
use galatea_tensor::{DataType, OwnedTensor, Tensor};

use super::KERNELS;
use super::kernel::{CpuBuildContext, CpuKernel, CpuNodeView, CpuStep, KernelChoices, StepCall};
use super::route::BlasRoute;
use super::schedule::facts_of;

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

/// Builds a node's kernel, whose questions go to the recorder.
type KernelBuilder<'b> = &'b dyn Fn(&QuestionRecorder) -> Result<Box<dyn CpuKernel>, String>;

/// Notes what is asked, and answers with one candidate.
#[derive(Debug, Default)]
struct QuestionRecorder {
    asked: Mutex<Vec<CpuQuestion>>,
    answer: usize,
}

impl TuningCache for QuestionRecorder {
    fn choose(&self, family: &str, bucket: &str, space: &ConfigSpace) -> Option<usize> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push((family.to_owned(), bucket.to_owned(), space.clone()));
        Some(self.answer)
    }
}

/// Families and buckets that have a problem already.
type AskedFamilies = HashSet<(String, String)>;

/// A partition whose choices are to be measured.
pub(super) struct CpuTunablePart<'a> {
    pub(super) graph: &'a Graph,
    pub(super) kernels: &'a [Option<Box<dyn CpuKernel>>],
    pub(super) names: &'a [&'static str],
    pub(super) isa: Isa,
    pub(super) blas: Option<BlasRoute>,
    pub(super) threads: usize,
    pub(super) precision: Precision,
    /// The choices that are already known.
    pub(super) choices: Option<&'a dyn TuningCache>,
}

impl CpuTunablePart<'_> {
    /// All choices in runs with inputs of these shapes.
    pub(super) fn problems(&self, inputs: &[Datum]) -> Result<Vec<TuningProblem>, RuntimeError> {
        let known = facts_of(self.graph, inputs)?;
        let announced = infer::facts(self.graph, &HashMap::new())?;
        let mut problems = Vec::new();
        let mut seen = AskedFamilies::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(kernel) = &self.kernels[index] else { continue };
            let Some(shapes) = NodeShapes::known(node, &known).filter(measurable) else { continue };
            let build = |recorder: &QuestionRecorder| {
                let view = CpuNodeView {
                    graph: self.graph,
                    node,
                    facts: &announced,
                    precision: self.precision,
                    device: CpuBuildContext {
                        isa: self.isa,
                        packed: None,
                        choices: Some(recorder),
                        blas: self.blas,
                    },
                };
                (KERNELS.find(&view)?.build)(&view)
            };
            let name = self.graph.place(index).to_string();
            problems.extend(self.algorithms(&name, &shapes, &build, &mut seen));
            let row = self.names[index];
            problems.extend(self.thread_counts(&name, row, &**kernel, &shapes, &mut seen));
        }
        Ok(problems)
    }

    /// The choice that a kernel asks for while it is built, if any.
    fn algorithms(
        &self,
        node: &str,
        shapes: &NodeShapes,
        build: KernelBuilder<'_>,
        seen: &mut AskedFamilies,
    ) -> Option<TuningProblem> {
        let first = QuestionRecorder::default();
        let bind = |recorder: &QuestionRecorder| {
            let choices = KernelChoices { chooser: Some(recorder), threads: self.threads };
            build(recorder)?.bind_chosen(shapes, choices)
        };
        bind(&first).ok()?;
        let asked = first.asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (family, bucket, space) = asked.into_iter().next().filter(|(.., s)| s.len() > 1)?;
        if !seen.insert((family.clone(), bucket.clone())) {
            return None;
        }
        let step =
            |answer: usize| bind(&QuestionRecorder { answer, ..QuestionRecorder::default() });
        let steps: Vec<CpuStep> = (0..space.len()).map(step).collect::<Result<_, _>>().ok()?;
        let pools = vec![Arc::new(ThreadPool::new(self.threads))];
        let device = Box::new(StepDevice::new(steps, pools, self.isa, shapes)?);
        Some(TuningProblem { node: node.to_owned(), unit: None, family, bucket, space, device })
    }

    fn thread_counts(
        &self,
        node: &str,
        row: &str,
        kernel: &dyn CpuKernel,
        shapes: &NodeShapes,
        seen: &mut AskedFamilies,
    ) -> Option<TuningProblem> {
        let space = thread_space(self.threads);
        let (family, bucket) = thread_key(row, self.precision, shapes);
        if space.len() < 2 || !seen.insert((family.clone(), bucket.clone())) {
            return None;
        }
        let pool = |candidate| Some(Arc::new(ThreadPool::new(threads_of(&space, candidate)?)));
        let pools = (0..space.len()).map(pool).collect::<Option<Vec<_>>>()?;
        let choices = KernelChoices { chooser: self.choices, threads: self.threads };
        let step = kernel.bind_chosen(shapes, choices).ok()?;
        let device = StepDevice::new(vec![step], pools, self.isa, shapes)?;
        let device = Box::new(device);
        Some(TuningProblem { node: node.to_owned(), unit: None, family, bucket, space, device })
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

/// A kernel over values that are made up: several forms of it on the same threads, or one form on
/// several numbers of threads.
struct StepDevice {
    steps: Vec<CpuStep>,
    pools: Vec<Arc<ThreadPool>>,
    isa: Isa,
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Option<ValueShape>>,
    repeats: Option<u32>,
}

impl fmt::Debug for StepDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepDevice").field("steps", &self.steps).finish_non_exhaustive()
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
    fn new(
        steps: Vec<CpuStep>,
        pools: Vec<Arc<ThreadPool>>,
        isa: Isa,
        shapes: &NodeShapes,
    ) -> Option<Self> {
        let mut inputs = Vec::with_capacity(shapes.inputs.len());
        for (slot, constant) in shapes.inputs.iter().zip(&shapes.constants) {
            inputs.push(match (slot, constant) {
                (None, _) => None,
                (Some(_), Some(constant)) => Some(constant.contiguous().ok()?),
                (Some(value), None) => Some(made_up(value.dtype, &value.shape)?),
            });
        }
        let outputs = shapes.outputs.clone();
        Some(Self { steps, pools, isa, inputs, outputs, repeats: None })
    }

    fn parts(&self, candidate: usize) -> Option<(&CpuStep, &ThreadPool)> {
        let (step, pool) = if self.steps.len() > 1 { (candidate, 0) } else { (0, candidate) };
        Some((self.steps.get(step)?, self.pools.get(pool)?))
    }

    /// Runs a candidate so often; gives the outputs of the last run and the time of all.
    fn run(
        &self,
        candidate: usize,
        times: u32,
    ) -> Result<(Vec<Option<OwnedTensor>>, Duration), String> {
        let (step, pool) = self.parts(candidate).ok_or("there is no such candidate")?;
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
                let read = input.as_ref().filter(|_| !step.unread.contains(&at));
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

//! Partition whose lengths are known in a run only, as programs of fixed shapes: the engine takes
//! no others.
//!
//! A program is compiled for each set of shapes that is seen, a bounded number of them. Along axes whose rows
//! know nothing of each other ([`rows`]) inputs are padded up to a bucket and results cut off again,
//! so that batches of all sizes share a few programs.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use galatea_graph::{Datum, Dim, Fact, Graph, infer, rows};
use galatea_runtime::{
    Executable, ExecutableTraits, MemoryReport, PartitionReport, PartitionResult, PartitionRun,
    RunFence, RuntimeError,
};
use galatea_tensor::{OrderedSet, Tensor};

use super::NAME;
use super::engine::StandbyExecutable;

/// The most sets of shapes that stay compiled.
const MAX_PROGRAMS: usize = 16;

/// Compiles a graph of fixed shapes.
pub(super) type ShapeCompiler =
    Box<dyn Fn(Arc<Graph>) -> Result<Box<dyn Executable>, RuntimeError> + Send + Sync>;

type ShapedProgram = Arc<OnceLock<Result<Arc<dyn Executable>, RuntimeError>>>;
type InputLengths = Vec<Vec<usize>>;

/// The programs of a partition.
pub(super) struct ShapedPrograms {
    graph: Arc<Graph>,
    /// How the lengths of inputs and outputs are called.
    inputs: Vec<Fact>,
    outputs: Vec<Option<Fact>>,
    /// Lengths that are padded.
    padded: OrderedSet<String>,
    /// Lengths that they are padded up to, in rising order; powers of two if empty.
    buckets: Vec<usize>,
    compile: ShapeCompiler,
    /// Executable for shapes that do not compile.
    otherwise: Arc<StandbyExecutable>,
    /// Programs by shapes; the latest used is the last.
    programs: Mutex<Vec<(InputLengths, ShapedProgram)>>,
}

/// Returns whether some length of the inputs is known in a run only.
pub(super) fn is_open(graph: &Graph) -> bool {
    let known = |id| {
        graph.value(id).declared.as_ref().is_some_and(|fact: &Fact| fact.known_shape().is_some())
    };
    !graph.inputs.iter().all(|&id| known(id))
}

impl ShapedPrograms {
    /// The programs of a graph, none of them compiled.
    ///
    /// # Errors
    /// Fails when shapes do not fit, or an input is no tensor.
    pub(super) fn new(
        graph: Arc<Graph>,
        buckets: &[usize],
        compile: ShapeCompiler,
        otherwise: Arc<StandbyExecutable>,
    ) -> Result<Self, RuntimeError> {
        let facts = infer::facts(&graph, &std::collections::HashMap::new())?;
        let of = |id: &galatea_graph::ValueId| facts.get(id.index()).cloned().flatten();
        let inputs: Option<Vec<Fact>> =
            graph.inputs.iter().map(|id| of(id).filter(Fact::is_tensor)).collect();
        let inputs = inputs
            .ok_or_else(|| RuntimeError::provider(NAME, "an input of which no type is known"))?;
        let outputs = graph.outputs.iter().map(of).collect();
        let padded = rows::independent(&graph, &facts);
        let programs = Mutex::new(Vec::new());
        let buckets = buckets.to_vec();
        Ok(Self { graph, inputs, outputs, padded, buckets, compile, otherwise, programs })
    }

    /// The length that one is padded up to: itself beyond the largest bucket.
    fn bucket(&self, length: usize) -> usize {
        match self.buckets.is_empty() {
            true => length.checked_next_power_of_two().unwrap_or(length),
            false => self.buckets.iter().copied().find(|&one| one >= length).unwrap_or(length),
        }
    }

    /// The length of the first axis where it is padded.
    fn padded_name<'f>(&self, fact: Option<&'f Fact>) -> Option<&'f str> {
        match fact?.shape.as_ref()?.first()? {
            Dim::Symbol(name) if self.padded.contains(&**name) => Some(&**name),
            _ => None,
        }
    }

    /// The program for these shapes, compiled when it is asked for first.
    fn program(&self, shapes: &InputLengths) -> Result<Arc<dyn Executable>, RuntimeError> {
        let slot = {
            let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
            let known = programs.iter().position(|(known, _)| known == shapes);
            let entry = match known {
                Some(at) => programs.remove(at),
                None => (shapes.clone(), ShapedProgram::default()),
            };
            let slot = Arc::clone(&entry.1);
            programs.push(entry);
            let surplus = programs.len().saturating_sub(MAX_PROGRAMS);
            programs.drain(..surplus);
            slot
        };
        slot.get_or_init(|| self.compiled(shapes)).clone()
    }

    fn compiled(&self, shapes: &InputLengths) -> Result<Arc<dyn Executable>, RuntimeError> {
        let mut graph = Graph::clone(&self.graph);
        for ((&id, fact), shape) in self.graph.inputs.iter().zip(&self.inputs).zip(shapes) {
            graph.value_mut(id).declared = Some(Fact::fixed(fact.dtype, shape));
        }
        let graph = Arc::new(graph);
        match (self.compile)(Arc::clone(&graph)) {
            Ok(made) => Ok(Arc::from(made)),
            Err(error) => {
                tracing::warn!(model = %graph.name, "shapes {shapes:?} are left to others: {error}");
                self.otherwise.get()
            }
        }
    }

    /// Compiles the program of the first bucket, so that what fails does so before the first run; not where
    /// other lengths are open too.
    ///
    /// # Errors
    /// Fails when it does not compile.
    pub(super) fn try_first(&self) -> Result<(), RuntimeError> {
        let first = self.buckets.first().copied().unwrap_or(1);
        let number = |name: &str| self.padded.contains(name).then_some(first);
        let shape = |fact: &Fact| -> Option<Vec<usize>> {
            fact.shape.as_ref()?.iter().map(|dim| dim.evaluate(&number)).collect()
        };
        let shapes: Option<InputLengths> = self.inputs.iter().map(shape).collect();
        let Some(shapes) = shapes else { return Ok(()) };
        let mut graph = Graph::clone(&self.graph);
        for ((&id, fact), shape) in self.graph.inputs.iter().zip(&self.inputs).zip(&shapes) {
            graph.value_mut(id).declared = Some(Fact::fixed(fact.dtype, shape));
        }
        let made: Arc<dyn Executable> = Arc::from((self.compile)(Arc::new(graph))?);
        let slot = ShapedProgram::default();
        slot.set(Ok(made)).ok();
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).push((shapes, slot));
        Ok(())
    }

    fn run(&self, run: PartitionRun<'_>) -> Result<PartitionResult, RuntimeError> {
        let PartitionRun { inputs, profile, .. } = run;
        let failed = |error: &dyn std::fmt::Display| RuntimeError::provider(NAME, error);
        let mut tensors = Vec::with_capacity(inputs.len());
        let mut lengths: Vec<(String, usize)> = Vec::new();
        for (datum, fact) in inputs.into_iter().zip(&self.inputs) {
            let tensor = datum.into_tensor().map_err(|error| failed(&error))?;
            let target = self.padded_name(Some(fact)).zip(tensor.shape().first().copied());
            let Some((name, length)) = target else {
                tensors.push(tensor);
                continue;
            };
            if !lengths.iter().any(|(known, _)| known == name) {
                lengths.push((name.to_owned(), length));
            }
            tensors.push(padded(&tensor, self.bucket(length)).map_err(|error| failed(&error))?);
        }
        let shapes: InputLengths = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
        let program = self.program(&shapes)?;
        let inputs = tensors.into_iter().map(Datum::Tensor).collect();
        let run = PartitionRun { inputs, wanted: None, profile };
        let PartitionResult { outputs: results, rows } = program.submit(run).wait()?;
        let cut = |(datum, fact): (Datum, &Option<Fact>)| {
            let name = self.padded_name(fact.as_ref());
            let length = lengths.iter().find(|(known, _)| Some(known.as_str()) == name);
            let Some((_, length)) = length else { return Ok(datum) };
            let tensor = datum.into_tensor().map_err(|error| failed(&error))?;
            if tensor.shape().first() == Some(length) {
                return Ok(Datum::Tensor(tensor));
            }
            let short = tensor.slice_axis(0, 0, *length, 1);
            short.map(Datum::Tensor).map_err(|error| failed(&error))
        };
        let outputs: Result<_, _> = results.into_iter().zip(&self.outputs).map(cut).collect();
        Ok(PartitionResult { outputs: outputs?, rows })
    }
}

/// A tensor with zeros behind its rows, so many rows in all.
fn padded(tensor: &Tensor, rows: usize) -> Result<Tensor, galatea_tensor::TensorError> {
    let Some(missing) = tensor.shape().first().and_then(|&first| rows.checked_sub(first)) else {
        return Ok(tensor.clone());
    };
    if missing == 0 {
        return Ok(tensor.clone());
    }
    let with = |rows: usize| {
        let mut shape = tensor.shape().to_vec();
        shape.iter_mut().take(1).for_each(|first| *first = rows);
        shape
    };
    let whole = tensor.contiguous()?;
    let more = Tensor::zeros(tensor.dtype(), &with(missing))?;
    let bytes = [whole.unaligned_bytes()?, more.unaligned_bytes()?].concat();
    Tensor::from_bytes(tensor.dtype(), &with(rows), &bytes)
}

impl Executable for ShapedPrograms {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        RunFence::ready(self.run(run))
    }

    fn report(&self) -> PartitionReport {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let made = programs.iter().filter_map(|(_, slot)| slot.get()?.as_ref().ok());
        let memory = made.map(|program| program.report().memory);
        let memory = memory.fold(MemoryReport::default(), MemoryReport::plus);
        PartitionReport { memory, ..PartitionReport::default() }
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = programs.iter().filter_map(|(_, slot)| slot.get()?.as_ref().ok());
        // The program that ran last is that of the next run, as a rule.
        let times_steps = made.next_back().is_some_and(|program| program.traits().times_steps);
        ExecutableTraits { times_steps, ..ExecutableTraits::default() }
    }
}

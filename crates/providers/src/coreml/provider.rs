//! The provider `coreml`: partitions as ML programs, which Galatea's interpreter runs.
//!
//! A partition is converted as [`convert`] does it, read back as the interpreter reads a package, and
//! run operation by operation on the processor: results are what a program of FP16 gives, rounded after
//! each operation, so that the accuracy of a model on the Neural Engine is known where there is none. On macOS,
//! and where `worker` is set, a worker of the [`engine`](super::engine) runs it as soon as it is compiled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_formats::coreml::interpret;
use galatea_graph::rewrite::{self, Level};
use galatea_graph::{Datum, Fact, Graph, converted};
use galatea_runtime::{
    Claim, Claims, Executable, ExecutionProvider, Fence, MemoryReport, PlacedOperator, Refusal,
    RuntimeError, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

use super::convert::{ConvertOptions, convert, refusals};
use super::engine::{Deferred, EngineChoice, Make};
use super::sums;
use crate::cost;
use crate::cpu::CpuProvider;

/// The provider's name.
pub const NAME: &str = "coreml";

/// Nanoseconds of one operation in the interpreter: about those of the processor.
const OPERATION_NS: f64 = 0.1;
/// Nanoseconds to start a partition: what Core ML takes to begin a prediction.
const LAUNCH_NS: f64 = 200_000.0;

/// Runs what has a form in a program.
#[derive(Debug, Default)]
pub struct CoreMlProvider {
    /// Whether floats are computed in FP32.
    single: Mutex<bool>,
    /// What runs partitions.
    engine: Mutex<EngineChoice>,
    /// Claims whatever it can run, however soon another provider would be done.
    insists: bool,
}

impl CoreMlProvider {
    /// A provider that computes in FP16, as the Neural Engine does.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn engine(&self) -> MutexGuard<'_, EngineChoice> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&self) -> ConvertOptions {
        let single = *self.single.lock().unwrap_or_else(PoisonError::into_inner);
        ConvertOptions { half: !single, level: Level::O3, ..ConvertOptions::default() }
    }
}

impl ExecutionProvider for CoreMlProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    /// `precision`: `fp16` or `fp32`; `worker`: `on` or `off`, whether another process runs partitions;
    /// `power_mode`: `high_performance`, `balanced` or `low_power`.
    fn configure(&self, settings: &BTreeMap<String, String>) -> Result<(), String> {
        for (name, value) in settings {
            if let Some(taken) = self.engine().set(name, value) {
                taken?;
                continue;
            }
            let single = match (name.as_str(), value.as_str()) {
                ("precision", "fp16") => false,
                ("precision", "fp32") => true,
                ("precision", _) => {
                    return Err(format!("precision '{value}' found, expected fp16 or fp32"));
                }
                _ => {
                    let others = EngineChoice::NAMES;
                    return Err(format!("'{name}' found, expected precision, {others}"));
                }
            };
            *self.single.lock().unwrap_or_else(PoisonError::into_inner) = single;
        }
        Ok(())
    }

    fn insisting(&self) -> Option<Arc<dyn ExecutionProvider>> {
        let single = *self.single.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = Mutex::new(self.engine().clone());
        Some(Arc::new(Self { single: Mutex::new(single), engine, insists: true }))
    }

    fn claim(&self, graph: &Graph, facts: &[Option<Fact>]) -> Claims {
        let refused = refusals(graph, facts, &self.options());
        let mut claims = Claims { launch_ns: LAUNCH_NS, ..Claims::default() };
        if self.insists {
            claims.launch_ns = 0.0;
        }
        for (index, (node, refused)) in graph.nodes.iter().zip(refused).enumerate() {
            match refused {
                Some(reason) => claims.refusals.push(Refusal { node: index, reason }),
                None => claims.claims.push(Claim {
                    nodes: vec![index],
                    cost_ns: match self.insists {
                        true => 0.0,
                        false => cost::operations(node, facts) * OPERATION_NS,
                    },
                    kernel: NAME.to_owned(),
                }),
            }
        }
        claims
    }

    fn compile(
        &self,
        graph: Arc<Graph>,
        options: &SessionOptions,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        let failed = |error: &dyn std::fmt::Display| RuntimeError::provider(NAME, error);
        let package = convert(&graph, &self.options()).map_err(|error| failed(&error))?;
        let function = package.program.functions.get("main");
        let function = function.ok_or_else(|| failed(&"the program has no function 'main'"))?;
        let mut program = interpret("main", function).map_err(|error| failed(&error))?;
        // No fusions: what an operation gives is rounded before the next one reads it.
        rewrite::optimise(&mut program, Level::O1).map_err(|error| failed(&error))?;
        sums::in_single(&mut program).map_err(|error| failed(&error))?;
        let expect = |ids: &[galatea_graph::ValueId], of: &Graph| -> Vec<Option<Fact>> {
            ids.iter().map(|&id| of.value(id).declared.clone()).collect()
        };
        let facts = galatea_graph::infer::facts(&graph, &std::collections::HashMap::new());
        let facts = facts.map_err(|error| failed(&error))?;
        let given = graph.outputs.iter().map(|id| facts.get(id.index()).cloned().flatten());
        let outputs = given.collect::<Arc<[_]>>();
        let inputs = expect(&program.inputs, &program);
        if let Some(make) = self.engine().maker(package) {
            let fallback = CpuProvider::new().compile(Arc::clone(&graph), options)?;
            let make: Make = Box::new(move || {
                let inner = Box::new(make()?);
                let made: Box<dyn Executable> = Box::new(Interpreted { inner, inputs, outputs });
                Ok(made)
            });
            return Ok(Box::new(Deferred::start(graph.name.clone(), make, fallback)));
        }
        let inner = CpuProvider::new().compile(Arc::new(program), options)?;
        Ok(Box::new(Interpreted { inner, inputs, outputs }))
    }
}

/// A program, and what its border has instead of the graph's types: arrays of FP32 and INT32, none
/// without axes.
struct Interpreted {
    inner: Box<dyn Executable>,
    /// What the program takes.
    inputs: Vec<Option<Fact>>,
    /// What the graph gives.
    outputs: Arc<[Option<Fact>]>,
}

/// A tensor in another type, and with the axes that a fact says where it had one element without any.
pub(super) fn fitted(tensor: &Tensor, fact: Option<&Fact>) -> Result<Tensor, String> {
    let Some(fact) = fact else { return Ok(tensor.clone()) };
    let tensor = in_type(tensor, fact.dtype)?;
    match fact.rank() {
        Some(rank) if rank != tensor.rank() && tensor.elements() == 1 => {
            tensor.reshape(&vec![1; rank]).map_err(|error| error.to_string())
        }
        _ => Ok(tensor),
    }
}

/// Integers that 32 bits do not hold are an error: a program has no larger ones.
fn in_type(tensor: &Tensor, dtype: DataType) -> Result<Tensor, String> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    if dtype == DataType::Int32 && tensor.dtype() == DataType::Int64 {
        let all = tensor.to_i64_vec().map_err(|error| error.to_string())?;
        if let Some(large) = all.iter().find(|&&value| i32::try_from(value).is_err()) {
            return Err(format!("{large} is beyond the 32 bits that a program has"));
        }
    }
    converted(tensor, dtype).map_err(|error| error.to_string())
}

/// Each tensor as its fact says.
fn all_fitted(given: Vec<Datum>, facts: &[Option<Fact>]) -> Result<Vec<Datum>, RuntimeError> {
    let fit = |(datum, fact): (Datum, &Option<Fact>)| {
        let tensor = datum.into_tensor().map_err(|error| RuntimeError::provider(NAME, error))?;
        let fitted = fitted(&tensor, fact.as_ref());
        fitted.map(Datum::Tensor).map_err(|error| RuntimeError::provider(NAME, error))
    };
    given.into_iter().zip(facts).map(fit).collect()
}

impl Executable for Interpreted {
    fn submit(&self, inputs: Vec<Datum>) -> Fence {
        let fed = match all_fitted(inputs, &self.inputs) {
            Ok(fed) => fed,
            Err(error) => return Fence::ready(Err(error)),
        };
        let (fence, outputs) = (self.inner.submit(fed), Arc::clone(&self.outputs));
        Fence::pending(move || all_fitted(fence.wait()?, &outputs))
    }

    fn memory(&self) -> MemoryReport {
        self.inner.memory()
    }

    fn placed(&self) -> Vec<PlacedOperator> {
        self.inner.placed()
    }
}

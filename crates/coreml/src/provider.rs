//! The provider `coreml`: partitions as ML programs, which Galatea's interpreter runs.
//!
//! A partition is converted as [`convert`] does it, read back as the interpreter reads a package, and
//! run operation by operation on the processor: results are what a program of FP16 gives, rounded after
//! each operation, so that the accuracy of a model on the Neural Engine is known where there is none. On macOS,
//! and where `worker` is set, a worker of the [`engine`](super::engine) runs it as soon as it is compiled.

use std::sync::Arc;

use galatea_formats::coreml::interpret;
use galatea_formats::coreml::mil::MilFunction;
use galatea_graph::rewrite::{self, RewriteLevel};
use galatea_graph::{Datum, Fact, Graph, converted};
use galatea_runtime::{
    ClaimRequest, CompileMode, CompileRequest, Executable, ExecutableTraits, ExecutionProvider,
    FallbackProviders, OptimiseLevel, PartitionReport, PartitionResult, PartitionRun, PlanReport,
    ProviderClaims, ProviderTraits, ProviderWish, RunFence, RuntimeError, SessionOptions,
    predict_fallback_ns,
};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::accuracy::AccuracyProbe;
use super::claims::{ClaimOptions, claims, order, work_ns};
use super::compatibility_check::CompatibilityCheck;
use super::convert::convert;
use super::convert_options::ConvertOptions;
use super::engine::{
    DeferredExecutable, EngineChoice, ExecutableMaker, StandbyExecutable, ValidationEntry, records,
};
use super::guard::GuardedExecutable;
use super::neural_engine::NeuralEngine;
use super::planned_elsewhere::PlannedElsewhere;
use super::plans::noted;
use super::rules::{RulePlace, rules};
use super::settings::{CoreMlSettings, FloatType, NAME};
use super::shaped::{ShapedPrograms, is_open};
use galatea_providers::cpu::{CpuProvider, in_single};

/// Lengths that sequences are padded up to where nothing is said.
const SEQUENCES: [usize; 7] = [16, 32, 64, 128, 256, 384, 512];

/// Runs what has a form in a program.
#[derive(Clone, Debug, Default)]
pub struct CoreMlProvider {
    settings: CoreMlSettings,
    /// The engine that claims are made for.
    engine: Option<NeuralEngine>,
    /// The choice of the engine that runs partitions.
    runner: EngineChoice,
    /// Claims whatever it can run, however soon another provider would be done.
    forced: bool,
}

impl CoreMlProvider {
    /// A provider with the usual settings and without an engine: the interpreter runs the programs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A provider for the engine of this machine, if there is one.
    #[must_use]
    pub fn here() -> Self {
        Self { engine: NeuralEngine::detect(), ..Self::default() }
    }

    /// The same with claims as for this engine, wherever the programs run.
    #[must_use]
    pub fn with_engine(self, engine: NeuralEngine) -> Self {
        Self { engine: Some(engine), ..self }
    }

    /// Returns the provider for somebody who asked for it by name: it claims whatever it can run.
    #[must_use]
    pub fn forced(&self) -> Arc<dyn ExecutionProvider> {
        Arc::new(Self { forced: true, ..self.clone() })
    }

    /// The engine that claims are made for.
    #[must_use]
    pub fn engine(&self) -> Option<&NeuralEngine> {
        self.engine.as_ref()
    }

    /// The same with other settings.
    #[must_use]
    pub fn with_settings(self, settings: CoreMlSettings) -> Self {
        Self { settings, ..self }
    }

    fn asked<'a>(
        &'a self,
        options: &'a ConvertOptions,
        measured: &'a PlannedElsewhere,
    ) -> ClaimOptions<'a> {
        ClaimOptions {
            options,
            engine: self.engine.as_ref(),
            insists: self.forced,
            buckets: &self.settings.buckets,
            measured,
        }
    }

    fn options(&self) -> ConvertOptions {
        ConvertOptions {
            half: self.settings.float == FloatType::Fp16,
            compression: self.settings.weights,
            level: RewriteLevel::O3,
            ..ConvertOptions::default()
        }
    }

    /// Looks at what is really written for the engine: rewriting makes other operations of nodes that it takes. A
    /// program that leaves it so often that the others of the session would be done sooner is refused, unless somebody
    /// insists.
    fn check_written(
        &self,
        graph: &Graph,
        function: &MilFunction,
        others: &FallbackProviders,
    ) -> Result<(), RuntimeError> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let options = self.options();
        let measured = PlannedElsewhere::of(Some(engine));
        let judge =
            CompatibilityCheck::of(rules(), RulePlace::of(&options, engine), &measured, function);
        let stretches = judge.stretches(function);
        let Some(first) = stretches.first() else { return Ok(()) };
        let changes: usize = stretches.iter().map(|stretch| stretch.changes).sum();
        let text = format!(
            "the program that is written leaves the engine {} times, first with {} operations: {}",
            stretches.len(),
            first.operations,
            first.reason
        );
        tracing::info!(model = %graph.name, changes, "{text}");
        if self.forced {
            return Ok(());
        }
        let facts = galatea_graph::infer::facts(graph, &std::collections::HashMap::new());
        let Some((facts, theirs)) = facts.ok().zip(predict_fallback_ns(others, graph)) else {
            return Ok(());
        };
        #[allow(clippy::cast_precision_loss, reason = "a count")]
        let starts = 1.0 + changes as f64;
        let own = work_ns(graph, &facts, engine) + starts * engine.dispatch_ms * 1e6;
        if own <= theirs {
            return Ok(());
        }
        let own = own / 1e6;
        let theirs = theirs / 1e6;
        let text = format!(
            "{text}; predicted {own:.3} ms with {changes} changes of the unit, others {theirs:.3} ms"
        );
        Err(RuntimeError::provider(NAME, text))
    }

    /// Returns whether results are compared with those of others.
    fn compares(&self) -> bool {
        let wanted = self.engine.is_some() || !self.settings.samples.is_empty();
        self.runner.runs() || self.settings.probe.unwrap_or(wanted)
    }

    /// That on what a partition gives.
    fn verdict(&self, graph: &Graph) -> ValidationEntry {
        let runner = self.runner.text();
        let samples = self.settings.samples.text();
        ValidationEntry::of(
            graph,
            &format!("{:?} {:?} {runner} {samples}", self.settings, self.engine),
            records(),
        )
    }

    /// Compiles a partition. What the interpreter runs is compared with FP32 at once where that is asked for; first runs
    /// always are.
    fn compiled(
        &self,
        graph: &Arc<Graph>,
        options: &SessionOptions,
        others: &FallbackProviders,
        standby: &Arc<StandbyExecutable>,
    ) -> Result<Box<dyn Executable>, RuntimeError> {
        let failed = |error: &dyn std::fmt::Display| RuntimeError::provider(NAME, error);
        let verdict = self.compares().then(|| self.verdict(graph));
        if let Some(Err(text)) = verdict.as_ref().and_then(ValidationEntry::known) {
            return Err(failed(&format!("known from before: {text}")));
        }
        let package = convert(graph, &self.options()).map_err(|error| failed(&error))?;
        let function = package.program.functions.get("main");
        let function = function.ok_or_else(|| failed(&"the program has no function 'main'"))?;
        self.check_written(graph, function, others)?;
        let mut program = interpret("main", function).map_err(|error| failed(&error))?;
        // No fusions: what an operation gives is rounded before the next one reads it.
        rewrite::optimise(&mut program, RewriteLevel::O1).map_err(|error| failed(&error))?;
        in_single(&mut program).map_err(|error| failed(&error))?;
        let expect = |ids: &[galatea_graph::ValueId], of: &Graph| -> Vec<Option<Fact>> {
            ids.iter().map(|&id| of.value(id).declared.clone()).collect()
        };
        let facts = galatea_graph::infer::facts(graph, &std::collections::HashMap::new());
        let facts = facts.map_err(|error| failed(&error))?;
        let given = graph.outputs.iter().map(|id| facts.get(id.index()).cloned().flatten());
        let outputs = given.collect::<Arc<[_]>>();
        let inputs = expect(&program.inputs, &program);
        if let Some(verdict) = verdict.clone()
            && let Some(make) =
                self.runner.maker(package, noted(self.engine.as_ref()), options.watch.clone())
        {
            let make: ExecutableMaker = Box::new(move || {
                let inner = Box::new(make()?);
                let made: Box<dyn Executable> =
                    Box::new(InterpretedProgram { inner, inputs, outputs, planned: true });
                Ok(made)
            });
            let standby = Arc::clone(standby);
            let mode = self.runner.mode(options);
            let name = graph.name.clone();
            let limit = self.settings.accuracy_limit;
            let deferred = DeferredExecutable::start(name, make, standby, verdict, mode, limit)?;
            if mode == CompileMode::Wait {
                // Samples are its first runs, which are compared; that they fail is no failure of the model.
                let samples = self.settings.samples.inputs(graph);
                let ran = samples
                    .into_iter()
                    .try_for_each(|inputs| deferred.submit(inputs.into()).outputs().map(|_| ()));
                if let Err(error) = ran {
                    tracing::debug!(model = %graph.name, "samples are not compared: {error}");
                }
            }
            return Ok(Box::new(deferred));
        }
        let inner =
            CpuProvider::new().compile(CompileRequest::alone(Arc::new(program), options))?;
        let made = InterpretedProgram { inner, inputs, outputs, planned: false };
        if let Some(verdict) = &verdict {
            let limit = self.settings.accuracy_limit;
            let samples = &self.settings.samples;
            AccuracyProbe { graph, options, samples, limit, verdict }.check(&made)?;
        }
        // FP32 loses nothing.
        if self.settings.float == FloatType::Fp32 {
            return Ok(Box::new(made));
        }
        let limit = (self.settings.probe != Some(false)).then_some(self.settings.accuracy_limit);
        let name = graph.name.clone();
        let standby = Arc::clone(standby);
        Ok(Box::new(GuardedExecutable::new(Box::new(made), name, standby, limit)))
    }
}

impl ExecutionProvider for CoreMlProvider {
    fn traits(&self) -> ProviderTraits {
        let padded_lengths = match &self.settings.sequence_buckets {
            Some(lengths) => lengths.clone(),
            // The interpreter takes any length.
            None if self.engine.is_some() => SEQUENCES.to_vec(),
            None => Vec::new(),
        };
        // Programs have no operations for what larger fusions make.
        let optimise = OptimiseLevel::O1;
        ProviderTraits { optimise, padded_lengths, ..ProviderTraits::named(NAME) }
    }

    /// Takes the keys of [`CoreMlSettings`]; `worker`: `on` or `off`, whether another process runs partitions;
    /// `power_mode`: `high_performance`, `balanced` or `low_power`; `compile`: `wait` or `background`.
    fn variant(
        &self,
        wish: &ProviderWish<'_>,
    ) -> Result<Option<Arc<dyn ExecutionProvider>>, String> {
        let mut changed = self.clone();
        changed.forced |= wish.forced;
        if let Some(settings) = wish.settings {
            let mut own = OrderedMap::new();
            for (name, value) in settings {
                match changed.runner.set(name, value) {
                    Some(taken) => taken?,
                    None => {
                        own.insert(name.clone(), value.clone());
                    }
                }
            }
            changed.settings = CoreMlSettings::of(&own, EngineChoice::NAMES)?;
            for line in changed.runner.idle() {
                tracing::warn!("{line}");
            }
        }
        Ok(Some(Arc::new(changed)))
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let ClaimRequest { graph, facts, typical, with_order, .. } = *request;
        let measured = PlannedElsewhere::of(self.engine.as_ref());
        let options = self.options();
        let asked = self.asked(&options, &measured);
        let order = if with_order { order(asked, graph, facts) } else { None };
        ProviderClaims { order, ..claims(asked, graph, facts, typical) }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        let CompileRequest { graph, options, others } = request;
        // The CPU takes every node.
        let others = match others.is_empty() {
            true => FallbackProviders(vec![Arc::new(CpuProvider::new())]),
            false => others,
        };
        let standby = StandbyExecutable::of(Arc::clone(&graph), options.clone(), others.clone());
        let standby = Arc::new(standby);
        // The interpreter takes shapes as they come.
        let fixed = self.engine.is_some() || !self.settings.buckets.is_empty();
        if !(fixed && is_open(&graph)) {
            return self.compiled(&graph, options, &others, &standby);
        }
        let own = self.clone();
        let options = options.clone();
        let otherwise = Arc::clone(&standby);
        let compile = Box::new(move |graph| own.compiled(&graph, &options, &others, &standby));
        let shaped = ShapedPrograms::new(graph, &self.settings.buckets, compile, otherwise)?;
        shaped.try_first()?;
        Ok(Box::new(shaped))
    }
}

/// A program, and what its border has instead of the graph's types: arrays of FP32 and INT32, none
/// without axes.
struct InterpretedProgram {
    inner: Box<dyn Executable>,
    /// Facts of the program's inputs.
    inputs: Vec<Option<Fact>>,
    /// Facts of the graph's outputs.
    outputs: Arc<[Option<Fact>]>,
    /// True where an engine runs it, which times its steps by its plan. The interpreter's steps are none of an
    /// engine's.
    planned: bool,
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

impl Executable for InterpretedProgram {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let fed = match all_fitted(run.inputs, &self.inputs) {
            Ok(fed) => fed,
            Err(error) => return RunFence::failed(error),
        };
        let profile = run.profile && self.planned;
        let fence = self.inner.submit(PartitionRun { inputs: fed, wanted: None, profile });
        let outputs = Arc::clone(&self.outputs);
        RunFence::pending(move || {
            let PartitionResult { outputs: given, rows } = fence.wait()?;
            Ok(PartitionResult { outputs: all_fitted(given, &outputs)?, rows })
        })
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        let times_steps = self.planned && self.inner.traits().times_steps;
        ExecutableTraits { times_steps, ..ExecutableTraits::default() }
    }

    fn report(&self) -> PartitionReport {
        PartitionReport { plans: PlanReport::default(), ..self.inner.report() }
    }
}

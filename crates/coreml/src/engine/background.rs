//! An executable that is made while another one serves, and takes over when it has proved right.
//!
//! Runs switch from one to the other between requests: nothing of a run stays in either, as the states of a
//! sequence are inputs and outputs of a partition. What has served meanwhile is given back then, with its copies of
//! weights, and made once more where a run needs it after all.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use galatea_graph::Datum;
use galatea_runtime::tune::TuningProblem;
use galatea_runtime::{
    CompileMode, Executable, ExecutableTraits, PartitionReport, PartitionResult, PartitionRun,
    RunFence, RuntimeError, TunableKernels,
};

use super::agree::{agree, all_finite, none_lost};
use super::compared_inputs::{ComparedInputs, InputMagnitudes};
use super::counts;
use super::later_comparison::compare_later;
use super::loss_rate::LossRate;
use super::standby::StandbyExecutable;
use super::validation_cache::ValidationEntry;
use crate::NAME;

/// Number of runs that may fail one after the other before the engine is given up.
const MAX_FAILURES: usize = 3;

/// An executable that is served by another one until it is ready.
pub(crate) struct DeferredExecutable {
    shared: Arc<DeferredState>,
}

struct DeferredState {
    name: String,
    standby: Arc<StandbyExecutable>,
    /// The verdict on its results, once that is known.
    verdict: ValidationEntry,
    /// The standby's executable, as long as it serves.
    held: Mutex<Option<Arc<dyn Executable>>>,
    stage: Mutex<CompileStage>,
    /// The largest relative error of results that are compared.
    limit: f64,
    /// The inputs that its results were compared on.
    compared: Mutex<ComparedInputs>,
    losses: Mutex<LossRate>,
}

enum CompileStage {
    /// It is being made.
    Making,
    /// It is there and has yet to prove right.
    Made(Arc<dyn Executable>),
    /// It serves; so many runs have failed since the last one that did not.
    Serving(Arc<dyn Executable>, usize),
    /// The other one serves for good.
    GivenUp,
}

impl fmt::Debug for DeferredExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Function that makes an executable.
pub(crate) type ExecutableMaker = Box<dyn FnOnce() -> Result<Box<dyn Executable>, String> + Send>;

/// How an executable begins that was made.
fn stage_of(verdict: &ValidationEntry, made: Box<dyn Executable>) -> CompileStage {
    match verdict.known() {
        Some(Ok(())) => CompileStage::Serving(Arc::from(made), 0),
        _ => CompileStage::Made(Arc::from(made)),
    }
}

/// Makes it when nobody else makes one: compilers take all cores and much memory.
fn made_alone(
    make: ExecutableMaker,
    wanted: impl FnOnce() -> bool,
) -> Option<Result<Box<dyn Executable>, String>> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    wanted().then(make)
}

impl DeferredExecutable {
    /// Makes an executable, here and now or in the background. What `standby` gives serves until it is there and its
    /// first results have proved right, which a `verdict` may have said before, and for good where it fails or gives
    /// something else: its results may be off by `limit`, a relative error. `name` is for messages.
    ///
    /// # Errors
    /// Fails when it is waited for and cannot be made, or it is not and nothing else can serve.
    pub(crate) fn start(
        name: String,
        make: ExecutableMaker,
        standby: Arc<StandbyExecutable>,
        verdict: ValidationEntry,
        mode: CompileMode,
        limit: f64,
    ) -> Result<Self, RuntimeError> {
        let compared = Mutex::new(match verdict.known() {
            Some(Ok(())) => ComparedInputs::known_before(),
            _ => ComparedInputs::default(),
        });
        let stage = match mode {
            CompileMode::Wait => {
                let made = made_alone(make, || true).unwrap_or_else(|| Err(String::new()));
                let failed = |error| {
                    counts::fallback();
                    RuntimeError::provider(NAME, error)
                };
                stage_of(&verdict, made.map_err(failed)?)
            }
            CompileMode::Background => {
                let held = Mutex::new(Some(standby.get()?));
                let stage = Mutex::new(CompileStage::Making);
                let losses = Mutex::default();
                let shared =
                    DeferredState { name, standby, verdict, held, stage, limit, compared, losses };
                let shared = Arc::new(shared);
                shared.make_in_background(make);
                return Ok(Self { shared });
            }
        };
        let held = Mutex::new(None);
        let stage = Mutex::new(stage);
        let losses = Mutex::default();
        let shared = DeferredState { name, standby, verdict, held, stage, limit, compared, losses };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The one that was made, where it is there.
    fn made(&self) -> Option<Arc<dyn Executable>> {
        match &*self.shared.stage() {
            CompileStage::Made(made) | CompileStage::Serving(made, _) => Some(Arc::clone(made)),
            CompileStage::Making | CompileStage::GivenUp => None,
        }
    }
}

impl DeferredState {
    fn stage(&self) -> MutexGuard<'_, CompileStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Option<Arc<dyn Executable>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compared(&self) -> MutexGuard<'_, ComparedInputs> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the executable that serves in place of the engine, and keeps it from now on.
    fn fallback(&self) -> Result<Arc<dyn Executable>, RuntimeError> {
        let mut held = self.held();
        if let Some(there) = &*held {
            return Ok(Arc::clone(there));
        }
        let made = self.standby.get()?;
        *held = Some(Arc::clone(&made));
        Ok(made)
    }

    fn make_in_background(self: &Arc<Self>, make: ExecutableMaker) {
        let weak = Arc::downgrade(self);
        let work = move || {
            let needed = || weak.strong_count() > 0;
            let Some(made) = made_alone(make, needed) else { return };
            if let Some(shared) = weak.upgrade() {
                match made {
                    Ok(made) => {
                        let next = stage_of(&shared.verdict, made);
                        let serves = matches!(next, CompileStage::Serving(..));
                        *shared.stage() = next;
                        if serves {
                            *shared.held() = None;
                        }
                    }
                    Err(error) => shared.give_up(&error),
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("prepare-engine".to_owned()).spawn(work) {
            self.give_up(&error.to_string());
        }
    }

    fn give_up(&self, why: &str) {
        let before = std::mem::replace(&mut *self.stage(), CompileStage::GivenUp);
        if !matches!(before, CompileStage::GivenUp) {
            counts::fallback();
            tracing::warn!(partition = %self.name, "the engine is given up, others serve: {why}");
        }
    }

    /// Runs both and compares.
    fn prove(
        &self,
        made: &Arc<dyn Executable>,
        run: PartitionRun<'_>,
        magnitudes: &InputMagnitudes,
    ) -> Result<PartitionResult, RuntimeError> {
        let there = self.held().clone();
        let fallback = there.map_or_else(|| self.standby.get(), Ok)?;
        let expected = fallback.submit(run.inputs.clone().into()).outputs()?;
        let found = match made.submit(run).wait() {
            Ok(found) => found,
            // The first run may be the one that nobody can do, or may come to rest.
            Err(error) => {
                *self.held() = Some(fallback);
                self.blame(&error);
                self.count_other(&error);
                return Ok(expected.into());
            }
        };
        match self.judge(&found.outputs, &expected) {
            // A warm-up with zeros proves nothing.
            Ok(()) if !magnitudes.tell() => {
                *self.held() = Some(fallback);
                Ok(found)
            }
            Ok(()) => {
                self.compared().add(magnitudes);
                self.switch(made);
                self.note(None);
                Ok(found)
            }
            Err(text) => {
                *self.held() = Some(fallback);
                // The same of inputs that FP16 does not hold.
                if magnitudes.are_held() {
                    self.refute(&text);
                }
                Ok(expected.into())
            }
        }
    }

    /// Compares results, and counts that.
    fn judge(&self, found: &[Datum], expected: &[Datum]) -> Result<(), String> {
        counts::comparison();
        let lost = none_lost(found, expected);
        if lost.is_err() {
            counts::nonfinite();
        }
        lost.and_then(|()| agree(found, expected, self.limit))
    }

    /// Gives an engine up whose results are wrong, for later loads too.
    fn refute(&self, text: &str) {
        let text = match &*self.stage() {
            CompileStage::Serving(..) => format!("a run is wrong: {text}"),
            _ => format!("the first run is wrong: {text}"),
        };
        self.give_up(&text);
        self.verdict.keep(&Err(text));
    }

    /// Takes note of a run that failed: the first one ends an engine whose failure it is.
    fn blame(&self, error: &RuntimeError) {
        if !blames(error) {
            return;
        }
        let serves = matches!(*self.stage(), CompileStage::Serving(..));
        match serves {
            true => self.note(Some(error)),
            false => self.give_up(&format!("the first run fails: {error}")),
        }
    }

    /// Results of an engine that serves, or the others' where it has lost numbers, which it is given up for. A sample is
    /// compared behind the answer.
    fn checked(
        self: &Arc<Self>,
        found: Vec<Datum>,
        inputs: Vec<Datum>,
        magnitudes: &InputMagnitudes,
    ) -> Result<Vec<Datum>, RuntimeError> {
        if all_finite(&found) {
            if self.compared().is_sampled() {
                let own = Arc::clone(self);
                let copy = found.clone();
                let held = magnitudes.are_held();
                compare_later(move || own.sample(&copy, inputs, held));
            }
            return Ok(found);
        }
        let expected = self.fallback()?.submit(inputs.into()).outputs()?;
        let Err(text) = none_lost(&found, &expected) else { return Ok(found) };
        counts::nonfinite();
        if magnitudes.are_held() {
            self.give_up(&text);
        }
        Ok(expected)
    }

    /// Compares results that were given already.
    fn sample(&self, found: &[Datum], inputs: Vec<Datum>, held: bool) {
        let there = self.held().clone();
        let fallback = there.map_or_else(|| self.standby.get(), Ok);
        let expected = fallback.and_then(|other| other.submit(inputs.into()).outputs());
        match expected.map(|expected| self.judge(found, &expected)) {
            Ok(Err(text)) if held => self.refute(&text),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(partition = %self.name, "results are not compared: {error}");
            }
        }
    }

    /// Lets the engine serve, and what has served until now go.
    fn switch(&self, made: &Arc<dyn Executable>) {
        let mut stage = self.stage();
        if matches!(*stage, CompileStage::Made(_)) {
            *stage = CompileStage::Serving(Arc::clone(made), 0);
            drop(stage);
            self.verdict.keep(&Ok(()));
            // Runs under way have it until they end.
            *self.held() = None;
            tracing::info!(partition = %self.name, "the engine serves");
        }
    }

    /// Counts a run that others answer, and gives up an engine that loses many: each of their answers is rounded in
    /// another way than the engine's.
    fn count_other(&self, error: &RuntimeError) {
        if matches!(error, RuntimeError::Input(_)) {
            return;
        }
        counts::fallback();
        if matches!(error, RuntimeError::Lost { .. }) && self.losses().lose() {
            self.give_up(&format!("it loses runs again and again: {error}"));
        }
    }

    fn losses(&self) -> MutexGuard<'_, LossRate> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a run that failed; one that did not sets the count back.
    fn note(&self, failed: Option<&RuntimeError>) {
        let over = {
            let mut stage = self.stage();
            let CompileStage::Serving(_, failures) = &mut *stage else { return };
            *failures = if failed.is_some() { *failures + 1 } else { 0 };
            *failures >= MAX_FAILURES
        };
        if let Some(error) = failed.filter(|_| over) {
            self.give_up(&format!("{MAX_FAILURES} runs fail one after the other: {error}"));
        }
    }
}

/// Returns whether a failure is the engine's: not one of inputs that it does not take, and not one that a
/// later run need not have.
fn blames(error: &RuntimeError) -> bool {
    !matches!(error, RuntimeError::Input(_) | RuntimeError::Lost { .. })
}

impl Executable for DeferredExecutable {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let made = match &*self.shared.stage() {
            CompileStage::Making | CompileStage::GivenUp => None,
            CompileStage::Made(made) => Some((Arc::clone(made), true)),
            CompileStage::Serving(made, _) => Some((Arc::clone(made), false)),
        };
        let Some((made, unproven)) = made else {
            return match self.shared.fallback() {
                Ok(fallback) => fallback.submit(run),
                Err(error) => RunFence::failed(error),
            };
        };
        let shared = Arc::clone(&self.shared);
        let magnitudes = InputMagnitudes::of(&run.inputs);
        // All outputs are compared.
        let run = PartitionRun { wanted: None, ..run };
        if unproven || !shared.compared().cover(&magnitudes) {
            return RunFence::ready(shared.prove(&made, run, &magnitudes));
        }
        let inputs = run.inputs.clone();
        let fence = made.submit(run);
        RunFence::pending(move || match fence.wait() {
            Ok(PartitionResult { outputs, rows }) => {
                shared.note(None);
                shared.losses().keep();
                let outputs = shared.checked(outputs, inputs, &magnitudes)?;
                Ok(PartitionResult { outputs, rows })
            }
            Err(error) => {
                if blames(&error) {
                    shared.note(Some(&error));
                }
                shared.count_other(&error);
                tracing::debug!(partition = %shared.name, "a run goes to others: {error}");
                shared.fallback()?.submit(inputs.into()).wait()
            }
        })
    }

    fn report(&self) -> PartitionReport {
        // The weights that the engine has lie elsewhere.
        let held = self.shared.held().clone();
        let held = held.map(|held| held.report()).unwrap_or_default();
        let placed = self.made().map_or_else(Vec::new, |made| made.report().placed);
        PartitionReport { placed, ..held }
    }

    fn traits(&self) -> ExecutableTraits<'_> {
        let serving = self.made().or_else(|| self.shared.held().clone());
        let times_steps = serving.is_some_and(|serving| serving.traits().times_steps);
        ExecutableTraits { times_steps, tuning: Some(self), buffers: None }
    }
}

impl TunableKernels for DeferredExecutable {
    fn problems(
        &self,
        inputs: &[Datum],
        pause: &dyn Fn(),
    ) -> Result<Vec<TuningProblem>, RuntimeError> {
        let held = self.shared.held().clone();
        match held.as_ref().and_then(|held| held.traits().tuning) {
            Some(tuning) => tuning.problems(inputs, pause),
            None => Ok(Vec::new()),
        }
    }

    /// A package takes long to compile.
    fn recompiles(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "background_tests.rs"]
mod tests;

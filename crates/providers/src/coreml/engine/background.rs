//! An executable that is made while another one serves, and takes over when it has proved right.
//!
//! Runs switch from one to the other between requests: nothing of a run stays in either, as the states of a
//! sequence are inputs and outputs of a partition.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use galatea_graph::{Datum, converted};
use galatea_runtime::tune::Problem;
use galatea_runtime::{Executable, Fence, MemoryReport, PlacedOperator, PlanReport, RuntimeError};
use galatea_tensor::{DataType, Tensor};

use super::counts;

/// So many runs may fail one after the other before the engine is given up.
const MOST_FAILURES: usize = 3;

/// The most that FP16 may be off: the length of the difference, of that of the whole. A model of a hundred
/// layers loses about a hundredth; what an engine gets wrong is off by more than all of it.
const MOST_DIFFERENCE: f64 = 0.05;

/// The largest number of FP16: beyond it, results are infinite there.
const LARGEST: f64 = 65_504.0;

/// An executable that is served by another one until it is ready.
pub struct Deferred {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    fallback: Box<dyn Executable>,
    stage: Mutex<Stage>,
}

enum Stage {
    /// It is being made.
    Making,
    /// It is there and has yet to prove right.
    Made(Arc<dyn Executable>),
    /// It serves; so many runs have failed since the last one that did not.
    Serving(Arc<dyn Executable>, usize),
    /// The other one serves for good.
    GivenUp,
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// What makes an executable.
pub type Make = Box<dyn FnOnce() -> Result<Box<dyn Executable>, String> + Send>;

impl Deferred {
    /// Starts to make an executable; `fallback` serves until then, and for good where it fails or gives
    /// something else. `name` is for messages.
    #[must_use]
    pub fn start(name: String, make: Make, fallback: Box<dyn Executable>) -> Self {
        let stage = Mutex::new(Stage::Making);
        let shared = Arc::new(Shared { name, fallback, stage });
        let weak = Arc::downgrade(&shared);
        let work = move || {
            /// Compilers take all cores and much memory: one at a time.
            static ONE: Mutex<()> = Mutex::new(());
            let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody needs it any more.
            if weak.strong_count() == 0 {
                return;
            }
            let made = make();
            drop(one);
            if let Some(shared) = weak.upgrade() {
                match made {
                    Ok(made) => *shared.stage() = Stage::Made(Arc::from(made)),
                    Err(error) => shared.give_up(&error),
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("prepare-engine".to_owned()).spawn(work) {
            shared.give_up(&error.to_string());
        }
        Self { shared }
    }

    /// The one that was made, where it is there.
    fn made(&self) -> Option<Arc<dyn Executable>> {
        match &*self.shared.stage() {
            Stage::Made(made) | Stage::Serving(made, _) => Some(Arc::clone(made)),
            Stage::Making | Stage::GivenUp => None,
        }
    }
}

impl Shared {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, why: &str) {
        let before = std::mem::replace(&mut *self.stage(), Stage::GivenUp);
        if !matches!(before, Stage::GivenUp) {
            counts::fallback();
            tracing::warn!(partition = %self.name, "the engine is given up, others serve: {why}");
        }
    }

    /// Runs both and compares.
    fn prove(
        &self,
        made: &Arc<dyn Executable>,
        inputs: Vec<Datum>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let expected = self.fallback.submit(inputs.clone()).wait()?;
        let found = match made.submit(inputs).wait() {
            Ok(found) => found,
            // The first run may be the one that nobody can do, or may come to rest.
            Err(error) if !blames(&error) => return Ok(expected),
            Err(error) => {
                self.give_up(&format!("the first run fails: {error}"));
                return Ok(expected);
            }
        };
        match agree(&found, &expected) {
            Ok(()) => {
                let mut stage = self.stage();
                if matches!(*stage, Stage::Made(_)) {
                    *stage = Stage::Serving(Arc::clone(made), 0);
                    tracing::info!(partition = %self.name, "the engine serves");
                }
                Ok(found)
            }
            Err(text) => {
                self.give_up(&format!("the first run is wrong: {text}"));
                Ok(expected)
            }
        }
    }

    /// Counts a run that failed; one that did not sets the count back.
    fn note(&self, failed: Option<&RuntimeError>) {
        let over = {
            let mut stage = self.stage();
            let Stage::Serving(_, failures) = &mut *stage else { return };
            *failures = if failed.is_some() { *failures + 1 } else { 0 };
            *failures >= MOST_FAILURES
        };
        if let Some(error) = failed.filter(|_| over) {
            self.give_up(&format!("{MOST_FAILURES} runs fail one after the other: {error}"));
        }
    }
}

/// Whether a failure is the engine's: not one of inputs that it does not take, and not one that a later run
/// need not have.
fn blames(error: &RuntimeError) -> bool {
    !matches!(error, RuntimeError::Input(_) | RuntimeError::Lost { .. })
}

/// Whether results are what FP16 makes of the expected ones.
fn agree(found: &[Datum], expected: &[Datum]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} outputs, expected {}", found.len(), expected.len()));
    }
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (Datum::Tensor(found), Datum::Tensor(expected)) = (found, expected) else {
            return Err(format!("output {at} is no tensor"));
        };
        tensors_agree(found, expected).map_err(|text| format!("output {at}: {text}"))?;
    }
    Ok(())
}

fn tensors_agree(found: &Tensor, expected: &Tensor) -> Result<(), String> {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        let shown = |tensor: &Tensor| {
            format!("{} of shape {:?}", tensor.dtype().wire_name(), tensor.shape())
        };
        return Err(format!("{}, expected {}", shown(found), shown(expected)));
    }
    let numbers = |tensor: &Tensor| -> Result<Vec<f64>, String> {
        let tensor = converted(tensor, DataType::Fp64).map_err(|error| error.to_string())?;
        tensor.to_vec().map_err(|error| error.to_string())
    };
    let (found, wanted) = (numbers(found)?, numbers(expected)?);
    if !expected.dtype().is_float() {
        // Where two scores are nearly the same, FP16 may place the other one first.
        let other = found.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        return match other <= 1 + wanted.len() / 50 {
            true => Ok(()),
            false => Err(format!("{other} of {} integers are others", wanted.len())),
        };
    }
    let (mut distance, mut length) = (0.0, 0.0);
    for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if wanted.is_nan() || wanted.abs() > LARGEST {
            continue;
        }
        if !found.is_finite() {
            return Err(format!("element {at} is {found}, expected {wanted}"));
        }
        distance += (found - wanted) * (found - wanted);
        length += wanted * wanted;
    }
    // What is as small as FP16's steps near zero is nothing.
    #[allow(clippy::cast_precision_loss, reason = "a count of elements")]
    let nothing = wanted.len() as f64 * 1e-6;
    match distance <= MOST_DIFFERENCE * MOST_DIFFERENCE * length + nothing {
        true => Ok(()),
        false => {
            let share = (distance / length).sqrt();
            Err(format!(
                "it is off by {share:.3} of its length, at most {MOST_DIFFERENCE} is allowed"
            ))
        }
    }
}

impl Executable for Deferred {
    fn submit(&self, inputs: Vec<Datum>) -> Fence {
        let made = match &*self.shared.stage() {
            Stage::Making | Stage::GivenUp => None,
            Stage::Made(made) => Some((Arc::clone(made), true)),
            Stage::Serving(made, _) => Some((Arc::clone(made), false)),
        };
        let Some((made, unproven)) = made else { return self.shared.fallback.submit(inputs) };
        let shared = Arc::clone(&self.shared);
        if unproven {
            return Fence::ready(shared.prove(&made, inputs));
        }
        let fence = made.submit(inputs.clone());
        Fence::pending(move || match fence.wait() {
            Ok(found) => {
                shared.note(None);
                Ok(found)
            }
            Err(error) => {
                if blames(&error) {
                    shared.note(Some(&error));
                }
                tracing::debug!(partition = %shared.name, "a run goes to others: {error}");
                shared.fallback.submit(inputs).wait()
            }
        })
    }

    fn memory(&self) -> MemoryReport {
        self.shared.fallback.memory()
    }

    fn problems(&self, inputs: &[Datum]) -> Result<Vec<Problem>, RuntimeError> {
        self.shared.fallback.problems(inputs)
    }

    fn plans(&self) -> PlanReport {
        self.shared.fallback.plans()
    }

    fn placed(&self) -> Vec<PlacedOperator> {
        self.made().map_or_else(Vec::new, |made| made.placed())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Gives a number, or fails.
    struct Gives(Result<f32, RuntimeError>);

    impl Executable for Gives {
        fn submit(&self, _inputs: Vec<Datum>) -> Fence {
            Fence::ready(
                self.0.clone().map(|value| vec![Datum::Tensor(Tensor::vector(vec![value]))]),
            )
        }

        fn memory(&self) -> MemoryReport {
            MemoryReport::default()
        }
    }

    fn run(deferred: &Deferred) -> f32 {
        let mut outputs = deferred.submit(Vec::new()).wait().unwrap();
        outputs.remove(0).into_tensor().unwrap().item().unwrap()
    }

    /// An executable over one that gives 100, when the other one is there.
    fn over(made: Result<Gives, String>) -> Deferred {
        let make: Make = Box::new(move || made.map(|made| Box::new(made) as Box<dyn Executable>));
        let deferred = Deferred::start("test".to_owned(), make, Box::new(Gives(Ok(100.0))));
        while matches!(*deferred.shared.stage(), Stage::Making) {
            thread::yield_now();
        }
        deferred
    }

    #[test]
    fn the_fallback_serves_until_the_other_is_there() {
        let (sender, receiver) = mpsc::channel::<()>();
        let make: Make = Box::new(move || {
            receiver.recv().unwrap();
            let made: Box<dyn Executable> = Box::new(Gives(Ok(101.0)));
            Ok(made)
        });
        let deferred = Deferred::start("test".to_owned(), make, Box::new(Gives(Ok(100.0))));
        assert_eq!(run(&deferred), 100.0);
        sender.send(()).unwrap();
        while run(&deferred) != 101.0 {
            thread::yield_now();
        }
        assert!(matches!(*deferred.shared.stage(), Stage::Serving(_, 0)));
    }

    #[test]
    fn what_cannot_be_made_or_is_wrong_never_serves() {
        for made in [Err("no".to_owned()), Ok(Gives(Ok(140.0))), Ok(Gives(Ok(f32::NAN)))] {
            let deferred = over(made);
            assert_eq!([run(&deferred), run(&deferred)], [100.0, 100.0]);
            assert!(matches!(*deferred.shared.stage(), Stage::GivenUp));
        }
    }

    #[test]
    fn a_first_run_that_fails_gives_the_engine_up_unless_the_run_is_to_blame() {
        let deferred = over(Ok(Gives(Err(RuntimeError::provider("coreml", "broken")))));
        assert_eq!(run(&deferred), 100.0);
        assert!(matches!(*deferred.shared.stage(), Stage::GivenUp));
        let deferred = over(Ok(Gives(Err(RuntimeError::Input("too large".to_owned())))));
        assert_eq!(run(&deferred), 100.0);
        assert!(matches!(*deferred.shared.stage(), Stage::Made(_)));
    }

    #[test]
    fn runs_that_fail_go_to_the_fallback_and_too_many_of_them_end_it() {
        let deferred = over(Ok(Gives(Err(RuntimeError::provider("coreml", "broken")))));
        let made = deferred.made().unwrap();
        *deferred.shared.stage() = Stage::Serving(made, 0);
        for _ in 1..MOST_FAILURES {
            assert_eq!(run(&deferred), 100.0);
            assert!(matches!(*deferred.shared.stage(), Stage::Serving(..)));
        }
        assert_eq!(run(&deferred), 100.0);
        assert!(matches!(*deferred.shared.stage(), Stage::GivenUp));
    }

    #[test]
    fn results_agree_within_what_half_precision_gives() {
        let agree = |found: &[f32], expected: &[f32]| {
            tensors_agree(&Tensor::vector(found.to_vec()), &Tensor::vector(expected.to_vec()))
        };
        assert!(agree(&[1.01, -2.02, 0.0], &[1.0, -2.0, 1e-5]).is_ok());
        assert!(agree(&[f32::INFINITY, 1.0], &[1e9, 1.0]).is_ok());
        assert!(agree(&[f32::INFINITY, 1.0], &[9.0, 1.0]).unwrap_err().contains("element 0"));
        assert!(agree(&[0.0, 0.0], &[1.0, 1.0]).unwrap_err().contains("off by 1.000"));
        assert!(agree(&[1.0], &[1.0, 1.0]).unwrap_err().contains("shape [1]"));
        let integers = |found: i64| {
            tensors_agree(&Tensor::vector(vec![found; 100]), &Tensor::vector(vec![1_i64; 100]))
        };
        assert!(integers(1).is_ok() && integers(2).unwrap_err().contains("100 of 100"));
    }
}

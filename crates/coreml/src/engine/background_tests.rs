//! Partitions whose engine comes late, fails or is wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use galatea_tensor::Tensor;

use super::super::agree::MAX_DIFFERENCE;
use super::super::agree::tensors_agree;
use super::*;

/// Gives a number, or fails.
struct Gives(Result<f32, RuntimeError>);

impl Executable for Gives {
    fn submit(&self, _run: PartitionRun<'_>) -> RunFence {
        RunFence::ready(
            self.0.clone().map(|value| vec![Datum::Tensor(Tensor::vector(vec![value]))]),
        )
    }
}

fn run(deferred: &DeferredExecutable) -> f32 {
    let mut outputs = deferred.submit(PartitionRun::default()).outputs().unwrap();
    outputs.remove(0).into_tensor().unwrap().item().unwrap()
}

/// Gives 100; how often it was made is counted.
fn hundred() -> (Arc<StandbyExecutable>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let standby = StandbyExecutable::new(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Gives(Ok(100.0))) as Box<dyn Executable>)
    }));
    (Arc::new(standby), made)
}

/// That on something that nothing is known of.
fn verdict() -> ValidationEntry {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    ValidationEntry::of(&galatea_graph::Graph::new("test"), &number.to_string(), None)
}

fn start(
    made: Result<Gives, String>,
    standby: Arc<StandbyExecutable>,
    mode: CompileMode,
) -> Result<DeferredExecutable, RuntimeError> {
    let make: ExecutableMaker =
        Box::new(move || made.map(|made| Box::new(made) as Box<dyn Executable>));
    DeferredExecutable::start("test".to_owned(), make, standby, verdict(), mode, MAX_DIFFERENCE)
}

/// An executable over one that gives 100, when the other one is there.
fn over(made: Result<Gives, String>) -> DeferredExecutable {
    let deferred = start(made, hundred().0, CompileMode::Background).unwrap();
    while matches!(*deferred.shared.stage(), CompileStage::Making) {
        thread::yield_now();
    }
    deferred
}

#[test]
fn the_fallback_serves_until_the_other_is_there_and_is_given_back() {
    let (sender, receiver) = mpsc::channel::<()>();
    let make: ExecutableMaker = Box::new(move || {
        receiver.recv().unwrap();
        let made: Box<dyn Executable> = Box::new(Gives(Ok(101.0)));
        Ok(made)
    });
    let (standby, made) = hundred();
    let mode = CompileMode::Background;
    let deferred = DeferredExecutable::start(
        "test".to_owned(),
        make,
        Arc::clone(&standby),
        verdict(),
        mode,
        MAX_DIFFERENCE,
    )
    .unwrap();
    assert_eq!(run(&deferred), 100.0);
    let weak = Arc::downgrade(&standby.get().unwrap());
    assert_eq!((made.load(Ordering::Relaxed), weak.strong_count()), (1, 1));
    sender.send(()).unwrap();
    while run(&deferred) != 101.0 {
        thread::yield_now();
    }
    assert!(matches!(*deferred.shared.stage(), CompileStage::Serving(_, 0)));
    assert_eq!((made.load(Ordering::Relaxed), weak.strong_count()), (1, 0));
}

#[test]
fn who_waits_has_the_engine_from_the_first_run_on() {
    let (standby, made) = hundred();
    let deferred = start(Ok(Gives(Ok(101.0))), standby, CompileMode::Wait).unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 0, "nobody needs it yet");
    assert_eq!([run(&deferred), run(&deferred)], [101.0, 101.0]);
    assert_eq!(made.load(Ordering::Relaxed), 1, "the first result is compared");
    assert!(deferred.shared.held().is_none());
    let error = start(Err("no".to_owned()), hundred().0, CompileMode::Wait).unwrap_err();
    assert!(error.to_string().contains("no"), "{error}");
    // One that is wrong goes, and the others stay.
    let (standby, made) = hundred();
    let deferred = start(Ok(Gives(Ok(140.0))), standby, CompileMode::Wait).unwrap();
    assert_eq!([run(&deferred), run(&deferred)], [100.0, 100.0]);
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

#[test]
fn where_nothing_else_can_serve_nothing_is_made() {
    let none = || StandbyExecutable::new(Box::new(|| Err(RuntimeError::provider("cpu", "none"))));
    let made = start(Ok(Gives(Ok(1.0))), Arc::new(none()), CompileMode::Background);
    assert!(made.unwrap_err().to_string().contains("none"));
}

#[test]
fn what_cannot_be_made_or_is_wrong_never_serves() {
    for made in [Err("no".to_owned()), Ok(Gives(Ok(140.0))), Ok(Gives(Ok(f32::NAN)))] {
        let deferred = over(made);
        assert_eq!([run(&deferred), run(&deferred)], [100.0, 100.0]);
        assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
    }
}

#[test]
fn a_first_run_that_fails_gives_the_engine_up_unless_the_run_is_to_blame() {
    let deferred = over(Ok(Gives(Err(RuntimeError::provider("coreml", "broken")))));
    assert_eq!(run(&deferred), 100.0);
    assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
    let deferred = over(Ok(Gives(Err(RuntimeError::Input("too large".to_owned())))));
    assert_eq!(run(&deferred), 100.0);
    assert!(matches!(*deferred.shared.stage(), CompileStage::Made(_)));
}

#[test]
fn runs_that_fail_go_to_the_fallback_and_too_many_of_them_end_it() {
    let deferred = over(Ok(Gives(Err(RuntimeError::provider("coreml", "broken")))));
    let made = deferred.made().unwrap();
    *deferred.shared.stage() = CompileStage::Serving(made, 0);
    *deferred.shared.held() = None;
    for _ in 1..MAX_FAILURES {
        assert_eq!(run(&deferred), 100.0);
        // Who was needed once more stays.
        assert!(deferred.shared.held().is_some());
        assert!(matches!(*deferred.shared.stage(), CompileStage::Serving(..)));
    }
    assert_eq!(run(&deferred), 100.0);
    assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
}

#[test]
fn results_agree_within_what_half_precision_gives() {
    let agree = |found: &[f32], expected: &[f32]| {
        let found = Tensor::vector(found.to_vec());
        let expected = Tensor::vector(expected.to_vec());
        tensors_agree(&found, &expected, MAX_DIFFERENCE)
    };
    assert!(agree(&[1.01, -2.02, 0.0], &[1.0, -2.0, 1e-5]).is_ok());
    assert!(agree(&[f32::INFINITY, 1.0], &[1e9, 1.0]).is_ok());
    assert!(agree(&[f32::INFINITY, 1.0], &[9.0, 1.0]).unwrap_err().contains("element 0"));
    assert!(agree(&[0.0, 0.0], &[1.0, 1.0]).unwrap_err().contains("off by 1.000"));
    assert!(agree(&[1.0], &[1.0, 1.0]).unwrap_err().contains("shape [1]"));
    let integers = |found: i64| {
        let found = vec![found; 100];
        let expected = vec![1_i64; 100];
        tensors_agree(&Tensor::vector(found), &Tensor::vector(expected), MAX_DIFFERENCE)
    };
    assert!(integers(1).is_ok() && integers(2).unwrap_err().contains("100 of 100"));
}

#[test]
fn what_was_right_or_wrong_before_is_not_compared_again() {
    let verdict = verdict();
    let again = |gives: f32, mode: CompileMode| {
        let (standby, made) = hundred();
        let make: ExecutableMaker =
            Box::new(move || Ok(Box::new(Gives(Ok(gives))) as Box<dyn Executable>));
        let verdict = verdict.clone();
        (
            DeferredExecutable::start(
                "test".to_owned(),
                make,
                standby,
                verdict,
                mode,
                MAX_DIFFERENCE,
            )
            .unwrap(),
            made,
        )
    };
    let (deferred, made) = again(101.0, CompileMode::Wait);
    assert_eq!((run(&deferred), made.load(Ordering::Relaxed)), (101.0, 1));
    // The second time nobody else computes it.
    let (deferred, made) = again(101.0, CompileMode::Wait);
    assert_eq!((run(&deferred), made.load(Ordering::Relaxed)), (101.0, 0));
    let (deferred, made) = again(101.0, CompileMode::Background);
    while run(&deferred) != 101.0 {
        thread::yield_now();
    }
    assert!(deferred.shared.held().is_none());
    assert_eq!(made.load(Ordering::Relaxed), 1);
    let wrong = self::verdict();
    let make: ExecutableMaker = Box::new(|| Ok(Box::new(Gives(Ok(140.0))) as Box<dyn Executable>));
    let mode = CompileMode::Wait;
    let deferred = DeferredExecutable::start(
        "test".to_owned(),
        make,
        hundred().0,
        wrong.clone(),
        mode,
        MAX_DIFFERENCE,
    )
    .unwrap();
    assert_eq!(run(&deferred), 100.0);
    assert!(wrong.known().unwrap().unwrap_err().contains("the first run is wrong"));
}

/// Gives one number per run, the last one again and again.
struct GivesInTurn(Mutex<Vec<f32>>);

impl Executable for GivesInTurn {
    fn submit(&self, _run: PartitionRun<'_>) -> RunFence {
        let mut left = self.0.lock().unwrap();
        let value = if left.len() > 1 { left.remove(0) } else { left[0] };
        RunFence::ready(Ok(vec![Datum::Tensor(Tensor::vector(vec![value]))]))
    }
}

/// An engine that gives these one after the other, over one that gives 100.
fn in_turn(all: &[f32]) -> DeferredExecutable {
    let gives = GivesInTurn(Mutex::new(all.to_vec()));
    let make: ExecutableMaker = Box::new(move || Ok(Box::new(gives) as Box<dyn Executable>));
    DeferredExecutable::start(
        "test".to_owned(),
        make,
        hundred().0,
        verdict(),
        CompileMode::Wait,
        MAX_DIFFERENCE,
    )
    .unwrap()
}

fn run_on(deferred: &DeferredExecutable, input: f32) -> f32 {
    let inputs = vec![Datum::Tensor(Tensor::vector(vec![input]))];
    deferred
        .submit(inputs.into())
        .outputs()
        .unwrap()
        .remove(0)
        .into_tensor()
        .unwrap()
        .item()
        .unwrap()
}

#[test]
fn an_engine_that_loses_numbers_while_it_serves_is_given_up() {
    for lost in [f32::NAN, f32::INFINITY] {
        let deferred = in_turn(&[101.0, 101.0, lost, 101.0]);
        let before = counts::counts();
        assert_eq!([1, 2, 3, 4].map(|_| run_on(&deferred, 1.0)), [101.0, 101.0, 100.0, 100.0]);
        assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
        let after = counts::counts();
        assert!(after.nonfinite > before.nonfinite && after.fallbacks > before.fallbacks);
    }
    // What FP16 cannot hold to begin with is others' work, but no fault of the engine.
    let deferred = in_turn(&[101.0, f32::NAN, 101.0]);
    assert_eq!([1.0, 1e6, 1.0].map(|input| run_on(&deferred, input)), [101.0, 100.0, 101.0]);
    let deferred = in_turn(&[f32::NAN, 101.0]);
    assert_eq!([1e6, 1.0].map(|input| run_on(&deferred, input)), [100.0, 101.0]);
}

#[test]
fn zeros_prove_nothing() {
    let deferred = in_turn(&[101.0, 140.0]);
    assert_eq!(run_on(&deferred, 0.0), 101.0);
    assert!(matches!(*deferred.shared.stage(), CompileStage::Made(_)));
    assert_eq!(run_on(&deferred, 1.0), 100.0);
    assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
}

#[test]
fn an_engine_is_compared_on_inputs_that_reach_farther() {
    let deferred = in_turn(&[101.0, 101.0, 101.0, 140.0]);
    assert_eq!([1.0, 1.5, 20.0].map(|input| run_on(&deferred, input)), [101.0; 3]);
    assert!(deferred.shared.held().is_none());
    assert_eq!([300.0, 1.0].map(|input| run_on(&deferred, input)), [100.0, 100.0]);
    assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
    let wrong = deferred.shared.verdict.known().unwrap().unwrap_err();
    assert!(wrong.contains("a run is wrong"), "{wrong}");
}

#[test]
fn a_sample_of_an_engines_runs_is_compared_behind_the_answers() {
    let deferred = in_turn(&[101.0, 140.0]);
    let before = counts::counts();
    assert_eq!([run_on(&deferred, 1.0), run_on(&deferred, 1.0)], [101.0, 140.0]);
    let begun = std::time::Instant::now();
    while run_on(&deferred, 1.0) == 140.0 {
        assert!(begun.elapsed().as_secs() < 60, "no run is compared");
        thread::yield_now();
    }
    assert!(matches!(*deferred.shared.stage(), CompileStage::GivenUp));
    let after = counts::counts();
    assert!(after.comparisons > before.comparisons && after.fallbacks > before.fallbacks);
}

#[test]
fn runs_that_are_lost_with_a_worker_are_counted_and_too_many_of_them_end_it() {
    let lost = || RuntimeError::Lost {
        provider: "coreml".to_owned(),
        message: "killed".to_owned(),
        hung: false,
    };
    let deferred = over(Ok(Gives(Err(lost()))));
    let made = deferred.made().unwrap();
    *deferred.shared.stage() = CompileStage::Serving(made, 0);
    let before = counts::counts().fallbacks;
    let mut runs = 0;
    while !matches!(*deferred.shared.stage(), CompileStage::GivenUp) {
        assert_eq!(run(&deferred), 100.0);
        runs += 1;
        assert!(runs < 20, "an engine that loses every run serves for ever");
    }
    assert!(runs > MAX_FAILURES, "one worker that is killed is no fault of the engine");
    assert!(counts::counts().fallbacks > before + u64::try_from(runs).unwrap());
}

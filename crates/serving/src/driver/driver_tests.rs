use std::sync::mpsc::channel;

use galatea_runtime::{IntervalKind, IntervalNumber, IntervalRecorder, IntervalSource};

use super::*;
use crate::backend::{BatchPayload, ModelInstance, ShutdownSignal};
use crate::batch;
use crate::config::ModelConfig;
use crate::payload::ContextObservers;
use crate::request::SinkAnswer;
use crate::schedule::DefaultScheduler;

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers at once, without outputs, on any thread.
struct Quick;

impl ModelInstance for Quick {
    fn execute(&mut self, payload: BatchPayload) {
        batch::execute(payload, |_| Ok(Vec::new()));
    }
    fn time_depends_on_sizes_only(&self) -> bool {
        true
    }
}

fn handle(driver: &LaneDriver, instances: usize) -> Arc<DriverHandle> {
    handle_of(driver, std::iter::repeat_with(|| Box::new(Quick) as _).take(instances).collect())
}

fn handle_of(driver: &LaneDriver, instances: Vec<Box<dyn ModelInstance>>) -> Arc<DriverHandle> {
    recorded_handle(driver, instances, IntervalSource::default())
}

fn recorded_handle(
    driver: &LaneDriver,
    instances: Vec<Box<dyn ModelInstance>>,
    intervals: IntervalSource,
) -> Arc<DriverHandle> {
    let observers = ContextObservers { intervals, ..ContextObservers::default() };
    let context = ExecutionContext::observed("m", 1, Arc::new(ModelConfig::default()), observers);
    let seat = |(at, instance)| InstanceSeat {
        name: format!("m_{at}"),
        instance: SeatedInstance::new(instance),
        limits: None,
        device: ResourceDevice::Host,
        leaves: false,
    };
    let instances: Vec<InstanceSeat> = instances.into_iter().enumerate().map(seat).collect();
    let scheduler = Box::<DefaultScheduler>::default();
    Arc::new(driver.add(&context, scheduler, AdmissionRule::All, false, None, instances).unwrap())
}

/// Recorder that lists what it hears.
#[derive(Default)]
struct ListedIntervals(Mutex<Vec<String>>);

impl IntervalRecorder for ListedIntervals {
    fn is_recording(&self) -> bool {
        true
    }

    fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber {
        let mut told = self.0.lock().unwrap();
        told.push(format!("{kind:?} {what}"));
        told.len() as u64
    }

    fn end(&self, kind: IntervalKind, number: IntervalNumber) {
        self.0.lock().unwrap().push(format!("{kind:?} of {number} ends"));
    }
}

#[test]
fn requests_and_batches_are_recorded_from_their_begin_to_their_end() {
    let listed = Arc::new(ListedIntervals::default());
    let source = IntervalSource(Some(Arc::clone(&listed) as Arc<dyn IntervalRecorder>));
    let driver = LaneDriver::start(None).unwrap();
    let handle = recorded_handle(&driver, vec![Box::new(Quick)], source);
    handle.enqueue(InferenceRequest::default(), ticket(), Box::new(|_| {})).unwrap();
    // A request that is refused has an end too.
    handle.remove();
    let refused = handle.enqueue(InferenceRequest::default(), ticket(), Box::new(|_| {}));
    assert!(refused.is_err());
    let told = listed.0.lock().unwrap().clone();
    assert_eq!(told.get(..2).unwrap(), ["Request m", "Batch m"]);
    let mut ends: Vec<&str> =
        told.iter().map(String::as_str).filter(|one| one.ends_with("ends")).collect();
    ends.sort_unstable();
    assert_eq!(ends.len() * 2, told.len(), "{told:?}");
    assert!(ends.contains(&"Batch of 2 ends") && ends.contains(&"Request of 1 ends"), "{told:?}");
}

fn ticket() -> ScheduleTicket {
    ScheduleTicket { batch_size: 1, ..ScheduleTicket::default() }
}

/// Whether a request's answer came on this very thread. Then, and only then, the model version was told to drain while
/// the answer was on its way.
fn drained_on_the_way(handle: &Arc<DriverHandle>) -> bool {
    let (to, from) = channel();
    let here = std::thread::current().id();
    let draining = Arc::clone(handle);
    let sink = move |_: SinkAnswer| {
        let inside = std::thread::current().id() == here;
        if inside {
            draining.begin_drain();
        }
        to.send(inside).unwrap();
    };
    handle.enqueue(InferenceRequest::default(), ticket(), Box::new(sink)).unwrap();
    from.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn a_version_that_drains_during_an_execution_on_a_callers_thread_ends() {
    for instances in [1, 3] {
        let driver = LaneDriver::start(None).unwrap();
        let handle = handle(&driver, instances);
        let inside = (0..100_000).any(|_| drained_on_the_way(&handle));
        assert!(inside, "nothing ever ran on this thread");
        let refused = handle.enqueue(InferenceRequest::default(), ticket(), Box::new(|_| {}));
        assert_eq!(refused.unwrap_err().error, crate::schedule::stopping());
        let (to, ended) = channel();
        std::thread::spawn(move || {
            handle.remove();
            to.send(()).unwrap();
        });
        ended.recv_timeout(PATIENCE).expect("the instances end");
    }
}

#[test]
fn every_request_that_a_draining_version_took_is_answered_once() {
    for round in 0..50 {
        let driver = LaneDriver::start(None).unwrap();
        let handle = handle(&driver, 2);
        let answered = Arc::new(AtomicU64::new(0));
        let taken: u64 = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..4)
                .map(|_| {
                    let handle = &handle;
                    let answered = &answered;
                    scope.spawn(move || {
                        let mut taken = 0;
                        for number in 0..400 {
                            let request = InferenceRequest::default();
                            let token = request.cancel.clone();
                            let answered = Arc::clone(answered);
                            let sink = move |answer: SinkAnswer| {
                                assert!(answer.is_final);
                                answered.fetch_add(1, Ordering::Relaxed);
                            };
                            match handle.enqueue(request, ticket(), Box::new(sink)) {
                                Ok(()) => taken += 1,
                                Err(refused) => {
                                    assert_eq!(refused.error, crate::schedule::stopping())
                                }
                            }
                            if number % 7 == round % 7 {
                                token.cancel();
                            }
                        }
                        taken
                    })
                })
                .collect();
            scope.spawn(|| handle.remove());
            senders.into_iter().map(|sender| sender.join().unwrap()).sum()
        });
        assert_eq!(answered.load(Ordering::Relaxed), taken);
        assert_eq!(handle.context.unanswered(), 0);
    }
}

/// Waits in its execution for the end of its lane.
struct Waits(Arc<(Mutex<Option<&'static str>>, std::sync::Condvar)>);

impl ModelInstance for Waits {
    fn execute(&mut self, payload: BatchPayload) {
        let (told, changed) = &*self.0;
        drop(changed.wait_while(told.lock().unwrap(), |told| told.is_none()).unwrap());
        batch::execute(payload, |_| Ok(Vec::new()));
    }
    fn leaving(&self) -> Option<Arc<dyn ShutdownSignal>> {
        Some(Arc::new(Waits(Arc::clone(&self.0))))
    }
}

impl Waits {
    fn tell(&self, what: &'static str) {
        self.0.0.lock().unwrap().get_or_insert(what);
        self.0.1.notify_all();
    }
}

impl ShutdownSignal for Waits {
    fn drain(&self) {
        self.tell("drain");
    }
    fn close(&self) {
        self.tell("close");
    }
}

#[test]
fn an_instance_that_waits_hears_of_the_end() {
    for expected in ["drain", "close"] {
        let driver = LaneDriver::start(None).unwrap();
        let waits = Waits(Arc::default());
        let told = Arc::clone(&waits.0);
        let handle = handle_of(&driver, vec![Box::new(waits)]);
        let (to, answers) = channel();
        let sink = move |answer: SinkAnswer| to.send(answer.is_final).unwrap();
        handle.enqueue(InferenceRequest::default(), ticket(), Box::new(sink)).unwrap();
        match expected {
            "drain" => handle.remove(),
            _ => driver.stop(),
        }
        assert!(answers.recv_timeout(PATIENCE).unwrap());
        assert_eq!(*told.0.lock().unwrap(), Some(expected));
    }
}

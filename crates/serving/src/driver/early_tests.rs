use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use super::*;
use crate::backend::{BatchPayload, ModelInstance};
use crate::config::ModelConfig;
use crate::config::inference::ModelDynamicBatching;
use crate::request::SinkAnswer;
use crate::schedule::{DefaultScheduler, DynamicOptions, DynamicScheduler};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for the next batch at the end of an execution, which takes so long from the word to go on.
struct Ahead {
    takes: Duration,
    begun: Sender<()>,
    go_on: Receiver<()>,
    early: Sender<bool>,
}

impl ModelInstance for Ahead {
    fn execute(&mut self, mut payload: BatchPayload) {
        payload.mark_started();
        payload.complete_with(vec![Ok(Vec::new()).into()]);
    }

    fn pipelines_batches(&self) -> bool {
        true
    }

    fn execute_in_turn(
        &mut self,
        first: BatchPayload,
        next: &mut dyn FnMut() -> Option<BatchPayload>,
    ) {
        self.begun.send(()).unwrap();
        self.go_on.recv_timeout(PATIENCE).unwrap();
        let start = Instant::now();
        while start.elapsed() < self.takes {
            std::hint::spin_loop();
        }
        let second = next();
        self.early.send(second.is_some()).unwrap();
        self.execute(first);
        if let Some(second) = second {
            self.execute(second);
        }
    }
}

struct Rig {
    handle: DriverHandle,
    begun: Receiver<()>,
    go_on: Sender<()>,
    early: Receiver<bool>,
}

fn rig(driver: &LaneDriver, scheduler: Box<dyn RequestScheduler>, takes: Duration) -> Rig {
    let config = ModelConfig { max_batch_size: 4, ..ModelConfig::default() };
    let context = ExecutionContext::new("m", 1, Arc::new(config));
    let ((begin, begun), (go_on, wait)) = (channel(), channel());
    let (tell, early) = channel();
    let instance = Box::new(Ahead { takes, begun: begin, go_on: wait, early: tell });
    let seat = InstanceSeat {
        name: "m_0".to_owned(),
        instance: SeatedInstance::new(instance),
        limits: None,
        device: ResourceDevice::Host,
        leaves: false,
    };
    let handle =
        driver.add(&context, scheduler, AdmissionRule::All, false, None, vec![seat]).unwrap();
    Rig { handle, begun, go_on, early }
}

impl Rig {
    fn ask(&self) -> Receiver<SinkAnswer> {
        let (to, from) = channel();
        let ticket = ScheduleTicket { batch_size: 1, ..ScheduleTicket::default() };
        let sink = Box::new(move |answer| to.send(answer).unwrap());
        self.handle.enqueue(InferenceRequest::default(), ticket, sink).unwrap();
        from
    }

    /// Whether the instance is given a request that comes during an execution before that has ended. All are answered.
    fn comes_early(&self) -> bool {
        let first = self.ask();
        self.begun.recv_timeout(PATIENCE).unwrap();
        let second = self.ask();
        self.go_on.send(()).unwrap();
        let early = self.early.recv_timeout(PATIENCE).unwrap();
        if !early {
            self.begun.recv_timeout(PATIENCE).unwrap();
            self.go_on.send(()).unwrap();
            self.early.recv_timeout(PATIENCE).unwrap();
        }
        assert!([first, second].iter().all(|from| from.recv_timeout(PATIENCE).unwrap().is_final));
        early
    }
}

fn batcher(batching: &ModelDynamicBatching) -> Box<DynamicScheduler> {
    Box::new(DynamicScheduler::new(DynamicOptions::from_config(batching, 4)))
}

#[test]
fn batches_come_early_where_executions_are_short_and_wait_for_company_where_they_are_long() {
    let driver = LaneDriver::start(None).unwrap();
    let short = rig(&driver, batcher(&ModelDynamicBatching::default()), Duration::ZERO);
    assert!((0..10_000).any(|_| short.comes_early()), "none came early");
    let long = rig(&driver, batcher(&ModelDynamicBatching::default()), Duration::from_millis(2));
    assert!(!(0..20).any(|_| long.comes_early()), "one came early");
}

#[test]
fn without_batching_the_next_request_comes_early_however_long_executions_are() {
    let driver = LaneDriver::start(None).unwrap();
    let rig = rig(&driver, Box::<DefaultScheduler>::default(), Duration::from_millis(2));
    assert!((0..5).all(|_| rig.comes_early()));
}

#[test]
fn requests_that_may_be_overtaken_or_expire_stay_in_the_queue() {
    use crate::config::inference::ModelQueuePolicy;
    use crate::schedule::PipelineDepth;
    let policy = |policy: ModelQueuePolicy| ModelDynamicBatching {
        default_queue_policy: Some(policy),
        ..ModelDynamicBatching::default()
    };
    let plain = ModelDynamicBatching::default();
    assert_eq!(batcher(&plain).early(), PipelineDepth::WhereShort);
    let expires =
        policy(ModelQueuePolicy { default_timeout_microseconds: 9, ..ModelQueuePolicy::default() });
    let few = policy(ModelQueuePolicy { max_queue_size: 3, ..ModelQueuePolicy::default() });
    let levels = ModelDynamicBatching { priority_levels: 2, ..ModelDynamicBatching::default() };
    for batching in [expires, few, levels] {
        assert_eq!(batcher(&batching).early(), PipelineDepth::Never, "{batching:?}");
    }
}

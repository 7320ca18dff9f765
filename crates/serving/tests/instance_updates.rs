//! Models whose number of instances changes while they are asked: instances that stay go on, also with their sequences
//! and with what waits, and those that leave end the sequences that they have.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::batch::{self, NamedTensors};
use galatea_serving::core::LoadOverrides;
use galatea_serving::request::{InputData, InputTensor, SinkAnswer};
use galatea_serving::{ControlMode, Core, CoreOptions, CorrelationId, InferenceRequest};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// An input that is answered when the test says so.
const HELD: i32 = 99;

/// Counters of the model, its instances and the executions that are held.
#[derive(Debug, Default)]
struct InstanceCounts {
    loaded: AtomicUsize,
    made: AtomicUsize,
    ended: AtomicUsize,
    held: AtomicUsize,
    open: Mutex<bool>,
    opened: Condvar,
}

impl InstanceCounts {
    fn wait(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    fn release(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn of(&self) -> [usize; 3] {
        [&self.loaded, &self.made, &self.ended].map(|count| count.load(Ordering::SeqCst))
    }
}

/// `OUT` is the sum of `IN` within the sequence, as far as this very instance has seen it.
#[derive(Debug)]
struct TallyBackend(Arc<InstanceCounts>);

impl ModelBackend for TallyBackend {
    fn name(&self) -> &str {
        "tally"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(
        &self,
        _files: &ModelFiles,
    ) -> Result<Box<dyn BackendModel>, galatea_serving::ServingError> {
        self.0.loaded.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(TallyModel(Arc::clone(&self.0))))
    }
}

struct TallyModel(Arc<InstanceCounts>);

impl BackendModel for TallyModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, galatea_serving::ServingError> {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(TallyInstance { counted: Arc::clone(&self.0), sums: HashMap::new() }))
    }
}

struct TallyInstance {
    counted: Arc<InstanceCounts>,
    sums: HashMap<u64, i32>,
}

impl Drop for TallyInstance {
    fn drop(&mut self) {
        self.counted.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl ModelInstance for TallyInstance {
    fn execute(&mut self, payload: BatchPayload) {
        let (sums, counted) = (&mut self.sums, &self.counted);
        batch::execute(payload, |inputs| {
            let of =
                |name: &str| inputs.iter().find(|(found, _)| found == name).map(|(_, one)| one);
            let given: Vec<i32> = of("IN").unwrap().to_vec()?;
            if given.contains(&HELD) {
                counted.wait();
            }
            let ids: Vec<u64> = match of("CORRID") {
                Some(ids) => ids.to_vec()?,
                None => vec![0; given.len()],
            };
            let totals = ids.iter().zip(&given).map(|(id, given)| {
                let sum = sums.entry(*id).or_default();
                *sum += given;
                *sum
            });
            let out = Tensor::from_vec(of("IN").unwrap().shape(), totals.collect())?;
            Ok(NamedTensors::from([("OUT".to_owned(), out)]))
        });
    }
}

struct UpdatedServer {
    core: Arc<Core>,
    counted: Arc<InstanceCounts>,
    config: String,
    folder: tempfile::TempDir,
}

const CORRID: &str = "control_input { name: \"CORRID\" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }";

impl UpdatedServer {
    fn start(scheduling: &str, max_batch: i32, groups: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let counted = Arc::new(InstanceCounts::default());
        let config = format!(
            "backend: \"tally\" max_batch_size: {max_batch} input {{ name: \"IN\" data_type: TYPE_INT32 dims: 1 }} \
             output {{ name: \"OUT\" data_type: TYPE_INT32 dims: 1 }} {scheduling}"
        );
        fs::create_dir_all(folder.path().join("m/1")).unwrap();
        fs::write(folder.path().join("m/config.pbtxt"), format!("{config} {groups}")).unwrap();
        let options = CoreOptions {
            repositories: vec![folder.path().to_owned()],
            control_mode: ControlMode::Explicit { load: vec!["m".to_owned()] },
            ..CoreOptions::default()
        };
        let core =
            Core::start(options, vec![Arc::new(TallyBackend(Arc::clone(&counted)))]).unwrap();
        assert_eq!(core.load_failures(), []);
        Self { core, counted, config, folder }
    }

    fn update(&self, groups: &str) {
        let text = format!("{} {groups}", self.config);
        fs::write(self.folder.path().join("m/config.pbtxt"), text).unwrap();
        self.core.load_model("m", LoadOverrides::default()).unwrap();
    }

    /// `S` starts a sequence, `E` ends it.
    fn send(&self, id: u64, flags: &str, value: i32) -> Receiver<SinkAnswer> {
        let batching = self.core.resolve("m", "").unwrap().config().max_batch_size > 0;
        let input = InputTensor {
            name: "IN".to_owned(),
            datatype: DataType::Int32,
            shape: if batching { vec![1, 1] } else { vec![1] },
            data: InputData::Raw(value.to_le_bytes().to_vec().into()),
        };
        let request = InferenceRequest {
            model_name: "m".to_owned(),
            inputs: vec![input],
            correlation: CorrelationId::Uint(id),
            sequence_start: flags.contains('S'),
            sequence_end: flags.contains('E'),
            ..InferenceRequest::default()
        };
        let (to, from) = channel();
        self.core.infer(request, Box::new(move |answer| to.send(answer).unwrap())).unwrap();
        from
    }

    fn ask(&self, id: u64, flags: &str, value: i32) -> i32 {
        sum(&self.send(id, flags, value))
    }

    fn await_ended(&self, count: usize) {
        until(|| self.counted.ended.load(Ordering::SeqCst) == count);
    }
}

fn sum(from: &Receiver<SinkAnswer>) -> i32 {
    let answer = from.recv_timeout(PATIENCE).expect("an answer").result.unwrap().unwrap();
    answer.outputs[0].tensor.to_vec::<i32>().unwrap()[0]
}

fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn count(count: usize) -> String {
    format!("instance_group {{ count: {count} kind: KIND_CPU }}")
}

#[test]
fn instances_that_stay_go_on_and_only_the_difference_is_made_or_ends() {
    let served = UpdatedServer::start("", 0, &count(3));
    assert_eq!(served.counted.of(), [1, 3, 0]);
    served.update(&count(5));
    assert_eq!(served.counted.of(), [1, 5, 0]);
    served.update(&count(2));
    // Those that have gone have ended when the load has.
    assert_eq!(served.counted.of(), [1, 5, 3]);
    served.update(&count(0));
    assert_eq!(served.counted.of(), [1, 5, 4]);
    served.update("instance_group [{ name: \"a\" count: 1 kind: KIND_CPU }, { name: \"b\" count: 2 kind: KIND_CPU }]");
    assert_eq!(served.counted.of(), [1, 7, 4]);
    served.ask(0, "", 1);
    served.core.unload_model("m", galatea_serving::core::UnloadDependents::Keep).unwrap();
    served.await_ended(7);
}

#[test]
fn a_configuration_that_was_shown_and_has_another_count_keeps_instances() {
    let served = UpdatedServer::start("dynamic_batching {}", 4, &count(1));
    let config = served.core.resolve("m", "").unwrap().config();
    let mut shown = galatea_serving::config::to_json(&config);
    shown["instance_group"][0]["count"] = 2.into();
    let overrides = LoadOverrides { config: Some(shown.to_string()), ..LoadOverrides::default() };
    served.core.load_model("m", overrides).unwrap();
    assert_eq!(served.counted.of(), [1, 2, 0]);
    assert_eq!(served.core.resolve("m", "").unwrap().config().instance_group[0].count, 2);
}

#[test]
fn what_waits_goes_to_an_instance_that_is_added() {
    for scheduling in ["", "dynamic_batching {}"] {
        let served = UpdatedServer::start(scheduling, 4, &count(1));
        let held = served.send(0, "", HELD);
        until(|| served.counted.held.load(Ordering::SeqCst) == 1);
        let waiting = served.send(0, "", 5);
        assert!(waiting.try_recv().is_err());
        served.update(&count(2));
        assert_eq!(sum(&waiting), 5);
        assert!(held.try_recv().is_err());
        // The busy one goes on, and is asked again when it has ended.
        served.counted.release();
        assert_eq!(sum(&held), HELD);
        assert_eq!(served.counted.of(), [1, 2, 0]);
    }
}

fn sequences_go_on(strategy: &str) {
    let served =
        UpdatedServer::start(&format!("sequence_batching {{ {strategy} {CORRID} }}"), 4, &count(3));
    assert_eq!(
        [served.ask(1, "S", 1), served.ask(2, "S", 10), served.ask(3, "S", 100)],
        [1, 10, 100]
    );
    served.update(&count(4));
    assert_eq!([served.ask(1, "", 1), served.ask(2, "", 10), served.ask(3, "", 100)], [2, 20, 200]);
    // The fourth one, which has no sequence, ends at once.
    served.update(&count(1));
    assert_eq!(served.counted.of(), [1, 4, 1]);
    assert_eq!([served.ask(1, "", 1), served.ask(2, "", 10), served.ask(3, "", 100)], [3, 30, 300]);
    assert_eq!(served.ask(4, "S", 7), 7);
    assert_eq!(served.counted.of(), [1, 4, 1]);
    assert_eq!(served.ask(2, "E", 10), 40);
    served.await_ended(2);
    // A sequence on an instance that leaves outlives another update.
    served.update(&count(2));
    assert_eq!(served.counted.of(), [1, 5, 2]);
    assert_eq!(
        [served.ask(1, "E", 1), served.ask(3, "", 100), served.ask(4, "E", 7)],
        [4, 400, 14]
    );
    assert_eq!(served.ask(3, "E", 100), 500);
    served.await_ended(3);
    served.core.unload_model("m", galatea_serving::core::UnloadDependents::Keep).unwrap();
    served.await_ended(5);
}

#[test]
fn direct_sequences_go_on_when_the_number_of_instances_changes() {
    sequences_go_on("direct {} max_sequence_idle_microseconds: 600000000");
}

#[test]
fn oldest_sequences_go_on_when_the_number_of_instances_changes() {
    sequences_go_on(
        "oldest { max_candidate_sequences: 4 } max_sequence_idle_microseconds: 600000000",
    );
}

#[test]
fn sequences_that_wait_for_a_slot_get_one_of_an_added_instance() {
    for strategy in ["direct {}", "oldest { max_candidate_sequences: 1 }"] {
        let scheduling = format!(
            "sequence_batching {{ {strategy} max_sequence_idle_microseconds: 600000000 {CORRID} }}"
        );
        let served = UpdatedServer::start(&scheduling, 0, &count(1));
        let held = served.send(1, "S", HELD);
        until(|| served.counted.held.load(Ordering::SeqCst) == 1);
        let behind = served.send(1, "", 1);
        let waiting = served.send(2, "S", 5);
        served.update(&count(2));
        assert_eq!(sum(&waiting), 5);
        // The next one of the sequence does not overtake the one that runs.
        assert!(behind.try_recv().is_err());
        served.counted.release();
        assert_eq!([sum(&held), sum(&behind)], [HELD, HELD + 1]);
    }
}

#[test]
fn silent_sequences_of_an_instance_that_leaves_are_given_up() {
    let scheduling = format!(
        "sequence_batching {{ direct {{}} max_sequence_idle_microseconds: 20000 {CORRID} }}"
    );
    let served = UpdatedServer::start(&scheduling, 1, &count(2));
    assert_eq!([served.ask(1, "S", 1), served.ask(2, "S", 1)], [1, 1]);
    served.update(&count(1));
    served.await_ended(1);
}

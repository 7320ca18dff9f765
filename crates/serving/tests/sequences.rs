//! Models over sequences from a folder on disk to answers: slots, control tensors, implicit state and statistics.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use galatea_serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea_serving::batch::{self, NamedTensors};
use galatea_serving::request::{InputData, InputTensor};
use galatea_serving::{
    Core, CoreOptions, CorrelationId, ErrorCode, InferenceRequest, ServingError,
};
use galatea_tensor::{DataType, Tensor};

/// Long enough for any machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one execution was given: START, END, READY and CORRID of each row.
type Seen = Vec<(i32, i32, i32, u64)>;

/// `OUT` and the state `NEXT` are `IN` + the state `LAST`. Every execution reports its controls.
#[derive(Debug)]
struct Sum {
    seen: Mutex<Sender<Seen>>,
}

impl ModelBackend for Sum {
    fn name(&self) -> &str {
        "sum"
    }
    fn default_model_filename(&self) -> &str {
        ""
    }
    fn load(&self, _files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(SumModel { seen: self.seen.lock().unwrap().clone() }))
    }
}

struct SumModel {
    seen: Sender<Seen>,
}

impl BackendModel for SumModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(SumInstance { seen: self.seen.clone() }))
    }
}

struct SumInstance {
    seen: Sender<Seen>,
}

impl ModelInstance for SumInstance {
    fn execute(&mut self, payload: BatchPayload) {
        batch::execute(payload, |inputs| {
            let of = |name: &str| &inputs.iter().find(|(found, _)| found == name).unwrap().1;
            let flag = |name: &str| of(name).to_vec::<i32>().unwrap();
            let ids: Vec<u64> = of("CORRID").to_vec()?;
            let seen = (0..ids.len())
                .map(|row| (flag("START")[row], flag("END")[row], flag("READY")[row], ids[row]));
            self.seen.send(seen.collect()).unwrap();
            let sums: Vec<i32> = of("IN")
                .to_vec::<i32>()?
                .iter()
                .zip(of("LAST").to_vec::<i32>()?)
                .map(|(given, last)| given + last)
                .collect();
            let sum = Tensor::from_vec(of("IN").shape(), sums)?;
            Ok(NamedTensors::from([("OUT".to_owned(), sum.clone()), ("NEXT".to_owned(), sum)]))
        });
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

struct SequenceServer {
    core: Arc<Core>,
    seen: Receiver<Seen>,
    _folder: Folder,
}

const CONTROLS: &str = "control_input { name: \"START\" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } \
    control_input { name: \"END\" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } } \
    control_input { name: \"READY\" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } } \
    control_input { name: \"CORRID\" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } \
    state { input_name: \"LAST\" output_name: \"NEXT\" data_type: TYPE_INT32 dims: 1 \
      initial_state { name: \"zero\" data_type: TYPE_INT32 dims: 1 zero_data: true } }";

/// A core with one model `m`, of two instances if it does not batch; `strategy` stands inside `sequence_batching`, and nothing runs before `hold` requests
/// wait.
fn serve(max_batch: i32, strategy: &str, hold: usize) -> SequenceServer {
    serve_with(max_batch, strategy, hold, "")
}

fn serve_with(max_batch: i32, strategy: &str, hold: usize, extra: &str) -> SequenceServer {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path =
        std::env::temp_dir().join(format!("galatea-sequences-{}-{number}", std::process::id()));
    fs::create_dir_all(path.join("m/1")).unwrap();
    let instances = if max_batch == 0 { 2 } else { 1 };
    let config = format!(
        "backend: \"sum\" max_batch_size: {max_batch} input {{ name: \"IN\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"OUT\" data_type: TYPE_INT32 dims: 1 }} sequence_batching {{ {strategy} {CONTROLS} }} \
         instance_group {{ count: {instances} }} {extra}"
    );
    fs::write(path.join("m/config.pbtxt"), config).unwrap();
    let (to, seen) = channel();
    let options = CoreOptions {
        repositories: vec![path.clone()],
        delay_scheduler: hold,
        ..CoreOptions::default()
    };
    let core = Core::start(options, vec![Arc::new(Sum { seen: Mutex::new(to) })]).unwrap();
    SequenceServer { core, seen, _folder: Folder(path) }
}

/// `S` starts, `E` ends, anything else is in between.
fn request(id: u64, flags: &str, value: i32, batch: bool) -> InferenceRequest {
    let input = InputTensor {
        name: "IN".to_owned(),
        datatype: DataType::Int32,
        shape: if batch { vec![1, 1] } else { vec![1] },
        data: InputData::Raw(value.to_le_bytes().to_vec().into()),
    };
    InferenceRequest {
        model_name: "m".to_owned(),
        inputs: vec![input],
        correlation: CorrelationId::Uint(id),
        sequence_start: flags.contains('S'),
        sequence_end: flags.contains('E'),
        ..InferenceRequest::default()
    }
}

fn send(core: &Core, request: InferenceRequest) -> Receiver<Result<i32, ServingError>> {
    let (to, from) = channel();
    let sink = move |answer: galatea_serving::SinkAnswer| {
        assert!(answer.is_final);
        let value = answer.result.map(|response| {
            let response = response.expect("a response");
            assert_eq!(response.outputs.len(), 1, "a state was returned");
            response.outputs[0].tensor.to_vec::<i32>().unwrap()[0]
        });
        to.send(value).unwrap();
    };
    core.infer(request, Box::new(sink)).unwrap();
    from
}

fn answer(from: &Receiver<Result<i32, ServingError>>) -> Result<i32, ServingError> {
    from.recv_timeout(PATIENCE).expect("an answer")
}

#[test]
fn direct_slots_fill_gaps_keep_states_and_count_only_requests() {
    let served = serve(4, "direct { }", 3);
    let core = &served.core;
    let first = send(core, request(7, "S", 1, true));
    let second = send(core, request(8, "S", 10, true));
    let third = send(core, request(8, "E", 5, true));
    assert_eq!([&first, &second, &third].map(|from| answer(from).unwrap()), [1, 10, 15]);
    assert_eq!(served.seen.recv().unwrap(), [(1, 0, 1, 7), (1, 0, 1, 8)]);
    assert_eq!(served.seen.recv().unwrap(), [(0, 0, 0, 0), (0, 1, 1, 8)]);
    let stats = core.model_statistics(Some("m"), "").unwrap().remove(0);
    assert_eq!((stats.inference_count, stats.execution_count), (3, 2));
    let batches =
        stats.batch_stats.iter().map(|batch| (batch.batch_size, batch.compute_infer.count));
    assert_eq!(batches.collect::<Vec<_>>(), [(2, 2)]);
    // The state of the first sequence was not touched by the batch that left it out, and a new start resets it.
    assert_eq!(answer(&send(core, request(7, "", 2, true))).unwrap(), 3);
    assert_eq!(answer(&send(core, request(7, "S", 40, true))).unwrap(), 40);
    assert_eq!(answer(&send(core, request(7, "E", 2, true))).unwrap(), 42);
}

#[test]
fn oldest_requests_of_different_sequences_share_batches() {
    let served = serve(4, "oldest { max_candidate_sequences: 4 }", 2);
    let core = &served.core;
    let answers: Vec<_> = [(1, "S", 1), (1, "", 2), (1, "E", 3), (2, "SE", 50)]
        .into_iter()
        .map(|(id, flags, value)| send(core, request(id, flags, value, true)))
        .collect();
    let values: Vec<i32> = answers.iter().map(|from| answer(from).unwrap()).collect();
    assert_eq!(values, [1, 3, 6, 50]);
    assert_eq!(served.seen.recv().unwrap(), [(1, 0, 1, 1), (1, 1, 1, 2)]);
    assert_eq!(served.seen.recv().unwrap(), [(0, 0, 1, 1)]);
    assert_eq!(served.seen.recv().unwrap(), [(0, 1, 1, 1)]);
}

#[test]
fn a_third_sequence_waits_for_one_of_two_instances() {
    let served = serve(0, "direct { } max_sequence_idle_microseconds: 60000000", 0);
    let core = &served.core;
    for id in [1, 2] {
        assert_eq!(answer(&send(core, request(id, "S", 1, false))).unwrap(), 1);
    }
    let waits = send(core, request(3, "SE", 9, false));
    assert_eq!(core.metrics_snapshot()[0].pending, 1);
    assert_eq!(answer(&send(core, request(1, "E", 5, false))).unwrap(), 6);
    assert_eq!(answer(&waits).unwrap(), 9);
    // At the end, those that wait for a slot get one although nobody ends a sequence.
    let waits: Vec<_> =
        [(4, 40), (5, 50)].map(|(id, value)| send(core, request(id, "S", value, false))).into();
    let report = core.shutdown(PATIENCE);
    assert!(report.complete && report.took < PATIENCE);
    assert_eq!(waits.iter().map(|from| answer(from).unwrap()).collect::<Vec<_>>(), [40, 50]);
}

#[test]
fn requests_without_a_place_are_refused_with_the_reason() {
    let served = serve(4, "direct { }", 0);
    let core = &served.core;
    let refused = |request: InferenceRequest| {
        let error = core.infer(request, Box::new(|_| panic!("refused and answered"))).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArg);
        error.message
    };
    assert_eq!(
        refused(request(0, "S", 1, true)),
        "inference request to model 'm' must specify a non-zero or non-empty correlation ID"
    );
    assert_eq!(
        refused(request(101, "", 1, true)),
        "inference request for sequence 101 to model 'm' must specify the START flag on the first request of the sequence"
    );
    let mut two = request(1, "S", 1, true);
    two.inputs[0].shape = vec![2, 1];
    two.inputs[0].data = InputData::Raw(vec![0; 8].into());
    assert_eq!(
        refused(two),
        "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher"
    );
}

#[test]
fn samples_of_a_warm_up_are_sequences_that_start() {
    let zero = |name: &str| {
        format!(
            "inputs {{ key: \"{name}\" value {{ data_type: TYPE_INT32 dims: 1 zero_data: true }} }}"
        )
    };
    let sample = format!("name: \"s\" batch_size: 2 count: 2 {} {}", zero("IN"), zero("START"));
    let served = serve_with(4, "direct { }", 0, &format!("model_warmup {{ {sample} }}"));
    let first = [(1, 0, 1, 1), (1, 0, 1, 2)];
    assert_eq!(served.seen.try_iter().collect::<Vec<_>>(), [first, first]);
    assert_eq!(answer(&send(&served.core, request(1, "S", 3, true))).unwrap(), 3);
}

#[test]
fn a_cancelled_request_takes_its_waiting_sequence_along() {
    let served = serve(1, "direct { } max_sequence_idle_microseconds: 60000000", 0);
    let core = &served.core;
    assert_eq!(answer(&send(core, request(1, "S", 1, true))).unwrap(), 1);
    let first = send(core, request(2, "S", 1, true));
    let second = request(2, "", 1, true);
    let token = second.cancel.clone();
    let second = send(core, second);
    token.cancel();
    assert_eq!(
        [first, second].map(|from| answer(&from).unwrap_err().code),
        [ErrorCode::Cancelled; 2]
    );
    assert_eq!(core.metrics_snapshot()[0].pending, 0);
}

#[test]
fn an_iterative_request_runs_until_it_has_counted_down() {
    for strategy in ["direct { }", "oldest { }"] {
        let path = std::env::temp_dir().join(format!(
            "galatea-iterative-{}-{}",
            std::process::id(),
            strategy.len()
        ));
        let folder = Folder(path.clone());
        fs::create_dir_all(path.join("m/1")).unwrap();
        let config = format!(
            "backend: \"iterative_sequence\" max_batch_size: 4 model_transaction_policy {{ decoupled: true }} \
             input {{ name: \"INPUT\" data_type: TYPE_INT32 dims: 1 }} \
             output {{ name: \"OUTPUT\" data_type: TYPE_INT32 dims: 1 }} \
             sequence_batching {{ {strategy} iterative_sequence: true }}"
        );
        fs::write(path.join("m/config.pbtxt"), config).unwrap();
        let options =
            CoreOptions { repositories: vec![path], delay_scheduler: 2, ..CoreOptions::default() };
        let core = Core::start(options, galatea_serving::backend::builtin::all()).unwrap();
        let counting: Vec<_> = [3, 2].map(|from| count_down(&core, from)).into();
        let counted = counting.into_iter().map(|answers| {
            let mut values = Vec::new();
            while let Ok(value) = answers.recv_timeout(PATIENCE) {
                values.push(value);
            }
            values
        });
        assert_eq!(counted.collect::<Vec<_>>(), [vec![2, 1, 0], vec![1, 0]], "{strategy}");
        let stats = core.model_statistics(Some("m"), "").unwrap().remove(0);
        // Both counted together as long as both had something to count; a row that is over may still fill its slot.
        assert_eq!(stats.execution_count, 3, "{strategy}: {stats:?}");
        assert_eq!(core.metrics_snapshot()[0].pending, 0);
        drop((core, folder));
    }
}

/// The channel closes after the last answer.
fn count_down(core: &Core, from: i32) -> Receiver<i32> {
    let (to, values) = channel();
    let mut to = Some(to);
    let mut asked = request(0, "", from, true);
    asked.inputs[0].name = "INPUT".to_owned();
    let sink = move |answer: galatea_serving::SinkAnswer| {
        if let (Some(response), Some(to)) = (answer.result.unwrap(), &to) {
            to.send(response.outputs[0].tensor.to_vec::<i32>().unwrap()[0]).unwrap();
        }
        if answer.is_final {
            to = None;
        }
    };
    core.infer(asked, Box::new(sink)).unwrap();
    values
}

/// Many threads bring requests of many sequences and take some of them back; whatever the order of things, each
/// request has one answer and each sequence that was left alone has its sums.
#[test]
fn threads_that_send_and_cancel_get_every_answer_once() {
    for (strategy, batch) in [
        ("direct { } max_sequence_idle_microseconds: 100000", 3),
        ("oldest { max_candidate_sequences: 3 } max_sequence_idle_microseconds: 100000", 4),
        ("direct { } max_sequence_idle_microseconds: 100000", 0),
    ] {
        let served = serve(batch, strategy, 0);
        let core = &served.core;
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                scope.spawn(move || {
                    for round in 0..40_u64 {
                        sequence_of_six(core, thread * 1000 + round + 1, batch > 0, round % 4 == 3);
                    }
                });
            }
        });
        let metrics = core.metrics_snapshot().remove(0);
        let failed = metrics.stats.fail.count;
        assert_eq!((metrics.pending, metrics.stats.success.count + failed), (0, 6 * 40 * 6));
        let report = core.shutdown(PATIENCE);
        assert!(report.complete && report.unanswered == 0);
    }
}

fn sequence_of_six(core: &Core, id: u64, batch: bool, cancels: bool) {
    let mut answers = Vec::new();
    for (step, flags) in ["S", "", "", "", "", "E"].into_iter().enumerate() {
        let asked = request(id, flags, 1, batch);
        let token = asked.cancel.clone();
        let (to, from) = channel();
        let sink = move |answer: galatea_serving::SinkAnswer| to.send(answer.result).unwrap();
        match core.infer(asked, Box::new(sink)) {
            Ok(()) => answers.push((step, from)),
            // After a cancellation the sequence may be over; its client starts it again.
            Err(error) => {
                assert!(cancels, "{error:?}");
                let again = send(core, request(id, "SE", 1, batch));
                assert_eq!(answer(&again).unwrap(), 1);
                return finish(answers, cancels, 6 - step - 1, core, id, batch);
            }
        }
        if cancels && step == 3 {
            token.cancel();
        }
    }
    finish(answers, cancels, 0, core, id, batch);
}

type Answers =
    Vec<(usize, Receiver<Result<Option<galatea_serving::InferenceResponse>, ServingError>>)>;

fn finish(answers: Answers, cancels: bool, rest: usize, core: &Core, id: u64, batch: bool) {
    for (step, from) in answers {
        match from.recv_timeout(PATIENCE).expect("an answer") {
            Ok(response) if !cancels => {
                let sum = response.unwrap().outputs[0].tensor.to_vec::<i32>().unwrap()[0];
                assert_eq!(sum, i32::try_from(step).unwrap() + 1);
            }
            Ok(_) => {}
            Err(error) => {
                assert!(cancels && error.code == ErrorCode::Cancelled, "{error:?}");
            }
        }
        assert!(from.recv_timeout(PATIENCE).is_err(), "answered twice");
    }
    // As many requests as without the cancellation, so that the counts can be compared.
    for _ in 0..rest {
        assert_eq!(answer(&send(core, request(id, "SE", 1, batch))).unwrap(), 1);
    }
}

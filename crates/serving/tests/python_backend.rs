//! Models in Python from a folder on disk to answers: whole batches, errors, lost workers, decoupled models, sequences.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use galatea_serving::backend::python::PythonBackend;
use galatea_serving::core::{LoadOverrides, UnloadDependents};
use galatea_serving::{
    Core, CorrelationId, ErrorCode, InferenceRequest, InferenceResponse, ServingError, SinkAnswer,
};
use galatea_tensor::{ByteString, DataType, Tensor};

use crate::python;
use crate::python::{
    ONE_IN_ONE_OUT, PATIENCE, PythonModels, answer, ints, python, send, write_model,
};

const HEAD: &str =
    "import os\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n\n";
/// A core with the models `(name, configuration, class)`; `None` without a Python.
fn serve(models: &[(&str, &str, &str)]) -> Option<PythonModels> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    for (name, config, class) in models {
        let (config, text) = (format!("backend: \"python\" {config}"), format!("{HEAD}{class}"));
        write_model(folder.path(), name, &config, &text);
    }
    let settings = [("python-executable", python), ("shm-default-byte-size", "65536")];
    Some(PythonModels::start(folder, vec![Arc::new(PythonBackend::default())], &settings))
}

fn request(model: &str, tensor: &Tensor) -> InferenceRequest {
    InferenceRequest { id: "r".to_owned(), ..python::request(model, &[("IN", tensor)]) }
}

fn infer(core: &Core, request: InferenceRequest) -> Result<InferenceResponse, ServingError> {
    let answer = answer(&send(core, request));
    assert!(answer.is_final);
    answer.result.map(|response| response.expect("a response"))
}

fn output(response: &InferenceResponse) -> Vec<i32> {
    response.outputs[0].tensor.to_vec().unwrap()
}

const IDENTITY: &str = "class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]
";

#[test]
fn large_inputs_that_come_back_at_the_same_time_stay_apart() {
    let Some(served) = serve(&[("m", ONE_IN_ONE_OUT, IDENTITY)]) else { return };
    const LEN: usize = 10_000;
    let ask = |value: i32| send(&served.core, request("m", &ints(&vec![value; LEN])));
    for round in 0..20 {
        let values = round * 8..round * 8 + 8;
        let asked: Vec<_> = values.clone().map(ask).collect();
        for (value, from) in values.zip(&asked) {
            let response = answer(from).result.unwrap().unwrap();
            assert!(output(&response) == vec![value; LEN], "{value}");
        }
    }
}

#[test]
fn a_sender_may_say_apart_that_nothing_more_comes() {
    const MODEL: &str = "class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            sender = r.get_response_sender()
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
";
    let Some(served) = serve(&[("m", ONE_IN_ONE_OUT, MODEL)]) else { return };
    let response = infer(&served.core, request("m", &ints(&[4, 5]))).unwrap();
    assert_eq!(output(&response), [4, 5]);
}

#[test]
fn tensors_of_all_sizes_come_back_and_are_counted() {
    let Some(served) = serve(&[("m", ONE_IN_ONE_OUT, IDENTITY)]) else { return };
    for len in [0, 1, 256, 4096, 1 << 20, 4 << 20, 100_000] {
        let values: Vec<i32> = (0..len).collect();
        let kept: Vec<_> =
            (0..3).map(|_| infer(&served.core, request("m", &ints(&values))).unwrap()).collect();
        for response in &kept {
            assert!(output(response) == values, "{len}");
            assert_eq!((response.id.as_str(), response.model_version.as_str()), ("r", "1"));
        }
    }
    let stats = served.core.model_statistics(Some("m"), "").unwrap().remove(0);
    assert_eq!((stats.inference_stats.success.count, stats.execution_count), (21, 21));
}

#[test]
fn batches_keep_rows_apart_and_shapes_are_the_clients() {
    let config = "max_batch_size: 8 input { name: \"IN\" data_type: TYPE_INT32 dims: 1 reshape { } } \
        output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 reshape { } } \
        dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 30000000 }";
    let class = "class TritonPythonModel:
    def execute(self, requests):
        made = []
        for r in requests:
            x = r.inputs()[0].as_numpy()
            assert x.ndim == 1
            made.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', x * 100 + len(requests))]))
        return made
";
    let Some(served) = serve(&[("m", config, class)]) else { return };
    let row = |value: i32| Tensor::from_slice(&[1, 1], &[value]).unwrap();
    let two = Tensor::from_slice(&[2, 1], &[7, 8]).unwrap();
    let waits = [row(1), row(2), two].map(|tensor| send(&served.core, request("m", &tensor)));
    let answers = waits.map(|from| answer(&from).result.unwrap().unwrap());
    assert_eq!(answers.each_ref().map(output), [vec![103], vec![203], vec![703, 803]]);
    assert_eq!(answers[2].outputs[0].tensor.shape(), [2, 1]);
}

#[test]
fn strings_cross_both_ways() {
    let config = "input { name: \"IN\" data_type: TYPE_STRING dims: -1 } \
        output { name: \"OUT\" data_type: TYPE_STRING dims: -1 }";
    let class = "class TritonPythonModel:
    def execute(self, requests):
        made = []
        for r in requests:
            x = [text.decode() + '!' for text in r.inputs()[0].as_numpy()]
            made.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array(x, dtype=object))]))
        return made
";
    let Some(served) = serve(&[("m", config, class)]) else { return };
    let long = "é".repeat(20_000);
    let given: Vec<ByteString> = ["", "a", &long].map(ByteString::from).to_vec();
    let response = infer(&served.core, request("m", &Tensor::vector(given))).unwrap();
    let found: Vec<ByteString> = response.outputs[0].tensor.to_vec().unwrap();
    assert_eq!(found, ["!", "a!", &format!("{long}!")].map(ByteString::from));
}

#[test]
fn errors_have_recorded_texts_and_counts() {
    let class = "class TritonPythonModel:
    def execute(self, requests):
        mode = requests[0].inputs()[0].as_numpy()[0]
        if mode == 1:
            raise pb_utils.TritonModelException('deliberate execute failure')
        if mode == 2:
            return []
        if mode == 3:
            error = pb_utils.TritonError('model error 3', pb_utils.TritonError.NOT_FOUND)
            return [pb_utils.InferenceResponse(output_tensors=[], error=error)]
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.zeros(2)), pb_utils.Tensor('NONE', np.zeros(1))])]
";
    let group = format!("{ONE_IN_ONE_OUT} instance_group {{ kind: KIND_CPU name: \"m\" }}");
    let Some(served) = serve(&[("m", &group, class)]) else { return };
    let run = |mode| infer(&served.core, request("m", &ints(&[mode])));
    let path = served.folder.path().join("m/1/model.py");
    let error = run(1).unwrap_err();
    let expected = format!(
        "Failed to process the request(s) for model 'm_0', message: TritonModelException: deliberate execute failure\n\n\
         At:\n  {}(9): execute\n",
        path.display()
    );
    assert_eq!((error.code, error.message), (ErrorCode::Internal, expected));
    let error = run(2).unwrap_err().message;
    assert!(
        error.contains("InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0"),
        "{error}"
    );
    let error = run(3).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::NotFound, "model error 3"));
    // As in Triton: another type is the answer, and an output that is not the model's is left out.
    let response = run(4).unwrap();
    assert_eq!(response.outputs.len(), 1);
    assert_eq!(response.outputs[0].tensor.dtype(), DataType::Fp64);
    let stats = served.core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!((stats.success.count, stats.fail.count), (2, 2));
}

#[test]
fn a_worker_that_ends_or_hangs_fails_its_own_requests_only() {
    let class = "class TritonPythonModel:
    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        if x[0] == 1:
            os._exit(3)
        if x[0] == 2:
            os.kill(os.getpid(), 9)
        while x[0] == 3:
            pass
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([os.getpid()], np.int32))])]
";
    let limit = "parameters { key: \"EXECUTION_TIMEOUT_SECONDS\" value { string_value: \"1\" } }";
    let config = format!("{ONE_IN_ONE_OUT} {limit}");
    let Some(served) = serve(&[("m", &config, class), ("other", &config, class)]) else { return };
    let run = |model, mode| infer(&served.core, request(model, &ints(&[mode])));
    let other = output(&run("other", 0).unwrap());
    let mut before = output(&run("m", 0).unwrap());
    for (mode, why) in
        [(1, "is not healthy."), (2, "is not healthy."), (3, "did not answer in time")]
    {
        let error = run("m", mode).unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal);
        let expected =
            "Failed to process the request(s) for model 'm_0', message: Stub process 'm_0'";
        assert!(error.message.starts_with(expected) && error.message.contains(why), "{error}");
        let after = output(&run("m", 0).unwrap());
        assert_ne!(after, before);
        before = after;
    }
    assert_eq!(output(&run("other", 0).unwrap()), other);
    let stats = served.core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!((stats.success.count, stats.fail.count), (4, 3));
}

#[test]
fn requests_behind_a_lost_one_go_to_the_next_worker() {
    let class = "import time

class TritonPythonModel:
    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        time.sleep(0.2 if x[0] == 0 else 0)
        if x[0] == 1:
            os.kill(os.getpid(), 9)
        while x[0] == 2:
            pass
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([os.getpid(), len(x)], np.int32))])]
";
    let limit = "parameters { key: \"EXECUTION_TIMEOUT_SECONDS\" value { string_value: \"1\" } }";
    let Some(served) = serve(&[("m", &format!("{ONE_IN_ONE_OUT} {limit}"), class)]) else { return };
    // The first lets the others gather; some are larger than a message takes, or than goes ahead of others.
    let (large, huge) = (vec![3; 5_000], vec![3; 600_000]);
    let mut values: Vec<Vec<i32>> = vec![vec![0]];
    for mode in [3, 1, 1, 3, 2, 3] {
        values.extend([vec![mode], large.clone(), vec![3, 3], huge.clone(), vec![3]]);
    }
    let sent: Vec<_> =
        values.iter().map(|values| send(&served.core, request("m", &ints(values)))).collect();
    let mut workers = Vec::new();
    for (from, values) in sent.iter().zip(&values) {
        let found = answer(from).result;
        match values[0] {
            1 => assert!(found.unwrap_err().message.contains("is not healthy.")),
            2 => assert!(found.unwrap_err().message.contains("did not answer in time")),
            _ => {
                let found = output(&found.unwrap().expect("a response"));
                assert_eq!(found[1], i32::try_from(values.len()).unwrap());
                workers.push(found[0]);
            }
        }
    }
    workers.dedup();
    assert_eq!(workers.len(), 4, "{workers:?}");
    let stats = served.core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!((stats.success.count, stats.fail.count), (28, 3));
}

#[test]
fn a_model_that_does_not_load_is_reported_as_triton_does() {
    let class = "class TritonPythonModel:
    def initialize(self, args):
        raise pb_utils.TritonModelException('deliberate load failure')

    def execute(self, requests):
        return []
";
    let missing = "import no_such_module\n";
    let models = [("m", ONE_IN_ONE_OUT, class), ("n", ONE_IN_ONE_OUT, missing)];
    let Some(served) = serve(&models) else { return };
    let failures = served.core.load_failures();
    let reason = |name: &str| &failures.iter().find(|one| one.model == name).unwrap().reason;
    let path = served.folder.path().join("m/1/model.py");
    let expected = format!(
        "Internal: TritonModelException: deliberate load failure\n\nAt:\n  {}(7): initialize\n",
        path.display()
    );
    assert_eq!(reason("m"), &expected);
    assert!(reason("n").starts_with("Internal: ModuleNotFoundError: No module named"));
}

#[test]
fn configurations_are_completed_and_models_finalize() {
    let class = "class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({'name': 'IN', 'data_type': 'TYPE_INT32', 'dims': [-1]})
        config.add_output({'name': 'OUT', 'data_type': 'TYPE_INT32', 'dims': [-1]})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        self.args = args

    def execute(self, requests):
        assert pb_utils.get_model_dir() == os.path.dirname(os.path.abspath(__file__))
        x = requests[0].inputs()[0].as_numpy()
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', x + 1)])]

    def finalize(self):
        with open(os.path.join(self.args['model_repository'], 'finalized'), 'w') as file:
            file.write(' '.join(sorted(self.args)))
";
    let Some(served) = serve(&[("m", "", class)]) else { return };
    let core = &served.core;
    let metadata = core.resolve("m", "").unwrap().metadata();
    assert_eq!(metadata.inputs[0].shape, [-1]);
    assert_eq!(output(&infer(core, request("m", &ints(&[4]))).unwrap()), [5]);
    core.unload_model("m", UnloadDependents::Keep).unwrap();
    let written = served.folder.path().join("m/finalized");
    let deadline = std::time::Instant::now() + PATIENCE;
    let expected = "model_config model_instance_device_id model_instance_kind model_instance_name model_name \
                    model_repository model_version";
    while fs::read_to_string(&written).ok().as_deref() != Some(expected) {
        assert!(std::time::Instant::now() < deadline, "the model was not finalized");
        std::thread::yield_now();
    }
}

#[test]
fn instances_start_together_and_go_on_when_their_number_changes() {
    let class = "import time
class TritonPythonModel:
    def initialize(self, args):
        self.log = os.path.join(os.path.dirname(args['model_repository']), '.log')
        os.makedirs(self.log, exist_ok=True)
        self.note('began')
        end = time.monotonic() + 60
        while len([one for one in os.listdir(self.log) if one.startswith('began')]) < 3:
            assert time.monotonic() < end, 'the instances do not start together'
            time.sleep(0.005)

    def note(self, what):
        open(os.path.join(self.log, f'{what}.{os.getpid()}'), 'w').close()

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]

    def finalize(self):
        self.note('ended')
";
    let config = |count: usize| {
        format!("{ONE_IN_ONE_OUT} instance_group {{ kind: KIND_CPU count: {count} }}")
    };
    let Some(served) = serve(&[("m", &config(3), class)]) else { return };
    assert_eq!(served.core.load_failures(), []);
    let counted = |what: &str| {
        let files = fs::read_dir(served.folder.path().join(".log")).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(what))
            .count()
    };
    let change = |count: usize| {
        let text = format!("backend: \"python\" {}", config(count));
        fs::write(served.folder.path().join("m/config.pbtxt"), text).unwrap();
        served.core.load_model("m", LoadOverrides::default()).unwrap();
        assert_eq!(
            served.core.resolve("m", "").unwrap().config().instance_group[0].count,
            i32::try_from(count).unwrap()
        );
        assert_eq!(output(&infer(&served.core, request("m", &ints(&[4]))).unwrap()), [4]);
    };
    change(5);
    assert_eq!((counted("began"), counted("ended")), (5, 0));
    change(2);
    python::until("the end of three instances", || (counted("ended") == 3).then_some(()));
    assert_eq!(counted("began"), 5);
    change(3);
    assert_eq!((counted("began"), counted("ended")), (6, 3));
    served.core.unload_model("m", UnloadDependents::Keep).unwrap();
    python::until("the end of all instances", || (counted("ended") == 6).then_some(()));
}

#[test]
fn a_class_that_is_inherited_completes_its_configuration() {
    let class = "import galatea_test_base
class TritonPythonModel(galatea_test_base.Base):
    pass
";
    let base = "class Base:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({'name': 'IN', 'data_type': 'TYPE_INT32', 'dims': [-1]})
        config.add_output({'name': 'OUT', 'data_type': 'TYPE_INT32', 'dims': [-1]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        import triton_python_backend_utils as pb_utils
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]
";
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    write_model(folder.path(), "m", "backend: \"python\"", &format!("{HEAD}{class}"));
    fs::write(folder.path().join("m/1/galatea_test_base.py"), base).unwrap();
    let settings = [("python-executable", python)];
    let served = PythonModels::start(folder, vec![Arc::new(PythonBackend::default())], &settings);
    assert_eq!(served.core.load_failures(), []);
    assert_eq!(served.core.resolve("m", "").unwrap().metadata().inputs[0].shape, [-1]);
}

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }";
const REPEAT: &str = "class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            sender = r.get_response_sender()
            for value in r.inputs()[0].as_numpy():
                if value == 7:
                    os._exit(1)
                if value == 8:
                    raise ValueError('eight')
                while value == 9 and not sender.is_cancelled():
                    pass
                if value == 5:
                    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError('five')))
                    continue
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.full(value, value, np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
";

/// All answers to a request: the values of each, or its error.
fn all(from: &Receiver<SinkAnswer>) -> Vec<Result<Vec<i32>, String>> {
    let mut found = Vec::new();
    loop {
        let answer = answer(from);
        match answer.result {
            Ok(None) => assert!(answer.is_final),
            Ok(Some(response)) => found.push(Ok(output(&response))),
            Err(error) => found.push(Err(error.message)),
        }
        if answer.is_final {
            return found;
        }
    }
}

#[test]
fn a_decoupled_model_answers_as_often_as_it_likes() {
    let config = format!("{ONE_IN_ONE_OUT} {DECOUPLED}");
    let Some(served) = serve(&[("m", &config, REPEAT)]) else { return };
    let core = &served.core;
    let run = |values: &[i32]| all(&send(core, request("m", &ints(values))));
    assert!(run(&[]).is_empty());
    let big = 100_000;
    let expected: Vec<_> =
        [1, 2, big].map(|value| Ok(vec![value; usize::try_from(value).unwrap()])).into();
    assert_eq!(run(&[1, 2, big]), expected);
    assert_eq!(run(&[1, 5, 2]), [Ok(vec![1]), Err("five".to_owned()), Ok(vec![2, 2])]);
    let raised = run(&[1, 8]);
    assert_eq!(raised[0], Ok(vec![1]));
    assert!(raised[1].as_ref().unwrap_err().contains("ValueError: eight"), "{raised:?}");
    let gone = run(&[3, 7]);
    assert!(gone[1].as_ref().unwrap_err().contains("is not healthy"), "{gone:?}");
    assert_eq!(run(&[1]), [Ok(vec![1])]);
    let cancelled = request("m", &ints(&[1, 9]));
    let token = cancelled.cancel.clone();
    let from = send(core, cancelled);
    assert!(answer(&from).result.is_ok());
    token.cancel();
    all(&from);
    assert_eq!(run(&[2]), [Ok(vec![2, 2])]);
    let stats = core.model_statistics(Some("m"), "").unwrap().remove(0).inference_stats;
    assert_eq!(stats.fail.count, 2);
}

#[test]
fn sequences_see_their_controls() {
    let config = "max_batch_size: 4 input { name: \"IN\" data_type: TYPE_INT32 dims: 1 } \
        output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 } sequence_batching { direct { } \
        control_input { name: \"START\" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } \
        control_input { name: \"READY\" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } } \
        control_input { name: \"CORRID\" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } }";
    let class = "class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        made = []
        for r in requests:
            of = lambda name: pb_utils.get_input_tensor_by_name(r, name).as_numpy()
            key, x = int(of('CORRID')[0, 0]), of('IN')
            if of('READY')[0, 0]:
                self.sums[key] = x[0, 0] + (0 if of('START')[0, 0] else self.sums[key])
            assert not of('READY')[0, 0] or key == r.correlation_id()
            made.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.full((1, 1), self.sums.get(key, 0), np.int32))]))
        return made
";
    let Some(served) = serve(&[("m", config, class)]) else { return };
    let run = |id, start, value: i32| {
        let tensor = Tensor::from_slice(&[1, 1], &[value]).unwrap();
        let correlation = CorrelationId::Uint(id);
        let given =
            InferenceRequest { correlation, sequence_start: start, ..request("m", &tensor) };
        output(&infer(&served.core, given).unwrap())
    };
    assert_eq!(
        [run(1, true, 5), run(2, true, 10), run(1, false, 6), run(2, false, 1)].concat(),
        [5, 10, 11, 11]
    );
}

const KEEPS: &str = "max_batch_size: 4 input { name: \"IN\" data_type: TYPE_INT32 dims: 1 } \
    output { name: \"OUT\" data_type: TYPE_INT32 dims: 1 } sequence_batching { oldest { max_candidate_sequences: 4 } \
    state { input_name: \"BEFORE\" output_name: \"AFTER\" data_type: TYPE_INT32 dims: 1 \
    initial_state { name: \"begin\" data_type: TYPE_INT32 dims: 1 zero_data: true } } }";

#[test]
fn the_server_keeps_states_of_sequences() {
    let class = "class TritonPythonModel:
    def execute(self, requests):
        made = []
        for r in requests:
            of = lambda name: pb_utils.get_input_tensor_by_name(r, name).as_numpy()
            now = of('BEFORE') + of('IN')
            rows = 2 if of('IN')[0, 0] < 0 else 1
            after = pb_utils.Tensor('AFTER', np.repeat(now, rows, axis=0))
            made.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', now), after]))
        return made
";
    let Some(served) = serve(&[("m", KEEPS, class)]) else { return };
    let run = |id, start, value: i32| {
        let tensor = Tensor::from_slice(&[1, 1], &[value]).unwrap();
        let correlation = CorrelationId::Uint(id);
        let given =
            InferenceRequest { correlation, sequence_start: start, ..request("m", &tensor) };
        infer(&served.core, given)
    };
    let sum = |id, start, value| {
        let response = run(id, start, value).unwrap();
        assert_eq!(response.outputs.len(), 1);
        output(&response)
    };
    assert_eq!(
        [sum(1, true, 5), sum(2, true, 10), sum(1, false, 6), sum(2, false, 1)].concat(),
        [5, 10, 11, 11]
    );
    let wrong = run(1, false, -1).unwrap_err().message;
    assert!(wrong.contains("state 'AFTER' has the shape [2, 1]"), "{wrong}");
    assert_eq!([sum(1, false, 1), sum(1, true, 1)].concat(), [12, 1]);
    // Requests of a sequence that wait together follow each other's states.
    let sent: Vec<_> = (0..50)
        .map(|at| {
            let tensor = Tensor::from_slice(&[1, 1], &[1]).unwrap();
            let correlation = CorrelationId::Uint(7);
            let given =
                InferenceRequest { correlation, sequence_start: at == 0, ..request("m", &tensor) };
            send(&served.core, given)
        })
        .collect();
    for (from, expected) in sent.iter().zip(1..) {
        let response = answer(from).result.unwrap().expect("a response");
        assert_eq!(output(&response), [expected]);
    }
}

#[test]
fn states_of_decoupled_models_are_refused() {
    let config = format!("model_transaction_policy {{ decoupled: true }} {KEEPS}");
    let class = "class TritonPythonModel:\n    def execute(self, requests):\n        return None\n";
    let Some(served) = serve(&[("m", &config, class)]) else { return };
    let error = &served.core.load_failures()[0].reason;
    assert!(error.contains("keep theirs themselves"), "{error}");
}

#[test]
fn requests_run_once_more_where_sequences_are_iterative() {
    let config = "input { name: \"IN\" data_type: TYPE_INT32 dims: -1 } \
        output { name: \"OUT\" data_type: TYPE_INT32 dims: -1 }";
    let iterative = "sequence_batching { iterative_sequence: true }";
    let class = "class TritonPythonModel:
    def initialize(self, args):
        self.left = None
        self.decoupled = 'decoupled\":true' in args['model_config'].replace(' ', '')

    def execute(self, requests):
        made = []
        for r in requests:
            value = int(r.inputs()[0].as_numpy()[0])
            self.left = value if self.left is None else self.left - 1
            if self.left > 0:
                r.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                made.append(None)
                if self.decoupled:
                    r.get_response_sender().send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([self.left], np.int32))]))
                continue
            self.left = None
            response = pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([100 + value], np.int32))])
            made.append(response)
            if self.decoupled:
                r.get_response_sender().send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None if self.decoupled else made
";
    let plain = format!("{config} {iterative}");
    let free = format!("{plain} {DECOUPLED}");
    let models = [("p", plain.as_str(), class), ("d", &free, class), ("none", config, class)];
    let Some(served) = serve(&models) else { return };
    let run = |model| {
        let (sequence_start, sequence_end) = (true, true);
        let given =
            InferenceRequest { sequence_start, sequence_end, ..request(model, &ints(&[3])) };
        all(&send(&served.core, given))
    };
    for _ in 0..2 {
        assert_eq!(run("p"), [Ok(vec![103])]);
        assert_eq!(run("d"), [Ok(vec![3]), Ok(vec![2]), Ok(vec![1]), Ok(vec![103])]);
    }
    let stats = |model| served.core.model_statistics(Some(model), "").unwrap().remove(0);
    for model in ["p", "d"] {
        let stats = stats(model);
        assert_eq!((stats.inference_stats.success.count, stats.execution_count), (2, 8), "{model}");
    }
    let refused = all(&send(&served.core, request("none", &ints(&[3]))));
    assert!(refused[0].as_ref().unwrap_err().contains("no iterative sequences"), "{refused:?}");
}

#[test]
fn a_worker_that_ends_while_nobody_asks_loses_nothing_and_is_followed_at_once() {
    let class = "import time
class TritonPythonModel:
    def initialize(self, args):
        self.folder = args['model_repository']
        with open(os.path.join(self.folder, 'starts'), 'a') as file:
            file.write(f'{os.getpid()}\\n')
        if os.path.exists(os.path.join(self.folder, 'refuse')):
            raise ValueError('not now')

    def execute(self, requests):
        pid = pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array([os.getpid()], np.int32))])
        if not os.path.exists(os.path.join(self.folder, 'decoupled')):
            return [pid]
        requests[0].get_response_sender().send(pid, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
";
    let free = format!("{ONE_IN_ONE_OUT} {DECOUPLED}");
    let models = [("p", ONE_IN_ONE_OUT, class), ("d", &free, class)];
    let Some(served) = serve(&models) else { return };
    fs::write(served.folder.path().join("d/decoupled"), "").unwrap();
    for model in ["p", "d"] {
        let folder = served.folder.path().join(model);
        let starts = || fs::read_to_string(folder.join("starts")).unwrap_or_default();
        let wait_for = |count: usize| {
            let deadline = std::time::Instant::now() + PATIENCE;
            while starts().lines().count() < count {
                assert!(std::time::Instant::now() < deadline, "{}", starts());
                std::thread::yield_now();
            }
        };
        let run = || infer(&served.core, request(model, &ints(&[0])));
        let first = output(&run().unwrap())[0];
        let kill = |pid: i32| Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        kill(first);
        wait_for(2);
        let second = output(&run().unwrap())[0];
        assert_ne!(second, first);
        // One that does not start any more: requests hear why at once, and starts are few.
        fs::write(folder.join("refuse"), "").unwrap();
        kill(second);
        wait_for(3);
        let deadline = std::time::Instant::now() + PATIENCE;
        let error = loop {
            match run() {
                Err(error) => break error.message,
                Ok(_) => assert!(std::time::Instant::now() < deadline),
            }
        };
        assert!(
            error.contains("is not healthy. It does not start: ValueError: not now"),
            "{error}"
        );
        for _ in 0..100 {
            run().unwrap_err();
        }
        assert!(starts().lines().count() < 20, "{}", starts());
        fs::remove_file(folder.join("refuse")).unwrap();
        while run().is_err() {
            assert!(std::time::Instant::now() < deadline, "it does not start again");
        }
        let stats = served.core.model_statistics(Some(model), "").unwrap().remove(0);
        assert_eq!(stats.inference_stats.success.count, 3);
    }
}

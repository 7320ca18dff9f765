//! Models in Python that call the server and other models.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_serving::backend::python::PythonBackend;
use galatea_serving::backend::{ModelBackend, builtin};
use galatea_serving::core::UnloadDependents;
use galatea_serving::trace::{RequestTrace, TraceEntry, TraceEvent, TraceLevel, TraceSink};
use galatea_serving::{Core, InferenceRequest, ServingError};

use crate::python;
use crate::python::{
    ONE_IN_ONE_OUT, PATIENCE, PythonModels, ints, python, response, send, write_model,
};

const HEAD: &str = "import os\nimport threading\nimport numpy as np\nimport galatea_calls\n\
    import triton_python_backend_utils as pb_utils\n\n";
/// A core with the models `(name, configuration, class)`; `None` without a Python.
fn serve(models: &[(&str, &str, &str)]) -> Option<PythonModels> {
    let python = python()?;
    let folder = tempfile::tempdir().unwrap();
    for (name, config, class) in models {
        let backend = if class.is_empty() { "" } else { "backend: \"python\" " };
        write_model(folder.path(), name, &format!("{backend}{config}"), &format!("{HEAD}{class}"));
    }
    let python_backend: Arc<dyn ModelBackend> = Arc::new(PythonBackend::default());
    let backends = std::iter::once(python_backend).chain(builtin::all()).collect();
    Some(PythonModels::start(folder, backends, &[("python-executable", python)]))
}

fn request(model: &str, values: &[i32]) -> InferenceRequest {
    python::request(model, &[("IN", &ints(values))])
}

fn infer(core: &Core, model: &str, values: &[i32]) -> Result<Vec<i32>, ServingError> {
    let response = response(&send(core, request(model, values)))?;
    Ok(response.outputs[0].tensor.to_vec().unwrap())
}

#[test]
fn a_model_calls_from_its_beginning_to_its_end_and_from_any_thread() {
    let class = "class TritonPythonModel:
    def initialize(self, args):
        print('on the way to the log')
        self.first = pb_utils.is_model_ready('none')

    def execute(self, requests):
        found = []
        def call(value):
            found.append((value, pb_utils.is_model_ready('m' if value % 2 else 'none')))
        threads = [threading.Thread(target=call, args=(value,)) for value in range(40)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        try:
            galatea_calls.call('nothing')
        except pb_utils.TritonModelException as error:
            assert \"'nothing' found\" in str(error) and error.code == pb_utils.TritonError.UNSUPPORTED
        out = np.array([self.first, sum(ready == bool(value % 2) for value, ready in found)], np.int32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', out)]) for r in requests]

    def finalize(self):
        with open(os.path.join(pb_utils.get_model_dir(), 'part'), 'w') as file:
            file.write(str(pb_utils.is_model_ready('none')))
        os.rename(file.name, os.path.join(pb_utils.get_model_dir(), 'finalized'))
";
    let Some(served) = serve(&[("m", ONE_IN_ONE_OUT, class)]) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [0, 40]);
    served.core.unload_model("m", UnloadDependents::Keep).unwrap();
    let finalized = served.folder.path().join("m/1/finalized");
    let deadline = Instant::now() + PATIENCE;
    while !finalized.exists() {
        assert!(Instant::now() < deadline, "finalize does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(fs::read_to_string(finalized).unwrap(), "False");
}

const IDENTITY: &str = "class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', r.inputs()[0].as_numpy())]) for r in requests]
";
const REPEAT: &str = "class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            sender = r.get_response_sender()
            for value in r.inputs()[0].as_numpy():
                while value == 9 and not sender.is_cancelled():
                    pass
                if value == 5:
                    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError('five', pb_utils.TritonError.NOT_FOUND)))
                    continue
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.full(value, value, np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
";
const DECOUPLED: &str = "model_transaction_policy { decoupled: true }";
/// Helpers of models that call.
const CALLS: &str = "def ask(model, array, outputs=('OUT',), **named):
    inputs = [pb_utils.Tensor('IN', np.asarray(array, np.int32) if not isinstance(array, np.ndarray) else array)]
    return pb_utils.InferenceRequest(model_name=model, inputs=inputs, requested_output_names=list(outputs), **named)


def out(response):
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, 'OUT').as_numpy()


def answer(requests, array):
    return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.asarray(array, np.int32))]) for r in requests]


";

fn calling(class: &str) -> String {
    format!("{CALLS}{class}")
}

#[test]
fn a_model_calls_others_with_tensors_of_all_sizes() {
    let caller = calling(
        "class TritonPythonModel:
    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        for size in (0, 1, 2048, 2049, 100000, 3000000):
            array = np.arange(size, dtype=np.int32)
            for _ in range(3):
                found = out(ask('other', array).exec())
                assert np.array_equal(found, array), size
                self.kept.append(found)
        for found in self.kept:
            assert np.array_equal(found, np.arange(found.size, dtype=np.int32))
        self.kept.clear()
        sizes = [out(ask('other', np.arange(50000, dtype=np.int32)).exec()).size for _ in range(30)]
        return answer(requests, sizes[:1])
",
    );
    let models = [("m", ONE_IN_ONE_OUT, caller.as_str()), ("other", ONE_IN_ONE_OUT, IDENTITY)];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [50000]);
    let stats = served.core.model_statistics(Some("other"), "").unwrap().remove(0);
    assert_eq!(stats.inference_stats.success.count, 48);
}

#[test]
fn errors_are_tritons() {
    let caller = calling(
        "class TritonPythonModel:
    def execute(self, requests):
        head = 'Error when running inference: '
        def failed(request, text, code=pb_utils.TritonError.INTERNAL):
            response = request.exec()
            assert response.has_error() and response.error().code() == code, response.error().message()
            assert text in response.error().message(), response.error().message()
        failed(ask('none', [1]), f\"Model none - {head}Failed for execute the inference request. Model 'none' is not ready.\")
        failed(ask('other', [1], model_version=7), \"Model 'other' is not ready.\")
        failed(ask('other', np.zeros(1)), f\"Model other - {head}[request id: <id_unknown>] inference input 'IN' data-type is 'FP64', but model 'other' expects 'INT32'\")
        failed(ask('other', [1], ['NO']), f\"Model other - {head}unexpected inference output 'NO' for model 'other'\")
        failed(ask('repeat', [1]), f\"Model repeat - {head}Model repeat is using the decoupled. The current BLS request call doesn't support models\")
        failed(ask('wrong', [1]), 'no such thing', pb_utils.TritonError.NOT_FOUND)
        for make, kind, text in [
            (lambda: pb_utils.InferenceRequest(inputs=[], requested_output_names=[]), TypeError, 'model_name'),
            (lambda: pb_utils.InferenceRequest(model_name='m', inputs=[]), TypeError, 'requested_output_names'),
            (lambda: ask('m', [1], ['']), pb_utils.TritonModelException, \"Requested output name for request with id '' and model name 'm' should not be empty.\"),
            (lambda: ask('m', [1], correlation_id=1.5), pb_utils.TritonModelException, 'Correlation ID must be integer or string'),
        ]:
            try:
                make()
            except kind as error:
                assert text in str(error), error
            else:
                assert False, text
        return answer(requests, [1])
",
    );
    let wrong = "class TritonPythonModel:
    def execute(self, requests):
        error = pb_utils.TritonError('no such thing', pb_utils.TritonError.NOT_FOUND)
        return [pb_utils.InferenceResponse(error=error) for r in requests]
";
    let decoupled = format!("{ONE_IN_ONE_OUT} {DECOUPLED}");
    let models = [
        ("m", ONE_IN_ONE_OUT, caller.as_str()),
        ("other", ONE_IN_ONE_OUT, IDENTITY),
        ("wrong", ONE_IN_ONE_OUT, wrong),
        ("repeat", &decoupled, REPEAT),
    ];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
}

#[test]
fn names_may_be_bytes_and_numbers_of_numpy() {
    let target = "class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            told = [r.timeout(), r.flags(), r.correlation_id(), len(r.request_id())]
            tensor = pb_utils.Tensor(b'OUT', np.array(told, np.int32))
            answers.append(pb_utils.InferenceResponse([tensor]))
        return answers
";
    let caller = "class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            assert pb_utils.get_input_tensor_by_name(r, b'IN') is r.inputs()[0]
            request = pb_utils.InferenceRequest(
                model_name=np.bytes_(b'target'), request_id=b'abc', inputs=r.inputs(),
                requested_output_names=[b'OUT'], timeout=np.int64(9000000), flags=np.int32(3),
                correlation_id=np.uint64(5), model_version=np.int8(-1), parameters={'seed': np.int64(7)})
            request.set_flags(np.int16(3))
            answer = request.exec()
            assert not answer.has_error(), answer.error().message()
            assert pb_utils.is_model_ready(b'target') and not pb_utils.is_model_ready(np.bytes_(b'none'), b'')
            found = pb_utils.get_output_tensor_by_name(answer, b'OUT').as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', found)]))
        for wrong in ({'flags': 1.5}, {'model_name': 3}, {'requested_output_names': [3]}, {'request_id': None}):
            try:
                pb_utils.InferenceRequest(**{'model_name': 'target', 'inputs': [], 'requested_output_names': [], **wrong})
            except TypeError as error:
                assert next(iter(wrong)) in str(error), error
            else:
                raise AssertionError(wrong)
        return answers
";
    let models = [("target", ONE_IN_ONE_OUT, target), ("caller", ONE_IN_ONE_OUT, caller)];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "caller", &[0]).unwrap(), [9_000_000, 3, 5, 3]);
}

#[test]
fn decoupled_models_and_coroutines() {
    let caller = calling(
        "import asyncio


class TritonPythonModel:
    async def execute(self, requests):
        def all(responses):
            return [r.error().message() if r.has_error() else [t.as_numpy().tolist() for t in r.output_tensors()] for r in responses]
        seen = all(ask('repeat', [1, 5, 2]).exec(decoupled=True))
        # As in Triton, the word alone that nothing more comes is a response without outputs.
        assert seen == [[[1]], 'five', [[2, 2]], []], seen
        assert all(ask('repeat', []).exec(decoupled=True)) == [[]]
        assert all(ask('other', [7]).exec(decoupled=True)) == [[[7]]]
        assert 'is not ready' in all(ask('none', [7]).exec(decoupled=True))[0]
        big = 100000
        sizes = [r.output_tensors()[0].as_numpy().size for r in ask('repeat', [big] * 20).exec(decoupled=True) if r.output_tensors()]
        assert sizes == [big] * 20
        found = await asyncio.gather(*(ask('other', [n]).async_exec() for n in range(30)))
        assert [out(one)[0] for one in found] == list(range(30))
        assert all(await ask('repeat', [3]).async_exec(decoupled=True)) == [[[3, 3, 3]], []]
        seen = [r async for r in await ask('repeat', [2, 1]).async_exec(decoupled=True)]
        assert all(seen) == [[[2, 2]], [[1]], []]
        responses = ask('repeat', [1, 9, 1]).exec(decoupled=True)
        next(responses)
        responses.cancel()
        list(responses)
        del responses
        dropped = ask('repeat', [1, 9, 1]).exec(decoupled=True)
        next(dropped)
        del dropped
        assert all(ask('repeat', [1]).exec(decoupled=True)) == [[[1]], []]
        return answer(requests, [1])
",
    );
    let decoupled = format!("{ONE_IN_ONE_OUT} {DECOUPLED}");
    let models = [
        ("m", ONE_IN_ONE_OUT, caller.as_str()),
        ("other", ONE_IN_ONE_OUT, IDENTITY),
        ("repeat", &decoupled, REPEAT),
    ];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
}

#[test]
fn hundreds_of_calls_at_once_do_not_wait_for_each_other() {
    // As large as tensors in messages are, so that both directions of the socket are full at once. What is built in
    // runs on the thread that reads the calls.
    let caller = calling(
        "import asyncio


class TritonPythonModel:
    async def execute(self, requests):
        array = np.arange(2048, dtype=np.int32)
        for model in ('other', 'inline', 'inline'):
            found = await asyncio.gather(*(ask(model, array + n).async_exec() for n in range(500)))
            assert all(np.array_equal(out(one), array + n) for n, one in enumerate(found))
        return answer(requests, [1])
",
    );
    let inline = format!("backend: \"identity\" {ONE_IN_ONE_OUT}");
    let models = [
        ("m", ONE_IN_ONE_OUT, caller.as_str()),
        ("other", ONE_IN_ONE_OUT, IDENTITY),
        ("inline", &inline, ""),
    ];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
}

#[test]
fn a_response_that_cannot_be_read_fails_alone() {
    let grow = "class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.arange(r.inputs()[0].as_numpy()[0], dtype=np.int32))]) for r in requests]
";
    let caller = calling(
        "import resource


class TritonPythonModel:
    def execute(self, requests):
        assert out(ask('grow', [10]).exec()).size == 10
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        for _ in range(3):
            # A block of memory needs a descriptor for a moment.
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
            response = ask('grow', [100000]).exec()
            small = ask('grow', [10]).exec()
            resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))
            assert 'Too many open files' in response.error().message(), response.error().message()
            assert out(small).size == 10
        for _ in range(3):
            assert np.array_equal(out(ask('grow', [100000]).exec()), np.arange(100000))
        return answer(requests, [1])
",
    );
    let models = [("m", ONE_IN_ONE_OUT, caller.as_str()), ("grow", ONE_IN_ONE_OUT, grow)];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
}

/// Answers its input plus one after it has asked the model that the environment names as often as the input says.
const RECURSE: &str = "class TritonPythonModel:
    def initialize(self, args):
        self.other = {'a': 'a', 'b': 'c', 'c': 'b', 'e': 'through'}[args['model_name']]

    def execute(self, requests):
        made = []
        for r in requests:
            left = int(r.inputs()[0].as_numpy()[0])
            depth = out(ask(self.other, [left - 1]).exec())[0] + 1 if left else 0
            made += answer([r], [depth])
        return made
";

#[test]
fn models_that_call_each_other_end_with_many_clients() {
    let recurse = calling(RECURSE);
    let ensemble = "platform: \"ensemble\" max_batch_size: 0 input { name: \"IN\" data_type: TYPE_INT32 dims: -1 } \
        output { name: \"OUT\" data_type: TYPE_INT32 dims: -1 } ensemble_scheduling { step { model_name: \"e\" \
        model_version: -1 input_map { key: \"IN\" value: \"IN\" } output_map { key: \"OUT\" value: \"OUT\" } } }";
    let models = [
        ("a", ONE_IN_ONE_OUT, recurse.as_str()),
        ("b", ONE_IN_ONE_OUT, recurse.as_str()),
        ("c", ONE_IN_ONE_OUT, recurse.as_str()),
        ("e", ONE_IN_ONE_OUT, recurse.as_str()),
        ("through", ensemble, ""),
    ];
    let Some(served) = serve(&models) else { return };
    let asked: Vec<_> = (0..12)
        .flat_map(|_| ["a", "b", "c", "e", "through"])
        .map(|model| send(&served.core, request(model, &[3])))
        .collect();
    for from in asked {
        let response = response(&from).unwrap();
        assert_eq!(response.outputs[0].tensor.to_vec::<i32>().unwrap(), [3]);
    }
    let error = infer(&served.core, "a", &[1000]).unwrap_err().message;
    assert!(error.contains("models call each other 17 deep"), "{error}");
    assert_eq!(infer(&served.core, "a", &[2]).unwrap(), [2]);
}

#[test]
fn models_load_and_unload_models() {
    let caller = calling(
        "class TritonPythonModel:
    def initialize(self, args):
        try:
            pb_utils.load_model(args['model_name'])
            assert False
        except pb_utils.TritonModelException as error:
            assert \"cannot be loaded while\" in str(error), error

    def execute(self, requests):
        assert pb_utils.is_model_ready('other') and pb_utils.is_model_ready(model_name='other', model_version='1')
        assert not pb_utils.is_model_ready('other', '9') and not pb_utils.is_model_ready('none')
        try:
            pb_utils.load_model('none')
            assert False
        except pb_utils.TritonModelException as error:
            assert \"Failed to load model: Failed to process the request for model 'm_0', message: failed to load 'none'\" in str(error), error
        config = '{\"backend\": \"python\", \"max_batch_size\": 0, \"input\": [{\"name\": \"IN\", \"data_type\": \"TYPE_INT32\", \"dims\": [-1]}], \"output\": [{\"name\": \"OUT\", \"data_type\": \"TYPE_INT32\", \"dims\": [-1]}]}'
        path = os.path.join(os.path.dirname(pb_utils.get_model_dir()), '..', 'other', '1', 'model.py')
        with open(path, 'rb') as file:
            pb_utils.load_model('new', files={'file:1/model.py': file.read()}, config=config)
        assert out(ask('new', [4]).exec()).tolist() == [4]
        pb_utils.unload_model('new')
        assert not pb_utils.is_model_ready('new')
        pb_utils.unload_model('m', unload_dependents=True)
        return answer(requests, [1])
",
    );
    let models = [("m", ONE_IN_ONE_OUT, caller.as_str()), ("other", ONE_IN_ONE_OUT, IDENTITY)];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
    assert!(!served.core.model_ready("m", "").unwrap());
}

/// What a trace holds: `(trace, model, parent)`.
type Began = (u64, String, Option<u64>);

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Began>>);

impl TraceSink for Kept {
    fn finished(&self, entries: Vec<TraceEntry>) {
        let began = entries.into_iter().filter_map(|entry| match entry.event {
            TraceEvent::Began { model, parent, .. } => Some((entry.trace, model, parent)),
            _ => None,
        });
        self.0.lock().unwrap().extend(began);
    }
}

#[test]
fn a_call_is_part_of_the_trace_that_it_is_given() {
    let caller = calling(
        "class TritonPythonModel:
    def execute(self, requests):
        assert requests[0].trace().get_context() is None
        out(ask('other', [1], trace=requests[0].trace()).exec())
        out(ask('other', [1]).exec())
        return answer(requests, [1])
",
    );
    let models = [("m", ONE_IN_ONE_OUT, caller.as_str()), ("other", ONE_IN_ONE_OUT, IDENTITY)];
    let Some(served) = serve(&models) else { return };
    let kept = Arc::new(Kept::default());
    let trace = RequestTrace::new(TraceLevel { timestamps: true, tensors: false }, kept.clone());
    let own = trace.id();
    let traced = InferenceRequest { trace: Some(trace), ..request("m", &[0]) };
    response(&send(&served.core, traced)).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while kept.0.lock().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "the trace does not end");
        std::thread::yield_now();
    }
    let began = kept.0.lock().unwrap();
    assert_eq!(began[0], (own, "m".to_owned(), None));
    assert_eq!((began[1].1.as_str(), began[1].2), ("other", Some(own)));
    assert_eq!(began.len(), 2);
}

#[test]
fn sequences_strings_and_parameters_reach_the_other_model() {
    let strings = "max_batch_size: 0 input { name: \"IN\" data_type: TYPE_STRING dims: -1 } \
        output { name: \"OUT\" data_type: TYPE_STRING dims: -1 }";
    let echo = "import json


class TritonPythonModel:
    def execute(self, requests):
        made = []
        for r in requests:
            said = json.dumps([r.request_id(), r.correlation_id(), r.flags(), json.loads(r.parameters())])
            array = np.append(r.inputs()[0].as_numpy(), np.array([said], dtype=object))
            made.append(pb_utils.InferenceResponse([pb_utils.Tensor('OUT', array)], parameters={'kept': 3}))
        return made
";
    let halves = "max_batch_size: 0 input { name: \"IN\" data_type: TYPE_BF16 dims: -1 } \
        output { name: \"OUT\" data_type: TYPE_BF16 dims: -1 }";
    let same = "class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack('OUT', r.inputs()[0].to_dlpack())]) for r in requests]
";
    let caller = calling(
        "import json


class TritonPythonModel:
    def execute(self, requests):
        for long in (b'x', b'y' * 20000):
            array = np.array([b'', b'\\xff\\x00', long], dtype=object)
            response = ask('strings', array, request_id='id', correlation_id='s', flags=3, parameters={'a': 1, 'b': 'x', 'c': True}).exec()
            *same, said = out(response).tolist()
            assert same == array.tolist()
            assert json.loads(said) == ['id', 's', 3, {'a': 1, 'b': 'x', 'c': True}], said
            assert json.loads(response.parameters()) == {'kept': 3}
        half = pb_utils.Tensor('IN', np.array([0x3f80, 0x4000], np.uint16))
        half._number = 12
        request = pb_utils.InferenceRequest(model_name='halves', inputs=[half], requested_output_names=['OUT'])
        found = request.exec()
        assert not found.has_error(), found.error().message()
        assert found.output_tensors()[0].triton_dtype() == half.triton_dtype()
        assert found.output_tensors()[0]._array.tolist() == [0x3f80, 0x4000]
        return answer(requests, [1])
",
    );
    let models = [
        ("m", ONE_IN_ONE_OUT, caller.as_str()),
        ("strings", strings, echo),
        ("halves", halves, same),
    ];
    let Some(served) = serve(&models) else { return };
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
}

#[test]
fn requests_of_a_worker_that_ends_are_cancelled() {
    let caller = calling(
        "class TritonPythonModel:
    def execute(self, requests):
        if requests[0].inputs()[0].as_numpy()[0] == 0:
            return answer(requests, [1])
        responses = ask('repeat', [1, 9]).exec(decoupled=True)
        next(responses)
        os._exit(1)
",
    );
    let decoupled = format!("{ONE_IN_ONE_OUT} {DECOUPLED}");
    let models = [("m", ONE_IN_ONE_OUT, caller.as_str()), ("repeat", &decoupled, REPEAT)];
    let Some(served) = serve(&models) else { return };
    for _ in 0..3 {
        assert!(infer(&served.core, "m", &[1]).unwrap_err().message.contains("is not healthy"));
    }
    assert_eq!(infer(&served.core, "m", &[0]).unwrap(), [1]);
    // It has one instance, which looks for nothing but that its client has gone.
    assert_eq!(infer(&served.core, "repeat", &[1]).unwrap(), [1]);
}

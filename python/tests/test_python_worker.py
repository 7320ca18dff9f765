"""The worker of Python models, driven as the server drives it."""

import json
import os
import subprocess
import sys
import threading
import uuid
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import worker_driver
from worker_driver import Driver, Ended, blocks, wire

from galatea_tensors import BF16

HEAD = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\n"
OUT = {"output": [{"name": "OUT"}, {"name": "SEEN"}]}
IDENTITY = HEAD + """class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests
        ]
"""


def model(body):
    return HEAD + "class TritonPythonModel:\n" + body


@pytest.fixture
def drive(tmp_path):
    drivers = []

    def start(source, config=OUT, **named):
        drivers.append(Driver(tmp_path / str(len(drivers)), source, config, **named))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.process.kill()
        driver.stop()


def all_arrays():
    for dtype in worker_driver.STORAGE[:12]:
        yield (np.arange(6) % 2).astype(dtype).reshape(2, 3)


@pytest.mark.parametrize("large", [False, True])
def test_every_type_comes_back_as_it_went(drive, large):
    worker = drive(IDENTITY)
    assert worker.started[0] == wire.READY
    for array in all_arrays():
        if large:
            array = np.tile(array, (5000, 1))
        ((flags, error, outputs),) = worker.run({"inputs": {"IN": array}})
        assert flags == wire.FINAL | wire.HAS_RESPONSE and error is None
        place, found = outputs["OUT"]
        assert place == (wire.SERVERS if large else wire.INLINE)
        assert found.dtype == array.dtype and np.array_equal(found, array)
    # One for each size that came.
    assert len(worker.given) <= 4


def test_a_batch_of_all_sizes_and_shapes_comes_back(drive):
    worker = drive(IDENTITY)
    shapes = [(0,), (), (1,), (3, 0, 2), (4096,), (1 << 20,), (7, 9, 11)]
    arrays = [np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in shapes]
    found = worker.run(*({"inputs": {"IN": array}} for array in arrays))
    for array, (_, _, outputs) in zip(arrays, found):
        assert np.array_equal(outputs["OUT"][1], array) and outputs["OUT"][1].shape == array.shape


def claimed(shape, data, dtype=np.float32):
    """An input whose message says a shape that its bytes need not have."""
    return SimpleNamespace(
        dtype=np.dtype(dtype), ndim=len(shape), shape=shape, nbytes=len(data), tobytes=lambda: data
    )


@pytest.mark.parametrize(
    "shape,data",
    [
        ((1, 2), b""),
        ((2, 2), bytes(8)),
        ((0, 2), bytes(8)),
        ((-1, 2), bytes(8)),
        ((1 << 62, 4), b""),
        ((1 << 32, 1 << 32), bytes(8)),
        ((3000,), bytes(9000)),
        ((1, 2), bytes(9000)),
    ],
)
def test_bytes_that_are_not_those_of_the_shape_fail_an_execution_and_nothing_else(drive, shape, data):
    worker = drive(IDENTITY)
    neighbour = np.full((1, 2), 7, np.float32)
    found = worker.run({"inputs": {"IN": claimed(shape, data)}}, {"inputs": {"IN": neighbour}})
    assert isinstance(found, str) and "tensor 'IN'" in found
    ((_, error, outputs),) = worker.run({"inputs": {"IN": neighbour}})
    assert error is None and np.array_equal(outputs["OUT"][1], neighbour)
    # A block that was read in vain is free again.
    assert not any(worker.flags.map[number] for number in worker.given)


def test_a_message_that_ends_too_early_fails_its_execution(drive):
    worker = drive(IDENTITY)
    send = worker.send
    for cut in (40, 60, 80):
        worker.send = lambda message, cut=cut: send(message[:cut])
        assert isinstance(worker.run({"inputs": {"IN": np.zeros(3, np.float32)}}), str)
    worker.send = send
    ((_, error, _),) = worker.run({"inputs": {"IN": np.zeros(3, np.float32)}})
    assert error is None


def test_strings_are_counted_before_they_are_handed_out():
    from galatea_tensors import BYTES, Tensor, TritonModelException

    two = np.frombuffer(worker_driver.encode_strings(np.array([b"a", b"b"], dtype=object)), dtype=np.uint8)
    for shape in ((3,), (1,), (0,), (2, 2)):
        with pytest.raises(TritonModelException):
            Tensor._received("IN", BYTES, shape, two, 0, two.nbytes).as_numpy()
    assert Tensor._received("IN", BYTES, (1, 2), two, 0, two.nbytes).as_numpy().tolist() == [[b"a", b"b"]]


def test_strings_come_back(drive):
    worker = drive(IDENTITY)
    for strings in ([b"", b"\xff\x00a", "é".encode()], [b"x" * 9000, b"y"]):
        array = np.array(strings, dtype=object)
        ((_, _, outputs),) = worker.run({"inputs": {"IN": array}})
        assert outputs["OUT"][1] == worker_driver.encode_strings(array)


def test_results_that_are_new_go_through_the_workers_blocks_which_are_used_again(drive):
    body = """    def execute(self, requests):
        tensors = [r.inputs()[0].as_numpy() for r in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", (x + 1).T)]) for x in tensors]
"""
    worker = drive(model(body))
    for _ in range(20):
        array = np.random.default_rng(2).standard_normal((100, 300))
        ((_, _, outputs),) = worker.run({"inputs": {"IN": array}})
        assert outputs["OUT"][0] == wire.WORKERS and np.array_equal(outputs["OUT"][1], (array + 1).T)
    assert len(worker.theirs) == 1 and len(worker.given) == 1


def test_a_block_is_not_used_again_while_the_model_holds_a_view(drive):
    body = """    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        self.kept.append(x[5:])
        total = sum(int(one.sum()) for one in self.kept)
        if len(self.kept) == 3:
            self.kept.clear()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x), pb_utils.Tensor("SEEN", np.array([total]))])]
"""
    worker = drive(model(body))
    ones = np.ones(10005, np.int64)
    places = []
    for wanted in (10000, 30000, 60000):
        array = ones * {10000: 1, 30000: 2, 60000: 3}[wanted]
        ((_, _, outputs),) = worker.run({"inputs": {"IN": array}})
        assert outputs["SEEN"][1].tolist() == [wanted]
        assert np.array_equal(outputs["OUT"][1], array)
        places.append(outputs["OUT"][0])
    # What the model still has is copied; at the end it has nothing.
    assert places == [wire.WORKERS, wire.WORKERS, wire.SERVERS]
    assert len(worker.given) == 3
    worker.run({"inputs": {"IN": ones}})
    assert len(worker.given) == 3


def test_requests_tell_what_the_client_said(drive):
    body = """    def execute(self, requests):
        r = requests[0]
        seen = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters()]
        seen += [sorted(r.requested_output_names()), r.is_cancelled(), r.trace().get_context()]
        seen += [pb_utils.get_input_tensor_by_name(r, "none")]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([repr(seen)], dtype=object))])]
"""
    worker = drive(model(body))
    ((_, _, outputs),) = worker.run({"inputs": {}})
    assert b"'{}'" in outputs["SEEN"][1]
    request = {"inputs": {}, "id": "r1", "correlation": "é", "flags": 3, "parameters": '{"a": 1}', "slot": 7}
    worker.flags.map[worker_driver.blocks.SLOTS + 7] = 1
    ((_, _, outputs),) = worker.run(request)
    text = outputs["SEEN"][1][4:].decode()
    assert text == repr(["r1", "é", 3, 0, '{"a": 1}', ["OUT", "SEEN"], True, None, None])
    # What is not wanted does not come.
    ((_, _, outputs),) = worker.run({**request, "wanted": ["OUT"]})
    assert outputs == {}


def test_errors_have_the_texts_of_triton(drive):
    body = """    def execute(self, requests):
        mode = int(requests[0].inputs()[0].as_numpy()[0])
        if mode == 0:
            raise pb_utils.TritonModelException("on purpose")
        if mode == 1:
            return []
        if mode == 2:
            return 5
        if mode == 3:
            return [5 for r in requests]
        if mode == 4:
            error = pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)
            return [pb_utils.InferenceResponse(error=error)]
        requests[0].exec()
"""
    worker = drive(model(body))

    def run(mode):
        return worker.run({"inputs": {"IN": np.array([mode], np.int32)}})

    text = run(0)
    assert text.startswith("TritonModelException: on purpose\n\nAt:\n  /") and text.endswith("model.py(9): execute\n")
    assert run(1).startswith("Number of InferenceResponse objects do not match")
    assert run(2) == "Expected a list in the execute return, found type '<class 'int'>'."
    assert run(3).startswith("Expected an 'InferenceResponse' object") and "'<class 'int'>'" in run(3)
    ((_, error, _),) = run(4)
    assert error == (2, "no")
    assert "no server that it can call" in run(5)
    assert run(4)[0][1] == (2, "no")


@pytest.mark.parametrize("word", ["def", "async def"])
def test_what_would_end_a_program_ends_an_execution_alone(drive, word):
    body = f"""    {word} execute(self, requests):
        mode = int(requests[0].inputs()[0].as_numpy()[0])
        if mode == 0:
            raise SystemExit(2)
        if mode == 1:
            raise KeyboardInterrupt
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([mode]))])]
"""
    worker = drive(model(body))

    def run(mode):
        return worker.run({"inputs": {"IN": np.array([mode], np.int32)}})

    for _ in range(2):
        for mode, text in ((0, "SystemExit: 2"), (1, "KeyboardInterrupt: <EMPTY MESSAGE>")):
            found = run(mode)
            assert found.startswith(f"{text}\n\nAt:\n") and found.count("\n  /") == 1, found
    ((_, _, tensors),) = run(7)
    assert tensors["OUT"][1].tolist() == [7]


def test_strings_and_parts_of_arrays_are_as_they_were_when_their_tensor_was_made(drive):
    body = """    def initialize(self, args):
        self.text, self.row = np.empty(1, object), np.zeros(4, np.int32)

    def execute(self, requests):
        responses = []
        for request in requests:
            value = request.inputs()[0].as_numpy()[0]
            self.text[0], self.row[:] = f"label {value}", value
            outputs = [pb_utils.Tensor("TEXT", self.text), pb_utils.Tensor("ROW", self.row[::2])]
            responses.append(pb_utils.InferenceResponse(outputs))
        return responses
"""
    worker = drive(model(body), {"output": [{"name": "TEXT"}, {"name": "ROW"}]})
    found = worker.run(*({"inputs": {"IN": np.array([value], np.int32)}} for value in range(3)))
    for value, (_, _, tensors) in enumerate(found):
        text = f"label {value}".encode()
        assert tensors["TEXT"][1] == len(text).to_bytes(4, "little") + text
        assert tensors["ROW"][1].tolist() == [value, value]


def test_a_model_that_does_not_load_says_why(drive):
    worker = drive(model("    pass\n"))
    assert worker.started[0] == wire.FAILED
    assert worker.started[1:] == b"'TritonPythonModel' of model 'm' has no function 'execute'"
    body = "    def initialize(self, args):\n        raise ValueError('not today')\n\n    def execute(self, r): ...\n"
    text = drive(model(body)).started[1:].decode()
    assert text.startswith("ValueError: not today\n\nAt:\n") and text.endswith("model.py(7): initialize\n")
    refused = drive("def").started
    # Where files are read from is no place in the model.
    assert b"SyntaxError" in refused and b"At:" not in refused
    assert b"has no attribute 'TritonPythonModel'" in drive("x = 1\n").started


def test_a_configuration_is_completed(drive):
    body = """    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [-1]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        config.set_model_transaction_policy({"decoupled": True})
        return config
"""
    worker = drive(model(body), {"max_batch_size": 0}, complete=True)
    assert worker.started[0] == wire.CONFIG
    config = worker_driver.json.loads(worker.started[1:])
    assert config["input"] == [{"name": "A", "data_type": "TYPE_FP32", "dims": [-1]}]
    assert config["max_batch_size"] == 8 and config["dynamic_batching"] == {}
    assert config["model_transaction_policy"] == {"decoupled": True}
    refused = drive(model(body), {"input": [{"name": "A", "data_type": "TYPE_INT8", "dims": [-1]}]}, complete=True)
    assert b"configuration expects datatype TYPE_INT8 for input 'A', model provides TYPE_FP32" in refused.started


def test_what_contradicts_the_configuration_is_refused_with_the_texts_of_triton():
    import triton_python_backend_utils as pb_utils

    tensor = {"name": "A", "data_type": "TYPE_INT8", "dims": [2]}
    written = {"name": "m", "max_batch_size": 4, "input": [{**tensor, "optional": False}], "output": [tensor]}
    written.update(sequence_batching={}, model_transaction_policy={"decoupled": False})
    config = pb_utils.ModelConfig(json.dumps(written))
    where = "auto-complete-config function for model 'm'"
    for call, given, text in (
        ("add_input", {**tensor, "x": 1}, "other than 'name', 'data_type', 'dims' and 'optional'."),
        ("add_output", {**tensor, "optional": True}, f"output 'A' in {where} contains property other than 'name', "
         "'data_type' and 'dims'."),
        ("add_input", {"name": "A"}, f"input 'A' in {where} is missing 'data_type' property."),
        ("add_output", {**tensor, "data_type": "TYPE_FP32"}, "unable to load model 'm', configuration expects datatype "
         "TYPE_INT8 for output 'A', model provides TYPE_FP32"),
        ("add_input", {**tensor, "dims": [3]}, "model 'm', tensor 'A': the model expects dims [3] but the model "
         "configuration specifies dims [2]"),
        ("add_input", {**tensor, "optional": True}, "model 'm', tensor 'A': the model expects optional True but the "
         "model configuration specifies optional False"),
        ("set_max_batch_size", 2, f"configuration specified max_batch_size 4, but in {where} specified max_batch_size "
         "2"),
        ("set_model_transaction_policy", {"decoupled": True}, "trying to change decoupled property in "
         "auto-complete-config for model 'm', which is already set to 'False'."),
        ("set_dynamic_batching", None, "Configuration specified scheduling_choice as 'sequence_batching', but "
         f"{where} tries to set scheduling_choice as 'dynamic_batching'"),
    ):
        with pytest.raises(ValueError) as caught:
            getattr(config, call)(*([] if given is None else [given]))
        assert str(caught.value).endswith(text)
    config.add_input(tensor)
    config.set_model_transaction_policy({})
    assert config.as_dict() == written


DECOUPLED = {**OUT, "model_transaction_policy": {"decoupled": True}}


def test_a_decoupled_model_answers_from_a_thread_and_holds_its_request(drive):
    body = """    def execute(self, requests):
        import threading
        threading.Thread(target=self.answer, args=(requests[0],)).start()

    def answer(self, request):
        sender = request.get_response_sender()
        x = request.inputs()[0].as_numpy()
        for at in range(3):
            x[:] = at
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        try:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        except pb_utils.TritonModelException as error:
            pb_utils.Logger.log_info(f"{error}\\nagain")
"""
    worker = drive(model(body), DECOUPLED)
    (number,) = worker.execute([{"inputs": {"IN": np.zeros(5000, np.int64)}}])
    seen = []
    flags = 0
    done = 0
    while not flags & wire.FINAL or not done:
        kind, found = worker.answers()
        if kind == wire.DONE:
            done += 1
            continue
        flags, error, outputs = found[number]
        assert error is None
        seen += [set(outputs["OUT"][1].tolist())] if outputs else []
    assert seen == [{0}, {1}, {2}]
    assert worker.stop() == (0, "\x1eIUnable to send response. Response sender has been closed.\\nagain\n")


def test_coroutines_of_a_decoupled_model_run_side_by_side(drive):
    body = """    async def execute(self, requests):
        import asyncio
        self.waiting = getattr(self, "waiting", 0) + 1
        while self.waiting < 2:
            await asyncio.sleep(0.001)
        for r in requests:
            if r.request_id() == "bad":
                raise ValueError("in a coroutine")
            r.get_response_sender().send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    worker = drive(model(body), DECOUPLED)
    numbers = [worker.execute([{"inputs": {}, "id": name}])[0] for name in ("good", "bad")]
    answered = {}
    while len(answered) < 2:
        kind, found = worker.answers()
        answered.update(found if kind == wire.RESPONSE else {})
    assert answered[numbers[0]] == (wire.FINAL, None, {})
    assert answered[numbers[1]][1][1].startswith("ValueError: in a coroutine")


def test_a_plain_model_may_use_senders_and_coroutines(drive):
    body = """    async def execute(self, requests):
        for r in requests:
            x = r.inputs()[0].as_numpy()
            response = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x)])
            r.get_response_sender().send(response, pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    worker = drive(model(body))
    (number,) = worker.execute([{"inputs": {"IN": np.arange(3)}}])
    kind, found = worker.answers()
    assert kind == wire.RESPONSE and found[number][2]["OUT"][1].tolist() == [0, 1, 2]
    assert worker.answers() == (wire.DONE, {})


def test_a_plain_model_says_after_its_response_that_nothing_more_comes(drive):
    body = """    def execute(self, requests):
        sender = requests[0].get_response_sender()
        tensor = pb_utils.Tensor("OUT", np.array([7]))
        refused = []
        response = pb_utils.InferenceResponse([tensor])
        for given in ((None, 1), (response, 0), (response, 0), (response, 1), (None, 1), (None, 1)):
            try:
                sender.send(*given)
            except pb_utils.TritonModelException as error:
                refused.append(str(error))
        pb_utils.Logger.log_info("|".join(refused))
"""
    worker = drive(model(body))
    (number,) = worker.execute([{"inputs": {}}])
    kind, found = worker.answers()
    flags, error, outputs = found[number]
    assert (kind, flags, error) == (wire.RESPONSE, wire.HAS_RESPONSE, None)
    assert outputs["OUT"][1].tolist() == [7]
    assert worker.answers() == (wire.RESPONSE, {number: (wire.FINAL, None, {})})
    assert worker.answers() == (wire.DONE, {})
    many = "Unable to send response. Non-decoupled model cannot send more than one response."
    early = "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
    closed = "Unable to send response. Response sender has been closed."
    assert worker.stop()[1] == "\x1eI" + "|".join([early, many, many, closed]) + "\n"


def test_a_model_that_exits_ends_the_worker(drive):
    worker = drive(model("    def execute(self, requests):\n        import os\n        os._exit(3)\n"))
    with pytest.raises(Ended):
        worker.run({"inputs": {}})
    assert worker.process.wait() == 3


def test_a_worker_ends_with_its_server_and_finalizes(drive):
    worker = drive(model("    def execute(self, r): ...\n\n    def finalize(self):\n        raise SystemExit(7)\n"))
    worker.socket.close()
    assert worker.process.wait(timeout=30) == 7


def test_dlpack_goes_both_ways(drive):
    body = """    def execute(self, requests):
        made = []
        for r in requests:
            x = r.inputs()[0]
            if r.request_id() == "numpy":
                made.append(pb_utils.Tensor.from_dlpack("OUT", np.from_dlpack(x)))
            else:
                made.append(pb_utils.Tensor.from_dlpack("OUT", x.to_dlpack()))
        return [pb_utils.InferenceResponse([one]) for one in made]
"""
    worker = drive(model(body))
    for array in (np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(20000), np.zeros((0, 2), np.int8)):
        # NumPy before 1.23 takes nothing of others.
        for name in ("numpy", "capsule") if hasattr(np, "from_dlpack") else ("capsule",):
            ((_, _, outputs),) = worker.run({"inputs": {"IN": array}, "id": name})
            assert np.array_equal(outputs["OUT"][1], array), name
    # Nothing keeps the memory.
    assert len(worker.given) == 1


def test_helpers_know_types_and_strings():
    import triton_python_backend_utils as pb_utils

    assert pb_utils.triton_string_to_numpy("TYPE_FP16") is np.float16
    assert pb_utils.triton_to_numpy_type(13) is np.object_
    assert pb_utils.numpy_to_triton_type(np.int64) == 9
    strings = np.array([b"a", "é", 5], dtype=object)
    assert pb_utils.triton_string_to_numpy("TYPE_BOOL") is pb_utils.TRITON_STRING_TO_NUMPY["TYPE_BOOL"] is bool
    for number in (0, 14, 15):
        assert pb_utils.triton_to_numpy_type(number) is None
    for kind in (None, np.complex64, "no", 5):
        assert pb_utils.numpy_to_triton_type(kind) is None
    with pytest.raises(KeyError):
        pb_utils.triton_string_to_numpy("TYPE_BF16")
    encoded = pb_utils.serialize_byte_tensor(strings)
    assert type(encoded) is bytes and len(encoded) == 16
    assert pb_utils.deserialize_bytes_tensor(encoded).tolist() == [b"a", "é".encode(), b"5"]
    assert len(pb_utils.serialize_byte_tensor(strings[:0])) == 0
    assert pb_utils.serialize_byte_tensor(np.zeros(1)) is None
    for cut in (b"\x01", b"\x05\x00\x00\x00ab"):
        with pytest.raises(pb_utils.TritonModelException):
            pb_utils.deserialize_bytes_tensor(cut)
    with pytest.raises(pb_utils.TritonModelException):
        pb_utils.Tensor("x", np.zeros(1, np.complex64))
    with pytest.raises(pb_utils.TritonModelException):
        pb_utils.Tensor("", np.zeros(1))
    with pytest.raises(TypeError):
        pb_utils.Tensor("x", [1])
    config = {"input": [{"name": "a", "dims": [1]}], "model_transaction_policy": {"decoupled": True}}
    assert pb_utils.get_input_config_by_name(config, "a")["dims"] == [1]
    assert pb_utils.get_output_config_by_name(config, "a") is None
    assert pb_utils.using_decoupled_model_transaction_policy(config)


def test_names_and_numbers_are_those_of_triton():
    import c_python_backend_utils as stub
    import triton_python_backend_utils as pb_utils

    assert stub.InferenceRequest is pb_utils.InferenceRequest and stub.Tensor is pb_utils.Tensor
    assert (pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL, pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) == (1, 2)
    pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 0)
    assert pb_utils.TRITONSERVER_MEMORY_CPU.name == "TRITONSERVER_MEMORY_CPU"
    assert pb_utils.MetricFamily.HISTOGRAM is pb_utils.MetricKind.HISTOGRAM
    assert pb_utils.Logger.VERBOSE is pb_utils.Logger.LogLevel.VERBOSE
    assert pb_utils.TritonError("x", pb_utils.TritonError.NOT_FOUND).code().name == "NOT_FOUND"
    assert hasattr(pb_utils.ResponseIterator, "__next__")
    failed = pb_utils.InferenceResponse([pb_utils.Tensor("A", np.zeros(1))], pb_utils.TritonError("x"))
    assert pb_utils.get_output_tensor_by_name(failed, "B") is None
    assert pb_utils.InferenceResponse([]).parameters() == "{}"


def test_load_model_takes_its_arguments_in_the_order_of_triton(monkeypatch):
    import galatea_calls
    import triton_python_backend_utils as pb_utils

    asked = []

    def call(name, files, **fields):
        read = {key: open(place).read() for key, place in files.items()}
        asked.append((name, fields["model"], fields.get("config"), read))

    monkeypatch.setattr(galatea_calls, "call", call)
    pb_utils.load_model("m")
    pb_utils.load_model("m", "{}", {"file:1/model.py": b"x"})
    assert asked == [("load_model", "m", None, {}), ("load_model", "m", "{}", {"1/model.py": "x"})]
    with pytest.raises(TypeError):
        pb_utils.load_model("m", {"file:1/model.py": b"x"})


class Used:
    """A block that is looked at by one thread while another does something."""

    def __init__(self, during):
        self.during = during

    def is_viewed(self):
        during, self.during = self.during, None
        if during is None:
            return True
        other = threading.Thread(target=during, daemon=True)
        other.start()
        # It waits for a lock, or has done all that it does.
        other.join(0.2)
        return False


def test_blocks_are_given_back_once_whatever_other_threads_do():
    class Flags(dict):
        cleared = 0

        def __setitem__(self, number, flag):
            self.cleared += number == 1

    ours = blocks.Blocks.__new__(blocks.Blocks)
    driver = blocks.Block(0, f"/gt{uuid.uuid4().hex[:8]}f", blocks.FLAGS, True)
    ours.__init__(driver.name, "", 0)
    worker_driver.unlink(driver.name)
    for during in (ours.release_held, lambda: ours.release(2), lambda: ours.close(3)):
        ours.flags = Flags()
        ours._given = {1: Used(None), 2: Used(None), 3: Used(None)}
        for number in (1, 3):
            ours.release(number)
        ours._given[1].during = during
        ours.release_held()
        assert ours.flags.cleared == 1 and 1 not in ours._held


def test_a_block_that_cannot_be_made_leaves_no_name(monkeypatch):
    name = f"/gt{uuid.uuid4().hex[:8]}"

    def refuse(*_, **__):
        raise OSError("no room")

    monkeypatch.setattr(blocks.os, "ftruncate", refuse)
    with pytest.raises(OSError, match="no room"):
        blocks.Block(1, name, 65536, True)
    with pytest.raises(FileNotFoundError):
        blocks.Block(1, name, 65536, False)


def test_blocks_are_made_without_the_module_of_shared_memory():
    name = f"/gt{uuid.uuid4().hex[:8]}"
    code = f"""
import os, sys
sys.modules["_posixshmem"] = None
sys.path.insert(0, {str(worker_driver.BACKEND)!r})
import galatea_blocks as blocks
os.umask(0)
made = blocks.Block(1, {name!r}, 65536, True)
made.root[:] = 7
fd = blocks.shm_open({name!r}, os.O_RDWR)
assert os.fstat(fd).st_mode & 0o777 == 0o600
assert blocks.Block(1, {name!r}, 65536, False).root[-1] == 7
blocks.shm_unlink({name!r})
try:
    blocks.Block(1, {name!r}, 65536, False)
except FileNotFoundError:
    print("gone")
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "gone\n"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="mappings keep descriptors of their own")
def test_blocks_keep_no_descriptors():
    before = len(os.listdir("/dev/fd"))
    name = f"/gt{uuid.uuid4().hex[:8]}"
    made = blocks.Block(1, name, 65536, True)
    worker_driver.unlink(name)
    assert len(os.listdir("/dev/fd")) == before and made.map


HAS_DLPACK = pytest.mark.skipif(not hasattr(np.ndarray, "__dlpack__"), reason="NumPy before 1.22 has no DLPack")


class Traced(np.ndarray):
    """An array that can be asked whether it has gone."""


@HAS_DLPACK
def test_an_exception_stays_when_a_capsule_goes_with_it():
    import triton_python_backend_utils as pb_utils

    for dtype in (np.float32, np.bool_):
        array = np.zeros(3, dtype).view(Traced)
        gone = weakref.ref(array)
        tensor = pb_utils.Tensor("x", array)
        with pytest.raises(TypeError, match="PyCapsule"):
            int(tensor.to_dlpack())
        del array, tensor
        assert gone() is None


def test_a_capsule_is_taken_once_and_its_memory_given_back_once():
    import triton_python_backend_utils as pb_utils

    for array in (np.arange(6).reshape(2, 3), np.zeros((0, 2), np.int8)):
        array = array.view(Traced)
        gone = weakref.ref(array)
        capsule = pb_utils.Tensor("x", array).to_dlpack()
        taken = pb_utils.Tensor.from_dlpack("x", capsule)
        assert np.array_equal(taken.as_numpy(), array) and "used_dltensor" in repr(capsule)
        with pytest.raises(pb_utils.TritonModelException, match="no unused capsule"):
            pb_utils.Tensor.from_dlpack("y", capsule)
        del capsule, array
        assert taken.shape()[0] == 0 or gone() is not None
        del taken
        assert gone() is None


def test_what_a_capsule_held_may_go_while_an_exception_is_on_its_way():
    import triton_python_backend_utils as pb_utils

    array = np.zeros(3).view(Traced)
    gone = weakref.ref(array)
    with pytest.raises(TypeError, match="argument must be"):
        int(pb_utils.Tensor.from_dlpack("x", pb_utils.Tensor("x", array).to_dlpack()))
    del array
    assert gone() is None


def test_arrays_of_all_kinds_are_exported():
    import triton_python_backend_utils as pb_utils

    fixed = np.arange(4)
    fixed.setflags(write=False)
    big = np.arange(3, dtype=">i4")
    for array in (fixed, big, np.array([True, False]), np.arange(12).reshape(3, 4)[:, ::2], np.array(5.0)):
        found = pb_utils.Tensor.from_dlpack("y", pb_utils.Tensor("x", array).to_dlpack())
        assert np.array_equal(found.as_numpy(), array) and found.as_numpy().dtype == array.dtype.newbyteorder("=")
    if hasattr(np, "from_dlpack"):
        assert np.from_dlpack(pb_utils.Tensor("x", big)).tolist() == [0, 1, 2]
    array = np.arange(3)
    copy = pb_utils.Tensor.from_dlpack("y", pb_utils.Tensor("x", array).__dlpack__(copy=True))
    array[:] = 7
    assert copy.as_numpy().tolist() == [0, 1, 2]
    # Numbers of 16 bits that NumPy does not have.
    tensor = pb_utils.Tensor("x", np.arange(3, dtype=np.uint16))
    tensor._number = BF16
    found = pb_utils.Tensor.from_dlpack("y", tensor.to_dlpack())
    assert found.triton_dtype() == 14 and found._parts()[2].tolist() == [0, 1, 2]


def test_requests_that_cannot_be_joined_run_alone():
    import galatea_pytorch

    def refuse(values):
        raise RuntimeError("out of memory")

    one = galatea_pytorch.TritonPythonModel()
    one._joins, one._torch = True, SimpleNamespace(cat=refuse)
    value = type("Value", (), {"dim": lambda self: 1, "shape": (1,), "__len__": lambda self: 1})()
    assert one._together([{"x": value}, {"x": value}]) is None and one._joins

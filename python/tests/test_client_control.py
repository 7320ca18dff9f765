"""The stock client's calls beside inference, in its four kinds: what is there, shared memory, models, statistics and settings."""

import asyncio
import contextlib
import inspect
import json
import mmap
import uuid

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

import client_models
from conftest import connect, until
from server import Server
from tensors import check_simple, simple_inputs

# The bytes of one input or output of `simple` for one row.
ROW = 64


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    repository = client_models.write(folder / "models")
    named = [name for name in client_models.MODELS if name != "reals"]
    with Server(program, "--model-repository", repository, "--model-control-mode=explicit",
                "--allow-client-shm=true", "--trace-config=mode=triton", f"--trace-config=triton,file={folder / 'trace.json'}",
                *(f"--load-model={name}" for name in named)) as running:
        running.repository = repository
        yield running


class Blocking:
    """Lets the client of coroutines be called as the blocking one."""

    def __init__(self, client, loop):
        self.client, self.loop = client, loop

    def __getattr__(self, name):
        call = getattr(self.client, name)

        def run(*arguments, **options):
            result = call(*arguments, **options)
            return self.loop.run_until_complete(result) if inspect.isawaitable(result) else result
        return run


@pytest.fixture(params=["http", "grpc", "http.aio", "grpc.aio"])
def kind(request):
    return request.param


@pytest.fixture
def module(kind):
    """Where inputs and outputs for a kind of client are made."""
    return tritonclient.http if kind.startswith("http") else tritonclient.grpc


@pytest.fixture
def client(kind, module, server):
    if not kind.endswith("aio"):
        with connect(module, server) as connected:
            yield connected
        return
    loop = asyncio.new_event_loop()
    address = server.http if module is tritonclient.http else server.grpc

    async def made():
        return module.aio.InferenceServerClient(address)
    connected = Blocking(loop.run_until_complete(made()), loop)
    yield connected
    connected.close()
    loop.close()


def plain(answer):
    """An answer as JSON, whichever client gave it."""
    if isinstance(answer, (dict, list)):
        return answer
    from google.protobuf import json_format  # pylint: disable=import-outside-toplevel
    return json_format.MessageToDict(answer, preserving_proto_field_name=True)


# ---- what is there

def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("simple") and client.is_model_ready("simple", "1")
    assert not client.is_model_ready("absent") and not client.is_model_ready("simple", "9")
    about = plain(client.get_server_metadata())
    assert about["version"] and {"classification", "sequence", "model_repository", "system_shared_memory", "statistics",
                                 "trace", "logging"} <= set(about["extensions"])
    model = plain(client.get_model_metadata("simple"))
    assert (model["name"], model["versions"]) == ("simple", ["1"])
    tensors = [(tensor["name"], tensor["datatype"], [int(n) for n in tensor["shape"]]) for tensor in model["inputs"] + model["outputs"]]
    assert tensors == [(name, "INT32", [-1, 16]) for name in ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1")]
    with pytest.raises(InferenceServerException, match="absent"):
        client.get_model_metadata("absent")


def test_configuration(client):
    answer = plain(client.get_model_config("echo", model_version="1"))
    config = answer.get("config", answer)
    assert (config["name"], config["max_batch_size"], config["backend"]) == ("echo", 8, "identity")
    assert int(config["dynamic_batching"]["priority_levels"]) == 3
    with pytest.raises(InferenceServerException, match="absent"):
        client.get_model_config("absent")


def index(client):
    answer = plain(client.get_model_repository_index())
    return {model["name"]: (model.get("state"), model.get("reason", ""))
            for model in (answer if isinstance(answer, list) else answer["models"])}


# ---- models

def test_models_come_and_go(client):
    assert index(client)["simple"] == ("READY", "")
    client.load_model("reals")
    assert client.is_model_ready("reals") and index(client)["reals"] == ("READY", "")
    client.unload_model("reals")
    assert not client.is_model_ready("reals")
    until(lambda: index(client)["reals"] == ("UNAVAILABLE", "unloaded"), "the end of unloading")
    client.unload_model("reals", unload_dependents=True)
    with pytest.raises(InferenceServerException, match="absent"):
        client.load_model("absent")


def test_a_model_with_another_configuration(client):
    config = {"backend": "identity", "max_batch_size": 2, "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [3]}],
              "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [3]}]}
    client.load_model("reals", config=json.dumps(config))
    assert [tensor["name"] for tensor in plain(client.get_model_metadata("reals"))["inputs"]] == ["A"]
    with pytest.raises(InferenceServerException, match="reals"):
        client.load_model("reals", config="{")
    assert client.is_model_ready("reals")
    client.unload_model("reals")


def test_a_model_of_files_in_the_request(client, module):
    config = json.dumps({"backend": "onnxruntime", "version_policy": {"specific": {"versions": [3]}}})
    client.load_model("sent", config=config, files={"file:3/model.onnx": client_models.simple_file()})
    assert plain(client.get_model_metadata("sent"))["versions"] == ["3"]
    first, second, inputs = simple_inputs(module)
    check_simple(client.infer("sent", inputs, model_version="3"), first, second)
    client.unload_model("sent")
    assert not client.is_model_ready("sent")


# ---- statistics and settings

def test_statistics(client, module):
    def count():
        stats = plain(client.get_inference_statistics("scores", "1"))["model_stats"]
        assert [(model["name"], model["version"]) for model in stats] == [("scores", "1")]
        return int(stats[0].get("inference_count", 0)), int(stats[0]["inference_stats"]["success"].get("count", 0))

    given = module.InferInput("INPUT0", [2, 4], "FP32")
    given.set_data_from_numpy(np.ones([2, 4], np.float32))
    before = count()
    for _ in range(3):
        client.infer("scores", [given])
    assert count() == (before[0] + 6, before[1] + 3)
    names = {model["name"] for model in plain(client.get_inference_statistics())["model_stats"]}
    assert names >= set(client_models.MODELS) - {"reals"}


def settings(answer):
    """Settings as name to value; gRPC wraps each."""
    answer = plain(answer)
    if "settings" not in answer:
        return answer
    return {name: found.get("value", next(iter(found.values()), "")) for name, found in answer["settings"].items()}


def test_trace_settings(client):
    assert settings(client.get_trace_settings())["trace_rate"] in ("1000", ["1000"])
    changed = settings(client.update_trace_settings(settings={"trace_rate": "5", "trace_level": ["TIMESTAMPS"]}))
    assert changed["trace_rate"] in ("5", ["5"]) and changed["trace_level"] == ["TIMESTAMPS"]
    try:
        of_model = client.update_trace_settings(model_name="simple", settings={"trace_rate": "7"})
        assert settings(of_model)["trace_rate"] in ("7", ["7"])
        assert settings(client.get_trace_settings(model_name="simple"))["trace_rate"] in ("7", ["7"])
        cleared = settings(client.update_trace_settings(model_name="simple", settings={"trace_rate": None}))
        assert cleared["trace_rate"] in ("5", ["5"])
        with pytest.raises(InferenceServerException):
            client.update_trace_settings(settings={"trace_rate": "x"})
        with pytest.raises(InferenceServerException, match="absent"):
            client.get_trace_settings(model_name="absent")
    finally:
        client.update_trace_settings(settings={"trace_rate": None, "trace_level": None})
    assert settings(client.get_trace_settings())["trace_rate"] in ("1000", ["1000"])


def test_log_settings(client):
    before = settings(client.get_log_settings())
    assert {"log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"} <= set(before)
    changed = settings(client.update_log_settings({"log_verbose_level": 1, "log_info": False, "log_format": "ISO8601"}))
    assert (int(changed["log_verbose_level"]), changed["log_info"], changed["log_format"]) == (1, False, "ISO8601")
    client.update_log_settings({"log_verbose_level": 0, "log_info": True, "log_format": "default"})
    with pytest.raises(InferenceServerException):
        client.update_log_settings({"log_format": "curly"})
    assert settings(client.get_log_settings()) == before


# ---- shared memory

@contextlib.contextmanager
def region(client, size):
    """A region of this process that the server knows: its name there and its handle here."""
    name, key = f"region-{uuid.uuid4()}", f"/galatea-{uuid.uuid4()}"
    handle = shm.create_shared_memory_region(name, key, size)
    try:
        client.register_system_shared_memory(name, key, size)
        yield name, handle
    finally:
        client.unregister_system_shared_memory(name)
        shm.destroy_shared_memory_region(handle)


def regions(client):
    answer = plain(client.get_system_shared_memory_status())
    found = answer if isinstance(answer, list) else list(answer.get("regions", {}).values())
    return {one["name"]: (one["key"], int(one.get("offset", 0)), int(one["byte_size"])) for one in found}


def test_tensors_through_regions(client, module):
    first, second, inputs = simple_inputs(module)
    with region(client, 2 * ROW) as (given, source), region(client, 2 * ROW) as (wanted, sink):
        shm.set_shared_memory_region(source, [first, second])
        for tensor, offset in zip(inputs, (0, ROW)):
            tensor.set_shared_memory(given, ROW, offset=offset)
        outputs = [module.InferRequestedOutput(name) for name in ("OUTPUT0", "OUTPUT1")]
        for output, offset in zip(outputs, (ROW, 0)):
            output.set_shared_memory(wanted, ROW, offset=offset)
        for _ in range(2):
            client.infer("simple", inputs, outputs=outputs)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(sink, np.int32, [1, 16], offset=ROW), first + second)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(sink, np.int32, [1, 16]), first - second)
        # One output in the region and one in the answer.
        outputs[0].unset_shared_memory()
        result = client.infer("simple", inputs, outputs=outputs)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), first + second)


def test_strings_through_regions(client, module):
    values = np.array([[b"a", b"", "\u4e16".encode()]], dtype=object)
    size = sum(4 + len(value) for value in values[0])
    with region(client, size) as (given, source), region(client, size) as (wanted, sink):
        shm.set_shared_memory_region(source, [serialize_byte_tensor(values)])
        tensor, output = module.InferInput("INPUT0", [1, 3], "BYTES"), module.InferRequestedOutput("OUTPUT0")
        tensor.set_shared_memory(given, size)
        output.set_shared_memory(wanted, size)
        client.infer("texts", [tensor], outputs=[output])
        assert shm.get_contents_as_numpy(sink, np.object_, [1, 3]).tolist() == values.tolist()


def test_regions_are_listed_until_they_go(client):
    name, key = f"region-{uuid.uuid4()}", f"/galatea-{uuid.uuid4()}"
    handle = shm.create_shared_memory_region(name, key, mmap.PAGESIZE + 100)
    try:
        client.register_system_shared_memory(name, key, 60, offset=mmap.PAGESIZE)
        assert regions(client)[name] == (key, mmap.PAGESIZE, 60)
        with pytest.raises(InferenceServerException, match=name):
            client.register_system_shared_memory(name, key, 60)
        client.unregister_system_shared_memory(name)
        assert name not in regions(client)
        client.register_system_shared_memory(name, key, 100)
        client.unregister_system_shared_memory()
        assert not regions(client)
        with pytest.raises(InferenceServerException, match=name):
            client.get_system_shared_memory_status(name)
    finally:
        shm.destroy_shared_memory_region(handle)


def test_bounds_of_regions(client, module):
    inputs = simple_inputs(module)[2]
    with region(client, ROW) as (name, _handle):
        for size, offset in [(2 * ROW, 0), (ROW, 1), (ROW, 1 << 40)]:
            inputs[0].set_shared_memory(name, size, offset=offset)
            with pytest.raises(InferenceServerException, match=name):
                client.infer("simple", inputs)
        output = module.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory(name, ROW // 2)
        with pytest.raises(InferenceServerException, match="OUTPUT0"):
            client.infer("simple", simple_inputs(module)[2], outputs=[output])
    inputs[0].set_shared_memory(name, ROW)
    with pytest.raises(InferenceServerException, match=name):
        client.infer("simple", inputs)
    for key, size in [("/galatea-absent", ROW), ("../etc", ROW)]:
        with pytest.raises(InferenceServerException):
            client.register_system_shared_memory("never", key, size)
    assert "never" not in regions(client)


def test_a_region_smaller_than_said_is_refused(client):
    name, key = f"region-{uuid.uuid4()}", f"/galatea-{uuid.uuid4()}"
    handle = shm.create_shared_memory_region(name, key, 4096)
    try:
        with pytest.raises(InferenceServerException, match=name):
            client.register_system_shared_memory(name, key, 1 << 20)
    finally:
        shm.destroy_shared_memory_region(handle)


def test_without_cuda_its_regions_are_refused(client):
    with pytest.raises(InferenceServerException):
        client.register_cuda_shared_memory("gpu", b"x" * 64, 0, ROW)
    with contextlib.suppress(InferenceServerException):
        assert not plain(client.get_cuda_shared_memory_status())

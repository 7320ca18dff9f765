"""Faults of the machine: files that are cut short, disks that are full, memory that is not there, workers that are killed.

Each gets an error that names the file or the step. The server goes on, and so do its other models.
"""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
import tritonclient.grpc
import tritonclient.http
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from conftest import SAMPLES, until
from server import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are those of Linux")

PYTHON = f"--backend-config=python,python-executable={sys.executable}"
# What a file of the disk may have when it is full, in bytes.
FULL = 8192
# Address space that leaves little beside the program, in bytes.
SPACE = 6 << 30


class LimitedServer(Server):
    """A server with a soft limit of the system, whose log may be a file: its ports are known before."""

    def __init__(self, program, limit, *arguments):
        free = [free_port() for _ in range(3)]
        names = ("HTTPService", "GRPCInferenceService", "Metrics Service")
        ports = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), free)]
        super().__init__(program, *arguments, ports=ports)
        self.command = ["sh", "-c", f'trap "" XFSZ; {limit}; exec "$@"', "sh", *self.command]
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(names, free)}

    def start(self):
        super().start()
        until(self._is_ready, "the server")
        return self

    def _is_ready(self):
        try:
            return ask(self, "/v2/health/ready")[0] == 200
        except OSError:
            return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def limited(program):
    """Starts servers under a limit, which stop at the end of the test."""
    started = []

    def begin(limit, *arguments):
        started.append(LimitedServer(program, limit, *arguments))
        return started[-1].start()

    yield begin
    for running in started:
        running.stop()


def ask(server, path, body=None):
    """Status and text of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{server.http}{path}", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def load(server, name):
    return ask(server, f"/v2/repository/models/{name}/load", {})


def unload(server, name):
    assert ask(server, f"/v2/repository/models/{name}/unload", {})[0] == 200
    until(lambda: ask(server, f"/v2/models/{name}/ready")[0] != 200, f"the end of {name}")


def still_serves(server):
    row = {"datatype": "INT32", "shape": [1, 16]}
    body = {"inputs": [{"name": "INPUT0", "data": list(range(16)), **row}, {"name": "INPUT1", "data": [1] * 16, **row}]}
    status, text = ask(server, "/v2/models/simple/infer", body)
    assert status == 200, text
    outputs = {one["name"]: one["data"] for one in json.loads(text)["outputs"]}
    assert outputs["OUTPUT0"] == list(range(1, 17))
    assert server.process.poll() is None


def matrix(folder, rows):
    """A model whose weights lie in a file of their own."""
    weights = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "W"], ["Y"])], "matrix",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", rows])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 4])], [numpy_helper.from_array(weights, "W")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('backend: "onnxruntime" max_batch_size: 2')
    onnx.save(model, folder / "1" / "model.onnx", save_as_external_data=True, location="weights.bin")


def package(program, folder):
    """A package of Core ML, made of a sample."""
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('backend: "coreml" max_batch_size: 0')
    made = subprocess.run([str(program), "convert", str(SAMPLES / "simple" / "1" / "model.onnx"),
                           str(folder / "1" / "model.mlpackage")], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def repository(tmp_path, *samples):
    folder = tmp_path / "models"
    for name in ("simple", *samples):
        shutil.copytree(SAMPLES / name, folder / name)
    return folder


# Model and file, and the name that the error gives. Where the file is shorter by its last byte alone it may still be
# whole: a text loses its last line break.
FILES = [
    ("digits", "1/model.onnx", "model.onnx"), ("matrix", "1/model.onnx", "model.onnx"), ("matrix", "1/weights.bin", "weights.bin"),
    ("chat", "1/model.safetensors", "model.safetensors"), ("chat", "1/tokenizer.json", "tokenizer.json"),
    ("chat", "1/config.json", "config.json"), ("chat", "1/generation_config.json", "generation_config.json"),
    ("chat", "1/tokenizer_config.json", "tokenizer_config.json"), ("package", "1/model.mlpackage/Manifest.json", "Manifest.json"),
    ("package", "1/model.mlpackage/Data/com.apple.CoreML/model.mlmodel", "mlpackage"),
]


def test_files_that_are_cut_short(program, start, tmp_path):
    folder = repository(tmp_path, "digits", "chat")
    matrix(folder / "matrix", 1000)
    package(program, folder / "package")
    server = start("--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple")
    for model, file, name in FILES:
        path = folder / model / file
        whole = path.read_bytes()
        refused = 0
        for length in (0, len(whole) // 3, len(whole) - 1):
            path.write_bytes(whole[:length])
            status, text = load(server, model)
            if status == 200:
                assert length == len(whole) - 1, f"{file} of {length} bytes is loaded"
                unload(server, model)
                continue
            assert status == 400 and name in text, f"{file} of {length} bytes: {status} {text}"
            assert ask(server, f"/v2/models/{model}/ready")[0] == 400
            refused += 1
        assert refused >= 2
        still_serves(server)
        path.write_bytes(whole)
        assert load(server, model)[0] == 200, f"{model} is not loaded when it is whole again"
        unload(server, model)


def test_a_configuration_that_is_cut_short_is_told_with_its_line(start, tmp_path):
    folder = repository(tmp_path, "digits")
    server = start("--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple")
    path = folder / "digits" / "config.pbtxt"
    whole = path.read_text()
    path.write_text(whole[:len(whole) // 2])
    assert load(server, "digits")[0] == 500
    until(lambda: any("digits/config.pbtxt:" in line for line in server.log), "the line of the mistake")
    still_serves(server)
    path.write_text(whole)
    assert load(server, "digits")[0] == 200


def test_a_full_disk_takes_no_answer_away(limited, tmp_path):
    """No file may grow beyond a limit, as on a disk that is full: writes are short and then fail."""
    folder = repository(tmp_path, "digits")
    # What is prepared of smaller weights is not kept.
    matrix(folder / "matrix", 100_000)
    log, trace, cache = tmp_path / "log", tmp_path / "trace.json", tmp_path / "cache"
    server = limited(f"ulimit -S -f {FULL // 512}", "--model-repository", folder, "--model-control-mode=explicit",
                     "--load-model=simple", "--cache-dir", cache, "--trace-config", f"triton,file={trace}",
                     "--trace-config=rate=1", "--trace-config=level=TIMESTAMPS", "--log-verbose=1", f"--log-file={log}")
    for _ in range(60):
        still_serves(server)
    # Entries of the model cache are longer than a file may be; the model is served without.
    for name in ("digits", "matrix"):
        assert load(server, name)[0] == 200
    assert all(path.stat().st_size <= FULL for path in tmp_path.rglob("*") if path.is_file() and folder not in path.parents)
    assert trace.stat().st_size == FULL and log.stat().st_size == FULL
    # There is room again.
    unlimited = resource.RLIM_INFINITY
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    for name in ("digits", "matrix"):
        unload(server, name)
        assert load(server, name)[0] == 200
    still_serves(server)
    until(lambda: any(path.stat().st_size > FULL for path in cache.rglob("*") if path.is_file()), "an entry of the cache")


def test_memory_that_is_not_there(limited, tmp_path):
    """Files that cannot be mapped and tensors for which there is no memory are errors of their request."""
    folder = repository(tmp_path, "identity_fp32")
    matrix(folder / "matrix", 1000)
    with open(folder / "matrix" / "1" / "weights.bin", "r+b") as weights:
        weights.truncate(1 << 36)
    server = limited(f"ulimit -S -v {SPACE // 1024}", "--model-repository", folder, "--model-control-mode=explicit",
                     "--load-model=simple", "--load-model=identity_fp32")
    status, text = load(server, "matrix")
    assert status == 400 and "weights.bin" in text and "memory" in text.lower(), f"{status} {text}"
    still_serves(server)


KILLS = {
    "import": "os.kill(os.getpid(), 9)\nclass TritonPythonModel:\n    pass\n",
    "configuration": "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n        os.kill(os.getpid(), 9)\n",
    "initialization": "class TritonPythonModel:\n    def initialize(self, args):\n        os.kill(os.getpid(), 9)\n",
}
EXECUTION = """import os
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        values = [request.inputs()[0].as_numpy() for request in requests]
        if any((value < 0).any() for value in values):
            os.kill(os.getpid(), 9)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value + 1)]) for value in values]

    def finalize(self):
        os.kill(os.getpid(), 9)
"""
TENSORS = 'backend: "python" input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: -1 }'


def python_model(folder, program):
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(TENSORS)
    (folder / "1" / "model.py").write_text(program)


def test_workers_that_are_killed_at_every_step(start, tmp_path):
    folder = repository(tmp_path)
    for step, program in KILLS.items():
        python_model(folder / step, "import os\n" + program)
    python_model(folder / "execution", EXECUTION)
    server = start("--model-repository", folder, "--model-control-mode=explicit", PYTHON, "--load-model=simple",
                   "--load-model=execution")
    for step in KILLS:
        status, text = load(server, step)
        assert status == 400 and step in text and "signal: 9" in text, f"{step}: {status} {text}"
        still_serves(server)

    def infer(value):
        return ask(server, "/v2/models/execution/infer",
                   {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [value]}]})
    for value in range(3):
        assert json.loads(infer(value)[1])["outputs"][0]["data"] == [value + 1]
        status, text = infer(-1)
        assert status >= 400 and "execution" in text, f"{status} {text}"
        still_serves(server)
    # A worker that is killed as it ends delays nothing.
    before = time.monotonic()
    unload(server, "execution")
    assert time.monotonic() - before < 30
    still_serves(server)


def test_a_worker_that_is_killed_from_outside_is_replaced(start, tmp_path):
    folder = repository(tmp_path)
    python_model(folder / "execution", EXECUTION)
    server = start("--model-repository", folder, "--model-control-mode=explicit", PYTHON, "--load-model=simple",
                   "--load-model=execution")

    def workers():
        children = pathlib.Path("/proc", str(server.process.pid), "task").glob("*/children")
        return [int(pid) for task in children for pid in task.read_text().split()]

    def answers():
        status, text = ask(server, "/v2/models/execution/infer",
                           {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1], "data": [4]}]})
        return status == 200 and json.loads(text)["outputs"][0]["data"] == [5]
    for _ in range(2):
        assert answers()
        for worker in workers():
            os.kill(worker, signal.SIGKILL)
        until(answers, "an answer of another worker")
        still_serves(server)


def flipped(content):
    """Some bits of each part are others."""
    noise = random.Random(7)
    content = bytearray(content)
    for _ in range(len(content) // 500 + 1):
        content[noise.randrange(len(content))] ^= 1 << noise.randrange(8)
    return bytes(content)


def other_version(content):
    return content.replace(b'"version":1', b'"version":999') if b'"version"' in content else content[:4] + b"\xff" * 8 + content[12:]


# How a kept file is damaged: other bytes, or something else in its place.
DAMAGES = {
    "empty": lambda content: b"", "half": lambda content: content[:len(content) // 2],
    "a byte less": lambda content: content[:-1], "flipped bits": flipped,
    "longer": lambda content: content + b"\0" * 1000 + b"{}", "other version": other_version,
    "no text": lambda content: bytes(byte ^ 0xFF for byte in content), "nesting": lambda content: b"[" * 100_000,
}
REPLACEMENTS = {
    "a folder": lambda path: path.mkdir(), "a pipe": os.mkfifo, "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name), "nothing": lambda path: None,
}


def replace(path, kind):
    """Puts something else in the place of a file."""
    content = path.read_bytes()
    path.unlink()
    if kind in DAMAGES:
        path.write_bytes(DAMAGES[kind](content))
    else:
        REPLACEMENTS[kind](path)


def kept_files(cache):
    return sorted(path for path in cache.rglob("*") if path.is_file())


def product(server, name="matrix", rows=100_000):
    body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, rows], "data": [1] * 3 + [0] * (rows - 3)}]}
    status, text = ask(server, f"/v2/models/{name}/infer", body)
    assert status == 200, text
    return json.loads(text)["outputs"][0]["data"]


def test_damaged_files_of_the_cache_change_no_answer(start, tmp_path):
    """Prepared models, the cache's secret, and records of the tuner and of placements."""
    folder = repository(tmp_path)
    matrix(folder / "matrix", 100_000)
    cache = tmp_path / "cache"
    arguments = ["--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple", "--cache-dir", cache]
    server = start(*arguments)
    assert load(server, "matrix")[0] == 200
    until(lambda: any(path.stat().st_size > FULL for path in kept_files(cache)), "an entry of the cache")
    (cache / "tuning.jsonl").write_text('{"format":"galatea tuning","version":1}\n')
    (cache / "placements.jsonl").write_text('{"format":"galatea placements","version":1}\n')
    whole = tmp_path / "whole"
    unload(server, "matrix")
    shutil.copytree(cache, whole)
    assert len(kept_files(whole)) >= 4
    for kind in [*DAMAGES, *REPLACEMENTS]:
        shutil.rmtree(cache)
        shutil.copytree(whole, cache)
        for path in kept_files(cache):
            replace(path, kind)
        assert load(server, "matrix")[0] == 200, kind
        # The first rows of the weights are 0 to 11.
        assert product(server) == [12, 15, 18, 21], kind
        unload(server, "matrix")
    still_serves(server)
    # Who starts with such a cache serves too.
    for kind in ("flipped bits", "a pipe", "an endless device"):
        shutil.rmtree(cache)
        shutil.copytree(whole, cache)
        for path in kept_files(cache):
            replace(path, kind)
        other = start(*arguments, "--load-model=matrix")
        assert product(other) == [12, 15, 18, 21], kind
        other.stop()


def test_files_that_are_no_whole_gguf_are_named(start, tmp_path):
    folder = repository(tmp_path)
    (folder / "gguf" / "1").mkdir(parents=True)
    (folder / "gguf" / "config.pbtxt").write_text('backend: "llm"')
    path = folder / "gguf" / "1" / "model.gguf"
    whole = (SAMPLES.parents[1] / "golden" / "gguf" / "every_value.gguf").read_bytes()
    server = start("--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple")
    contents = [whole[:length] for length in (0, 3, 8, 24, 100, len(whole) // 2, len(whole) - 1)]
    for content in [*contents, *(damage(whole) for damage in DAMAGES.values())]:
        path.write_bytes(content)
        status, text = load(server, "gguf")
        assert status == 400 and "model.gguf" in text, f"{len(content)} bytes: {status} {text}"
        still_serves(server)


def test_damaged_archives_of_environments_are_refused(start, tmp_path):
    folder = repository(tmp_path)
    python_model(folder / "packed", EXECUTION)
    config = folder / "packed" / "config.pbtxt"
    parameter = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }'
    config.write_text(f"{TENSORS} {parameter}")
    content = tmp_path / "content"
    (content / "bin").mkdir(parents=True)
    (content / "bin" / "activate").write_bytes(random.Random(5).randbytes(20_000))
    archive = folder / "packed" / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(content, arcname=".")
    whole = archive.read_bytes()
    server = start("--model-repository", folder, "--model-control-mode=explicit", PYTHON, "--load-model=simple")
    for kind in ("empty", "half", "a byte less", "flipped bits", "no text"):
        archive.write_bytes(DAMAGES[kind](whole))
        status, text = load(server, "packed")
        assert status == 400 and "env.tar.gz" in text, f"{kind}: {status} {text}"
        still_serves(server)
    for kind in ("a folder", "a pipe", "an endless device", "nothing"):
        archive.write_bytes(whole)
        replace(archive, kind)
        status, text = load(server, "packed")
        assert status == 400, f"{kind}: {status} {text}"
        still_serves(server)
        if archive.is_dir():
            archive.rmdir()
        else:
            archive.unlink(missing_ok=True)


def test_no_descriptors_are_left(limited, tmp_path):
    """Connections leave some for models, and those that rest make room."""
    folder = repository(tmp_path, "digits")
    server = limited("ulimit -n 128", "--model-repository", folder, "--model-control-mode=explicit", "--load-model=simple")
    host, port = server.http.split(":")
    clients = []
    try:
        for number in range(300):
            clients.append(socket.create_connection((host, int(port)), timeout=5))
            # Some of them have begun to speak.
            clients[-1].sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n" if number % 2 else b"")
        until(lambda: is_served(server), "room for another client")
        assert load(server, "digits")[0] == 200
    finally:
        for client in clients:
            client.close()
    still_serves(server)
    # No file can be opened at all.
    used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    unload(server, "digits")
    most = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
    client = tritonclient.http.InferenceServerClient(server.http)
    assert client.is_server_ready()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used, most))
    with pytest.raises(InferenceServerException):
        client.load_model("digits")
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, most))
    assert load(server, "digits")[0] == 200
    still_serves(server)


def is_served(server):
    try:
        return ask(server, "/v2/health/ready")[0] == 200
    except OSError:
        return False


def large(module):
    """A request with 32 MB of values."""
    values = np.zeros((1, 8 << 20), np.float32)
    tensor = module.InferInput("INPUT0", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    return [tensor]


def large_over_http(server):
    with tritonclient.http.InferenceServerClient(server.http, network_timeout=60) as client:
        outputs = [tritonclient.http.InferRequestedOutput("OUTPUT0", binary_data=True)]
        client.infer("identity_fp32", large(tritonclient.http), outputs=outputs)


def large_text_over_http(server):
    with tritonclient.http.InferenceServerClient(server.http, network_timeout=60) as client:
        outputs = [tritonclient.http.InferRequestedOutput("OUTPUT0", binary_data=False)]
        client.infer("identity_fp32", large(tritonclient.http), outputs=outputs)


def large_over_grpc(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.infer("identity_fp32", large(tritonclient.grpc), client_timeout=60)


def large_json(server):
    row = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 4 << 20], "data": [0] * (4 << 20)}
    return ask(server, "/v2/models/identity_fp32/infer", {"inputs": [row]})


def large_file(server):
    config = json.dumps({"backend": "onnxruntime", "max_batch_size": 2})
    return ask(server, "/v2/repository/models/given/load", {"parameters": {"config": config, "file:1/model.onnx": "A" * 60_000_000}})


def large_grammar(server):
    message = {"role": "user", "content": "hi"}
    return ask(server, "/v1/chat/completions", {"model": "chat", "messages": [message], "guided_regex": "(a{1000}){1000}"})


@pytest.mark.parametrize("work", [large_over_http, large_text_over_http, large_over_grpc, large_json, large_file, large_grammar])
def test_memory_that_the_system_does_not_give_is_an_error_of_the_request(limited, tmp_path, work):
    server = limited("true", "--model-repository", repository(tmp_path, "identity_fp32", "chat"),
                     "--model-control-mode=explicit", "--load-model=*", "--model-cache-byte-size=0")
    still_serves(server)
    assert answers_with_grammar(server)
    status = pathlib.Path("/proc", str(server.process.pid), "status").read_text()
    size = int(next(line for line in status.splitlines() if line.startswith("VmSize")).split()[1]) << 10
    unlimited = resource.RLIM_INFINITY
    # Enough for the threads' own needs, and for nothing large.
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size + (8 << 20), unlimited))
    try:
        answer = work(server)
        assert answer is None or answer[0] in (200, 400, 503), answer
    except InferenceServerException as refusal:
        assert "memory" in str(refusal), refusal
    assert server.process.poll() is None
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (unlimited, unlimited))
    still_serves(server)


def answers_with_grammar(server):
    """Prepares what the first chat with a grammar makes once."""
    message = {"role": "user", "content": "hi"}
    body = {"model": "chat", "messages": [message], "max_tokens": 4, "guided_regex": "[a-z]+"}
    return ask(server, "/v1/chat/completions", body)[0] == 200

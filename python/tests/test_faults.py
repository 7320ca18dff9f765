"""Faults of the machine: files that are cut short, disks that are full, memory that is not there, workers that are killed.

Each gets an error that names the file or the step. The server goes on, and so do its other models.
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

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

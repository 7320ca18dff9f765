"""Models in Python in the running program: those of the recorded Triton unchanged, and workers that are killed."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tritonclient.http
from tritonclient.utils import InferenceServerException

import test_golden

PYTHON = f"--backend-config=python,python-executable={sys.executable}"

# Cases of CUDA, and what the recorded version gets wrong.
SKIP_NEEDS = "oracle_bug,cuda_text"

DOUBLE = "newer versions, and this one, take parameters of type double"

# Cases that are answered otherwise although the models are the recorded ones, beside those of `test_golden`.
KNOWN = {
    "main": {
        **dict.fromkeys(["grpc_params.uint64", "grpc_params.uint64_small", "grpc_params.empty_param"], DOUBLE),
        "http_features.cached_subset": "the recorded cache answers with outputs that were not asked for",
    },
}


def write_models(recorded, profile, out):
    """The recorded models of a profile, as Triton had them."""
    wanted = test_golden.FOLDERS.get(profile["repository"])
    for source in sorted(path for path in (recorded / "models").iterdir() if path.is_dir()):
        if wanted is not None and source.name not in wanted:
            continue
        folder = out / source.name
        folder.mkdir(parents=True)
        versions = re.search(r"versions on disk: ([^;]*)", (source / "WHAT.md").read_text())[1]
        for path in source.iterdir():
            if path.name not in ("WHAT.md", "model.py"):
                shutil.copy(path, folder)
        for version in re.findall(r"\d+", versions):
            (folder / version).mkdir()
            if (source / "model.py").exists():
                # The copy that was kept is that of version 1.
                text = (source / "model.py").read_text().replace("* np.int32(1)", f"* np.int32({version})")
                (folder / version / "model.py").write_text(text)


@pytest.fixture(scope="module")
def recorded():
    folder = os.environ.get("GALATEA_SHARED")
    if not folder:
        pytest.skip("GALATEA_SHARED names no folder with recorded cases")
    return pathlib.Path(folder) / "triton-golden"


@pytest.mark.timeout(660)
@pytest.mark.parametrize("name", ["main", "repo", "none", "lax", "restricted", "headers", "trace", "risky"])
def test_recorded_models_answer_as_in_triton(recorded, name, start, tmp_path):
    profile = json.loads((recorded / "manifest.json").read_text())["profiles"][name]
    repository, report = tmp_path / "models", tmp_path / "verdicts.json"
    write_models(recorded, profile, repository)
    flags = [flag.replace("$SCRATCH", str(tmp_path)) for flag in profile["flags"]]
    flags += test_golden.MORE_FLAGS.get(name, [])
    if profile["load"]:
        flags += ["--model-control-mode=explicit", *(f"--load-model={model}" for model in profile["load"])]
    server = start("--model-repository", repository, PYTHON, *flags, timeout=300)
    groups = ",".join(group["group"] for group in profile["groups"])
    command = [sys.executable, recorded / "replay.py", "--http", server.http, "--grpc", server.grpc, "--metrics",
               server.metrics, "--profile", name, "--group", groups, "--skip-missing", "--skip-needs", SKIP_NEEDS,
               "--repo", repository, "--norm", f"{tmp_path}=$SCRATCH", "--json", report]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=600)
    assert report.exists(), done.stdout + done.stderr
    verdicts = json.loads(report.read_text())
    known = {**test_golden.KNOWN.get(name, {}), **KNOWN.get(name, {})}
    unexpected = [verdict for verdict in verdicts if not verdict["strict"] and verdict["name"] not in known]
    for verdict in unexpected:
        print(verdict["name"], json.dumps(verdict["diff"])[:600])
    assert verdicts and not unexpected, f"{len(unexpected)} of {len(verdicts)} cases differ"


def test_every_difference_is_documented():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "protocols.md").read_text()
    named = [(name, reason) for cases in KNOWN.values() for name, reason in cases.items()]
    missing = [name for name, reason in named if f"`{name}`" not in page or reason not in page]
    assert not missing, f"not in docs/protocols.md: {missing}"


MODEL = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        pb_utils.Logger.log_warn("a word of the model")

    def execute(self, requests):
        pid = np.array([os.getpid()], np.int32)
        tensors = [pb_utils.Tensor("PID", pid), pb_utils.Tensor("OUT", requests[0].inputs()[0].as_numpy())]
        return [pb_utils.InferenceResponse(tensors)]
"""
CONFIG = """
backend: "python" instance_group { count: 2 kind: KIND_CPU }
input { name: "IN" data_type: TYPE_FP32 dims: -1 }
output { name: "PID" data_type: TYPE_INT32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: -1 }
"""


def test_workers_that_are_killed_lose_their_own_requests_only(start, tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.py").write_text(MODEL)
    (tmp_path / "m" / "config.pbtxt").write_text(CONFIG)
    server = start("--model-repository", tmp_path, PYTHON)
    assert any("a word of the model" in line and "model=m" in line for line in server.log)
    kills = 10
    pids, failures, stop = set(), [], threading.Event()
    answered = [0]

    def ask():
        with tritonclient.http.InferenceServerClient(server.http) as client:
            values = np.arange(5000, dtype=np.float32)
            given = tritonclient.http.InferInput("IN", [len(values)], "FP32")
            given.set_data_from_numpy(values)
            while not stop.is_set():
                try:
                    answer = client.infer("m", [given])
                except InferenceServerException as error:
                    failures.append(error.message())
                    continue
                assert np.array_equal(answer.as_numpy("OUT"), values)
                pids.add(int(answer.as_numpy("PID")[0]))
                answered[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    killed = set()
    try:
        while len(killed) < kills:
            for pid in pids - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert len(failures) <= len(killed), failures
    assert all("is not healthy" in text for text in failures), failures
    assert answered[0] > kills

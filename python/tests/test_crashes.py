"""Requests that end a real Triton: each gets an answer here, and the server goes on.

The recorded ones are replayed where GALATEA_SHARED names the folder that holds them; the others are of the same kinds.
"""

import http.client
import importlib.util
import json
import os
import pathlib

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import golden_repository
from server import Server

# The recorded requests, each with what the refusal names.
RECORDED = {
    "http_infer_error.shape_huge": "INPUT0",
    "http_classification.strs": "'BYTES'",
    "http_classification.dtype_BYTES": "'BYTES'",
    "grpc_classification.strs": "'BYTES'",
    "grpc_classification.dtype_BYTES": "'BYTES'",
}

IDENTITY = """backend: "identity" max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_%(datatype)s dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_%(datatype)s dims: [ -1 ] } ]
"""


@pytest.fixture(scope="module")
def recorded():
    folder = os.environ.get("GALATEA_SHARED")
    if not folder:
        pytest.skip("GALATEA_SHARED names no folder with recorded cases")
    return pathlib.Path(folder) / "triton-golden"


@pytest.fixture(scope="module")
def replay(recorded):
    spec = importlib.util.spec_from_file_location("replay", recorded / "replay.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def still_serves(server):
    for module, address in [(tritonclient.http, server.http), (tritonclient.grpc, server.grpc)]:
        with module.InferenceServerClient(address) as client:
            assert client.is_server_live() and client.is_server_ready()
    assert server.process.poll() is None


def failure(answer):
    """Status and text of a refusal."""
    if "code" in answer:
        return answer["code"], answer.get("details", "")
    return answer["status"], answer["body_json"]["error"]


def test_recorded_crashes_get_errors(recorded, replay, start, tmp_path):
    names = golden_repository.write_all(recorded / "models", tmp_path)
    cases = [json.loads(line) for line in (recorded / "crashes.jsonl").read_text().splitlines()]
    assert {case["name"] for case in cases} == set(RECORDED)
    wanted = {"identity_nb", "classify", "id_string"}
    assert wanted <= set(names)
    server = start("--model-repository", tmp_path, "--model-control-mode=explicit", *(f"--load-model={name}" for name in wanted))
    target = replay.Target(server.http, server.grpc, server.metrics)
    for case in cases:
        status, text = failure(replay.do_one(target, case["info"]["request"]))
        assert status in (400, "INVALID_ARGUMENT"), f"{case['name']}: {status} {text}"
        assert RECORDED[case["name"]] in text, f"{case['name']}: {text}"
        still_serves(server)


@pytest.fixture(scope="module")
def server(program, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    for datatype in ("FP32", "STRING"):
        folder = repository / datatype.lower()
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(IDENTITY % {"datatype": datatype})
    with Server(program, "--model-repository", repository, "--model-control-mode=explicit", "--load-model=*") as running:
        yield running


def test_classes_of_texts_are_refused(protocol, server):
    address = server.http if protocol is tritonclient.http else server.grpc
    with protocol.InferenceServerClient(address) as client:
        given = protocol.InferInput("INPUT0", [1, 3], "BYTES")
        given.set_data_from_numpy(np.array([[b"a", b"", b"c"]], dtype=object))
        with pytest.raises(InferenceServerException, match="'BYTES'"):
            client.infer("string", [given], outputs=[protocol.InferRequestedOutput("OUTPUT0", class_count=2)])
        assert client.infer("string", [given]).as_numpy("OUTPUT0").tolist() == [[b"a", b"", b"c"]]
    still_serves(server)


@pytest.mark.parametrize("shape", [[1, 1 << 62], [1, 1000000, 1000000], [1 << 40, 1 << 40]])
def test_shapes_larger_than_memory_are_refused(server, post, shape):
    status, text = post(server, "/v2/models/fp32/infer", {
        "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": shape, "data": [1]}]})
    assert status == 400 and json.loads(text)["error"], text
    still_serves(server)


def test_file_paths_that_no_file_system_holds_are_refused(server, post):
    status, text = post(server, "/v2/repository/models/new/load", {
        "parameters": {"config": "{}", "file:1/" + "x" * 300: "YQ=="}})
    assert 400 <= status <= 500 and json.loads(text)["error"], text
    still_serves(server)


@pytest.fixture
def post():
    """Sends JSON without a client that would look at it first."""
    def send(server, path, body):
        connection = http.client.HTTPConnection(server.http, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()
    return send

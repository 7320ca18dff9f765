"""Everything at once for a while: nothing is lost or answered twice, counts are exact and memory stays flat."""

import json
import pathlib
import random
import socket
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

ADD = """backend: "identity" max_batch_size: 8 dynamic_batching {{ }} instance_group [ {{ count: 2 kind: KIND_CPU }} ]
input [ {{ name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }} ] output [ {{ name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }} ]
parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay}" }} }}
"""
SEQUENCE = """backend: "sequence" max_batch_size: 4
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ] output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching { oldest { max_candidate_sequences: 8 } control_input [
  { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
  { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
  { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
  { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] } ] }
"""
REPEAT = """backend: "repeat" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
        { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
"""
MODELS = {"quick": ADD.format(delay=0), "slow": ADD.format(delay=20), "coming": ADD.format(delay=0), "sequence": SEQUENCE,
          "repeat": REPEAT}


@pytest.fixture
def server(start, tmp_path):
    for name, config in MODELS.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(config)
    return start("--model-repository", tmp_path, "--model-control-mode=explicit",
                 *(f"--load-model={name}" for name in MODELS if name != "coming"))


class Worker(threading.Thread):
    """Repeats a step until the end; keeps the first thing that went wrong."""

    def __init__(self, name, end, step):
        super().__init__(name=name)
        self.end, self.step, self.rounds, self.fault = end, step, 0, None

    def run(self):
        try:
            while time.monotonic() < self.end and self.fault is None:
                self.step(self.rounds)
                self.rounds += 1
        except Exception as error:  # pylint: disable=broad-except
            self.fault = error


def tensor(client, name, values, datatype="INT32", dtype=np.int32, shape=None):
    given = client.InferInput(name, shape or [1, len(values)], datatype)
    given.set_data_from_numpy(np.array(values, dtype).reshape(shape or [1, -1]))
    return given


def echo(module, client, model, count):
    def step(number):
        values = [number, count, random.randrange(1000)]
        answer = client.infer(model, [tensor(module, "INPUT0", values)], request_id=f"{count}-{number}")
        assert answer.as_numpy("OUTPUT0").tolist() == [values]
        response = answer.get_response()
        assert (response["id"] if isinstance(response, dict) else response.id) == f"{count}-{number}"
    return step


def sums(client, base):
    def step(number):
        total = 0
        for at in range(4):
            value = random.randrange(100)
            total += value
            answer = client.infer("sequence", [tensor(tritonclient.grpc, "INPUT", [value])], sequence_id=base + number,
                                  sequence_start=at == 0, sequence_end=at == 3)
            assert answer.as_numpy("OUTPUT").tolist() == [[total]]
    return step


def stream(address):
    def step(number):
        got, done = [], threading.Event()

        def take(result, error):
            assert error is None, error
            response = result.get_response()
            if response.parameters["triton_final_response"].bool_param:
                done.set()
            else:
                got.append(int(result.as_numpy("OUT")[0]))
        with tritonclient.grpc.InferenceServerClient(address) as client:
            client.start_stream(take)
            values = list(range(number % 5, number % 5 + 4))
            client.async_stream_infer("repeat", [
                tensor(tritonclient.grpc, "IN", values, shape=[4]),
                tensor(tritonclient.grpc, "DELAY", [0] * 4, "UINT32", np.uint32, [4]),
                tensor(tritonclient.grpc, "WAIT", [0], "UINT32", np.uint32, [1])], enable_empty_final_response=True)
            assert done.wait(30)
            client.stop_stream()
        assert got == values
    return step


def cancels(client):
    def step(_number):
        call = client.async_infer("slow", [tensor(tritonclient.grpc, "INPUT0", [1, 2])], callback=lambda result, error: None)
        time.sleep(random.random() / 100)
        call.cancel()
    return step


def leaves(address):
    """Goes away in the middle of a request, or before its answer."""
    host, port = address.rsplit(":", 1)
    body = json.dumps({"inputs": [{"name": "INPUT0", "datatype": "INT32", "shape": [1, 2], "data": [1, 2]}]})
    head = f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"

    def step(number):
        with socket.create_connection((host, int(port))) as connection:
            text = (head + body).encode()
            connection.sendall(text if number % 2 else text[:-5])
    return step


def mistakes(client):
    def step(number):
        wrong = [("nope", [1]), ("quick", []), ("quick", [1] * 3)][number % 3]
        given = tensor(tritonclient.http, "INPUT0", wrong[1] or [0])
        given._shape = [9, 7]  # pylint: disable=protected-access
        with pytest.raises(InferenceServerException):
            client.infer(wrong[0], [given])
    return step


def loads(client):
    def step(number):
        client.load_model("coming")
        echo(tritonclient.http, client, "coming", number)(number)
        client.unload_model("coming")
    return step


def resident_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


@pytest.mark.timeout(900)
def test_everything_at_once(server, request):
    seconds = request.config.getoption("--soak-seconds")
    end = time.monotonic() + seconds
    http = [tritonclient.http.InferenceServerClient(server.http) for _ in range(4)]
    grpc = [tritonclient.grpc.InferenceServerClient(server.grpc) for _ in range(5)]
    quick = [Worker("http", end, echo(tritonclient.http, http[0], "quick", 1)),
             Worker("http too", end, echo(tritonclient.http, http[1], "quick", 2)),
             Worker("grpc", end, echo(tritonclient.grpc, grpc[0], "quick", 3)),
             Worker("grpc too", end, echo(tritonclient.grpc, grpc[1], "quick", 4))]
    sequences = [Worker("sums", end, sums(grpc[2], 1)), Worker("sums too", end, sums(grpc[3], 1 << 40))]
    workers = [*quick, *sequences, Worker("stream", end, stream(server.grpc)), Worker("cancels", end, cancels(grpc[4])),
               Worker("leaves", end, leaves(server.http)), Worker("mistakes", end, mistakes(http[2])),
               Worker("loads", end, loads(http[3]))]
    for worker in workers:
        worker.start()
    time.sleep(seconds / 3)
    before = resident_mb(server.process.pid)
    for worker in workers:
        worker.join()
    after = resident_mb(server.process.pid)
    faults = {worker.name: worker.fault for worker in workers if worker.fault}
    assert not faults, faults
    assert all(worker.rounds for worker in workers)
    client = tritonclient.http.InferenceServerClient(server.http)
    stats = {one["name"]: one for one in client.get_inference_statistics()["model_stats"]}
    answered = sum(worker.rounds for worker in quick)
    assert stats["quick"]["inference_stats"]["success"]["count"] == answered
    assert stats["quick"]["inference_count"] == answered
    assert stats["quick"]["inference_stats"]["fail"]["count"] == 0
    batches = sum(one["batch_size"] * one["compute_infer"]["count"] for one in stats["quick"]["batch_stats"])
    assert batches == answered
    steps = 4 * sum(worker.rounds for worker in sequences)
    assert stats["sequence"]["inference_stats"]["success"]["count"] == steps
    print(f"{seconds} s: {answered} answers, {steps} steps of sequences, "
          + ", ".join(f"{worker.name} {worker.rounds}" for worker in workers[6:])
          + f"; {before:.1f} MB after a third, {after:.1f} MB at the end")
    assert after < before * 1.2 + 8, f"{before:.1f} MB grew to {after:.1f} MB"

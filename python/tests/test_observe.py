"""What the server tells about itself: traces, the log and metrics, as the flags and clients ask for them."""

import http.server
import json
import os
import queue
import re
import subprocess
import threading
import time
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from conftest import SAMPLES
from server import ANY_PORT, LISTENING, run_to_end

STAGES = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
          "INFER_RESPONSE_COMPLETE", "REQUEST_END"]
HTTP = ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"]
GRPC = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"]
REPOSITORY = ["--model-repository", SAMPLES, "--model-control-mode", "explicit", "--load-model", "simple"]


def trace(**settings):
    """Flags of --trace-config; `triton_file` stands for `triton,file`."""
    return [f"--trace-config={key.replace('__', ',').replace('_', '-')}={value}" for key, value in settings.items()]


def infer(module, address, **options):
    with module.InferenceServerClient(address) as client:
        inputs = []
        for name in ("INPUT0", "INPUT1"):
            inputs.append(module.InferInput(name, [1, 16], "INT32"))
            inputs[-1].set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
        return client.infer("simple", inputs, **options)


def entries_by_trace(path):
    traces = {}
    for entry in json.loads(path.read_text()):
        traces.setdefault(entry["id"], []).append(entry)
    return traces


def stamps(entries):
    return {stamp["name"]: stamp["ns"] for entry in entries for stamp in entry.get("timestamps", [])}


def test_a_trace_has_every_stage_in_order_on_both_protocols(start, tmp_path):
    path = tmp_path / "trace.json"
    server = start(*REPOSITORY, *trace(rate=1, level="TIMESTAMPS", triton__file=path))
    infer(tritonclient.http, server.http, request_id="by http")
    infer(tritonclient.grpc, server.grpc)
    assert server.stop() == 0
    by_http, by_grpc = entries_by_trace(path).values()
    for entries, wire in ((by_http, HTTP), (by_grpc, GRPC)):
        times = stamps(entries)
        assert set(times) == {*STAGES, *wire}
        assert [times[name] for name in STAGES[:-1]] == sorted(times[name] for name in STAGES[:-1])
        assert times[wire[0]] <= times["REQUEST_START"] and times["INFER_RESPONSE_COMPLETE"] <= times[wire[2]] <= times[wire[3]]
    heads = [next(entry for entry in entries if "model_name" in entry) for entries in (by_http, by_grpc)]
    assert heads[0] == {"id": heads[0]["id"], "model_name": "simple", "model_version": 1, "request_id": "by http"}
    assert heads[1] == {"id": heads[1]["id"], "model_name": "simple", "model_version": 1}


def test_tensors_are_text(start, tmp_path):
    path = tmp_path / "trace.json"
    server = start(*REPOSITORY, *trace(rate=1, level="TENSORS", triton__file=path))
    infer(tritonclient.http, server.http)
    assert server.stop() == 0
    (entries,) = entries_by_trace(path).values()
    assert not stamps(entries)
    tensors = [(entry["activity"], entry["tensor"]["name"]) for entry in entries if "activity" in entry]
    assert tensors == [(activity, name) for activity, names in (("TENSOR_QUEUE_INPUT", ("INPUT0", "INPUT1")),
                                                               ("TENSOR_BACKEND_INPUT", ("INPUT0", "INPUT1")),
                                                               ("TENSOR_BACKEND_OUTPUT", ("OUTPUT0", "OUTPUT1")))
                       for name in names]
    sums = next(entry["tensor"] for entry in entries if entry.get("tensor", {}).get("name") == "OUTPUT0")
    assert sums == {"name": "OUTPUT0", "data": ",".join(str(2 * i) for i in range(16)), "shape": "1,16", "dtype": "INT32"}


def test_rate_count_and_frequency_choose_traces_and_files(start, tmp_path):
    path = tmp_path / "trace.json"
    server = start(*REPOSITORY, *trace(rate=2, level="TIMESTAMPS", count=3, triton__file=path, triton__log_frequency=2))
    for _ in range(10):
        infer(tritonclient.http, server.http)
    with tritonclient.http.InferenceServerClient(server.http) as client:
        assert client.get_trace_settings()["trace_count"] == "0"
        assert client.update_trace_settings(model_name="simple", settings={"trace_rate": "1", "trace_count": "1"})["trace_rate"] == "1"
        for _ in range(2):
            infer(tritonclient.http, server.http)
        assert client.get_trace_settings("simple")["trace_count"] == "0"
    assert server.stop() == 0
    # The last trace of a count closes its file.
    assert [len(entries_by_trace(tmp_path / f"trace.json.{part}")) for part in range(3)] == [2, 1, 1]
    assert not path.exists() and not (tmp_path / "trace.json.3").exists()


def test_without_traces_there_is_no_file(start, tmp_path):
    path = tmp_path / "trace.json"
    server = start(*REPOSITORY, *trace(rate=1, triton__file=path))
    infer(tritonclient.http, server.http)
    assert server.stop() == 0 and not path.exists()


def test_steps_of_an_ensemble_are_children(start, tmp_path):
    path = tmp_path / "trace.json"
    server = start(*REPOSITORY, "--load-model", "simple_ensemble", *trace(rate=1, level="TIMESTAMPS", triton__file=path))
    with tritonclient.http.InferenceServerClient(server.http) as client:
        inputs = [tritonclient.http.InferInput(name, [1, 16], "INT32") for name in "AB"]
        for given in inputs:
            given.set_data_from_numpy(np.ones((1, 16), np.int32))
        client.infer("simple_ensemble", inputs)
    assert server.stop() == 0
    traces = entries_by_trace(path)
    heads = {number: next(entry for entry in entries if "model_name" in entry) for number, entries in traces.items()}
    (root,) = (number for number, head in heads.items() if head["model_name"] == "simple_ensemble")
    steps = {number: head for number, head in heads.items() if number != root}
    assert len(steps) == 2 and all(head["parent_id"] == root and head["model_name"] == "simple" for head in steps.values())
    assert all(set(stamps(traces[number])) == set(STAGES) for number in steps)


REPEAT = """
backend: "repeat" max_batch_size: 0
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
        { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" }
                                 histogram_options { buckets: [ 50, 60000 ] } } }
"""


def test_decoupled_models_have_a_histogram_and_a_trace_of_every_response(start, tmp_path):
    (tmp_path / "models" / "repeat" / "1").mkdir(parents=True)
    (tmp_path / "models" / "repeat" / "config.pbtxt").write_text(REPEAT)
    path = tmp_path / "trace.json"
    server = start("--model-repository", tmp_path / "models", "--metrics-config=histogram_latencies=true",
                   *trace(rate=1, level="TIMESTAMPS", triton__file=path))
    answers = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        inputs = []
        for name, values, kind in (("IN", [7, 8, 9], np.int32), ("DELAY", [100, 0, 0], np.uint32), ("WAIT", [0], np.uint32)):
            inputs.append(tritonclient.grpc.InferInput(name, [len(values)], np.dtype(kind).name.upper()))
            inputs[-1].set_data_from_numpy(np.array(values, kind))
        client.async_stream_infer("repeat", inputs)
        assert [answers.get(timeout=30).as_numpy("OUT")[0] for _ in range(3)] == [7, 8, 9]
        client.stop_stream()
    page = metrics(server)
    name, label = "nv_inference_first_response_histogram_ms", 'model="repeat",version="1"'
    counts = [page[f'{name}_bucket{{{label},le="{bound}"}}'] for bound in ("50", "60000", "+Inf")]
    assert counts == [0, 1, 1] and page[f"{name}_sum{{{label}}}"] >= 100
    assert server.stop() == 0
    (entries,) = entries_by_trace(path).values()
    names = [stamp["name"] for entry in entries for stamp in entry.get("timestamps", [])]
    assert names.count("INFER_RESPONSE_COMPLETE") == 3 and names.count("REQUEST_END") == 1
    assert set(names) == {*STAGES, *GRPC}


def fields(message):
    """Number and value of each field of a protobuf message."""
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    at = 0
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
            yield key >> 3, message[at:at + length]
            at += length


def inside(message, *path):
    """The messages at a path of field numbers."""
    found = [message]
    for number in path:
        found = [value for outer in found for field, value in fields(outer) if field == number]
    return found


def attributes(message, number):
    return {inside(pair, 1)[0].decode(): (inside(pair, 2, 1) or inside(pair, 2, 3))[0] for pair in inside(message, number)}


@pytest.fixture
def collector():
    """An address that spans can be sent to, and the messages that came."""
    messages = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            messages.put((self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listener.server_address[1]}/v1/traces", messages
    listener.shutdown()
    thread.join()
    listener.server_close()


def test_a_collector_gets_nested_spans(start, collector):
    url, messages = collector
    server = start(*REPOSITORY, *trace(mode="opentelemetry", rate=1000, level="TIMESTAMPS", opentelemetry__url=url),
                   "--trace-config=opentelemetry,resource=test.key=value")
    for module, address, digit in ((tritonclient.http, server.http, "a"), (tritonclient.grpc, server.grpc, "b")):
        # The header of a client that traces the request itself forces a trace, whatever the rate.
        infer(module, address, headers={"traceparent": f"00-{digit * 32}-{digit * 16}-01"}, request_id=digit)
        infer(module, address)
    with tritonclient.http.InferenceServerClient(server.http) as client:
        settings = client.get_trace_settings()
        assert settings["trace_mode"] == "opentelemetry" and settings["url"] == url and "trace_file" not in settings
    assert server.stop() == 0
    received = [messages.get_nowait() for _ in range(messages.qsize())]
    assert {path for path, *_ in received} == {"/v1/traces"}
    assert {kind for _, kind, _ in received} == {"application/x-protobuf"}
    resource = attributes(inside(received[0][2], 1, 1)[0], 1)
    assert resource == {"service.name": b"triton-inference-server", "test.key": b"value"}
    spans = [span for *_, body in received for span in inside(body, 1, 2, 2)]
    assert len(spans) == 6
    for digit in "ab":
        mine = {inside(span, 5)[0]: span for span in spans if inside(span, 1)[0].hex() == digit * 32}
        assert set(mine) == {b"InferRequest", b"simple", b"compute"}
        root, model, compute = (mine[name] for name in (b"InferRequest", b"simple", b"compute"))
        assert inside(root, 4)[0].hex() == digit * 16
        assert inside(model, 4) == inside(root, 2) and inside(compute, 4) == inside(model, 2)
        told = attributes(model, 9)
        assert told["triton.model_name"] == b"simple" and told["triton.model_version"] == 1
        assert told["triton.request_id"] == digit.encode()
        assert [event.decode() for event in inside(compute, 11, 2)] == STAGES[2:6]
        assert [event.decode() for event in inside(model, 11, 2)] == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
        assert {event.decode() for event in inside(root, 11, 2)} == {*(HTTP if digit == "a" else GRPC), "INFER_RESPONSE_COMPLETE"}


def http_address(path, process):
    """Where the server listens, once its log file says so."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = dict(LISTENING.findall(path.read_text()))
        if len(found) == 3:
            return found["HTTPService"]
        time.sleep(0.02)
    raise RuntimeError("the server did not start:\n" + path.read_text())


def test_the_log_changes_while_the_server_runs(program, tmp_path):
    path = tmp_path / "log"
    path.write_text("before\n")
    process = subprocess.Popen([program, "serve", *map(str, REPOSITORY), *ANY_PORT, "--log-file", str(path)])
    try:
        address = http_address(path, process)
        assert path.read_text().startswith("before\n"), "a log is appended to"
        with tritonclient.http.InferenceServerClient(address) as client:
            client.update_log_settings({"log_verbose_level": 1, "log_format": "ISO8601"})
            client.is_server_live()
            client.is_server_live()
            client.update_log_settings({"log_verbose_level": 0, "log_format": "default"})
            client.is_server_live()
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
    lines = path.read_text().splitlines()
    live = [line for line in lines if "/v2/health/live" in line]
    assert live and all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ I \d+ \w+\.rs:\d+\] \"", line) for line in live)
    assert len(live) == 2
    assert re.match(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \w+\.rs:\d+\] ", lines[-1])


@pytest.mark.parametrize("escape, message", [("1", '"a model failed to load '), ("0", "a model failed to load ")])
def test_levels_go_to_their_streams(program, tmp_path, escape, message):
    wrong = tmp_path / "wrong" / "1" / "model.onnx"
    wrong.parent.mkdir(parents=True)
    wrong.write_text("no model")
    done = subprocess.run([program, "serve", "--model-repository", tmp_path, *ANY_PORT], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, "TRITON_SERVER_ESCAPE_LOG_MESSAGES": escape})
    assert done.returncode != 0
    assert f"] {message}" in done.stderr
    # The failed start itself is told once.
    assert done.stderr.count("creating server: ") == 1
    assert not re.search(r"^[EW]\d{4} ", done.stdout, re.M)
    assert re.search(r"^E\d{4} ", done.stderr, re.M) and not re.search(r"^I\d{4} ", done.stderr, re.M)


def test_metrics_families_follow_the_flags(start):
    server = start(*REPOSITORY, "--metrics-config=summary_latencies=true", "--metrics-config", "counter_latencies=false",
                   "--metrics-config=summary_quantiles=0.5:0.05,0.75:0.01")
    for _ in range(5):
        infer(tritonclient.http, server.http)
    page = metrics(server)
    label = 'model="simple",version="1"'
    assert page[f'nv_inference_request_summary_us_count{{{label}}}'] == 5
    quantiles = [page[f'nv_inference_request_summary_us{{{label},quantile="{quantile}"}}'] for quantile in ("0.5", "0.75")]
    assert 0 < quantiles[0] <= quantiles[1] <= page[f'nv_inference_request_summary_us_sum{{{label}}}']
    assert page[f"nv_inference_request_success{{{label}}}"] == 5
    assert not any("_duration_us" in name for name in page)


def test_metrics_by_default(start):
    server = start(*REPOSITORY, "--allow-cpu-metrics=false")
    infer(tritonclient.grpc, server.grpc)
    page = metrics(server)
    label = 'model="simple",version="1"'
    assert page[f"nv_inference_count{{{label}}}"] == 1
    assert page[f"nv_inference_request_duration_us{{{label}}}"] > 0
    assert page["nv_pinned_memory_pool_used_bytes"] == 0
    log = "".join(server.log)
    assert "| model_control_mode " in log and "MODE_EXPLICIT" in log and "| Backend " in log
    assert {name for name in page if "failure" in name} == {
        f'nv_inference_request_failure{{model="simple",reason="{reason}",version="1"}}'
        for reason in ("BACKEND", "CANCELED", "OTHER", "REJECTED")}
    assert not any("summary" in name or "nv_cpu" in name or "cache" in name for name in page)


@pytest.mark.parametrize("flag, text", [
    ("--metrics-config=summary_quantiles=2:0.1", "got '2:0.1'"),
    ("--metrics-config=colour=red", "no setting 'colour'"),
    ("--trace-config=opentelemetry,url=https://h/x", "expects http://HOST:PORT/PATH"),
    ("--trace-config=level=LOUD", "invalid value for trace level option: LOUD"),
])
def test_wrong_flags_are_named(program, flag, text):
    status, output = run_to_end(program, "serve", *REPOSITORY, *ANY_PORT, flag)
    assert status != 0 and text in output


def metrics(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        text = answer.read().decode()
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}

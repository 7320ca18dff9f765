"""Health, metadata, configuration, index, statistics and metrics."""

import re
import urllib.request

import grpc
import pytest
import tritonclient.grpc
import tritonclient.http

from conftest import connect, model_names, sample_names
from tensors import check_simple, simple_inputs


def plain(protocol, client, call, *arguments):
    """The same dictionary from either protocol."""
    if protocol is tritonclient.grpc:
        return getattr(client, call)(*arguments, as_json=True)
    return getattr(client, call)(*arguments)


def test_live_ready_and_model_ready(client):
    assert client.is_server_live() and client.is_server_ready()
    for name in sample_names():
        assert client.is_model_ready(name), name
    assert not client.is_model_ready("nosuch")


def test_server_metadata(protocol, client):
    found = plain(protocol, client, "get_server_metadata")
    assert found["name"] and found["version"]
    assert {"statistics", "model_configuration", "binary_tensor_data", "classification"} <= set(found["extensions"])


def test_model_metadata(protocol, client):
    found = plain(protocol, client, "get_model_metadata", "digits")
    assert found["name"] == "digits" and found["versions"] == ["1"]
    (tensor,) = found["inputs"]
    assert tensor["name"] == "IMAGE" and tensor["datatype"] == "FP32"
    assert [int(n) for n in tensor["shape"]] == [-1, 1, 8, 8]
    (tensor,) = found["outputs"]
    assert [int(n) for n in tensor["shape"]] == [-1, 10]


def test_model_configuration(protocol, client):
    found = plain(protocol, client, "get_model_config", "digits")
    config = found.get("config", found)
    assert config["name"] == "digits" and config["max_batch_size"] == 32
    assert config["output"][0]["label_filename"] == "labels.txt"
    assert [int(n) for n in config["dynamic_batching"]["preferred_batch_size"]] == [8, 16]


def test_repository_index(protocol, client):
    found = plain(protocol, client, "get_model_repository_index")
    models = found.get("models", []) if isinstance(found, dict) else found
    assert sorted(model["name"] for model in models) == model_names()
    assert all(model["state"] == "READY" for model in models)


def counts(client, model):
    """Statistics of one model as numbers, over HTTP."""
    (found,) = client.get_inference_statistics(model)["model_stats"]
    return found


def test_statistics_count_requests_and_rows(protocol, client, server):
    with connect(tritonclient.http, server) as reader:
        before = counts(reader, "simple_string")
        import numpy as np

        rows = np.full((3, 16), "5", dtype=object)
        inputs = [protocol.InferInput(name, [3, 16], "BYTES") for name in ("INPUT0", "INPUT1")]
        for tensor in inputs:
            tensor.set_data_from_numpy(rows)
        for _ in range(4):
            client.infer("simple_string", inputs)
        after = counts(reader, "simple_string")
    assert after["inference_count"] - before["inference_count"] == 12
    assert after["execution_count"] - before["execution_count"] == 4
    stats, earlier = after["inference_stats"], before["inference_stats"]
    assert stats["success"]["count"] - earlier["success"]["count"] == 4
    for part in ("queue", "compute_input", "compute_infer", "compute_output"):
        assert stats[part]["ns"] >= earlier[part]["ns"]


def test_grpc_statistics_agree(server):
    with connect(tritonclient.http, server) as http, connect(tritonclient.grpc, server) as rpc:
        ours = rpc.get_inference_statistics("identity_bool", as_json=True)["model_stats"][0]
        theirs = counts(http, "identity_bool")
    assert int(ours.get("inference_count", 0)) == theirs["inference_count"]


def test_grpc_health_service(server):
    from tritonclient.grpc import service_pb2  # noqa: F401  the client's own stubs lack grpc.health

    with grpc.insecure_channel(server.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        # An empty HealthCheckRequest asks for the whole server; field 1 = 1 is SERVING.
        assert check(b"", timeout=10) == b"\x08\x01"


def metrics(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return answer.read().decode()


def value(text, family, model):
    found = re.search(rf'^{family}{{[^}}]*model="{model}"[^}}]*}} (\S+)$', text, re.M)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("family, growth", [
    ("nv_inference_request_success", 5),
    ("nv_inference_count", 5),
    ("nv_inference_exec_count", 5),
])
def test_metrics_count(server, family, growth):
    before = value(metrics(server), family, "simple")
    with connect(tritonclient.http, server) as client:
        first, second, inputs = simple_inputs(tritonclient.http)
        for _ in range(5):
            check_simple(client.infer("simple", inputs), first, second)
    assert value(metrics(server), family, "simple") - before == growth


def test_metrics_families_have_help_and_type(server):
    text = metrics(server)
    for family in ("nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count",
                   "nv_inference_exec_count", "nv_inference_request_duration_us", "nv_inference_queue_duration_us",
                   "nv_inference_compute_input_duration_us", "nv_inference_compute_infer_duration_us",
                   "nv_inference_compute_output_duration_us"):
        assert f"# HELP {family} " in text and f"# TYPE {family} counter" in text

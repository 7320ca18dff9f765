"""Repositories as namespaces of models: what clients, metrics and the log see of them."""

import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.utils import InferenceServerException

from conftest import connect

CONFIG = """backend: "identity"
input { name: "IN" data_type: TYPE_INT32 dims: 2 }
output { name: "OUT" data_type: TYPE_INT32 dims: 2 }
"""
ENSEMBLE = """platform: "ensemble"
input { name: "IN" data_type: TYPE_INT32 dims: 2 }
output { name: "OUT" data_type: TYPE_INT32 dims: 2 }
ensemble_scheduling { step { model_name: "both" model_version: -1
  input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" } } }
"""
AMBIGUOUS = ("There are 2 identifiers of model 'both' in global map, model namespace must be provided to resolve "
             "ambiguity.")


@pytest.fixture
def repositories(tmp_path):
    models = {"a/both": CONFIG, "a/one": CONFIG, "b/both": CONFIG, "b/e": ENSEMBLE}
    for model, config in models.items():
        (tmp_path / model / "1").mkdir(parents=True)
        (tmp_path / model / "config.pbtxt").write_text(config, encoding="utf-8")
    return [tmp_path / "a", tmp_path / "b"]


def begin(start, repositories, *flags):
    chosen = [flag for path in repositories for flag in ("--model-repository", path)]
    return start(*chosen, "--model-namespacing=true", *flags)


def ask(protocol, client, model):
    values = np.array([3, 4], dtype=np.int32)
    asked = protocol.InferInput("IN", [2], "INT32")
    asked.set_data_from_numpy(values)
    assert (client.infer(model, [asked]).as_numpy("OUT") == values).all()


def refused(call):
    with pytest.raises(InferenceServerException) as error:
        call()
    return error.value


def metrics(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        return answer.read().decode()


def test_a_name_in_two_namespaces_is_refused_and_serves_ensembles(protocol, start, repositories):
    server = begin(start, repositories)
    a, b = repositories
    with connect(protocol, server) as client:
        assert client.is_server_ready()
        ask(protocol, client, "one")
        ask(protocol, client, "e")
        error = refused(lambda: ask(protocol, client, "both"))
        assert error.message() == AMBIGUOUS
        assert error.status() == ("StatusCode.INVALID_ARGUMENT" if protocol is tritonclient.grpc else "400")
        assert refused(lambda: client.get_model_metadata("both")).message() == AMBIGUOUS
        assert not client.is_model_ready("both")
        unknown = refused(lambda: client.get_model_config("nope"))
        assert unknown.message() == "Request for unknown model: 'nope' is not found"
        assert unknown.status() == error.status()
    lines = metrics(server).splitlines()
    for model, namespace, count in [("both", a, 0), ("both", b, 1), ("one", a, 1), ("e", b, 1)]:
        assert f'nv_inference_count{{model="{model}",namespace="{namespace}",version="1"}} {count}' in lines
    log = "".join(server.log)
    for model in [f"{a}::both", f"{b}::both", f"{b}::e"]:
        assert f"| {model} " in log


def test_loads_and_the_index_name_all_namespaces(protocol, start, repositories):
    server = begin(start, repositories, "--model-control-mode=explicit")
    with connect(protocol, server) as client:
        def index():
            found = client.get_model_repository_index(**({"as_json": True} if protocol is tritonclient.grpc else {}))
            found = found.get("models", []) if isinstance(found, dict) else found
            return [(line["name"], line.get("state", "")) for line in found]
        assert index() == [("both", ""), ("one", ""), ("both", ""), ("e", "")]
        client.load_model("both")
        assert index() == [("both", "READY"), ("one", ""), ("both", "READY"), ("e", "")]
        client.load_model("e")
        ask(protocol, client, "e")
        client.unload_model("both")
        assert refused(lambda: ask(protocol, client, "e")).message() == (
            "Request for unknown model: '" + str(repositories[1]) + "::e' has no available versions")
        error = refused(lambda: client.load_model("nope"))
        assert error.message() == "failed to load 'nope', failed to poll from model repository"

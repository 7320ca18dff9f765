"""Starting and stopping: broken models, broken repositories, taken ports, signals."""

import shutil
import signal
import socket
import urllib.request

import grpc
import numpy as np
import onnx
import pytest
import tritonclient.http
from google.protobuf import descriptor_pool

from conftest import SAMPLES, connect
from server import run_to_end
from tensors import check_simple, simple_inputs

PORTS = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]


@pytest.fixture
def repository(tmp_path):
    """A repository with one good model."""
    shutil.copytree(SAMPLES / "simple", tmp_path / "simple")
    return tmp_path


def add_truncated(repository):
    shutil.copytree(SAMPLES / "digits", repository / "broken")
    model = repository / "broken" / "1" / "model.onnx"
    model.write_bytes(model.read_bytes()[:2000])
    config = repository / "broken" / "config.pbtxt"
    config.write_text(config.read_text().replace('"digits"', '"broken"'))


def test_one_bad_model_among_good_ones_is_survivable(repository, start):
    add_truncated(repository)
    server = start("--model-repository", repository, "--exit-on-error=false")
    with connect(tritonclient.http, server) as client:
        first, second, inputs = simple_inputs(tritonclient.http)
        check_simple(client.infer("simple", inputs), first, second)
        index = {model["name"]: model for model in client.get_model_repository_index()}
        assert index["broken"]["state"] == "UNAVAILABLE" and index["broken"]["reason"]
        assert not client.is_model_ready("broken")


def test_by_default_a_bad_model_ends_the_program(repository, program):
    add_truncated(repository)
    status, log = run_to_end(program, "serve", "--model-repository", repository, *PORTS)
    assert status != 0 and "broken" in log


def test_ten_mistakes_in_a_configuration_are_all_reported(repository, program):
    config = repository / "simple" / "config.pbtxt"
    mistakes = "".join(f"mistake_{i}: {i}\n" for i in range(10))
    config.write_text(config.read_text() + mistakes)
    status, log = run_to_end(program, "serve", "--model-repository", repository, *PORTS)
    assert status != 0
    missing = [i for i in range(10) if f"mistake_{i}" not in log]
    assert not missing, f"not reported: {missing}\n{log}"


# What may lie in the folder of caches, by the guide.
CACHES = {"models", "core-ml", "tuning.jsonl", "placements.jsonl"}


def test_the_folder_of_caches_has_all_that_is_kept_and_the_home_has_nothing(repository, tmp_path_factory, start,
                                                                            monkeypatch):
    shutil.copytree(SAMPLES / "digits", repository / "digits")
    # Models with smaller weights load as fast without a cache.
    weights = onnx.numpy_helper.from_array(np.ones((600, 600), np.float32), "weights")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "weights"], ["y"])], "product",
                                   [value("x", 1, [2, 600])], [value("y", 1, [2, 600])], [weights])
    opset = onnx.helper.make_opsetid("", 17)
    (repository / "product" / "1").mkdir(parents=True)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8),
              repository / "product" / "1" / "model.onnx")
    # Core ML, or the interpreter in its place, runs it in a worker.
    settings = 'parameters { key: "worker" value: "on" } parameters { key: "compile" value: "wait" }'
    accelerator = f'name: "apple_neural_engine" {settings}'
    with open(repository / "digits" / "config.pbtxt", "a", encoding="utf-8") as config:
        config.write(f"\noptimization {{ execution_accelerators {{ gpu_execution_accelerator {{ {accelerator} }} }} }}\n")
    home, kept = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("kept") / "caches"
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home))
    compiled = []
    for _ in range(2):
        server = start("--model-repository", repository, "--cache-dir", kept)
        with connect(tritonclient.http, server) as client:
            first, second, inputs = simple_inputs(tritonclient.http)
            check_simple(client.infer("simple", inputs), first, second)
            image = tritonclient.http.InferInput("IMAGE", [1, 1, 8, 8], "FP32")
            image.set_data_from_numpy(np.ones((1, 1, 8, 8), np.float32))
            assert client.infer("digits", [image]).as_numpy("PROBABILITIES").shape == (1, 10)
            rows = tritonclient.http.InferInput("x", [2, 600], "FP32")
            rows.set_data_from_numpy(np.ones((2, 600), np.float32))
            np.testing.assert_array_equal(client.infer("product", [rows]).as_numpy("y"), np.full((2, 600), 600.0))
        with urllib.request.urlopen(f"http://{server.metrics}/metrics") as page:
            lines = page.read().decode().splitlines()
        compiled.append([float(line.split()[-1]) for line in lines if line.startswith("ane_compiles_total")])
        assert server.stop() == 0
        found = {path.name for path in kept.iterdir()}
        assert {"models", "core-ml"} <= found <= CACHES, found
        assert not list(home.iterdir()), list(home.rglob("*"))
    # The second start found the packages of the first.
    assert compiled[0] != compiled[1] and compiled[1] in ([], [0.0]), compiled


def test_a_missing_repository_is_named(tmp_path, program):
    status, log = run_to_end(program, "serve", "--model-repository", tmp_path / "absent", *PORTS)
    assert status != 0 and "absent" in log


def test_a_taken_port_is_named(repository, program):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        status, log = run_to_end(program, "serve", "--model-repository", repository,
                                 "--http-port", port, "--grpc-port", "0", "--metrics-port", "0")
    assert status != 0 and port in log


def test_an_unknown_flag_is_named(program):
    status, log = run_to_end(program, "serve", "--nosuch-flag=1")
    assert status != 0 and "nosuch-flag" in log


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(repository, start, how):
    server = start("--model-repository", repository)
    with urllib.request.urlopen(f"http://{server.http}/v2/health/ready", timeout=10) as answer:
        assert answer.status == 200
    assert server.stop(how) == 0


def test_both_forms_of_a_flag(repository, start):
    server = start(f"--model-repository={repository}", "--log-verbose=1", "--strict-readiness=true")
    with connect(tritonclient.http, server) as client:
        assert client.is_model_ready("simple")


def test_explicit_models_at_start(repository, start):
    shutil.copytree(SAMPLES / "identity_fp32", repository / "identity_fp32")
    server = start("--model-repository", repository, "--model-control-mode=explicit", "--load-model=simple")
    with connect(tritonclient.http, server) as client:
        assert client.is_model_ready("simple") and not client.is_model_ready("identity_fp32")


def test_a_bare_onnx_file_is_configured_by_itself(tmp_path, start):
    (tmp_path / "bare" / "1").mkdir(parents=True)
    shutil.copy(SAMPLES / "digits" / "1" / "model.onnx", tmp_path / "bare" / "1")
    server = start("--model-repository", tmp_path)
    with connect(tritonclient.http, server) as client:
        config = client.get_model_config("bare")
    assert [i["name"] for i in config["input"]] == ["IMAGE"] and config["max_batch_size"] > 0


def test_tools_learn_the_services_from_the_server(server):
    reflection = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
    with grpc.insecure_channel(server.grpc) as channel:
        database = reflection.ProtoReflectionDescriptorDatabase(channel)
        assert "inference.GRPCInferenceService" in database.get_services()
        service = descriptor_pool.DescriptorPool(database).FindServiceByName("inference.GRPCInferenceService")
        assert "ModelStreamInfer" in [method.name for method in service.methods]

"""Fixtures: the running program and a stock client for it over HTTP and gRPC."""

import json
import os
import pathlib
import time

import pytest
import tritonclient.grpc
import tritonclient.http

from server import Server

ROOT = pathlib.Path(__file__).parents[2]
SAMPLES = ROOT / "examples" / "models"


def pytest_addoption(parser):
    parser.addoption("--soak-seconds", type=float, default=10.0, help="how long the soak test runs")
    parser.addoption("--llm-soak-seconds", type=float, default=20.0, help="how long the soak of the language model runs")
    parser.addoption("--load-seconds", type=float, default=5.0, help="how long the load test runs")


@pytest.fixture(scope="session")
def program():
    path = pathlib.Path(os.environ.get("GALATEA", ROOT / "target" / "debug" / "galatea"))
    if not path.exists():
        pytest.fail(f"{path} is missing: build it (cargo build), or name it in GALATEA")
    return path


@pytest.fixture(scope="session")
def server(program):
    with Server(program, "--model-repository", SAMPLES) as running:
        yield running


@pytest.fixture
def start(program):
    """Starts servers that stop at the end of the test."""
    started = []

    def begin(*arguments, **options):
        started.append(Server(program, *arguments, **options))
        return started[-1].start()

    yield begin
    for running in started:
        running.stop()


@pytest.fixture(params=["http", "grpc"])
def protocol(request):
    """The client module of one protocol."""
    return getattr(tritonclient, request.param)


@pytest.fixture
def client(protocol, server):
    with connect(protocol, server) as connected:
        yield connected


def connect(protocol, server, **options):
    address = server.http if protocol is tritonclient.http else server.grpc
    return protocol.InferenceServerClient(address, **options)


def until(condition, what):
    """Asks again and again for what the server tells nobody by itself."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    pytest.fail(f"{what} did not come")


def model_names():
    return sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


def sample_names():
    """The models that tensors are recorded for."""
    return [name for name in model_names() if (SAMPLES / name / "sample_input.json").is_file()]


def sample(name, kind):
    """The recorded request ("input") or answer ("output") of a sample model."""
    return json.loads((SAMPLES / name / f"sample_{kind}.json").read_text(encoding="utf-8"))

"""Cases recorded from a real Triton, where GALATEA_SHARED names the folder that holds them."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import golden_repository

# What ONNX models cannot show, or what the recorded version gets wrong.
SKIP_NEEDS = "python_backend,oracle_bug,cuda_text,decoupled,sequence,timing,counts,shm"

# The groups of the endpoints that exist.
GROUPS = ["http_health", "http_server_meta", "http_model_meta", "http_model_config", "http_infer_json",
          "http_infer_binary", "http_infer_error", "http_wire", "http_compression", "http_classification",
          "http_params", "http_versions", "http_stats", "grpc_health", "grpc_model_meta", "grpc_infer",
          "grpc_infer_error", "grpc_wire", "grpc_classification", "grpc_params", "grpc_stats", "metrics"]


@pytest.fixture(scope="module")
def recorded():
    folder = os.environ.get("GALATEA_SHARED")
    if not folder:
        pytest.skip("GALATEA_SHARED names no folder with recorded cases")
    return pathlib.Path(folder) / "triton-golden"


@pytest.fixture
def replayed(recorded, start, tmp_path):
    repository = tmp_path / "models"
    names = golden_repository.write_all(recorded / "models", repository)
    server = start("--model-repository", repository, "--model-control-mode=explicit",
                   *(f"--load-model={name}" for name in names if not name.startswith("ctl_")))
    report = tmp_path / "verdicts.json"
    done = subprocess.run([sys.executable, str(recorded / "replay.py"), "--http", server.http, "--grpc", server.grpc,
                           "--metrics", server.metrics, "--profile", "main", "--group", ",".join(GROUPS),
                           "--skip-missing", "--skip-needs", SKIP_NEEDS, "--repo", str(repository),
                           "--json", str(report)], capture_output=True, text=True, check=False, timeout=600)
    assert report.exists(), done.stdout + done.stderr
    return json.loads(report.read_text()), done.stdout


@pytest.mark.timeout(660)
def test_recorded_cases_are_answered_alike(replayed):
    verdicts, text = replayed
    print(text[-6000:])
    assert verdicts

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
          "http_params", "http_versions", "http_stats", "http_trace", "http_logging", "grpc_health", "grpc_model_meta", "grpc_infer",
          "grpc_infer_error", "grpc_wire", "grpc_classification", "grpc_params", "grpc_stats", "grpc_trace", "grpc_logging", "metrics"]

# Cases that are answered otherwise, with the reason.
VERSION = "names Triton's version"
BATCHING = "dynamic batching is completed for ONNX models, not for the recorded Python models"
PIPELINE = "the recorded server leaves a second request of a connection unanswered here; this one answers"
LOADING = "there is the time of loading too, as in newer versions"
KNOWN = {
    **dict.fromkeys(["http_server_meta.get", "http_server_meta.query", "http_server_meta.get_accept_gzip",
                     "http_server_meta.get_accept_text", "grpc_health.server_metadata", "grpc_wire.gzip_metadata"], VERSION),
    **dict.fromkeys(["http_model_config.config_add_sub", "http_model_config.config_reshape_io",
                     "http_model_config.config_id_bf16", "http_model_config.config_id_string",
                     "http_model_config.path_v1", "grpc_model_meta.config_add_sub",
                     "grpc_model_meta.config_reshape_io"], BATCHING),
    **dict.fromkeys(["http_health.pipelined", "http_wire.notfound_then_ok"], PIPELINE),
    **dict.fromkeys(["metrics.all_families", "metrics.labels", "metrics.slash"], LOADING),
    "http_health.live_http10_keepalive": "HTTP/1.0 with keep-alive: the answer carries its length",
    "http_health.version_09": "an HTTP/0.9 request is closed instead of waited on",
    "http_infer_error.body_not_utf8": "an identifier that is not UTF-8 is shown with a replacement character",
    "http_classification.all": "the stand-in's text of a float has the digits of a float, numpy's has the shortest",
}


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
    server = start("--model-repository", repository, "--model-control-mode=explicit", "--cache-config=local,size=1048576",
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
    print(text[text.rfind("\ngroup "):])
    differing = {verdict["name"] for verdict in verdicts if not verdict["strict"]}
    unexpected = [verdict for verdict in verdicts if verdict["name"] in differing - set(KNOWN)]
    for verdict in unexpected:
        print(verdict["name"], json.dumps(verdict["diff"])[:600])
    assert not unexpected, f"{len(unexpected)} of {len(verdicts)} cases differ"
    assert set(KNOWN) <= differing, f"now alike, so to be taken off the list: {sorted(set(KNOWN) - differing)}"

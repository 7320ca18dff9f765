"""What operators watch and change while models serve: A/B tests, power, and the bounds of CPU kernels."""

import json
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from conftest import SAMPLES, until

ECHO = """
backend: "identity"
input {{ name: "IN" data_type: TYPE_INT32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_INT32 dims: 1 }}
{more}
"""
ALL = "version_policy { all { } }"
VERSIONS = {"a": {"version": 1}, "b": {"version": 2}, "stop": {"min_requests": 10, "max_requests": 200}}


def write(folder, test, more=ALL, slower_ms=0):
    """A model of two versions that gives back what it gets; the second may take longer."""
    model = folder / "echo"
    for version in ("1", "2"):
        (model / version).mkdir(parents=True, exist_ok=True)
    (model / "2" / "parameters.json").write_text(json.dumps({"execute_delay_ms": slower_ms}))
    text = json.dumps(test).replace('"', '\\"')
    more += f' parameters {{ key: "ab_test" value {{ string_value: "{text}" }} }}' if test else ""
    (model / "config.pbtxt").write_text(ECHO.format(more=more))


def ask(address, path, body=None, headers=(), method=None):
    """Status and JSON of an answer."""
    data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
    request = urllib.request.Request(f"http://{address}{path}", data=data, headers=dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return error.code, json.loads(text) if text.startswith("{") else text


def infer(module, address, version="", **options):
    with module.InferenceServerClient(address) as client:
        tensor = module.InferInput("IN", [1], "INT32")
        tensor.set_data_from_numpy(np.array([7], dtype=np.int32))
        answer = client.infer("echo", [tensor], model_version=version, **options)
        assert answer.as_numpy("OUT").tolist() == [7]
        response = answer.get_response()
        return response["model_version"] if isinstance(response, dict) else response.model_version


def page(server):
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=60) as answer:
        return answer.read().decode()


def test_two_versions_are_compared_until_one_proves_better(start, program, tmp_path):
    write(tmp_path, VERSIONS, slower_ms=20)
    server = start("--model-repository", tmp_path)
    status, before = ask(server.http, "/v2/models/echo/ab")
    assert (status, before["state"], before["winner"], before["verdict"]) == (200, "running", None, "The test is running.")
    assert [variant["requests"] for variant in before["variants"]] == [0, 0]
    seen = set()
    for number in range(200):
        module = (tritonclient.http, tritonclient.grpc)[number % 2]
        seen.add(infer(module, server.http if module is tritonclient.http else server.grpc))
        if ask(server.http, "/v2/models/echo/ab")[1]["state"] == "stopped":
            break
    _, after = ask(server.http, "/v2/models/echo/ab")
    assert seen == {"1", "2"}
    assert (after["state"], after["winner"], after["reason"]) == ("stopped", "a", "faster")
    assert [variant["share"] for variant in after["variants"]] == [1.0, 0.0]
    assert after["latency"]["ratio"] > 1 and after["latency"]["interval"][0] > 1 and after["latency"]["p"] < after["needed_p"]
    assert {infer(tritonclient.http, server.http) for _ in range(10)} == {"1"}
    assert infer(tritonclient.http, server.http, version="2") == "2"
    lines = page(server)
    counted = sum(variant["requests"] for variant in after["variants"])
    requests = {variant["name"]: variant["requests"] for variant in after["variants"]}
    assert sum(requests.values()) == counted
    for name, version in (("a", 1), ("b", 2)):
        assert f'galatea_ab_requests_total{{model="echo",variant="{name}",version="{version}"}} {requests[name]}' in lines
    assert 'galatea_ab_winner{model="echo",variant="a",version="1"} 1' in lines and 'galatea_ab_running{model="echo"} 0' in lines
    report = tmp_path / "report.html"
    done = subprocess.run([program, "report", "echo", "--server", server.http, "--output", report, "--json"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ab_test"]["winner"] == "a"
    assert "a won: it is faster than b." in report.read_text()


def test_requests_with_an_id_stay_at_their_version(start, tmp_path):
    write(tmp_path, VERSIONS | {"sticky": "request_id", "stop": {}})
    server = start("--model-repository", tmp_path)
    first = {name: infer(tritonclient.http, server.http, request_id=name) for name in map(str, range(12))}
    assert set(first.values()) == {"1", "2"}
    for name, version in first.items():
        assert infer(tritonclient.grpc, server.grpc, request_id=name) == version


def test_two_settings_of_one_version_share_its_statistics(start, tmp_path):
    settings = {"b": {"parameters": {"execute_delay_ms": 2}}, "share": 0.3, "stop": {"min_requests": 10, "max_requests": 200}}
    write(tmp_path, settings, more="")
    server = start("--model-repository", tmp_path)
    for _ in range(40):
        assert infer(tritonclient.http, server.http) == "2"
    _, found = ask(server.http, "/v2/models/echo/ab")
    assert [variant["parameters"] for variant in found["variants"]] == [{}, {"execute_delay_ms": "2"}]
    _, stats = ask(server.http, "/v2/models/echo/stats")
    assert len(stats["model_stats"]) == 1 and stats["model_stats"][0]["inference_stats"]["success"]["count"] == 40


@pytest.mark.parametrize(
    "test,more,said",
    [
        ({"b": {"version": 3}}, ALL, "b: version 3 does not exist, expected one of 1, 2"),
        ({"b": {"version": 1}}, "", "b: version 1 is not loaded by version_policy, which chooses 2"),
        ({"b": {"version": 1}, "share": 2}, ALL, "share: 2 found, expected a number from 0 to 1"),
        ({"b": {"version": 1}, "share": -0.5}, ALL, "share: -0.5 found, expected a number from 0 to 1"),
        ({"b": {"version": 1}, "shares": 1}, ALL, "'shares' found, expected one of a, b, share, sticky, stop"),
        ({"b": {"version": "1"}}, ALL, 'b: version: "1" found, expected a whole number'),
    ],
)
def test_a_test_that_makes_no_sense_is_an_error_of_the_load(start, tmp_path, test, more, said):
    write(tmp_path, test, more)
    server = start("--model-repository", tmp_path, "--model-control-mode", "explicit")
    status, answer = ask(server.http, "/v2/repository/models/echo/load", {})
    assert status == 400 and "parameter 'ab_test'" in answer["error"] and said in answer["error"], answer
    assert ask(server.http, "/v2/models/echo/ab")[0] == 404
    assert ask(server.http, "/v2/health/live")[0] == 200
    # The same model without the test.
    write(tmp_path, None, more)
    assert ask(server.http, "/v2/repository/models/echo/load", {})[0] == 200
    status, answer = ask(server.http, "/v2/models/echo/ab")
    assert status == 404 and "has no A/B test" in answer["error"]


def test_power_is_changed_while_the_server_runs(start):
    server = start("--model-repository", SAMPLES, "--model-control-mode", "explicit", "--load-model", "simple",
                   "--http-restricted-api", "power:x-power=open-sesame")
    path = "/galatea/v1/power"
    assert ask(server.http, path)[0] == 403
    key = [("x-power", "open-sesame"), ("Content-Type", "application/json")]
    status, before = ask(server.http, path, headers=key)
    assert (status, before["target_watts"], before["profile"], before["thermal_protection"]) == (200, None, "balanced", True)
    assert before["target"] == "none" and 0 < before["pace"] <= 1
    status, after = ask(server.http, path, {"target_watts": 900, "profile": "low_power", "thermal_protection": False}, key)
    assert (status, after["target_watts"], after["profile"], after["thermal_protection"]) == (200, 900, "low_power", False)
    assert ask(server.http, path, {"target_watts": 901}, [("Content-Type", "application/json")])[0] == 403
    for body, said in [
        ({"target_watts": 0}, "target_watts: 0 found, expected watts above 0 and up to 1000, or null for no target"),
        ({"target_watts": "9"}, 'target_watts: "9" found'),
        ({"profile": "fast"}, "expected high_performance, balanced or low_power"),
        ({"thermal_protection": 1}, "thermal_protection: 1 found, expected true or false"),
        ({"watts": 9}, "'watts' found, expected one of target_watts, profile"),
        ([], "[] found, expected an object"),
        (b"{", ""),
    ]:
        status, answer = ask(server.http, path, body, key)
        assert status == 400 and said in answer["error"], answer
    # What is wrong changes nothing, a foreign page neither.
    assert ask(server.http, path, {"target_watts": 5}, [*key, ("Origin", "http://evil.example")])[0] == 403
    assert ask(server.http, path, headers=key)[1]["target_watts"] == 900
    measured = after["measured"] or {}
    if (idle := measured.get("idle_watts")) is not None:
        status, answer = ask(server.http, path, {"target_watts": idle / 2}, key)
        assert status == 400 and f"expected more than {idle:.1f}"[:20] in answer["error"]
    assert ask(server.http, path, {"target_watts": None}, key)[1]["target_watts"] is None


def test_kernels_of_the_cpu_have_bounds(start, program, tmp_path):
    cache = tmp_path / "cache"
    command = [program, "bench", SAMPLES / "digits", "--profile", "--json", "--seconds", "0.2", "--cache-dir", cache]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.strip().splitlines()[-1])
    kernels = found["profile"]["kernels"]
    computing = [kernel for kernel in kernels if kernel["flop"] > 0 and kernel["bytes"] > 0]
    assert computing and all(kernel["bound"] in ("compute", "memory") for kernel in computing), kernels
    assert all(0 < kernel["compute_share"] and 0 < kernel["memory_share"] for kernel in computing), kernels
    kept = json.loads((cache / "host-peaks.json").read_text())
    assert kept["vector_f32"] > 1e9 and kept["bytes"] > 1e8
    server = start("--model-repository", SAMPLES, "--model-control-mode", "explicit", "--load-model", "digits",
                   "--cache-dir", cache)
    assert ask(server.http, "/v2/profile/start", {})[0] == 200
    body = (SAMPLES / "digits" / "sample_input.json").read_bytes()
    for _ in range(5):
        assert ask(server.http, "/v2/models/digits/infer", body)[0] == 200
    until(lambda: ask(server.http, "/v2/profile")[1]["current"]["models"], "the profile of the model")
    status, profile = ask(server.http, "/v2/profile/stop", {"trace": False})
    (model,) = profile["models"]
    assert status == 200 and any(operator.get("bound") for operator in model["operators"]), model
    # The same file serves all programs of the host.
    assert json.loads((cache / "host-peaks.json").read_text()) == kept

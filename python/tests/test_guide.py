"""docs/serving.md: its configurations load, its requests are answered as it says, and its flags and links are there."""

import json
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
import tritonclient.http
from onnx import TensorProto, helper

from conftest import ROOT, SAMPLES
from server import run_to_end

GUIDE = (ROOT / "docs" / "serving.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIG = re.compile(r"# models/(\w+)/config\.pbtxt\n")
# curl's arguments, as the guide uses them.
CURL = re.compile(r"curl -s (?:-X (?P<method>\w+) )?localhost:(?P<port>\d+)(?P<path>\S+)(?: -d '(?P<body>[^']*)')?")


def blocks():
    return [(found[1], found[2]) for found in BLOCK.finditer(GUIDE)]


def exchanges():
    """The requests of each block of commands, and the answer to the last where the guide shows one."""
    listed = blocks()
    for (kind, text), following in zip(listed, [*listed[1:], ("", "")]):
        if kind == "sh" and text.startswith("curl"):
            shown = following[0] == "json" or following[1].startswith("data: ")
            yield text.splitlines(), following[1] if shown else None


def ask(method, url, body):
    """The text of an answer, which must have status 200."""
    request = urllib.request.Request(url, data=body.encode() if body else None, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refused:
        return pytest.fail(f"{method} {url} {body}: {refused.code} {refused.read().decode()}")


def total(path):
    """OUTPUT and AFTER are INPUT + BEFORE."""
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 1])  # noqa: E731
    nodes = [helper.make_node("Add", ["INPUT", "BEFORE"], ["OUTPUT"]), helper.make_node("Identity", ["OUTPUT"], ["AFTER"])]
    graph = helper.make_graph(nodes, "total", [value("INPUT"), value("BEFORE")], [value("OUTPUT"), value("AFTER")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The repository of the guide, and the names of its models."""
    folder = tmp_path_factory.mktemp("guide")
    found = []
    for _, text in blocks():
        if begins := CONFIG.match(text):
            version = folder / begins[1] / "1"
            version.mkdir(parents=True)
            (folder / begins[1] / "config.pbtxt").write_text(text)
            found.append(begins[1])
    total(folder / "total" / "1" / "model.onnx")
    return folder, found


@pytest.fixture
def running(start, names, tmp_path):
    folder, _ = names
    return start("--model-repository", folder, "--model-repository", SAMPLES, "--model-control-mode=explicit", "--load-model=*",
                 "--cache-config=local,size=1048576", "--rate-limit=execution_count", "--rate-limit-resource=R1:8",
                 "--trace-config", f"triton,file={tmp_path}/trace.json")


def test_every_configuration_of_the_guide_loads(running, names):
    assert len(names[1]) >= 9
    with tritonclient.http.InferenceServerClient(running.http) as client:
        for name in names[1]:
            assert client.is_model_ready(name), name


def test_every_request_of_the_guide_is_answered_as_shown(running):
    doors = {"8000": running.http, "8002": running.metrics}
    count = 0
    for commands, shown in exchanges():
        for command in commands:
            asked = CURL.fullmatch(command)
            assert asked, command
            method = asked["method"] or ("POST" if asked["body"] else "GET")
            answer = ask(method, f"http://{doors[asked['port']]}{asked['path']}", asked["body"])
            count += 1
        if shown and shown.startswith("data: "):
            assert answer == shown
        elif shown:
            assert json.loads(answer) == json.loads(shown), command
    assert count >= 12


def test_the_ensemble_and_the_countdown_of_the_guide_work(running):
    with tritonclient.http.InferenceServerClient(running.http) as client:
        tensors = [tritonclient.http.InferInput(name, [1, 16], "INT32") for name in "AB"]
        for tensor in tensors:
            tensor.set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
        assert client.infer("chain", tensors).as_numpy("TWICE_A").tolist() == [[2 * number for number in range(16)]]
    stream = ask("POST", f"http://{running.http}/v2/models/countdown/generate_stream", '{"INPUT":2}')
    assert re.findall(r'"OUTPUT":(\d+)', stream) == ["1", "0"], stream


def test_every_flag_of_the_guide_is_one(program):
    status, text = run_to_end(program, "serve", "--help")
    assert status == 0
    known = set(re.findall(r"--([a-z0-9-]+) <", text))
    for command in ("bench", "chat"):
        known |= set(re.findall(r"--([a-z0-9-]+)", run_to_end(program, command, "--help")[1]))
    named = set(re.findall(r"--([a-z][a-z0-9-]+)", GUIDE)) - {"help"}
    assert named <= known, named - known


def test_every_file_that_the_guides_name_is_there():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(r"`((?:docs|crates|python|examples)/[\w./-]+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_the_commands_of_the_readme_are_known(program):
    for command in ["serve", "inspect", "run", "bench", "quickstart"]:
        done = subprocess.run([str(program), command, "--help"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "sage" in done.stdout, f"{command}: {done.stdout}{done.stderr}"
    assert pathlib.Path(program).exists()

"""The models of examples/python answer as recorded, and as well as examples/README.md says.

They run in the interpreter that GALATEA_EXAMPLES_PYTHON names, else in that of the tests, which has no PyTorch.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import tritonclient.http
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tritonclient.utils import InferenceServerException

from conftest import ROOT, connect
from server import run_to_end
from tensors import array, check_outputs, wire_inputs

sys.path.insert(0, str(ROOT / "python"))

from samples.corpus import sentences  # noqa: E402

EXAMPLES = ROOT / "examples" / "python"
NAMED = os.environ.get("GALATEA_EXAMPLES_PYTHON")
INTERPRETER = NAMED or sys.executable
PYTHON = f"--backend-config=python,python-executable={INTERPRETER}"
README = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
# What models import beside NumPy.
IMPORTS = {"torch_digits": "torch", "sklearn_iris": "sklearn", "genre_tokenizer": "tokenizers", "genre": "tokenizers"}
BATCHING = {"preferred_batch_size": [4], "max_queue_delay_microseconds": 60_000_000}


@pytest.fixture(scope="module")
def missing():
    """The libraries that the interpreter does not have. One that is there and broken is not among them."""
    code = f"from importlib.util import find_spec; print(*(n for n in {sorted(set(IMPORTS.values()))} if not find_spec(n)))"
    found = subprocess.run([INTERPRETER, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    # The requirements of the tests have the others.
    assert NAMED or set(found) <= {"torch"}, f"{INTERPRETER} lacks {found}"
    return found


@pytest.fixture
def need(missing):
    """Skips the test of a model whose library is not there."""

    def check(name):
        if IMPORTS.get(name) in missing:
            pytest.skip(f"{INTERPRETER} has no {IMPORTS[name]}: name one in GALATEA_EXAMPLES_PYTHON that has")

    return check


@pytest.fixture(scope="module")
def examples(program, missing):
    from server import Server

    names = [name for name in NAMES if IMPORTS.get(name) not in missing]
    loads = [f"--load-model={name}" for name in names]
    with Server(program, "--model-repository", EXAMPLES, PYTHON, "--model-control-mode=explicit", *loads, timeout=170) as running:
        yield running


def sample(name, kind):
    return json.loads((EXAMPLES / name / f"sample_{kind}.json").read_text(encoding="utf-8"))


def tensors(protocol, name, rows=slice(None)):
    """The inputs of a recorded request, or of some of its rows."""
    made = []
    for tensor in sample(name, "input")["inputs"]:
        values = array(tensor)[rows]
        made.append(protocol.InferInput(tensor["name"], list(values.shape), tensor["datatype"]))
        made[-1].set_data_from_numpy(np.ascontiguousarray(values))
    return made


def some_rows(name, rows):
    """Rows of the recorded answer. Those of the tokenizer are padded to the next multiple of 16 tokens."""
    outputs = {tensor["name"]: (tensor, array(tensor)[rows]) for tensor in sample(name, "output")["outputs"]}
    if name == "genre_tokenizer":
        width = -(-outputs["ATTENTION_MASK"][1].sum(1).max() // 16) * 16
        outputs = {key: (tensor, values[:, :width]) for key, (tensor, values) in outputs.items()}
    plain = lambda value: value.decode() if isinstance(value, bytes) else value  # noqa: E731
    return [{**tensor, "shape": list(values.shape), "data": [plain(value) for value in values.ravel()]}
            for tensor, values in outputs.values()]


def texts(protocol, *values):
    tensor = protocol.InferInput("TEXT", [len(values), 1], "BYTES")
    tensor.set_data_from_numpy(np.array(values, dtype=object)[:, None])
    return [tensor]


def test_every_example_is_described_small_and_complete():
    assert len(NAMES) >= 6
    for name in NAMES:
        assert f"| `{name}` |" in README, name
        assert {"config.pbtxt", "sample_input.json", "sample_output.json", "1"} <= {p.name for p in (EXAMPLES / name).iterdir()}
        requirements = EXAMPLES / name / "requirements.txt"
        if requirements.exists():
            assert f"-r {name}/requirements.txt\n" in (EXAMPLES / "requirements.txt").read_text()
    made = {"__pycache__", "env"}
    files = [path for path in EXAMPLES.rglob("*") if path.is_file() and not made & set(path.parts)]
    assert sum(path.stat().st_size for path in files) < 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_an_example_answers_as_recorded(protocol, examples, need, name):
    need(name)
    with connect(protocol, examples) as client:
        result = client.infer(name, wire_inputs(protocol, sample(name, "input")["inputs"]))
    check_outputs(result, sample(name, "output")["outputs"])


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_file_is_a_request_as_it_stands(examples, need, name):
    need(name)
    body = (EXAMPLES / name / "sample_input.json").read_bytes()
    with urllib.request.urlopen(f"http://{examples.http}/v2/models/{name}/infer", body) as answer:
        same(json.load(answer), sample(name, "output"))


def same(found, wanted):
    """Compares answers as JSON."""
    assert (found["model_name"], found["model_version"]) == (wanted["model_name"], wanted["model_version"])
    assert [o["name"] for o in found["outputs"]] == [o["name"] for o in wanted["outputs"]]
    for got, expected in zip(found["outputs"], wanted["outputs"]):
        assert (got["datatype"], got["shape"]) == (expected["datatype"], expected["shape"])
        if expected["datatype"].startswith("FP"):
            np.testing.assert_allclose(array(got), array(expected), rtol=1e-4, atol=1e-5)
        else:
            assert got["data"] == expected["data"]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_an_example_alone_is_as_in_the_batch(protocol, examples, need, name):
    need(name)
    count = sample(name, "input")["inputs"][0]["shape"][0]
    assert count == 3
    with connect(protocol, examples) as client:
        for row in range(count):
            result = client.infer(name, tensors(protocol, name, slice(row, row + 1)))
            check_outputs(result, some_rows(name, slice(row, row + 1)))


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"genre"}))
def test_requests_that_share_an_execution_get_their_own_rows(start, need, name):
    need(name)
    parts = [slice(0, 1), slice(1, 3), slice(2, 3)]
    server = start("--model-repository", EXAMPLES, PYTHON, "--model-control-mode=explicit", timeout=170)
    with tritonclient.http.InferenceServerClient(server.http, concurrency=len(parts)) as client:
        load_joining(client, name)
        asked = [client.async_infer(name, tensors(tritonclient.http, name, rows)) for rows in parts]
        for rows, answer in zip(parts, asked):
            check_outputs(answer.get_result(timeout=60), some_rows(name, rows))
        counts = client.get_inference_statistics(name)["model_stats"][0]
    assert (counts["inference_count"], counts["execution_count"]) == (4, 1)


def load_joining(client, name):
    """Loads a model whose executions wait for four rows."""
    client.load_model(name)
    config = client.get_model_config(name)
    client.load_model(name, config=json.dumps({**config, "dynamic_batching": BATCHING}))


def test_a_text_that_is_not_utf8_is_refused_beside_one_that_is(start, need):
    need("genre_tokenizer")
    server = start("--model-repository", EXAMPLES, PYTHON, "--model-control-mode=explicit", timeout=170)
    http = tritonclient.http
    with http.InferenceServerClient(server.http, concurrency=2) as client:
        load_joining(client, "genre_tokenizer")
        good = client.async_infer("genre_tokenizer", tensors(http, "genre_tokenizer"))
        bad = client.async_infer("genre_tokenizer", texts(http, b"caf\xe9"))
        check_outputs(good.get_result(timeout=60), sample("genre_tokenizer", "output")["outputs"])
        with pytest.raises(InferenceServerException, match="TEXT is not UTF-8") as refused:
            bad.get_result(timeout=60)
        assert refused.value.status() == "400"
        assert client.get_inference_statistics("genre_tokenizer")["model_stats"][0]["execution_count"] == 1


def test_the_ensemble_takes_empty_and_long_texts_and_refuses_bad_ones(protocol, examples, need):
    need("genre")
    with connect(protocol, examples) as client:
        for text in (b"", "…".encode(), b"thou " * 5000):
            result = client.infer("genre", texts(protocol, text))
            scores = result.as_numpy("SCORE")
            assert sorted(result.as_numpy("LABEL")[0]) == [b"drama", b"legal", b"manual"]
            assert scores.sum() == pytest.approx(1, abs=1e-5) and (np.diff(scores) <= 0).all()
        with pytest.raises(InferenceServerException, match="TEXT is not UTF-8"):
            client.infer("genre", texts(protocol, b"\xff"))


def promised(name):
    """Share and number of the score that the README gives for a model."""
    row = next(line for line in README.splitlines() if line.startswith(f"| `{name}` |"))
    share, count = re.search(r"([\d.]+) % of (\d+) held-out", row).groups()
    return float(share), int(count)


def test_genre_is_served_as_well_as_the_readme_says(examples, need):
    need("genre")
    pairs = sentences()
    random.Random(1).shuffle(pairs)
    pairs = pairs[len(pairs) * 4 // 5:]
    right = 0
    with tritonclient.http.InferenceServerClient(examples.http) as client:
        for begin in range(0, len(pairs), 32):
            batch = pairs[begin:begin + 32]
            answer = client.infer("genre", texts(tritonclient.http, *(text.encode() for _, text in batch)))
            right += sum(found.decode() == label for found, (label, _) in zip(answer.as_numpy("LABEL")[:, 0], batch))
    assert (round(100 * right / len(pairs), 1), len(pairs)) == promised("genre")


def test_torch_digits_is_served_as_well_as_the_readme_says(examples, need):
    need("torch_digits")
    digits = load_digits()
    _, images, _, labels = train_test_split(digits.images.astype(np.float32), digits.target, test_size=0.25,
                                            random_state=0, stratify=digits.target)
    right = 0
    with tritonclient.http.InferenceServerClient(examples.http) as client:
        for begin in range(0, len(images), 50):
            tensor = tritonclient.http.InferInput("IMAGE", list(images[begin:begin + 50].shape), "FP32")
            tensor.set_data_from_numpy(np.ascontiguousarray(images[begin:begin + 50]))
            found = client.infer("torch_digits", [tensor]).as_numpy("DIGIT")[:, 0]
            right += int((found == labels[begin:begin + 50]).sum())
    assert (round(100 * right / len(images), 1), len(images)) == promised("torch_digits")


def test_the_request_of_the_readme_is_answered_as_shown(examples, need):
    found = re.search(r"^curl -s localhost:8000(\S*/genre/infer) -d '([^']*)'\n```\n+```json\n(.*?)\n```", README, re.MULTILINE)
    path, body, shown = found.groups()
    need("genre")
    with urllib.request.urlopen(f"http://{examples.http}{path}", body.encode()) as answer:
        same(json.load(answer), json.loads(shown))


def test_the_program_of_the_readme_runs(examples, need):
    need("genre")
    program = re.search(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1]
    assert "localhost:8000" in program
    done = subprocess.run([sys.executable, "-c", program.replace("localhost:8000", examples.http)], capture_output=True,
                          text=True, check=False)
    assert done.stdout.startswith("[b'manual' b'drama'] [0.9"), done.stdout + done.stderr


def test_the_flags_of_the_readme_are_known(program):
    known = set(re.findall(r"--([a-z0-9-]+) <", run_to_end(program, "serve", "--help")[1]))
    commands = re.findall(r"serve (--.*)", README)
    named = set(re.findall(r"--([a-z][a-z0-9-]+)", " ".join(commands)))
    assert len(commands) >= 2 and named <= known, named - known


def test_a_model_has_an_environment_of_its_own(start, tmp_path, need):
    need("sklearn_iris")
    folder = tmp_path / "sklearn_iris"
    shutil.copytree(EXAMPLES / "sklearn_iris", folder)
    line = re.search(r"^parameters .*EXECUTION_ENV_PATH.*$", README, re.MULTILINE)[0]
    with (folder / "config.pbtxt").open("a") as config:
        config.write(line + "\n")
    subprocess.run([INTERPRETER, "-m", "venv", "--without-pip", folder / "env"], check=True)
    places = subprocess.run([INTERPRETER, "-c", "import sys; print(*sys.path, sep='\\n')"], capture_output=True, text=True,
                            check=True).stdout
    site = next((folder / "env").glob("lib/python*/site-packages"))
    (site / "packages.pth").write_text("".join(f"{place}\n" for place in places.split("\n") if "site-packages" in place))
    # The setting for all models names no interpreter that could answer in its place.
    server = start("--model-repository", tmp_path, "--backend-config=python,python-executable=/nowhere/python", timeout=170)
    with tritonclient.http.InferenceServerClient(server.http) as client:
        check_outputs(client.infer("sklearn_iris", tensors(tritonclient.http, "sklearn_iris")),
                      sample("sklearn_iris", "output")["outputs"])

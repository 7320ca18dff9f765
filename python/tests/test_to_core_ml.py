"""The script that converts PyTorch models: what it reads of its arguments, how it compares, and whole conversions where PyTorch is."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

PYTHON = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(PYTHON))

import to_core_ml  # noqa: E402

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(50, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids)))

def make():
    torch.manual_seed(0)
    return Net()

def with_example():
    return make(), (torch.arange(8)[None],)
"""


def test_inputs_have_shapes_types_and_ranges():
    found = to_core_ml.Input.parse("ids=1,64:int32:3..9")
    assert (found.name, found.shape, found.dtype, found.low, found.high) == ("ids", (1, 64), "int32", 3.0, 9.0)
    numbers = found.sample(np.random.default_rng(0), (2, 100))
    assert numbers.dtype == np.int32 and numbers.min() >= 3 and numbers.max() < 9
    assert to_core_ml.Input.parse("x=3").dtype == "float32"
    assert to_core_ml.bucket_of("ids=1,16;mask=1,16") == {"ids": (1, 16), "mask": (1, 16)}


@pytest.mark.parametrize("text", ["x", "x=", "x=1,a", "x=1,0", "x=1:complex64", "x=1:int32:5"])
def test_what_is_no_input_is_refused_with_its_text(text):
    with pytest.raises(to_core_ml.Refused, match="x"):
        to_core_ml.Input.parse(text)


def test_a_difference_counts_as_a_share_of_the_largest_value():
    expected = np.array([1.0, 100.0])
    near = to_core_ml.compared("y", "", np.array([1.5, 100.0]), expected, 1e-2)
    assert near["agrees"] and near["difference"] == 0.5
    assert not to_core_ml.compared("y", "", np.array([1.0, 102.0]), expected, 1e-2)["agrees"]
    assert not to_core_ml.compared("y", "", np.array([np.nan, 100.0]), expected, 1e-2)["agrees"]
    assert not to_core_ml.compared("y", "", None, expected, 1e-2)["agrees"]
    assert not to_core_ml.compared("y", "", np.zeros(3), expected, 1e-2)["agrees"]


def test_a_program_that_is_not_there_is_named_before_anything_is_converted(tmp_path):
    out = tmp_path / "a.mlpackage"
    command = [sys.executable, PYTHON / "to_core_ml.py", "missing.py:make", out, "--galatea", "no-such-program"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 2 and not out.exists()
    assert "'no-such-program' that checks the package is not in PATH: name it with --galatea PROGRAM" in done.stderr


@pytest.mark.parametrize("model", ["a.onnx", "missing.py:make"])
def test_what_is_no_model_is_refused(model):
    pytest.importorskip("torch")
    command = [sys.executable, PYTHON / "to_core_ml.py", model, "a.mlpackage", "--no-check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 2 and "Error: " in done.stderr


@pytest.mark.parametrize(
    "factory,options",
    [
        ("make", ["--input", "ids=1,8:int64:0..50", "--bucket", "ids=1,16", "--output", "scores"]),
        ("with_example", ["--precision", "fp32"]),
    ],
)
def test_a_module_becomes_a_package_that_gives_the_same(program, tmp_path, factory, options):
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(MODEL)
    command = [sys.executable, PYTHON / "to_core_ml.py", f"{tmp_path / 'net.py'}:{factory}", tmp_path / "a.mlpackage"]
    command += ["--galatea", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count(" yes ") == (2 if "--bucket" in options else 1), done.stdout
    # What is not allowed to differ at all does.
    if "--bucket" in options:
        done = subprocess.run([*command, "--tolerance", "0"], capture_output=True, text=True, timeout=170)
        assert done.returncode == 1 and " NO " in done.stdout

"""`galatea run`, `inspect` and `bench` against ONNX Runtime.

The sample models always; MiniLM, BERT-base, ResNet-50 and MobileNetV2 where GALATEA_MODELS names a
folder that export_models.py filled.
"""

import json
import os
import pathlib
import subprocess

import numpy as np
import onnxruntime
import pytest

from conftest import SAMPLES
from server import run_to_end

# Relative to an output's largest magnitude. A float32 sum of k terms in another order differs by about
# sqrt(k) * 2^-24 of the sum of magnitudes: 4e-6 for the deepest sums here (ResNet-50's 4608 terms).
# Later layers average such errors out as often as they add them.
LIMIT = 1e-5

EXPORTED = ["minilm", "bert-base", "resnet50", "mobilenetv2"]


def encoder_inputs(rows):
    random = np.random.default_rng(rows)
    mask = np.ones((rows, 128), dtype=np.int64)
    mask[-1, 100:] = 0
    return {"input_ids": random.integers(0, 1000, (rows, 128), dtype=np.int64), "attention_mask": mask,
            "token_type_ids": np.zeros((rows, 128), dtype=np.int64)}


def vision_inputs(rows):
    return {"input": np.random.default_rng(rows).standard_normal((rows, 3, 224, 224), dtype=np.float32)}


def digit_inputs(rows):
    return {"IMAGE": np.random.default_rng(rows).integers(0, 17, (rows, 1, 8, 8)).astype(np.float32)}


def text_inputs(rows):
    return {"TEXT_BYTES": np.random.default_rng(rows).integers(97, 123, (rows, 40)).astype(np.uint8)}


def compare(program, folder, model, inputs, provider=None):
    """Runs both and returns the largest error relative to the largest magnitude of each output."""
    np.savez(folder / "in.npz", **inputs)
    extra = ["--provider", provider] if provider else []
    status, log = run_to_end(program, "run", model, "--inputs", folder / "in.npz", "--outputs", folder / "out",
                             *extra, timeout=600)
    assert status == 0, log
    found = np.load(folder / "out0.npz")
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert sorted(found.files) == sorted(names)
    worst = 0.0
    for name, wanted in zip(names, session.run(names, inputs)):
        assert found[name].dtype == wanted.dtype and found[name].shape == wanted.shape
        worst = max(worst, float(np.abs(found[name] - wanted).max() / np.abs(wanted).max()))
    return worst


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("provider", ["cpu", "reference"])
@pytest.mark.parametrize("name, make", [("digits", digit_inputs), ("sentence", text_inputs), ("lstm", text_inputs)])
def test_a_sample_equals_onnx_runtime(program, tmp_path, name, make, provider, rows):
    model = SAMPLES / name / "1" / "model.onnx"
    assert compare(program, tmp_path, model, make(rows), provider) < LIMIT


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_model_equals_onnx_runtime(program, tmp_path, name, rows):
    folder = os.environ.get("GALATEA_MODELS")
    if not folder:
        pytest.skip("GALATEA_MODELS names no folder; python/export_models.py fills one (needs torch)")
    model = pathlib.Path(folder) / f"{name}.onnx"
    make = encoder_inputs if name in ("minilm", "bert-base") else vision_inputs
    error = compare(program, tmp_path, model, make(rows))
    print(f"{name} batch {rows}: error {error:.2e}")
    assert error < LIMIT


def test_bench_prints_one_json_line(program):
    done = subprocess.run([str(program), "bench", str(SAMPLES / "digits" / "1" / "model.onnx"), "--seconds", "0.5",
                           "--threads", "1", "--json"], capture_output=True, text=True, timeout=60, check=True)
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert 0 < found["min_ms"] <= found["median_ms"] <= found["p99_ms"]
    assert found["runs"] >= 1 and found["provider"]


def test_inspect_lists_operators_and_shapes(program):
    status, text = run_to_end(program, "inspect", SAMPLES / "digits" / "1" / "model.onnx")
    assert status == 0
    for word in ("Conv", "Softmax", "IMAGE", "PROBABILITIES"):
        assert word in text


@pytest.mark.parametrize("damage", ["empty", "truncated", "noise", "absent"])
def test_a_damaged_file_is_named_and_refused(program, tmp_path, damage):
    model = tmp_path / "model.onnx"
    good = (SAMPLES / "digits" / "1" / "model.onnx").read_bytes()
    content = {"empty": b"", "truncated": good[: len(good) // 2], "noise": bytes(range(256)) * 40}
    if damage in content:
        model.write_bytes(content[damage])
    np.savez(tmp_path / "in.npz", **digit_inputs(1))
    status, log = run_to_end(program, "run", model, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out")
    assert status not in (0, 101) and status > 0, log
    assert "model.onnx" in log and "panicked" not in log

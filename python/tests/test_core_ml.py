"""Packages that `galatea convert` writes: coremltools' own loader takes every operation, and they compute what
their models do."""

import json
import pathlib
import subprocess

import coremltools
import numpy as np
import pytest

from conftest import SAMPLES


EXPORTS = pathlib.Path(__file__).parents[2] / "crates" / "testkit" / "exports"


def convert_file(program, source, package, *options):
    command = [program, "convert", source, package, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def convert(program, model, package, *options):
    return convert_file(program, SAMPLES / model / "1" / "model.onnx", package, *options)


def run(program, model, inputs, prefix):
    command = [program, "run", model, "--inputs", inputs, "--outputs", prefix, "--no-model-cache"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(np.load(f"{prefix}0.npz"))


def functions(package):
    """The operations of each function of a package, after coremltools has checked each by its own definition."""
    from coremltools.converters.mil.frontend.milproto.load import load

    spec = coremltools.utils.load_spec(str(package))
    weights = package / "Data" / "com.apple.CoreML" / "weights"
    program = load(spec, spec.specificationVersion, str(weights))
    names = program.functions.items()
    return {name: [operation.op_type for operation in function.operations] for name, function in names}


def loaded(package):
    """The operations of a package with one function."""
    return functions(package)["main"]


CASES = {
    "lstm": {"TEXT_BYTES": np.arange(97, 109, dtype=np.uint8).reshape(2, 6)},
    "simple": {"INPUT0": np.arange(16, dtype=np.int32).reshape(1, 16), "INPUT1": np.ones((1, 16), np.int32)},
    "digits": {"IMAGE": np.random.default_rng(5).random((2, 1, 8, 8), dtype=np.float32)},
}


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
@pytest.mark.parametrize("model", CASES)
def test_samples_become_packages_that_compute_the_same(program, tmp_path, model, precision):
    package = tmp_path / "model.mlpackage"
    done = convert(program, model, package, "--precision", precision)
    assert done.returncode == 0, done.stderr
    assert loaded(package)
    inputs = tmp_path / "in.npz"
    np.savez(inputs, **CASES[model])
    found = run(program, package, inputs, tmp_path / "found")
    expected = run(program, SAMPLES / model / "1" / "model.onnx", inputs, tmp_path / "expected")
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        tolerance = 2e-2 if precision == "fp16" else 1e-4
        np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
@pytest.mark.parametrize(
    "model",
    ["bert-base", "bert-base.dynamo", "conformer", "gpt2", "gpt2.dynamo", "llama", "llama.dynamo"]
    + ["t5-decoder", "t5-encoder", "vit", "vit.dynamo", "whisper-decoder", "whisper-encoder"],
)
def test_every_operation_of_a_package_is_one_of_core_ml(program, tmp_path, model, precision):
    package = tmp_path / "model.mlpackage"
    done = convert_file(program, EXPORTS / f"{model}.onnx", package, "--precision", precision)
    assert done.returncode == 0, done.stderr
    assert loaded(package)


def test_a_language_model_becomes_functions_with_states(program, tmp_path):
    folder = tmp_path / "chat"
    options = ["--context", "64", "--prefill", "16", "--chunk-bytes", "500000"]
    done = convert_file(program, SAMPLES / "chat" / "1", folder, *options)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / "chunks.json").read_text())
    assert manifest["rows"] == [1, 16] and len(manifest["chunks"]) > 1
    for package in manifest["chunks"]:
        found = functions(folder / package)
        assert found.keys() == {"decode", "prefill_16"}
        for operations in found.values():
            assert {"read_state", "slice_update", "coreml_update_state", "softmax"} <= set(operations)
            assert not {"gather", "scaled_dot_product_attention"} & set(operations)
    assert "linear" in loaded(folder / manifest["head"]) or "conv" in loaded(folder / manifest["head"])


def test_a_package_says_which_shapes_it_takes(program, tmp_path):
    package = tmp_path / "model.mlpackage"
    assert convert(program, "digits", package, "--shape", "IMAGE=1,1,8,8").returncode == 0
    inputs = tmp_path / "in.npz"
    np.savez(inputs, **CASES["digits"])
    command = [program, "run", package, "--inputs", inputs, "--outputs", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "input 'IMAGE' has shape [2, 1, 8, 8], expected [1, 1, 8, 8]" in done.stderr


def test_few_bits_are_compared_with_the_model(program, tmp_path):
    images = np.load(SAMPLES.parents[1] / "golden" / "digits" / "images.npz")
    for part in ["train", "test"]:
        np.savez(tmp_path / f"{part}.npz", IMAGE=images[part].astype(np.float32)[:, None])
    package = tmp_path / "model.mlpackage"
    done = convert(program, "digits", package, "--weights", "int8", "--activations", "int8", "--calibration",
                   tmp_path / "train.npz", "--check", tmp_path / "test.npz", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["activations"] == 6 and told["islands"] == []
    [check] = told["check"]
    assert check["rows"] == 450 and check["top1"] >= 0.992 and check["not_finite"] == 0, check
    operators = loaded(package)
    assert operators.count("quantize") == operators.count("dequantize") == 6
    # Nothing is exact but floats.
    done = convert(program, "digits", tmp_path / "exact.mlpackage", "--activations", "int8", "--calibration",
                   tmp_path / "train.npz", "--accuracy", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["accuracy"] == 1 and len(told["floats"]) == 4 and told["activations"] == 2, told


def test_nodes_of_fp32_are_told(program, tmp_path):
    package = tmp_path / "model.mlpackage"
    done = convert(program, "digits", package, "--islands", "Conv", "--check", "random")
    assert done.returncode == 0, done.stderr
    assert "nodes are FP32, which the Neural Engine leaves" in done.stdout and "(Conv): as asked for" in done.stdout
    assert "8 random inputs" in done.stdout and "PROBABILITIES" in done.stdout
    assert loaded(package)


def test_wrong_options_are_named(program, tmp_path):
    package = tmp_path / "model.mlpackage"
    eight_bits = ["--activations", "int8", "--calibration", "random"]
    for options, expected in [
        (["--precision", "int8"], "--precision: 'int8' found, expected fp16 or fp32"),
        (["--specification", "12"], "--specification: 12 found, expected 6 to 9"),
        (["--weights", "palette:5"], "--weights: 'palette:5' found, expected"),
        (["--shape", "IMAGE"], "--shape: 'IMAGE' found, expected INPUT=N,N,…"),
        (["--activations", "int4"], "--activations: 'int4' found, expected int8"),
        ([*eight_bits, "--accuracy", "2"], "--accuracy '2' found, expected"),
    ]:
        done = convert(program, "digits", package, *options)
        assert done.returncode == 2 and expected in done.stderr, done.stderr
        assert not package.exists()
    for options, expected in [
        (["--shape", "IMAGE=1,2"], "input 'IMAGE': shape [1, 2] is given"),
        (["--shape", "image=1,1,8,8"], "there is no input 'image'"),
        (["--length", "width=3"], "no input has a length 'width'"),
        (["--activations", "int8"], "--activations int8 needs --calibration DATA"),
        (["--exclude", "Conv"], "--exclude goes with --activations int8"),
        (["--accuracy", "0.99"], "--accuracy goes with --activations int8"),
        (["--islands", "Exp"], "there is no node 'Exp' to compute in FP32"),
        (["--islands", "Conv", "--precision", "fp32"], "--islands goes with --precision fp16"),
    ]:
        done = convert(program, "digits", package, *options)
        assert done.returncode == 1 and expected in done.stderr, done.stderr
        assert not package.exists()
    done = convert(program, "digits", tmp_path / "model.tflite")
    assert done.returncode == 1 and "ends in .mlpackage or .onnx" in done.stderr, done.stderr

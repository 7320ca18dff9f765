"""`galatea quantize`: other programs load what it writes, and both agree on what it computes."""

import json
import re
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
import tritonclient.http

from conftest import SAMPLES
from server import run_to_end

DIGITS = SAMPLES / "digits" / "1" / "model.onnx"
SENTENCE = SAMPLES / "sentence" / "1" / "model.onnx"

# A form, its flags, the operators that show that it was taken, and how far probabilities of two programs
# may be apart: an activation that is rounded the other way moves them by more than FP32's rounding does.
FORMS = [
    ("static", ["--mode", "static"], {"QuantizeLinear", "DequantizeLinear"}, 0.05),
    ("entropy", ["--mode", "static", "--method", "entropy", "--symmetric"], {"QuantizeLinear"}, 0.05),
    ("percentile", ["--mode", "static", "--percentile", "99.9", "--per-tensor"], {"QuantizeLinear"}, 0.05),
    ("dynamic", ["--mode", "dynamic"], {"DynamicQuantizeLinear", "MatMulInteger"}, 0.02),
    ("int4", ["--mode", "int4"], {"MatMulNBits"}, 1e-4),
    ("gptq", ["--mode", "int4", "--algorithm", "gptq", "--block", "16"], {"MatMulNBits"}, 1e-4),
    ("fp16", ["--mode", "fp16"], {"Cast"}, 1e-4),
    ("fp16 arithmetic", ["--mode", "fp16", "--half-arithmetic"], {"Cast"}, 0.02),
    ("bf16", ["--mode", "bf16"], {"Cast"}, 1e-4),
    ("mixed", ["--mode", "mixed", "--exclude", "/head/head.2/Gemm"], {"QuantizeLinear", "Cast"}, 0.05),
]


@pytest.fixture(scope="module")
def images():
    datasets = pytest.importorskip("sklearn.datasets")
    return datasets.load_digits().images.astype(np.float32)[:, None]


def quantise(program, folder, images, *flags, name="small.onnx"):
    """Quantises the digits with the first images as samples; gives the model and the report."""
    np.savez(folder / "samples.npz", IMAGE=images[:256].reshape(16, 16, 1, 8, 8))
    path, report = folder / name, folder / "report.json"
    status, log = run_to_end(program, "quantize", DIGITS, "--output", path, "--calibration", folder / "samples.npz",
                             "--report", report, *flags, timeout=300)
    assert status == 0, log
    return path, json.loads(report.read_text())


def galatea_run(program, folder, path, **inputs):
    np.savez(folder / "in.npz", **inputs)
    status, log = run_to_end(program, "run", path, "--inputs", folder / "in.npz", "--outputs", folder / "out",
                             "--no-model-cache", timeout=300)
    assert status == 0, log
    return dict(np.load(folder / "out0.npz"))


def ort_run(path, **inputs):
    options = onnxruntime.SessionOptions()
    # Without it products of bytes saturate on processors that have no instructions for them.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


@pytest.mark.parametrize("flags, operators, apart", [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_onnx_runtime_agrees(program, tmp_path, images, flags, operators, apart):
    path, report = quantise(program, tmp_path, images, *flags)
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    assert operators <= {node.op_type for node in model.graph.node}
    assert model.producer_name == "galatea"
    assert report["holds"] and report["agreement"] >= report["bound"] == 0.992
    unseen = images[256:512]
    ours = galatea_run(program, tmp_path, path, IMAGE=unseen)["PROBABILITIES"]
    theirs = ort_run(path, IMAGE=unseen)["PROBABILITIES"]
    exact = ort_run(DIGITS, IMAGE=unseen)["PROBABILITIES"]
    assert np.abs(ours - theirs).max() <= apart
    assert (ours.argmax(1) == exact.argmax(1)).mean() >= 0.98


def test_a_static_model_runs_on_integer_kernels(program, tmp_path, images):
    path, _ = quantise(program, tmp_path, images, "--mode", "static")
    status, log = run_to_end(program, "bench", path, "--seconds", "0.1", "--profile", "--no-model-cache", timeout=300)
    assert status == 0, log
    assert "qlinear_conv" in log and "qgemm" in log, log


def test_large_constants_lie_beside_the_model(program, tmp_path, images):
    path, _ = quantise(program, tmp_path, images, "--mode", "static", "--external", "4096")
    assert (tmp_path / "small.onnx.data").stat().st_size > 4096
    onnx.checker.check_model(str(path))
    assert ort_run(path, IMAGE=images[:2])["PROBABILITIES"].shape == (2, 10)


def test_the_report_names_layers_and_what_they_lose(program, tmp_path, images):
    _, report = quantise(program, tmp_path, images, "--mode", "static", "--exclude", "/head/head.2/Gemm")
    forms = {layer["name"]: (layer["form"], layer["reason"]) for layer in report["layers"]}
    assert forms["/head/head.2/Gemm"] == ("FP32", "excluded")
    assert forms["/features/features.3/Conv"] == ("INT8", None)
    likeness = report["layers"][1]["likeness"]
    assert 20 < likeness["sqnr_db"] < 60 and likeness["cosine"] > 0.99
    assert report["constant_bytes"] < report["constant_bytes_before"]


def test_an_unreachable_bound_is_an_answer_of_its_own(program, tmp_path, images):
    status, log = run_to_end(program, "quantize", DIGITS, "--output", tmp_path / "a.onnx", "--bound", "1.5")
    assert status == 1 and "a bound of 1.5, expected 0 to 1" in log, log


def test_a_model_that_misses_the_bound_is_written_only_if_asked_for(program, tmp_path, images):
    np.savez(tmp_path / "samples.npz", IMAGE=images[:32].reshape(2, 16, 1, 8, 8))
    out, report = tmp_path / "a.onnx", tmp_path / "report.json"
    # Every constant becomes FP16 whatever layers are left out, so that nothing agrees to the last bit.
    flags = ["quantize", DIGITS, "--output", out, "--calibration", tmp_path / "samples.npz", "--report", report,
             "--mode", "fp16", "--half-arithmetic", "--agreement", "cosine", "--bound", "1"]
    status, log = run_to_end(program, *flags, timeout=300)
    assert status == 1 and "nothing written" in log and "not written" in log, log
    found = json.loads(report.read_text())
    assert not out.exists() and found["output"] is None and not found["holds"]
    status, log = run_to_end(program, *flags, "--write-anyway", timeout=300)
    assert status == 1 and "written all the same" in log, log
    assert ort_run(out, IMAGE=images[:2])["PROBABILITIES"].shape == (2, 10)


def test_mistakes_are_named(program, tmp_path, images):
    out = tmp_path / "a.onnx"
    # What no model could change is a mistake of usage.
    for flags, text, expected in [
        (["--output", out, "--mode", "static"], "needs samples", 1),
        ([], "--output is missing", 2),
        (["--output", tmp_path / "a.bin"], "expects a file *.onnx", 1),
        (["--output", out, "--calibration", tmp_path / "none.npz"], "none.npz", 1),
        (["--output", out, "--calibration", tmp_path], "there is no .npz file", 1),
        (["--output", out, "--mode", "tiny"], "expects one of dynamic, static", 2),
    ]:
        status, log = run_to_end(program, "quantize", DIGITS, *flags)
        assert status == expected and text in log, log
        assert not out.exists()


def test_text_models_are_quantised_without_data(program, tmp_path):
    path = tmp_path / "sentence.onnx"
    status, log = run_to_end(program, "quantize", SENTENCE, "--output", path, timeout=300)
    assert status == 0 and "agreement with FP32 is not known" in log, log
    text = np.random.default_rng(0).integers(97, 123, (4, 40)).astype(np.uint8)
    ours = galatea_run(program, tmp_path, path, TEXT_BYTES=text)["PROBABILITIES"]
    assert np.abs(ours - ort_run(path, TEXT_BYTES=text)["PROBABILITIES"]).max() < 0.02


def served(folder, metal, samples=None, model=DIGITS):
    """A repository with the digits, which have this `metal_config`, and samples in the model's folder."""
    shutil.copytree(SAMPLES / "digits", folder / "digits")
    shutil.copy(model, folder / "digits" / "1" / "model.onnx")
    (folder / "digits" / "metal_config.json").write_text(json.dumps(metal))
    if samples is not None:
        (folder / "digits" / "calibration").mkdir()
        np.savez(folder / "digits" / "calibration" / "some.npz", IMAGE=samples)
    return ["--model-repository", folder, "--provider=cpu"]


def answers(server, images):
    with tritonclient.http.InferenceServerClient(server.http) as client:
        given = tritonclient.http.InferInput("IMAGE", list(images.shape), "FP32")
        given.set_data_from_numpy(images)
        return client.infer("digits", [given]).as_numpy("PROBABILITIES")


def line(server):
    """What the log says of the layers that were quantized."""
    found = [re.search(r"metal_config: ((?:not )?int[48](?: in \d|:).*) model=digits", text) for text in server.log]
    return next((match[1] for match in found if match), None)


@pytest.mark.parametrize(("metal", "calibrated", "said"), [
    ({"precision": "int8"}, True, "int8 in 4 of 4 layers"),
    ({"precision": "int8"}, False, "int8 in 1 of 4 layers"),
    ({"preset": "power_efficient"}, False, "int8 in 1 of 4 layers"),
    ({"precision": "int4"}, False, "int4 in 1 of 4 layers"),
    ({"precision": "int4"}, True, "int4 in 1 of 4 layers"),
    ({"preset": "power_efficient", "precision": "fp32"}, True, None),
])
def test_a_model_is_quantized_when_it_is_loaded(program, start, tmp_path, images, metal, calibrated, said):
    samples = images[:256].reshape(16, 16, 1, 8, 8) if calibrated else None
    arguments = [*served(tmp_path / "models", metal, samples), "--cache-dir", tmp_path / "cache"]
    server = start(*arguments)
    first = line(server)
    assert (first or "").startswith(said or ""), list(server.log)
    found = answers(server, images[300:332])
    assert server.stop() == 0
    session = onnxruntime.InferenceSession(DIGITS)
    exact = session.run(None, {"IMAGE": images[300:332]})[0]
    assert (found.argmax(1) == exact.argmax(1)).mean() > 0.96
    # What is rounded gives other digits.
    assert (np.abs(found - exact).max() > 1e-5) == (said is not None)
    if said is None:
        return
    # The next start finds the quantized model, and says the same of it.
    entries = {path: path.read_bytes() for path in (tmp_path / "cache" / "models").glob("*.line")}
    assert [text.decode().strip() for text in entries.values()] == [first]
    again = start(*arguments)
    assert line(again) == first
    assert np.array_equal(answers(again, images[300:332]), found)
    status, log = run_to_end(program, "explain", tmp_path / "models" / "digits", "--provider", "cpu")
    assert status == 0 and said in log, log


def test_a_quantized_model_is_not_quantized_again(program, start, tmp_path, images):
    path, _ = quantise(program, tmp_path, images, "--mode", "static")
    server = start(*served(tmp_path / "models", {"precision": "int8"}, model=path), "--cache-dir", tmp_path / "cache")
    assert line(server) == "not int8: the model is quantized already (QuantizeLinear); the model computes as it says"
    assert answers(server, images[:8]).shape == (8, 10)


def test_samples_that_do_not_fit_are_named(start, tmp_path, images):
    samples = images[:4, :, :3]
    server = start(*served(tmp_path / "models", {"precision": "int8"}, samples), "--cache-dir", tmp_path / "cache")
    assert line(server).startswith("not int8: "), list(server.log)
    assert answers(server, images[:8]).shape == (8, 10)

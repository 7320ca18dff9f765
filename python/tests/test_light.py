"""The light models of the `onnx` package: networks of the vision zoo whose weights are constants."""

import pathlib

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import numpy_helper

from server import run_to_end

LIGHT = pathlib.Path(onnx.backend.test.__file__).parent / "data" / "light"
# What the package's own runner allows.
RELATIVE, ABSOLUTE = 1e-3, 1e-7
# Minutes with a program that is not optimised.
LARGE = {"light_vgg19", "light_zfnet512", "light_bvlc_alexnet"}


def ramp(declared):
    """The input that the expected outputs were computed from: rising from 0 to 1."""
    shape = tuple(dim.dim_value or 1 for dim in declared.type.tensor_type.shape.dim)
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("model", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_a_light_model_gives_the_expected_outputs(program, tmp_path, model):
    if model.stem in LARGE and program.parent.name == "debug":
        pytest.skip("too large for a program that is not optimised")
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: ramp(value) for value in graph.input if value.name not in weights}
    np.savez(tmp_path / "in.npz", **inputs)
    status, log = run_to_end(program, "run", model, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out",
                             timeout=840)
    assert status == 0, log
    found = np.load(tmp_path / "out0.npz")
    for index, output in enumerate(graph.output):
        file = LIGHT / f"{model.stem}_output_{index}.pb"
        expected = numpy_helper.to_array(onnx.load_tensor(str(file)))
        np.testing.assert_allclose(found[output.name], expected, RELATIVE, ABSOLUTE)

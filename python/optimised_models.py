"""Models as ONNX Runtime's optimiser saves them, with channels in blocks: the blocks are those of this machine."""

import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(17)
NODE = helper.make_node


def floats(*shape):
    return (0.5 * RANDOM.standard_normal(shape)).astype(np.float32)


def saved(nodes, numbers, shape, outputs):
    """The model of these nodes as the optimiser leaves it."""
    given = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, shape)]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(array, name) for name, array in numbers.items()]
    graph = helper.make_graph(nodes, "images", given, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(pathlib.Path(folder) / "saved.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def blocks():
    numbers = {
        "first": floats(24, 3, 3, 3), "bias": floats(24), "second": floats(48, 24, 3, 3), "apart": floats(48, 1, 3, 3),
        "last": floats(20, 96, 1, 1), "scale": np.array([1, 1, 2, 2], np.float32),
        **{name: floats(48) for name in ("gamma", "beta", "mean")}, "variance": np.abs(floats(48)) + 1,
    }
    nodes = [
        NODE("Conv", ["x0", "first", "bias"], ["a"], pads=[1, 1, 1, 1]),
        NODE("Relu", ["a"], ["b"]),
        NODE("Conv", ["b", "second"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        NODE("Conv", ["c", "apart"], ["d"], group=48, pads=[1, 1, 1, 1]),
        NODE("HardSigmoid", ["d"], ["e"], alpha=0.3, beta=0.4),
        NODE("Add", ["e", "c"], ["f"]),
        NODE("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        NODE("AveragePool", ["g"], ["h"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        NODE("BatchNormalization", ["h", "gamma", "beta", "mean", "variance"], ["i"]),
        NODE("Concat", ["h", "i"], ["j"], axis=1),
        NODE("Resize", ["j", "", "scale"], ["k"], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        NODE("Conv", ["k", "last"], ["l"]),
        NODE("GlobalAveragePool", ["k"], ["mean_of_all"]),
        NODE("GlobalMaxPool", ["l"], ["m"]),
        NODE("Conv", ["mean_of_all", "last"], ["y1"]),
        NODE("Mul", ["l", "m"], ["y0"]),
        NODE("Transpose", ["l"], ["y2"], perm=[0, 2, 3, 1]),
    ]
    return saved(nodes, numbers, [1, 3, 8, 8], ["y0", "y1", "y2"])


def grown():
    """Images that are made larger along straight lines, behind a grouped convolution with an activation of its own."""
    numbers = {"first": floats(32, 16, 1, 1), "grouped": floats(32, 16, 3, 3), "sizes": np.array([1, 32, 12, 18])}
    nodes = [
        NODE("Conv", ["x0", "first"], ["a"]),
        NODE("Conv", ["a", "grouped"], ["b"], group=2, pads=[1, 1, 1, 1]),
        NODE("HardSigmoid", ["b"], ["c"]),
        NODE("Resize", ["c", "", "", "sizes"], ["y0"], mode="linear", coordinate_transformation_mode="align_corners"),
    ]
    return saved(nodes, numbers, [1, 16, 6, 6], ["y0"])


def models():
    yield "saved_blocks", blocks(), [floats(1, 3, 8, 8)]
    yield "saved_grown", grown(), [floats(1, 16, 6, 6)]

"""Writing one model into a Triton model repository, with a recorded request and its answer."""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto

# wire name -> (config type, ONNX element type)
DATA_TYPES = {
    "BOOL": ("TYPE_BOOL", TensorProto.BOOL),
    "UINT8": ("TYPE_UINT8", TensorProto.UINT8),
    "UINT16": ("TYPE_UINT16", TensorProto.UINT16),
    "UINT32": ("TYPE_UINT32", TensorProto.UINT32),
    "UINT64": ("TYPE_UINT64", TensorProto.UINT64),
    "INT8": ("TYPE_INT8", TensorProto.INT8),
    "INT16": ("TYPE_INT16", TensorProto.INT16),
    "INT32": ("TYPE_INT32", TensorProto.INT32),
    "INT64": ("TYPE_INT64", TensorProto.INT64),
    "FP16": ("TYPE_FP16", TensorProto.FLOAT16),
    "FP32": ("TYPE_FP32", TensorProto.FLOAT),
    "FP64": ("TYPE_FP64", TensorProto.DOUBLE),
    "BF16": ("TYPE_BF16", TensorProto.BFLOAT16),
    "BYTES": ("TYPE_STRING", TensorProto.STRING),
}


class Io:
    """One input or output of a configuration. `dims` are without the batch dimension."""

    def __init__(self, name, datatype, dims, labels=None):
        self.name, self.datatype, self.dims, self.labels = name, datatype, dims, labels

    def config(self, kind):
        dims = ", ".join(str(d) for d in self.dims)
        label = '\n    label_filename: "labels.txt"' if self.labels else ""
        return (
            f"{kind} [\n  {{\n    name: \"{self.name}\"\n"
            f"    data_type: {DATA_TYPES[self.datatype][0]}\n    dims: [ {dims} ]{label}\n  }}\n]\n"
        )

    def value_info(self):
        """The ONNX declaration; -1 becomes a named dimension."""
        dims = ["batch", *(d if d >= 0 else f"{self.name}_{i}" for i, d in enumerate(self.dims))]
        return onnx.helper.make_tensor_value_info(self.name, DATA_TYPES[self.datatype][1], dims)


def model_from_nodes(name, nodes, inputs, outputs):
    """An ONNX model of opset 17 (IR 8) from hand-written nodes."""
    graph = onnx.helper.make_graph(
        nodes, name, [i.value_info() for i in inputs], [o.value_info() for o in outputs]
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8, producer_name="galatea-samples"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write(repository, name, model, inputs, outputs, sample, max_batch_size=8, extra="", answer=None):
    """Write `name`'s folder. `sample` maps input names to arrays that include the batch dimension.

    `model` is ONNX bytes or a ModelProto. `answer` gives the expected outputs where ONNX Runtime
    cannot compute them.
    """
    folder = pathlib.Path(repository) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    data = model if isinstance(model, bytes) else model.SerializeToString()
    (folder / "1" / "model.onnx").write_bytes(data)
    blocks = [io.config("input") for io in inputs] + [io.config("output") for io in outputs]
    head = f'name: "{name}"\nplatform: "onnxruntime_onnx"\nmax_batch_size: {max_batch_size}\n'
    (folder / "config.pbtxt").write_text(head + "".join(blocks) + extra)
    for io in outputs:
        if io.labels:
            (folder / "labels.txt").write_text("".join(f"{label}\n" for label in io.labels))
    if answer is None:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        answer = dict(zip([o.name for o in outputs], session.run([o.name for o in outputs], sample)))
    request = {"inputs": [tensor_json(io, sample[io.name]) for io in inputs]}
    response = {"model_name": name, "model_version": "1",
                "outputs": [tensor_json(io, answer[io.name]) for io in outputs]}
    write_json(folder / "sample_input.json", request)
    write_json(folder / "sample_output.json", response)


def tensor_json(io, array):
    return {"name": io.name, "shape": list(array.shape), "datatype": io.datatype,
            "data": [plain(io.datatype, v) for v in array.ravel()]}


def plain(datatype, value):
    """A JSON value; floating point is written with as many digits as its type carries."""
    if datatype == "BYTES":
        return value.decode() if isinstance(value, bytes) else value
    if datatype == "BOOL":
        return bool(value)
    if datatype in ("FP16", "FP32"):
        return float(np.format_float_scientific(value, unique=True))
    return float(value) if datatype in ("FP64", "BF16") else int(value)


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")

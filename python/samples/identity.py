"""`identity_*`: OUTPUT0 = INPUT0, one model per data type of the wire."""

import ml_dtypes
import numpy as np
from onnx.helper import make_node
from sklearn.datasets import load_digits

from .corpus import sentences
from .repository import Io, model_from_nodes, write

# model suffix, wire name, array type
TYPES = [
    ("bool", "BOOL", np.bool_),
    ("uint8", "UINT8", np.uint8),
    ("int8", "INT8", np.int8),
    ("int16", "INT16", np.int16),
    ("int32", "INT32", np.int32),
    ("int64", "INT64", np.int64),
    ("uint16", "UINT16", np.uint16),
    ("uint32", "UINT32", np.uint32),
    ("uint64", "UINT64", np.uint64),
    ("fp16", "FP16", np.float16),
    ("fp32", "FP32", np.float32),
    ("fp64", "FP64", np.float64),
    ("bf16", "BF16", ml_dtypes.bfloat16),
    ("bytes", "BYTES", object),
]


def build(repository):
    pixels = load_digits().images[:2].reshape(2, 64)[:, 18:34]
    for suffix, datatype, dtype in TYPES:
        if datatype == "BYTES":
            values = np.array([[text for _, text in sentences()[:2]]], dtype=object)
        elif datatype == "BOOL":
            values = pixels > 8
        else:
            values = (pixels / 16 if datatype.startswith(("FP", "BF")) else pixels).astype(dtype)
        inputs, outputs = [Io("INPUT0", datatype, [-1])], [Io("OUTPUT0", datatype, [-1])]
        name = f"identity_{suffix}"
        model = model_from_nodes(name, [make_node("Identity", ["INPUT0"], ["OUTPUT0"])], inputs, outputs)
        write(repository, name, model, inputs, outputs, {"INPUT0": values}, answer={"OUTPUT0": values})

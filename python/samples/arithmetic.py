"""`simple` and `simple_string`: the sum and difference models of Triton's client examples."""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_node

from .repository import Io, model_from_nodes, write


def build(repository):
    first = np.arange(16, dtype=np.int32).reshape(1, 16)
    second = np.ones((1, 16), dtype=np.int32)
    integers(repository, first, second)
    strings(repository, first, second)


def ios(datatype):
    return [Io("INPUT0", datatype, [16]), Io("INPUT1", datatype, [16])], \
        [Io("OUTPUT0", datatype, [16]), Io("OUTPUT1", datatype, [16])]


def integers(repository, first, second):
    inputs, outputs = ios("INT32")
    nodes = [make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    model = model_from_nodes("simple", nodes, inputs, outputs)
    write(repository, "simple", model, inputs, outputs, {"INPUT0": first, "INPUT1": second},
          extra="dynamic_batching { }\n")


def strings(repository, first, second):
    inputs, outputs = ios("BYTES")
    nodes = [
        make_node("Cast", ["INPUT0"], ["a"], to=TensorProto.INT32),
        make_node("Cast", ["INPUT1"], ["b"], to=TensorProto.INT32),
        make_node("Add", ["a", "b"], ["sum"]),
        make_node("Sub", ["a", "b"], ["difference"]),
        make_node("Cast", ["sum"], ["OUTPUT0"], to=TensorProto.STRING),
        make_node("Cast", ["difference"], ["OUTPUT1"], to=TensorProto.STRING),
    ]
    model = model_from_nodes("simple_string", nodes, inputs, outputs)
    sample = {"INPUT0": first.astype(str).astype(object), "INPUT1": second.astype(str).astype(object)}
    write(repository, "simple_string", model, inputs, outputs, sample)

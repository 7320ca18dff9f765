"""The repository of a soak: small models of several kinds, made anew, beside the samples `simple`, `simple_ensemble`,
`simple_string`, `digits` and `chat`."""

import os
import pathlib
import shutil

import onnx
from onnx import TensorProto, helper

SAMPLES = ("simple", "simple_ensemble", "simple_string", "digits", "chat")
# Models that are there from the start; `coming` is loaded and unloaded again and again.
LOADED = (*SAMPLES, "running_sum", "plus", "repeat", "double")

RUNNING_SUM = """backend: "onnxruntime" max_batch_size: 4
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 8 }
  state [ { input_name: "SUM" output_name: "NEXT_SUM" data_type: TYPE_INT32 dims: [ 1 ] } ] }
"""
PLUS = """backend: "onnxruntime" max_batch_size: 8 dynamic_batching { }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 4 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 4 ] } ]
"""
REPEAT = """backend: "python" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
"""
REPEAT_PROGRAM = '''import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in request.inputs()[0].as_numpy():
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''
DOUBLE = """backend: "python" max_batch_size: 8 dynamic_batching { }
input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
DOUBLE_PROGRAM = '''import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() * 2)])
                for request in requests]
'''


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.INT32, shape)


def saved(nodes, inputs, outputs, constants, path):
    graph = helper.make_graph(nodes, path.parent.parent.name, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    # Readers see the old file or the new one.
    beside = path.with_suffix(".new")
    onnx.save(model, beside)
    os.replace(beside, path)


def running_sum(path):
    saved([helper.make_node("Add", ["IN", "SUM"], ["OUT"]), helper.make_node("Identity", ["OUT"], ["NEXT_SUM"])],
          [value("IN", ["n", 1]), value("SUM", ["n", 1])], [value("OUT", ["n", 1]), value("NEXT_SUM", ["n", 1])], [], path)


def plus(path, constant):
    """A model that adds a constant to four numbers."""
    saved([helper.make_node("Add", ["IN", "CONSTANT"], ["OUT"])], [value("IN", ["n", 4])], [value("OUT", ["n", 4])],
          [helper.make_tensor("CONSTANT", TensorProto.INT32, [1], [constant])], path)


def add(folder, name, config, write):
    version = folder / name / "1"
    version.mkdir(parents=True)
    (folder / name / "config.pbtxt").write_text(config)
    write(version)


def make(folder, samples):
    """Writes the repository into a folder."""
    for name in SAMPLES:
        shutil.copytree(samples / name, folder / name)
    add(folder, "running_sum", RUNNING_SUM, lambda version: running_sum(version / "model.onnx"))
    for name in ("plus", "coming"):
        add(folder, name, PLUS, lambda version: plus(version / "model.onnx", 1))
    add(folder, "repeat", REPEAT, lambda version: (version / "model.py").write_text(REPEAT_PROGRAM))
    add(folder, "double", DOUBLE, lambda version: (version / "model.py").write_text(DOUBLE_PROGRAM))


def model_file(folder, name):
    return pathlib.Path(folder) / name / "1" / "model.onnx"

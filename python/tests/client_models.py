"""A repository for the tests of the client library: built-in backends and one ONNX file."""

import onnx
from onnx import TensorProto, helper

IDENTITY = """backend: "identity" max_batch_size: 8
input [ {{ name: "INPUT0" data_type: TYPE_{datatype} dims: [ {dims} ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_{datatype} dims: [ {dims} ] {more} }} ]
"""

# Three levels of priority; a request may give up sooner than the ten seconds of the configuration.
QUEUE = """dynamic_batching { priority_levels: 3 default_priority_level: 2 default_queue_policy {
  timeout_action: REJECT default_timeout_microseconds: 10000000 allow_timeout_override: true } }
instance_group [ { count: 1 kind: KIND_CPU } ]
"""

DELAY = 'parameters {{ key: "execute_delay_ms" value {{ string_value: "{}" }} }}\n'

ACCUMULATOR = """backend: "{backend}" max_batch_size: 4
input [ {{ name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }} ]
sequence_batching {{ {strategy} max_sequence_idle_microseconds: 60000000 control_input [
  {{ name: "START" control [ {{ kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} ] }},
  {{ name: "END" control [ {{ kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] }} ] }},
  {{ name: "READY" control [ {{ kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] }} ] }},
  {{ name: "CORRID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{correlation} }} ] }} ] }}
"""

REPEAT = """backend: "repeat" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
        { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }, { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]
"""

SQUARE = """backend: "square" model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ] output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""

COUNT_DOWN = """backend: "iterative_sequence" model_transaction_policy { decoupled: true } max_batch_size: 2
input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ] output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching { oldest { max_candidate_sequences: 2 } iterative_sequence: true }
"""

SIMPLE = """backend: "onnxruntime" max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
"""

OPTIONAL = """backend: "onnxruntime" max_batch_size: 8 dynamic_batching { }
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ -1 ] optional: true } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def identity(datatype, dims="-1", more="", then=""):
    return IDENTITY.format(datatype=datatype, dims=dims, more=more) + then


MODELS = {
    "echo": identity("INT32", then=QUEUE),
    "reals": identity("FP32"),
    "texts": identity("STRING"),
    "halves": identity("BF16"),
    "scores": identity("FP32", "4", 'label_filename: "labels.txt"'),
    # Nobody waits so long: these requests are cancelled, or give up.
    "endless": identity("INT32", then=QUEUE + DELAY.format(3600000)),
    "sums": ACCUMULATOR.format(backend="sequence", strategy="oldest { }", correlation="UINT64"),
    "named_sums": ACCUMULATOR.format(backend="sequence", strategy="oldest { }", correlation="STRING"),
    "slots": ACCUMULATOR.format(backend="sequence", strategy="direct { }", correlation="UINT64"),
    "sums_and_id": ACCUMULATOR.format(backend="dyna_sequence", strategy="oldest { }", correlation="UINT64"),
    "repeat": REPEAT,
    "square": SQUARE,
    "count_down": COUNT_DOWN,
    "simple": SIMPLE,
    "optional": OPTIONAL,
}


def simple_file():
    """INPUT0 + INPUT1 and INPUT0 - INPUT1, as bytes of an ONNX file."""
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.INT32, ["batch", 16])
    nodes = [helper.make_node(operator, ["INPUT0", "INPUT1"], [name]) for operator, name in [("Add", "OUTPUT0"), ("Sub", "OUTPUT1")]]
    graph = helper.make_graph(nodes, "simple", [tensor("INPUT0"), tensor("INPUT1")], [tensor("OUTPUT0"), tensor("OUTPUT1")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def optional_file():
    """INPUT0 + INPUT1, where INPUT1 is 100 unless it is given."""
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "n"])
    default = helper.make_tensor("INPUT1", TensorProto.FLOAT, [1, 1], [100.0])
    graph = helper.make_graph([helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"])], "optional",
                              [tensor("INPUT0"), tensor("INPUT1")], [tensor("OUTPUT0")], initializer=[default])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def write(folder):
    for name, config in MODELS.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(config)
    (folder / "simple" / "1" / "model.onnx").write_bytes(simple_file())
    (folder / "optional" / "1" / "model.onnx").write_bytes(optional_file())
    (folder / "scores" / "labels.txt").write_text("cat\ndog\nbird\nfish\n")
    return folder

"""ONNX stand-ins for the models behind the recorded Triton cases.

usage: golden_repository.py MODELS OUT [NAME ...]

MODELS holds NAME/config.pbtxt as recorded (for Triton's Python backend). OUT becomes a model
repository with the same configurations, for the models that ONNX can express; or, where names are given, these models alone,
as far as they can be had, and `rest` for folders of all others, which can be listed and not loaded.
"""

import pathlib
import re
import shutil
import sys

import onnx
from onnx import TensorProto, helper

ELEMENT = {"BOOL": TensorProto.BOOL, "STRING": TensorProto.STRING, "BF16": TensorProto.BFLOAT16,
           "FP16": TensorProto.FLOAT16, "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
           **{f"{sign}INT{bits}": getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)}}
TENSOR = re.compile(r'name: "(\w+)" data_type: TYPE_(\w+) dims: \[([^\]]*)\](?: reshape \{ shape: \[([^\]]*)\])?')


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs, outputs, **attributes)


def identity(_version, _inputs, outputs):
    return [node("Identity", ["INPUT0" if out != "text_output" else "text_input"], [out]) for out in outputs]


def add_sub(_version, _inputs, _outputs):
    return [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]


def times_version(version, _inputs, _outputs):
    factor = helper.make_tensor("factor", TensorProto.INT32, [], [version])
    return [node("Constant", [], ["factor"], value=factor), node("Mul", ["INPUT0", "factor"], ["OUTPUT0"])]


def classify(_version, _inputs, _outputs):
    return [*(node("Identity", ["INPUT0"], [name]) for name in ("OUTPUT0", "NOLABEL", "SHORT")),
            node("Cast", ["INPUT0"], ["INTS"], to=TensorProto.INT32), *number_texts("INPUT0", "STRS")]


def number_texts(given, out):
    """Texts of numbers as numpy writes them, which ONNX has no operator for: hundredths from 0 to 1 are looked up."""
    hundredths = [str(n / 100).encode() for n in range(101)]
    return [constant("hundred", TensorProto.FLOAT, [], [100.0]), node("Mul", [given, "hundred"], ["times"]),
            node("Round", ["times"], ["whole"]), node("Div", ["whole", "hundred"], ["again"]),
            node("Equal", [given, "again"], ["exact"]), constant("low", TensorProto.FLOAT, [], [0.0]),
            node("Clip", ["whole", "low", "hundred"], ["clipped"]), node("Equal", ["whole", "clipped"], ["inside"]),
            node("And", ["exact", "inside"], ["known"]), node("Cast", ["clipped"], ["place"], to=TensorProto.INT64),
            constant("texts", TensorProto.STRING, [101], hundredths), node("Gather", ["texts", "place"], ["looked_up"]),
            node("Cast", [given], ["printed"], to=TensorProto.STRING), node("Where", ["known", "looked_up", "printed"], [out])]


def rank(_version, _inputs, _outputs):
    """OUTPUT0 = INPUT0; RANK = the rank, once a row where there are rows."""
    return [node("Identity", ["INPUT0"], ["OUTPUT0"]), node("Shape", ["INPUT0"], ["shape"]), node("Size", ["shape"], ["size"]),
            node("Cast", ["size"], ["rank"], to=TensorProto.INT32)]


def rank_of_rows(*arguments):
    return [*rank(*arguments), node("Expand", ["rank", "shape"], ["RANK"])]


def batch_size(*_):
    """OUTPUT0 = how many rows the execution has, in each of them."""
    zero = helper.make_tensor("zero", TensorProto.INT64, [], [0])
    return [node("Shape", ["INPUT0"], ["shape"]), node("Constant", [], ["zero"], value=zero),
            node("Gather", ["shape", "zero"], ["rows"]), node("Cast", ["rows"], ["count"], to=TensorProto.INT32),
            node("Expand", ["count", "shape"], ["OUTPUT0"])]


def rank_alone(*arguments):
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    return [*rank(*arguments), node("Constant", [], ["one"], value=one), node("Reshape", ["rank", "one"], ["RANK"])]


def constant(name, datatype, dims, values):
    return node("Constant", [], [name], value=helper.make_tensor(name, datatype, dims, values))


def text(_version, _inputs, _outputs):
    return [node("Cast", ["INPUT0"], [name], to=TensorProto.STRING) for name in ("PARAMS", "META")]


def counted(_version, _inputs, _outputs):
    """OUTPUT0 = INPUT0; COUNT = 1, once a row."""
    return [node("Identity", ["INPUT0"], ["OUTPUT0"]), constant("one", TensorProto.INT32, [1, 1], [1]),
            node("Shape", ["INPUT0"], ["shape"]), constant("first", TensorProto.INT64, [1], [0]),
            node("Gather", ["shape", "first"], ["rows"]), constant("column", TensorProto.INT64, [1], [1]),
            node("Concat", ["rows", "column"], ["wanted"], axis=0), node("Expand", ["one", "wanted"], ["COUNT"])]


def row_sums(_version, _inputs, _outputs):
    """OUTPUT0 = the sum of each row; NREQ = the rows, one a request."""
    return [constant("axes", TensorProto.INT64, [1], [1]), node("ReduceSum", ["INPUT0", "axes"], ["OUTPUT0"], keepdims=1),
            node("Shape", ["OUTPUT0"], ["shape"]), constant("first", TensorProto.INT64, [1], [0]),
            node("Gather", ["shape", "first"], ["rows"]), node("Cast", ["rows"], ["count"], to=TensorProto.INT32),
            node("Expand", ["count", "shape"], ["NREQ"])]


def ragged_sums(_version, _inputs, _outputs):
    """As row_sums over the rows of a flat input, whose ends are in ENDS."""
    return [constant("axis", TensorProto.INT64, [], [0]), node("CumSum", ["INPUT0", "axis"], ["sums"]),
            constant("one", TensorProto.INT32, [1], [1]), node("Sub", ["ENDS", "one"], ["last"]),
            node("Gather", ["sums", "last"], ["ends"]), constant("zero", TensorProto.FLOAT, [1], [0.0]),
            constant("from", TensorProto.INT64, [1], [0]), constant("to", TensorProto.INT64, [1], [-1]),
            node("Slice", ["ends", "from", "to"], ["before"]), node("Concat", ["zero", "before"], ["starts"], axis=0),
            node("Sub", ["ends", "starts"], ["flat"]), constant("axes", TensorProto.INT64, [1], [1]),
            node("Unsqueeze", ["flat", "axes"], ["OUTPUT0"]), node("Shape", ["OUTPUT0"], ["shape"]),
            node("Gather", ["shape", "from"], ["rows"]), node("Cast", ["rows"], ["count"], to=TensorProto.INT32),
            node("Expand", ["count", "shape"], ["NREQ"])]


def sum_of_two(_version, _inputs, _outputs):
    return [node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"])]


def any_error(_version, _inputs, _outputs):
    """Fails in each execution: no tensor has an element of this number."""
    return [constant("number", TensorProto.INT64, [], [1 << 40]), node("Gather", ["INPUT0", "number"], ["OUTPUT0"])]


def two_pairs(_version, _inputs, _outputs):
    """What the model gives in its ordinary mode, whatever the mode."""
    return [constant("OUTPUT0", TensorProto.FLOAT, [2], [1.0, 2.0]), constant("OUTPUT1", TensorProto.FLOAT, [2], [3.0, 4.0])]


# name -> (nodes, versions on disk)
MODELS = {
    **{f"id_{t}": (identity, [1]) for t in ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32",
                                            "int64", "fp16", "fp32", "fp64", "bf16", "string"]},
    **{name: (identity, [1]) for name in ["identity_fp32", "identity_bytes", "identity_nb", "fixed_23", "one_nb",
                                          "bytes_fixed", "gen_echo", "stats_model", "ctl_a"]},
    **{name: (add_sub, [1]) for name in ["add_sub", "add_sub_fp32", "add_sub_nb", "simple"]},
    **{name: (times_version, [1, 2, 3]) for name in ["versioned", "versioned_all", "versioned_latest"]},
    "ctl_multi": (times_version, [1, 2]),
    "batchy": (batch_size, [1]),
    "echo_params": (text, [1]),
    "cached": (counted, [1]),
    "warm": (counted, [1]),
    "ragged": (ragged_sums, [1]),
    "noragged": (row_sums, [1]),
    "allprops": (identity, [1, 2]),
    "classify": (classify, [1]),
    "reshape_io": (rank_of_rows, [1]),
    "reshape_nb": (rank_alone, [1]),
    "optional_in": (sum_of_two, [1]),
    # Loaded for what is listed; what they do besides needs the Python backend.
    "raise_exec": (any_error, [1]),
    "bad_output": (two_pairs, [1]),
}


# Models that take a while. Their configurations are asked for, so the parameter is in a file of the version.
SLOW = ["slow", "slow_delay", "slow_noover", "slow_plain", "slow_to"]

# name -> (backend without a model file, parameters)
BUILT_IN = {
    **{name: ("identity", {}) for name in SLOW},
    **{name: ("sequence", {}) for name in ["seq_accum", "seq_idle", "seq_oldest", "seq_strid"]},
    # Not too quick for a client to see which of two sequences was answered first.
    "seq_nb": ("sequence", {"execute_delay_ms": 5}),
    **{name: ("repeat", {}) for name in ["repeat_int32", "stats_dec"]},
    # Loaded for what is listed; what they do besides needs the Python backend.
    **{name: ("identity", {}) for name in ["err_response", "gen_stream", "gen_text"]},
    "fail_load": ("identity", {"execute_delay_ms": "never"}),
    "repeat_fin": ("repeat", {"final_with_response": "true"}),
    **{f"ctl_{name}": ("identity", {}) for name in ["badconf", "baddt", "badlabel", "badname", "badpref", "badreshape", "badver",
                                                    "dup", "gpu", "negbatch", "nobackend", "nodims", "noout", "nover", "prio",
                                                    "seqdyn", "seqnoctl", "unknownfield", "zero_dim"]},
}

# Configuration alone: models composed of others.
COMPOSED = ["ens_addsub", "ens_ctl", "ens_missing", "ens_raise"]

# What a configuration says beyond the recorded one.
ADDED = {"ragged": 'batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 '
                   'source_input: "INPUT0" } ]\n'}

# Values of inputs that a request may leave out.
DEFAULTS = {"optional_in": [helper.make_tensor("INPUT1", TensorProto.FLOAT, [1, 1], [100.0])]}

# Inputs that a graph has beyond those of the configuration.
MORE_INPUTS = {"ragged": [helper.make_tensor_value_info("ENDS", TensorProto.INT32, ["requests"])]}


def declared(text, batched):
    """Name to ONNX declaration of the tensors in one part of a configuration."""
    found = {}
    for tensor in TENSOR.finditer(text):
        name, datatype, dims, reshape = tensor.groups()
        sizes = [int(n) for n in (dims if reshape is None else reshape).replace(",", " ").split()]
        shape = [f"{name}_{i}" if n < 0 else n for i, n in enumerate(sizes)]
        found[name] = helper.make_tensor_value_info(name, ELEMENT[datatype], (["batch"] if batched else []) + shape)
    return found


def write(models, out, name):
    nodes, versions = MODELS[name]
    config = (models / name / "config.pbtxt").read_text()
    batched = int(re.search(r"max_batch_size: (-?\d+)", config)[1]) > 0
    inputs, outputs = (declared(part, batched) for part in config.split("\noutput ", 1))
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    written = config.replace('backend: "python"', 'backend: "onnxruntime"') + ADDED.get(name, "")
    (folder / "config.pbtxt").write_text(written)
    if name == "ragged":
        inputs["INPUT0"] = helper.make_tensor_value_info("INPUT0", TensorProto.FLOAT, ["elements"])
    for labels in (models / name).glob("labels*.txt"):
        shutil.copy(labels, folder)
    for version in versions:
        all_inputs = [*inputs.values(), *MORE_INPUTS.get(name, [])]
        graph = helper.make_graph(nodes(version, inputs, outputs), name, all_inputs, list(outputs.values()),
                                  initializer=DEFAULTS.get(name, []))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        if batched and "dynamic_batching" not in config:
            # A model that says nothing of its dimensions gets no dynamic batching, which the recorded ones have not either.
            for tensor in [*model.graph.input, *model.graph.output]:
                tensor.type.tensor_type.ClearField("shape")
        (folder / str(version)).mkdir(exist_ok=True)
        (folder / str(version) / "model.onnx").write_bytes(model.SerializeToString())


def write_built_in(models, out, name):
    backend, parameters = BUILT_IN[name]
    config = (models / name / "config.pbtxt").read_text().replace('backend: "python"', f'backend: "{backend}"')
    config += "".join(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in parameters.items())
    version = out / name / ("." if name == "ctl_nover" else "1")
    version.mkdir(parents=True, exist_ok=True)
    if name in SLOW:
        (version / "parameters.json").write_text('{"execute_delay_ms": 300}\n')
    (out / name / "config.pbtxt").write_text(config)


def write_composed(models, out, name):
    (out / name / "1").mkdir(parents=True, exist_ok=True)
    shutil.copy(models / name / "config.pbtxt", out / name)


def write_all(models, out):
    """Writes every model and returns their names."""
    names = [name for name in MODELS if (models / name).is_dir()]
    for name in names:
        write(models, out, name)
    built_in = [name for name in BUILT_IN if (models / name).is_dir()]
    for name in built_in:
        write_built_in(models, out, name)
    composed = [name for name in COMPOSED if (models / name).is_dir()]
    for name in composed:
        write_composed(models, out, name)
    return names + built_in + composed


def write_rest(models, out):
    """Writes the configurations of the models without a stand-in."""
    names = [path.name for path in sorted(models.iterdir()) if path.is_dir() and not (out / path.name).exists()]
    for name in names:
        (out / name / "1").mkdir(parents=True)
        shutil.copy(models / name / "config.pbtxt", out / name)
    return names


def keep(out, names):
    """Removes all models but these."""
    for folder in out.iterdir():
        if folder.name not in names:
            shutil.rmtree(folder)


def main(models, out, *names):
    written = write_all(models, out)
    written += write_rest(models, out) if names else []
    unwanted = set(written) - set(names) if names and "rest" not in names else set()
    for name in unwanted:
        shutil.rmtree(out / name)
    print(*(name for name in written if name not in unwanted))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:])

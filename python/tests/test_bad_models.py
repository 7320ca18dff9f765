"""Models that are wrong, or ask for more than there is: `galatea inspect` and `galatea run` say what and where.

Each case is a function that makes the model and the parts of the message that must come. Nothing may panic, hang or
take the memory that the model asks for.
"""

import os
import resource
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
HUGE = 1 << 40
# Far less than the cases ask for, far more than the program needs.
MEMORY = 6 << 30
DOMAIN = "com.acme"


def info(name, kind=FLOAT, shape=("n",)):
    return helper.make_tensor_value_info(name, kind, shape)


def ints(name, values, kind=INT64):
    return helper.make_tensor(name, kind, [len(values)], values)


def model(nodes, inputs=None, outputs=None, constants=(), opset=18, **more):
    graph = helper.make_graph(nodes, "bad", [info("x")] if inputs is None else inputs,
                              [info("y", shape=None)] if outputs is None else outputs, list(constants))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), name=f"the_{op}", **attributes)


def call(name, inputs=("x",), outputs=("y",)):
    return helper.make_node(name, list(inputs), list(outputs), name=f"call_{name}", domain=DOMAIN)


def function(name, nodes):
    return helper.make_function(DOMAIN, name, ["x"], ["y"], nodes,
                                [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)])


def stated(shape, kind=FLOAT, **fields):
    """A constant whose shape says one thing and whose data say another."""
    tensor = TensorProto(name="w", data_type=kind, dims=shape)
    for field, value in fields.items():
        setattr(tensor, field, value)
    return tensor


def with_constant(tensor):
    return model([node("Add", ["x", "w"])], constants=[tensor])


def external(**entries):
    def make(folder):
        inner = folder / "models"
        inner.mkdir()
        (folder / "outside.bin").write_bytes(bytes(64))
        (inner / "weights.bin").write_bytes(bytes(64))
        os.symlink(folder / "outside.bin", inner / "link.bin")
        tensor = stated([2], data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            value = str(folder / "outside.bin") if value == "ABSOLUTE" else str(value)
            tensor.external_data.add(key=key, value=value)
        return inner, with_constant(tensor)
    return make


def nested(depth):
    body = node("Neg", ["x"])
    # Only one branch goes on: two would double the file with each level.
    leaf = helper.make_graph([body], "leaf", [], [onnx.ValueInfoProto(name="y")])
    for _ in range(depth):
        graph = helper.make_graph([body], "branch", [], [onnx.ValueInfoProto(name="y")])
        body = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=leaf)
    return model([body], [info("c", BOOL, []), info("x")])


def doubling(levels):
    functions = [function(f"F{at}", [call(f"F{at + 1}", outputs=["m"]), call(f"F{at + 1}", ["m"])])
                 for at in range(levels)]
    functions.append(function(f"F{levels}", [helper.make_node("Neg", ["x"], ["y"])]))
    return model([call("F0")], functions=functions)


def sparse(indices, shape):
    made = model([node("Add", ["x", "w"])])
    values = helper.make_tensor("w", FLOAT, [len(indices)], [1.0] * len(indices))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, ints("", indices), shape))
    return made


def edited(change):
    made = model([node("Add", ["x", "w"])], constants=[helper.make_tensor("w", FLOAT, [2], [1.0, 2.0])])
    change(made.graph)
    return made


def raw(change):
    """Bytes of a good file, changed."""
    good = edited(lambda graph: None).SerializeToString()
    return change(good)


def twice(graph):
    graph.node.append(node("Neg", ["x"]))


# name: (model, what the message says)
REFUSED_WHEN_READ = {
    "cycle": (lambda: model([node("Add", ["x", "z"], ["y"]), node("Neg", ["y"], ["z"])]),
              ["the_", "depends on its own output"]),
    "own input": (lambda: model([node("Add", ["x", "y"])]), ["the_Add", "depends on its own output"]),
    "constant without data": (lambda: with_constant(stated([HUGE])), ["graph.initializer[0]", "found 0", str(HUGE)]),
    "constant with little data": (lambda: with_constant(stated([HUGE], raw_data=bytes(64))),
                                  ["graph.initializer[0].raw_data", str(HUGE * 4), "found 64"]),
    "constant of too many elements": (lambda: with_constant(stated([1 << 40, 1 << 40])), ["graph.initializer[0].dims"]),
    "constant of negative length": (lambda: with_constant(stated([-1])), ["dims[0]: length -1 is negative"]),
    "constant of unknown type": (lambda: with_constant(stated([1], kind=99)), ["data_type", "99 is not supported"]),
    "complex constant": (lambda: with_constant(stated([1], kind=TensorProto.COMPLEX64)), ["data_type", "14"]),
    "input of unknown type": (lambda: edited(lambda g: setattr(g.input[0].type.tensor_type, "elem_type", 77)),
                              ["graph.input[0]", "77 is not supported"]),
    "function that calls itself": (lambda: model([call("F")], functions=[function("F", [call("F")])]),
                                   ["function 'F'", "calls itself"]),
    "functions that call each other": (
        lambda: model([call("F")], functions=[function("F", [call("G")]), function("G", [call("F")])]),
        ["calls itself"]),
    "functions that double": (lambda: doubling(30), ["131072 nodes"]),
    "function twice": (lambda: model([call("F")], functions=[function("F", []), function("F", [])]),
                       ["functions[1]", "function 'F' is defined twice"]),
    "subgraphs 17 deep": (lambda: nested(17), ["nested more than 16 deep"]),
    "external file above": (external(location="../outside.bin"), ["'../outside.bin' is not a relative path inside"]),
    "external file above, hidden": (external(location="a/../../outside.bin"), ["is not a relative path inside"]),
    "external file elsewhere": (external(location="ABSOLUTE"), ["is not a relative path inside the model's folder"]),
    "external link out": (external(location="link.bin"), ["'link.bin' is a link that leaves the model's folder"]),
    "external file missing": (external(location="nobody.bin"), ["graph.initializer[0]", "nobody.bin"]),
    "external offset": (external(location="weights.bin", offset=65), ["offset 65 is beyond the 64 bytes"]),
    "external length": (external(location="weights.bin", offset=60, length=8), ["8 bytes from 60 on", "has 64 bytes"]),
    "external overflow": (external(location="weights.bin", offset=(1 << 64) - 1, length=8), ["is beyond the 64 bytes"]),
    "external without place": (external(offset=0), ["there is no entry 'location'"]),
    "external number": (external(location="weights.bin", offset="0x10"), ["offset '0x10' is not a byte count"]),
    "value twice": (lambda: edited(twice), ["the_Neg", "which has a value already"]),
    "constant twice": (lambda: edited(lambda g: g.initializer.append(g.initializer[0])),
                       ["graph.initializer[1]: initializer 'w' is given twice"]),
    "input twice": (lambda: edited(lambda g: g.input.append(g.input[0])), ["graph.input[1]: 'x' is listed twice"]),
    "output that nothing writes": (lambda: edited(lambda g: setattr(g.output[0], "name", "nobody")), ["'nobody'"]),
    "input that nothing writes": (lambda: model([node("Neg", ["nobody"])]), ["'nobody', which nothing writes"]),
    "no graph": (lambda: onnx.ModelProto(ir_version=8), ["holds no graph"]),
    "sparse position": (lambda: sparse([4], [2, 2]), ["sparse_initializer[0].indices", "position 4 lies outside"]),
    "sparse negative position": (lambda: sparse([-1], [2, 2]), ["position -1 lies outside"]),
    "sparse giant": (lambda: sparse([0], [HUGE]), ["sparse_initializer[0].dims", str(HUGE * 4), "limit"]),
    "truncated": (lambda: raw(lambda good: good[:-5]), ["not a readable ONNX message at byte"]),
    "length of a gigabyte": (lambda: raw(lambda good: good + b"\x3a\x80\x80\x80\x80\x04"), ["not a readable ONNX"]),
    "length beyond 64 bits": (lambda: raw(lambda good: good + b"\x3a" + b"\xff" * 9 + b"\x01"), ["not a readable"]),
    "name that is no UTF-8": (lambda: raw(lambda good: good.replace(b"the_Add", b"the_\xff\xfe\xfd")),
                              ["not a readable ONNX message", "UTF-8"]),
    "unknown operator": (lambda: model([node("Frobnicate", ["x"])]), ["the_Frobnicate", "'Frobnicate'", "'ai.onnx'"]),
    "operator in lower case": (lambda: model([node("relu", ["x"])]), ["the_relu", "did you mean 'Relu'"]),
    "operator with a typing error": (lambda: model([node("Sofmax", ["x"])]), ["the_Sofmax", "did you mean 'Softmax'"]),
    "operator of another domain": (lambda: model([node("FastGelu", ["x"])]),
                                   ["did you mean 'FastGelu' of domain 'com.microsoft'"]),
    "domain with a typing error": (lambda: model([node("FastGelu", ["x"], domain="com.microsfot")]),
                                   ["did you mean 'FastGelu' of domain 'com.microsoft'"]),
    "operator of a later version": (lambda: model([node("Gelu", ["x"])], opset=13), ["it exists from version 20 on"]),
    "opset of the future": (lambda: model([node("Neg", ["x"])], opset=999), ["opset 999", "are supported"]),
    "unknown attribute": (lambda: model([node("Relu", ["x"], sparkle=1)]), ["the_Relu", "'sparkle'"]),
    "permutation with repeats": (lambda: model([node("Transpose", ["x"], perm=[0, 0])]), ["the_Transpose", "[0, 0]"]),
    "negative kernel": (lambda: model([node("MaxPool", ["x"], kernel_shape=[-3, 3])]), ["the_MaxPool", "-3"]),
}

IMAGE = [1, 1, 8, 8]


def shaped(nodes, constants=(), outputs=None):
    return model(nodes, [info("x", FLOAT, IMAGE)], outputs, constants)


def generated(nodes, constants):
    """A model without inputs of its own: `x` is unused by what is wrong."""
    return model([*nodes, node("Neg", ["x"], ["z"])], [info("x", FLOAT, IMAGE)],
                 [info("y", shape=None), info("z", shape=None)], constants)


LIMITED = "the limit of a value is"

# Found when shapes are known, or when the model runs.
REFUSED_WHEN_RUN = {
    "Expand": (lambda: shaped([node("Expand", ["x", "s"])], [ints("s", [HUGE, 1, 8, 8])]), ["the_Expand", LIMITED]),
    "ConstantOfShape": (lambda: generated([node("ConstantOfShape", ["s"])], [ints("s", [HUGE])]), [LIMITED]),
    "Tile": (lambda: shaped([node("Tile", ["x", "s"])], [ints("s", [HUGE, 1, 1, 1])]), [LIMITED]),
    "Pad": (lambda: shaped([node("Pad", ["x", "s"])], [ints("s", [0, 0, 0, 0, HUGE, 0, 0, 0])]), [LIMITED]),
    "Range": (lambda: generated([node("Range", ["a", "b", "c"])],
                                [helper.make_tensor(name, INT64, [], [value])
                                 for name, value in (("a", 0), ("b", HUGE), ("c", 1))]), [LIMITED]),
    "OneHot": (lambda: generated([node("OneHot", ["i", "d", "v"])],
                                 [ints("i", [0, 1]), helper.make_tensor("d", INT64, [], [HUGE]), ints("v", [0, 1])]),
               [LIMITED]),
    "Resize": (lambda: shaped([node("Resize", ["x", "", "", "s"])], [ints("s", [1, 1, 1 << 20, 1 << 20])]), [LIMITED]),
    "Upsample twice": (lambda: shaped([node("Resize", ["x", "", "s"])],
                                      [helper.make_tensor("s", FLOAT, [4], [1, 1, 1e6, 1e6])]), [LIMITED]),
    "ConvTranspose": (lambda: shaped([node("ConvTranspose", ["x", "w"], strides=[1 << 20, 1 << 20])],
                                     [helper.make_tensor("w", FLOAT, [1, 1, 1, 1], [1.0])]), [LIMITED]),
    "product of vectors": (
        lambda: generated([node("ConstantOfShape", ["s"], ["a"]), node("ConstantOfShape", ["t"], ["b"]),
                           node("Add", ["a", "b"])], [ints("s", [1 << 20, 1]), ints("t", [1, 1 << 20])]), [LIMITED]),
    "lengths that overflow": (lambda: generated([node("ConstantOfShape", ["s"])], [ints("s", [HUGE, HUGE])]), [LIMITED]),
    "negative length": (lambda: generated([node("ConstantOfShape", ["s"])], [ints("s", [-1])]), ["-1"]),
    "dilation": (lambda: shaped([node("MaxPool", ["x"], kernel_shape=[2, 2], dilations=[1 << 62, 1 << 62])]),
                 ["the_MaxPool"]),
    "padding": (lambda: shaped([node("AveragePool", ["x"], kernel_shape=[2, 2], pads=[1 << 62] * 4)]), ["the_Average"]),
    "a million axes": (lambda: shaped([node("ReduceSum", ["x", "s"])], [ints("s", [0] * 1_000_000)]), ["the_ReduceSum"]),
    "a million axes to add": (lambda: shaped([node("Unsqueeze", ["x", "s"])], [ints("s", list(range(1_000_000)))]),
                              ["the_Unsqueeze"]),
    "wrong rank": (lambda: shaped([node("Transpose", ["x"], perm=[1, 0])]), ["the_Transpose", "[1, 0]"]),
    "axis outside": (lambda: shaped([node("Softmax", ["x"], axis=4)]), ["the_Softmax", "axis 4"]),
    "types that differ": (lambda: shaped([node("Add", ["x", "s"])], [ints("s", [1])]), ["the_Add", "INT64"]),
    "loop without end": (
        lambda: generated([helper.make_node(
            "Loop", ["", "c", "x"], ["y"], name="the_Loop", body=helper.make_graph(
                [helper.make_node("Identity", ["k"], ["m"]), helper.make_node("Identity", ["v"], ["w"])], "body",
                [info("i", INT64, []), info("k", BOOL, []), info("v", FLOAT, IMAGE)],
                [info("m", BOOL, []), info("w", FLOAT, IMAGE)]))], [helper.make_tensor("c", BOOL, [], [True])]),
        ["the_Loop", "would not end"]),
}


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def run(program, *arguments):
    done = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60, check=False, preexec_fn=limited)
    return done.returncode, done.stdout


def written(make, folder):
    try:
        made = make()
    except TypeError:
        folder, made = make(folder)
    file = folder / "model.onnx"
    file.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return file


def refused(status, log, parts):
    assert status not in (0, 101) and status > 0, log
    assert "panicked" not in log
    for part in parts:
        assert part in log


@pytest.mark.parametrize("name", REFUSED_WHEN_READ)
def test_a_wrong_file_is_refused_by_inspect_and_run(program, tmp_path, name):
    make, parts = REFUSED_WHEN_READ[name]
    file = written(make, tmp_path)
    refused(*run(program, "inspect", file), ["model.onnx", *parts])
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32))
    refused(*run(program, "run", file, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out"), parts)


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", REFUSED_WHEN_RUN)
def test_a_result_that_cannot_be_is_refused_with_its_node(program, tmp_path, name, level):
    make, parts = REFUSED_WHEN_RUN[name]
    file = written(make, tmp_path)
    np.savez(tmp_path / "in.npz", x=np.ones(IMAGE, np.float32))
    refused(*run(program, "run", file, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out", "--level",
                 level), parts)

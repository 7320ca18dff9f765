"""Write the ONNX backend node cases of the installed `onnx` package as files.

usage: onnx_node_cases.py DIR [OPERATOR ...]

Writes DIR/test_NAME/model.onnx with test_data_set_N/input_I.pb and output_I.pb (TensorProto) for
every case whose nodes are all among the given operators (for all cases when none is given).
Cases with sequence, optional or map values have no tensor form and are left out.
"""

import pathlib
import sys
import warnings

import onnx
from onnx import TensorProto, numpy_helper


def operators(graph):
    """The operator types of a graph, those of nested graphs included."""
    found = set()
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            for nested in [attribute.g, *attribute.graphs]:
                found |= operators(nested)
    return found


def write_tensors(folder, kind, values, declared):
    for index, (value, info) in enumerate(zip(values, declared)):
        proto = value if isinstance(value, TensorProto) else numpy_helper.from_array(value, info.name)
        (folder / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir(exist_ok=True)
        write_tensors(data, "input", inputs, case.model.graph.input)
        write_tensors(data, "output", outputs, case.model.graph.output)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    out, wanted, written = pathlib.Path(sys.argv[1]), set(sys.argv[2:]), 0
    for case in collect_testcases():
        graph = case.model.graph
        plain = all(v.type.HasField("tensor_type") for v in [*graph.input, *graph.output])
        if plain and (not wanted or operators(graph) <= wanted):
            write_case(case, out / case.name)
            written += 1
    (out / "VERSION").write_text(f"onnx {onnx.__version__}\n")
    print(f"{written} cases of onnx {onnx.__version__} in {out}")


if __name__ == "__main__":
    main()

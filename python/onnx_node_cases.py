"""Write the ONNX backend node cases of the installed `onnx` package as files.

usage: onnx_node_cases.py DIR [OPERATOR ...]

Writes DIR/test_NAME/model.onnx with test_data_set_N/input_I.pb and output_I.pb (a TensorProto,
SequenceProto or OptionalProto, as the model declares) for every case whose nodes are all among the
given operators (for all cases when none is given). Cases with maps have no such form and are left
out. The models that the package holds as files are copied. DIR/SCHEMAS has a line for every version of every operator,
DIR/LIGHT for every light network, which python/tests/test_light.py runs.
"""

import pathlib
import shutil
import sys
import warnings

import onnx
import onnx.backend.test
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


def write_values(folder, kind, values, declared):
    for index, (value, info) in enumerate(zip(values, declared)):
        if isinstance(value, TensorProto):
            proto = value
        elif info.type.HasField("sequence_type"):
            proto = numpy_helper.from_list(value, info.name)
        elif info.type.HasField("optional_type"):
            proto = numpy_helper.from_optional(value, info.name)
        else:
            proto = numpy_helper.from_array(value, info.name)
        (folder / f"{kind}_{index}.pb").write_bytes(proto.SerializeToString())


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for index, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{index}"
        data.mkdir(exist_ok=True)
        write_values(data, "input", inputs, case.model.graph.input)
        write_values(data, "output", outputs, case.model.graph.output)


def copy_models(out, wanted):
    """Copies the models of the package that come with data; they import opsets from 6 on."""
    data, copied = pathlib.Path(onnx.backend.test.__file__).parent / "data", 0
    for kind in ["simple", "pytorch-operator", "pytorch-converted"]:
        for folder in sorted((data / kind).iterdir()):
            model = onnx.load(folder / "model.onnx")
            if not wanted or operators(model.graph) <= wanted:
                name = folder.name.replace("test_", f"test_{kind}_", 1)
                shutil.copytree(folder, out / name, dirs_exist_ok=True)
                copied += 1
    return copied


def write_light(file):
    """The version of ONNX's operators that each light network imports, one a line."""
    light = sorted((pathlib.Path(onnx.backend.test.__file__).parent / "data" / "light").glob("*.onnx"))
    imports = [onnx.load(path).opset_import for path in light]
    versions = [max(one.version for one in found if one.domain in ("", "ai.onnx")) for found in imports]
    file.write_text("".join(f"{version}\n" for version in versions))


def write_schemas(file):
    """Domain, name, version, the bounds of inputs and outputs, and the attributes as NAME=KIND:DEFAULT,
    separated by tabs."""
    from onnx import helper

    rows = []
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.deprecated:
            continue
        attributes = []
        for name, attribute in schema.attributes.items():
            default = attribute.default_value
            value = helper.get_attribute_value(default) if default.name else ""
            value = value.decode() if isinstance(value, bytes) else str(value).replace(" ", "")
            attributes.append(f"{name}={attribute.type.name}:{value}")
        rows.append((
            schema.domain, schema.name, schema.since_version, schema.min_input, schema.max_input,
            schema.min_output, schema.max_output, " ".join(sorted(attributes)),
        ))
    file.write_text("".join("\t".join(map(str, row)) + "\n" for row in sorted(rows)))


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    out, wanted, written = pathlib.Path(sys.argv[1]), set(sys.argv[2:]), 0
    for case in collect_testcases():
        graph = case.model.graph
        has_map = any(v.type.HasField("map_type") for v in [*graph.input, *graph.output])
        if not has_map and (not wanted or operators(graph) <= wanted):
            write_case(case, out / case.name)
            written += 1
    written += copy_models(out, wanted)
    write_schemas(out / "SCHEMAS")
    (out / "VERSION").write_text(f"onnx {onnx.__version__}\n")
    write_light(out / "LIGHT")
    print(f"{written} cases of onnx {onnx.__version__} in {out}")


if __name__ == "__main__":
    main()

"""Converts a PyTorch model to a Core ML package with coremltools, and checks that Galatea runs the package as PyTorch runs the model.

usage: to_core_ml.py MODEL OUT.mlpackage [--input NAME=SHAPE[:TYPE[:LOW..HIGH]] ...] [options]

MODEL is FILE.py:FACTORY, a function without arguments that gives a module, or a module and a tuple of example inputs; FILE.pt,
a saved TorchScript; or FILE.pt2, a saved torch.export.ExportedProgram. Code in MODEL runs: convert only what you trust.
FP16 and fixed shapes are what the Neural Engine takes; ranges of shapes are not offered. Needs torch, numpy and coremltools 9.

    python to_core_ml.py net.py:make net.mlpackage --input image=1,3,224,224
    python to_core_ml.py text.pt text.mlpackage --input ids=1,64:int32:0..30000 --bucket ids=1,128 --output states

The exit status is 0 where all outputs agree, 1 where one does not or the package does not run, 2 where nothing was converted.
"""

import argparse
import dataclasses
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

SPECIFICATIONS = {6: "iOS15", 7: "iOS16", 8: "iOS17", 9: "iOS18"}
# The largest difference that is no mistake, as a share of the largest value: half a thousand roundings of FP16, or sums in another order.
TOLERANCES = {"fp16": 2e-2, "fp32": 1e-4}
TYPES = ("float32", "float16", "int32", "int64", "bool")


class Refused(Exception):
    """What was asked for is not to be had."""


@dataclasses.dataclass
class Input:
    """An input: its name, its shape, its type in PyTorch, and the range of the numbers that it is checked with."""

    name: str
    shape: tuple
    dtype: str = "float32"
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def parse(cls, text):
        """NAME=SHAPE[:TYPE[:LOW..HIGH]]"""
        name, _, rest = text.partition("=")
        shape, *more = rest.split(":")
        found = cls(name, lengths(text, shape))
        if more:
            if more[0] not in TYPES:
                raise Refused(f"--input {text}: type '{more[0]}' found, expected one of {', '.join(TYPES)}")
            found.dtype = more[0]
        found.high = 2.0 if found.dtype.startswith("int") else 1.0
        if len(more) > 1:
            try:
                found.low, found.high = (float(number) for number in more[1].split("..", 1))
            except ValueError:
                raise Refused(f"--input {text}: '{more[1]}' found, expected LOW..HIGH") from None
        return found

    @classmethod
    def like(cls, name, tensor):
        """As an example is; integers are checked up to the largest one of the example."""
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype not in TYPES:
            raise Refused(f"input '{name}' is of {dtype}, expected one of {', '.join(TYPES)}")
        high = float(tensor.max()) + 1 if dtype.startswith("int") and tensor.numel() else 1.0
        return cls(name, tuple(tensor.shape), dtype, 0.0, high)

    def sample(self, random, shape):
        """Numbers of the input's type and range."""
        if self.dtype == "bool":
            return random.integers(0, 2, shape).astype(bool)
        if self.dtype.startswith("int"):
            return random.integers(int(self.low), max(int(self.high), int(self.low) + 1), shape).astype(self.dtype)
        return random.uniform(self.low, self.high, shape).astype(self.dtype)


def lengths(text, shape):
    try:
        found = tuple(int(length) for length in shape.split(",") if length)
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise Refused(f"'{text}': shape '{shape}' found, expected lengths such as 1,3,224,224")
    return found


def loaded(source):
    """The module (or the exported program), and its example inputs where it has some."""
    import torch

    path, _, factory = source.partition(":")
    if factory:
        spec = importlib.util.spec_from_file_location("to_core_ml_model", path)
        if spec is None or not pathlib.Path(path).is_file():
            raise Refused(f"'{path}' is no file of Python")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not hasattr(module, factory):
            raise Refused(f"'{path}' has no '{factory}'")
        found = getattr(module, factory)()
        model, examples = found if isinstance(found, tuple) else (found, None)
        return model.eval(), examples
    if path.endswith(".pt2"):
        program = torch.export.load(path)
        return program, program.example_inputs[0] if program.example_inputs else None
    if path.endswith(".pt"):
        return torch.jit.load(path, map_location="cpu").eval(), None
    raise Refused(f"'{source}' found, expected FILE.py:FACTORY, FILE.pt or FILE.pt2")


def inputs_of(model, examples, given):
    """The inputs: those that are given, else as the examples are."""
    if given:
        return given
    if not examples:
        raise Refused("the model has no example inputs: give --input for each input")
    names = [f"x{at}" for at in range(len(examples))]
    signature = getattr(model, "graph_signature", None)
    if signature is not None:
        names = list(signature.user_inputs)
    elif hasattr(model, "forward"):
        import inspect

        declared = [name for name in inspect.signature(model.forward).parameters if name != "self"]
        names = declared[: len(examples)] if len(declared) >= len(examples) else names
    return [Input.like(name, tensor) for name, tensor in zip(names, examples, strict=True)]


def tensors(inputs, random, shapes):
    """An array of numbers for each input."""
    return {one.name: one.sample(random, shapes.get(one.name, one.shape)) for one in inputs}


def flat(found):
    """All tensors of what a model gives, in their order."""
    import torch

    if isinstance(found, torch.Tensor):
        return [found]
    parts = found.values() if isinstance(found, dict) else found
    return [tensor for part in parts if part is not None for tensor in flat(part)]


def called(model, arrays):
    """What PyTorch gives."""
    import torch

    run = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    with torch.no_grad():
        return [tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
                for tensor in flat(run(*(torch.from_numpy(array) for array in arrays.values())))]


def convert(model, inputs, buckets, options):
    """The package, by coremltools."""
    import coremltools as ct
    import torch

    # The fast way through PyTorch's own layers is one operator that coremltools does not know.
    torch.backends.mha.set_fastpath_enabled(False)
    kinds = {"float32": np.float32, "float16": np.float32, "int32": np.int32, "int64": np.int32, "bool": np.int32}
    types = []
    for one in inputs:
        shape = one.shape
        others = [bucket[one.name] for bucket in buckets if one.name in bucket]
        if others:
            # The default comes first.
            shape = ct.EnumeratedShapes(shapes=[one.shape, *(other for other in others if other != one.shape)], default=one.shape)
        types.append(ct.TensorType(name=one.name, shape=shape, dtype=kinds[one.dtype]))
    made = model
    if isinstance(model, torch.export.ExportedProgram):
        made = model.run_decompositions({})
        types = None if not buckets else types
    elif not isinstance(model, torch.jit.ScriptModule):
        arrays = tensors(inputs, np.random.default_rng(options.seed), {})
        examples = tuple(torch.from_numpy(array) for array in arrays.values())
        with torch.no_grad():
            made = torch.jit.trace(model, examples, strict=False)
    package = ct.convert(
        made,
        inputs=types,
        outputs=[ct.TensorType(name=name) for name in options.output] or None,
        convert_to="mlprogram",
        minimum_deployment_target=getattr(ct.target, SPECIFICATIONS[options.specification]),
        compute_precision=ct.precision.FLOAT16 if options.precision == "fp16" else ct.precision.FLOAT32,
        compute_units=ct.ComputeUnit.CPU_ONLY,
        skip_model_load=True,
    )
    package.save(str(options.out))
    spec = package.get_spec().description
    return [one.name for one in spec.input], [one.name for one in spec.output]


def run(options, names, arrays, folder):
    """What Galatea gives by the name of the output."""
    # The package has the types of Core ML: no integers of 64 bits, and no truth values.
    fed = {name: array.astype(np.int32) if array.dtype.kind in "ib" else array.astype(np.float32)
           for name, array in zip(names, arrays.values(), strict=True)}
    np.savez(folder / "in.npz", **fed)
    command = [options.galatea, "run", str(options.out), "--inputs", str(folder / "in.npz"), "--outputs", str(folder / "out"),
               "--no-model-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"galatea run: {(done.stderr or done.stdout).strip()}")
    return dict(np.load(folder / "out0.npz"))


def compared(name, shapes, found, expected, tolerance):
    """One row of the table."""
    row = {"output": name, "inputs": shapes, "shape": list(np.shape(expected))}
    if found is None or found.size != expected.size:
        return row | {"agrees": False, "found": None if found is None else list(found.shape)}
    found, expected = found.reshape(-1).astype(np.float64), expected.reshape(-1).astype(np.float64)
    largest = float(np.max(np.abs(expected), initial=0.0))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    difference = float(np.max(np.where(same, 0.0, np.abs(found - expected)), initial=0.0))
    agrees = bool(difference <= tolerance * max(largest, 1e-6))
    return row | {"largest": largest, "difference": difference, "agrees": agrees}


def check(model, inputs, buckets, names, options):
    """A row for each output at each shape."""
    tolerance = options.tolerance if options.tolerance is not None else TOLERANCES[options.precision]
    rows = []
    for shapes in [{}, *buckets]:
        arrays = tensors(inputs, np.random.default_rng(options.seed), shapes)
        expected = called(model, arrays)
        with tempfile.TemporaryDirectory() as folder:
            found = run(options, names[0], arrays, pathlib.Path(folder))
        if len(expected) != len(names[1]):
            raise Refused(f"PyTorch gives {len(expected)} outputs, the package {len(names[1])}: {', '.join(names[1])}")
        told = " ".join(f"{name}{list(array.shape)}" for name, array in arrays.items())
        rows += [compared(name, told, found.get(name), one, tolerance) for name, one in zip(names[1], expected, strict=True)]
    return rows


def print_table(rows):
    print(f"{'output':24} {'shape':18} {'largest':>12} {'difference':>12}  agrees  inputs")
    for row in rows:
        largest, difference = (f"{row[key]:.4g}" if key in row else "-" for key in ("largest", "difference"))
        shape = ",".join(str(length) for length in row["shape"])
        print(f"{row['output']:24} {shape:18} {largest:>12} {difference:>12}  {'yes' if row['agrees'] else 'NO':6}  {row['inputs']}")


def bucket_of(text):
    """NAME=SHAPE[;NAME=SHAPE ...]"""
    parts = (part.partition("=") for part in text.split(";"))
    return {name: lengths(text, shape) for name, _, shape in parts}


def arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--input", action="append", default=[], help="NAME=SHAPE[:TYPE[:LOW..HIGH]], in the order of the model's inputs")
    parser.add_argument("--bucket", action="append", default=[], help="NAME=SHAPE[;NAME=SHAPE ...]: another shape that the package takes")
    parser.add_argument("--output", action="append", default=[], help="name of an output, in their order")
    parser.add_argument("--precision", choices=list(TOLERANCES), default="fp16")
    parser.add_argument("--specification", type=int, choices=list(SPECIFICATIONS), default=9, help="6 is macOS 12, 9 is macOS 15")
    parser.add_argument("--tolerance", type=float, help="largest difference as a share of the largest value [0.02, fp32 0.0001]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--galatea", default="galatea", help="the program that the package is checked with")
    parser.add_argument("--no-check", action="store_true", help="convert only")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser.parse_args(words)


def main(words):
    options = arguments(words)
    try:
        if options.out.suffix != ".mlpackage":
            raise Refused(f"'{options.out}' found, expected OUT.mlpackage")
        if not options.no_check and shutil.which(options.galatea) is None:
            raise Refused(f"the program '{options.galatea}' that checks the package is not in PATH: "
                          "name it with --galatea PROGRAM, or write --no-check")
        given, buckets = [Input.parse(text) for text in options.input], [bucket_of(text) for text in options.bucket]
        model, examples = loaded(options.model)
        inputs = inputs_of(model, examples, given)
        unknown = {name for bucket in buckets for name in bucket} - {one.name for one in inputs}
        if unknown:
            raise Refused(f"--bucket: no input '{min(unknown)}', the inputs are {', '.join(one.name for one in inputs)}")
        started = time.perf_counter()
        names = convert(model, inputs, buckets, options)
        seconds = time.perf_counter() - started
    except Refused as refused:
        print(f"Error: {refused}", file=sys.stderr)
        return 2
    except Exception as error:  # noqa: BLE001 (coremltools and models raise anything)
        print(f"Error: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    size = sum(file.stat().st_size for file in options.out.rglob("*") if file.is_file())
    report = {"package": str(options.out), "bytes": size, "seconds": round(seconds, 3), "inputs": names[0], "outputs": names[1]}
    if not options.no_check:
        try:
            report["rows"] = check(model, inputs, buckets, names, options)
        except (Refused, OSError) as refused:
            print(f"Error: {refused}", file=sys.stderr)
            return 1
    if options.json:
        print(json.dumps(report))
    else:
        print(f"{options.out}: {size / 1e6:.1f} MB in {seconds:.2f} s")
        print_table(report.get("rows", []))
    return 0 if all(row["agrees"] for row in report.get("rows", [])) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

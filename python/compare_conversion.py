"""Converts models to Core ML packages with Galatea and with coremltools, and prints how long it took and how large they are.

usage: compare_conversion.py DIR [NAME ...] [--galatea=PROGRAM] [--check]

DIR has the models that export_models.py wrote, of which each is made again in PyTorch with the same
weights for coremltools, which does not read ONNX. Both convert to FP16 for macOS 15 at fixed lengths, in
a process that has loaded its libraries; coremltools' time includes tracing, Galatea's that of reading
the file and writing the package. Times are those that passed and those of processors, of user and system
together. With --check Galatea also runs each model as it is and as packages in
FP32 and FP16, on the same inputs, and coremltools' own loader reads the packages. Needs
requirements-export.txt and coremltools 9.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import export_models
import numpy as np
import torch

# Lengths of the named axes of each model's inputs.
LENGTHS = {"batch": 1, "sequence": 128, "target": 16, "past": 7, "total": 7 + 128}


def folder_bytes(path):
    return sum(
        file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file()
    )


def of_children():
    """Seconds of processors of the programs that were run and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def with_galatea(program, source, target, axes, precision="fp16"):
    """Seconds, those of processors, and bytes; or why there is no package."""
    before = of_children()
    named = [f"--length={name}={LENGTHS[name]}" for name in sorted(axes)]
    done = subprocess.run(
        [program, "convert", source, target, "--json", "--precision", precision, *named],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:]
    told = json.loads(done.stdout.splitlines()[-1])
    return (told["seconds"], of_children() - before), told["bytes"]


class Captured(Exception):
    """The model and its inputs, caught where they would be exported."""

    def __init__(self, model, inputs):
        super().__init__("captured")
        self.model, self.inputs = model, inputs


def captured(name):
    """The PyTorch model of a name with inputs of the chosen lengths."""

    def catch(model, inputs, _outputs, _path, _dynamo):
        raise Captured(model, inputs)

    export_models.export = catch
    torch.manual_seed(export_models.SEED)
    try:
        export_models.MODELS[name](None, False)
    except Captured as found:
        return found.model.eval(), found.inputs
    raise SystemExit(f"{name} is not exported by PyTorch")


def sized(example, axes):
    """An example cut or repeated to the chosen lengths."""
    for axis, symbol in axes.items():
        length = LENGTHS[symbol]
        times = -(-length // example.shape[axis])
        example = torch.cat([example] * times, axis).narrow(axis, 0, length)
    return example.contiguous()


def with_coremltools(name, target):
    """Seconds, those of processors, and bytes; or why there is no package."""
    import coremltools as ct

    model, inputs = captured(name)
    examples = tuple(sized(example, axes) for example, axes in inputs.values())
    kinds = {torch.int64: np.int32, torch.float32: np.float32}
    types = [
        ct.TensorType(name=f"x{at}", shape=one.shape, dtype=kinds[one.dtype])
        for at, one in enumerate(examples)
    ]
    started, used = time.perf_counter(), time.process_time()
    try:
        with torch.no_grad():
            traced = torch.jit.trace(model, examples, strict=False)
        package = ct.convert(
            traced,
            inputs=types,
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.macOS15,
            compute_precision=ct.precision.FLOAT16,
            skip_model_load=True,
        )
        package.save(str(target))
    except Exception as error:  # noqa: BLE001 (coremltools raises anything)
        return None, [f"{type(error).__name__}: {error}".splitlines()[0]]
    seconds = (time.perf_counter() - started, time.process_time() - used)
    return seconds, folder_bytes(target)


def run(program, model, inputs, folder, *options):
    """What Galatea gives for a model, and the units that it ran on."""
    out = folder / "out"
    command = [program, "run", model, "--inputs", inputs, "--outputs", out, "--no-model-cache"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return dict(np.load(f"{out}0.npz"))


def difference(found, expected):
    """The largest difference as a share of the largest value, over all outputs."""
    shares = []
    for name, values in expected.items():
        largest = np.max(np.abs(values)) or 1.0
        shares.append(np.max(np.abs(found[name].reshape(values.shape) - values)) / largest)
    return max(shares)


def operations(package):
    """How many operations coremltools' loader reads from a package; it checks each by its own definition."""
    import coremltools as ct
    from coremltools.converters.mil.frontend.milproto.load import load

    spec = ct.utils.load_spec(str(package))
    program = load(spec, spec.specificationVersion, str(package / "Data/com.apple.CoreML/weights"))
    return len(program.functions["main"].operations)


def checked(program, source, name, folder):
    """Claimed nodes, partitions, and how far the packages are from the model."""
    _, inputs = captured(name)
    arrays = {name: sized(example, axes).numpy() for name, (example, axes) in inputs.items()}
    axes = {symbol for _, axes in inputs.values() for symbol in axes.values()}
    np.savez(folder / "in.npz", **arrays)
    expected = run(program, source, folder / "in.npz", folder, "--provider", "cpu")
    facts = []
    for precision in ("fp32", "fp16"):
        package = folder / f"{precision}.mlpackage"
        seconds, rest = with_galatea(program, source, package, axes, precision)
        if seconds is None:
            return f"{precision}: {rest}"
        found = run(program, package, folder / "in.npz", folder)
        facts.append(f"{precision} off by {difference(found, expected):.1e}")
    facts.append(f"{operations(package)} operations")
    # What the provider leaves to others comes in partitions of its own.
    command = [program, "inspect", source, "--provider", "coreml", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode == 0:
        session = json.loads(told.stdout.splitlines()[-1]).get("session", {})
        facts.append(f"{session.get('nodes')} nodes on {session.get('providers')}")
    return ", ".join(facts)


def told(found):
    seconds, rest = found
    return (
        f"{rest / 1e6:8.1f} MB {seconds[0]:7.2f} s, {seconds[1]:7.2f} s"
        if seconds is not None
        else f"refused: {' '.join(rest)[:60]}"
    )


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    program = next(
        (word.split("=", 1)[1] for word in sys.argv if word.startswith("--galatea=")),
        "galatea",
    )
    if not words or any(name not in export_models.MODELS for name in words[1:]):
        raise SystemExit(__doc__)
    folder = pathlib.Path(words[0])
    warnings.simplefilter("ignore")
    print(f"{'model':14} {'Galatea':36} coremltools")
    for name in words[1:] or [
        name for name in export_models.MODELS if (folder / f"{name}.onnx").exists()
    ]:
        with tempfile.TemporaryDirectory() as made:
            made, source = pathlib.Path(made), folder / f"{name}.onnx"
            axes = {symbol for _, axes in captured(name)[1].values() for symbol in axes.values()}
            ours = with_galatea(program, source, made / "ours.mlpackage", axes)
            theirs = with_coremltools(name, made / "theirs.mlpackage")
            print(f"{name:14} {told(ours):36} {told(theirs)}", flush=True)
            if "--check" in sys.argv:
                print(f"{'':14} {checked(program, source, name, made)}", flush=True)


if __name__ == "__main__":
    main()

"""Converts models to Core ML packages with Galatea and with coremltools, and prints how long it took and how large they are.

usage: compare_conversion.py DIR [NAME ...] [--galatea=PROGRAM]

DIR has the models that export_models.py wrote, of which each is made again in PyTorch with the same
weights for coremltools, which does not read ONNX. Both convert to FP16 for macOS 15 at fixed lengths, in
a process that has loaded its libraries; coremltools' time includes tracing, Galatea's that of reading
the file and writing the package. Needs requirements-export.txt and coremltools 9.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import export_models
import torch

# Lengths of the named axes of each model's inputs.
LENGTHS = {"batch": 1, "sequence": 128, "target": 16, "past": 7, "total": 7 + 128}


def folder_bytes(path):
    return sum(
        file.stat().st_size for file in pathlib.Path(path).rglob("*") if file.is_file()
    )


def with_galatea(program, source, target):
    """Seconds and bytes, or why there is no package."""
    named = [f"--length={name}={length}" for name, length in LENGTHS.items()]
    done = subprocess.run(
        [program, "convert", source, target, "--json", *named],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1:]
    told = json.loads(done.stdout.splitlines()[-1])
    return told["seconds"], told["bytes"]


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
    """Seconds and bytes, or why there is no package."""
    import coremltools as ct
    import numpy as np

    model, inputs = captured(name)
    examples = tuple(sized(example, axes) for example, axes in inputs.values())
    kinds = {torch.int64: np.int32, torch.float32: np.float32}
    types = [
        ct.TensorType(name=f"x{at}", shape=one.shape, dtype=kinds[one.dtype])
        for at, one in enumerate(examples)
    ]
    started = time.perf_counter()
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
    return time.perf_counter() - started, folder_bytes(target)


def told(found):
    seconds, rest = found
    return (
        f"{rest / 1e6:8.1f} MB {seconds:7.2f} s"
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
    print(f"{'model':14} {'Galatea':24} coremltools")
    for name in words[1:] or [
        name for name in export_models.MODELS if (folder / f"{name}.onnx").exists()
    ]:
        with tempfile.TemporaryDirectory() as made:
            ours = with_galatea(
                program, folder / f"{name}.onnx", pathlib.Path(made) / "ours.mlpackage"
            )
            theirs = with_coremltools(name, pathlib.Path(made) / "theirs.mlpackage")
        print(f"{name:14} {told(ours):24} {told(theirs)}", flush=True)


if __name__ == "__main__":
    main()

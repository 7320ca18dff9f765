"""What forms of packages of Core ML cost on tasks: the digits sample, and MiniLM on sentences.

usage: core_ml_accuracy.py GALATEA [--minilm MINILM.onnx] [--forms NAME ...]

Tasks, samples and figures are those of quantization_accuracy.py. `galatea convert` writes each package, and `galatea run`
computes it as programs are computed everywhere: results of FP16 are rounded after each operation.
"""

import argparse
import pathlib
import tempfile

import numpy

from quantization_accuracy import call, digits, first, minilm, save_samples

FORMS = {
    "FP16": [],
    "INT8 weights": ["--weights", "int8"],
    "INT8 weights and activations": ["--weights", "int8", "--activations", "int8"],
    "the same, 99.99 %": ["--weights", "int8", "--activations", "int8", "--method", "percentile"],
    "the same, cosine 0.992": ["--weights", "int8", "--activations", "int8", "--accuracy", "0.992"],
    "INT4 weights by 32": ["--weights", "int4:32"],
    "palette of 4 bits": ["--weights", "palette:4"],
}


def folder_bytes(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def narrow(values):
    """Packages have INT32 in the place of INT64."""
    return values.astype(numpy.int32) if values.dtype == numpy.int64 else values


def outputs(program, model, evaluation, folder):
    files = []
    for index, inputs in enumerate(evaluation):
        files += ["--inputs", folder / f"in{index}.npz"]
        numpy.savez(files[-1], **{name: narrow(values) for name, values in inputs.items()})
    call(program, "run", model, *files, "--outputs", folder / "out", "--no-model-cache", "--level", "O1")
    return [first(dict(numpy.load(folder / f"out{index}.npz"))) for index in range(len(evaluation))]


def measure(program, name, task, forms):
    exact = task.theirs(task.model)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        samples = save_samples(task, folder / "samples")
        for form in forms:
            package = folder / "model.mlpackage"
            options = FORMS[form]
            if "--activations" in options:
                options = [*options, "--calibration", samples, "--islands", "none"]
            call(program, "convert", task.model, package, *options)
            figures = task.figures(outputs(program, package, task.evaluation, folder), exact)
            shown = ", ".join(f"{key} {value:.4f}" for key, value in figures.items())
            print(f"| {name} | {form} | {folder_bytes(package) / 1e6:.2f} | {shown} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("galatea")
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=list(FORMS))
    given = parser.parse_args()
    print("| model | form | MB | on the task |\n|" + "---|" * 4)
    measure(given.galatea, "digits", digits(), given.forms)
    if given.minilm:
        measure(given.galatea, "MiniLM", minilm(given.minilm), given.forms)


if __name__ == "__main__":
    main()

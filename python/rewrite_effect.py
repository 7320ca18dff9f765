"""What rewriting does to models: nodes and latency without and with it, beside ONNX Runtime.

usage: rewrite_effect.py GALATEA DIR [NAME ...] [--seconds S] [--threads N] [--json]

DIR holds NAME.onnx as export_models.py writes them. Each model runs on inputs made from seed 0,
at O0 and at O3, and in ONNX Runtime; all results are compared. Latencies are medians of runs of the
three in turn, so that a load on the machine falls on all of them.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnxruntime

# Lengths of named axes. The newer exporter has names of its own, so there the input and the axis decide.
LENGTHS = {"batch": 1, "sequence": 64, "target": 16, "past": 31, "total": 95, "samples": 16000}
SECOND = {"decoder_input_ids": 16, "input_values": 16000}
ELEMENT = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}


def make_inputs(session):
    random = numpy.random.default_rng(0)
    inputs = {}
    for value in session.get_inputs():
        past = any(other.name.startswith("past.") for other in session.get_inputs())
        shape = [length if isinstance(length, int) else LENGTHS.get(length) or guess(value.name, axis, past)
                 for axis, length in enumerate(value.shape)]
        if value.type == "tensor(int64)":
            ones = "mask" in value.name
            made = numpy.ones(shape) if ones else random.integers(0, 1 if "type" in value.name else 1000, shape)
        else:
            made = random.random(shape) if len(shape) == 4 and shape[1] == 3 else random.normal(size=shape)
        inputs[value.name] = made.astype(ELEMENT[value.type])
    return inputs


def guess(name, axis, past):
    if axis == 0:
        return 1
    if name.startswith("past."):
        return LENGTHS["past"]
    return LENGTHS["total"] if past and name == "attention_mask" else SECOND.get(name, LENGTHS["sequence"])


def distance(found, expected):
    """The largest difference as a share of the largest magnitude; 0 for equal words and counts."""
    if expected.dtype.kind not in "fc":
        return 0.0 if found.shape == expected.shape and (found.astype(str) == expected.astype(str)).all() else 1.0
    scale = max(float(numpy.abs(expected).max(initial=0.0)), 1e-20)
    return float(numpy.abs(found.astype(numpy.float64) - expected).max(initial=0.0)) / scale


class Galatea:
    def __init__(self, program, path, folder, threads):
        self.program, self.path, self.folder, self.threads = program, path, folder, threads

    def ask(self, command, *options):
        done = subprocess.run([self.program, command, self.path, *map(str, options)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[-600:])
        return done.stdout

    def nodes(self, level):
        return json.loads(self.ask("inspect", "--json", "--level", level))["session"]["nodes"]

    def outputs(self, level, inputs):
        numpy.savez(self.folder / "in.npz", **inputs)
        self.ask("run", "--inputs", self.folder / "in.npz", "--outputs", self.folder / "out", "--level", level,
                 "--threads", self.threads)
        with numpy.load(self.folder / "out0.npz") as found:
            return dict(found)

    def latency(self, level, inputs, seconds):
        shapes = [f"--shape={name}={','.join(map(str, value.shape))}" for name, value in inputs.items() if value.ndim]
        text = self.ask("bench", "--json", "--level", level, "--threads", self.threads, "--seconds", seconds, *shapes)
        return json.loads(text.strip().splitlines()[-1])["median_ms"]


def runtime_latency(session, inputs, seconds):
    import time

    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 5:
        start = time.perf_counter()
        session.run(None, inputs)
        took.append((time.perf_counter() - start) * 1e3)
    return float(numpy.median(took))


def measure(program, path, seconds, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = make_inputs(session)
    expected = dict(zip([value.name for value in session.get_outputs()], session.run(None, inputs), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        galatea = Galatea(program, path, pathlib.Path(folder), threads)
        row = {"model": path.stem, "nodes": {level: galatea.nodes(level) for level in ("O0", "O1", "O2", "O3")}}
        row["distance"] = {level: max(distance(found, expected[name]) for name, found in galatea.outputs(level, inputs).items())
                           for level in ("O0", "O3")}
        took = {"O0": [], "O3": [], "ort": []}
        for _ in range(3):
            for level in ("O0", "O3"):
                took[level].append(galatea.latency(level, inputs, seconds / 3))
            took["ort"].append(runtime_latency(session, inputs, seconds / 3))
    row["ms"] = {name: float(f"{min(values):.3g}") for name, values in took.items()}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("galatea")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    paths = sorted(path for path in given.folder.glob("*.onnx") if not given.names or path.stem in given.names)
    failed = False
    if not given.json:
        print("| model | nodes O0 | O1 | O3 | ms O0 | ms O3 | ms ONNX Runtime | ORT / O3 | distance O0 | O3 |\n|" + "---|" * 10)
    for path in paths:
        try:
            row = measure(given.galatea, path, given.seconds, given.threads)
        except RuntimeError as error:
            failed = True
            print(f"{path.stem}: {error}", file=sys.stderr, flush=True)
            continue
        if given.json:
            print(json.dumps(row), flush=True)
            continue
        nodes, ms, far = row["nodes"], row["ms"], row["distance"]
        print(f"| {row['model']} | {nodes['O0']} | {nodes['O1']} | {nodes['O3']} | {ms['O0']} | {ms['O3']} | {ms['ort']} "
              f"| {ms['ort'] / ms['O3']:.2f} | {far['O0']:.1e} | {far['O3']:.1e} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

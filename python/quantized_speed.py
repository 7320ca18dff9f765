"""Quantised models beside ONNX Runtime: latency, and how near the results are.

usage: quantized_speed.py GALATEA DIR [NAME ...] [--seconds S] [--threads N]

DIR holds models as quantize_models.py writes them. Latencies are medians of runs in turn, so that a
load on the machine falls on both; the ratio is what counts. Likeness is the cosine between results:
with ONNX Runtime as it is, with ONNX Runtime when it optimises nothing (the model as written), and
between these two. Rounding an activation the other way moves later ones, so that in a model of random
weights even ONNX Runtime is not near itself.
"""

import argparse
import pathlib
import tempfile

import numpy
import onnxruntime
from rewrite_effect import Galatea, make_inputs, runtime_latency


def session(path, threads, optimise):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def cosine(a, b):
    a, b = a.astype(numpy.float64).ravel(), b.astype(numpy.float64).ravel()
    return float(a @ b / max(numpy.linalg.norm(a) * numpy.linalg.norm(b), 1e-30))


def measure(program, path, seconds, threads):
    fast = session(path, threads, True)
    inputs = make_inputs(fast)
    first = fast.get_outputs()[0].name
    expected, plain = (made.run([first], inputs)[0] for made in (fast, session(path, threads, False)))
    with tempfile.TemporaryDirectory() as folder:
        galatea = Galatea(program, path, pathlib.Path(folder), threads)
        found = galatea.outputs("O3", inputs)[first]
        took = {"galatea": [], "ort": []}
        for _ in range(3):
            took["galatea"].append(galatea.latency("O3", inputs, seconds / 3))
            took["ort"].append(runtime_latency(fast, inputs, seconds / 3))
    ours, theirs = min(took["galatea"]), min(took["ort"])
    like = [cosine(found, expected), cosine(found, plain), cosine(expected, plain)]
    return ours, theirs, like


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("galatea")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print("| model | ms | ms ONNX Runtime | ORT / ours | like ORT | like the model as written | ORT like it |\n|" + "---|" * 7)
    for path in sorted(path for path in given.folder.glob("*.onnx") if not given.names or path.stem in given.names):
        ours, theirs, like = measure(given.galatea, path, given.seconds, given.threads)
        shown = " | ".join(f"{value:.4f}" for value in like)
        print(f"| {path.stem} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f} | {shown} |", flush=True)


if __name__ == "__main__":
    main()

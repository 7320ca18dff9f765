"""How fast tree ensembles run beside ONNX Runtime.

usage: tree_speed.py GALATEA [--trees N] [--depth D] [--threads N] [--seconds S]

Makes a regressor and a classifier of three words with scikit-learn, runs each in both for batches of
1, 100 and 10,000 rows, in turns, and prints the medians. Features are normally distributed, as those
that `galatea bench` makes.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

FEATURES = 20
OPSET = {"": 17, "ai.onnx.ml": 3}


def models(trees, depth):
    random = np.random.default_rng(0)
    rows = random.normal(size=(4000, FEATURES)).astype(np.float32)
    values = np.sin(3 * rows[:, 0]) + rows[:, 1] * rows[:, 2] + random.normal(size=4000)
    words = np.array(["calm", "breeze", "gale"])[np.digitize(values, [-0.5, 0.5])]
    boosting = GradientBoostingRegressor(n_estimators=trees, max_depth=depth, max_features=4, random_state=0)
    yield "boosting", to_onnx(boosting.fit(rows, values), rows[:1], target_opset=OPSET)
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(rows, words)
    yield "forest of words", to_onnx(forest, rows[:1], options={"zipmap": False}, target_opset=OPSET)


def runtime(session, rows, seconds):
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 5:
        start = time.perf_counter()
        session.run(None, {"X": rows})
        took.append((time.perf_counter() - start) * 1e3)
    return float(np.median(took))


def galatea(program, path, count, threads, seconds):
    done = subprocess.run([program, "bench", path, "--json", "--threads", str(threads), "--seconds", str(seconds),
                           f"--shape=X={count},{FEATURES}"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("galatea")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.5)
    given = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    print("| model | rows | ms | ms ONNX Runtime | ratio |\n|" + "---|" * 5)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for name, model in models(given.trees, given.depth):
            path.write_bytes(model.SerializeToString())
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            for count in (1, 100, 10_000):
                rows = np.random.default_rng(1).normal(size=(count, FEATURES)).astype(np.float32)
                own, other = [], []
                for _ in range(3):
                    own.append(galatea(given.galatea, path, count, given.threads, given.seconds / 3))
                    other.append(runtime(session, rows, given.seconds / 3))
                print(f"| {name} | {count} | {min(own):.3f} | {min(other):.3f} | {min(other) / min(own):.2f} |", flush=True)


if __name__ == "__main__":
    main()

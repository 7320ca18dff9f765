"""Make the sample model repository.

usage: make_samples.py [--out DIR] [FAMILY ...]    (families: arithmetic ensemble identity digits sentence lstm
chat)

Every model but chat gets config.pbtxt, 1/model.onnx (ensembles have none), sample_input.json (a KServe v2
infer request) and sample_output.json (ONNX Runtime's answer to it). Needs requirements-samples.txt.
"""

import argparse
import importlib
import json
import pathlib

FAMILIES = ["arithmetic", "ensemble", "identity", "digits", "sentence", "lstm", "chat"]
DEFAULT = pathlib.Path(__file__).parent.parent / "examples" / "models"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=DEFAULT)
    parser.add_argument("family", nargs="*", default=FAMILIES)
    options = parser.parse_args()
    for family in options.family:
        print(family, flush=True)
        scores = importlib.import_module(f"samples.{family}").build(options.out)
        if scores:
            print(" ", json.dumps(scores))


if __name__ == "__main__":
    main()

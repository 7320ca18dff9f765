"""Make what the models of examples/python read: weights, tables, a tokenizer, an encoder and sample requests.

usage: make_python_examples.py [--out DIR] [FAMILY ...]    (families: torch_digits sklearn_iris genre)

The models themselves, model.py and config.pbtxt, are written by hand. sample_output.json is what the libraries
answer without a server. Needs requirements-samples.txt.
"""

import argparse
import importlib
import json
import pathlib

FAMILIES = ["torch_digits", "sklearn_iris", "genre"]
DEFAULT = pathlib.Path(__file__).parent.parent / "examples" / "python"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=DEFAULT, help="a copy of examples/python")
    parser.add_argument("family", nargs="*", default=FAMILIES)
    options = parser.parse_args()
    for family in options.family:
        print(family, flush=True)
        scores = importlib.import_module(f"samples.{family}").build(options.out)
        print(" ", json.dumps(scores))


if __name__ == "__main__":
    main()

"""The labelled sentences of data/sentences.tsv (see collect_sentences.py)."""

import pathlib

PATH = pathlib.Path(__file__).parent.parent / "data" / "sentences.tsv"


def sentences():
    """All `(label, sentence)` pairs in file order."""
    lines = PATH.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t", 1)) for line in lines]

"""Collect the labelled sentences that the `sentence` and `lstm` samples are trained on.

usage: collect_sentences.py PLAYS.txt

Writes data/sentences.tsv, one `label<TAB>sentence` a line:
  drama   from PLAYS.txt, plain text of Shakespeare's plays (public domain);
  manual  from the docstrings of this Python's standard library (PSF licence);
  legal   from the licence texts in /usr/share/common-licenses (may be copied verbatim).

The committed file was made with CPython 3.11 and Debian 12's licence texts. It is kept in the
repository so that training needs no other source.
"""

import ast
import pathlib
import random
import re
import sys
import sysconfig

PER_LABEL = 1400
LICENCES = ["Apache-2.0", "Artistic", "GFDL-1.3", "GPL-2", "GPL-3", "LGPL-2.1", "MPL-1.1", "MPL-2.0"]
OUT = pathlib.Path(__file__).parent / "data" / "sentences.tsv"


def sentences(paragraph):
    """The plain sentences of one paragraph: 4 words or more, no markup."""
    text = re.sub(r"\s+", " ", paragraph).strip()
    for piece in re.split(r"(?<=[.!?])\s+", text):
        plain = re.fullmatch(r"[A-Z\"][A-Za-z0-9 ,;:'()\"/\-]*[.!?]", piece)
        if plain and len(piece.split()) >= 4 and 20 <= len(piece) <= 240:
            yield piece


def drama(plays):
    for speech in pathlib.Path(plays).read_text(encoding="utf-8").split("\n\n"):
        lines = speech.split("\n")
        if lines[0].endswith(":"):
            yield from sentences(" ".join(lines[1:]))


def manual():
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    for path in sorted([*library.glob("*.py"), *library.glob("[a-z]*/*.py")]):
        if path.parent.name in ("site-packages", "test", "lib2to3", "idlelib"):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                    yield from sentences(paragraph)


def legal():
    for name in LICENCES:
        text = pathlib.Path("/usr/share/common-licenses", name).read_text(encoding="utf-8")
        for paragraph in re.split(r"\n\s*\n", text):
            yield from sentences(re.sub(r"^\s*(\(?[a-z0-9]+[.)]|\d[\d.]*)\s+", "", paragraph))


def main():
    rows = []
    for label, found in [("drama", drama(sys.argv[1])), ("manual", manual()), ("legal", legal())]:
        unique = sorted(set(found))
        random.Random(0).shuffle(unique)
        print(label, len(unique), "found,", min(PER_LABEL, len(unique)), "kept")
        rows += [f"{label}\t{sentence}\n" for sentence in unique[:PER_LABEL]]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What docs/apple-silicon.md says was proved is proved by tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "apple-silicon.md"


def rows():
    """Returns the cells of each promise."""
    part = PAGE.read_text().split("## What was promised", 1)[1].split("\n## ", 1)[0]
    cells = [line.strip("|").split("|") for line in part.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in row] for row in cells]


def tests():
    """Returns the names of all functions of tests and sources."""
    files = [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "python" / "tests").glob("*.py")]
    found = set()
    for path in files:
        found.update(re.findall(r"\b(?:fn|def) (\w+)\(", path.read_text()))
    return found


def test_every_proof_is_a_test():
    found = tests()
    for number, _, _, proofs in rows():
        names = re.findall(r"`(\w{12,})`", proofs)
        assert names, f"promise {number} has no proof"
        missing = [name for name in names if name not in found]
        assert not missing, f"promise {number}: {missing} are no tests"


def test_every_promise_has_a_row():
    assert [int(row[0]) for row in rows()] == list(range(1, 31))

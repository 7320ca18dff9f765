"""Says which operators, in which of their versions, no case has."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

from .case import OPSETS

# Operators of coremltools that never lie in a file, or not under this name.
ABSENT = {
    "_const_symbolic": "stands for unknown values while a model is converted, and is in no file",
    "const": "is in nearly every program",
}


def registered() -> dict[str, list[int]]:
    """The versions of each operator: the iOS versions whose class differs from the one before."""
    found: dict[str, list[int]] = {}
    for operator, versions in SSAOpRegistry.core_ops.items():
        before = None
        for target in sorted(versions, key=lambda target: target.value):
            if versions[target] is not before:
                ios = max(15, int(target.name.removeprefix("iOS")))
                found.setdefault(operator, []).append(ios)
            before = versions[target]
    return found


def covered(folder: Path) -> dict[str, set[int]]:
    """The iOS versions for whose opset a case has each operator."""
    ios = {name: number for number, name in OPSETS.items()}
    found: dict[str, set[int]] = {}
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as zipped:
            for name in zipped.namelist():
                if name.endswith("/case.json"):
                    about = json.loads(zipped.read(name))
                    for operator in about["operators"]:
                        found.setdefault(operator, set()).add(ios[about["opset"]])
    return found


def report(folder: Path) -> None:
    """Prints what is not covered. A version counts as covered by a case of its opset or of a later
    one that has no version of its own."""
    have = covered(folder)
    for operator, versions in sorted(registered().items()):
        if operator in ABSENT:
            print(f"{operator}: {ABSENT[operator]}")
            continue
        for version, after in zip(versions, [*versions[1:], 99]):
            if not any(version <= opset < after for opset in have.get(operator, ())):
                print(f"{operator} of iOS{version}: not covered")

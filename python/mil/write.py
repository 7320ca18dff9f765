"""Writes a family's cases as zip files whose bytes depend on nothing but the cases."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from . import program
from .case import OPSETS, Arrays, Case, Family

MOST_BYTES = 100_000
EARLIEST = (1980, 1, 1, 0, 0, 0)

# ArrayFeatureType.ArrayDataType -> the type of values outside.
FEATURES = {65552: np.float16, 65568: np.float32, 65600: np.float64, 131104: np.int32}


def wide(inputs: Arrays) -> Arrays:
    """Inputs with floats in FP64, in which the oracles compute."""
    return {
        name: value.astype(np.float64) if value.dtype.kind == "f" else value
        for name, value in inputs.items()
    }


def tolerances(case: Case, value: np.ndarray, halves: bool) -> tuple[float, float]:
    """How far a result may lie from `value`: rounding of the type in which the program computes,
    relative to the largest value, for sums may cancel."""
    if case.tolerance is not None:
        return case.tolerance
    if value.dtype.kind not in "f":
        return 0.0, 0.0
    finite = np.abs(value[np.isfinite(value)])
    largest = max(1.0, float(finite.max())) if finite.size else 1.0
    return (2e-3 * largest, 4e-3) if halves else (1e-5 * largest, 1e-4)


def names_of(spec: Any) -> list[tuple[str, Any]]:
    """The outputs in the program's order, with the type of each outside."""
    described = {output.name: output.type for output in spec.description.output}
    main = spec.mlProgram.functions["main"]
    block = next(iter(main.block_specializations.values()))
    return [(name, described[name]) for name in block.outputs]


def as_declared(value: Any, feature: Any, name: str) -> np.ndarray:
    """An expected value in the type that the model declares for it."""
    kind = feature.WhichOneof("Type")
    array = np.asarray(value)
    if kind == "stringType":
        return np.asarray(array, dtype=np.str_)
    if kind == "int64Type":
        return array.astype(np.int64)
    if kind == "dictionaryType":
        return array.astype(np.float64)
    declared = tuple(feature.multiArrayType.shape)
    if declared and declared != array.shape:
        raise ValueError(f"{name}: declared as {declared}, expected values are {array.shape}")
    return array.astype(FEATURES[feature.multiArrayType.dataType])


def compare_folded(case: Case, inputs: Arrays, expected: list[np.ndarray], near: Any) -> bool:
    """Compares with coremltools' value inference, where it computes. Returns whether it did."""
    if not case.fold or case.bounds or case.states:
        return False
    try:
        found = program.folded(case, inputs)
    except Exception as error:
        print(f"  {case.name}: value inference fails: {type(error).__name__}: {error}")
        return False
    compared = False
    for value, other in zip(expected, found):
        if other is None or value.dtype.kind == "U":
            continue
        compared = True
        if other.shape != value.shape or not np.allclose(
            other.astype(np.float64), value.astype(np.float64), near[1], near[0], equal_nan=True
        ):
            raise ValueError(f"{case.name}: coremltools gives {other}, the oracle {value}")
    return compared


def uses_halves(case: Case, spec: Any) -> bool:
    """Whether anything in the program is FP16."""
    if any(value.dtype == np.float16 for run in case.runs for value in run.values()) or case.states:
        return True
    for function in spec.mlProgram.functions.values():
        for block in function.block_specializations.values():
            for operation in block.operations:
                if any(output.type.tensorType.dataType == 10 for output in operation.outputs):
                    return True
    return False


def npy(value: np.ndarray) -> bytes:
    """The bytes of a .npy file."""
    out = io.BytesIO()
    np.save(out, np.ascontiguousarray(value) if value.ndim else value)
    return out.getvalue()


def run_files(case: Case, spec: Any, about: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Inputs and outputs of all runs."""
    files, halves, checked = [], uses_halves(case, spec), False
    absolute = relative = 0.0
    states = {name: value.astype(np.float64) for name, value in case.states.items()}
    for index, inputs in enumerate(case.runs):
        folder = f"{index}/" if case.states else ""
        for name, value in inputs.items():
            outside = value.astype(program.outside(value.dtype, case.opset))
            files.append((f"{folder}inputs/{name}.npy", npy(outside)))
        if case.bounds:
            continue
        given = wide(inputs) | ({"states": states} if case.states else {})
        values = program.as_tuple(case.expect(**given))
        outputs = names_of(spec)
        if len(values) != len(outputs):
            raise ValueError(f"{case.name}: {len(values)} values for {len(outputs)} outputs")
        expected = []
        for value, (name, feature) in zip(values, outputs):
            expected.append(as_declared(value, feature, f"{case.name}: {name}"))
            files.append((f"{folder}outputs/{name}.npy", npy(expected[-1])))
            near = tolerances(case, expected[-1], halves)
            absolute, relative = max(absolute, near[0]), max(relative, near[1])
        checked |= compare_folded(case, inputs, expected, (max(absolute, 1e-6), max(relative, 1e-5)))
    about["tolerance_abs"] = float(f"{absolute:.3g}")
    about["tolerance_rel"] = relative
    if checked:
        about["checked_by"] = "coremltools"
    return files


def case_files(case: Case) -> list[tuple[str, bytes]]:
    """All files of a case."""
    spec, weights = program.converted(case)
    program.check_kept(case, spec)
    about: dict[str, Any] = {
        "operators": case.operators,
        "opset": OPSETS[case.opset],
        "oracle": "range" if case.bounds else case.oracle,
    }
    runs = run_files(case, spec, about)
    if case.bounds:
        about["low"], about["high"] = case.bounds
        outputs = names_of(spec)
        shapes = case.shapes or [feature.multiArrayType.shape for _, feature in outputs]
        about["shapes"] = {name: list(shape) for (name, _), shape in zip(outputs, shapes)}
    if case.why:
        about["why"] = case.why
    files = [("case.json", (json.dumps(about) + "\n").encode())]
    files.append(("model.mlmodel", spec.SerializeToString(deterministic=True)))
    if weights is not None:
        files.append(("weights/weight.bin", weights))
    return files + runs


def archive(cases: list[tuple[str, list[tuple[str, bytes]]]]) -> bytes:
    """A zip of cases, with the earliest time that a zip can say."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for name, files in cases:
            for path, data in files:
                entry = zipfile.ZipInfo(f"{name}/{path}", EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                zipped.writestr(entry, data)
    return out.getvalue()


def write_family(family: Family, folder: Path) -> int:
    """Writes FAMILY.zip, and FAMILY-2.zip and so on where one would be larger than allowed.
    Returns how many cases failed; these are printed and left out."""
    made = []
    for case in family.cases:
        try:
            made.append((case.name, case_files(case)))
        except Exception as error:
            print(f"FAILED {case.name}: {type(error).__name__}: {error}")
    parts: list[bytes] = []
    first = 0
    while first < len(made):
        last = len(made)
        data = archive(made[first:last])
        while len(data) > MOST_BYTES:
            last = first + max(1, int((last - first) * MOST_BYTES * 0.98 / len(data)))
            data = archive(made[first:last])
        parts.append(data)
        first = last
    for old in folder.glob(f"{family.name}*.zip"):
        if old.stem == family.name or old.stem.removeprefix(f"{family.name}-").isdigit():
            old.unlink()
    for index, data in enumerate(parts):
        suffix = f"-{index + 1}" if index else ""
        (folder / f"{family.name}{suffix}.zip").write_bytes(data)
    print(f"{family.name}: {len(made)} cases, {[len(data) for data in parts]} bytes")
    return len(family.cases) - len(made)
